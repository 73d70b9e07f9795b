//! Layer normalisation over trailing axes, and its backward kernel.
//!
//! Mean and variance take two passes over a row in the L1 cache: one pass would suffer from cancellation.

use super::norm::{fresh, start, wide, with_float};
use crate::array::shape::Axes;
use crate::cpu::prelude::*;
use crate::cpu::reduce::sum;
use crate::cpu::rows::{Access, RowFloat, RowOp, across, all_of, each_row, launch, sum_of, total};
use crate::math::wide::Wide;

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
    fn row<L: Wide<Number = T>>(&self, row: usize) {
        let n = self.n;
        // SAFETY: all arrays have this row, and it belongs to this call alone.
        unsafe {
            let (x, y) = (self.x.get().add(row * n).cast_const(), self.y.get().add(row * n));
            let mean = T::from_f64(share(total!(L, n, i, v => v.load::<L>(x.add(i))), n));
            let centre = L::lit(mean.to_f64());
            let spread = total!(L, n, i, v => {
                let distance = v.load::<L>(x.add(i)) - centre;
                distance * distance
            });
            let rstd = T::from_f64(inverse_deviation(share(spread, n), self.eps));
            *self.mean.get().add(row) = mean;
            *self.rstd.get().add(row) = rstd;
            let scale = L::lit(rstd.to_f64());
            across!(L, n, i, v => {
                let mut normal = (v.load::<L>(x.add(i)) - centre) * scale;
                if let Some(weight) = self.weight {
                    normal = normal * v.load::<L>(weight.get().add(i));
                }
                if let Some(bias) = self.bias {
                    normal = normal + v.load::<L>(bias.get().add(i));
                }
                v.store(normal, y.add(i));
            });
        }
    }
}

/// Returns the mean of `n` numbers with this sum. A function of its own: see `Implied`.
#[inline(always)]
fn share(total: f64, n: usize) -> f64 {
    total / n as f64
}

/// `1 / sqrt(variance + eps)`.
#[inline(always)]
fn inverse_deviation(variance: f64, eps: f64) -> f64 {
    (variance + eps).sqrt().recip()
}

/// Returns the leading axes, their number of elements, and that of the trailing axes.
fn leading(x: &Array, axes: usize) -> (Shape, usize, usize) {
    let front = x.rank().saturating_sub(axes);
    let (lead, tail) = (x.shape().part(0, front), x.shape().part(front, x.rank()));
    (lead, lead.numel(), tail.numel())
}

/// Normalises the last `axes` axes to mean 0 and variance 1, then scales and shifts: `(y, mean, rstd)`. The
/// statistics have the shape of the leading axes and are `f32` for halves.
pub fn layer_norm(
    x: &Array, weight: Option<&Array>, bias: Option<&Array>, axes: usize, eps: f64,
) -> Result<(Array, Array, Array)> {
    let wide = wide(x)?;
    let dtype = wide.dtype();
    let weight = weight.map(|w| cast(w, dtype)).transpose()?;
    let bias = bias.map(|b| cast(b, dtype)).transpose()?;
    let (lead, rows, n) = leading(x, axes);
    let (y, mean, rstd) = (fresh(x.shape(), dtype)?, fresh(lead, dtype)?, fresh(lead, dtype)?);
    with_float!(dtype, T => {
        let (weight, bias) = (weight.as_ref().map(start), bias.as_ref().map(start));
        let (x, y, mean, rstd) = (start(&wide), start(&y), start(&mean), start(&rstd));
        let op = LayerNorm::<T> { x, weight, bias, y, mean, rstd, n, eps };
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
    /// Sums over a piece of rows: for the weight, then for the bias.
    sums: Shared<T>,
    piece: usize,
    n: usize,
}

impl<T: RowFloat> RowOp<T> for LayerNormVjp<T> {
    #[inline(always)]
    fn row<L: Wide<Number = T>>(&self, row: usize) {
        let n = self.n;
        // SAFETY: all arrays have this row; only this call uses it, and its thread the sums of its piece.
        unsafe {
            let (g, x) = (self.g.get().add(row * n).cast_const(), self.x.get().add(row * n).cast_const());
            let mean: L = all_of(self.mean.get(), row);
            let rstd: L = all_of(self.rstd.get(), row);
            let dx = self.dx.get().add(row * n);
            let weight = self.weight.map(|weight| weight.get().cast_const());
            if self.weight.is_some() {
                let for_weight = self.sums.get().add(row / self.piece * 2 * n);
                let for_bias = for_weight.add(n);
                across!(L, n, i, v => {
                    let g = v.load::<L>(g.add(i));
                    let normal = (v.load::<L>(x.add(i)) - mean) * rstd;
                    v.store(v.load::<L>(for_weight.add(i)) + g * normal, for_weight.add(i));
                    v.store(v.load::<L>(for_bias.add(i)) + g, for_bias.add(i));
                });
            }
            // An element of the cotangent of the normalised row.
            macro_rules! cotangent {
                ($i:ident, $v:ident) => {
                    match weight {
                        Some(weight) => $v.load::<L>(g.add($i)) * $v.load::<L>(weight.add($i)),
                        None => $v.load::<L>(g.add($i)),
                    }
                };
            }
            let average = L::lit(share(total!(L, n, i, v => cotangent!(i, v)), n));
            let along = total!(L, n, i, v => cotangent!(i, v) * (v.load::<L>(x.add(i)) - mean));
            let slope = L::lit(share(along, n)) * rstd;
            across!(L, n, i, v => {
                let normal = (v.load::<L>(x.add(i)) - mean) * rstd;
                v.store((cotangent!(i, v) - average - normal * slope) * rstd, dx.add(i));
            });
        }
    }
}

/// The VJP of [`layer_norm`]: `(dx, dweight, dbias)`. Without a weight the last two are zeros.
pub fn layer_norm_vjp(
    g: &Array, x: &Array, weight: Option<&Array>, mean: &Array, rstd: &Array, axes: usize,
) -> Result<(Array, Array, Array)> {
    let wide_x = wide(x)?;
    let dtype = wide_x.dtype();
    let (wide_g, mean, rstd) = (cast(&g.expand(&x.shape())?, dtype)?, cast(mean, dtype)?, cast(rstd, dtype)?);
    let wide_weight = weight.map(|w| cast(w, dtype)).transpose()?;
    let (_, rows, n) = leading(x, axes);
    // Sums over rows are formed in pieces that depend on the shape alone, and added in order.
    let piece = rows.div_ceil(64).max(16);
    let pieces = rows.div_ceil(piece).max(1);
    let dx = fresh(x.shape(), dtype)?;
    let sums = Array::full(Shape::new(&[pieces, 2, n])?, 0.0, dtype)?;
    with_float!(dtype, T => {
        let (weight, sums) = (wide_weight.as_ref().map(start), start(&sums));
        let (g, x, dx, mean, rstd) = (start(&wide_g), start(&wide_x), start(&dx), start(&mean), start(&rstd));
        let op = LayerNormVjp::<T> { g, x, weight, mean, rstd, dx, sums, piece, n };
        parallel_for(pieces, 4096usize.div_ceil((piece * n).max(1)), |range| {
            launch::<T, _>(&op, range.start * piece..rows.min(range.end * piece));
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
