//! The values of a program while it is made: where each comes from, and which are the same in all runs.

use super::act::{Act, Planned};
use super::{Refusal, Source, Value};
use crate::array::Array;
use crate::array::buffer::Device;
use crate::array::dtype::DType;
use crate::op::{Kernel, Op};
use crate::watch::script::{self, Fact, Origin, View};
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

/// So many bytes of a value that is the same in all runs are kept between these.
const SMALL: usize = 1 << 16;

/// What is known while a program is made.
pub struct Plan {
    origins: Vec<Origin>,
    pub values: Vec<Value>,
    known: FxHashMap<View, u32>,
    /// The value that has the whole of each memory.
    bases: Vec<Option<u32>>,
}

impl Plan {
    /// No values yet, in memory from there.
    pub fn new(origins: Vec<Origin>) -> Plan {
        let bases = vec![None; origins.len()];
        Plan { origins, values: Vec::new(), known: FxHashMap::default(), bases }
    }

    /// The steps that copy constants which the program writes, or which outlast it: each run has its own.
    pub fn copies(&mut self, outlasts: &[bool]) -> Result<Vec<Planned>, Refusal> {
        let mut steps = Vec::new();
        for (memory, &outlasts) in outlasts.iter().enumerate() {
            let Origin::Constant(buffer, first) = &mut self.origins[memory] else { continue };
            if first.is_none() && !outlasts {
                continue;
            }
            if buffer.is_borrowed() || buffer.device() != Device::Cpu {
                return Err(("a tensor of foreign memory that is written or returned".into(), None));
            }
            let from = match first.take() {
                Some(first) => first,
                None => script::whole(buffer).map_err(|error| (error.to_string(), None))?,
            };
            *first = Some(from.clone());
            let view =
                View { memory, shape: from.shape(), strides: smallvec![1], offset: 0, dtype: DType::U8 };
            steps.push(Planned::new(Act::Copy { from, to: self.value(&view) }, Fact::default()));
        }
        Ok(steps)
    }

    /// The number of a value; the first of its memory is what the others lie in.
    pub fn value(&mut self, view: &View) -> u32 {
        if let Some(base) = self.bases[view.memory]
            && self.values[base as usize].view == *view
        {
            return base;
        }
        if self.bases[view.memory].is_some()
            && let Some(&number) = self.known.get(view)
        {
            return number;
        }
        let number = self.values.len() as u32;
        let source = match (&self.origins[view.memory], self.bases[view.memory]) {
            (Origin::Outside(buffer) | Origin::Constant(buffer, None), _) => {
                let View { shape, strides, offset, dtype, .. } = view;
                match Array::strided(buffer.clone(), *shape, strides, *offset, *dtype) {
                    Ok(array) if self.is_ours(view.memory) => Source::Constant(array),
                    Ok(array) => Source::Fixed(array),
                    Err(_) => Source::Step,
                }
            }
            (_, Some(base)) => self.part(base, view).map_or(Source::Within(base), Source::Constant),
            (Origin::Argument(i), None) => Source::Argument(*i),
            (Origin::Gradient(leaf), None) => Source::Gradient(*leaf, true),
            (Origin::Made(_) | Origin::Constant(..), None) => Source::Step,
        };
        if *self.bases[view.memory].get_or_insert(number) != number {
            self.known.insert(view.clone(), number);
        }
        self.values.push(Value { source, view: view.clone() });
        number
    }

    /// The number of a value that an operation makes; `None` if it lies in memory that was there.
    pub fn made(&mut self, view: &View) -> Option<u32> {
        let value = self.value(view);
        matches!(self.values[value as usize].source, Source::Step).then_some(value)
    }

    /// Whether memory is that of a constant which no run and nobody else changes.
    fn is_ours(&self, memory: usize) -> bool {
        matches!(&self.origins[memory], Origin::Constant(buffer, None) if !buffer.is_borrowed())
    }

    /// A view of a value that is a constant.
    fn part(&self, base: u32, view: &View) -> Option<Array> {
        let Value { source, view: start } = &self.values[base as usize];
        match source {
            Source::Constant(whole) if start.dtype == view.dtype && start.offset == whole.offset() => {
                let View { shape, strides, offset, dtype, .. } = view;
                Array::strided(whole.buffer().clone(), *shape, strides, *offset, *dtype).ok()
            }
            _ => None,
        }
    }

    /// Computes the results of an operation on constants that draws no random numbers, if they are small and
    /// their memory `stays` as it is: no run need make them again.
    pub fn folds(&mut self, op: &Op, inputs: &[u32], outputs: &[Option<u32>], stays: &[bool]) -> bool {
        let small = |value: &u32| {
            let view = &self.values[*value as usize].view;
            stays[view.memory] && view.shape.numel() * view.dtype.size() <= SMALL
        };
        let array = |value: &u32| match &self.values[*value as usize].source {
            Source::Constant(array) => Some(array.clone()),
            _ => None,
        };
        let x: Option<SmallVec<[Array; 4]>> = inputs.iter().map(array).collect();
        let Some(x) = x.filter(|_| outputs.iter().flatten().all(small)) else { return false };
        let Ok(made) = op.eval(&x.iter().collect::<SmallVec<[&Array; 4]>>()) else { return false };
        for (value, array) in outputs.iter().zip(made) {
            if let Some(value) = value {
                self.values[*value as usize].source = Source::Constant(array);
            }
        }
        true
    }
}
