//! Loop nests: a shape and the strides of several operands, with axes merged where all operands allow it.

use crate::array::Array;
use crate::array::shape::{MAX_RANK, Shape};
use smallvec::SmallVec;

/// Maximum number of operands of a nest.
pub const MAX_OPERANDS: usize = 8;

/// Axis lengths and, for each operand, strides in elements.
#[derive(Clone, Copy, PartialEq)]
pub struct Nest {
    /// Number of axes left after merging, at least 1.
    pub rank: usize,
    /// Lengths of the axes.
    pub dims: [usize; MAX_RANK],
    /// `strides[operand][axis]`.
    pub strides: [[isize; MAX_RANK]; MAX_OPERANDS],
}

impl Nest {
    /// Returns the nest over `shape` of operands that broadcast to it.
    pub fn new(shape: &Shape, operands: &[&Array]) -> Nest {
        Nest::over(shape, operands, 0..shape.rank())
    }

    /// [`Nest::new`] over some of the axes.
    pub fn over(shape: &Shape, operands: &[&Array], axes: impl Iterator<Item = usize>) -> Nest {
        let mut nest = Nest::empty();
        for axis in axes.filter(|&axis| shape.at(axis) != 1) {
            nest.push(shape.at(axis), &steps(shape, operands, axis)[..operands.len()]);
        }
        nest.rank = nest.rank.max(1);
        nest
    }

    /// [`Nest::new`] with the axes in the memory order of the first operand, for loops whose order is free.
    pub fn in_memory_order(shape: &Shape, operands: &[&Array]) -> Nest {
        let mut axes: SmallVec<[(usize, [isize; MAX_OPERANDS]); MAX_RANK]> = SmallVec::new();
        for (axis, d) in shape.iter().enumerate().filter(|&(_, d)| d != 1) {
            axes.push((d, steps(shape, operands, axis)));
        }
        axes.sort_by_key(|(_, step)| std::cmp::Reverse(step[0].unsigned_abs()));
        let mut nest = Nest::empty();
        for (d, step) in &axes {
            nest.push(*d, &step[..operands.len()]);
        }
        nest.rank = nest.rank.max(1);
        nest
    }

    /// Returns a nest without axes. At least one [`Nest::push`] is needed before use.
    pub fn empty() -> Nest {
        Nest { rank: 0, dims: [1; MAX_RANK], strides: [[0; MAX_RANK]; MAX_OPERANDS] }
    }

    /// Appends an inner axis. It is merged into the last one if every operand's strides permit.
    pub fn push(&mut self, length: usize, step: &[isize]) {
        if self.rank > 0 {
            let last = self.rank - 1;
            if step.iter().zip(&self.strides).all(|(&s, old)| old[last] == s * length as isize) {
                self.dims[last] *= length;
                step.iter().zip(&mut self.strides).for_each(|(&s, old)| old[last] = s);
                return;
            }
        }
        self.dims[self.rank] = length;
        step.iter().zip(&mut self.strides).for_each(|(&s, old)| old[self.rank] = s);
        self.rank += 1;
    }

    /// Puts an axis before all others; the rank is below the largest.
    pub fn prepend(&mut self, length: usize, step: &[isize]) {
        self.dims.copy_within(..self.rank, 1);
        self.dims[0] = length;
        for (strides, &step) in self.strides.iter_mut().zip(step) {
            strides.copy_within(..self.rank, 1);
            strides[0] = step;
        }
        self.rank += 1;
    }

    /// Exchanges the two innermost axes, for loops whose order is free; the rank is at least 2.
    pub fn swap_inner(&mut self) {
        let last = self.rank - 1;
        self.dims.swap(last - 1, last);
        self.strides.iter_mut().for_each(|strides| strides.swap(last - 1, last));
    }

    /// Returns the length of the innermost axis.
    #[inline]
    pub fn inner(&self) -> usize {
        self.dims[self.rank - 1]
    }

    /// Returns the number of elements.
    pub fn numel(&self) -> usize {
        self.dims[..self.rank].iter().product()
    }

    /// Whether the operands `0..count` are contiguous in row-major order.
    pub fn are_flat(&self, count: usize) -> bool {
        (0..count).all(|k| self.is_flat(k))
    }

    /// Returns the coordinates of the element with row-major index `flat`.
    #[inline]
    pub fn coordinates(&self, mut flat: usize) -> [usize; MAX_RANK] {
        let mut at = [0; MAX_RANK];
        for i in (1..self.rank).rev() {
            at[i] = flat % self.dims[i];
            flat /= self.dims[i];
        }
        at[0] = flat;
        at
    }

    /// Returns the offset of the element at `at` in operand `k`, relative to its first element.
    #[inline]
    pub fn position(&self, k: usize, at: &[usize; MAX_RANK]) -> isize {
        (0..self.rank).map(|i| at[i] as isize * self.strides[k][i]).sum()
    }

    /// Whether operand `k` is contiguous in row-major order.
    pub fn is_flat(&self, k: usize) -> bool {
        let mut expected = 1isize;
        (0..self.rank).rev().all(|i| {
            let fits = self.dims[i] == 1 || self.strides[k][i] == expected;
            expected *= self.dims[i] as isize;
            fits
        })
    }

    /// Whether operand `k` is one element broadcast over the nest.
    pub fn is_single(&self, k: usize) -> bool {
        (0..self.rank).all(|i| self.strides[k][i] == 0)
    }

    /// Walks the row-major elements `start..start + count`, run by run along the innermost axis, and gives
    /// the positions of the operands `which`.
    #[inline(always)]
    pub fn walk<const M: usize>(&self, which: [usize; M], start: usize, count: usize) -> NestWalk<'_, M> {
        let at = self.coordinates(start);
        NestWalk { nest: self, which, at, position: which.map(|k| self.position(k, &at)), left: count }
    }

    /// Calls `f(positions, elements already visited, run length)` for each run of [`Nest::walk`]. For loops
    /// that need only baseline instructions: the closure is compiled for those.
    #[inline(always)]
    pub fn runs<const M: usize>(
        &self, which: [usize; M], start: usize, count: usize, mut f: impl FnMut(&[isize; M], usize, usize),
    ) {
        let mut walk = self.walk(which, start, count);
        while let Some((position, run)) = walk.step() {
            f(&position, count - walk.left - run, run);
        }
    }
}

/// A traversal of the elements of a nest, run by run along its innermost axis.
pub struct NestWalk<'a, const M: usize> {
    nest: &'a Nest,
    which: [usize; M],
    at: [usize; MAX_RANK],
    position: [isize; M],
    left: usize,
}

impl<const M: usize> NestWalk<'_, M> {
    /// Returns the positions of the operands at the start of the next run, and its length.
    #[inline(always)]
    pub fn step(&mut self) -> Option<([isize; M], usize)> {
        if self.left == 0 {
            return None;
        }
        let (last, before) = (self.nest.rank - 1, self.position);
        let run = (self.nest.dims[last] - self.at[last]).min(self.left);
        self.left -= run;
        if self.left > 0 {
            self.advance(last, -(self.at[last] as isize));
            self.at[last] = 0;
            for axis in (0..last).rev() {
                self.at[axis] += 1;
                self.advance(axis, 1);
                if self.at[axis] < self.nest.dims[axis] || axis == 0 {
                    break;
                }
                self.advance(axis, -(self.at[axis] as isize));
                self.at[axis] = 0;
            }
        }
        Some((before, run))
    }

    #[inline(always)]
    fn advance(&mut self, axis: usize, by: isize) {
        let mut m = 0;
        while m < M {
            self.position[m] += by * self.nest.strides[self.which[m]][axis];
            m += 1;
        }
    }
}

/// Returns the strides of the operands along `axis` of the shape that they broadcast to.
fn steps(shape: &Shape, operands: &[&Array], axis: usize) -> [isize; MAX_OPERANDS] {
    let mut step = [0isize; MAX_OPERANDS];
    for (slot, array) in step.iter_mut().zip(operands) {
        *slot = match (axis + array.rank()).checked_sub(shape.rank()) {
            Some(i) if array.dim(i) != 1 => array.stride(i),
            _ => 0,
        };
    }
    step
}
