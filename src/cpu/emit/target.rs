//! The instruction sets that machine code is emitted for.

use crate::cpu::run::isa::Isa;

/// An instruction set that machine code is emitted for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Default, Debug)]
pub enum Target {
    /// AVX2 and FMA: 16 registers of 32 bytes. A mask is such a register, of ones and zeros.
    Avx2,
    /// AVX-512 F, BW, DQ and VL: 32 registers of 64 bytes, and registers of masks. Instructions can repeat
    /// one number of memory, and skip elements.
    #[default]
    Avx512,
}

impl Target {
    /// The target for an instruction set of compiled loops.
    pub fn of(isa: Isa) -> Option<Target> {
        match isa {
            Isa::Baseline => None,
            Isa::Avx2 => Some(Target::Avx2),
            Isa::Avx512 => Some(Target::Avx512),
        }
    }

    /// Those that this processor has, with their compiled loops.
    #[cfg(test)]
    pub fn all() -> impl Iterator<Item = (Target, Isa)> {
        let all = [(Target::Avx2, Isa::Avx2), (Target::Avx512, Isa::Avx512)];
        all.into_iter().filter(|&(target, _)| super::target().is_some_and(|best| target <= best))
    }

    /// Bytes of a register.
    pub fn bytes(self) -> usize {
        match self {
            Target::Avx2 => 32,
            Target::Avx512 => 64,
        }
    }

    /// How many registers there are.
    pub fn registers(self) -> u8 {
        match self {
            Target::Avx2 => 16,
            Target::Avx512 => 32,
        }
    }
}
