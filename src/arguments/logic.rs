//! Comparisons and logical connectives, shared by operations and kernels.

/// A comparison of two numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Relation {
    /// `x < y`
    Lt,
    /// `x <= y`
    Le,
    /// `x == y`
    Eq,
    /// `x != y`
    Ne,
    /// `x > y`
    Gt,
    /// `x >= y`
    Ge,
}

impl Relation {
    /// Whether the comparison holds for `x` and `y`.
    pub fn holds(self, x: f64, y: f64) -> bool {
        match self {
            Relation::Lt => x < y,
            Relation::Le => x <= y,
            Relation::Eq => x == y,
            Relation::Ne => x != y,
            Relation::Gt => x > y,
            Relation::Ge => x >= y,
        }
    }
}

/// A function of truth values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Logic {
    /// Both.
    And,
    /// At least one.
    Or,
    /// Exactly one.
    Xor,
    /// The opposite; has one operand.
    Not,
}
