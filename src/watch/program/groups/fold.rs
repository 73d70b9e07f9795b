//! Reductions that a group takes over: it folds what only they read, as it is computed.

use super::loops::is_contiguous;
use super::{FoldStep, Fusion, Member, Unit};
use crate::array::buffer::Device;
use crate::array::dtype::DType;
use crate::watch::program::act::Act;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// So many elements are worth folding on the host as they are computed.
const FOLDED: usize = 4096;

impl Fusion<'_> {
    /// Lets groups fold what only a reduction reads.
    pub fn fold(&self, mut units: Vec<Unit>) -> Vec<Unit> {
        let mut makers: FxHashMap<u32, usize> = FxHashMap::default();
        let mut gone = vec![false; units.len()];
        for i in 0..units.len() {
            if let Unit::One(step) = units[i]
                && let Some(value) = self.folded(step)
                && let Some(maker) = makers.remove(&value)
                && self.folds_alone(&units[maker], value)
                && let Some(members) = self.folds(&mut units[maker])
            {
                units[maker] = Unit::Group(members, Some(FoldStep { step, value }));
                gone[i] = true;
                continue;
            }
            let made: SmallVec<[u32; 8]> = match &units[i] {
                Unit::One(step) if self.sizes[*step] == 0 => SmallVec::new(),
                unit => self.makes(unit),
            };
            makers.extend(made.into_iter().map(|value| (value, i)));
        }
        let mut gone = gone.into_iter();
        units.retain(|_| gone.next() == Some(false));
        units
    }

    /// The value that a step reduces, if it may be folded as it is computed: nobody else reads it.
    fn folded(&self, step: usize) -> Option<u32> {
        let Act::Run { op, inputs, outputs, draw: None } = &self.steps[step].act else { return None };
        let (folding, &input) = (op.folding()?, inputs.first()?);
        let (value, view) = (self.whole(input), self.view(input));
        let fits = matches!(view.dtype, DType::F32 | DType::F64)
            && is_contiguous(view)
            && self.root(value) == value
            && self.uses[value as usize] == 1
            && outputs.iter().all(Option::is_some)
            && (self.device(value) != Device::Cpu
                || (view.shape.numel() >= FOLDED && folding.suits(&view.shape)));
        fits.then_some(value)
    }

    /// Whether a unit on a GPU makes nothing but this value: its kernel stores nothing else.
    fn folds_alone(&self, unit: &Unit, value: u32) -> bool {
        let is_host = self.device(value) == Device::Cpu;
        is_host
            || matches!(unit, Unit::One(_))
            || matches!(unit, Unit::Group(all, _) if self.shown(all).len() == 1)
    }

    /// The members of a unit that may fold a value which it makes; `None` if it folds another.
    fn folds(&self, unit: &mut Unit) -> Option<Vec<Member>> {
        match unit {
            Unit::Group(members, None) => Some(std::mem::take(members)),
            Unit::One(step) if matches!(self.steps[*step].act, Act::Run { .. }) => {
                let (run, from, to) = self.loops[*step].clone()?;
                Some(vec![Member { step: *step, run, from, to }])
            }
            _ => None,
        }
    }
}
