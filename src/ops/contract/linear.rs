//! A layer, `act(x W' + b)`, as one operation. Bias and activation are applied while the product is in the
//! cache, the tape gets one node, and one step backward computes all gradients, transposing nothing.

use crate::array::shape::Axes;
use crate::cpu::product::epilogue::Activation;
use crate::device::{FusedActivation, layer};
use crate::math::real::Pointwise;
use crate::math::terms::Terms;
use crate::ops::contract::bias_for;
use crate::ops::contract::matmul::{Form, Matmul, product};
use crate::ops::pointwise::elementwise::{Map, MapVjp};
use crate::ops::pointwise::table::{Arg, Fun, Visit, pointwise_rule};
use crate::ops::pointwise::unary::Unary;
use crate::ops::prelude::*;

/// `act(x W' + b)`. Inputs: x `[..., k]`, weight `[n, k]`, then bias `[n]` if `bias`. Outputs: the result
/// `[..., n]`, and the pre-activation if the activation's derivative reads it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Affine {
    /// Whether there is a bias.
    pub bias: bool,
    /// Applied to every element of the sum.
    pub act: Option<Unary>,
}

impl Affine {
    /// The outputs, of the sum to which the activation is applied.
    fn activated(&self, sum: Tensor) -> Result<Tensors> {
        let Some(act) = self.act else { return Ok(smallvec![sum]) };
        let out = sum.unary(act)?;
        Ok(if reads_input(self.act) { smallvec![out, sum] } else { smallvec![out] })
    }
}

/// The operation of a row of the table of unary functions.
fn map(fun: Unary) -> Map {
    Map { fun: Fun::Unary(fun), p: Default::default() }
}

/// The operation that multiplies a cotangent by the derivative of a row.
fn map_vjp(fun: Unary) -> MapVjp {
    MapVjp { fun: Fun::Unary(fun), wrt: 0, p: Default::default() }
}

/// Whether the derivative of `act` reads the value it is applied to.
fn reads_input(act: Option<Unary>) -> bool {
    act.is_some_and(|act| act.reads().first().is_some_and(|reads| reads.contains(&Arg::X)))
}

/// Flattens `[..., k]` to a matrix `[rows, k]`.
pub(crate) fn rows(x: &Array) -> Result<Array> {
    let (shape, rank) = (x.shape(), x.rank());
    if rank == 2 {
        return Ok(x.clone());
    }
    let flat = Shape::new(&[shape.part(0, rank - 1).numel(), shape.at(rank - 1)])?;
    let view = |x: &Array| x.reshape_view(&flat);
    view(x).or_else(|| view(&x.copied().ok()?)).ok_or_else(|| Error::shape("internal: linear got no axis"))
}

/// Gives a matrix `[rows, n]` the leading axes of `like`.
pub(crate) fn unrolled(out: Array, like: &Array) -> Result<Array> {
    if like.rank() == 2 {
        return Ok(out);
    }
    let shape = like.shape().with(like.rank() - 1, out.dim(1));
    out.reshape_view(&shape).ok_or_else(|| Error::shape("internal: linear made strided rows"))
}

/// Writes a rule down.
struct Written;

impl Visit for Written {
    type Out = Terms;
    fn visit<const N: usize, P: Pointwise<N>>(self, rule: P) -> Terms {
        rule.terms(true)
    }
}

/// Returns `x W' + b`, with `act` applied if the kernel of the product can do so, and whether it was applied;
/// then maybe the sum too, if the derivative of `act` reads it.
pub(crate) fn finished(
    x: &Array, weight: &Array, bias: Option<&Array>, act: Option<Unary>,
) -> Result<(Array, Option<Array>, bool)> {
    let transposed = weight.transposed(0, 1)?;
    let Some(row) = act else { return layer(x, &transposed, bias, None, false) };
    let p = [0.0; 2];
    let relu = pointwise_rule!(p; [x] => Unary::relu(p, [x]));
    let tanh = pointwise_rule!(p; [x] => Unary::tanh(p, [x]));
    let sigmoid = pointwise_rule!(p; [x] => Unary::sigmoid(p, [x]));
    let in_cache: Option<&dyn Activation> = match row {
        Unary::Relu => Some(&relu),
        Unary::Tanh => Some(&tanh),
        Unary::Sigmoid => Some(&sigmoid),
        _ => None,
    };
    let rule = || row.value(p, Written);
    layer(
        x,
        &transposed,
        bias,
        Some(FusedActivation { name: row.name(), rule: &rule, in_cache }),
        reads_input(act),
    )
}

kernel! {
    Affine, "linear", |self, x| -> Arrays {
        let (out, sum, done) = finished(&rows(x[0])?, x[1], x.get(2).copied(), self.act)?;
        let out = unrolled(out, x[0])?;
        let Some(act) = self.act else { return Ok(smallvec![out]) };
        let (out, sum) = match (done, sum) {
            (true, Some(sum)) => (out, unrolled(sum, x[0])?),
            (true, None) => return Ok(smallvec![out]),
            (false, _) => (map(act).eval_one(&[&out])?, out),
        };
        Ok(if reads_input(self.act) { smallvec![out, sum] } else { smallvec![out] })
    },
    /// 2 m n k, m n for the bias, and the activation.
    flops |x, y| {
        let terms = x[1].dim(1);
        let act = u64::from(self.bias) + self.act.map_or(0, |act| Fun::Unary(act).flops());
        y.first().map_or(0, |y| cost::product(y.numel(), terms)) + cost::each(y, act)
    }
}

impl Composite for Affine {
    const VJP: &'static str = "with h = g * act'(…): h W for x, h' x for W, the sum of h for b";
    const OWN: Own = Own { vjp: true, batch: true, ..Own::NONE };

    fn decompose(&self, x: &[&Tensor]) -> Result<Tensors> {
        let (value, weight) = (x[0], x[1]);
        let leading = value.shape().part(0, value.rank() - 1);
        let flat = if value.rank() > 2 { value.flatten(0, -2)? } else { value.clone() };
        let form = if flat.rank() == 1 { Form::Row } else { Form::Plain };
        let mut sum = product(&flat, form, weight, Form::Transposed)?;
        sum = sum.reshape(&leading.inserted(leading.rank(), weight.shape().at(0))?)?;
        if self.bias {
            sum = sum.add(x[2])?;
        }
        self.activated(sum)
    }
    fn saves(&self, needs: Needs, _inputs: usize) -> Saves {
        let act = match (self.act, reads_input(self.act)) {
            (None, _) => Saves::NONE,
            (Some(_), true) => Saves::STATISTICS,
            (Some(_), false) => Saves::OUTPUTS,
        };
        act.and(Saves::input(0).when(needs.has(1))).and(Saves::input(1).when(needs.has(0)))
    }
    fn vjp(&self, c: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let wants = [c.needs(0), c.needs(1), self.bias && c.needs(2)];
        let at = self.act.map(|_| c.output(reads_input(self.act) as usize)).transpose()?;
        let first = g.first().and_then(Option::as_ref);
        // The pre-activation is an output too, so an outer tape may send a cotangent for it.
        let direct = match (first, g.get(1).and_then(Option::as_ref), self.act.zip(at)) {
            (Some(g), Some(more), Some((act, at))) => Some(bind(map_vjp(act), &[g, at])?.add(more)?),
            (None, Some(more), _) => Some(more.clone()),
            _ => None,
        };
        let Some(g) = direct.as_ref().or(first) else { return Ok(Grads::new()) };
        let act = self.act.filter(|_| direct.is_none());
        let mut inputs: SmallVec<[&Tensor; 4]> = smallvec![g];
        inputs.extend(at.filter(|_| act.is_some()));
        if wants[0] {
            inputs.push(c.input(1)?);
        }
        if wants[1] {
            inputs.push(c.input(0)?);
        }
        let mut found = bind(AffineVjp { act, wants }, &inputs)?.into_iter();
        Ok(wants.iter().map(|&wanted| if wanted { found.next() } else { None }).collect())
    }
    fn batch(&self, x: &[Batched], size: usize) -> Result<BatchedOutputs> {
        if x[1..].iter().all(|operand| operand.axis.is_none()) {
            return first_in_front(*self, x, size);
        }
        // Each element of the batch has its own layer: merge the rows, then multiply as a batch of matrices.
        let batched = x[0].axis.is_some() as usize;
        let value = x[0].front()?;
        let leading = value.shape().part(batched, value.rank() - 1);
        let mut flat = Shape::new(&[leading.numel(), value.shape().at(value.rank() - 1)])?;
        if batched == 1 {
            flat = flat.inserted(0, size)?;
        }
        let operands = [Batched { value: value.reshape(&flat)?, axis: x[0].axis.map(|_| 0) }, x[1].clone()];
        let op = Matmul { left: Form::Plain, right: Form::Transposed };
        let (sum, axis) = Bilinear::batch(&op, &operands, size)?.remove(0);
        let mut sum = Batched { value: sum, axis }.materialized(size)?;
        if let Some(bias) = x.get(2) {
            let bias = bias.front()?;
            let own = bias.rank() == 2;
            sum = sum.add(&if own { bias.unsqueeze(1)? } else { bias })?;
        }
        let shape = leading.inserted(leading.rank(), sum.shape().at(2))?.inserted(0, size)?;
        Ok(self.activated(sum.reshape(&shape)?)?.into_iter().map(|y| (y, Some(0))).collect())
    }
}

/// The gradients of a layer. Inputs: g, then the value that the activation's derivative reads, if any, then
/// the weight if the gradient of x is wanted, then x if that of the weight is. Outputs: the wanted gradients.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AffineVjp {
    /// The activation.
    pub act: Option<Unary>,
    /// Whether the gradients of x, weight and bias are wanted.
    pub wants: [bool; 3],
}

impl AffineVjp {
    /// The inputs by name: the value that the activation's derivative reads, the weight, x.
    fn named<'a, T>(&self, x: &[&'a T]) -> [Option<&'a T>; 3] {
        let mut rest = x[1..].iter().copied();
        [self.act.is_some(), self.wants[0], self.wants[1]]
            .map(|is_there| if is_there { rest.next() } else { None })
    }
}

kernel! {
    AffineVjp, "linear", |self, x| -> Arrays {
        let [at, weight, value] = self.named(x);
        let moved = match (self.act, at) {
            (Some(act), Some(at)) => Some(map_vjp(act).eval_one(&[x[0], at])?),
            _ => None,
        };
        let g = rows(moved.as_ref().unwrap_or(x[0]))?;
        let mut out = Arrays::new();
        if let Some(weight) = weight {
            out.push(unrolled(on_device!(g, matmul::matmul(&g, weight))?, x[0])?);
        }
        let operands = |value| -> Result<_> { Ok((g.transposed(0, 1)?, rows(value)?)) };
        let of_weight = value.map(operands).transpose()?;
        if let (Some((g, value)), true) = (&of_weight, self.wants[2]) {
            out.extend(<[Array; 2]>::from(on_device!(g, matmul::with_row_sums(g, value))?));
            return Ok(out);
        }
        if let Some((g, value)) = of_weight {
            out.push(on_device!(g, matmul::matmul(&g, &value))?);
        }
        if self.wants[2] {
            out.push(on_device!(g, reduce::sum(&g, Axes::one(0), false))?);
        }
        Ok(out)
    },
    /// 2 m n k for x and for W, (m - 1) n for b, and the partial of the activation.
    flops |x, y| {
        let [at, weight, value] = self.named(x);
        let act = if at.is_some() { self.act.map_or(0, |act| Fun::Unary(act).partial_flops(0)) } else { 0 };
        let terms = |a: Option<&Array>| a.map_or(0, |a| cost::product(x[0].numel(), a.dim(a.rank() - 1)));
        let bias = if self.wants[2] { cost::folded(x, &y[y.len().saturating_sub(1)..]) } else { 0 };
        cost::each(x, act) + terms(weight) + terms(value) + bias
    }
}

impl Composite for AffineVjp {
    fn decompose(&self, x: &[&Tensor]) -> Result<Tensors> {
        let [at, weight, value] = self.named(x);
        let g = match (self.act, at) {
            (Some(act), Some(at)) => bind(map_vjp(act), &[x[0], at])?,
            _ => x[0].clone(),
        };
        let columns = g.shape().at(g.rank() - 1);
        let flat = |x: &Tensor| match x.rank() {
            1 => x.unsqueeze(0),
            2 => Ok(x.clone()),
            _ => x.flatten(0, -2),
        };
        let rows = flat(&g)?;
        let mut out = Tensors::new();
        if let Some(weight) = weight {
            let shape = g.shape().with(g.rank() - 1, weight.shape().at(1));
            out.push(product(&rows, Form::Plain, weight, Form::Plain)?.reshape(&shape)?);
        }
        if let Some(value) = value {
            out.push(product(&rows, Form::Transposed, &flat(value)?, Form::Plain)?);
        }
        if self.wants[2] {
            out.push(rows.sum_to(&Shape::new(&[columns])?)?);
        }
        Ok(out)
    }
}

impl Tensor {
    /// `act(x W' + b)`: `[..., k]` with weight `[n, k]` and bias `[n]` gives `[..., n]`; with weight `[k]`
    /// and a bias of one element it gives `[...]`.
    pub fn linear(&self, weight: &Tensor, bias: Option<&Tensor>, act: Option<Unary>) -> Result<Tensor> {
        let (shape, matrix) = (self.shape(), weight.shape());
        let columns = (shape.rank() > 0).then(|| shape.at(shape.rank() - 1));
        if matrix.rank() == 1 && columns == Some(matrix.at(0)) {
            return self.linear_of_vector(weight, bias, act);
        }
        if matrix.rank() != 2 || columns != Some(matrix.at(1)) {
            return Err(Error::shape(format!(
                "linear: input of shape {shape} with weight of shape {matrix}; expected (..., in) and (out, \
                 in)"
            )));
        }
        let dtypes = [self.dtype(), weight.dtype(), bias.map_or(weight.dtype(), Tensor::dtype)];
        let alike = match crate::interp::autocasting() {
            // Autocast converts all of them to one dtype, unless float64 is among them.
            true => dtypes.iter().all(|d| d.is_float() && *d != DType::F64),
            false => dtypes[0].is_float() && dtypes.iter().all(|&d| d == dtypes[0]),
        };
        if !alike || bias.is_some_and(|b| b.shape().to_vec() != [matrix.at(0)]) {
            return self.linear_in_parts(weight, bias, act);
        }
        let op = Affine { bias: bias.is_some(), act };
        let inputs: SmallVec<[&Tensor; 4]> = [self, weight].into_iter().chain(bias).collect();
        first(bind(op, &inputs)?)
    }

    /// [`Tensor::linear`] with a vector as weight: the output has no axis of its own.
    fn linear_of_vector(&self, weight: &Tensor, bias: Option<&Tensor>, act: Option<Unary>) -> Result<Tensor> {
        let rows = weight.reshape(&Shape::new(&[1, weight.numel()])?)?;
        let bias = bias.map(|b| b.reshape(&Shape::new(&[1])?)).transpose()?;
        let out = self.linear(&rows, bias.as_ref(), act)?;
        out.reshape(&self.shape().part(0, self.rank() - 1))
    }

    /// [`Tensor::linear`] where dtypes must be promoted or the bias broadcasts.
    fn linear_in_parts(&self, weight: &Tensor, bias: Option<&Tensor>, act: Option<Unary>) -> Result<Tensor> {
        let mut out = self.matmul(&weight.transpose(0, 1)?)?;
        if let Some(bias) = bias {
            // Under autocast the product determines the dtype of the whole layer, as in PyTorch.
            out = out.add(&bias_for("linear", bias, out.dtype())?)?;
        }
        act.map_or(Ok(out.clone()), |act| out.unary(act))
    }
}
