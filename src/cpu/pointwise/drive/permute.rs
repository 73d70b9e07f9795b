//! Copies rows of a few elements into a tile by permutations of registers: a register of the tile is put
//! together from two registers of the operand. Where the operand's elements lie closer together than two
//! registers reach, this takes a third of the time of a loop over rows.

use super::tiles::{SHORT_ROW, copy_tile};
use crate::array::nest::Nest;

/// Bytes of a register.
const WIDTH: usize = 64;
/// Registers after which the pattern repeats, at most: rows of 7 elements need as many.
const MOST: usize = SHORT_ROW - 1;

/// Where the elements of a group of rows come from, for an operand with short rows.
pub(super) struct Permutation {
    /// Bytes of an element, 4 or 8.
    size: usize,
    /// The rows of a group, which fill `registers` registers.
    rows: usize,
    registers: usize,
    /// Elements from a group to the next.
    down: isize,
    /// The two loads of each register, in elements from the first of the group.
    loads: [[isize; 2]; MOST],
    /// The element of both loads that each element of a register is, as integers of `size` bytes.
    order: [Register; MOST],
}

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Register([u8; WIDTH]);

impl Permutation {
    /// Finds the permutation for operand `k` of elements of `size` bytes; `None` where two loads do not reach
    /// all elements of a register, where rows are long, and on a processor without AVX-512.
    pub(super) fn new(nest: &Nest, k: usize, size: usize) -> Option<Permutation> {
        if nest.rank < 2 || nest.inner() > SHORT_ROW || !matches!(size, 4 | 8) || !is_available() {
            return None;
        }
        let (inner, lanes) = (nest.inner(), WIDTH / size);
        let (step, down) = (nest.strides[k][nest.rank - 1], nest.strides[k][nest.rank - 2]);
        let rows = (1..=lanes).find(|rows| (rows * inner).is_multiple_of(lanes))?;
        let registers = rows * inner / lanes;
        // An odd part of the length of a row, which is at most 8.
        if rows > nest.dims[nest.rank - 2] || !matches!(registers, 1 | 3 | 5 | 7) {
            return None;
        }
        let mut found = Permutation {
            size,
            rows,
            registers,
            down: down * rows as isize,
            loads: [[0; 2]; MOST],
            order: [Register([0; WIDTH]); MOST],
        };
        for r in 0..registers {
            let place = |i: usize| {
                let at = r * lanes + i;
                (at / inner) as isize * down + (at % inner) as isize * step
            };
            let first = (0..lanes).map(place).min()?;
            let last = (0..lanes).map(place).max()? - (lanes as isize - 1);
            found.loads[r] = [first, last];
            for i in 0..lanes {
                let within = |load: isize| usize::try_from(place(i) - load).ok().filter(|&at| at < lanes);
                let from = within(first).or_else(|| within(last).map(|at| lanes + at))?;
                // The first load begins at the first element, and the second ends at the last.
                (last >= first).then_some(())?;
                found.order[r].0[i * size] = from as u8;
            }
        }
        Some(found)
    }

    /// Copies the `n` elements from row-major index `at` on into the tile: groups of rows by the permutation,
    /// what is left by [`copy_tile`].
    ///
    /// # Safety
    /// The permutation is that of this operand; operand and tile have these elements, and do not overlap.
    pub(super) unsafe fn copy_tile<T: Copy>(
        &self, nest: &Nest, k: usize, at: usize, n: usize, operand: *mut T, tile: *mut T,
    ) {
        let (inner, above) = (nest.inner(), nest.dims[nest.rank - 2]);
        // SAFETY: these parts make up the elements, by the caller's word.
        let rest = |done: usize, n: usize| unsafe {
            copy_tile::<T, true>(nest, k, at + done, n, operand, tile.add(done));
        };
        let mut done = (inner - at % inner) % inner;
        if n < done + self.rows * inner {
            return rest(0, n);
        }
        rest(0, done);
        while n - done >= inner {
            // The rows that are `down` elements apart.
            let first = (at + done) / inner;
            let rows = ((n - done) / inner).min(above - first % above);
            let groups = rows / self.rows;
            let from = operand.wrapping_offset(nest.position(k, &nest.coordinates(first * inner)));
            // SAFETY: the permutation was made for a processor that has these registers; the rest by the
            // caller's word.
            unsafe { self.run(from.cast(), tile.add(done).cast(), groups) };
            done += groups * self.rows * inner;
            let left = (rows - groups * self.rows) * inner;
            rest(done, left);
            done += left;
        }
        rest(done, n - done);
    }

    /// Copies `count` groups.
    ///
    /// # Safety
    /// The groups exist, from `from` on and in the tile; the processor has AVX-512.
    unsafe fn run(&self, from: *const u8, tile: *mut u8, count: usize) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: guaranteed by the caller.
        unsafe {
            match self.registers {
                1 => self.groups::<1>(from, tile, count),
                3 => self.groups::<3>(from, tile, count),
                5 => self.groups::<5>(from, tile, count),
                _ => self.groups::<7>(from, tile, count),
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (from, tile, count);
    }

    /// [`Permutation::run`] for groups of `N` registers.
    ///
    /// # Safety
    /// As for [`Permutation::run`].
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    unsafe fn groups<const N: usize>(&self, from: *const u8, tile: *mut u8, count: usize) {
        use std::arch::x86_64::*;
        let size = self.size as isize;
        // SAFETY: a `Register` is as large and as aligned as a register.
        let order: [__m512i; N] =
            std::array::from_fn(|r| unsafe { _mm512_load_si512(self.order[r].0.as_ptr().cast()) });
        let loads: [[isize; 2]; N] = std::array::from_fn(|r| self.loads[r].map(|load| load * size));
        for group in 0..count {
            let from = from.wrapping_offset(group as isize * self.down * size);
            for r in 0..N {
                // SAFETY: the loads begin and end at elements of the operand, and what lies between them is
                // not used; the store lies inside the tile.
                unsafe {
                    let [a, b] = loads[r].map(|load| _mm512_loadu_si512(from.wrapping_offset(load).cast()));
                    let put = match size {
                        4 => _mm512_permutex2var_epi32(a, order[r], b),
                        _ => _mm512_permutex2var_epi64(a, order[r], b),
                    };
                    _mm512_storeu_si512(tile.add((group * N + r) * WIDTH).cast(), put);
                }
            }
        }
    }
}

/// Whether the processor has such registers, and no lower set is asked for.
fn is_available() -> bool {
    use crate::cpu::run::isa::{Isa, isa};
    cfg!(target_arch = "x86_64") && isa() == Isa::Avx512
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Array;
    use crate::array::dtype::DType;
    use crate::array::shape::Shape;
    use crate::cpu::run::testing::sample;
    use crate::error::Result;

    /// Compares both ways into a tile, for parts of an operand that begin and end anywhere.
    fn compare<T: Copy + PartialEq + std::fmt::Debug + Default>(x: &Array) -> bool {
        let nest = Nest::new(&x.shape(), &[x, x]);
        let Some(permutation) = Permutation::new(&nest, 0, size_of::<T>()) else { return false };
        let from = x.buffer().ptr().cast::<T>().wrapping_add(x.offset());
        for (at, n) in (0..40).flat_map(|at| [0, 1, 17, 40, 100, 256].map(|n| (at, n.min(x.numel() - at)))) {
            let mut tiles = [[T::default(); 256]; 2];
            // SAFETY: `x` has these elements, and the tiles have room for them.
            unsafe {
                copy_tile::<T, true>(&nest, 0, at, n, from, tiles[0].as_mut_ptr());
                permutation.copy_tile(&nest, 0, at, n, from, tiles[1].as_mut_ptr());
            }
            assert_eq!(tiles[0], tiles[1], "{x:?} {at} {n}");
        }
        true
    }

    #[test]
    fn permuted_rows_are_those_of_the_loop() -> Result<()> {
        let mut permuted = 0;
        for dtype in [DType::F32, DType::F64] {
            let x = sample(&[12_000], dtype)?;
            // Twenty rows hold a group of any length of row, and a part of 256 elements goes on after them.
            for inner in 1..=SHORT_ROW {
                let apart = (1..20).flat_map(|down| [1, 2, 3, -1, 500].map(|step| (down, step)));
                for (down, step) in apart.chain([(-7, 1), (-9, -2), (0, 1)]) {
                    let shape = Shape::new(&[3, 20, inner])?;
                    let view = x.with_layout(shape, &[1000, down, step], 4000)?;
                    permuted += u32::from(match dtype {
                        DType::F32 => compare::<f32>(&view),
                        _ => compare::<f64>(&view),
                    });
                }
            }
        }
        assert_eq!(permuted > 100, is_available(), "{permuted}");
        Ok(())
    }
}
