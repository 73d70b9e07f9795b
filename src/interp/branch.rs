//! Branches that run for all examples of a batch, each of which takes one of them (`cond` under `vmap`).
//!
//! What a branch reads from outside has a derivative only where the branch is taken: 0 times a derivative
//! that is not finite is NaN, but that of a constant is 0 in all orders. So the first operation of a branch
//! that reads a tensor from outside puts `where(taken, x, x.detach())` in its place: the tensor *enters*.
//! Batched values know in which branch they were made. All others are the same for all examples: one enters
//! for each example when an operation also reads a batched value; before that, `any` example decides for all.

use crate::arguments::logic::Logic;
use crate::error::Result;
use crate::interp::{self, Tag};
use crate::process::on_drop::OnDrop;
use crate::tensor::{Payload, Tensor};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Which branch a value was made in; 0 outside of all. Larger is younger.
pub type Number = u64;

/// A tensor of more elements stays the same for all examples, for each would have its own copy.
const SHARED: usize = 4096;

/// A branch that runs.
pub struct Branch {
    number: Number,
    /// The examples for which it is taken.
    taken: Tensor,
    /// Whether it is taken for any example: the same for all of them.
    any: Tensor,
    /// The innermost interpreter of `taken`, if it differs between examples.
    level: Option<Tag>,
    /// What has entered: the address of a tensor and whether `any` decided, that tensor, and what it became.
    known: FxHashMap<(usize, bool), (Tensor, Tensor)>,
}

impl Clone for Branch {
    /// The same branch, into which nothing has entered.
    fn clone(&self) -> Branch {
        let (taken, any) = (self.taken.clone(), self.any.clone());
        Branch { taken, any, known: FxHashMap::default(), ..*self }
    }
}

static NUMBERS: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static RUNNING: RefCell<Option<Branch>> = const { RefCell::new(None) };
    static NUMBER: Cell<Number> = const { Cell::new(0) };
    /// Whether something enters at the moment.
    static ENTERING: Cell<bool> = const { Cell::new(false) };
}

/// The innermost branch that this thread runs; 0 if there is none.
#[inline]
pub fn number() -> Number {
    NUMBER.get()
}

/// Runs `f` as a branch that is taken where `taken` holds and the branch around it is taken.
pub fn within<T>(taken: Tensor, f: impl FnOnce() -> T) -> Result<T> {
    let taken = match running() {
        Some(around) => around.taken.logical(&taken, Logic::And)?,
        None => taken,
    };
    let level = taken.traced().map(|t| t.tag);
    let any = taken.peeled(|_| true).any(None, false)?;
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    let _ended = resume(Some(Branch { number, taken, any, level, known: FxHashMap::default() }));
    Ok(f())
}

/// The innermost branch that this thread runs.
pub fn running() -> Option<Branch> {
    if NUMBER.get() == 0 { None } else { RUNNING.with_borrow(Option::clone) }
}

/// Goes on with a branch, or with none, until the guard is dropped.
pub fn resume(branch: Option<Branch>) -> OnDrop<impl FnMut()> {
    NUMBER.set(branch.as_ref().map_or(0, |branch| branch.number));
    let mut before = RUNNING.replace(branch);
    OnDrop(move || {
        NUMBER.set(before.as_ref().map_or(0, |branch| branch.number));
        // Tensors are dropped when nobody looks at it.
        drop(RUNNING.replace(before.take()));
    })
}

/// An operand of the branch that runs: `x`, with a derivative where the branch is taken.
pub fn operand(x: &Tensor) -> Result<Tensor> {
    running().map_or_else(|| Ok(x.clone()), |branch| enter(&branch.taken, x))
}

/// `x`, with a derivative where `taken` holds.
fn enter(taken: &Tensor, x: &Tensor) -> Result<Tensor> {
    let before = ENTERING.replace(true);
    let _restored = OnDrop(|| ENTERING.set(before));
    taken.select(x, &x.detach())
}

/// Forgets what has entered, since memory is written.
#[inline]
pub fn forget() {
    if NUMBER.get() != 0 {
        drop(RUNNING.with_borrow_mut(|running| Some(std::mem::take(&mut running.as_mut()?.known))));
    }
}

/// The inputs of an operation as the branch that runs has them; `None` if they are these, as elsewhere.
#[inline]
pub fn entered(inputs: &[&Tensor]) -> Result<Option<SmallVec<[Tensor; 4]>>> {
    if NUMBER.get() == 0 || ENTERING.get() { Ok(None) } else { entering(inputs) }
}

#[cold]
fn entering(inputs: &[&Tensor]) -> Result<Option<SmallVec<[Tensor; 4]>>> {
    let is_number = |x: &Tensor| x.dtype().is_float() || x.dtype().is_complex();
    let is_differentiated = |x: &Tensor| is_number(x) && x.is_differentiated();
    let Some(branch) = running().filter(|_| inputs.iter().any(|x| is_differentiated(x))) else {
        return Ok(None);
    };
    let for_any = !inputs.iter().any(|x| is_batched(x));
    let flag = if for_any { branch.any } else { branch.taken };
    let enters = |x: &Tensor| {
        let is_near = x.numel() <= SHARED && x.device() == flag.device();
        is_differentiated(x) && if is_batched(x) { is_outside(x) } else { is_near }
    };
    let is_here = branch.level.is_none_or(|level| interp::current().contains(level));
    if !is_here || !inputs.iter().any(|x| enters(x)) {
        return Ok(None);
    }
    let entered = |x: &&Tensor| if enters(x) { known(&flag, for_any, x) } else { Ok((*x).clone()) };
    inputs.iter().map(entered).collect::<Result<_>>().map(Some)
}

/// [`enter`], once for each tensor and flag.
fn known(flag: &Tensor, for_any: bool, x: &Tensor) -> Result<Tensor> {
    let key = (x.traced().map_or(0, |t| Arc::as_ptr(t) as usize), for_any);
    let found = RUNNING.with_borrow(|branch| Some(branch.as_ref()?.known.get(&key)?.1.clone()));
    if let Some(found) = found {
        return Ok(found);
    }
    let new = enter(flag, x)?;
    let pair = (x.clone(), new.clone());
    drop(RUNNING.with_borrow_mut(|branch| branch.as_mut()?.known.insert(key, pair)));
    Ok(new)
}

/// The branches in which the levels of a batched value were made.
fn numbers(x: &Tensor) -> impl Iterator<Item = Number> {
    x.levels().filter_map(|traced| match traced.payload {
        Payload::Batched { branch, .. } => Some(branch),
        _ => None,
    })
}

/// Whether a value may differ between examples.
fn is_batched(x: &Tensor) -> bool {
    numbers(x).next().is_some()
}

/// Whether a value that may differ between examples was made outside of the branch that runs, if one does.
pub fn is_outside(x: &Tensor) -> bool {
    numbers(x).any(|number| number < NUMBER.get())
}
