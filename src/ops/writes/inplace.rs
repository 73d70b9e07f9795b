//! In-place writes: real writes through strides, which bump the version of the buffer.
//!
//! A write never changes a tape entry and computes nothing itself: [`write()`] stores a value that was
//! computed out of place and returns what the written tensor has become, which the caller puts in its place.
//! What the operation saves of the old value is a copy ([`shielding`]), so that a chain of in-place
//! operations has the right gradient; anybody else who saved the old value is told by the version. Where
//! there are only plain arrays of floats, a row of the tables is computed over the old value ([`row_over`]).
//! A write into a view is a function of the whole, `Put` ([`write_part`]). Inside `vmap` and `jvp`, where a
//! value is not memory, the value replaces the target (`src/ops/writes/history.rs`); its memory is written
//! where nobody else sees it (`src/ops/writes/alone.rs`), so that there, too, a write costs as much as what
//! is written.

use crate::array::Array;
use crate::array::buffer::Device;
use crate::array::dtype::DType;
use crate::array::shape::Shape;
use crate::bind;
use crate::cpu::indexing::put::{self, Table};
use crate::device::on_device;
use crate::error::{Error, Result};
use crate::interp::{self, is_grad_enabled};
use crate::op::Op;
use crate::ops::pointwise::binary::Binary;
use crate::ops::pointwise::elementwise::{Map, Operand};
use crate::ops::pointwise::table::{Fun, Params};
use crate::ops::views::strided::{Part, with_destinations};
use crate::ops::writes::alone;
use crate::ops::writes::history::{self, Keep};
use crate::ops::writes::rows::Rows;
use crate::ops::writes::writable::{
    check_leaf, check_outside_inference, check_writable, shared_elements, shares_elements,
};
use crate::tape::saving;
use crate::tensor::{Payload, Tensor, over_memory};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// Runs `f`, an operation whose result will be written into the memory of `target`: what it saves of that
/// memory is a copy, so that a chain of in-place operations has the right gradient.
pub fn shielding<T>(target: &Tensor, f: impl FnOnce() -> T) -> T {
    match target.concrete() {
        Some(memory) if is_grad_enabled() => saving::shielding(memory, f),
        _ => f(),
    }
}

/// `value` as it may be stored in a tensor of this shape and dtype like `target`: of its dtype, and without
/// the history on tapes that do not record now.
fn storable(op: &str, target: &Tensor, shape: &Shape, value: Tensor) -> Result<Tensor> {
    if value.shape() != *shape {
        return Err(Error::shape(format!(
            "{op}_: the result has shape {} and does not fit into the tensor of shape {shape}",
            value.shape(),
        )));
    }
    if value.dtype() != target.dtype() && value.dtype().category() > target.dtype().category() {
        return Err(Error::dtype(format!(
            "{op}_: the result is {} and cannot be stored in a {} tensor; write x = x.{op}(...)",
            value.dtype(),
            target.dtype()
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

/// `value` with an entry of the tape of its own where it is somebody else's value already: a copy of a leaf
/// is no leaf, and has hooks of its own.
fn unshared(value: Tensor) -> Result<Tensor> {
    let shared = value.traced().is_some_and(|t| Arc::strong_count(t) > 1);
    if shared { value.renamed() } else { Ok(value) }
}

/// `t` without the outer levels that belong to tapes which do not record now.
pub fn recorded_part(mut t: Tensor) -> Tensor {
    loop {
        let inner = match t.traced().map(|x| (x.tag, &x.payload)) {
            Some((tag, Payload::Taped { primal, .. })) if tag < interp::grad_threshold() => primal.clone(),
            _ => return t,
        };
        t = inner;
    }
}

/// Whether a write of `value` into `target` becomes part of a graph.
pub fn is_recorded(target: &Tensor, value: &Tensor) -> bool {
    value.traced().is_some() || recorded_part(target.clone()).traced().is_some()
}

/// Stores `value` in the memory of `target` and returns the tensor that `target` is from now on.
pub fn write(op: &str, target: &Tensor, value: Tensor) -> Result<Tensor> {
    check_leaf(op, target)?;
    let value = unshared(storable(op, target, &target.shape(), value)?)?;
    let (Some(memory), Some(new)) = (target.concrete(), value.concrete()) else {
        return replaced(target, value);
    };
    if value.traced().is_none() && is_recorded(target, &value) {
        // A constant: the target stays part of its graph, with a gradient of zero.
        return Ok(write_part(op, target, &Part::whole(&target.shape()), value)?.unwrap_or(target.clone()));
    }
    keep_outputs(target, memory)?;
    store(op, memory, memory, new)?;
    // Not recorded: the history of the target stands.
    Ok(if is_recorded(target, &value) { over_memory(&value, memory) } else { target.clone() })
}

/// [`write()`] for a target whose memory is not its value: nothing is written, the value takes its place.
pub fn exchange(op: &str, target: &Tensor, value: Tensor) -> Result<Tensor> {
    check_leaf(op, target)?;
    replaced(target, unshared(storable(op, target, &target.shape(), value)?)?)
}

/// What `target` is once `value` took its place, where one of them is no memory.
fn replaced(target: &Tensor, value: Tensor) -> Result<Tensor> {
    let value = match saving::bottom(&value) {
        // The value is the target from now on, so its memory must be its own.
        Some(new) if value.concrete().is_some() || !new.is_alone() => over_memory(&value, &new.copied()?),
        _ => value,
    };
    if history::is_recorded(target) && !history::is_recorded(&value) {
        // A constant: as in `write`.
        return target.put(&Part::whole(&target.shape()), &value);
    }
    history::kept(target, &value, Keep::Unrecorded)
}

/// Whether the reverse rule of `op` reads its output where the operands would do.
fn keeps_output_for_speed(op: &Op) -> bool {
    let row = |fun| matches!(fun, Fun::Binary(Binary::Div | Binary::Copysign));
    matches!(op, Op::Attention(_)) || matches!(op, Op::Map(map) if row(map.fun))
}

/// Gives the entry that made `target` a copy of it, where the entry keeps its output for speed alone.
fn keep_outputs(target: &Tensor, memory: &Array) -> Result<()> {
    match target.edge() {
        Some(edge) if edge.node.op().is_some_and(keeps_output_for_speed) => edge.node.keep_copies(memory),
        _ => Ok(()),
    }
}

/// Computes a row of the tables in the memory of `target`, its first operand; says whether it could. It can
/// where all are plain arrays of one float type on the CPU and the result has the target's shape: for
/// everything else there is [`write()`].
pub fn row_over(fun: Fun, target: &Tensor, other: Option<Operand>) -> Result<bool> {
    let dtype = target.dtype();
    let fits = |y: &Operand| match y {
        Operand::Tensor(y) => {
            y.dtype() == dtype && y.shape().broadcast(&target.shape()) == Some(target.shape())
        }
        y => y.result_type(target) == dtype,
    };
    if !dtype.is_float() || target.device() != Device::Cpu || !other.iter().all(fits) {
        return Ok(false);
    }
    let other = other.map(|y| y.to_rule_input(dtype, target)).transpose()?;
    let operands: SmallVec<[&Tensor; 2]> = std::iter::once(target).chain(&other).collect();
    let Some(arrays) = bind::plain(&operands) else { return Ok(false) };
    if arrays.iter().any(|a| a.device() != Device::Cpu) {
        return Ok(false);
    }
    check_writable(fun.name(), arrays[0])?;
    saving::before_write(arrays[0])?;
    Map { fun, p: Params::default() }.eval_over(arrays[0], &arrays)?;
    arrays[0].buffer().written_by(fun.name());
    Ok(true)
}

/// Stores `value` in a part of `target`, the value of a tensor object, which has the only other handle to it
/// but for what else reads it. Returns the tensor that `target` is from now on; `None` if it is the same with
/// other numbers.
pub fn write_part(op: &str, target: &Tensor, part: &Part, value: Tensor) -> Result<Option<Tensor>> {
    if part.overlaps() {
        return Err(shared_elements(op, &part.shape));
    }
    let value = storable(op, target, &part.shape, value)?;
    let (Some(memory), Some(new)) = (target.concrete(), value.concrete()) else {
        return replacing(target, || put(target, part, &value)).map(Some);
    };
    if part.shape.numel() == 0 {
        return Ok(None);
    }
    check_writable(op, memory)?;
    if !memory.is_contiguous() {
        // Not in the order that the part counts in: the whole is written.
        let whole = target.put(part, &value)?;
        return write(op, target, whole).map(|t| is_recorded(target, &value).then_some(t));
    }
    keep_outputs(target, memory)?;
    if !is_recorded(target, &value) {
        store(op, memory, &part.view(memory)?, new)?;
        return Ok(None);
    }
    put_over(op, memory, || target.put(part, &value)).map(Some)
}

/// The value that `f` makes by writing a part of `memory`, or of a copy of it, as the value of `memory`.
fn put_over(op: &str, memory: &Array, f: impl FnOnce() -> Result<Tensor>) -> Result<Tensor> {
    saving::before_write(memory)?;
    let next = with_destinations(smallvec![memory.clone()], f)?;
    match next.concrete() {
        Some(written) if written.buffer().same(memory.buffer()) => memory.buffer().written_by(op),
        Some(written) => store(op, memory, memory, written)?,
        None => {}
    }
    Ok(over_memory(&next, memory))
}

/// [`write_part`] as [`exchange`].
pub fn exchange_part(op: &str, target: &Tensor, part: &Part, value: Tensor) -> Result<Option<Tensor>> {
    if part.overlaps() {
        return Err(shared_elements(op, &part.shape));
    }
    let value = storable(op, target, &part.shape, value)?;
    put(target, part, &value).map(Some)
}

/// `target` with `value` in a part of it, and with the history that stays.
fn put(target: &Tensor, part: &Part, value: &Tensor) -> Result<Tensor> {
    history::kept(target, &target.put(part, value)?, Keep::Unrecorded)
}

/// Runs `f`, which writes a part of `target`, a value that it replaces: what only the object and the caller
/// see of it is written where it stands.
fn replacing<T>(target: &Tensor, f: impl FnOnce() -> T) -> T {
    with_destinations(alone::memory(target, 2), f)
}

/// [`write_part`] of rows, where `value` may also be added to what is there.
pub fn write_rows(
    op: &str,
    target: &Tensor,
    rows: &Rows,
    value: Tensor,
    add: bool,
) -> Result<Option<Tensor>> {
    let value = storable(op, target, &rows.shape, value)?;
    let (Some(memory), Some(new), Some(index)) = (target.concrete(), value.concrete(), rows.index.concrete())
    else {
        return replacing(target, || put_rows(target, rows, &value, add)).map(Some);
    };
    check_writable(op, memory)?;
    if !memory.is_contiguous() {
        // Not in the order that the rows count in: the whole is written.
        let whole = target.put_rows(rows, &value, add)?;
        return write(op, target, whole).map(|t| is_recorded(target, &value).then_some(t));
    }
    keep_outputs(target, memory)?;
    if !is_recorded(target, &value) && memory.device() == Device::Cpu {
        store_rows(op, memory, &Table::of(memory, rows.width), new, index, add)?;
        return Ok(None);
    }
    let next = put_over(op, memory, || target.put_rows(rows, &value, add))?;
    Ok(is_recorded(target, &value).then_some(next))
}

/// [`put`] of rows.
fn put_rows(target: &Tensor, rows: &Rows, value: &Tensor, add: bool) -> Result<Tensor> {
    history::kept(target, &target.put_rows(rows, value, add)?, Keep::Unrecorded)
}

/// [`write_rows`] as [`exchange`].
pub fn exchange_rows(
    op: &str,
    target: &Tensor,
    rows: &Rows,
    value: Tensor,
    add: bool,
) -> Result<Option<Tensor>> {
    let value = storable(op, target, &rows.shape, value)?;
    put_rows(target, rows, &value, add).map(Some)
}

/// Writes `new` to rows of a table over the memory of `memory`, or adds it there, and bumps the version.
pub fn store_rows(
    op: &str,
    memory: &Array,
    table: &Table,
    new: &Array,
    index: &Array,
    add: bool,
) -> Result<()> {
    check_writable(op, memory)?;
    saving::before_write(memory)?;
    let new = crate::cpu::pointwise::copy::contiguous(new)?;
    let width = table.width();
    let wide = Shape::new(&[new.numel() / width.max(1), width])?;
    put::rows(table, &new.with_layout(wide, &[width as isize, 1], new.offset())?, index, add)?;
    memory.buffer().written_by(op);
    Ok(())
}

/// Writes one element to those of `target` where `mask` holds; says whether it could: it can where all are
/// plain arrays on the CPU.
pub fn fill_where(op: &str, target: &Tensor, mask: &Tensor, value: &Tensor) -> Result<bool> {
    let Some(arrays) = bind::plain(&[target, mask, value]) else { return Ok(false) };
    let [to, mask, value] = arrays[..] else { return Ok(false) };
    let fits = value.numel() == 1 && value.dtype() == to.dtype() && mask.dtype() == DType::Bool;
    let fits = fits && mask.shape().broadcast(&to.shape()) == Some(to.shape());
    // Of elements that share memory, the mask may hold for none.
    if !fits || arrays.iter().any(|a| a.device() != Device::Cpu) || shares_elements(to) {
        return Ok(false);
    }
    check_writable(op, to)?;
    saving::before_write(to)?;
    put::fill_where(to, &mask.expand(&to.shape())?, value)?;
    to.buffer().written_by(op);
    Ok(true)
}

/// Writes `target`, which is all or a part of `memory`, through strides and bumps the version.
pub fn store(op: &str, memory: &Array, target: &Array, new: &Array) -> Result<()> {
    check_outside_inference(op, memory)?;
    check_writable(op, target)?;
    saving::before_write(memory)?;
    on_device!(target, copy::copy_into(target, new))?;
    memory.buffer().written_by(op);
    Ok(())
}
