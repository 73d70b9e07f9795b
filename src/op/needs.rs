//! Sets of inputs and outputs: what a reverse rule reads, and which gradients are wanted.

/// Which inputs (bits 0..=13), and whether all outputs (bit 15) or all but the first (bit 14), are kept for
/// the VJP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Saves(pub u16);

impl Saves {
    /// Nothing.
    pub const NONE: Saves = Saves(0);
    /// All outputs.
    pub const OUTPUTS: Saves = Saves(1 << 15);
    /// All outputs but the first: the statistics that a fused kernel returns beside its result.
    pub const STATISTICS: Saves = Saves(1 << 14);
    /// Input `i`.
    pub const fn input(i: usize) -> Saves {
        Saves(1 << i)
    }
    /// Both.
    pub const fn and(self, other: Saves) -> Saves {
        Saves(self.0 | other.0)
    }
    /// `self` if `condition` holds, else nothing.
    pub const fn when(self, condition: bool) -> Saves {
        if condition { self } else { Saves::NONE }
    }
    /// Whether input `i` is kept.
    pub const fn has_input(self, i: usize) -> bool {
        i < 14 && self.0 >> i & 1 == 1
    }
    /// Whether output `i` is kept.
    pub const fn has_output(self, i: usize) -> bool {
        self.0 >> 15 == 1 || i > 0 && self.0 >> 14 & 1 == 1
    }
}

/// Which inputs need a gradient: bit `i` for input `i`; the last bit answers for all inputs from there on, so
/// beyond it the answer may be yes where no would do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Needs(pub u64);

impl Needs {
    const fn bit(i: usize) -> u32 {
        if i < 63 { i as u32 } else { 63 }
    }
    /// Whether input `i` needs a gradient.
    pub const fn has(self, i: usize) -> bool {
        self.0 >> Needs::bit(i) & 1 == 1
    }
    /// Whether none needs a gradient.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
    /// Says that input `i` needs a gradient.
    pub const fn add(&mut self, i: usize) {
        self.0 |= 1 << Needs::bit(i);
    }
}
