//! Row kernels: softmax, layer normalisation, cross-entropy, with their backward passes, computed in float64.

use super::copy::{cast, contiguous};
use crate::array::Array;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::shape::Shape;

fn wide(x: &Array) -> Result<Vec<f64>> {
    Ok(contiguous(&cast(x, DType::F64)?)?.slice::<f64>()?.to_vec())
}

fn narrow(values: &[f64], shape: Shape, dtype: DType) -> Result<Array> {
    cast(&Array::from_slice(values, shape)?, dtype)
}

fn statistics_type(dtype: DType) -> DType {
    dtype.compute()
}

/// Softmax of rows, or its logarithm.
pub fn softmax(x: &Array, log: bool) -> Result<Array> {
    let n = x.dim(x.rank() - 1).max(1);
    let mut v = wide(x)?;
    for row in v.chunks_mut(n) {
        let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = row.iter().map(|v| (v - top).exp()).sum();
        row.iter_mut().for_each(|v| *v = if log { *v - top - sum.ln() } else { (*v - top).exp() / sum });
    }
    narrow(&v, x.shape(), x.dtype())
}

/// `y * (g - sum(g y))`, or `g - exp(y) * sum(g)` for log-softmax.
pub fn softmax_vjp(g: &Array, y: &Array, log: bool) -> Result<Array> {
    let n = y.dim(y.rank() - 1).max(1);
    let (mut g, y_values) = (wide(&g.expand(&y.shape())?)?, wide(y)?);
    for (g, y) in g.chunks_mut(n).zip(y_values.chunks(n)) {
        let sum: f64 = g.iter().zip(y).map(|(g, y)| if log { *g } else { g * y }).sum();
        g.iter_mut().zip(y).for_each(|(g, y)| *g = if log { *g - y.exp() * sum } else { y * (*g - sum) });
    }
    narrow(&g, y.shape(), y.dtype())
}

/// Layer normalisation over the last `axes` axes: `(y, mean, rstd)`.
pub fn layer_norm(
    x: &Array,
    weight: Option<&Array>,
    bias: Option<&Array>,
    axes: usize,
    eps: f64,
) -> Result<(Array, Array, Array)> {
    let leading = x.shape().part(0, x.rank() - axes);
    let n = x.shape().part(x.rank() - axes, x.rank()).numel().max(1);
    let mut v = wide(x)?;
    let (w, b) = (weight.map(wide).transpose()?, bias.map(wide).transpose()?);
    let (mut means, mut rstds) = (Vec::new(), Vec::new());
    for row in v.chunks_mut(n) {
        let mean = row.iter().sum::<f64>() / n as f64;
        let variance = row.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n as f64;
        let rstd = (variance + eps).sqrt().recip();
        for (i, v) in row.iter_mut().enumerate() {
            let normal = (*v - mean) * rstd;
            *v = normal * w.as_ref().map_or(1.0, |w| w[i]) + b.as_ref().map_or(0.0, |b| b[i]);
        }
        means.push(mean);
        rstds.push(rstd);
    }
    means.resize(leading.numel(), 0.0);
    rstds.resize(leading.numel(), 0.0);
    let s = statistics_type(x.dtype());
    Ok((narrow(&v, x.shape(), x.dtype())?, narrow(&means, leading, s)?, narrow(&rstds, leading, s)?))
}

/// `(dx, dweight, dbias)` of layer normalisation.
pub fn layer_norm_vjp(
    g: &Array,
    x: &Array,
    weight: Option<&Array>,
    mean: &Array,
    rstd: &Array,
    axes: usize,
) -> Result<(Array, Array, Array)> {
    let inner = x.shape().part(x.rank() - axes, x.rank());
    let n = inner.numel().max(1);
    let (g, mut v, mean, rstd) = (wide(g)?, wide(x)?, wide(mean)?, wide(rstd)?);
    let w = weight.map(wide).transpose()?;
    let (mut dw, mut db) = (vec![0.0; inner.numel()], vec![0.0; inner.numel()]);
    for (r, (row, g)) in v.chunks_mut(n).zip(g.chunks(n)).enumerate() {
        let scaled = |i: usize| g[i] * w.as_ref().map_or(1.0, |w| w[i]);
        row.iter_mut().for_each(|v| *v = (*v - mean[r]) * rstd[r]);
        let average = (0..n).map(scaled).sum::<f64>() / n as f64;
        let projected = (0..n).map(|i| scaled(i) * row[i]).sum::<f64>() / n as f64;
        for i in 0..n {
            dw[i] += g[i] * row[i];
            db[i] += g[i];
            row[i] = rstd[r] * (scaled(i) - average - row[i] * projected);
        }
    }
    let t = weight.map_or(x.dtype(), Array::dtype);
    Ok((narrow(&v, x.shape(), x.dtype())?, narrow(&dw, inner, t)?, narrow(&db, inner, t)?))
}

fn target_of(t: i64, classes: usize, row: usize) -> Result<usize> {
    usize::try_from(t).ok().filter(|&t| t < classes).ok_or_else(|| {
        Error::index(format!("cross_entropy: row {row} has target {t}, expected a class in 0..{classes}"))
    })
}

/// `(loss, logsumexp)` per row; rows with target `ignore` have loss 0.
pub fn cross_entropy(logits: &Array, target: &Array, ignore: i64) -> Result<(Array, Array)> {
    let (rows, classes) = (logits.dim(0), logits.dim(1));
    let (v, t) = (wide(logits)?, contiguous(&cast(target, DType::I64)?)?);
    let (mut loss, mut lse) = (Vec::new(), Vec::new());
    for (r, &t) in t.slice::<i64>()?.iter().enumerate() {
        let row = &v[r * classes..][..classes];
        let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total = top + row.iter().map(|v| (v - top).exp()).sum::<f64>().ln();
        loss.push(if t == ignore { 0.0 } else { total - row[target_of(t, classes, r)?] });
        lse.push(total);
    }
    let shape = Shape::new(&[rows])?;
    let s = statistics_type(logits.dtype());
    Ok((narrow(&loss, shape, s)?, narrow(&lse, shape, s)?))
}

/// `(exp(x - logsumexp) - onehot) * g` per row.
pub fn cross_entropy_vjp(g: &Array, logits: &Array, target: &Array, lse: &Array, ignore: i64) -> Result<Array> {
    let classes = logits.dim(1);
    let (g, mut v, lse, t) = (wide(g)?, wide(logits)?, wide(lse)?, contiguous(&cast(target, DType::I64)?)?);
    for (r, &t) in t.slice::<i64>()?.iter().enumerate() {
        let g = if t == ignore { 0.0 } else { g[r] };
        for (c, v) in v[r * classes..][..classes].iter_mut().enumerate() {
            *v = ((*v - lse[r]).exp() - f64::from(u8::from(c as i64 == t))) * g;
        }
    }
    narrow(&v, logits.shape(), logits.dtype())
}
