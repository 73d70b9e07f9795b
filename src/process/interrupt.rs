//! Interrupting long walks: the host may have something to say, such as Ctrl-C, while the core is at work.
//!
//! Kernels are not interrupted, walks over many of them are. The host is asked every tenth of a second, and
//! the clock is read only after enough work to make both free of charge; a short walk does neither.

use crate::error::Result;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Elements that count as much as one step of a walk.
const ELEMENTS: usize = 16 * 1024;
/// Steps between two looks at the clock, about a tenth of a millisecond.
const STEPS: usize = 256;
/// How long the host waits at most, besides the step that is being taken.
const PERIOD: Duration = Duration::from_millis(100);

static HOST: OnceLock<fn() -> Result<()>> = OnceLock::new();

/// Lets `ask` decide whether to go on; its error ends the walk. Only the first call has an effect.
pub fn listen(ask: fn() -> Result<()>) {
    let _ = HOST.set(ask);
}

/// Counts the work of one walk, and asks the host now and then whether to go on.
#[derive(Default)]
pub struct InterruptBudget {
    steps: usize,
    asked: Option<Instant>,
}

impl InterruptBudget {
    /// One step with a result of so many elements.
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
