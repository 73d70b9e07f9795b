//! Splits loops that are too long for one launch: Mesa's software driver silently ends the loops of an
//! invocation after 65,535 rounds in total. Sums over a long axis are launched in parts. Loops that cannot be
//! split raise on that driver.

use super::prelude::*;
use super::reduce::Fold;
use crate::gpu::runtime::device::is_software;

/// The most rounds over an axis in one launch; loops inside of it may add as many again.
pub const ROUNDS: usize = 1 << 15;
/// The rounds after which a software adapter ends the loops of an invocation.
const LONGEST: usize = 65_535;

/// The start and the length of a part of an axis.
pub type Part = (usize, usize);

/// Splits an axis of `length` into parts of `each` elements that are launched one after another.
pub fn parts(length: usize, each: usize) -> impl Iterator<Item = Part> {
    (0..length).step_by(each).map(move |start| (start, each.min(length - start)))
}

/// The elements `start..start + length` of `x` along `axis`, a view.
pub fn part_of(x: &Array, axis: usize, (start, length): Part) -> Result<Array> {
    let offset = x.offset().wrapping_add_signed(x.stride(axis) * start as isize);
    x.with_layout(x.shape().with(axis, length), &x.strides(), offset)
}

/// Sums `f` over the parts of an axis of `length`, of `each` elements; rounds to `dtype` at the end.
pub fn sum_of_parts(
    length: usize, each: usize, dtype: DType, f: impl Fn(Part) -> Result<Array>,
) -> Result<Array> {
    let mut all = parts(length, each).map(f);
    let first = all.next().unwrap_or_else(|| Err(Error::shape("internal: a sum of no parts")))?;
    cast(&all.try_fold(first, |total, next| Fold::Sum.combine(&total, &next?))?, dtype)
}

/// Raises if a software adapter would end the loops of an invocation, which take about `rounds` rounds.
pub fn check_rounds(index: u8, op: &str, rounds: usize) -> Result<()> {
    if rounds <= LONGEST || !is_software(index)? {
        return Ok(());
    }
    Err(Error::device(format!(
        "{op}: gpu:{index} is a software adapter, which runs loops of at most {LONGEST} rounds, and an \
         element takes {rounds} of them; compute it with device='cpu'"
    )))
}
