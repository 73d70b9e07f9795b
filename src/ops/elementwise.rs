//! The machinery behind the tables of `unary.rs` and `binary.rs`: one operation for all rows, one for all derivatives.

use crate::array::Array;
use crate::buffer::Device;
use crate::dtype::{Category, DType};
use crate::error::{Error, Result};
use crate::op::{Arrays, Composite, Elementwise, Kernel, Lane, Own, Reads, Saves};
use crate::op::BatchedOutputs;
use crate::ops::binary::{Binary, binary_table};
use crate::ops::compare::{Logic, Logical};
use crate::ops::unary::{Parametric, Unary, unary_table};
use crate::ops::{one, sym};
use crate::real::{Integer, Pointwise, PointwiseInt};
use crate::rule;
use crate::tensor::{Tensor, Tensors};
use smallvec::{SmallVec, smallvec};

// ---- shared pieces of formulas --------------------------------------------------------------------------------------

rule! {
    /// -1, 0 or 1; NaN stays NaN.
    pub fn sign(x) {
        let one = R::select(x.gt(R::lit(0.0)), R::lit(1.0), R::select(x.lt(R::lit(0.0)), R::lit(-1.0), R::lit(0.0)));
        R::select(x.eq(x), one, x)
    }
}
rule! {
    /// The logistic function without overflow: the exponential is always of a non-positive number.
    pub fn stable_sigmoid(x) {
        let e = (-(x.abs())).exp();
        R::select(x.lt(R::lit(0.0)), e, R::lit(1.0)) / (1.0 + e)
    }
}
rule! {
    /// Density of the standard normal distribution.
    pub fn normal_pdf(x) 0.3989422804014327 * (-0.5 * (x * x)).exp()
}
rule! {
    /// Derivative of GELU's tanh approximation.
    pub fn gelu_slope(x) {
        let t = (0.7978845608028654 * (x + 0.044715 * (x * x * x))).tanh();
        0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * (0.7978845608028654 * (1.0 + 0.134145 * (x * x)))
    }
}
rule! {
    /// `value` where `condition` is not 0, else 0.
    pub fn where_nonzero(condition, value) R::select(condition.eq(R::lit(0.0)), R::lit(0.0), value)
}
rule! {
    /// `g` where `winner > loser`, half of it at a tie.
    pub fn half_tie(winner, loser, g) {
        R::select(winner.gt(loser), g, R::select(winner.eq(loser), 0.5 * g, R::lit(0.0)))
    }
}

// ---- from table rows to types ---------------------------------------------------------------------------------------

/// A value that a derivative reads besides the cotangent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arg {
    /// The first input.
    X,
    /// The second input.
    Y,
    /// The output.
    Out,
}

impl Arg {
    fn saves(self) -> Saves {
        match self {
            Arg::X => Saves::input(0),
            Arg::Y => Saves::input(1),
            Arg::Out => Saves::OUTPUTS,
        }
    }
}

/// Something that can be done with any row of any table.
pub trait Visit {
    /// What comes of it.
    type Out;
    /// Does it.
    fn visit<const N: usize, P: Pointwise<N>>(self, rule: P) -> Self::Out;
}

macro_rules! arg {
    (x) => { $crate::ops::elementwise::Arg::X };
    (y) => { $crate::ops::elementwise::Arg::Y };
    (o) => { $crate::ops::elementwise::Arg::Out };
}
pub(crate) use arg;

/// A function with attributes `p` as a type that implements `Pointwise`.
macro_rules! pointwise_rule {
    ($p:ident; [$($x:ident),*] => $body:expr) => {{
        #[derive(Clone, Copy)]
        struct Rule([f64; 2]);
        impl $crate::real::Pointwise<{ [$(stringify!($x)),*].len() }> for Rule {
            #[inline(always)]
            #[allow(unused_variables)]
            fn apply<R: $crate::real::Real>(&self, [$($x),*]: [R; [$(stringify!($x)),*].len()]) -> R
            where
                f64: $crate::real::Left<R>,
            {
                let $p = self.0;
                $body
            }
        }
        Rule($p)
    }};
}
pub(crate) use pointwise_rule;

/// Makes the enum of a table, its names and documentation, and the way from a row to its rules.
macro_rules! define_table {
    ($kind:ident, $n:literal, $p:ident; $(
        $(#[doc = $doc:literal])* $name:ident $method:ident($($x:ident),+) = $value:expr,
        [$(($g:ident $(, $arg:ident)*) => $partial:expr),*];
    )*) => {
        /// The rows of the table.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum $kind { $($(#[doc = $doc])* $name,)* }

        impl $kind {
            /// Every row.
            pub const ALL: &'static [$kind] = &[$($kind::$name,)*];

            /// The name of the method.
            pub fn name(self) -> &'static str {
                match self { $($kind::$name => stringify!($method),)* }
            }

            /// The first line of the documentation.
            pub fn doc(self) -> &'static str {
                match self { $($kind::$name => concat!($($doc, "\n"),*).trim_ascii(),)* }
            }

            /// What the partial for each input reads; empty where the derivative is zero.
            pub fn reads(self) -> &'static [&'static [$crate::ops::elementwise::Arg]] {
                match self { $($kind::$name => &[$(&[$($crate::ops::elementwise::arg!($arg)),*]),*],)* }
            }

            /// Does `v` with the function.
            pub fn value<V: $crate::ops::elementwise::Visit>(self, $p: [f64; 2], v: V) -> V::Out {
                match self {
                    $($kind::$name => v.visit($crate::ops::elementwise::pointwise_rule!($p; [$($x),+] => $value)),)*
                }
            }

            /// Does `v` with the partial for input `wrt`; `None` where it is zero.
            #[allow(unused_variables, unused_mut, unused_assignments)]
            pub fn partial<V: $crate::ops::elementwise::Visit>(self, wrt: usize, $p: [f64; 2], v: V) -> Option<V::Out> {
                match self {
                    $($kind::$name => {
                        let mut position = 0;
                        $(
                            if position == wrt {
                                return Some(v.visit(
                                    $crate::ops::elementwise::pointwise_rule!($p; [$g $(, $arg)*] => $partial),
                                ));
                            }
                            position += 1;
                        )*
                        None
                    })*
                }
            }
        }
    };
}
pub(crate) use define_table;

/// A row of one of the tables.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fun {
    /// One input.
    Unary(Unary),
    /// One input and attributes.
    Parametric(Parametric),
    /// Two inputs.
    Binary(Binary),
}

impl Fun {
    fn name(self) -> &'static str {
        match self {
            Fun::Unary(f) => f.name(),
            Fun::Parametric(f) => f.name(),
            Fun::Binary(f) => f.name(),
        }
    }
    fn reads(self, wrt: usize) -> Option<&'static [Arg]> {
        match self {
            Fun::Unary(f) => f.reads().get(wrt).copied(),
            Fun::Parametric(f) => f.reads().get(wrt).copied(),
            Fun::Binary(f) => f.reads().get(wrt).copied(),
        }
    }
    fn value<V: Visit>(self, p: [f64; 2], v: V) -> V::Out {
        match self {
            Fun::Unary(f) => f.value(p, v),
            Fun::Parametric(f) => f.value(p, v),
            Fun::Binary(f) => f.value(p, v),
        }
    }
    fn partial<V: Visit>(self, wrt: usize, p: [f64; 2], v: V) -> Option<V::Out> {
        match self {
            Fun::Unary(f) => f.partial(wrt, p, v),
            Fun::Parametric(f) => f.partial(wrt, p, v),
            Fun::Binary(f) => f.partial(wrt, p, v),
        }
    }
}

/// A pair of `f64` attributes that can be compared and hashed: equal when their bits are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Params([u64; 2]);

impl From<[f64; 2]> for Params {
    fn from(p: [f64; 2]) -> Params {
        Params(p.map(f64::to_bits))
    }
}
impl Params {
    /// The attributes.
    pub fn get(self) -> [f64; 2] {
        self.0.map(f64::from_bits)
    }
}

// ---- reading a row on concrete arrays -------------------------------------------------------------------------------

struct Run<'a> {
    x: &'a [&'a Array],
    #[cfg_attr(not(feature = "gpu"), allow(dead_code))]
    name: &'static str,
    /// Distinguishes the derivative and attributes of equal names in the cache of GPU pipelines.
    #[cfg_attr(not(feature = "gpu"), allow(dead_code))]
    key: (u8, Params),
}

impl Visit for Run<'_> {
    type Out = Result<Array>;
    fn visit<const N: usize, P: Pointwise<N>>(self, rule: P) -> Result<Array> {
        let x: [&Array; N] = self.x.try_into().map_err(|_| {
            Error::value(format!("internal: {} takes {N} operands, got {}", self.name, self.x.len()))
        })?;
        match x.first().map_or(Device::Cpu, |x| x.device()) {
            Device::Cpu => crate::cpu::map::pointwise(x, rule),
            #[cfg(feature = "gpu")]
            Device::Gpu(_) => {
                let key = std::hash::BuildHasher::hash_one(&rustc_hash::FxBuildHasher, self.key);
                crate::gpu::kernels::map::pointwise(self.name, key, x, rule)
            }
            #[cfg(not(feature = "gpu"))]
            Device::Gpu(_) => Err(Error::device("this build of wengert has no GPU support")),
        }
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

impl Kernel for Map {
    fn name(&self) -> &'static str {
        self.fun.name()
    }
    #[inline]
    fn eval(&self, x: &[&Array]) -> Result<Arrays> {
        if !x[0].dtype().is_float() {
            return one!(eval_int(self, x));
        }
        one!(self.fun.value(self.p.get(), Run { x, name: self.fun.name(), key: (0, self.p) }))
    }
}

impl Elementwise for Map {
    fn reads(&self, wrt: usize) -> Saves {
        self.fun.reads(wrt).unwrap_or_default().iter().fold(Saves::NONE, |s, a| s.and(a.saves()))
    }
    fn partial(&self, wrt: usize, g: &Tensor, reads: &Reads) -> Result<Option<Tensor>> {
        let Some(args) = self.fun.reads(wrt) else { return Ok(None) };
        let mut inputs: SmallVec<[&Tensor; 4]> = smallvec![g];
        for arg in args {
            let value = match arg {
                Arg::X => reads.inputs[0],
                Arg::Y => reads.inputs[1],
                Arg::Out => reads.output,
            };
            inputs.push(value.ok_or_else(|| Error::value("internal: a derivative reads what was not saved"))?);
        }
        if args.is_empty() {
            // The derivative is a constant: `g` itself or `-g`.
            return self.fun.partial(wrt, self.p.get(), Read(&inputs)).transpose();
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
            Err(Error::value(format!("internal: {} has no derivative for input {}", self.fun.name(), self.wrt)))
        })
    }
}

impl Kernel for MapVjp {
    fn name(&self) -> &'static str {
        self.fun.name()
    }
    fn eval(&self, x: &[&Array]) -> Result<Arrays> {
        one!(self.visit(Run { x, name: self.fun.name(), key: (self.wrt + 1, self.p) }))
    }
}

impl Composite for MapVjp {
    fn decompose(&self, x: &[&Tensor]) -> Result<Tensors> {
        one!(self.visit(Read(x)))
    }
    fn own(&self) -> Own {
        Own { batch: true, ..Own::default() }
    }
    fn batch(&self, x: &[Lane], _size: usize) -> Result<BatchedOutputs> {
        let aligned = align(x)?;
        let refs: SmallVec<[&Tensor; 4]> = aligned.iter().collect();
        Ok(smallvec![(crate::bind::bind1(*self, &refs)?, Some(0))])
    }
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

// ---- integers -------------------------------------------------------------------------------------------------------

macro_rules! integer_rule {
    ($n:literal, [$($x:ident),*] => $body:expr) => {{
        #[derive(Clone, Copy)]
        struct Rule([f64; 2]);
        impl PointwiseInt<$n> for Rule {
            #[inline(always)]
            fn apply<I: Integer>(&self, [$($x),*]: [I; $n]) -> I {
                let _p = self.0;
                #[allow(clippy::redundant_closure_call)]
                ($body)(_p)
            }
        }
        Rule
    }};
}

/// The rows that integers have too.
fn eval_int(op: &Map, x: &[&Array]) -> Result<Array> {
    let p = op.p.get();
    macro_rules! unary {
        ($body:expr) => {{
            let rule = integer_rule!(1, [x] => |_p: [f64; 2]| { let f: fn(I, [f64; 2]) -> I = $body; f(x, _p) });
            run_int([x[0]], rule(p))
        }};
    }
    macro_rules! binary {
        ($body:expr) => {{
            let rule = integer_rule!(2, [x, y] => |_p: [f64; 2]| { let f: fn(I, I) -> I = $body; f(x, y) });
            run_int([x[0], x[1]], rule(p))
        }};
    }
    match op.fun {
        Fun::Unary(Unary::Neg) => unary!(|x, _| I::lit(0).sub(x)),
        Fun::Unary(Unary::Abs) => unary!(|x, _| if x < I::lit(0) { I::lit(0).sub(x) } else { x }),
        Fun::Unary(Unary::Sign) => unary!(|x, _| I::lit((x > I::lit(0)) as i64 - (x < I::lit(0)) as i64)),
        Fun::Unary(Unary::Square) => unary!(|x, _| x.mul(x)),
        Fun::Unary(Unary::Relu) => unary!(|x, _| x.max(I::lit(0))),
        Fun::Unary(Unary::Floor | Unary::Ceil | Unary::Round) => Ok(x[0].clone()),
        Fun::Parametric(Parametric::Clamp) => unary!(|x, p| x.min(I::lit(p[1] as i64)).max(I::lit(p[0] as i64))),
        Fun::Parametric(Parametric::ClampMin) => unary!(|x, p| x.max(I::lit(p[0] as i64))),
        Fun::Parametric(Parametric::ClampMax) => unary!(|x, p| x.min(I::lit(p[0] as i64))),
        Fun::Binary(Binary::Add) => binary!(|x, y| x.add(y)),
        Fun::Binary(Binary::Sub) => binary!(|x, y| x.sub(y)),
        Fun::Binary(Binary::Mul) => binary!(|x, y| x.mul(y)),
        Fun::Binary(Binary::Pow) => binary!(|x, y| x.pow(y)),
        Fun::Binary(Binary::Maximum) => binary!(|x, y| x.max(y)),
        Fun::Binary(Binary::Minimum) => binary!(|x, y| x.min(y)),
        Fun::Binary(Binary::FloorDivide) => binary!(|x, y| x.floor_div(y)),
        Fun::Binary(Binary::Remainder) => binary!(|x, y| x.remainder(y)),
        _ => Err(Error::dtype(format!("{}: not defined for {}; convert with .float()", op.name(), x[0].dtype()))),
    }
}

fn run_int<const N: usize, P: PointwiseInt<N>>(x: [&Array; N], rule: P) -> Result<Array> {
    match x[0].device() {
        Device::Cpu => crate::cpu::map::pointwise_int(x, rule),
        #[cfg(feature = "gpu")]
        Device::Gpu(_) => crate::gpu::kernels::map::pointwise_int(x, rule),
        #[cfg(not(feature = "gpu"))]
        Device::Gpu(_) => Err(Error::device("this build of wengert has no GPU support")),
    }
}

/// `total += g`, for the accumulation of gradients: floats of the same shape and dtype on the CPU.
pub fn add_in_place(total: &Array, g: &Array) -> Result<()> {
    let p = [0.0; 2];
    crate::cpu::map::pointwise_into(total, [total, g], pointwise_rule!(p; [x, y] => x + y))
}

// ---- methods --------------------------------------------------------------------------------------------------------

/// An operand as users give it: a tensor or a Python scalar, which adapts to the tensor's dtype.
#[derive(Clone, Copy)]
pub enum Operand<'a> {
    /// A tensor.
    Tensor(&'a Tensor),
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
}

impl<'a> From<&'a Tensor> for Operand<'a> {
    fn from(x: &'a Tensor) -> Operand<'a> {
        Operand::Tensor(x)
    }
}
impl From<f64> for Operand<'_> {
    fn from(x: f64) -> Self {
        Operand::Float(x)
    }
}
impl From<i64> for Operand<'_> {
    fn from(x: i64) -> Self {
        Operand::Int(x)
    }
}

impl Operand<'_> {
    /// The dtype of a result with a tensor of `dtype`: a scalar only wins by category.
    pub fn result_type(&self, other: &Tensor) -> DType {
        let dtype = other.dtype();
        match self {
            Operand::Tensor(x) => promote(x, other),
            Operand::Bool(_) => dtype,
            Operand::Int(_) if dtype == DType::Bool => {
                if other.device() == Device::Cpu { DType::I64 } else { DType::I32 }
            }
            Operand::Float(_) if !dtype.is_float() => DType::F32,
            _ => dtype,
        }
    }

    /// This operand as a tensor of `dtype` on the device of `like`.
    pub fn to_tensor(&self, dtype: DType, like: &Tensor) -> Result<Tensor> {
        match *self {
            Operand::Tensor(x) => x.cast(dtype),
            Operand::Bool(v) => Tensor::scalar(v as u8 as f64, dtype, like.device()),
            Operand::Int(v) if dtype == DType::I64 && like.device() == Device::Cpu => Tensor::from_slice(&[v], &[]),
            Operand::Int(v) => Tensor::scalar(v as f64, dtype, like.device()),
            Operand::Float(v) => Tensor::scalar(v, dtype, like.device()),
        }
    }
}

/// The common dtype of two tensors, as in PyTorch: a 0-d tensor does not widen one with axes of the same category.
pub fn promote(x: &Tensor, y: &Tensor) -> DType {
    let (a, b) = (x.dtype(), y.dtype());
    if a == b {
        return a;
    }
    match (x.rank() == 0, y.rank() == 0) {
        (true, false) if a.category() <= b.category() => b,
        (false, true) if b.category() <= a.category() => a,
        _ => a.promote(b),
    }
}

/// Applies a row of the binary table to two operands, at least one of them a tensor.
pub fn binary(fun: Binary, x: Operand, y: Operand) -> Result<Tensor> {
    if let (Binary::Pow, Operand::Tensor(t), Operand::Int(2) | Operand::Float(2.0)) = (fun, &x, &y)
        && t.dtype().is_float()
    {
        return t.square();
    }
    let like = match (&x, &y) {
        (Operand::Tensor(t), _) | (_, Operand::Tensor(t)) => *t,
        _ => return Err(Error::dtype(format!("{}: a tensor expected among the operands", fun.name()))),
    };
    let mut dtype = match (&x, &y) {
        (Operand::Tensor(a), Operand::Tensor(b)) => {
            // Fast path: nothing to convert.
            if a.dtype() == b.dtype() && a.dtype().is_float() {
                check_broadcast(fun.name(), a, b)?;
                return crate::bind::bind1(Map { fun: Fun::Binary(fun), p: Params::default() }, &[a, b]);
            }
            check_broadcast(fun.name(), a, b)?;
            promote(a, b)
        }
        (Operand::Tensor(t), other) | (other, Operand::Tensor(t)) => other.result_type(t),
        _ => like.dtype(),
    };
    if dtype == DType::Bool {
        let logic = match fun {
            Binary::Add | Binary::Maximum => Some(Logic::Or),
            Binary::Mul | Binary::Minimum => Some(Logic::And),
            Binary::Sub => {
                return Err(Error::dtype("sub: not defined for bool tensors; use logical_xor, or ~ to negate a mask"));
            }
            _ => None,
        };
        if let Some(logic) = logic {
            let (x, y) = (x.to_tensor(dtype, like)?, y.to_tensor(dtype, like)?);
            return crate::bind::bind1(Logical { logic }, &[&x, &y]);
        }
        dtype = if like.device() == Device::Cpu { DType::I64 } else { DType::I32 };
    }
    if fun == Binary::Div {
        dtype = dtype.to_float();
    }
    let (x, y) = (x.to_tensor(dtype, like)?, y.to_tensor(dtype, like)?);
    crate::bind::bind1(Map { fun: Fun::Binary(fun), p: Params::default() }, &[&x, &y])
}

/// Raises unless the shapes broadcast.
#[inline]
pub fn check_broadcast(op: &str, x: &Tensor, y: &Tensor) -> Result<()> {
    let (a, b) = (x.shape(), y.shape());
    if a == b || a.broadcast(&b).is_some() {
        return Ok(());
    }
    Err(Error::shape(format!(
        "{op}: shapes {a} and {b} do not broadcast: aligned from the last axis, each pair of lengths must be equal or 1"
    )))
}

impl Tensor {
    /// Applies a row of the unary table. Integers are converted to float32 where the function needs it.
    pub fn unary(&self, fun: Unary) -> Result<Tensor> {
        let keeps_integers = matches!(
            fun,
            Unary::Neg | Unary::Abs | Unary::Sign | Unary::Square | Unary::Relu | Unary::Floor | Unary::Ceil | Unary::Round
        );
        self.map(Map { fun: Fun::Unary(fun), p: Params::default() }, keeps_integers)
    }

    /// Applies a row of the table of functions with attributes.
    pub fn parametric(&self, fun: Parametric, p: [f64; 2]) -> Result<Tensor> {
        let whole = p.iter().all(|v| v.fract() == 0.0 || v.is_infinite());
        let keeps_integers = whole && !matches!(fun, Parametric::Softplus);
        self.map(Map { fun: Fun::Parametric(fun), p: p.into() }, keeps_integers)
    }

    fn map(&self, op: Map, keeps_integers: bool) -> Result<Tensor> {
        match self.dtype().category() {
            Category::Float => crate::bind::bind1(op, &[self]),
            Category::Int if keeps_integers => crate::bind::bind1(op, &[self]),
            Category::Bool if op.fun == Fun::Unary(Unary::Neg) => {
                Err(Error::dtype("neg: not defined for bool tensors; use ~ or logical_not"))
            }
            _ => crate::bind::bind1(op, &[&self.cast(DType::F32)?]),
        }
    }

    /// Values limited to `[min, max]`; the derivative at a bound is 1.
    pub fn clamp(&self, min: Option<f64>, max: Option<f64>) -> Result<Tensor> {
        match (min, max) {
            (Some(low), Some(high)) => self.parametric(Parametric::Clamp, [low, high]),
            (Some(low), None) => self.parametric(Parametric::ClampMin, [low, 0.0]),
            (None, Some(high)) => self.parametric(Parametric::ClampMax, [high, 0.0]),
            (None, None) => Err(Error::value("clamp: give min, max or both")),
        }
    }

    /// `log(1 + exp(beta x)) / beta`, linear where `beta x > threshold`.
    pub fn softplus(&self, beta: f64, threshold: f64) -> Result<Tensor> {
        self.parametric(Parametric::Softplus, [beta, threshold])
    }

    /// Gaussian error linear unit; `approximate` uses tanh.
    pub fn gelu(&self, approximate: bool) -> Result<Tensor> {
        self.unary(if approximate { Unary::GeluTanh } else { Unary::Gelu })
    }
}

macro_rules! unary_methods {
    ($kind:ident, $n:literal, $p:ident; $(
        $(#[doc = $doc:literal])* $name:ident $method:ident($($x:ident),+) = $value:expr, [$($partial:tt)*];
    )*) => {
        impl Tensor {
            $($(#[doc = $doc])* pub fn $method(&self) -> Result<Tensor> { self.unary(Unary::$name) })*
        }
    };
}

macro_rules! binary_methods {
    ($kind:ident, $n:literal, $p:ident; $(
        $(#[doc = $doc:literal])* $name:ident $method:ident($($x:ident),+) = $value:expr, [$($partial:tt)*];
    )*) => {
        impl Tensor {
            $($(#[doc = $doc])* pub fn $method<'a>(&self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
                binary(Binary::$name, self.into(), other.into())
            })*
        }
    };
}

unary_table!(unary_methods);
binary_table!(binary_methods);

/// What the shader tests walk: the WGSL-relevant rows with their number of inputs.
pub fn all() -> impl Iterator<Item = Fun> {
    let unary = Unary::ALL.iter().map(|&f| Fun::Unary(f));
    let parametric = Parametric::ALL.iter().map(|&f| Fun::Parametric(f));
    unary.chain(parametric).chain(Binary::ALL.iter().map(|&f| Fun::Binary(f)))
}

impl Fun {
    /// The public name of the row.
    pub fn public_name(self) -> &'static str {
        self.name()
    }
    /// Does `v` with the value rule; for tests that expand every row.
    pub fn visit_value<V: Visit>(self, p: [f64; 2], v: V) -> V::Out {
        self.value(p, v)
    }
    /// Does `v` with a derivative rule; for tests that expand every row.
    pub fn visit_partial<V: Visit>(self, wrt: usize, p: [f64; 2], v: V) -> Option<V::Out> {
        self.partial(wrt, p, v)
    }
}
