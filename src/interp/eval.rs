//! The last interpreter of every chain: runs the kernel.

use super::prelude::*;
use crate::array::buffer::Device;
use crate::op::{Arrays, Kernel, Operation};
use crate::ops::pointwise::elementwise::by_parts;
use crate::ops::shapes;
use crate::ops::views::cast::Contiguous;
use crate::watch::anomaly;
use crate::watch::cost;
use crate::watch::debug::{self, Modes};
use crate::watch::script::{self, Measure};
use std::marker::PhantomData;
use std::time::Instant;

/// Where the outputs of an operation go.
pub trait Destination: Copy {
    /// What is returned.
    type Out;
    /// Whether the outputs are written into memory that exists.
    const IS_MEMORY: bool;
    /// Copies memory that is about to be written, for a script.
    fn keep(self) -> Result<()>;
    /// Runs `op` on `x`.
    fn fill(self, op: &impl Kernel, x: &[&Array]) -> Result<Self::Out>;
    /// What [`Destination::fill`] returns where values do not matter; memory stays as it is.
    fn shaped(self, op: &Op, x: &[&Array]) -> Result<Self::Out>;
    /// The outputs, given what [`Destination::fill`] returned.
    fn outputs(self, filled: &Self::Out) -> Arrays;
}

/// New tensors.
pub struct New<Y>(PhantomData<Y>);

impl<Y> New<Y> {
    /// The only value.
    pub const OUTPUTS: New<Y> = New(PhantomData);
}

impl<Y> Clone for New<Y> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Y> Copy for New<Y> {}

impl<Y: Outputs> Destination for New<Y> {
    type Out = Y;
    const IS_MEMORY: bool = false;

    #[inline(always)]
    fn fill(self, op: &impl Kernel, x: &[&Array]) -> Result<Y> {
        Y::eval(op, x)
    }
    fn keep(self) -> Result<()> {
        Ok(())
    }
    fn shaped(self, op: &Op, x: &[&Array]) -> Result<Y> {
        Y::from_list(shapes::outputs(op, x)?)
    }
    fn outputs(self, filled: &Y) -> Arrays {
        filled.list().iter().filter_map(Tensor::concrete).cloned().collect()
    }
}

impl Destination for &[&Array] {
    type Out = ();
    const IS_MEMORY: bool = true;

    #[inline(always)]
    fn fill(self, op: &impl Kernel, x: &[&Array]) -> Result<()> {
        op.eval_into(x, self)
    }
    fn shaped(self, _op: &Op, _x: &[&Array]) -> Result<()> {
        Ok(())
    }
    fn outputs(self, (): &()) -> Arrays {
        self.iter().map(|&y| y.clone()).collect()
    }
    fn keep(self) -> Result<()> {
        self.iter().try_for_each(|y| script::keep(y))
    }
}

/// Runs `op` on concrete arrays: whatever runs, runs here. `modes` are those of the thread; a caller that
/// knows that none watches says so.
#[inline(always)]
pub fn run<O: Operation, D: Destination>(op: &O, x: &[&Array], to: D, modes: Modes) -> Result<D::Out> {
    check_devices(op, x)?;
    if modes.touches(Modes::WATCHED) {
        return watched(&op.clone().into(), x, to, modes);
    }
    to.fill(op, x)
}

/// Runs `op` with anomaly detection, cost counting, IEEE gradients, shapes alone or a script on.
#[cold]
fn watched<D: Destination>(op: &Op, x: &[&Array], to: D, modes: Modes) -> Result<D::Out> {
    if modes.has(Modes::SHAPES) {
        return to.shaped(op, x);
    }
    if modes.has(Modes::SCRIPT) {
        to.keep()?;
    }
    let begin = modes.has(Modes::COUNT).then(Instant::now);
    let measured = modes.has(Modes::SCRIPT).then(Measure::begin);
    let filled = {
        // Operations that a kernel is made of are its own affair.
        let _quiet = debug::suspend(Modes::VALUES.and(Modes::COUNT).and(Modes::SCRIPT));
        if modes.has(Modes::STRICT) { to.fill(&ByFormula(op), x) } else { to.fill(op, x) }
    };
    if filled.is_err() {
        script::refuse(|| "an operation that failed".into());
    }
    let time = begin.map(|begin| begin.elapsed()).unwrap_or_default();
    let measured = measured.map(Measure::end);
    let filled = filled?;
    let outputs = to.outputs(&filled);
    if modes.has(Modes::COUNT) {
        cost::ran(op.name(), op.flops(x, &outputs), time);
    }
    if modes.has(Modes::SCRIPT) {
        let note = if D::IS_MEMORY { script::wrote } else { script::ran };
        note(op, x, &outputs);
        measured.into_iter().for_each(|found| found.of(op.flops(x, &outputs), x, &outputs));
    }
    if modes.has(Modes::ANOMALY) && !D::IS_MEMORY {
        anomaly::ran(op, x, &outputs)?;
    }
    Ok(filled)
}

/// An operation; a fused partial derivative as the operations of its formula, which follow IEEE arithmetic.
struct ByFormula<'a>(&'a Op);

impl Kernel for ByFormula<'_> {
    fn name(&self) -> &'static str {
        self.0.name()
    }
    fn eval(&self, x: &[&Array]) -> Result<Arrays> {
        let _guard = interp::evaluating();
        match self.0 {
            Op::MapVjp(partial) => by_parts(partial, x),
            Op::MapVjpJvp(partial) => by_parts(partial, x),
            op => op.eval(x),
        }
    }
    fn eval_into(&self, x: &[&Array], out: &[&Array]) -> Result<()> {
        self.0.eval_into(x, out)
    }
    fn flops(&self, x: &[&Array], y: &[Array]) -> u64 {
        self.0.flops(x, y)
    }
}

/// A copy of an array as an operation, for what has no tensor at hand.
pub fn copied(x: &Array) -> Result<Array> {
    let copy = run(&Contiguous, &[x], New::<Tensor>::OUTPUTS, debug::modes())?;
    copy.array("clone").cloned()
}

/// Raises unless all operands are on one device.
#[inline(always)]
fn check_devices(op: &impl Kernel, x: &[&Array]) -> Result<()> {
    if let [first, rest @ ..] = x {
        for a in rest {
            if a.device() != first.device() {
                return Err(devices(op.name(), first.device(), a.device()));
            }
        }
    }
    Ok(())
}

/// Raises where operands lie on different devices; numbers without axes on the CPU lie everywhere.
pub fn check_tensors(name: &str, operands: &[&Tensor]) -> Result<()> {
    let mut fixed = operands.iter().filter(|x| x.rank() > 0 || x.device() != Device::Cpu).map(|x| x.device());
    let Some(first) = fixed.next() else { return Ok(()) };
    fixed.find(|&device| device != first).map_or(Ok(()), |other| Err(devices(name, first, other)))
}

#[cold]
fn devices(name: &str, a: Device, b: Device) -> Error {
    // What is on the CPU is likelier to be what was forgotten.
    let to = if a == Device::Cpu { b } else { a };
    Error::value(format!("{name}: operands are on different devices, {a} and {b}; move one with .to('{to}')"))
}
