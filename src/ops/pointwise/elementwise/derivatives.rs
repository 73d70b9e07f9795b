//! The derivatives of the rows as operations of their own, each in one pass: [`MapVjp`] for the tables'
//! partials, [`MapVjpJvp`] for how these change.

use super::{Find, Run};
use crate::cpu::pointwise::fused::ElementFn;
use crate::cpu::pointwise::map::element_fn;
use crate::math::real::{Pointwise, Real};
use crate::math::terms::Terms;
use crate::ops::pointwise::binary::Binary;
use crate::ops::pointwise::sym;
use crate::ops::pointwise::table::{Arg, Fun, Params, Slope, Visit};
use crate::ops::pointwise::unary::Unary;
use crate::ops::prelude::*;

/// A partial whose first operand is the cotangent: where that is zero it stays zero, whatever the slope is
/// there. So a branch that `where` did not take cannot spoil a gradient.
#[derive(Clone, Copy)]
struct ZeroGuarded<P>(P);

impl<const N: usize, P: Pointwise<N>> Pointwise<N> for ZeroGuarded<P> {
    const IS_WIDEST: bool = P::IS_WIDEST;
    fn attributes(&self) -> [f64; 2] {
        self.0.attributes()
    }
    #[inline(always)]
    fn apply<R: Real>(&self, x: [R; N]) -> R {
        R::select(x[0].eq(R::lit(0.0)), x[0], self.0.apply(x))
    }
    fn terms(&self, short_circuits: bool) -> Terms {
        self.0.terms(short_circuits).zero_guarded()
    }
}

/// Runs a partial.
struct RunPartial<'a>(Run<'a>);

impl Visit for RunPartial<'_> {
    type Out = Result<Array>;
    fn visit<const N: usize, P: Pointwise<N>>(self, rule: P) -> Result<Array> {
        self.0.visit(ZeroGuarded(rule))
    }
}

/// Finds the loop of a partial.
struct FindPartial(Find);

impl Visit for FindPartial {
    type Out = Option<ElementFn>;
    fn visit<const N: usize, P: Pointwise<N>>(self, rule: P) -> Option<ElementFn> {
        self.0.visit(ZeroGuarded(rule))
    }
}

/// Finds the loop of a derivative of a partial. Those are many, rare and long: no machine code is made of
/// them.
struct FindJet(Find);

impl Visit for FindJet {
    type Out = Option<ElementFn>;
    fn visit<const N: usize, P: Pointwise<N>>(self, rule: P) -> Option<ElementFn> {
        let Find { dtype, operands } = self.0;
        if N == operands { element_fn(ZeroGuarded(rule), dtype, false) } else { None }
    }
}

/// Reads a rule on tensors, of which those whose bit is set are known to be 0.
struct Read<'a>(&'a [&'a Tensor], u32);

impl Visit for Read<'_> {
    type Out = Result<Tensor>;
    fn visit<const N: usize, P: Pointwise<N>>(self, rule: P) -> Result<Tensor> {
        sym::read(self.0, self.1, rule)
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
        let MapVjp { fun, wrt, p } = *self;
        fun.partial(wrt as usize, p.get(), v).unwrap_or_else(|| {
            Err(Error::value(format!("internal: {} has no derivative for input {wrt}", fun.name())))
        })
    }
}

kernel! {
    MapVjp, self.fun.name(), |self, x| {
        self.visit(RunPartial(Run { x, fun: self.fun, rule: self.wrt + 1, p: self.p }))
    },
    element_fn |dtypes| {
        self.fun.partial(self.wrt as usize, self.p.get(), FindPartial(Find::of(dtypes)?)).flatten()
    },
    /// As the partial of its row says, per output.
    flops |_x, y| cost::each(y, self.fun.partial_flops(self.wrt as usize))
}

impl Composite for MapVjp {
    const VJP: &'static str = "the same of h for g; its derivative along x, y, o with h for a tangent";
    const JVP: &'static str = "the same of t_g, plus its derivative along t_x, t_y, t_o";
    const OWN: Own = Own::ALL;

    fn decompose(&self, x: &[&Tensor]) -> Result<Tensors> {
        one!(read(x, 0, |formula| self.visit(formula)))
    }
    fn saves(&self, needs: Needs, inputs: usize) -> Saves {
        let reads = (1..inputs).fold(Saves::NONE, |saves, i| saves.and(Saves::input(i)));
        reads.and(Saves::input(0).when((1..inputs).any(|i| needs.has(i))))
    }
    /// The same function of the cotangent's cotangent; and, the Jacobians being diagonal, its derivatives
    /// along the values that it reads, with the cotangent for a tangent.
    fn vjp(&self, c: &Vjp, h: &[Option<Tensor>]) -> Result<Grads> {
        let Some(Some(h)) = h.first() else { return Ok(Grads::new()) };
        let reads = (1..c.inputs()).map(|i| c.input(i)).collect::<Result<SmallVec<[&Tensor; 4]>>>()?;
        let mut grads = Grads::new();
        for i in 0..c.inputs() {
            if !c.needs(i) {
                grads.push(None);
                continue;
            }
            let mut inputs: SmallVec<[&Tensor; 8]> = smallvec![if i == 0 { h } else { c.input(0)? }];
            inputs.extend_from_slice(&reads);
            grads.push(Some(if i == 0 {
                bind(*self, &inputs)?
            } else {
                inputs.push(h);
                bind(MapVjpJvp { of: *self, moves: 1 << (i - 1) }, &inputs)?
            }));
        }
        Ok(grads)
    }
    /// Linear in the cotangent, so that the same operation pushes the cotangent's tangent.
    fn jvp(&self, x: &[&Tensor], _y: &[Tensor], t: &[Option<Tensor>]) -> Result<Grads> {
        let mut total = None;
        if let Some(t) = &t[0] {
            let mut inputs: SmallVec<[&Tensor; 4]> = x.into();
            inputs[0] = t;
            total = Some(bind(*self, &inputs)?);
        }
        if t[1..].iter().any(Option::is_some) {
            let moves = t[1..].iter().enumerate().fold(0, |set, (i, t)| set | (t.is_some() as u8) << i);
            let inputs: SmallVec<[&Tensor; 8]> =
                x.iter().copied().chain(t[1..].iter().filter_map(Option::as_ref)).collect();
            total = added(total, Some(bind(MapVjpJvp { of: *self, moves }, &inputs)?))?;
        }
        Ok(smallvec![total])
    }
    fn batch(&self, x: &[Batched], size: usize) -> Result<BatchedOutputs> {
        let (g, at) = (&x[0], &x[1..]);
        if self.fun.is_found_once(g, at) {
            let one = g.value.scalar_like(1.0)?;
            let inputs: SmallVec<[&Tensor; 4]> =
                std::iter::once(&one).chain(at.iter().map(|operand| &operand.value)).collect();
            let slope = Batched { value: bind(*self, &inputs)?, axis: None };
            let times = MapVjp { fun: Fun::Binary(Binary::Mul), wrt: 0, p: Params::ZERO };
            return aligned(times, &[g.clone(), slope], size);
        }
        aligned(*self, x, size)
    }
}

impl Fun {
    /// Whether a slope at one point, for many cotangents or tangents `t`, is worth finding once.
    fn is_found_once(self, t: &Batched, point: &[Batched]) -> bool {
        self.columns().slope == Slope::Costly
            && t.axis.is_some()
            && point.iter().all(|operand| operand.axis.is_none())
    }
}

/// How `of` changes with the values that it reads, in one pass. Inputs: those of `of`, then a tangent for
/// each value read that moves.
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

kernel! {
    MapVjpJvp, self.of.name(), |self, x| {
        // The elementwise kernels of GPUs take four operands.
        if x[0].device() != Device::Cpu && self.reads() > 1 {
            return by_parts(self, x)?.pop().ok_or_else(no_output);
        }
        let (fun, rule, p) = (self.of.fun, self.of.wrt + 129, self.of.p);
        if x.len() == 1 + 2 * self.reads() {
            return self.visit(RunPartial(Run { x, fun, rule, p }));
        }
        let zero = Array::full(Shape::SCALAR, 0.0, x[0].dtype())?;
        self.visit(RunPartial(Run { x: &self.operands(x, &zero), fun, rule, p }))
    },
    element_fn |dtypes| {
        self.of.fun.jet(self.of.wrt as usize, self.of.p.get(), FindJet(Find::of(dtypes)?)).flatten()
    },
    /// As the derivative of the partial says, per output.
    flops |_x, y| cost::each(y, self.of.fun.jet_flops(self.of.wrt as usize))
}

impl Composite for MapVjpJvp {
    const OWN: Own = Own { batch: true, ..Own::NONE };

    fn decompose(&self, x: &[&Tensor]) -> Result<Tensors> {
        let zero = x[0].scalar_like(0.0)?;
        let reads = self.reads();
        let zeros = (0..reads).fold(0, |set, i| set | u32::from(self.moves >> i & 1 == 0) << (1 + reads + i));
        one!(read(&self.operands(x, &zero), zeros, |formula| self.visit(formula)))
    }
    fn batch(&self, x: &[Batched], size: usize) -> Result<BatchedOutputs> {
        if let [at @ .., t] = x
            && self.moves.count_ones() == 1
            && self.of.fun.is_found_once(t, at)
        {
            // A tangent of 0 stays 0 where the slope is not finite: the VJP of `exp` has that guard.
            let one = t.value.scalar_like(1.0)?;
            let inputs: SmallVec<[&Tensor; 8]> =
                at.iter().map(|operand| &operand.value).chain([&one]).collect();
            let slope = Batched { value: bind(*self, &inputs)?, axis: None };
            let times = MapVjp { fun: Fun::Unary(Unary::Exp), wrt: 0, p: Params::ZERO };
            return aligned(times, &[t.clone(), slope], size);
        }
        aligned(*self, x, size)
    }
}

/// A fused elementwise kernel as the operations of its composition.
pub fn by_parts(op: &impl Composite, x: &[&Array]) -> Result<Arrays> {
    let x: SmallVec<[Tensor; 8]> = x.iter().map(|&x| x.clone().into()).collect();
    let out = op.decompose(&x.iter().collect::<SmallVec<[&Tensor; 8]>>())?;
    out.iter().map(|y| y.array(op.name()).cloned()).collect()
}

/// A formula as tensor operations, in the shape of its operands: one that the formula leaves out may be what
/// gives the result an axis. Halves beside float32 are converted first, and the result last.
fn read(x: &[&Tensor], zeros: u32, visit: impl FnOnce(Read) -> Result<Tensor>) -> Result<Tensor> {
    let half = x.iter().map(|x| x.dtype()).find(|dtype| dtype.is_half());
    if let Some(half) = half
        && x.iter().any(|x| x.dtype() == DType::F32)
    {
        let wide: SmallVec<[Tensor; 8]> = x.iter().map(|x| x.cast(DType::F32)).collect::<Result<_>>()?;
        return read(&wide.iter().collect::<SmallVec<[&Tensor; 8]>>(), zeros, visit)?.cast(half);
    }
    let out = visit(Read(x, zeros))?;
    let shape = x.iter().try_fold(Shape::SCALAR, |shape, x| shape.broadcast(&x.shape()));
    out.expand(&shape.ok_or_else(|| Error::shape("internal: operands that do not broadcast"))?)
}
