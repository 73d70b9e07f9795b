//! Reductions of elements that are computed as they are read, instead of read from memory.

use super::fold::{Fold, Max, Min, Sum};
use super::plan::{Fill, SweepPlan};
use super::sweep::{From, fold_all};
use super::without;
use crate::arguments::chain::{Folding, How};
use crate::cpu::prelude::*;

impl Folding {
    /// The loops over row-major elements of this shape.
    fn plan(&self, shape: &Shape) -> SweepPlan {
        let mut strides = shape.reduced(self.axes, true).strides();
        self.axes.iter().for_each(|i| strides[i] = 0);
        SweepPlan::of_dense(shape, &strides)
    }

    /// Whether it may read elements of this shape as they are computed: they are in long runs.
    pub fn suits(&self, shape: &Shape) -> bool {
        self.plan(shape).suits_fill()
    }

    /// Reduces float32 or float64 elements of this shape that are computed as they are read, with the bits of
    /// a reduction of a row-major array of them.
    pub fn fill(&self, fill: &dyn Fill, shape: &Shape, dtype: DType) -> Result<Array> {
        match (self.how, dtype) {
            (How::Sum, DType::F32) => self.run::<f32, Sum>(fill, shape),
            (How::Sum, DType::F64) => self.run::<f64, Sum>(fill, shape),
            (How::Max, DType::F32) => self.run::<f32, Max>(fill, shape),
            (How::Max, DType::F64) => self.run::<f64, Max>(fill, shape),
            (How::Min, DType::F32) => self.run::<f32, Min>(fill, shape),
            (How::Min, DType::F64) => self.run::<f64, Min>(fill, shape),
            (_, other) => Err(wrong_dtype("reduction", other)),
        }
    }

    fn run<T: Element, F: Fold<T>>(&self, fill: &dyn Fill, shape: &Shape) -> Result<Array> {
        let out = Array::empty(shape.reduced(self.axes, true), T::DTYPE, Device::Cpu)?;
        fold_all::<T, F>(&self.plan(shape), From::Fill(fill, 0), &out)?;
        without(out, shape, self.axes, self.keepdim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::shape::Axes;
    use crate::cpu::reduce::{max, min, sum};
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Copies elements of an array, and counts them.
    struct Copied<'a>(&'a Array, AtomicUsize);

    impl Fill for Copied<'_> {
        unsafe fn fill(&self, from: usize, n: usize, to: *mut u8) {
            let size = self.0.dtype().size();
            self.1.fetch_add(n, Ordering::Relaxed);
            // SAFETY: the elements exist, and `to` has room for them.
            unsafe {
                let from = self.0.buffer().ptr().add((self.0.offset() + from) * size);
                std::ptr::copy_nonoverlapping(from, to, n * size);
            }
        }
    }

    #[test]
    fn what_is_computed_has_the_bits_of_what_is_read() -> Result<()> {
        let shapes = [
            &[5000][..],
            &[200_001],
            &[40, 3],
            &[3, 5, 7],
            &[70, 1100],
            &[2100, 30],
            &[2, 600, 3],
            &[3, 2, 5000],
            &[4, 6, 5, 40],
        ];
        for dims in shapes {
            for dtype in [DType::F32, DType::F64] {
                let x = sample(dims, dtype)?;
                for bits in 1..1usize << dims.len() {
                    let axes: Axes = (0..dims.len()).filter(|i| bits >> i & 1 == 1).collect();
                    for how in [How::Sum, How::Max, How::Min] {
                        let folding = Folding { how, axes, keepdim: bits % 2 == 0 };
                        let copied = Copied(&x, AtomicUsize::new(0));
                        let found = folding.fill(&copied, &x.shape(), dtype)?;
                        let expected = match how {
                            How::Sum => sum(&x, axes, folding.keepdim)?,
                            How::Max => max(&x, axes, folding.keepdim)?,
                            How::Min => min(&x, axes, folding.keepdim)?,
                        };
                        assert_eq!(found.shape(), expected.shape());
                        assert_eq!(values(&found), values(&expected), "{dims:?} {dtype} {axes:?} {how:?}");
                        // Each element once.
                        assert_eq!(copied.1.into_inner(), x.numel(), "{dims:?} {axes:?}");
                    }
                }
            }
        }
        Ok(())
    }
}
