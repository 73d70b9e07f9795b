//! Layer normalisation over trailing axes, and its backward kernel.
//!
//! Mean and variance are two passes over a row in the first cache level: one pass would cancel.

use super::copy::cast;
use super::isa::Lane;
use super::norm::{fresh, start, wide, wide_as, with_float};
use super::reduce::sum;
use super::rows::{LANES, RowFloat, RowOp, each_row, get, sum_lanes, total};
use super::threads::{Shared, parallel_for};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::Result;
use crate::real::Left;
use crate::shape::{Axes, Shape};
use std::ops::Range;

struct LayerNorm<T> {
    x: Shared<T>,
    weight: Option<Shared<T>>,
    bias: Option<Shared<T>>,
    y: Shared<T>,
    mean: Shared<T>,
    rstd: Shared<T>,
    n: usize,
    eps: f64,
}

impl<T: RowFloat> RowOp<T> for LayerNorm<T> {
    #[inline(always)]
    fn rows<L: Lane<Float = T>>(&self, range: Range<usize>)
    where
        f64: Left<L>,
    {
        let n = self.n;
        let share = (n as f64).recip();
        for row in range {
            // SAFETY: all arrays have this row, and it belongs to this range alone.
            unsafe {
                let (x, y) = (self.x.get().add(row * n).cast_const(), self.y.get().add(row * n));
                let mean = total!(L, n, i => get::<L>(x, i)) * share;
                let spread = total!(L, n, i => (get::<L>(x, i) - mean) * (get::<L>(x, i) - mean));
                let rstd = L::lit(1.0) / (spread * share + self.eps).sqrt();
                *self.mean.get().add(row) = mean.get();
                *self.rstd.get().add(row) = rstd.get();
                for i in 0..n {
                    *y.add(i) = ((get::<L>(x, i) - mean) * rstd).get();
                }
                if let Some(weight) = self.weight {
                    let weight = weight.get().cast_const();
                    for i in 0..n {
                        *y.add(i) = (get::<L>(y, i) * get::<L>(weight, i)).get();
                    }
                }
                if let Some(bias) = self.bias {
                    let bias = bias.get().cast_const();
                    for i in 0..n {
                        *y.add(i) = (get::<L>(y, i) + get::<L>(bias, i)).get();
                    }
                }
            }
        }
    }
}

/// Sizes of a layer normalisation: the leading axes, their number of elements, and that of the trailing
/// ones.
fn leading(x: &Array, axes: usize) -> (Shape, usize, usize) {
    let front = x.rank().saturating_sub(axes);
    let (lead, tail) = (x.shape().part(0, front), x.shape().part(front, x.rank()));
    (lead, lead.numel(), tail.numel())
}

/// Normalises the last `axes` axes to mean 0 and variance 1, then scales and shifts: `(y, mean, rstd)`. The
/// statistics have the leading axes and are `f32` for halves.
pub fn layer_norm(
    x: &Array,
    weight: Option<&Array>,
    bias: Option<&Array>,
    axes: usize,
    eps: f64,
) -> Result<(Array, Array, Array)> {
    let wide = wide(x)?;
    let dtype = wide.dtype();
    let weight = weight.map(|w| wide_as(w, dtype)).transpose()?;
    let bias = bias.map(|b| wide_as(b, dtype)).transpose()?;
    let (lead, rows, n) = leading(x, axes);
    let (y, mean, rstd) = (fresh(x.shape(), dtype)?, fresh(lead, dtype)?, fresh(lead, dtype)?);
    with_float!(dtype, T => {
        let op = LayerNorm::<T> {
            x: start(&wide),
            weight: weight.as_ref().map(start),
            bias: bias.as_ref().map(start),
            y: start(&y),
            mean: start(&mean),
            rstd: start(&rstd),
            n,
            eps,
        };
        each_row::<T, _>(&op, rows, n)
    });
    Ok((cast(&y, x.dtype())?, mean, rstd))
}

struct LayerNormVjp<T> {
    g: Shared<T>,
    x: Shared<T>,
    weight: Option<Shared<T>>,
    mean: Shared<T>,
    rstd: Shared<T>,
    dx: Shared<T>,
    /// Sums of a piece of rows: for the weight, then for the bias.
    sums: Shared<T>,
    piece: usize,
    n: usize,
}

impl<T: RowFloat> RowOp<T> for LayerNormVjp<T> {
    #[inline(always)]
    fn rows<L: Lane<Float = T>>(&self, range: Range<usize>)
    where
        f64: Left<L>,
    {
        let n = self.n;
        let share = (n as f64).recip();
        for row in range {
            // SAFETY: all arrays have this row; it and the sums of its piece belong to this range alone.
            unsafe {
                let (g, x) = (self.g.get().add(row * n).cast_const(), self.x.get().add(row * n).cast_const());
                let (mean, rstd) = (get::<L>(self.mean.get(), row), get::<L>(self.rstd.get(), row));
                let dx = self.dx.get().add(row * n);
                // dx holds the cotangent of the normalised row until the last loop.
                match self.weight {
                    None => std::ptr::copy_nonoverlapping(g, dx, n),
                    Some(weight) => {
                        let weight = weight.get().cast_const();
                        let for_weight = self.sums.get().add(row / self.piece * 2 * n);
                        let for_bias = for_weight.add(n);
                        // One store per loop: more would take more alias checks than the compiler makes.
                        for i in 0..n {
                            *dx.add(i) = (get::<L>(g, i) * get::<L>(weight, i)).get();
                        }
                        for i in 0..n {
                            let normal = (get::<L>(x, i) - mean) * rstd;
                            *for_weight.add(i) = (get::<L>(for_weight, i) + get::<L>(g, i) * normal).get();
                        }
                        for i in 0..n {
                            *for_bias.add(i) = (get::<L>(for_bias, i) + get::<L>(g, i)).get();
                        }
                    }
                }
                let average = total!(L, n, i => get::<L>(dx, i)) * share;
                let slope = total!(L, n, i => get::<L>(dx, i) * (get::<L>(x, i) - mean)) * rstd * share;
                for i in 0..n {
                    let normal = (get::<L>(x, i) - mean) * rstd;
                    *dx.add(i) = ((get::<L>(dx, i) - average - normal * slope) * rstd).get();
                }
            }
        }
    }
}

/// The VJP of [`layer_norm`]: `(dx, dweight, dbias)`. Without a weight the last two are zeros.
pub fn layer_norm_vjp(
    g: &Array,
    x: &Array,
    weight: Option<&Array>,
    mean: &Array,
    rstd: &Array,
    axes: usize,
) -> Result<(Array, Array, Array)> {
    let wide_x = wide(x)?;
    let dtype = wide_x.dtype();
    let (wide_g, mean, rstd) =
        (wide_as(&g.expand(&x.shape())?, dtype)?, wide_as(mean, dtype)?, wide_as(rstd, dtype)?);
    let wide_weight = weight.map(|w| wide_as(w, dtype)).transpose()?;
    let (_, rows, n) = leading(x, axes);
    // Sums over rows: pieces by the shape alone, added up in their order.
    let piece = rows.div_ceil(64).max(16);
    let pieces = rows.div_ceil(piece).max(1);
    let dx = fresh(x.shape(), dtype)?;
    let sums = Array::full(Shape::new(&[pieces, 2, n])?, 0.0, dtype)?;
    with_float!(dtype, T => {
        let op = LayerNormVjp::<T> {
            g: start(&wide_g),
            x: start(&wide_x),
            weight: wide_weight.as_ref().map(start),
            mean: start(&mean),
            rstd: start(&rstd),
            dx: start(&dx),
            sums: start(&sums),
            piece,
            n,
        };
        parallel_for(pieces, 4096usize.div_ceil((piece * n).max(1)), |range| {
            T::launch(&op, range.start * piece..rows.min(range.end * piece));
        });
    });
    let sums = sum(&sums, Axes::one(0), false)?;
    let shape = x.shape().part(x.rank().saturating_sub(axes), x.rank());
    let result = weight.map_or(x.dtype(), |w| w.dtype());
    let half = |k: usize| cast(&sums.with_layout(shape, &shape.strides()[..shape.rank()], k * n)?, result);
    Ok((cast(&dx, x.dtype())?, half(0)?, half(1)?))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{layouts, same_for_any_threads, sample, shape, values};
    use super::*;

    #[test]
    fn normalises_by_definition() -> Result<()> {
        for (dtype, tolerance) in [(DType::F32, 5e-5), (DType::F64, 1e-12), (DType::BF16, 0.05)] {
            for x in layouts(&[3, 4, 40], dtype)? {
                let (w, b) = (sample(&[4, 40], dtype)?, sample(&[40, 4], dtype)?.permute(&[1, 0])?);
                for (weight, bias) in [(None, None), (Some(&w), None), (None, Some(&b)), (Some(&w), Some(&b))]
                {
                    let (y, mean, rstd) = layer_norm(&x, weight, bias, 2, 1e-3)?;
                    assert_eq!((mean.shape(), rstd.dtype()), (shape(&[3]), dtype.compute()));
                    let (v, w, b) = (values(&x), values(&w), values(&b));
                    for (r, row) in v.chunks(160).enumerate() {
                        let m: f64 = row.iter().sum::<f64>() / 160.0;
                        let s = row.iter().map(|v| (v - m) * (v - m)).sum::<f64>() / 160.0;
                        let s = 1.0 / (s + 1e-3).sqrt();
                        for i in 0..160 {
                            let scale = if weight.is_some() { w[i] } else { 1.0 };
                            let want = (row[i] - m) * s * scale + if bias.is_some() { b[i] } else { 0.0 };
                            let got = values(&y)[r * 160 + i];
                            let close = (got - want).abs() <= tolerance * want.abs().max(1.0);
                            assert!(close, "{x:?} {got} {want}");
                        }
                    }
                }
            }
        }
        Ok(())
    }

    #[test]
    fn vjp_agrees_with_differences() -> Result<()> {
        let (x, g, w) =
            (sample(&[5, 8], DType::F64)?, sample(&[8, 5], DType::F64)?, sample(&[8], DType::F64)?);
        let g = g.permute(&[1, 0])?;
        let loss = |x: &Array, w: &Array| -> Result<f64> {
            let y = values(&layer_norm(x, Some(w), None, 1, 1e-5)?.0);
            Ok(y.iter().zip(values(&g)).map(|(y, g)| y * g).sum())
        };
        let (_, mean, rstd) = layer_norm(&x, Some(&w), None, 1, 1e-5)?;
        let (dx, dw, db) = layer_norm_vjp(&g, &x, Some(&w), &mean, &rstd, 1)?;
        let nudged = |a: &Array, i: usize, by: f64| {
            let mut v = values(a);
            v[i] += by;
            Array::from_slice(&v, a.shape())
        };
        for i in 0..40 {
            let slope = (loss(&nudged(&x, i, 1e-5)?, &w)? - loss(&nudged(&x, i, -1e-5)?, &w)?) / 2e-5;
            assert!((slope - values(&dx)[i]).abs() < 1e-7);
        }
        for i in 0..8 {
            let slope = (loss(&x, &nudged(&w, i, 1e-5)?)? - loss(&x, &nudged(&w, i, -1e-5)?)?) / 2e-5;
            assert!((slope - values(&dw)[i]).abs() < 1e-7);
            let column: f64 = (0..5).map(|r| values(&g)[r * 8 + i]).sum();
            assert!((column - values(&db)[i]).abs() < 1e-12);
        }
        let (x, w) = (sample(&[3000, 50], DType::F32)?, sample(&[50], DType::F32)?);
        let (_, mean, rstd) = layer_norm(&x, None, None, 1, 1e-5)?;
        same_for_any_threads(|| Ok(layer_norm_vjp(&x, &x, Some(&w), &mean, &rstd, 1)?.1))?;
        same_for_any_threads(|| Ok(layer_norm_vjp(&x, &x, None, &mean, &rstd, 1)?.0))?;
        Ok(())
    }
}
