//! The uniform words of a kernel: shapes and strides first, as arrays of eight, then scalars.

use crate::array::nest::Nest;
use crate::array::shape::MAX_RANK;
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

    /// Adds the lengths of the axes of a nest and the strides of its first `operands`.
    pub fn nest(&mut self, nest: &Nest, operands: usize) -> &mut Params {
        self.eight(nest.dims[..nest.rank].iter().map(|&d| d as i64));
        for strides in &nest.strides[..operands] {
            self.eight(strides[..nest.rank].iter().map(|&s| s as i64));
        }
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
