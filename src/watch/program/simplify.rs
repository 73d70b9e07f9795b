//! Steps that compute once more what a step before them has computed: they are left out, and what reads their
//! results reads those of the first.
//!
//! A step repeats another if it is the same operation with the same attributes, draws no random numbers, and
//! reads the same values, which nothing wrote in between. What is written later, returned or kept as a
//! gradient has memory of its own: such results are not shared, unless one of the two is returned and the
//! other one nobody sees. Numbers that are equal bit for bit are one value.

use super::act::Act;
use super::{Program, Source, Value};
use crate::array::Array;
use crate::watch::script::View;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};

/// So many bytes of a constant are compared with those of others.
const COMPARED: usize = 1 << 16;

impl Program {
    /// The program as `arrange` makes it of the steps that are left without repetitions, if that takes no
    /// more memory; otherwise without those that keep no value longer than others do, or as it is.
    pub fn simplified(self, arrange: impl Fn(Program) -> Program) -> Program {
        let Some(simpler) = self.without_repetitions(true) else { return arrange(self) };
        let whole = arrange(self.clone());
        let most = whole.memory().peak;
        let fits = |program: &Program| program.memory().peak <= most;
        let shorter = || self.without_repetitions(false).map(&arrange);
        let simpler = Some(arrange(simpler)).filter(fits).or_else(|| shorter().filter(fits));
        simpler.unwrap_or(whole)
    }

    /// The program without repetitions, if there are any; what would then live longer is computed again,
    /// unless it may live `longer`.
    fn without_repetitions(&self, longer: bool) -> Option<Program> {
        let repeated = Merger::new(self, longer).walk();
        if !repeated.gone.contains(&true) {
            return None;
        }
        let mut program = self.clone();
        let mut gone = repeated.gone.iter();
        program.steps.retain(|_| gone.next() == Some(&false));
        program.steps.iter_mut().for_each(|step| step.act.each_mut(|value| *value = repeated.first(*value)));
        program.outputs.iter_mut().for_each(|value| *value = repeated.first(*value));
        for value in &mut program.values {
            if let Source::Within(base) = &mut value.source {
                *base = repeated.same[*base as usize];
            }
        }
        Some(program)
    }
}

/// What becomes of memory beside being read.
#[derive(Clone, Copy, Default)]
struct Use {
    /// A step writes it after it was made.
    written: bool,
    /// It is the gradient of a leaf.
    given: bool,
    /// It is a result.
    returned: bool,
    /// The last step that reads it.
    last: usize,
    /// The last step so far that changed it, counted from 1.
    changed: usize,
}

/// Finds repetitions in the order of the steps.
struct Merger<'a> {
    program: &'a Program,
    longer: bool,
    /// The first value that each is equal to.
    same: Vec<u32>,
    /// The first value that lies so in the memory of another, where that was another value's before.
    views: FxHashMap<View, u32>,
    /// Of each value that has the whole of its memory.
    uses: Vec<Use>,
    /// The last step so far that changed memory of outside, counted from 1.
    outside: usize,
    gone: Vec<bool>,
}

impl<'a> Merger<'a> {
    fn new(program: &'a Program, longer: bool) -> Merger<'a> {
        let mut uses = vec![Use::default(); program.values.len()];
        for (i, step) in program.steps.iter().enumerate() {
            step.act.reads().iter().for_each(|&value| uses[program.base(value) as usize].last = i);
            match &step.act {
                Act::Write { outputs, .. } => {
                    outputs.iter().for_each(|&value| uses[program.base(value) as usize].written = true);
                }
                Act::Gradient { value: Some(value), .. } => uses[program.base(*value) as usize].given = true,
                _ => {}
            }
        }
        for &value in &program.outputs {
            let base = &mut uses[program.base(value) as usize];
            (base.returned, base.last) = (true, usize::MAX);
        }
        let gone = vec![false; program.steps.len()];
        let (same, views) = (equal_constants(program), FxHashMap::default());
        Merger { program, longer, same, views, uses, outside: 0, gone }
    }

    /// The first value that a value is equal to.
    fn first(&self, value: u32) -> u32 {
        self.same[value as usize]
    }

    /// Finds all repetitions.
    fn walk(mut self) -> Merger<'a> {
        let program = self.program;
        let mut known: FxHashMap<u64, usize> = FxHashMap::default();
        for (i, step) in program.steps.iter().enumerate() {
            self.parts(&step.act);
            if let Some(hash) = self.hash(&step.act) {
                let shared = |&first: &usize| self.repeats(first, i) && self.merge(first, i);
                self.gone[i] = known.get(&hash).is_some_and(shared);
                if !self.gone[i] && self.lasts(&step.act) {
                    known.insert(hash, i);
                }
            }
            match &step.act {
                Act::Write { outputs, .. } => outputs.iter().for_each(|&value| self.change(value, i)),
                Act::Call(_) => self.outside = i + 1,
                _ => {}
            }
        }
        self
    }

    /// Finds what views that a step reads are equal to: those in memory that is another value's now.
    fn parts(&mut self, act: &Act) {
        for value in act.reads() {
            let Source::Within(base) = self.program.values[value as usize].source else { continue };
            let first = self.first(base);
            if first != base && self.same[value as usize] == value {
                if self.views.is_empty() {
                    let is_view = |value: &Value| matches!(value.source, Source::Within(_));
                    let views = self.program.values.iter().zip(0..).filter(|(value, _)| is_view(value));
                    self.views = views.map(|(value, number)| (value.view.clone(), number)).collect();
                }
                let memory = self.program.values[first as usize].view.memory;
                let view = View { memory, ..self.program.values[value as usize].view.clone() };
                self.same[value as usize] = *self.views.entry(view).or_insert(value);
            }
        }
    }

    /// The hash of a step that may repeat another; equal steps have equal ones.
    fn hash(&self, act: &Act) -> Option<u64> {
        let mut hasher = FxHasher::default();
        match act {
            Act::Run { op, inputs, draw: None, .. } if op.is_function() => {
                op.hash(&mut hasher);
                inputs.iter().for_each(|&value| self.first(value).hash(&mut hasher));
            }
            Act::Look { at, .. } => self.first(*at).hash(&mut hasher),
            _ => return None,
        }
        Some(hasher.finish())
    }

    /// Whether step `i` computes what a step before it has computed.
    fn repeats(&self, first: usize, i: usize) -> bool {
        let same = |a: u32, b: u32| self.first(a) == self.first(b) && self.changed(b) <= first;
        match (&self.program.steps[first].act, &self.program.steps[i].act) {
            (Act::Run { op, inputs, .. }, Act::Run { op: again, inputs: read, .. }) => {
                op == again
                    && inputs.len() == read.len()
                    && inputs.iter().zip(read).all(|(&a, &b)| same(a, b))
            }
            (Act::Look { at, value }, Act::Look { at: again, value: found }) => {
                same(*at, *again) && value == found
            }
            _ => false,
        }
    }

    /// Gives the results of step `first` to those who read the results of step `i`, if they can be shared.
    fn merge(&mut self, first: usize, i: usize) -> bool {
        let (made, again) = match (&self.program.steps[first].act, &self.program.steps[i].act) {
            (Act::Run { outputs, .. }, Act::Run { outputs: again, .. }) => (outputs, again),
            _ => return true,
        };
        let fits = |(a, b): (&Option<u32>, &Option<u32>)| match (*a, *b) {
            (Some(a), Some(b)) => {
                let [a, b] = [a, b].map(|value| (&self.program.values[value as usize].view, self.of(value)));
                let alike = a.0.shape == b.0.shape && a.0.strides == b.0.strides;
                let placed = a.0.offset == b.0.offset && a.0.dtype == b.0.dtype;
                let own = b.1.written || b.1.given || (a.1.returned && b.1.returned);
                alike && placed && !own && (self.longer || a.1.last >= i)
            }
            (a, b) => a == b,
        };
        if made.len() != again.len() || !made.iter().zip(again).all(fits) {
            return false;
        }
        for (&a, &b) in made.iter().flatten().zip(again.iter().flatten()) {
            let later = *self.of(b);
            let kept = &mut self.uses[a as usize];
            (kept.returned, kept.last) = (kept.returned || later.returned, kept.last.max(later.last));
            self.same[b as usize] = a;
        }
        true
    }

    /// Whether what a step makes stays as it is, so that others may share it.
    fn lasts(&self, act: &Act) -> bool {
        act.makes().iter().all(|&value| !self.of(value).written && !self.of(value).given)
    }

    /// What becomes of the memory that a value lies in.
    fn of(&self, value: u32) -> &Use {
        &self.uses[self.program.base(value) as usize]
    }

    /// Whether others than the steps of the program may write a value.
    fn is_outside(&self, base: u32) -> bool {
        let made = matches!(self.program.values[base as usize].source, Source::Step | Source::Constant(_));
        !made || self.uses[base as usize].given
    }

    /// Takes note that step `i` writes a value. Memory of outside may be the same under several numbers, as
    /// where foreign arrays overlap.
    fn change(&mut self, value: u32, i: usize) {
        let base = self.program.base(value);
        self.uses[base as usize].changed = i + 1;
        if self.is_outside(base) {
            self.outside = i + 1;
        }
    }

    /// The last step that changed the memory of a value, counted from 1.
    fn changed(&self, value: u32) -> usize {
        let base = self.program.base(self.first(value));
        let changed = self.uses[base as usize].changed;
        if self.is_outside(base) { changed.max(self.outside) } else { changed }
    }
}

/// The first value that each is equal to: another one only for small constants with the same bits.
fn equal_constants(program: &Program) -> Vec<u32> {
    let mut same: Vec<u32> = (0..program.values.len() as u32).collect();
    let bytes = |number: &u32| match &program.values[*number as usize].source {
        Source::Constant(x) => Some((*number, bytes_of(x)?)),
        _ => None,
    };
    let constants: Vec<(u32, Array)> = same.iter().filter_map(bytes).collect();
    let mut known: FxHashMap<(View, &[u8]), u32> = FxHashMap::default();
    for (number, array) in &constants {
        let view = View { memory: 0, ..program.values[*number as usize].view.clone() };
        if let Ok(bytes) = array.slice::<u8>() {
            same[*number as usize] = *known.entry((view, bytes)).or_insert(*number);
        }
    }
    same
}

/// The elements of a small array on the host as bytes.
fn bytes_of(x: &Array) -> Option<Array> {
    let is_small = x.numel() * x.dtype().size() <= COMPARED && x.is_contiguous();
    if is_small { x.bytes().ok() } else { None }
}
