//! What operations do beside computing new memory from their inputs.

use super::Op;

/// What an operation does beside computing, a column of the list in `src/op/list.rs`. Programs of
/// `wengert.jit` merge, move and drop operations by it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Nothing.
    Pure,
    /// Nothing; the result may be a view of the operand.
    View,
    /// It fails for some values of its inputs, not only for shapes and dtypes: indices out of range, divisors
    /// of 0, matrices without the factorisation.
    Fails,
    /// It writes to its inputs.
    Writes,
    /// Other processes take part, which wait for it: it runs once, and in its place.
    Exchanges,
    /// It calls a function of the user's, which may do anything.
    Calls,
}

impl Op {
    /// Whether it may fail for some values.
    pub fn may_fail(&self) -> bool {
        matches!(self.effect(), Effect::Fails | Effect::Exchanges | Effect::Calls)
    }

    /// Whether the same operation of the same values is the same result, with nothing beside.
    pub fn is_function(&self) -> bool {
        matches!(self.effect(), Effect::Pure | Effect::View | Effect::Fails)
    }

    /// Whether its result may be a view of its operand.
    pub fn is_view(&self) -> bool {
        self.effect() == Effect::View
    }

    /// Whether other processes take part.
    pub fn is_collective(&self) -> bool {
        self.effect() == Effect::Exchanges
    }
}
