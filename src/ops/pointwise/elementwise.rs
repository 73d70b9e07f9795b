//! The operation behind the tables of `unary.rs` and `binary.rs`, one for all rows. Read next:
//! `elementwise/derivatives.rs`.

mod derivatives;

pub use derivatives::{MapVjp, MapVjpJvp, by_parts};

use crate::array::Array;
use crate::error::{Error, Result};
use crate::math::lane::F64;
use crate::math::real::Pointwise;
use crate::op::{Arrays, Elementwise, Kernel, Reads, Saves};
use crate::ops::one;
use crate::ops::pointwise::integer::eval_int;
use crate::ops::pointwise::table::{Arg, Fun, Params, Visit, pointwise_rule};
use crate::tensor::Tensor;
use crate::watch::cost;
use smallvec::SmallVec;

pub use crate::ops::pointwise::operand::{Operand, binary};

struct Run<'a> {
    x: &'a [&'a Array],
    /// The row, for its name and its kind.
    fun: Fun,
    /// Which of the row's functions it is: 0 for the value, `1 + i` for the partial for input `i`, `129 + i`
    /// for how that changes.
    #[cfg_attr(not(feature = "gpu"), allow(dead_code))]
    rule: u8,
    /// The row's attributes.
    #[cfg_attr(not(feature = "gpu"), allow(dead_code))]
    p: Params,
}

/// The operands of a row with `N` of them.
#[inline(always)]
pub fn operands<'a, const N: usize>(fun: Fun, x: &[&'a Array]) -> Result<[&'a Array; N]> {
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

/// Runs a row over memory that exists; see [`Map::eval_over`].
struct RunOver<'a> {
    out: &'a Array,
    run: Run<'a>,
}

impl Visit for RunOver<'_> {
    type Out = Result<()>;
    fn visit<const N: usize, P: Pointwise<N>>(self, rule: P) -> Result<()> {
        // SAFETY: the caller of `eval_over` guarantees it.
        unsafe {
            crate::cpu::pointwise::map::pointwise_into(
                self.out,
                operands::<N>(self.run.fun, self.run.x)?,
                rule,
            )
        }
    }
}

/// The constant factor of a partial that reads the cotangent alone: its value for a cotangent of 1.
struct Factor;

impl Visit for Factor {
    type Out = Result<f64>;
    fn visit<const N: usize, P: Pointwise<N>>(self, rule: P) -> Result<f64> {
        Ok(rule.apply([F64(1.0); N]).0)
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
    /// Computes the row for floats on the CPU and writes the result to `out`, which may be one of the
    /// operands or overlap them. They broadcast to its shape and have its dtype.
    ///
    /// # Safety
    /// Nobody reads or writes the memory of `out` meanwhile, nor holds a slice of it.
    pub unsafe fn eval_over(&self, out: &Array, x: &[&Array]) -> Result<()> {
        self.fun.value(self.p.get(), RunOver { out, run: Run { x, fun: self.fun, rule: 0, p: self.p } })
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
    #[inline(always)]
    fn eval_one(&self, x: &[&Array]) -> Result<Array> {
        if !x[0].dtype().is_float() {
            return eval_int(self, x);
        }
        self.fun.value(self.p.get(), Run { x, fun: self.fun, rule: 0, p: self.p })
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
                Some(0.0) => g.zeros_like().map(Some),
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

/// `total += g`, for the accumulation of gradients: floats of the same shape and dtype on the CPU.
///
/// # Safety
/// Nobody reads or writes the memory of `total` meanwhile, nor holds a slice of it.
pub unsafe fn add_in_place(total: &Array, g: &Array) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    if unsafe { crate::cpu::pointwise::map::add_small(total, g)? } {
        return Ok(());
    }
    let p = [0.0; 2];
    let plus = pointwise_rule!(p; [x, y] => x + y);
    // SAFETY: as above.
    unsafe { crate::cpu::pointwise::map::pointwise_into(total, [total, g], plus) }
}
