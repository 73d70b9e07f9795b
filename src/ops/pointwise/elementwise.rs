//! The operation behind the tables of `unary.rs` and `binary.rs`, one for all rows; on integers, wrapping
//! arithmetic and Python's rounding for division. Read next: `elementwise/derivatives.rs`.

mod derivatives;

pub use derivatives::{MapVjp, MapVjpJvp, by_parts};

use crate::array::dtype::Truth;
use crate::cpu::pointwise::fused::ElementFn;
use crate::cpu::pointwise::map::{element_fn, int_element_fn, pointwise_into};
use crate::interp::eval;
use crate::math::lane::F64;
use crate::math::real::{Pointwise, PointwiseInt};
use crate::op::{Elementwise, Reads};
use crate::ops::pointwise::binary::Binary;
use crate::ops::pointwise::table::{Arg, Fun, Params, Visit, VisitInt};
use crate::ops::prelude::*;
use crate::watch::debug;

struct Run<'a> {
    x: &'a [&'a Array],
    /// The row, for its name and its kind.
    fun: Fun,
    /// Which of the row's functions: 0 is the value, `1 + i` the partial for input `i`, `129 + i` its change.
    #[cfg_attr(not(feature = "gpu"), allow(dead_code))]
    rule: u8,
    /// The row's attributes.
    #[cfg_attr(not(feature = "gpu"), allow(dead_code))]
    p: Params,
}

/// The operands of a row with `N` of them.
#[inline(always)]
fn operands<'a, const N: usize>(fun: Fun, x: &[&'a Array]) -> Result<[&'a Array; N]> {
    x.try_into()
        .map_err(|_| Error::value(format!("internal: {} takes {N} operands, got {}", fun.name(), x.len())))
}

impl Visit for Run<'_> {
    type Out = Result<Array>;
    #[inline]
    fn visit<const N: usize, P: Pointwise<N>>(self, rule: P) -> Result<Array> {
        let x = operands::<N>(self.fun, self.x)?;
        let key = || [self.rule.into(), if self.fun.counts() { self.p.get()[0].to_bits() } else { 0 }];
        crate::device::pointwise(self.fun.name(), key, x, rule)
    }
}

/// Runs a row for floats on the CPU into memory of their dtype.
struct RunInto<'a> {
    out: &'a Array,
    run: Run<'a>,
}

impl Visit for RunInto<'_> {
    type Out = Result<()>;
    fn visit<const N: usize, P: Pointwise<N>>(self, rule: P) -> Result<()> {
        let x = operands::<N>(self.run.fun, self.run.x)?;
        // SAFETY: as `Kernel::eval_into` demands, nobody else reads or writes `out` meanwhile.
        unsafe { pointwise_into(self.out, x, rule) }
    }
}

/// Finds the loop of a row for so many operands, with results of this dtype.
struct Find {
    dtype: DType,
    operands: usize,
}

impl Find {
    fn of(dtypes: &[DType]) -> Option<Find> {
        Some(Find { dtype: DType::of_rule(dtypes.iter().copied())?, operands: dtypes.len() })
    }
}

impl Visit for Find {
    type Out = Option<ElementFn>;
    fn visit<const N: usize, P: Pointwise<N>>(self, rule: P) -> Option<ElementFn> {
        if N == self.operands { element_fn(rule, self.dtype, true) } else { None }
    }
}

impl VisitInt for Find {
    type Out = Option<ElementFn>;
    fn visit<const N: usize, P: PointwiseInt<N>>(self, rule: P) -> Option<ElementFn> {
        if N == self.operands { int_element_fn(rule, self.dtype) } else { None }
    }
}

/// The constant factor of a partial that reads the cotangent alone: its value for a cotangent of 1.
struct Factor;

impl Visit for Factor {
    type Out = f64;
    fn visit<const N: usize, P: Pointwise<N>>(self, rule: P) -> f64 {
        rule.apply([F64(1.0); N]).0
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
    /// The sum of two operands.
    pub const ADD: Map = Map::binary(Binary::Add);

    /// A row with two inputs.
    pub const fn binary(row: Binary) -> Map {
        Map { fun: Fun::Binary(row), p: Params::ZERO }
    }

    /// Whether it divides, which of integers fails by zero.
    pub fn divides(&self) -> bool {
        matches!(self.fun, Fun::Binary(Binary::FloorDivide | Binary::Remainder | Binary::Fmod))
    }

    /// Whether the row can be computed right into the memory of `out`.
    fn fits(&self, x: &[&Array], out: &Array) -> bool {
        let own = |x: &&Array| x.dtype() == out.dtype() && x.device() == Device::Cpu;
        out.dtype().is_float() && out.device() == Device::Cpu && x.iter().all(own)
    }
}

/// `sum += g` in place, through any strides, for sums of gradients that only their walk holds.
#[inline(always)]
pub fn add_into(sum: &Array, g: &Array) -> Result<()> {
    eval::run(&Map::ADD, &[sum, g], &[sum][..], debug::modes())
}

impl Kernel for Map {
    fn name(&self) -> &'static str {
        self.fun.name()
    }
    #[inline]
    fn eval(&self, x: &[&Array]) -> Result<Arrays> {
        one!(self.eval_one(x))
    }
    #[inline(always)]
    fn eval_one(&self, x: &[&Array]) -> Result<Array> {
        if !x[0].dtype().is_float() {
            return eval_int(self, x);
        }
        self.fun.value(self.p.get(), Run { x, fun: self.fun, rule: 0, p: self.p })
    }
    #[inline]
    fn eval_into(&self, x: &[&Array], out: &[&Array]) -> Result<()> {
        let out = out[0];
        let adds = self.fun == Fun::Binary(Binary::Add) && x[0].is(out);
        // SAFETY: as `Kernel::eval_into` demands, nobody else reads or writes `out` meanwhile.
        if adds && unsafe { crate::device::add_into(out, x[1])? } {
            return Ok(());
        }
        if !self.fits(x, out) {
            return out.assign(&self.eval_one(x)?);
        }
        self.fun.value(self.p.get(), RunInto { out, run: Run { x, fun: self.fun, rule: 0, p: self.p } })
    }
    fn element_fn(&self, dtypes: &[DType]) -> Option<ElementFn> {
        let find = Find::of(dtypes)?;
        match find.dtype.is_float() {
            true => self.fun.value(self.p.get(), find),
            false if self.divides() => None,
            false => self.fun.integer(find).flatten(),
        }
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
            let Some(factor) = self.fun.partial(wrt, self.p.get(), Factor) else { return Ok(None) };
            let partial = match factor {
                0.0 => g.zeros_like(),
                1.0 => Ok(g.clone()),
                -1.0 => g.neg(),
                factor => g.mul(factor),
            };
            return partial.map(Some);
        }
        let mut inputs: SmallVec<[&Tensor; 4]> = SmallVec::new();
        inputs.push(g);
        for arg in args {
            let value = match arg {
                Arg::X => reads.inputs[0],
                Arg::Y => reads.inputs[1],
                Arg::Out => reads.output,
            };
            let missing = || Error::value("internal: a derivative reads what was not saved");
            inputs.push(value.ok_or_else(missing)?);
        }
        let op = MapVjp { fun: self.fun, wrt: wrt as u8, p: self.p };
        bind(op, &inputs).map(Some)
    }
}

/// Raises for an integer divided by zero; on a GPU, where that would come too late, the result is 0.
fn check_divisor(op: &Map, x: &[&Array]) -> Result<()> {
    if !op.divides() || x[1].device() != Device::Cpu || x.iter().any(|a| a.numel() == 0) {
        return Ok(());
    }
    let nonzero = crate::cpu::pointwise::copy::cast(x[1], DType::Bool)?;
    let is_zero = nonzero.slice::<Truth>()?.contains(&false.into());
    if is_zero {
        return Err(Error::zero_division(format!(
            "{}: {} cannot be divided by zero; mask the divisor with where(), or convert with .float() for \
             inf and nan",
            op.name(),
            x[1].dtype()
        )));
    }
    Ok(())
}

struct RunInt<'a>(&'a [&'a Array], Fun);

impl VisitInt for RunInt<'_> {
    type Out = Result<Array>;
    fn visit<const N: usize, P: PointwiseInt<N>>(self, rule: P) -> Result<Array> {
        crate::device::pointwise_int(self.1.name(), operands(self.1, self.0)?, rule)
    }
}

/// Runs a row by its formula for integers.
fn eval_int(op: &Map, x: &[&Array]) -> Result<Array> {
    check_divisor(op, x)?;
    op.fun.integer(RunInt(x, op.fun)).unwrap_or_else(|| {
        Err(Error::dtype(format!("{}: not defined for {}; convert with .float()", op.name(), x[0].dtype())))
    })
}
