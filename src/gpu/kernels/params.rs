//! The uniform words of a kernel: shapes and strides first, as arrays of eight, then scalars.

use crate::array::Array;
use crate::shape::{MAX_RANK, Shape};
use smallvec::SmallVec;

/// Parameter words in the order of a shader's `Params`.
#[derive(Default)]
pub struct Params(SmallVec<[u32; 64]>);

impl Params {
    /// Eight words: `values`, then zeros.
    pub fn eight(&mut self, values: impl IntoIterator<Item = i64>) -> &mut Params {
        let end = self.0.len() + MAX_RANK;
        self.0.extend(values.into_iter().take(MAX_RANK).map(|v| v as u32));
        self.0.resize(end, 0);
        self
    }

    /// A scalar.
    pub fn word(&mut self, value: usize) -> &mut Params {
        self.0.push(value as u32);
        self
    }

    /// A float scalar.
    pub fn float(&mut self, value: f64) -> &mut Params {
        self.0.push((value as f32).to_bits());
        self
    }

    /// The words.
    pub fn words(&self) -> &[u32] {
        &self.0
    }
}

/// A shape and the strides of several arrays over it, with neighbouring axes merged where all arrays allow it.
pub struct Walk<const N: usize> {
    /// Axis lengths.
    pub dims: SmallVec<[i64; MAX_RANK]>,
    /// Strides of each array.
    pub strides: [SmallVec<[i64; MAX_RANK]>; N],
}

impl<const N: usize> Walk<N> {
    /// The walk of `arrays`, all of which are expanded to `shape`, over `axes` of that shape.
    pub fn over(shape: &Shape, arrays: [&Array; N], axes: impl Iterator<Item = usize>) -> Walk<N> {
        let mut out = Walk { dims: SmallVec::new(), strides: std::array::from_fn(|_| SmallVec::new()) };
        for axis in axes.filter(|&a| shape.at(a) != 1) {
            let dim = shape.at(axis) as i64;
            let next: [i64; N] = std::array::from_fn(|k| arrays[k].stride(axis) as i64);
            let last = out.dims.len().wrapping_sub(1);
            let merges = !out.dims.is_empty() && (0..N).all(|k| out.strides[k][last] == next[k] * dim);
            if merges {
                out.dims[last] *= dim;
            } else {
                out.dims.push(dim);
            }
            for (strides, stride) in out.strides.iter_mut().zip(next) {
                if merges {
                    strides[last] = stride;
                } else {
                    strides.push(stride);
                }
            }
        }
        out
    }

    /// The walk over all axes.
    pub fn new(shape: &Shape, arrays: [&Array; N]) -> Walk<N> {
        Walk::over(shape, arrays, 0..shape.rank())
    }

    /// Number of axes left.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Whether every array is dense in the order of the walk.
    pub fn is_dense(&self) -> bool {
        self.rank() == 0 || (self.rank() == 1 && self.strides.iter().all(|s| s[0] == 1))
    }
}

/// Distinguishes kernels of one name by the dtypes and flags that their text depends on.
pub fn variant(parts: &[u64]) -> u64 {
    parts.iter().fold(0x9e37_79b9_7f4a_7c15, |h: u64, &p| (h ^ p).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29))
}
