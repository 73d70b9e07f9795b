//! What a script knows of its steps beside what they do: the line of the program, floating point operations,
//! and the memory that they took. `src/watch/program/shown.rs` reads it; no run needs it.

use super::Script;
use super::notes::with;
use crate::array::Array;
use crate::array::buffer::{live_bytes, peak_bytes, reset_peak, restore_peak};
use crate::tape::location::{self, Location};
use crate::watch::cost;
use smallvec::SmallVec;

/// What is known of a step.
#[derive(Clone, Default)]
pub struct Fact {
    /// The line of the user's program that ran it.
    pub place: Option<Location>,
    /// The module that ran it, or whose backward it is, by the number that `src/watch/cost.rs` has.
    pub scope: u32,
    /// Floating point operations (`src/watch/cost.rs`).
    pub flops: u64,
    /// The most bytes of host memory that tensors held while it ran, less those before.
    pub above: i64,
    /// The bytes of the memory of each output; 0 for one that lies in that of an input or an earlier output.
    pub made: SmallVec<[i64; 1]>,
}

impl Script {
    /// Takes note of the line that runs, as that of the last step.
    pub(super) fn place(&mut self) {
        let fact = Fact { place: location::now(), scope: cost::scope(), ..Fact::default() };
        self.facts.insert(self.steps.len().wrapping_sub(1), fact);
    }
}

/// The measurement of what one step takes.
pub struct Measure {
    /// The peak before, of which others shall not miss anything.
    peak: i64,
    live: i64,
    steps: usize,
}

/// What was measured.
pub struct Measured {
    above: i64,
    kept: i64,
    steps: usize,
}

impl Measure {
    /// Begins it.
    pub fn begin() -> Measure {
        let measure = Measure { peak: peak_bytes(), live: live_bytes(), steps: count() };
        reset_peak();
        measure
    }

    /// Ends it.
    pub fn end(self) -> Measured {
        let above = peak_bytes() - self.live;
        restore_peak(self.peak);
        Measured { above, kept: live_bytes() - self.live, steps: self.steps }
    }
}

/// How many steps there are so far.
fn count() -> usize {
    super::notes::steps()
}

impl Measured {
    /// Takes note of it, as of the operation that was written down meanwhile, if one was.
    pub fn of(self, flops: u64, x: &[&Array], outputs: &[Array]) {
        let shared = |i: usize, y: &Array| {
            let before = x.iter().copied().chain(&outputs[..i]);
            before.into_iter().any(|other| other.buffer().same(y.buffer()))
        };
        let bytes = |(i, y): (usize, &Array)| if shared(i, y) { 0 } else { y.buffer().bytes() as i64 };
        let made = outputs.iter().enumerate().map(bytes).collect();
        with(|script| {
            if script.steps.len() > self.steps {
                let (place, scope) = (location::now(), cost::scope());
                let fact = Fact { place, scope, flops, above: self.above, made };
                script.facts.insert(script.steps.len() - 1, fact);
            }
        });
    }

    /// Takes note of it, as of the function of the host that was called last. What the call keeps, as the
    /// state of an optimiser in its first step, the next ones do not take.
    pub fn of_call(self, flops: u64) {
        with(|script| {
            if let Some(fact) = self.steps.checked_sub(1).and_then(|last| script.facts.get_mut(&last)) {
                (fact.flops, fact.above) = (flops, self.above - self.kept.max(0));
            }
        });
    }
}
