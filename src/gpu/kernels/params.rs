//! The uniform words of a kernel: shapes and strides first, as arrays of eight, then scalars.

use crate::array::Array;
use crate::array::shape::{MAX_RANK, Shape};
use smallvec::SmallVec;

/// Parameter words in the order of a shader's `Params`.
#[derive(Clone, Default)]
pub struct Params(SmallVec<[u32; 64]>);

impl Params {
    /// Adds eight words: `values`, then zeros.
    pub fn eight(&mut self, values: impl IntoIterator<Item = i64>) -> &mut Params {
        let end = self.0.len() + MAX_RANK;
        self.0.extend(values.into_iter().take(MAX_RANK).map(|v| v as u32));
        self.0.resize(end, 0);
        self
    }

    /// Adds a scalar.
    pub fn word(&mut self, value: usize) -> &mut Params {
        self.0.push(value as u32);
        self
    }

    /// Adds a float scalar.
    pub fn float(&mut self, value: f64) -> &mut Params {
        self.0.push((value as f32).to_bits());
        self
    }

    /// The words.
    pub fn words(&self) -> &[u32] {
        &self.0
    }
}

/// A shape and the strides of several arrays over it; adjacent axes are merged where all arrays allow it.
#[derive(Clone)]
pub struct Walk {
    /// Axis lengths.
    pub dims: SmallVec<[i64; MAX_RANK]>,
    /// Strides of each array.
    pub strides: SmallVec<[SmallVec<[i64; MAX_RANK]>; 5]>,
}

impl Walk {
    /// The walk over `axes` of `shape`, to which each of `arrays` broadcasts.
    pub fn over(shape: &Shape, arrays: &[&Array], axes: impl Iterator<Item = usize>) -> Walk {
        let mut out =
            Walk { dims: SmallVec::new(), strides: arrays.iter().map(|_| SmallVec::new()).collect() };
        for axis in axes.filter(|&a| shape.at(a) != 1) {
            let dim = shape.at(axis) as i64;
            let next: SmallVec<[i64; 5]> = arrays.iter().map(|x| stride_over(x, shape, axis)).collect();
            let merges = match out.dims.len().checked_sub(1) {
                Some(last) => out.strides.iter().zip(&next).all(|(s, n)| s[last] == n * dim),
                None => false,
            };
            if merges {
                out.pop_into(dim);
            } else {
                out.dims.push(dim);
            }
            for (strides, stride) in out.strides.iter_mut().zip(next) {
                strides.push(stride);
            }
        }
        out
    }

    /// Multiplies the length of the last axis by `dim` and drops its strides; the caller pushes the new ones.
    fn pop_into(&mut self, dim: i64) {
        if let Some(last) = self.dims.last_mut() {
            *last *= dim;
        }
        for strides in &mut self.strides {
            strides.pop();
        }
    }

    /// The walk over all axes.
    pub fn new(shape: &Shape, arrays: &[&Array]) -> Walk {
        Walk::over(shape, arrays, 0..shape.rank())
    }

    /// The number of axes after merging.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Whether every array is dense in the order of the walk.
    pub fn is_dense(&self) -> bool {
        self.rank() == 0 || (self.rank() == 1 && self.strides.iter().all(|s| s[0] == 1))
    }

    /// Adds the shape and the strides of every array to the parameters.
    pub fn write(&self, params: &mut Params) {
        params.eight(self.dims.iter().copied());
        for strides in &self.strides {
            params.eight(strides.iter().copied());
        }
    }
}

/// The stride of `x` along `axis` of a shape to which it broadcasts.
fn stride_over(x: &Array, shape: &Shape, axis: usize) -> i64 {
    match (axis + x.rank()).checked_sub(shape.rank()) {
        Some(own) if x.dim(own) == shape.at(axis) => x.stride(own) as i64,
        _ => 0,
    }
}

/// Hashes the dtypes and flags that distinguish kernels of one name.
pub fn variant(parts: &[u64]) -> u64 {
    parts
        .iter()
        .fold(0x9e37_79b9_7f4a_7c15, |h: u64, &p| (h ^ p).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29))
}
