//! Splits loops that are too long for one launch: Mesa's software driver silently ends the loops of an
//! invocation after 65,535 rounds in total. Sums over a long axis are launched in parts. Loops that cannot be
//! split raise on that driver.

use super::copy::cast;
use super::map::{pointwise, pointwise_int};
use crate::array::Array;
use crate::array::dtype::DType;
use crate::error::{Error, Result};
use crate::gpu::runtime::device::is_software;
use crate::math::real::{Integer, Pointwise, PointwiseInt, Real};

/// The most rounds over an axis in one launch; loops inside of it may add as many again.
pub const ROUNDS: usize = 1 << 15;
/// The rounds after which a software adapter ends the loops of an invocation.
const LONGEST: usize = 65_535;

/// The start and the length of a part of an axis.
pub type Part = (usize, usize);

/// Splits an axis of `length` into parts that are launched one after another.
pub fn parts(length: usize) -> impl Iterator<Item = Part> {
    (0..length).step_by(ROUNDS).map(move |start| (start, ROUNDS.min(length - start)))
}

/// The elements `start..start + length` of `x` along `axis`, a view.
pub fn part_of(x: &Array, axis: usize, (start, length): Part) -> Result<Array> {
    let offset = x.offset().wrapping_add_signed(x.stride(axis) * start as isize);
    x.with_layout(x.shape().with(axis, length), &x.strides(), offset)
}

/// Sums `f` over the parts of an axis of `length`; rounds to `dtype` at the end.
pub fn sum_of_parts(length: usize, dtype: DType, f: impl Fn(Part) -> Result<Array>) -> Result<Array> {
    let mut all = parts(length).map(f);
    let first = all.next().unwrap_or_else(|| Err(Error::shape("internal: a sum of no parts")))?;
    cast(&all.try_fold(first, |total, next| add(&total, &next?))?, dtype)
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

fn add(x: &Array, y: &Array) -> Result<Array> {
    if x.dtype().is_float() {
        pointwise("part_sum", [0; 2], [x, y], Plus)
    } else {
        pointwise_int([x, y], Plus)
    }
}

#[derive(Clone, Copy)]
struct Plus;

impl Pointwise<2> for Plus {
    fn apply<R: Real>(&self, [x, y]: [R; 2]) -> R {
        x + y
    }
}

impl PointwiseInt<2> for Plus {
    fn apply<I: Integer>(&self, [x, y]: [I; 2]) -> I {
        x.add(y)
    }
}
