//! What a thread takes note of while it writes a script.

use super::{Called, Origin, Script, Step, Touched, keep};
use crate::array::Array;
use crate::array::buffer::{Buffer, Device, watch_releases};
use crate::array::dtype::DType;
use crate::array::random;
use crate::array::shape::Shape;
use crate::error::Result;
use crate::interp::eval;
use crate::op::Op;
use crate::tape::location::{self, Location};
use crate::tape::node::Node;
use crate::tensor::Tensor;
use crate::watch::cost;
use crate::watch::debug::{Modes, modes, set_modes, suspend};
use std::cell::RefCell;
use std::sync::Arc;

/// Below it, integers are numbers of float64.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// So many integers a program looks at one by one.
const MANY: usize = 256;

/// What to write where a value is taken out.
pub const INSTEAD: &str = "compute with the tensor, or return it and read it after the call";

thread_local! {
    static SCRIPT: RefCell<Option<Script>> = const { RefCell::new(None) };
}

/// Begins a script; one that this thread was writing is dropped. `arguments` are memory that another run may
/// replace, `state` is memory that it finds again.
pub fn begin(arguments: &[&Array], state: &[&Array]) {
    let mut script = Script::default();
    for (i, argument) in arguments.iter().enumerate() {
        if !script.known.contains_key(&argument.buffer().id()) {
            script.add(argument, Origin::Argument(i));
            script.held.push(argument.buffer().clone());
        }
    }
    for x in state {
        if !script.known.contains_key(&x.buffer().id()) {
            script.add(x, Origin::Outside(x.buffer().clone()));
        }
    }
    SCRIPT.set(Some(script));
    watch_releases(true);
    set_modes(modes().and(Modes::SCRIPT));
}

/// Ends the script of this thread.
pub fn end() -> Option<Script> {
    // What is held to be taken back is none of what the region keeps.
    let kept = SCRIPT.with_borrow_mut(|script| script.as_mut().map(Script::forget_kept));
    drop(kept);
    taken()
}

/// Ends the script of this thread, with what can be taken back.
pub(super) fn taken() -> Option<Script> {
    set_modes(modes().without(Modes::SCRIPT));
    let mut script = SCRIPT.take();
    cost::forget();
    if let Some(script) = &mut script {
        script.forget_released();
    }
    watch_releases(false);
    script
}

/// Whether this thread writes a script.
#[inline]
pub fn is_on() -> bool {
    modes().has(Modes::SCRIPT)
}

/// Takes note that the region cannot be run again, and why: `what` is the subject of a sentence.
pub fn refuse(what: impl FnOnce() -> String) {
    refuse_at(what, location::now);
}

/// Refuses the region if this is the memory of an argument: Python asks `what` the graph says of it, and
/// arguments are not compared by that.
pub fn refuse_of_argument(what: &str, x: &Array) {
    let mut is_argument = false;
    with(|script| {
        let known = script.known.get(&x.buffer().id());
        is_argument = known.is_some_and(|&(memory, _)| matches!(script.memory[memory], Origin::Argument(_)));
    });
    if is_argument {
        refuse(|| format!("{what} of an argument, which is not compared; ask for it outside"));
    }
}

/// A backward ends at these tensors: what it finds of those of before depends on the graph behind them, too.
pub fn derived<'a>(mut targets: impl Iterator<Item = &'a Node>) {
    with(|script| script.derives |= targets.any(|node| node.seq < script.first));
}

/// [`refuse`], with the place of what cannot be run again.
pub fn refuse_at(what: impl FnOnce() -> String, place: impl FnOnce() -> Option<Location>) {
    if is_on() {
        with(|script| {
            if script.refusal.is_none() {
                script.refusal = Some((what(), place()));
            }
        });
    }
}

/// A value leaves the core for the program: an integer or a truth value decides what follows, and another run
/// goes on if it finds the same; anything else cannot be followed.
#[inline]
pub fn left(name: &str, x: &Array) -> Result<()> {
    if is_on() { note_left(name, x) } else { Ok(()) }
}

#[cold]
fn note_left(name: &str, x: &Array) -> Result<()> {
    let is_whole = !x.dtype().is_float() && !x.dtype().is_complex();
    if is_whole && x.numel() != 1 && x.numel() <= MANY && x.device() == Device::Cpu {
        let shape = x.shape();
        for i in 0..shape.numel() {
            let at = shape.coordinates(i);
            let steps: isize =
                at.iter().take(x.rank()).enumerate().map(|(axis, &k)| k as isize * x.stride(axis)).sum();
            let offset = x.offset().wrapping_add_signed(steps);
            note_left(name, &Array::strided(x.buffer().clone(), Shape::SCALAR, &[], offset, x.dtype())?)?;
        }
        return Ok(());
    }
    if name == "int()" && x.numel() == 1 && x.dtype().is_float() {
        let x = Tensor::Array(x.clone());
        let is_finite = x.sub(&x)?.eq(0.0)?;
        note_left(name, is_finite.array(name)?)?;
        return note_left(name, x.cast(DType::I64)?.array(name)?);
    }
    if x.numel() != 1 || !is_whole {
        refuse(|| format!("{name}, which takes values out of the program; {INSTEAD}"));
        return Ok(());
    }
    let value = {
        let _quiet = suspend(Modes::SCRIPT);
        Tensor::Array(x.clone()).item()?
    };
    if value.abs() >= EXACT {
        refuse(|| format!("{name} of an integer that has no exact float64"));
        return Ok(());
    }
    with(|script| {
        let at = script.view(x);
        let again = matches!(script.steps.last(), Some(Step::Looked { at: last, .. }) if *last == at);
        if !again {
            script.steps.push(Step::Looked { at, value });
            script.place();
        }
    });
    Ok(())
}

/// Takes note that memory is about to be written in place.
#[cold]
pub fn before_write(x: &Array) -> Result<()> {
    keep(x)?;
    let mut first = None;
    with(|script| {
        let memory = script.view(x).memory;
        if let Origin::Constant(buffer, None) = &script.memory[memory] {
            first = Some((memory, buffer.clone()));
        }
    });
    if let Some((memory, buffer)) = first {
        if buffer.device() != Device::Cpu {
            refuse(|| "a tensor on a GPU that is made of numbers and written".into());
            return Ok(());
        }
        let copy = whole(&buffer)?;
        with(|script| {
            if let Some(Origin::Constant(_, first)) = script.memory.get_mut(memory) {
                *first = Some(copy);
            }
        });
    }
    Ok(())
}

/// A copy of all bytes of host memory.
pub fn whole(buffer: &Buffer) -> Result<Array> {
    let _quiet = suspend(Modes::SCRIPT);
    eval::copied(&Array::strided(buffer.clone(), Shape::new(&[buffer.bytes()])?, &[1], 0, DType::U8)?)
}

/// Takes note of a leaf whose gradient, `slot`, is about to be read or changed.
pub fn touched(node: &Arc<Node>, slot: &Option<Tensor>) {
    if is_on() {
        with(|script| {
            script.leaf(node, slot, true);
        });
    }
}

/// Takes note of a leaf whose gradient is about to be dropped.
pub fn cleared(node: &Arc<Node>, slot: &Option<Tensor>) {
    if is_on() {
        with(|script| {
            if let Some(leaf) = script.leaf(node, slot, false) {
                script.keep_gradient(node, slot);
                script.leaves[leaf].now = Some(None);
                script.steps.push(Step::Gradient { leaf, value: None });
                script.place();
            }
        });
    }
}

/// Takes note of a call of a function of the host, which finds the gradients as they are.
pub fn called() {
    let mut kept = None;
    with(|script| {
        script.settle();
        kept = Some(script.forget_kept());
        script.steps.push(Step::Called(script.calls.len()));
        script.calls.push(Called { random: [random::state(); 2], gradients: Vec::new() });
        script.place();
    });
}

/// Takes note of what the last call left.
pub fn returned() {
    with(|script| {
        let has = |leaf: &Touched| {
            let node = leaf.node.upgrade();
            node.is_some_and(|node| node.grad().is_some_and(|slot| slot.is_some()))
        };
        let gradients = script.leaves.iter().map(has).collect();
        if let Some(call) = script.calls.last_mut() {
            call.random[1] = random::state();
            call.gradients = gradients;
        }
    });
}

/// Takes note that the last call left memory as it was which it writes to in other runs. What was saved of
/// that memory would be read there, where it is an error.
pub fn idled() {
    with(|script| script.idle = true);
}

/// Writes down that `op` made `outputs` of the arrays `x`.
pub fn ran(op: &Op, x: &[&Array], outputs: &[Array]) {
    let shares = |y: &Array| x.iter().any(|x| x.buffer().same(y.buffer()));
    let written = matches!(op, Op::Put(_) | Op::PutRows(_)) && outputs.iter().any(shares);
    if written {
        return wrote(op, x, outputs);
    }
    if outputs.iter().all(shares) && !outputs.is_empty() {
        // A view: where its elements lie says it all.
        return;
    }
    with(|script| {
        let inputs = script.views(x.iter().copied());
        for (i, y) in outputs.iter().enumerate().filter(|(_, y)| !shares(y)) {
            // Several outputs may lie in one memory.
            if outputs[..i].iter().all(|before| !before.buffer().same(y.buffer())) {
                script.made(y);
            }
        }
        let outputs = script.views(outputs);
        script.check_idle(&inputs);
        script.steps.push(Step::Ran { op: Box::new(op.clone()), inputs, outputs, into: false });
    });
}

/// Writes down that `op` of the arrays `x` was written into `out`.
pub fn wrote(op: &Op, x: &[&Array], out: &[Array]) {
    with(|script| {
        if matches!(op, Op::Update(_)) && script.refusal.is_none() {
            // Its numbers are those of this step.
            script.refusal = Some(("a step of an optimiser that was not found".into(), location::now()));
        }
        let (inputs, outputs) = (script.views(x.iter().copied()), script.views(out));
        script.check_idle(&inputs);
        script.steps.push(Step::Ran { op: Box::new(op.clone()), inputs, outputs, into: true });
    });
}

/// How many steps there are.
pub(super) fn steps() -> usize {
    SCRIPT.with_borrow(|script| script.as_ref().map_or(0, |script| script.steps.len()))
}

pub(super) fn with(f: impl FnOnce(&mut Script)) {
    SCRIPT.with_borrow_mut(|script| {
        if let Some(script) = script {
            script.forget_released();
            f(script);
        }
    });
}
