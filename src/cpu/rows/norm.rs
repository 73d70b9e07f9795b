//! Softmax and its backward kernel, and helpers shared with layer normalisation and cross-entropy.
//!
//! A row stays in the L1 cache between its passes. Halves are widened before and rounded after. Read next:
//! `src/cpu/rows/mod.rs`, the loops over rows.

pub use super::cross_entropy::{cross_entropy, cross_entropy_vjp};
pub use super::layer_norm::{layer_norm, layer_norm_vjp};
use crate::cpu::prelude::*;
use crate::cpu::rows::{Access, RowFloat, RowOp, across, each_row, sum_of, total};
use crate::math::wide::Wide;

/// Returns `x` in row-major order, in the dtype that kernels compute in.
pub(crate) fn wide(x: &Array) -> Result<Array> {
    if x.dtype().is_float() { computed(x) } else { Err(wrong_dtype("row", x.dtype())) }
}

/// Returns an uninitialised array.
pub(crate) fn fresh(shape: Shape, dtype: DType) -> Result<Array> {
    Array::empty(shape, dtype, Device::Cpu)
}

/// Runs an expression with `$t` bound to `f32` or `f64`.
macro_rules! with_float {
    ($dtype:expr, $t:ident => $body:expr) => {
        $crate::dispatch!(@ $dtype, $t, $body; $crate::array::dtype::DType::F64 => f64, _ => f32)
    };
}

pub(crate) use with_float;

/// Returns a pointer to the first element, for row kernels, which guarantee that their indices are valid.
pub(crate) fn start<T: Element>(x: &Array) -> Shared<T> {
    Shared::new(x.ptr::<T>())
}

/// Returns the length of the last axis and the number of rows.
fn last_axis(x: &Array) -> (usize, usize) {
    let n = if x.rank() == 0 { 1 } else { x.dim(x.rank() - 1) };
    (n, x.numel().checked_div(n).unwrap_or(0))
}

struct Softmax<T> {
    x: Shared<T>,
    y: Shared<T>,
    n: usize,
    log: bool,
}

impl<T: RowFloat> RowOp<T> for Softmax<T> {
    #[inline(always)]
    fn row<L: Wide<Number = T>>(&self, row: usize) {
        let n = self.n;
        // SAFETY: both arrays have this row, and it belongs to this call alone.
        unsafe {
            let (x, y) = (self.x.get().add(row * n).cast_const(), self.y.get().add(row * n));
            let top: L = L::lit(T::largest(std::slice::from_raw_parts(x, n)).to_f64());
            let mut sum = L::lit(0.0);
            if self.log {
                across!(L, n, i, v => sum = sum + v.keep((v.load::<L>(x.add(i)) - top).exp()));
                let shift = L::lit(sum_of(sum)).log();
                across!(L, n, i, v => v.store(v.load::<L>(x.add(i)) - top - shift, y.add(i)));
            } else {
                across!(L, n, i, v => {
                    let power = v.keep((v.load::<L>(x.add(i)) - top).exp());
                    v.store(power, y.add(i));
                    sum = sum + power;
                });
                let scale = L::lit(sum_of(sum).recip());
                across!(L, n, i, v => v.store(v.load::<L>(y.add(i)) * scale, y.add(i)));
            }
        }
    }
}

/// Returns the softmax along the last axis, or its logarithm.
pub fn softmax(x: &Array, log: bool) -> Result<Array> {
    let wide = wide(x)?;
    let y = fresh(x.shape(), wide.dtype())?;
    let (n, rows) = last_axis(&wide);
    with_float!(wide.dtype(), T => {
        each_row::<T, _>(&Softmax::<T> { x: start(&wide), y: start(&y), n, log }, rows, n)
    });
    cast(&y, x.dtype())
}

struct SoftmaxVjp<T> {
    g: Shared<T>,
    y: Shared<T>,
    dx: Shared<T>,
    n: usize,
    log: bool,
}

impl<T: RowFloat> RowOp<T> for SoftmaxVjp<T> {
    #[inline(always)]
    fn row<L: Wide<Number = T>>(&self, row: usize) {
        let n = self.n;
        // SAFETY: all arrays have this row, and it belongs to this call alone.
        unsafe {
            let (g, y) = (self.g.get().add(row * n).cast_const(), self.y.get().add(row * n).cast_const());
            let dx = self.dx.get().add(row * n);
            if self.log {
                let sum = L::lit(total!(L, n, i, v => v.load::<L>(g.add(i))));
                across!(L, n, i, v => {
                    let (g, y) = (v.load::<L>(g.add(i)), v.load::<L>(y.add(i)));
                    v.store(g - y.exp() * sum, dx.add(i));
                });
            } else {
                let sum = L::lit(total!(L, n, i, v => v.load::<L>(g.add(i)) * v.load::<L>(y.add(i))));
                across!(L, n, i, v => {
                    let (g, y) = (v.load::<L>(g.add(i)), v.load::<L>(y.add(i)));
                    v.store(y * (g - sum), dx.add(i));
                });
            }
        }
    }
}

/// The VJP of [`softmax`] from its output: `y * (g - sum(g * y))`; of its logarithm, `g - exp(y) * sum(g)`.
pub fn softmax_vjp(g: &Array, y: &Array, log: bool) -> Result<Array> {
    let (wide_y, dtype) = (wide(y)?, y.dtype().compute());
    let wide_g = cast(&g.expand(&y.shape())?, dtype)?;
    let dx = fresh(y.shape(), dtype)?;
    let (n, rows) = last_axis(&wide_y);
    with_float!(dtype, T => {
        let op = SoftmaxVjp::<T> { g: start(&wide_g), y: start(&wide_y), dx: start(&dx), n, log };
        each_row::<T, _>(&op, rows, n)
    });
    cast(&dx, y.dtype())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn softmax_and_its_vjp_by_definition() -> Result<()> {
        for (dtype, tolerance) in
            [(DType::F32, 1e-6), (DType::F64, 1e-14), (DType::F16, 2e-3), (DType::BF16, 2e-2)]
        {
            for dims in [&[7][..], &[3, 5], &[2, 4, 70], &[0, 3], &[3, 0]] {
                for x in layouts(dims, dtype)? {
                    let n = x.dim(x.rank() - 1).max(1);
                    let g = sample(dims, dtype)?;
                    for log in [false, true] {
                        let y = softmax(&x, log)?;
                        let dx = values(&softmax_vjp(&g, &y, log)?);
                        let (v, got, g) = (values(&x), values(&y), values(&g));
                        for (r, row) in v.chunks(n).enumerate() {
                            let sum: f64 = row.iter().map(|v| v.exp()).sum();
                            let (g, dx) = (&g[r * n..][..n], &dx[r * n..][..n]);
                            let p: Vec<f64> = row.iter().map(|v| v.exp() / sum).collect();
                            let dot: f64 = g.iter().zip(&p).map(|(g, p)| if log { *g } else { g * p }).sum();
                            for i in 0..n {
                                let want = if log { p[i].ln() } else { p[i] };
                                assert!((got[r * n + i] - want).abs() <= tolerance * want.abs().max(1.0));
                                let want = if log { g[i] - p[i] * dot } else { p[i] * (g[i] - dot) };
                                assert!((dx[i] - want).abs() <= tolerance * 20.0, "{} {want}", dx[i]);
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }

    #[test]
    fn extreme_rows_and_threads() -> Result<()> {
        let x = Array::from_slice(&[1e4f32, -1e4, f32::NEG_INFINITY], Shape::new(&[1, 3])?)?;
        assert_eq!(values(&softmax(&x, false)?), [1.0, 0.0, 0.0]);
        assert_eq!(values(&softmax(&x, true)?)[..2], [0.0, -2e4]);
        let x = sample(&[700, 333], DType::F32)?;
        same_for_any_threads(|| softmax(&x, false))?;
        Ok(())
    }
}
