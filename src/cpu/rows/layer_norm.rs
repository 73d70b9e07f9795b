//! Layer and RMS normalisation over trailing axes, and their backward kernel.
//!
//! Mean and variance take two passes over a row in the L1 cache: one pass would suffer from cancellation. RMS
//! normalisation is the same with a mean of 0, which no pass looks for and no array keeps; it adds up long
//! rows and tall columns in short pieces, whose rounding is that of `sum`.

use super::norm::{fresh, start, wide, with_float};
use crate::array::shape::Axes;
use crate::cpu::prelude::*;
use crate::cpu::reduce::sum;
use crate::cpu::rows::{Access, RowFloat, RowOp, across, all_of, each_row, launch, sum_of, total};
use crate::math::wide::Wide;

/// Numbers of a row that RMS normalisation adds up in lanes.
const STRETCH: usize = 4096;

/// `total!(@zero ...)` of stretches of a row, which are added in f64.
macro_rules! in_stretches {
    ($lane:ty, $n:expr, $i:ident, $v:ident => $term:expr) => {{
        let n = $n;
        let (mut sum, mut from) = (0.0, 0);
        while from < n {
            sum += total!(@zero $lane, STRETCH.min(n - from), at, $v => {
                let $i = from + at;
                $term
            });
            from += STRETCH;
        }
        sum
    }};
}

struct LayerNorm<T> {
    x: Shared<T>,
    weight: Option<Shared<T>>,
    bias: Option<Shared<T>>,
    y: Shared<T>,
    /// Absent for RMS normalisation.
    mean: Option<Shared<T>>,
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
            let mut centre = L::lit(0.0);
            let spread = if let Some(to) = self.mean {
                let mean = T::from_f64(share(total!(L, n, i, v => v.load::<L>(x.add(i))), n));
                *to.get().add(row) = mean;
                centre = L::lit(mean.to_f64());
                total!(L, n, i, v => {
                    let distance = v.load::<L>(x.add(i)) - centre;
                    distance * distance
                })
            } else {
                in_stretches!(L, n, i, v => {
                    let x = v.load::<L>(x.add(i));
                    x * x
                })
            };
            let rstd = T::from_f64(inverse_deviation(share(spread, n), self.eps));
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

/// Normalises the last `axes` axes to mean 0 (if `centered`) and variance 1, then scales and shifts: y, mean
/// (if `centered`) and rstd. The statistics have the shape of the leading axes and are `f32` for halves.
pub fn layer_norm(
    x: &Array, weight: Option<&Array>, bias: Option<&Array>, axes: usize, centered: bool, eps: f64,
) -> Result<Vec<Array>> {
    let wide = wide(x)?;
    let dtype = wide.dtype();
    let weight = weight.map(|w| cast(w, dtype)).transpose()?;
    let bias = bias.map(|b| cast(b, dtype)).transpose()?;
    let (lead, rows, n) = leading(x, axes);
    let (y, rstd) = (fresh(x.shape(), dtype)?, fresh(lead, dtype)?);
    let mean = centered.then(|| fresh(lead, dtype)).transpose()?;
    with_float!(dtype, T => {
        let (weight, bias) = (weight.as_ref().map(start), bias.as_ref().map(start));
        let (x, y, mean, rstd) = (start(&wide), start(&y), mean.as_ref().map(start), start(&rstd));
        let op = LayerNorm::<T> { x, weight, bias, y, mean, rstd, n, eps };
        each_row::<T, _>(&op, rows, n)
    });
    Ok([Some(cast(&y, x.dtype())?), mean, Some(rstd)].into_iter().flatten().collect())
}

struct LayerNormVjp<T> {
    g: Shared<T>,
    x: Shared<T>,
    weight: Option<Shared<T>>,
    /// Absent for RMS normalisation.
    mean: Option<Shared<T>>,
    rstd: Shared<T>,
    dx: Shared<T>,
    /// Sums over a piece of rows: for the weight, then for the bias, if there is a mean.
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
            let mean: L = self.mean.map_or(L::lit(0.0), |mean| all_of(mean.get(), row));
            let rstd: L = all_of(self.rstd.get(), row);
            let dx = self.dx.get().add(row * n);
            let weight = self.weight.map(|weight| weight.get().cast_const());
            if self.weight.is_some() {
                let each = 1 + usize::from(self.mean.is_some());
                let for_weight = self.sums.get().add(row / self.piece * each * n);
                let for_bias = self.mean.map(|_| for_weight.add(n));
                across!(L, n, i, v => {
                    let g = v.load::<L>(g.add(i));
                    let normal = (v.load::<L>(x.add(i)) - mean) * rstd;
                    v.store(v.load::<L>(for_weight.add(i)) + g * normal, for_weight.add(i));
                    if let Some(for_bias) = for_bias {
                        v.store(v.load::<L>(for_bias.add(i)) + g, for_bias.add(i));
                    }
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
            let mut average = L::lit(0.0);
            let along = if self.mean.is_some() {
                average = L::lit(share(total!(L, n, i, v => cotangent!(i, v)), n));
                total!(L, n, i, v => cotangent!(i, v) * (v.load::<L>(x.add(i)) - mean))
            } else {
                in_stretches!(L, n, i, v => cotangent!(i, v) * v.load::<L>(x.add(i)))
            };
            let slope = L::lit(share(along, n)) * rstd;
            across!(L, n, i, v => {
                let normal = (v.load::<L>(x.add(i)) - mean) * rstd;
                v.store((cotangent!(i, v) - average - normal * slope) * rstd, dx.add(i));
            });
        }
    }
}

/// The VJP of [`layer_norm`]: dx, dweight if there is a weight, and dbias if there is a mean, too.
pub fn layer_norm_vjp(
    g: &Array, x: &Array, weight: Option<&Array>, mean: Option<&Array>, rstd: &Array, axes: usize,
) -> Result<Vec<Array>> {
    let wide_x = wide(x)?;
    let dtype = wide_x.dtype();
    let (wide_g, rstd) = (cast(&g.expand(&x.shape())?, dtype)?, cast(rstd, dtype)?);
    let mean = mean.map(|m| cast(m, dtype)).transpose()?;
    let wide_weight = weight.map(|w| cast(w, dtype)).transpose()?;
    let (_, rows, n) = leading(x, axes);
    // Sums over rows are formed in pieces that depend on the shape alone, and added in order.
    let piece = if mean.is_some() { rows.div_ceil(64).max(16) } else { 8 };
    let pieces = rows.div_ceil(piece).max(1);
    let dx = fresh(x.shape(), dtype)?;
    let each = if weight.is_none() { 0 } else { 1 + usize::from(mean.is_some()) };
    let sums = Array::full(Shape::new(&[pieces, each, n])?, 0.0, dtype)?;
    with_float!(dtype, T => {
        let (weight, mean) = (wide_weight.as_ref().map(start), mean.as_ref().map(start));
        let (g, x, dx) = (start(&wide_g), start(&wide_x), start(&dx));
        let (rstd, sums) = (start(&rstd), start(&sums));
        let op = LayerNormVjp::<T> { g, x, weight, mean, rstd, dx, sums, piece, n };
        parallel_for(pieces, 4096usize.div_ceil((piece * n).max(1)), |range| {
            launch::<T, _>(&op, range.start * piece..rows.min(range.end * piece));
        });
    });
    let mut all = vec![cast(&dx, x.dtype())?];
    if let Some(weight) = weight {
        let sums = sum(&sums, Axes::one(0), false)?;
        let shape = x.shape().part(x.rank().saturating_sub(axes), x.rank());
        for k in 0..each {
            let part = sums.with_layout(shape, &shape.strides()[..shape.rank()], k * n)?;
            all.push(cast(&part, weight.dtype())?);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalises_by_definition() -> Result<()> {
        for (dtype, tolerance) in [(DType::F32, 5e-5), (DType::F64, 1e-12), (DType::BF16, 0.05)] {
            for (x, centered) in layouts(&[3, 4, 40], dtype)?.iter().flat_map(|x| [(x, true), (x, false)]) {
                let (w, b) = (sample(&[4, 40], dtype)?, sample(&[40, 4], dtype)?.permute(&[1, 0])?);
                for (weight, bias) in [(None, None), (Some(&w), None), (None, Some(&b)), (Some(&w), Some(&b))]
                {
                    let all = layer_norm(x, weight, bias, 2, centered, 1e-3)?;
                    assert_eq!(all.len(), if centered { 3 } else { 2 });
                    for statistic in &all[1..] {
                        assert_eq!((statistic.shape(), statistic.dtype()), (shape(&[3]), dtype.compute()));
                    }
                    let (v, w, b) = (values(x), values(&w), values(&b));
                    for (r, row) in v.chunks(160).enumerate() {
                        let m = if centered { row.iter().sum::<f64>() / 160.0 } else { 0.0 };
                        let s = row.iter().map(|v| (v - m) * (v - m)).sum::<f64>() / 160.0;
                        let s = 1.0 / (s + 1e-3).sqrt();
                        for i in 0..160 {
                            let scale = if weight.is_some() { w[i] } else { 1.0 };
                            let want = (row[i] - m) * s * scale + if bias.is_some() { b[i] } else { 0.0 };
                            let got = values(&all[0])[r * 160 + i];
                            let close = (got - want).abs() <= tolerance * want.abs().max(1.0);
                            assert!(close, "{x:?} {got} {want}");
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// The VJP of what `layer_norm` returned.
    fn vjp(g: &Array, x: &Array, weight: Option<&Array>, all: &[Array]) -> Result<Vec<Array>> {
        layer_norm_vjp(g, x, weight, all.get(2).map(|_| &all[1]), &all[all.len() - 1], 1)
    }

    #[test]
    fn vjp_agrees_with_differences() -> Result<()> {
        let (x, g, w) =
            (sample(&[5, 8], DType::F64)?, sample(&[8, 5], DType::F64)?, sample(&[8], DType::F64)?);
        let g = g.permute(&[1, 0])?;
        let nudged = |a: &Array, i: usize, by: f64| {
            let mut v = values(a);
            v[i] += by;
            Array::from_slice(&v, a.shape())
        };
        for centered in [true, false] {
            let loss = |x: &Array, w: &Array| -> Result<f64> {
                let y = values(&layer_norm(x, Some(w), None, 1, centered, 1e-5)?[0]);
                Ok(y.iter().zip(values(&g)).map(|(y, g)| y * g).sum())
            };
            let found = vjp(&g, &x, Some(&w), &layer_norm(&x, Some(&w), None, 1, centered, 1e-5)?)?;
            assert_eq!(found.len(), if centered { 3 } else { 2 });
            for i in 0..40 {
                let slope = (loss(&nudged(&x, i, 1e-5)?, &w)? - loss(&nudged(&x, i, -1e-5)?, &w)?) / 2e-5;
                assert!((slope - values(&found[0])[i]).abs() < 1e-7);
            }
            for i in 0..8 {
                let slope = (loss(&x, &nudged(&w, i, 1e-5)?)? - loss(&x, &nudged(&w, i, -1e-5)?)?) / 2e-5;
                assert!((slope - values(&found[1])[i]).abs() < 1e-7);
                let column: f64 = (0..5).map(|r| values(&g)[r * 8 + i]).sum();
                assert!(found.get(2).is_none_or(|db| (column - values(db)[i]).abs() < 1e-12));
            }
        }
        let (x, w) = (sample(&[3000, 50], DType::F32)?, sample(&[50], DType::F32)?);
        for centered in [true, false] {
            let all = layer_norm(&x, None, None, 1, centered, 1e-5)?;
            same_for_any_threads(|| Ok(vjp(&x, &x, Some(&w), &all)?.remove(1)))?;
            same_for_any_threads(|| Ok(vjp(&x, &x, None, &all)?.remove(0)))?;
        }
        Ok(())
    }
}
