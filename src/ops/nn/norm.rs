//! Softmax, log-softmax, layer and RMS normalisation: one pass over the rows each, with fused backward
//! kernels.

use crate::array::shape::normalize_axis;
use crate::op::align;
use crate::ops::pointwise::elementwise::by_parts;
use crate::ops::pointwise::operand::promote;
use crate::ops::pointwise::table::Params;
use crate::ops::prelude::*;

/// Softmax (or its logarithm) along the last axis: `exp(x - max) / sum(exp(x - max))`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Softmax {
    /// Whether the logarithm is returned.
    pub log: bool,
}

kernel! {
    Softmax, if self.log { "log_softmax" } else { "softmax" }, |self, x| {
        on_device!(x[0], norm::softmax(x[0], self.log))
    },
    /// Per row of n: 4 n - 1; for the logarithm 4 n.
    flops |x, _y| {
        let (rows, length) = cost::rows(x[0]);
        rows * if self.log { 4 * length } else { (4 * length).saturating_sub(1) }
    }
}

impl General for Softmax {
    const VJP: &'static str = "o * (g - sum(g * o)); log: g - exp(o) * sum(g)";
    const JVP: &'static str = "o * (t - sum(t * o)); log: t - sum(t * exp(o))";

    fn saves(&self, _needs: Needs, _inputs: usize) -> Saves {
        Saves::OUTPUTS
    }
    fn vjp(&self, c: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(Some(g)) = g.first() else { return Ok(Grads::new()) };
        let op = SoftmaxVjp { log: self.log, forward: false };
        Ok(smallvec![Some(bind(op, &[g, c.output(0)?])?)])
    }
    fn jvp(&self, _x: &[&Tensor], y: &[Tensor], t: &[Option<Tensor>]) -> Result<Grads> {
        let Some(t) = &t[0] else { return Ok(smallvec![None]) };
        // Softmax's Jacobian is symmetric; log-softmax's is not.
        let op = SoftmaxVjp { log: self.log, forward: self.log };
        Ok(smallvec![Some(bind(op, &[t, &y[0]])?)])
    }
    batch!(first_in_front: |self| *self);
}

/// Multiplies a cotangent or tangent by softmax's Jacobian. Inputs: g, y.
/// Softmax: `y * (g - sum(g * y))`. Log-softmax: `g - exp(y) * sum(g)`, and forward `g - sum(g * exp(y))`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SoftmaxVjp {
    /// Whether y is a log-softmax.
    pub log: bool,
    /// Whether to multiply by the Jacobian instead of its transpose (they differ for log-softmax).
    pub forward: bool,
}

kernel! {
    SoftmaxVjp, if self.log { "log_softmax" } else { "softmax" }, |self, x| {
        if self.forward {
            return by_parts(self, x)?.pop().ok_or_else(no_output);
        }
        on_device!(x[0], norm::softmax_vjp(x[0], x[1], self.log))
    },
    /// 4 n - 1 per row of n.
    flops |x, _y| {
        let (rows, length) = cost::rows(x[0]);
        rows * (4 * length).saturating_sub(1)
    }
}

impl Composite for SoftmaxVjp {
    const OWN: Own = Own { batch: true, ..Own::NONE };

    fn decompose(&self, x: &[&Tensor]) -> Result<Tensors> {
        let last = Some(&[-1i64][..]);
        let y = &x[1].cast(x[1].dtype().accumulator())?;
        one!(x[0].accumulated(|g| match (self.log, self.forward) {
            (false, _) => y.mul(&g.sub(&g.mul(y)?.sum(last, true)?)?),
            (true, false) => g.sub(&y.exp()?.mul(&g.sum(last, true)?)?),
            (true, true) => g.sub(&g.mul(&y.exp()?)?.sum(last, true)?),
        }))
    }
    batch!(in_front: |self| *self);
}

/// Layer normalisation (Ba, Kiros and Hinton 2016) over the last `axes` axes, `(x - mean) * rstd * weight +
/// bias`, or, not `centered`, RMS normalisation (Zhang and Sennrich 2019), `x * rstd * weight`, which has no
/// mean and no bias. Inputs: x, then, if `affine`, weight and bias. Outputs: y, then mean and rstd of the
/// leading axes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LayerNorm {
    /// The number of trailing axes that are normalised.
    pub axes: u8,
    /// Whether the mean is subtracted.
    pub centered: bool,
    /// Whether weight and, if centered, bias are given.
    pub affine: bool,
    /// The first number is `eps`, added to the variance; the second is unused.
    pub eps: Params,
}

/// The last `axes` axes.
fn trailing(axes: u8) -> Vec<i64> {
    (1..=axes as i64).map(|i| -i).collect()
}

/// Returns `x` without its mean over `axes`, and the mean, or `x` itself where it is not `centered`.
fn without_mean(x: &Tensor, axes: &[i64], centered: bool) -> Result<(Tensor, Option<Tensor>)> {
    if !centered {
        return Ok((x.clone(), None));
    }
    let mean = x.mean(Some(axes), true)?;
    Ok((x.sub(&mean)?, Some(mean)))
}

kernel! {
    LayerNorm, if self.centered { "layer_norm" } else { "rms_norm" }, |self, x| -> Arrays {
        let (weight, bias) = (x.get(1).copied(), x.get(2).copied());
        let (axes, eps) = (self.axes as usize, self.eps.get()[0]);
        on_device!(x[0], norm::layer_norm(x[0], weight, bias, axes, self.centered, eps))
            .map(Arrays::from_iter)
    },
    /// 5 n + 2 per row of n, 7 n + 2 with weight and bias; RMS: 3 n + 2, 4 n + 2 with weight.
    flops |x, y| {
        let each = if self.centered { 5 } else { 3 } + (x.len() as u64 - 1);
        cost::each(x, each) + 2 * y[1].numel() as u64
    }
}

impl Composite for LayerNorm {
    const VJP: &'static str = "rstd * (h - mean(h) - n * mean(h * n)) with h = g * weight, n = (x - mean) \
                               * rstd; sum(g * n), sum(g) for weight and bias; RMS: without mean(h), mean";
    const OWN: Own = Own { vjp: true, batch: true, ..Own::NONE };

    fn decompose(&self, x: &[&Tensor]) -> Result<Tensors> {
        let axes = trailing(self.axes);
        let wide = x[0].cast(x[0].dtype().compute())?;
        let (centred, mean) = without_mean(&wide, &axes, self.centered)?;
        let rstd = centred.square()?.mean(Some(&axes), true)?.add(self.eps.get()[0])?.rsqrt()?;
        let mut y = centred.mul(&rstd)?;
        if let Some(weight) = x.get(1) {
            y = y.mul(*weight)?;
        }
        if let Some(bias) = x.get(2) {
            y = y.add(*bias)?;
        }
        let leading = wide.shape().part(0, wide.rank() - self.axes as usize);
        let mut out: Tensors = smallvec![y.cast(x[0].dtype())?];
        for statistic in mean.iter().chain([&rstd]) {
            out.push(statistic.reshape(&leading)?);
        }
        Ok(out)
    }
    fn saves(&self, _needs: Needs, inputs: usize) -> Saves {
        Saves::input(0).and(Saves::input(1).when(inputs > 1)).and(Saves::STATISTICS)
    }
    fn vjp(&self, c: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        // The statistics are outputs only for the sake of this rule and get no cotangent of their own.
        let Some(Some(g)) = g.first() else { return Ok(Grads::new()) };
        let op = LayerNormVjp { axes: self.axes, centered: self.centered, affine: self.affine };
        let mut inputs = vec![g, c.input(0)?, c.output(1 + usize::from(self.centered))?];
        if self.centered {
            inputs.push(c.output(1)?);
        }
        if self.affine {
            inputs.push(c.input(1)?);
        }
        Ok(bind(op, &inputs)?.into_iter().map(Some).collect())
    }
    fn batch(&self, x: &[Batched], size: usize) -> Result<BatchedOutputs> {
        if x[1..].iter().all(|affine| affine.axis.is_none()) {
            return first_in_front(*self, x, size);
        }
        // Each element of the batch has its own weight or bias: normalise all together, then scale.
        let plain = LayerNorm { affine: false, ..*self };
        let mut out = bind(plain, &[&x[0].materialized(size)?])?;
        let scaled = Batched { value: out[0].clone(), axis: Some(0) };
        let operands = align(&[&[scaled], &x[1..]].concat())?;
        out[0] = operands[0].mul(&operands[1])?;
        if let Some(bias) = operands.get(2) {
            out[0] = out[0].add(bias)?;
        }
        Ok(out.into_iter().map(|y| (y, Some(0))).collect())
    }
}

/// The VJP of layer or RMS normalisation. Inputs: g, x, rstd, then mean if `centered`, then weight if
/// `affine`. Outputs: dx, then dweight if `affine`, and dbias if also `centered`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LayerNormVjp {
    /// The number of trailing axes that are normalised.
    pub axes: u8,
    /// Whether the mean was subtracted.
    pub centered: bool,
    /// Whether there is a weight.
    pub affine: bool,
}

impl LayerNormVjp {
    /// Returns mean and weight, as far as there are any, of the inputs.
    fn optional<'a, T>(&self, x: &[&'a T]) -> (Option<&'a T>, Option<&'a T>) {
        (self.centered.then(|| x[3]), self.affine.then(|| x[x.len() - 1]))
    }
}

kernel! {
    LayerNormVjp, if self.centered { "layer_norm" } else { "rms_norm" }, |self, x| -> Arrays {
        let (mean, weight) = self.optional(x);
        on_device!(x[0], norm::layer_norm_vjp(x[0], x[1], weight, mean, x[2], self.axes as usize))
            .map(Arrays::from_iter)
    },
    /// 9 n per row of n, 13 n with weight and bias; RMS: 6 n, 9 n with weight.
    flops |x, _y| cost::each(x, [[6, 9], [9, 13]][usize::from(self.centered)][usize::from(self.affine)])
}

impl Composite for LayerNormVjp {
    fn decompose(&self, x: &[&Tensor]) -> Result<Tensors> {
        let (g, value) = (x[0], x[1].cast(x[1].dtype().compute())?);
        let (_, weight) = self.optional(x);
        let axes = trailing(self.axes);
        // The statistics are functions of x. Recompute them so that derivatives of this rule include it.
        let (centred, _) = without_mean(&value, &axes, self.centered)?;
        let kept = value.shape().reduced(value.shape().axes(Some(&axes), self.name())?, true);
        let variance = centred.square()?.mean(Some(&axes), true)?;
        // The epsilon is recovered from the statistic.
        let eps = x[2].detach().reshape(&kept)?.pow(-2.0)?.sub(&variance.detach())?;
        let rstd = variance.add(&eps)?.rsqrt()?;
        let normal = centred.mul(&rstd)?;
        let wide = g.cast(value.dtype())?;
        let scaled = weight.map_or_else(|| Ok(wide.clone()), |weight| wide.mul(weight))?;
        let projected = scaled.mul(&normal)?.mean(Some(&axes), true)?;
        let (centred_g, _) = without_mean(&scaled, &axes, self.centered)?;
        let mut out: Tensors =
            smallvec![rstd.mul(&centred_g.sub(&normal.mul(&projected)?)?)?.cast(x[1].dtype())?];
        if let Some(weight) = weight {
            out.push(wide.mul(&normal)?.sum_to(&weight.shape())?);
            if self.centered {
                out.push(wide.sum_to(&weight.shape())?);
            }
        }
        Ok(out)
    }
}

impl Tensor {
    fn softmax_along(&self, axis: i64, log: bool) -> Result<Tensor> {
        let op = Softmax { log };
        let x = self.cast(self.dtype().to_float())?;
        if x.rank() == 0 {
            normalize_axis(axis, 1, op.name())?;
            return if log { x.mul(0.0) } else { x.mul(0.0)?.add(1.0) };
        }
        let i = x.shape().axis(axis, op.name())?;
        let last = x.rank() - 1;
        if i == last {
            return bind(op, &[&x]);
        }
        let (i, last) = (i as i64, last as i64);
        bind(op, &[&x.transpose(i, last)?])?.transpose(i, last)?.contiguous()
    }

    /// `exp(x) / sum(exp(x))` along `axis`.
    pub fn softmax(&self, axis: i64) -> Result<Tensor> {
        self.softmax_along(axis, false)
    }

    /// `log(softmax(x))` along `axis`; accurate where softmax underflows.
    pub fn log_softmax(&self, axis: i64) -> Result<Tensor> {
        self.softmax_along(axis, true)
    }

    /// Normalises over the last axes, whose lengths are `shape`; `weight` and `bias` have that shape.
    pub fn layer_norm(
        &self, shape: &[usize], weight: Option<&Tensor>, bias: Option<&Tensor>, eps: f64,
    ) -> Result<Tensor> {
        self.normalized(true, shape, weight, bias, eps)
    }

    /// Divides by the root of the mean square over the last axes, whose lengths are `shape`, as `weight` has
    /// them.
    pub fn rms_norm(&self, shape: &[usize], weight: Option<&Tensor>, eps: f64) -> Result<Tensor> {
        self.normalized(false, shape, weight, None, eps)
    }

    /// Layer or RMS normalisation.
    fn normalized(
        &self, centered: bool, shape: &[usize], weight: Option<&Tensor>, bias: Option<&Tensor>, eps: f64,
    ) -> Result<Tensor> {
        let affine = weight.is_some() || bias.is_some();
        let op = LayerNorm { axes: shape.len() as u8, centered, affine, eps: [eps, 0.0].into() };
        let (name, own) = (op.name(), self.shape());
        let rank = own.rank();
        let trailing = rank.checked_sub(shape.len()).map(|from| own.part(from, rank));
        let wanted = Shape::new(shape)?;
        if shape.is_empty() || trailing != Some(wanted) {
            return Err(Error::shape(format!(
                "{name}: a tensor of shape {own} does not end in the normalised shape {wanted}"
            )));
        }
        for (what, t) in [("weight", weight), ("bias", bias)] {
            if let Some(t) = t.filter(|t| t.shape() != wanted) {
                return Err(Error::shape(format!(
                    "{name}: {what} has shape {}, expected {wanted}",
                    t.shape()
                )));
            }
        }
        let x = self.cast(self.dtype().to_float())?;
        for (what, t) in [("weight", weight), ("bias", bias)] {
            if let Some(t) = t.filter(|t| t.dtype().category() > x.dtype().category()) {
                return Err(Error::dtype(format!(
                    "{name}: {what} is {}, and the input {}; convert the input first",
                    t.dtype(),
                    x.dtype()
                )));
            }
        }
        if !affine {
            return first(bind(op, &[&x])?);
        }
        let given = |t: Option<&Tensor>, value: f64| {
            t.cloned().map_or_else(|| Tensor::full(wanted, value, x.dtype(), x.device()), Ok)
        };
        let mut all: SmallVec<[Tensor; 3]> = smallvec![x.clone(), given(weight, 1.0)?];
        if centered {
            all.push(given(bias, 0.0)?);
        }
        // Under autocast it runs in float32: the weight must not be rounded to a half dtype first.
        let wide = crate::interp::autocasting() && all.iter().all(|t| t.dtype() != DType::F64);
        let dtype = if wide { DType::F32 } else { promote(&x, &all[1]) };
        for t in &mut all {
            *t = t.cast(dtype)?;
        }
        let y = first(bind(op, &all.iter().collect::<SmallVec<[&Tensor; 3]>>())?)?;
        if wide { Ok(y) } else { y.cast(x.dtype()) }
    }
}
