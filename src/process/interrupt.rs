//! Interrupts of long walks, such as Ctrl-C. Kernels are not interrupted; walks over many of them are.
//!
//! Python is asked every tenth of a second. The clock is read only after enough work to make its cost
//! negligible; a short walk never reads it.

use crate::error::Result;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Number of elements that count as one more step of a walk.
const ELEMENTS: usize = 16 * 1024;
/// Steps between two reads of the clock, about a tenth of a millisecond.
const STEPS: usize = 256;
/// The longest delay of an interrupt, apart from the step in progress.
const PERIOD: Duration = Duration::from_millis(100);

static HOST: OnceLock<fn() -> Result<()>> = OnceLock::new();

/// Installs `ask`, which decides whether a walk goes on: its error ends the walk. Only the first call counts.
pub fn listen(ask: fn() -> Result<()>) {
    let _ = HOST.set(ask);
}

/// Counts the work of one walk, and asks the installed function periodically whether to go on.
#[derive(Default)]
pub struct InterruptBudget {
    steps: usize,
    asked: Option<Instant>,
}

impl InterruptBudget {
    /// Counts one step with a result of `elements` elements.
    #[inline]
    pub fn spend(&mut self, elements: usize) -> Result<()> {
        self.steps += 1 + elements / ELEMENTS;
        if self.steps < STEPS { Ok(()) } else { self.look() }
    }

    #[cold]
    fn look(&mut self) -> Result<()> {
        self.steps = 0;
        let now = Instant::now();
        if self.asked.is_some_and(|asked| now.duration_since(asked) < PERIOD) {
            return Ok(());
        }
        let first = self.asked.replace(now).is_none();
        match HOST.get() {
            Some(ask) if !first => ask(),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn a_long_walk_asks_and_a_short_one_does_not() {
        listen(|| Err(Error::value("stop")));
        let mut short = InterruptBudget::default();
        assert!((0..STEPS * 4).all(|_| short.spend(1).is_ok()));
        let mut long = InterruptBudget::default();
        assert!(long.spend(STEPS * ELEMENTS).is_ok());
        long.asked = Instant::now().checked_sub(PERIOD);
        assert!(long.spend(STEPS * ELEMENTS).is_err());
    }
}
