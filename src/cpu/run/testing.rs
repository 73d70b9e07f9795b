//! Shared by the kernels' tests: arrays in many layouts and a naive reader.

use super::threads::set_num_threads;
use crate::array::Array;
use crate::array::dtype::{DType, Element};
use crate::array::shape::Shape;
use crate::dispatch;
use crate::error::Result;
use crate::math::real::{Integer, Pointwise, PointwiseInt, Real};

/// Returns a shape, empty where invalid.
pub fn shape(dims: &[usize]) -> Shape {
    Shape::new(dims).unwrap_or_default()
}

/// Returns the dtypes that kernels compute in: complex numbers reach them as pairs of their parts.
pub fn parts() -> impl Iterator<Item = DType> {
    DType::ALL.into_iter().filter(|dtype| !dtype.is_complex())
}

/// Returns a contiguous array whose values have no short period, in -2..2 (0..4 for unsigned and bool).
pub fn sample(dims: &[usize], dtype: DType) -> Result<Array> {
    let mut out = Array::empty(shape(dims), dtype, Default::default())?;
    let low = if dtype.is_unsigned() || dtype == DType::Bool { 0.0 } else { -2.0 };
    dispatch!(dtype, T => for (i, y) in out.slice_mut::<T>()?.iter_mut().enumerate() {
        let u = ((i * 2654435761 + 12345) % 65521) as f64 / 65521.0;
        *y = T::from_f64(low + 4.0 * u);
    });
    Ok(out)
}

/// Returns arrays of one shape in different layouts: dense, transposed, with steps of -2, broadcast.
pub fn layouts(dims: &[usize], dtype: DType) -> Result<Vec<Array>> {
    let rank = dims.len();
    let mut all = vec![sample(dims, dtype)?];
    let backwards: Vec<usize> = dims.iter().rev().copied().collect();
    let reversal: Vec<u8> = (0..rank as u8).rev().collect();
    all.push(sample(&backwards, dtype)?.permute(&reversal)?);
    let double: Vec<usize> = dims.iter().map(|d| 2 * d + 1).collect();
    let starts: Vec<usize> = dims.iter().map(|d| 2 * d.max(&1) - 1).collect();
    all.push(sample(&double, dtype)?.slice_view(&starts, &vec![-2; rank], &shape(dims))?);
    if rank > 0 && dims.iter().all(|&d| d > 0) {
        for axis in 0..rank {
            let mut thin = dims.to_vec();
            thin[axis] = 1;
            all.push(sample(&thin, dtype)?.expand(&shape(dims))?);
        }
        all.push(sample(&[], dtype)?.expand(&shape(dims))?);
    }
    Ok(all)
}

/// Returns [`layouts`] of each of these dtypes and shapes.
pub fn all_layouts(dtypes: impl IntoIterator<Item = DType>, shapes: &[&[usize]]) -> Result<Vec<Array>> {
    let mut all = Vec::new();
    for dtype in dtypes {
        for dims in shapes {
            all.extend(layouts(dims, dtype)?);
        }
    }
    Ok(all)
}

/// Returns the elements in row-major order.
pub fn values(a: &Array) -> Vec<f64> {
    let s = a.shape();
    let strides = s.strides();
    let at = |flat: usize| -> isize {
        (0..s.rank()).map(|i| (flat / strides[i] as usize % s.at(i)) as isize * a.stride(i)).sum()
    };
    dispatch!(a.dtype(), T => {
        // SAFETY: every index is inside the view.
        (0..s.numel()).map(|i| unsafe { *a.ptr::<T>().offset(at(i)) }.to_f64()).collect()
    })
}

/// Rounds to `dtype` and back.
pub fn rounded(value: f64, dtype: DType) -> f64 {
    dispatch!(dtype, T => T::from_f64(value).to_f64())
}

/// Asserts that `f` gives the same bits with one thread and with three; returns its result.
pub fn same_for_any_threads(f: impl Fn() -> Result<Array>) -> Result<Array> {
    set_num_threads(1);
    let one = f()?;
    set_num_threads(3);
    let three = f()?;
    assert_eq!(bytes(&one)?, bytes(&three)?);
    Ok(one)
}

/// Returns the elements of a contiguous array, each as the bytes of an `f64`.
pub fn bytes(a: &Array) -> Result<Vec<u8>> {
    let bits = |x: f64| x.to_bits().to_le_bytes();
    dispatch!(a.dtype(), T => Ok(a.slice::<T>()?.iter().flat_map(|&x| bits(x.to_f64())).collect()))
}

/// The rule `factor * x + y`.
#[derive(Clone, Copy)]
pub struct Affine(pub f64);

impl Pointwise<2> for Affine {
    fn apply<R: Real>(&self, [x, y]: [R; 2]) -> R {
        x * self.0 + y
    }
}

impl PointwiseInt<2> for Affine {
    fn apply<I: Integer>(&self, [x, y]: [I; 2]) -> I {
        x.mul(I::lit(self.0 as i64)).add(y)
    }
}
