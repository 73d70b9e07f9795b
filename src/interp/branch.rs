//! Branches that run for all examples of a batch, of which each counts for some (`cond` under `vmap`).
//!
//! What a branch reads from outside has a derivative only where the branch is taken: a derivative that is not
//! finite is no less so times 0, but one that is not asked for is 0 in all orders. So the first operation of
//! a branch that meets a tensor from outside puts `where(taken, x, x.detach())` in its place. Batched values
//! know in which branch they were made. All others are the same for all examples: they enter as they meet a
//! batched one, and before that as what some example takes, or none.

use crate::arguments::logic::Logic;
use crate::error::{Error, Result};
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
#[derive(Clone)]
pub struct Branch {
    number: Number,
    /// Where it counts, and whether it does so for any example, the same for all.
    taken: Tensor,
    any: Tensor,
    /// The innermost level of that.
    level: Tag,
    /// What has entered, by its address (for all examples by the next one), which it keeps: as it was, and as
    /// it is in the branch.
    known: FxHashMap<usize, (Tensor, Tensor)>,
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

/// Runs `f` as a branch that counts where `taken` holds, and the branch around it counts.
pub fn within<T>(taken: Tensor, f: impl FnOnce() -> T) -> Result<T> {
    let taken = match running() {
        Some(around) => around.taken.logical(&taken, Logic::And)?,
        None => taken,
    };
    let Some(level) = taken.traced().map(|t| t.tag) else { return Ok(f()) };
    let mut all = &taken;
    while let Some(traced) = all.traced() {
        all = traced.inner();
    }
    let any = all.any(None, false)?;
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    let _ended = resume(Some(Branch { number, taken, any, level, known: FxHashMap::default() }));
    Ok(f())
}

/// The innermost branch, into which nothing has entered.
pub fn running() -> Option<Branch> {
    if NUMBER.get() == 0 {
        return None;
    }
    let empty = |branch: &Branch| Branch {
        known: FxHashMap::default(),
        taken: branch.taken.clone(),
        any: branch.any.clone(),
        ..*branch
    };
    RUNNING.with_borrow(|running| running.as_ref().map(empty))
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

/// An operand of a branch that counts where `taken` holds: with a derivative where the one that runs counts.
pub fn operand(taken: &Tensor, x: &Tensor) -> Result<Tensor> {
    match running() {
        Some(branch) => enter(&branch.taken, x),
        None => enter(taken, x),
    }
}

/// `x` with a derivative where `taken` holds alone.
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
    let found: SmallVec<[Found; 4]> = inputs.iter().map(|x| Found::of(x)).collect();
    if !found.iter().any(|x| x.differentiated) {
        return Ok(None);
    }
    let Some(Branch { taken, any, level, .. }) = running() else { return Ok(None) };
    let flag = if found.iter().any(|x| x.batched) { taken } else { any };
    let enters = |(x, found): (&&Tensor, &Found)| {
        let is_near = x.numel() <= SHARED && x.device() == flag.device();
        found.differentiated && if found.batched { found.outside } else { is_near }
    };
    if !inputs.iter().zip(&found).any(enters) || !interp::current().contains(level) {
        return Ok(None);
    }
    let mut entered = SmallVec::new();
    for pair in inputs.iter().zip(&found) {
        entered.push(if enters(pair) { known(&flag, pair.0)? } else { (*pair.0).clone() });
    }
    Ok(Some(entered))
}

/// [`enter`], once for each tensor and flag.
fn known(taken: &Tensor, x: &Tensor) -> Result<Tensor> {
    let address = x.traced().map_or(0, |t| Arc::as_ptr(t) as usize) + usize::from(taken.traced().is_none());
    let found = RUNNING.with_borrow(|branch| Some(branch.as_ref()?.known.get(&address)?.1.clone()));
    if let Some(found) = found {
        return Ok(found);
    }
    let new = enter(taken, x)?;
    let pair = (x.clone(), new.clone());
    drop(RUNNING.with_borrow_mut(|branch| branch.as_mut()?.known.insert(address, pair)));
    Ok(new)
}

/// Checks that `value` may be written into `target`: not where that is from outside of the branch and one of
/// them has a derivative, for the value is written for all examples, and its derivative for some.
pub fn check_write(op: &str, target: &Tensor, value: &Tensor) -> Result<()> {
    if NUMBER.get() == 0 {
        return Ok(());
    }
    let [to, from] = [target, value].map(Found::of);
    if to.batched && to.outside && (to.differentiated || from.differentiated) {
        let write = if op == "setitem" { "x[...] = value".to_string() } else { format!("{op}_") };
        return Err(Error::autodiff(format!(
            "{write}: a branch that runs for all examples of a batch writes into a tensor from outside of \
             it, which has a derivative; return the new value from the branch, or write into a clone()"
        )));
    }
    Ok(())
}

/// What matters of an input.
struct Found {
    /// Whether it may differ between examples.
    batched: bool,
    /// Whether it was made outside of the branch.
    outside: bool,
    /// Whether something differentiates it, at any level.
    differentiated: bool,
}

impl Found {
    fn of(x: &Tensor) -> Found {
        let mut found = Found { batched: false, outside: false, differentiated: false };
        let is_number = x.dtype().is_float() || x.dtype().is_complex();
        let mut at = x;
        while let Some(traced) = at.traced() {
            match &traced.payload {
                Payload::Taped { .. } | Payload::Staged { .. } | Payload::Dual { tangent: Some(_), .. } => {
                    found.differentiated |= is_number;
                }
                Payload::Batched { branch, .. } => {
                    found.batched = true;
                    found.outside |= *branch < NUMBER.get();
                }
                Payload::Dual { .. } | Payload::Donated { .. } => {}
            }
            at = traced.inner();
        }
        found
    }
}
