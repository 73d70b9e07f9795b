//! The operations behind the tables of `unary.rs` and `binary.rs`: one for all rows, one for all derivatives.

use crate::array::Array;
use crate::autodiff::node::Vjp;
use crate::buffer::Device;
use crate::cost;
use crate::cpu::lane::F64;
use crate::error::{Error, Result};
use crate::op::{
    Arrays, BY_PARTS, BatchedOutputs, Composite, Elementwise, Grads, Kernel, Lane, Needs, Own, Reads, Saves,
};
use crate::ops::binary::Binary;
use crate::ops::integer::eval_int;
use crate::ops::table::{Arg, Fun, Params, Visit, pointwise_rule};
use crate::ops::unary::{Parametric, Unary};
use crate::ops::{one, sym};
use crate::real::{Left, Pointwise, Real};
use crate::shape::Shape;
use crate::tensor::{Tensor, Tensors};
use smallvec::{SmallVec, smallvec};

pub use crate::ops::operand::{Operand, binary};

struct Run<'a> {
    x: &'a [&'a Array],
    /// The row, for its name: looked up where it is needed, which is not on the CPU.
    fun: Fun,
    /// Distinguishes the derivative and attributes of equal names in the cache of GPU pipelines.
    #[cfg_attr(not(feature = "gpu"), allow(dead_code))]
    key: (u8, Params),
}

impl<'a> Run<'a> {
    fn operands<const N: usize>(&self) -> Result<[&'a Array; N]> {
        self.x.try_into().map_err(|_| {
            Error::value(format!("internal: {} takes {N} operands, got {}", self.fun.name(), self.x.len()))
        })
    }
}

impl Visit for Run<'_> {
    type Out = Result<Array>;
    fn visit<const N: usize, P: Pointwise<N>>(self, rule: P) -> Result<Array> {
        let x = self.operands::<N>()?;
        match x.first().map_or(Device::Cpu, |x| x.device()) {
            Device::Cpu => crate::cpu::map::pointwise(x, rule),
            #[cfg(feature = "gpu")]
            Device::Gpu(_) => {
                let key = std::hash::BuildHasher::hash_one(&rustc_hash::FxBuildHasher, self.key);
                crate::gpu::kernels::map::pointwise(self.fun.name(), key, x, rule)
            }
            #[cfg(not(feature = "gpu"))]
            Device::Gpu(_) => Err(Error::device("this build of wengert has no GPU support")),
        }
    }
}

/// Runs a row over memory that exists; see [`Map::eval_over`].
struct RunOver<'a> {
    out: &'a Array,
    run: Run<'a>,
}

impl Visit for RunOver<'_> {
    type Out = Result<()>;
    fn visit<const N: usize, P: Pointwise<N>>(self, rule: P) -> Result<()> {
        crate::cpu::map::pointwise_into(self.out, self.run.operands::<N>()?, rule)
    }
}

/// A partial whose first operand is the cotangent: where that is zero it stays zero, whatever the slope is there. So a
/// branch that `where` did not take cannot spoil a gradient.
#[derive(Clone, Copy)]
struct Quiet<P>(P);

impl<const N: usize, P: Pointwise<N>> Pointwise<N> for Quiet<P> {
    #[inline(always)]
    fn apply<R: Real>(&self, x: [R; N]) -> R
    where
        f64: Left<R>,
    {
        R::select(x[0].eq(R::lit(0.0)), x[0], self.0.apply(x))
    }
}

/// Runs a partial.
struct RunPartial<'a>(Run<'a>);

impl Visit for RunPartial<'_> {
    type Out = Result<Array>;
    fn visit<const N: usize, P: Pointwise<N>>(self, rule: P) -> Result<Array> {
        self.0.visit(Quiet(rule))
    }
}

/// The constant factor of a derivative that reads the cotangent alone: what it makes of 1.
struct Factor;

impl Visit for Factor {
    type Out = Result<f64>;
    fn visit<const N: usize, P: Pointwise<N>>(self, rule: P) -> Result<f64> {
        Ok(rule.apply([F64(1.0); N]).0)
    }
}

struct Read<'a>(&'a [&'a Tensor]);

impl Visit for Read<'_> {
    type Out = Result<Tensor>;
    fn visit<const N: usize, P: Pointwise<N>>(self, rule: P) -> Result<Tensor> {
        sym::read(self.0, rule)
    }
}

/// A row of a table, applied to its inputs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Map {
    /// The row.
    pub fun: Fun,
    /// Its attributes.
    pub p: Params,
}

impl Map {
    /// Computes the row for floats on the CPU and writes the result to `out`, which may be one of the operands or overlap
    /// them. They broadcast to its shape and have its dtype.
    pub fn eval_over(&self, out: &Array, x: &[&Array]) -> Result<()> {
        self.fun.value(self.p.get(), RunOver { out, run: Run { x, fun: self.fun, key: (0, self.p) } })
    }
}

impl Kernel for Map {
    fn name(&self) -> &'static str {
        self.fun.name()
    }
    #[inline]
    fn eval(&self, x: &[&Array]) -> Result<Arrays> {
        one!(self.eval_one(x))
    }
    #[inline]
    fn eval_one(&self, x: &[&Array]) -> Result<Array> {
        if !x[0].dtype().is_float() {
            return eval_int(self, x);
        }
        self.fun.value(self.p.get(), Run { x, fun: self.fun, key: (0, self.p) })
    }
    /// As its row says, per output.
    fn flops(&self, _x: &[&Array], y: &[Array]) -> u64 {
        cost::each(y, self.fun.flops())
    }
}

impl Elementwise for Map {
    #[inline]
    fn reads(&self, wrt: usize) -> Saves {
        self.fun.saves(wrt)
    }
    fn partial(&self, wrt: usize, g: &Tensor, reads: &Reads) -> Result<Option<Tensor>> {
        let Some(args) = self.fun.reads(wrt) else { return Ok(None) };
        if args.is_empty() {
            let factor = self.fun.partial(wrt, self.p.get(), Factor).transpose()?;
            return match factor {
                None => Ok(None),
                Some(1.0) => Ok(Some(g.clone())),
                Some(-1.0) => g.neg().map(Some),
                Some(factor) => g.mul(factor).map(Some),
            };
        }
        let mut inputs: SmallVec<[&Tensor; 4]> = SmallVec::new();
        inputs.push(g);
        for arg in args {
            let value = match arg {
                Arg::X => reads.inputs[0],
                Arg::Y => reads.inputs[1],
                Arg::Out => reads.output,
            };
            inputs
                .push(value.ok_or_else(|| Error::value("internal: a derivative reads what was not saved"))?);
        }
        let op = MapVjp { fun: self.fun, wrt: wrt as u8, p: self.p };
        crate::bind::bind1(op, &inputs).map(Some)
    }
}

/// `g * d out / d x_wrt` of a row, in one pass. Inputs: `g`, then what the derivative reads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MapVjp {
    /// The row.
    pub fun: Fun,
    /// The input it is the derivative for.
    pub wrt: u8,
    /// The row's attributes.
    pub p: Params,
}

impl MapVjp {
    fn visit<V: Visit<Out = Result<T>>, T>(&self, v: V) -> Result<T> {
        self.fun.partial(self.wrt as usize, self.p.get(), v).unwrap_or_else(|| {
            Err(Error::value(format!(
                "internal: {} has no derivative for input {}",
                self.fun.name(),
                self.wrt
            )))
        })
    }
}

impl Kernel for MapVjp {
    fn name(&self) -> &'static str {
        self.fun.name()
    }
    fn eval(&self, x: &[&Array]) -> Result<Arrays> {
        one!(self.eval_one(x))
    }
    #[inline]
    fn eval_one(&self, x: &[&Array]) -> Result<Array> {
        self.visit(RunPartial(Run { x, fun: self.fun, key: (self.wrt + 1, self.p) }))
    }
    /// As the partial of its row says, per output.
    fn flops(&self, _x: &[&Array], y: &[Array]) -> u64 {
        cost::each(y, self.fun.partial_flops(self.wrt as usize))
    }
}

impl Composite for MapVjp {
    const VJP: &'static str = "the same of h for g; its derivative along x, y, o with h for a tangent";
    const JVP: &'static str = "the same of t_g, plus its derivative along t_x, t_y, t_o";

    fn decompose(&self, x: &[&Tensor]) -> Result<Tensors> {
        one!(read(x, |formula| self.visit(formula)))
    }
    fn own(&self) -> Own {
        Own { vjp: true, jvp: true, batch: true }
    }
    fn saves(&self, needs: Needs, inputs: usize) -> Saves {
        let reads = (1..inputs).fold(Saves::NONE, |saves, i| saves.and(Saves::input(i)));
        reads.and(Saves::input(0).when((1..inputs).any(|i| needs.has(i))))
    }
    /// The same function of the cotangent's cotangent; and, the Jacobians being diagonal, its derivatives along the values
    /// that it reads, with the cotangent for a tangent.
    fn vjp(&self, c: &Vjp, h: &[Option<Tensor>]) -> Result<Grads> {
        let Some(Some(h)) = h.first() else { return Ok(Grads::new()) };
        let reads = (1..c.inputs()).map(|i| c.input(i)).collect::<Result<SmallVec<[&Tensor; 4]>>>()?;
        let mut grads = Grads::new();
        for i in 0..c.inputs() {
            let mut inputs: SmallVec<[&Tensor; 8]> = SmallVec::new();
            grads.push(if !c.needs(i) {
                None
            } else if i == 0 {
                inputs.push(h);
                inputs.extend(reads.iter().copied());
                Some(crate::bind::bind1(*self, &inputs)?)
            } else {
                inputs.push(c.input(0)?);
                inputs.extend(reads.iter().copied());
                inputs.push(h);
                Some(crate::bind::bind1(MapVjpJvp { of: *self, moves: 1 << (i - 1) }, &inputs)?)
            });
        }
        Ok(grads)
    }
    /// Linear in the cotangent, so that the same operation pushes the cotangent's tangent.
    fn jvp(&self, x: &[&Tensor], _y: &[Tensor], t: &[Option<Tensor>]) -> Result<Grads> {
        let mut total = None;
        if let Some(t) = &t[0] {
            let mut inputs: SmallVec<[&Tensor; 4]> = x.iter().copied().collect();
            inputs[0] = t;
            total = Some(crate::bind::bind1(*self, &inputs)?);
        }
        if t[1..].iter().any(Option::is_some) {
            let moves = t[1..].iter().enumerate().fold(0, |set, (i, t)| set | (t.is_some() as u8) << i);
            let inputs: SmallVec<[&Tensor; 8]> =
                x.iter().copied().chain(t[1..].iter().filter_map(Option::as_ref)).collect();
            let moved = crate::bind::bind1(MapVjpJvp { of: *self, moves }, &inputs)?;
            total = Some(match total {
                Some(total) => total.add(&moved)?,
                None => moved,
            });
        }
        Ok(smallvec![total])
    }
    fn batch(&self, x: &[Lane], _size: usize) -> Result<BatchedOutputs> {
        if self.fun.has_costly_slope() && x[0].axis.is_some() && x[1..].iter().all(|lane| lane.axis.is_none())
        {
            // Many cotangents at one point: the slope there is found once.
            let one = x[0].value.scalar_like(1.0)?;
            let at: SmallVec<[&Tensor; 4]> =
                std::iter::once(&one).chain(x[1..].iter().map(|lane| &lane.value)).collect();
            let slope = crate::bind::bind1(*self, &at)?;
            let times = MapVjp { fun: Fun::Binary(Binary::Mul), wrt: 0, p: Params::default() };
            return aligned(times, &[x[0].clone(), Lane { value: slope, axis: None }]);
        }
        aligned(*self, x)
    }
}

impl Fun {
    /// Whether a derivative is the cotangent times a slope that takes an exponential or the like to find.
    fn has_costly_slope(self) -> bool {
        match self {
            Fun::Unary(f) => matches!(
                f,
                Unary::Sin
                    | Unary::Cos
                    | Unary::Sinh
                    | Unary::Cosh
                    | Unary::Erf
                    | Unary::Erfc
                    | Unary::Erfinv
                    | Unary::Ndtr
                    | Unary::Lgamma
                    | Unary::Digamma
                    | Unary::I0
                    | Unary::I0e
                    | Unary::I1
                    | Unary::I1e
                    | Unary::Gelu
                    | Unary::GeluTanh
                    | Unary::Silu
            ),
            Fun::Parametric(f) => matches!(f, Parametric::Softplus | Parametric::Polygamma),
            Fun::Binary(_) => false,
        }
    }
}

/// How `of` changes with the values that it reads, in one pass. Inputs: those of `of`, then a tangent for each value
/// read that moves.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MapVjpJvp {
    /// The derivative.
    pub of: MapVjp,
    /// Which of the values read move: bit `i` for the `i`th.
    pub moves: u8,
}

impl MapVjpJvp {
    fn visit<V: Visit<Out = Result<T>>, T>(&self, v: V) -> Result<T> {
        let MapVjp { fun, wrt, p } = self.of;
        fun.jet(wrt as usize, p.get(), v).unwrap_or_else(|| {
            Err(Error::value(format!("internal: the derivative of {} reads nothing", fun.name())))
        })
    }

    /// How many values the derivative reads.
    fn reads(&self) -> usize {
        self.of.fun.reads(self.of.wrt as usize).map_or(0, <[Arg]>::len)
    }

    /// The operands of the rule: the inputs, with `zero` for tangents that are not there.
    fn operands<'a, T>(&self, x: &[&'a T], zero: &'a T) -> SmallVec<[&'a T; 8]> {
        let reads = self.reads();
        let mut tangents = x[1 + reads..].iter().copied();
        let mut out: SmallVec<[&'a T; 8]> = x[..1 + reads].iter().copied().collect();
        out.extend((0..reads).map(|i| {
            let next = if self.moves >> i & 1 == 1 { tangents.next() } else { None };
            next.unwrap_or(zero)
        }));
        out
    }
}

impl Kernel for MapVjpJvp {
    fn name(&self) -> &'static str {
        self.of.name()
    }
    fn eval(&self, x: &[&Array]) -> Result<Arrays> {
        // The elementwise kernels of GPUs take four operands.
        if x[0].device() != Device::Cpu && self.reads() > 1 {
            return by_parts(self, x);
        }
        let (fun, key) = (self.of.fun, (self.of.wrt + 129, self.of.p));
        if x.len() == 1 + 2 * self.reads() {
            return one!(self.visit(RunPartial(Run { x, fun, key })));
        }
        let zero = Array::full(Shape::SCALAR, 0.0, x[0].dtype())?;
        one!(self.visit(RunPartial(Run { x: &self.operands(x, &zero), fun, key })))
    }
    /// As the derivative of the partial says, per output.
    fn flops(&self, _x: &[&Array], y: &[Array]) -> u64 {
        cost::each(y, self.of.fun.jet_flops(self.of.wrt as usize))
    }
}

impl Composite for MapVjpJvp {
    const VJP: &'static str = BY_PARTS;
    const JVP: &'static str = BY_PARTS;

    fn decompose(&self, x: &[&Tensor]) -> Result<Tensors> {
        let zero = x[0].scalar_like(0.0)?;
        one!(read(&self.operands(x, &zero), |formula| self.visit(formula)))
    }
    fn own(&self) -> Own {
        Own { batch: true, ..Own::default() }
    }
    fn batch(&self, x: &[Lane], _size: usize) -> Result<BatchedOutputs> {
        if let [at @ .., t] = x
            && self.of.fun.has_costly_slope()
            && self.moves.count_ones() == 1
            && t.axis.is_some()
            && at.iter().all(|lane| lane.axis.is_none())
        {
            // Many tangents at one point: as above. A tangent of 0 stays 0 where the slope is not finite, for which
            // the derivative of the exponential is the product.
            let one = t.value.scalar_like(1.0)?;
            let inputs: SmallVec<[&Tensor; 8]> = at.iter().map(|lane| &lane.value).chain([&one]).collect();
            let slope = crate::bind::bind1(*self, &inputs)?;
            let times = MapVjp { fun: Fun::Unary(Unary::Exp), wrt: 0, p: Params::default() };
            return aligned(times, &[t.clone(), Lane { value: slope, axis: None }]);
        }
        aligned(*self, x)
    }
}

/// A fused elementwise kernel as the operations of its composition.
pub fn by_parts(op: &impl Composite, x: &[&Array]) -> Result<Arrays> {
    let x: SmallVec<[Tensor; 8]> = x.iter().map(|&x| x.clone().into()).collect();
    let out = op.decompose(&x.iter().collect::<SmallVec<[&Tensor; 8]>>())?;
    out.iter().map(|y| y.array(op.name()).cloned()).collect()
}

/// A formula as tensor operations, in the shape of its operands: one that the formula leaves out may be what gives
/// the result an axis.
fn read(x: &[&Tensor], visit: impl FnOnce(Read) -> Result<Tensor>) -> Result<Tensor> {
    let out = visit(Read(x))?;
    let shape = x.iter().try_fold(Shape::SCALAR, |shape, x| shape.broadcast(&x.shape()));
    out.expand(&shape.ok_or_else(|| Error::shape("internal: operands that do not broadcast"))?)
}

/// Runs an elementwise operation on operands whose batch axes stand in front.
fn aligned<O: Kernel + Into<crate::op::Op>>(op: O, x: &[Lane]) -> Result<BatchedOutputs> {
    let aligned = align(x)?;
    let refs: SmallVec<[&Tensor; 8]> = aligned.iter().collect();
    Ok(smallvec![(crate::bind::bind1(op, &refs)?, Some(0))])
}

/// Operands of a batched elementwise operation with the batch axis in front of equally many others.
pub fn align(x: &[Lane]) -> Result<SmallVec<[Tensor; 4]>> {
    let rank = x.iter().map(|l| l.value.rank() - l.axis.is_some() as usize).max().unwrap_or(0);
    x.iter()
        .map(|lane| {
            let value = lane.front()?;
            if lane.axis.is_none() || value.rank() == rank + 1 {
                return Ok(value);
            }
            let mut dims = value.shape().to_vec();
            let missing = rank + 1 - dims.len();
            dims.splice(1..1, std::iter::repeat_n(1, missing));
            value.reshape(&crate::shape::Shape::new(&dims)?)
        })
        .collect()
}

/// `total += g`, for the accumulation of gradients: floats of the same shape and dtype on the CPU.
pub fn add_in_place(total: &Array, g: &Array) -> Result<()> {
    if crate::cpu::map::add_small(total, g)? {
        return Ok(());
    }
    let p = [0.0; 2];
    crate::cpu::map::pointwise_into(total, [total, g], pointwise_rule!(p; [x, y] => x + y))
}
