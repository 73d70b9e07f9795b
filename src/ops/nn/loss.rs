//! Losses. Cross-entropy is one fused operation whose gradient is softmax minus target; others are composed.

use crate::ops::prelude::*;
use crate::ops::reduce::index_type;
use crate::watch::debug::{self, Modes};

/// How the losses of the elements are reduced to the result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reduction {
    /// The mean; the weighted mean if there are weights.
    #[default]
    Mean,
    /// The sum.
    Sum,
    /// No reduction: one loss per element.
    None,
}

impl Reduction {
    /// Parses the public name.
    pub fn from_name(name: &str) -> Result<Reduction> {
        match name {
            "mean" => Ok(Reduction::Mean),
            "sum" => Ok(Reduction::Sum),
            "none" => Ok(Reduction::None),
            _ => Err(Error::value(format!("reduction must be 'mean', 'sum' or 'none', got '{name}'"))),
        }
    }

    fn apply(self, loss: &Tensor) -> Result<Tensor> {
        match self {
            Reduction::Mean => loss.mean(None, false),
            Reduction::Sum => loss.sum(None, false),
            Reduction::None => Ok(loss.clone()),
        }
    }
}

/// `logsumexp(x) - x[target]` per row. Inputs: logits `[n, c]`, target `[n]`. Outputs: loss `[n]`, and
/// `[n, 2]`, the two terms of the logsumexp: the largest logit, and the logarithm of the sum relative to it.
/// Their sum would round away what tells large logits apart. Rows whose target is `ignore` have loss 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CrossEntropy {
    /// Rows with this target are left out.
    pub ignore: i64,
}

/// Returns the targets as `[n, 1]`, replaced by 0 where ignored, and the mask of the rows that count.
fn safe_targets(target: &Tensor, ignore: i64) -> Result<(Tensor, Tensor)> {
    let counts = target.ne(ignore)?.unsqueeze(-1)?;
    let column = target.unsqueeze(-1)?;
    Ok((counts.select(&column, 0i64)?.cast(target.dtype())?, counts))
}

kernel! {
    CrossEntropy, "cross_entropy", |self, x| -> Arrays {
        let (loss, terms) = on_device!(x[0], norm::cross_entropy(x[0], x[1], self.ignore))?;
        Ok(smallvec![loss, terms])
    },
    /// 3 n + 2 per row of n classes.
    flops |x, _y| {
        let (rows, classes) = cost::rows(x[0]);
        rows * (3 * classes + 2)
    }
}

impl Composite for CrossEntropy {
    const VJP: &'static str = "(softmax(x) - onehot(target)) * g";
    const OWN: Own = Own { vjp: true, batch: true, ..Own::NONE };

    fn decompose(&self, x: &[&Tensor]) -> Result<Tensors> {
        let (index, counts) = safe_targets(x[1], self.ignore)?;
        let wide = x[0].cast(x[0].dtype().compute())?;
        let top = wide.amax(Some(&[-1]), true)?.detach();
        let spread = wide.sub(&top)?.logsumexp(Some(&[-1]), true)?;
        let loss = spread.sub(&wide.gather(-1, &index)?.sub(&top)?)?;
        let loss = counts.select(&loss, 0.0)?.reshape(&x[1].shape())?;
        Ok(smallvec![loss, crate::ops::views::join::cat(&[top, spread], -1)?])
    }
    fn saves(&self, _needs: Needs, _inputs: usize) -> Saves {
        Saves::input(0).and(Saves::input(1)).and(Saves::STATISTICS)
    }
    fn vjp(&self, c: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(Some(g)) = g.first() else { return Ok(Grads::new()) };
        let op = CrossEntropyVjp { ignore: self.ignore };
        let dx = bind(op, &[g, c.input(0)?, c.input(1)?, c.output(1)?])?;
        Ok(smallvec![Some(dx), None])
    }
    fn batch(&self, x: &[Batched], size: usize) -> Result<BatchedOutputs> {
        let (logits, target) = (x[0].materialized(size)?, x[1].materialized(size)?);
        let rows = target.shape();
        let out = bind(*self, &[&logits.flatten(0, 1)?, &target.flatten(0, 1)?])?;
        let shapes = [rows, rows.inserted(rows.rank(), 2)?];
        out.iter().zip(shapes).map(|(y, shape)| Ok((y.reshape(&shape)?, Some(0)))).collect()
    }
}

/// `(softmax(x) - onehot(target)) * g` per row. Inputs: g `[n]`, logits, target, and the terms of
/// [`CrossEntropy`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CrossEntropyVjp {
    /// Rows with this target are left out.
    pub ignore: i64,
}

kernel! {
    CrossEntropyVjp, "cross_entropy", |self, x| {
        on_device!(x[0], norm::cross_entropy_vjp(x[0], x[1], x[2], x[3], self.ignore))
    },
    /// 3 n + 1 per row of n classes.
    flops |x, _y| {
        let (rows, classes) = cost::rows(x[1]);
        rows * (3 * classes + 1)
    }
}

impl Composite for CrossEntropyVjp {
    fn decompose(&self, x: &[&Tensor]) -> Result<Tensors> {
        let (index, counts) = safe_targets(x[2], self.ignore)?;
        let wide = x[1].cast(x[1].dtype().compute())?;
        // Computes softmax from the logits, not from the saved terms: derivatives of this rule then
        // include the normaliser's dependence on the logits.
        let softmax = wide.softmax(-1)?;
        let classes = Tensor::arange(0.0, 1.0, wide.shape().at(1), x[2].dtype(), x[2].device())?;
        let onehot = index.eq(&classes)?.cast(wide.dtype())?;
        let g = counts.select(&x[0].cast(wide.dtype())?.unsqueeze(-1)?, 0.0)?;
        one!(softmax.sub(&onehot)?.mul(&g)?.cast(x[1].dtype()))
    }
}

/// Settings of [`cross_entropy`].
#[derive(Clone, Copy)]
pub struct CrossEntropyOptions<'a> {
    /// A weight per class.
    pub weight: Option<&'a Tensor>,
    /// Rows with this target are left out.
    pub ignore: i64,
    /// How the losses of the rows are reduced.
    pub reduction: Reduction,
    /// The share of the target that is spread evenly over all classes.
    pub smoothing: f64,
}

/// Cross-entropy of logits `[n, c]` (or `[c]`, or `[n, c, d..]`) with class indices `[n]` (`[]`, `[n, d..]`),
/// or with class probabilities of the logits' shape.
pub fn cross_entropy(logits: &Tensor, target: &Tensor, options: CrossEntropyOptions) -> Result<Tensor> {
    if !logits.dtype().is_float() {
        let dtype = logits.dtype();
        return Err(Error::dtype(format!(
            "cross_entropy: floating point logits expected, got {dtype}; convert with .float()"
        )));
    }
    if target.dtype().is_float() {
        return soft_cross_entropy(logits, target, options);
    }
    let (rows, index, shape) = rows_of("cross_entropy", logits, target)?;
    let loss = first(bind(CrossEntropy { ignore: options.ignore }, &[&rows, &index])?)?;
    let mut loss = weighted(loss, &index, options)?;
    if options.smoothing > 0.0 {
        // (1 - s) * (lse - x_t) + s * mean_c (lse - x_c), with class weights inside the mean.
        let log_p = rows.log_softmax(-1)?;
        let log_p = options.weight.map_or(Ok(log_p.clone()), |w| log_p.mul(w))?;
        let classes = rows.shape().at(1) as f64;
        let spread = log_p.sum(Some(&[-1]), false)?.neg()?.mul(options.smoothing / classes)?;
        let counted = index.ne(options.ignore)?.select(&spread, 0.0)?;
        loss = loss.mul(1.0 - options.smoothing)?.add(&counted)?;
    }
    reduce_rows(&loss, &index, &shape, options)
}

/// The losses of the rows, times the weights of their classes.
fn weighted(loss: Tensor, index: &Tensor, options: CrossEntropyOptions) -> Result<Tensor> {
    if options.weight.is_some() { loss.mul(&row_weights(index, options)?) } else { Ok(loss) }
}

/// The class weight of each row; 0 for rows left out.
fn row_weights(index: &Tensor, options: CrossEntropyOptions) -> Result<Tensor> {
    let counts = index.ne(options.ignore)?;
    match options.weight {
        None => counts.cast(DType::F32),
        Some(w) => {
            let safe = counts.select(index, 0i64)?.cast(index.dtype())?;
            counts.select(&w.take(&safe, 0)?, 0.0)
        }
    }
}

/// The number of rows that count, if the targets can be read on the CPU without waiting for a device.
fn counted(index: &Tensor, ignore: i64) -> Option<usize> {
    // A script must not depend on the values it was written with.
    let can_read = |a: &&Array| a.device() == Device::Cpu && !debug::modes().has(Modes::SCRIPT);
    let targets = index.concrete().filter(can_read)?;
    match targets.dtype() {
        DType::I64 => Some(targets.slice::<i64>().ok()?.iter().filter(|&&t| t != ignore).count()),
        DType::I32 => Some(targets.slice::<i32>().ok()?.iter().filter(|&&t| i64::from(t) != ignore).count()),
        _ => None,
    }
}

fn reduce_rows(loss: &Tensor, index: &Tensor, shape: &Shape, options: CrossEntropyOptions) -> Result<Tensor> {
    match options.reduction {
        Reduction::None => loss.reshape(shape),
        Reduction::Sum => loss.sum(None, false),
        Reduction::Mean => loss.accumulated(|loss| {
            if let (None, Some(counted)) = (options.weight, counted(index, options.ignore)) {
                return if counted == loss.numel() {
                    loss.mean(None, false)
                } else {
                    loss.sum(None, false)?.div(counted as f64)
                };
            }
            let weights = row_weights(index, options)?.cast(loss.dtype())?;
            loss.sum(None, false)?.div(&weights.sum(None, false)?)
        }),
    }
}

fn soft_cross_entropy(logits: &Tensor, target: &Tensor, options: CrossEntropyOptions) -> Result<Tensor> {
    if logits.shape() != target.shape() || logits.rank() == 0 {
        return Err(Error::shape(format!(
            "cross_entropy: class probabilities have shape {}, expected {} as the logits; class indices \
             must be integers",
            target.shape(),
            logits.shape()
        )));
    }
    let axis = if logits.rank() == 1 { 0 } else { 1 };
    let classes = logits.shape().at(axis) as f64;
    let target = target.mul(1.0 - options.smoothing)?.add(options.smoothing / classes)?;
    let mut terms = logits.log_softmax(axis as i64)?.mul(&target)?;
    if let Some(w) = options.weight {
        let mut dims = vec![1; logits.rank()];
        dims[axis] = w.numel();
        terms = terms.mul(&w.reshape(&Shape::new(&dims)?)?)?;
    }
    let loss = terms.sum(Some(&[axis as i64]), false)?.neg()?;
    options.reduction.apply(&loss)
}

/// Returns the logits as `[rows, classes]`, the targets as `[rows]`, and the shape of the losses per row.
fn rows_of(op: &str, logits: &Tensor, target: &Tensor) -> Result<(Tensor, Tensor, Shape)> {
    let (x, t) = (logits.shape(), target.shape());
    let axis = if x.rank() == 1 { 0 } else { 1 };
    if x.rank() == 0 || x.removed(axis) != t {
        return Err(Error::shape(format!(
            "{op}: class indices have shape {t}, expected {} for logits of shape {x}",
            if x.rank() == 0 { x } else { x.removed(axis) }
        )));
    }
    if !target.dtype().is_integer() {
        return Err(Error::dtype(format!(
            "{op}: class indices must be integers, got {}; convert with .long()",
            target.dtype()
        )));
    }
    // Unsigned indices could not be compared with a negative `ignore`.
    let target = match target.dtype() {
        DType::I32 | DType::I64 => target.clone(),
        _ => target.cast(index_type(target.device()))?,
    };
    let x = logits.cast(logits.dtype().to_float())?;
    let last = x.move_axis(axis, x.rank() - 1)?;
    let classes = x.shape().at(axis);
    let rows = last.reshape(&Shape::new(&[t.numel(), classes])?)?;
    Ok((rows, target.reshape(&Shape::new(&[t.numel()])?)?, t))
}

/// Negative log-likelihood: minus the log-probability of each row's target. Shapes as in [`cross_entropy`].
pub fn nll(log_p: &Tensor, target: &Tensor, options: CrossEntropyOptions) -> Result<Tensor> {
    let (rows, index, shape) = rows_of("nll_loss", log_p, target)?;
    let (safe, counts) = safe_targets(&index, options.ignore)?;
    let picked = counts.select(&rows.gather(-1, &safe)?, 0.0)?.neg()?.reshape(&index.shape())?;
    reduce_rows(&weighted(picked, &index, options)?, &index, &shape, options)
}

/// Binary cross-entropy of logits: `max(x, 0) - x t + log(1 + exp(-|x|))`, stable for any logit.
pub fn bce_with_logits(
    x: &Tensor, target: &Tensor, weight: Option<&Tensor>, pos_weight: Option<&Tensor>, reduction: Reduction,
) -> Result<Tensor> {
    if x.shape() != target.shape() {
        return Err(Error::shape(format!(
            "binary_cross_entropy_with_logits: target has shape {}, expected {} as the logits",
            target.shape(),
            x.shape()
        )));
    }
    // log(1 + exp(-x)) is softplus(-x).
    let negative = || x.neg()?.softplus(1.0, 1e30);
    let mut loss = match pos_weight {
        // Each sign has the form whose slope keeps its digits: sigmoid(x) - t at the left, where the other,
        // (1 - t) - sigmoid(-x), would round away a small target. The selection is `-|x|` but for the slope
        // at 0.
        None => {
            let left = x.lt(0.0)?;
            let small = left.select(x, &x.neg()?)?.softplus(1.0, 1e30)?;
            small.add(&x.mul(&left.select(0.0, 1.0)?.cast(x.dtype())?.sub(target)?)?)?
        }
        Some(p) => {
            let negative = negative()?;
            let factor = target.mul(&p.sub(1.0)?)?.add(1.0)?;
            x.mul(&target.neg()?.add(1.0)?)?.add(&factor.mul(&negative)?)?
        }
    };
    if let Some(w) = weight {
        loss = loss.mul(w)?;
    }
    reduction.apply(&loss)
}
