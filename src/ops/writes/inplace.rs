//! In-place writes: they store through strides and bump the version of the buffer.
//!
//! A write changes no tape node, but for outputs that were saved only for speed, which it first replaces by
//! copies: [`write()`] stores a value that was computed out of place and returns
//! the tensor that the caller then uses instead of the written one. The operation saves copies of the old
//! value ([`shielding`]), so that a chain of in-place operations has the right gradient; any other saved
//! tensor of the old value detects the write by the version. For plain float arrays [`row_over`] computes a
//! row of the tables right in the memory of the old value. A write into a view is a function of the whole
//! tensor, `Put` ([`write_part`]). Inside `vmap` and `jvp`, where a tensor is not memory, the value replaces
//! the target (`src/ops/writes/history.rs`); memory without another owner is written in place
//! (`src/ops/writes/alone.rs`), so there, too, the cost is that of the part written. Memory is written by
//! operations alone: by [`bind_into`], or, where a tape records the write, by `Put` and `PutRows`, which get
//! the memory as `Donated` ([`write_over`]).

use crate::bind::{self, bind_into};
use crate::interp::{self, eval, is_grad_enabled};
use crate::op::Op;
use crate::ops::pointwise::binary::Binary;
use crate::ops::pointwise::compare::Select;
use crate::ops::pointwise::elementwise::Map;
use crate::ops::pointwise::operand::Operand;
use crate::ops::pointwise::table::{Fun, Params};
use crate::ops::prelude::*;
use crate::ops::views::cast::Contiguous;
use crate::ops::views::strided::Part;
use crate::ops::writes::alone;
use crate::ops::writes::donated::{Donated, donating};
use crate::ops::writes::history::{self, Keep};
use crate::ops::writes::rows::{PutRows, Rows};
use crate::ops::writes::writable::{
    self, check_leaf, check_memory, check_outside, check_writable, shared_elements,
};
use crate::tape::saving;
use crate::tensor::{Payload, over_memory};
use std::sync::Arc;

/// Runs `f`, an operation whose result will be written into the memory of `target`: it saves copies of that
/// memory, so that a chain of in-place operations has the right gradient.
pub fn shielding<T>(target: &Tensor, f: impl FnOnce() -> T) -> T {
    match target.concrete() {
        Some(memory) if is_grad_enabled() => saving::shielding(memory, f),
        _ => f(),
    }
}

/// Checks that `value` can be stored in a tensor of this shape and of the dtype of `target`. Returns it in
/// that dtype, without the history on tapes that are not recording.
fn storable(op: &str, target: &Tensor, shape: &Shape, value: Tensor) -> Result<Tensor> {
    check_outside(op, target)?;
    if value.shape() != *shape {
        return Err(Error::shape(format!(
            "{op}_: the result has shape {} and does not fit into the tensor of shape {shape}",
            value.shape(),
        )));
    }
    if value.dtype() != target.dtype() && value.dtype().category() > target.dtype().category() {
        return Err(Error::dtype(format!(
            "{op}_: the result is {} and cannot be stored in a tensor of {}; write {}",
            value.dtype(),
            target.dtype(),
            writable::instead(op)
        )));
    }
    let to = target.device();
    if value.device() != to {
        return Err(Error::value(format!(
            "{op}_: the value is on {} and the tensor on {to}; give it as a tensor there, \
             wengert.as_tensor(value, device='{to}')",
            value.device()
        )));
    }
    Ok(recorded_part(value.cast(target.dtype())?))
}

/// Gives `value` its own node if another handle to it exists: a copy of a leaf is none, with its own hooks.
fn unshared(value: Tensor) -> Result<Tensor> {
    let shared = value.traced().is_some_and(|t| Arc::strong_count(t) > 1);
    if shared { value.renamed() } else { Ok(value) }
}

/// Strips from `t` the outer levels of tapes that are not recording.
pub fn recorded_part(mut t: Tensor) -> Tensor {
    loop {
        let inner = match t.traced().map(|x| (x.tag, &x.payload)) {
            Some((tag, Payload::Taped { primal, .. })) if tag < interp::grad_threshold() => primal.clone(),
            _ => return t,
        };
        t = inner;
    }
}

/// Whether a write of `value` into `target` is recorded on a tape or traced by a level.
pub fn is_recorded(target: &Tensor, value: &Tensor) -> bool {
    value.traced().is_some() || recorded_part(target.clone()).traced().is_some()
}

/// Stores `value` in the memory of `target`. Returns the tensor that replaces `target`.
pub fn write(op: &str, target: &Tensor, value: Tensor) -> Result<Tensor> {
    check_leaf(op, target)?;
    let value = unshared(storable(op, target, &target.shape(), value)?)?;
    let (Some(memory), Some(new)) = (target.concrete(), value.concrete()) else {
        return replaced(target, value);
    };
    if value.traced().is_none() && is_recorded(target, &value) {
        // A constant: the target stays in its graph, with a gradient of zero.
        return Ok(write_part(op, target, &Part::whole(&target.shape()), value)?.unwrap_or(target.clone()));
    }
    keep_outputs(target, memory)?;
    store(op, memory, memory, new)?;
    // Not recorded: the target keeps its history.
    Ok(if is_recorded(target, &value) { over_memory(&value, memory) } else { target.clone() })
}

/// [`write()`] for a target that is not memory: nothing is stored, the value replaces the target.
pub fn exchange(op: &str, target: &Tensor, value: Tensor) -> Result<Tensor> {
    check_leaf(op, target)?;
    replaced(target, unshared(storable(op, target, &target.shape(), value)?)?)
}

/// Returns what `target` becomes when `value` replaces it, where one of them is not memory.
fn replaced(target: &Tensor, value: Tensor) -> Result<Tensor> {
    let value = match saving::bottom(&value) {
        // The value becomes the target, so its memory must not be shared.
        Some(new) if value.concrete().is_some() || !new.is_alone() => {
            over_memory(&value, &eval::copied(new)?)
        }
        _ => value,
    };
    if history::is_recorded(target) && !history::is_recorded(&value) {
        // A constant: as in `write`.
        return target.put(&Part::whole(&target.shape()), &value);
    }
    history::kept(target, &value, Keep::Unrecorded)
}

/// Whether the reverse rule of `op` reads its output only for speed: the operands would suffice.
fn keeps_output_for_speed(op: &Op) -> bool {
    let row = |fun| matches!(fun, Fun::Binary(Binary::Div | Binary::Copysign));
    matches!(op, Op::Attention(_)) || matches!(op, Op::Map(map) if row(map.fun))
}

/// If the node that made `target` saved its output only for speed, replaces the saved tensor by a copy.
fn keep_outputs(target: &Tensor, memory: &Array) -> Result<()> {
    match target.edge() {
        Some(edge) if edge.node.op().is_some_and(keeps_output_for_speed) => edge.node.keep_copies(memory),
        _ => Ok(()),
    }
}

/// Computes a row of the tables in the memory of `target`, its first operand. Returns false, having done
/// nothing, unless all operands are plain arrays of one float dtype on the CPU, or those of a sum on a GPU,
/// and the result has the target's shape; [`write()`] handles all other cases.
pub fn row_over(fun: Fun, target: &Tensor, other: Option<Operand>) -> Result<bool> {
    let dtype = target.dtype();
    let fits = |y: &Operand| match y {
        Operand::Tensor(y) => {
            y.dtype() == dtype && y.shape().broadcast(&target.shape()) == Some(target.shape())
        }
        y => y.result_type(target) == dtype,
    };
    let device = target.device();
    let has_kernel = device == Device::Cpu || fun == Fun::Binary(Binary::Add);
    if !dtype.is_float() || !has_kernel || !other.iter().all(fits) {
        return Ok(false);
    }
    let other = other.map(|y| y.to_rule_input(dtype, target)).transpose()?;
    let operands: SmallVec<[&Tensor; 2]> = std::iter::once(target).chain(other.as_deref()).collect();
    let Some(arrays) = bind::plain(&operands) else { return Ok(false) };
    if arrays.iter().any(|a| a.device() != device) {
        return Ok(false);
    }
    check_writable(fun.name(), arrays[0])?;
    bind_into(&Map { fun, p: Params::ZERO }, &arrays, &[arrays[0]], fun.name())?;
    Ok(true)
}

/// Stores `value` in a part of `target`. `target` is the value of a tensor object, which holds the only other
/// handle to it, apart from other readers. Returns the tensor that replaces `target`, or `None` if it stays
/// the same tensor with other elements.
pub fn write_part(op: &str, target: &Tensor, part: &Part, value: Tensor) -> Result<Option<Tensor>> {
    let value = fitting(op, target, part, value)?;
    let put = |over| target.put_over(part, &value, over);
    write_some(op, target, &value, true, put, |memory, new| store(op, memory, &part.view(memory)?, new))
}

/// [`write_part`] in the manner of [`exchange`].
pub fn exchange_part(op: &str, target: &Tensor, part: &Part, value: Tensor) -> Result<Option<Tensor>> {
    let value = fitting(op, target, part, value)?;
    history::kept(target, &target.put(part, &value)?, Keep::Unrecorded).map(Some)
}

/// [`storable`] for a part.
fn fitting(op: &str, target: &Tensor, part: &Part, value: Tensor) -> Result<Tensor> {
    if part.overlaps_itself() {
        return Err(shared_elements(op, &part.shape));
    }
    storable(op, target, &part.shape, value)
}

/// [`write_part`] for rows; if `add`, adds `value` to them.
pub fn write_rows(
    op: &str, target: &Tensor, rows: &Rows, value: Tensor, add: bool,
) -> Result<Option<Tensor>> {
    let value = storable(op, target, &rows.shape, value)?;
    let put = |over| target.put_rows_over(rows, &value, add, over);
    let index = rows.index.concrete();
    let on_cpu = target.device() == Device::Cpu;
    write_some(op, target, &value, index.is_some(), put, |memory, new| match index.filter(|_| on_cpu) {
        Some(index) => store_rows(op, memory, (memory, rows.width), new, index, add),
        None => write_over(op, memory, put).map(drop),
    })
}

/// [`write_rows`] in the manner of [`exchange`].
pub fn exchange_rows(
    op: &str, target: &Tensor, rows: &Rows, value: Tensor, add: bool,
) -> Result<Option<Tensor>> {
    let value = storable(op, target, &rows.shape, value)?;
    history::kept(target, &target.put_rows(rows, &value, add)?, Keep::Unrecorded).map(Some)
}

/// Writes `value` to some elements of `target`: `put` makes the new tensor, over memory that it may write;
/// `store` writes memory alone. Where the places are not `known`, nothing is memory.
fn write_some(
    op: &str, target: &Tensor, value: &Tensor, known: bool, put: impl Fn(Donated) -> Result<Tensor>,
    store: impl FnOnce(&Array, &Array) -> Result<()>,
) -> Result<Option<Tensor>> {
    let (Some(memory), Some(new), true) = (target.concrete(), value.concrete(), known) else {
        // Memory to which only the tensor object and the caller refer is written in place.
        let next = donating(alone::memory(target, 2), put)?;
        return history::kept(target, &next, Keep::Unrecorded).map(Some);
    };
    if value.numel() == 0 {
        return Ok(None);
    }
    check_writable(op, memory)?;
    let recorded = is_recorded(target, value);
    if !memory.is_contiguous() {
        // The places count in row-major order, which `memory` is not in: write the whole.
        let next = write(op, target, put(Donated::default())?)?;
        return Ok(recorded.then_some(next));
    }
    keep_outputs(target, memory)?;
    if recorded {
        return write_over(op, memory, put).map(Some);
    }
    store(memory, new)?;
    Ok(None)
}

/// Runs `f`, which writes a part of `memory` or of a copy of it. Returns its result over `memory`.
fn write_over(op: &str, memory: &Array, f: impl FnOnce(Donated) -> Result<Tensor>) -> Result<Tensor> {
    saving::before_write(memory)?;
    let next = donating(smallvec![memory.clone()], f)?;
    match next.concrete() {
        Some(written) if written.buffer().same(memory.buffer()) => memory.buffer().written_by(op),
        Some(written) => store(op, memory, memory, written)?,
        None => {}
    }
    Ok(over_memory(&next, memory))
}

/// Writes `new` to the rows of `width` elements of `table`, contiguous under `memory`, or adds it.
pub fn store_rows(
    op: &str, memory: &Array, (table, width): (&Array, usize), new: &Array, index: &Array, add: bool,
) -> Result<()> {
    check_writable(op, memory)?;
    let put = PutRows { width: width as u64, add, over: Donated::default() };
    bind_into(&put, &[table, new, index], &[table], op)
}

/// Writes one element to the elements of `target` where `mask` holds. Returns false, having done nothing,
/// unless all are plain arrays on the CPU and fit.
pub fn fill_where(op: &str, target: &Tensor, mask: &Tensor, value: &Tensor) -> Result<bool> {
    let Some(arrays) = bind::plain(&[target, mask, value]) else { return Ok(false) };
    let [to, mask, value] = arrays[..] else { return Ok(false) };
    let fits = value.numel() == 1 && value.dtype() == to.dtype() && mask.dtype() == DType::Bool;
    let fits = fits && mask.shape().broadcast(&to.shape()) == Some(to.shape());
    // Where elements share memory, the mask could hold for only some of them.
    if !fits || arrays.iter().any(|a| a.device() != Device::Cpu) || to.overlaps_itself() {
        return Ok(false);
    }
    check_writable(op, to)?;
    bind_into(&Select, &[mask, value, to], &[to], op)?;
    Ok(true)
}

/// Writes `target`, which is all or a part of `memory`, through strides and bumps the version.
pub fn store(op: &str, memory: &Array, target: &Array, new: &Array) -> Result<()> {
    check_memory(op, memory)?;
    check_writable(op, target)?;
    bind_into(&Contiguous, &[new], &[target], op)
}
