//! Saving tensors for backward. By default a tensor is saved as it is, with the version of its buffer. A
//! `SavedHook` on the thread's stack (a checkpoint, a saved-tensor hook) may store something else instead and
//! return the tensor on demand.

use crate::array::Array;
use crate::error::{Error, Result};
use crate::interp::{Tag, eval};
use crate::op::Op;
use crate::tape::host_ref::{HeldPart, Holder};
use crate::tape::location::{self, Location};
use crate::tape::node::{Saved, Slot};
use crate::tensor::{Aval, Tensor, over_memory};
use crate::watch::script;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;
use std::thread::LocalKey;

/// Replaces saved tensors by something else, from which they can be restored.
pub trait SavedHook {
    /// Whether it replaces the tensors that the tape with this tag saves; others are saved as they are.
    fn covers(&self, _tape: Tag) -> bool {
        true
    }
    /// Called when `op` saves `value`; the result replaces it until backward.
    fn pack(&self, op: &Op, slot: Slot, value: &Tensor) -> Result<Arc<dyn Packed>>;
    /// Called before an in-place write to `memory`.
    fn before_write(&self, _memory: &Array) -> Result<()> {
        Ok(())
    }
}

/// Is told of in-place writes; does not replace saved tensors.
pub trait WriteObserver {
    /// Called before an in-place write to `memory`.
    fn before_write(&self, memory: &Array) -> Result<()>;
}

/// What a [`SavedHook`] stores in place of a saved tensor.
pub trait Packed: Holder {
    /// Returns the tensor.
    fn unpack(&self) -> Result<Tensor>;
    /// Bytes of tensor memory that it holds.
    fn bytes(&self) -> usize;
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Slot::Input(i) => write!(f, "input {i}"),
            Slot::Output(i) => write!(f, "output {i}"),
        }
    }
}

enum Store {
    Plain(Tensor),
    Packed(Arc<dyn Packed>),
}

/// A saved tensor of a node.
pub struct SavedTensor {
    /// Which input or output of the operation it is.
    pub slot: Slot,
    /// Whether the rule needs it only for cotangents of hidden outputs of a custom function.
    pub in_reserve: bool,
    version: u32,
    store: Store,
}

impl SavedTensor {
    /// Saves a tensor as it is.
    #[inline]
    pub fn plain(slot: Slot, value: Tensor) -> SavedTensor {
        SavedTensor { slot, in_reserve: false, version: version(&value), store: Store::Plain(value) }
    }

    /// The tensor, unless a hook replaced it.
    #[inline]
    pub fn tensor(&self) -> Option<&Tensor> {
        match &self.store {
            Store::Plain(t) => Some(t),
            Store::Packed(_) => None,
        }
    }

    /// Whether it is a concrete array, which holds no nodes.
    #[inline]
    pub fn is_plain(&self) -> bool {
        matches!(self.store, Store::Plain(Tensor::Array(_)))
    }

    /// Returns a second handle to the same saved tensor.
    pub fn share(&self) -> SavedTensor {
        let store = match &self.store {
            Store::Plain(t) => Store::Plain(t.clone()),
            Store::Packed(p) => Store::Packed(p.clone()),
        };
        SavedTensor { slot: self.slot, in_reserve: self.in_reserve, version: self.version, store }
    }

    /// Shape, dtype and device, unless a hook replaced the tensor.
    pub fn aval(&self) -> Option<Aval> {
        self.tensor().map(Tensor::aval)
    }

    /// Returns the saved tensor over a copy of its memory, if that is `memory` and was not written to since.
    pub fn copied_from(&self, memory: &Array) -> Result<Option<SavedTensor>> {
        let Store::Plain(value) = &self.store else { return Ok(None) };
        let copy = copied_from(value, self.version, memory)?;
        Ok(copy
            .map(|copy| SavedTensor { in_reserve: self.in_reserve, ..SavedTensor::plain(self.slot, copy) }))
    }

    /// Its content, for the walk of the garbage collector.
    pub fn part(&self) -> HeldPart<'_> {
        match &self.store {
            Store::Plain(t) => HeldPart::Tensor(t),
            Store::Packed(p) => HeldPart::Shared(p.clone()),
        }
    }

    /// Bytes of tensor memory that it holds.
    pub fn bytes(&self) -> usize {
        match &self.store {
            Store::Plain(t) => bytes(t),
            Store::Packed(p) => p.bytes(),
        }
    }

    /// Raises if the tensor was written to since `op` saved it.
    #[inline]
    pub fn check(&self, op: &Op, location: Option<Location>) -> Result<()> {
        let Store::Plain(t) = &self.store else { return Ok(()) };
        let now = version(t);
        if now == self.version {
            return Ok(());
        }
        Err(modified(op.name(), location, self.slot, (self.version, now), t))
    }

    /// Returns the tensor; an error if it was written to since `op` saved it.
    pub fn restore(self, op: &Op, location: Option<Location>) -> Result<Tensor> {
        self.check(op, location)?;
        match self.store {
            Store::Packed(p) => p.unpack(),
            Store::Plain(t) => Ok(t),
        }
    }
}

/// ` by WRITER` for a message; empty if the writer is unknown.
pub fn by(writer: Option<&str>) -> String {
    match writer {
        None => String::new(),
        Some("setitem") => " by x[...] = value".into(),
        Some(rule) if rule.starts_with(char::is_uppercase) => format!(" by a step of {rule}"),
        Some(name) => format!(" by {name}_"),
    }
}

/// The error for a saved tensor that was overwritten.
#[cold]
fn modified(op: &str, location: Option<Location>, slot: Slot, (then, now): (u32, u32), t: &Tensor) -> Error {
    let by = by(bottom(t).and_then(|a| a.buffer().writer()));
    Error::autodiff(format!(
        "backward of {op}{}: its saved {slot} of shape {} was modified in place{by} (version {now}, \
         expected {then}); write x = x + ... instead of an in-place operation, or modify a clone(){}",
        location::recorded(location),
        t.shape(),
        location::hint(location)
    ))
}

/// Returns `value` over a copy of its memory, if that is `memory` and has this version still: the id of a
/// freed buffer may name another one now, and a tensor of an old version is lost already.
pub fn copied_from(value: &Tensor, version: u32, memory: &Array) -> Result<Option<Tensor>> {
    match bottom(value) {
        Some(own) if own.buffer().same(memory.buffer()) && own.buffer().version() == version => {
            Ok(Some(over_memory(value, &eval::copied(own)?)))
        }
        _ => Ok(None),
    }
}

/// The version of the buffer at the bottom of a tensor.
#[inline]
pub fn version(t: &Tensor) -> u32 {
    bottom(t).map_or(0, |a| a.buffer().version())
}

/// Bytes of the buffer at the bottom of a tensor.
pub fn bytes(t: &Tensor) -> usize {
    bottom(t).map_or(0, |a| a.buffer().bytes())
}

/// Whether the buffer at the bottom of a tensor was made in inference mode.
#[inline]
pub fn is_inference(t: &Tensor) -> bool {
    bottom(t).is_some_and(|a| a.buffer().is_inference())
}

/// The concrete array at the bottom of a tensor.
#[inline]
pub fn bottom(t: &Tensor) -> Option<&Array> {
    let mut at = t;
    loop {
        match at {
            Tensor::Array(a) => return Some(a),
            Tensor::Traced(t) => at = t.inner(),
        }
    }
}

/// Memory that is about to be written in place, and the copy made of it for saved tensors, if any.
struct Shield {
    memory: Array,
    copy: Option<Array>,
}

/// Entries of this thread, innermost last.
type Stack<T> = LocalKey<RefCell<Vec<T>>>;

thread_local! {
    /// The memory that in-place operations of this thread are about to write.
    static SHIELDS: RefCell<Vec<Shield>> = const { RefCell::new(Vec::new()) };
    static SAVED_HOOKS: RefCell<Vec<Arc<dyn SavedHook>>> = const { RefCell::new(Vec::new()) };
    static OBSERVERS: RefCell<Vec<Arc<dyn WriteObserver>>> = const { RefCell::new(Vec::new()) };
    /// The number of entries in these stacks.
    static PACKING: Cell<usize> = const { Cell::new(0) };
}

/// Removes the last entry of its stack when dropped.
pub struct Pushed<T: 'static>(&'static Stack<T>);

impl<T> Pushed<T> {
    fn new(stack: &'static Stack<T>, entry: T) -> Pushed<T> {
        stack.with_borrow_mut(|entries| entries.push(entry));
        PACKING.set(PACKING.get() + 1);
        Pushed(stack)
    }
}

impl<T> Drop for Pushed<T> {
    fn drop(&mut self) {
        // `try_with`: a region that was never left is dropped with its thread, when the stack may be gone.
        let last = self.0.try_with(|entries| entries.borrow_mut().pop());
        PACKING.set(PACKING.get().saturating_sub(1));
        // Drops outside the borrow: the entry may be a Python object with a destructor.
        drop(last);
    }
}

/// Guard of a region of [`with_saved_hook`].
pub type HookGuard = Pushed<Arc<dyn SavedHook>>;

/// Runs `f`, during which tensors in `memory` are saved as copies, because an in-place write follows.
pub fn shielding<T>(memory: &Array, f: impl FnOnce() -> T) -> T {
    let _shield = Pushed::new(&SHIELDS, Shield { memory: memory.clone(), copy: None });
    f()
}

/// Returns `value`, over a copy of its memory if that is about to be written in place.
fn shielded(value: &Tensor) -> Result<Tensor> {
    let Some(own) = bottom(value) else { return Ok(value.clone()) };
    SHIELDS.with_borrow_mut(|shields| {
        let Some(shield) = shields.iter_mut().find(|s| s.memory.buffer().same(own.buffer())) else {
            return Ok(value.clone());
        };
        // The copy of the whole target is shared; views of it are rare and copied each time.
        let target = &shield.memory;
        let whole =
            own.offset() == target.offset() && own.same_layout(target) && own.dtype() == target.dtype();
        let copy = match &shield.copy {
            Some(copy) if whole => copy.clone(),
            _ => eval::copied(own)?,
        };
        if whole {
            shield.copy = Some(copy.clone());
        }
        Ok(over_memory(value, &copy))
    })
}

/// Whether hooks or observers see what this thread saves.
pub fn is_packing() -> bool {
    PACKING.get() != 0
}

/// Tells all hooks and observers of this thread that `memory` is about to be written in place.
#[inline]
pub fn before_write(memory: &Array) -> Result<()> {
    if PACKING.get() != 0 || script::is_on() { announce(memory) } else { Ok(()) }
}

#[cold]
fn announce(memory: &Array) -> Result<()> {
    if script::is_on() {
        script::before_write(memory)?;
    }
    let hooks = SAVED_HOOKS.with_borrow(Vec::clone);
    hooks.iter().try_for_each(|p| p.before_write(memory))?;
    let observers = OBSERVERS.with_borrow(Vec::clone);
    observers.iter().try_for_each(|w| w.before_write(memory))
}

/// Saves `value` for `op`, which the tape with tag `tape` records.
#[inline]
pub fn save(tape: Tag, op: &Op, slot: Slot, value: Tensor, saved: &mut Saved) -> Result<()> {
    if is_inference(&value) && !crate::array::buffer::inference() {
        return Err(inference(op, &value));
    }
    if PACKING.get() != 0 {
        let value = shielded(&value)?;
        let store = packed(tape, op, slot, &value)?;
        saved.push(SavedTensor { slot, in_reserve: false, version: version(&value), store });
    } else {
        saved.push(SavedTensor::plain(slot, value));
    }
    Ok(())
}

#[cold]
fn inference(op: &Op, value: &Tensor) -> Error {
    Error::autodiff(format!(
        "{}: the {} tensor of shape {} was made in inference_mode() and cannot be saved for backward; use a \
         clone() of it, or make it under no_grad() instead",
        op.name(),
        value.dtype(),
        value.shape()
    ))
}

#[cold]
fn packed(tape: Tag, op: &Op, slot: Slot, value: &Tensor) -> Result<Store> {
    let hook = SAVED_HOOKS.with_borrow(|p| p.last().filter(|p| p.covers(tape)).cloned());
    Ok(match hook {
        Some(hook) => Store::Packed(hook.pack(op, slot, value)?),
        None => Store::Plain(value.clone()),
    })
}

/// Routes every tensor saved on this thread through `hook` until the guard is dropped.
#[must_use]
pub fn with_saved_hook(hook: Arc<dyn SavedHook>) -> HookGuard {
    Pushed::new(&SAVED_HOOKS, hook)
}

/// Tells `observer` of the in-place writes of this thread until the guard is dropped.
#[must_use]
pub fn with_write_observer(observer: Arc<dyn WriteObserver>) -> Pushed<Arc<dyn WriteObserver>> {
    Pushed::new(&OBSERVERS, observer)
}
