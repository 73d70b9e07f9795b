//! Branches that run for all examples of a batch, each of which takes one of them (`cond` under `vmap`), or
//! on all ranks, which are the examples then.
//!
//! What a branch reads from outside has a derivative only where the branch is taken: 0 times a derivative
//! that is not finite is NaN, but that of a constant is 0 in all orders. So the first operation of a branch
//! that reads a tensor from outside masks it: it reads `where(taken, x, x.detach())` in its place. Batched
//! values know in which branch they were made. All others are the same for all examples: they are masked for
//! each example when an operation also reads a batched value; before that, for all, by whether any takes it.
//! A matrix that a product reads, and a large tensor, is not copied for each example. Instead the operands
//! that differ between examples are finite constants where the branch is not taken, and results are masked.
//!
//! A view of a tensor from outside is from outside as well, and so stays a view of it. Transforms that begin
//! in the branch are not masked: their values are masked below them, so `grad` in a branch is what it is.
//! Nothing from outside is written (`check_outside` in `src/ops/writes/writable.rs`): all examples would be.

use crate::arguments::logic::Logic;
use crate::array::Array;
use crate::array::buffer::{self, Device};
use crate::error::Result;
use crate::interp::{self, Interp, Tag};
use crate::op::{Class, Op};
use crate::process::on_drop::OnDrop;
use crate::tape::node::Node;
use crate::tape::saving;
use crate::tensor::{Payload, Tensor, Tensors, Traced};
use crate::watch::absent;
use crate::watch::debug::{self, Modes};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// Identity of a branch; 0 outside of all. It is a tag: levels that began before the branch have smaller
/// ones, those that begin in it larger ones.
pub type BranchId = Tag;

/// Elements of the largest tensor that is copied for each example, unless elementwise operations read it,
/// whose results are as large.
const SHARED: usize = 4096;

/// A branch that runs.
pub struct Branch {
    id: BranchId,
    /// The examples for which it is taken.
    taken: Tensor,
    /// Whether it is taken for any example: the same for all of them.
    any: Tensor,
    /// The innermost interpreter of `taken`, if it differs between examples.
    level: Option<Tag>,
    /// The number of the first node that could be recorded in it.
    first_node: u64,
    /// What is read in place of a tensor; see [`mask_once`].
    masked: FxHashMap<Key, (Tensor, Tensor)>,
}

/// The address of a traced tensor, and whether `any` masks it.
type Key = (usize, bool);

impl Branch {
    /// The same branch before it has read anything.
    pub fn fresh(&self) -> Branch {
        let (taken, any) = (self.taken.clone(), self.any.clone());
        Branch { taken, any, masked: FxHashMap::default(), ..*self }
    }
}

thread_local! {
    static RUNNING: RefCell<Option<Branch>> = const { RefCell::new(None) };
    /// The identity of `RUNNING`, which every operation asks for.
    static ID: Cell<BranchId> = const { Cell::new(0) };
    /// Whether this thread masks a tensor at the moment.
    static MASKING: Cell<bool> = const { Cell::new(false) };
}

/// The innermost branch that this thread runs; 0 if there is none.
#[inline]
pub fn id() -> BranchId {
    ID.get()
}

/// Runs `f` as a branch that is taken where `taken` holds and the branch around it is taken.
pub fn within<T>(taken: Tensor, f: impl FnOnce() -> T) -> Result<T> {
    let taken = match examples() {
        Some(around) => around.logical(&taken, Logic::And)?,
        None => taken,
    };
    let _ended = resume(Some(Branch {
        id: interp::new_tag(),
        level: taken.traced().map(|t| t.tag),
        any: taken.peeled(|_| true).any(None, false)?,
        taken,
        first_node: Node::next_seq(),
        masked: FxHashMap::default(),
    }));
    Ok(f())
}

/// The innermost branch that this thread runs, to [`resume`] it.
pub fn running() -> Option<Branch> {
    if id() == 0 { None } else { RUNNING.with_borrow(|running| running.as_ref().map(Branch::fresh)) }
}

/// Runs this branch again, or none, until the guard is dropped.
pub fn resume(branch: Option<Branch>) -> OnDrop<impl FnMut()> {
    let id_of = |branch: &Option<Branch>| branch.as_ref().map_or(0, |branch| branch.id);
    ID.set(id_of(&branch));
    let born = buffer::enter_transform(ID.get());
    let mut before = RUNNING.replace(branch);
    OnDrop(move || {
        buffer::leave_transform(born);
        ID.set(id_of(&before));
        // Tensors are dropped when nobody looks at it.
        drop(RUNNING.replace(before.take()));
    })
}

/// The examples that take the branch that runs, and those around it.
pub fn examples() -> Option<Tensor> {
    running().map(|branch| branch.taken)
}

/// Whether it is known that no example takes the branch that runs. While a program is written it is not, for
/// that would hold for this run alone.
pub fn is_idle() -> Result<bool> {
    match running().map(|branch| branch.any) {
        Some(Tensor::Array(any)) if any.device() == Device::Cpu => {
            let is_there = !debug::modes().has(Modes::SCRIPT) && !absent::is_absent(&any);
            Ok(is_there && any.item()? == 0.0)
        }
        _ => Ok(false),
    }
}

/// An operand of the branch that runs: a copy of `x`, which the branch may write into.
pub fn operand(x: &Tensor) -> Result<Tensor> {
    match running() {
        Some(branch) if is_number(x) && is_batched(x) => mask(&branch.taken, x),
        _ => interp::with_grad(|| x.copied()),
    }
}

/// `x`, with a derivative where `taken` holds, whether or not recording is on: the branch may turn it on. The
/// mask is recorded even where the flag's value is known: in the history of `x` other ranks may take part,
/// and gradients are added in one order in eager mode, programs and batches.
fn mask(taken: &Tensor, x: &Tensor) -> Result<Tensor> {
    unmasked(|| choose(taken, x, &x.detach()))
}

/// Runs `f`, which masks: what it reads is not masked.
fn unmasked<T>(f: impl FnOnce() -> T) -> T {
    let before = MASKING.replace(true);
    let _restored = OnDrop(|| MASKING.set(before));
    f()
}

/// `x` where `flag` holds, `y` elsewhere, with their histories, whether or not recording is on: as a branch
/// that runs alone returns what it is.
pub fn choose(flag: &Tensor, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    interp::with_grad(|| flag.select(x, y))
}

/// Forgets what is read in place of tensors, whose memory is written.
#[inline]
pub fn forget() {
    if id() != 0 {
        drop(RUNNING.with_borrow_mut(|running| Some(std::mem::take(&mut running.as_mut()?.masked))));
    }
}

/// An operation of a branch, masked.
pub struct Masked {
    /// Its inputs.
    pub inputs: SmallVec<[Tensor; 4]>,
    /// The examples in which its results have a derivative, if it reads a tensor that has no mask.
    taken: Option<Tensor>,
}

impl Masked {
    /// The results of the operation.
    pub fn results(&self, results: Tensors) -> Result<Tensors> {
        let Some(taken) = &self.taken else { return Ok(results) };
        results.into_iter().map(|y| if is_number(&y) { mask(taken, &y) } else { Ok(y) }).collect()
    }
}

/// The operation `op`, which runs at the interpreter `at`, masked where the branch that runs reads from
/// outside; `None` if it does not.
#[inline]
pub fn masked(at: &Arc<Interp>, op: &Op, inputs: &[&Tensor]) -> Result<Option<Masked>> {
    if id() == 0 || MASKING.get() { Ok(None) } else { mask_all(at, op, inputs) }
}

#[cold]
fn mask_all(at: &Arc<Interp>, op: &Op, inputs: &[&Tensor]) -> Result<Option<Masked>> {
    let is_differentiated = |x: &Tensor| is_number(x) && x.is_differentiated();
    // A level that began in the branch gives the operation its meaning, and masks what it reads below itself.
    let is_above = |x: &&Tensor| x.traced().is_some_and(|t| t.tag > id());
    if op.is_view() || inputs.iter().any(is_above) || !inputs.iter().any(|x| is_differentiated(x)) {
        return Ok(None);
    }
    let Some(branch) = running() else { return Ok(None) };
    // Below the level of the flag, inputs are masked already.
    if branch.level.is_some_and(|level| !at.contains(level)) {
        return Ok(None);
    }
    let for_any = !inputs.iter().any(|x| is_batched(x));
    // On ranks, where nothing is batched, the branch cannot tell its own values.
    let made_here = |x: &Tensor| for_any && branch.level.is_some() && is_recorded_since(x, branch.first_node);
    let flag = if for_any { branch.any } else { branch.taken };
    let is_shared = |x: &Tensor| !for_any && !is_batched(x) && is_differentiated(x) && stays_shared(op, x);
    let is_masked = |x: &Tensor| {
        let is_read = match is_batched(x) {
            true => is_from_before(x),
            false => x.device() == flag.device() && !made_here(x),
        };
        is_differentiated(x) && is_read && !is_shared(x)
    };
    let shares = inputs.iter().any(|x| is_shared(x));
    if !shares && !inputs.iter().any(|x| is_masked(x)) {
        return Ok(None);
    }
    let input = |x: &&Tensor| {
        let x = if is_masked(x) { mask_once(&flag, for_any, x)? } else { (*x).clone() };
        if shares && is_number(&x) && is_batched(&x) { finite_elsewhere(&flag, &x) } else { Ok(x) }
    };
    let inputs = inputs.iter().map(input).collect::<Result<_>>()?;
    Ok(Some(Masked { inputs, taken: shares.then_some(flag) }))
}

/// `x` where `taken` holds, and elsewhere a constant, that is its value if that is finite.
fn finite_elsewhere(taken: &Tensor, x: &Tensor) -> Result<Tensor> {
    unmasked(|| {
        let constant = x.detach();
        taken.select(x, &constant.is_finite()?.select(&constant, 1.0)?)
    })
}

/// [`mask`], once for each tensor and flag. The tensor is kept, so that no other one has its address.
fn mask_once(flag: &Tensor, for_any: bool, x: &Tensor) -> Result<Tensor> {
    let key = (x.traced().map_or(0, |t| Arc::as_ptr(t) as usize), for_any);
    let found = RUNNING.with_borrow(|branch| Some(branch.as_ref()?.masked.get(&key)?.1.clone()));
    if let Some(found) = found {
        return Ok(found);
    }
    let new = mask(flag, x)?;
    let pair = (x.clone(), new.clone());
    drop(RUNNING.with_borrow_mut(|branch| branch.as_mut()?.masked.insert(key, pair)));
    Ok(new)
}

/// Whether a node from `first` on, but none of a view, made `x`.
fn is_recorded_since(x: &Tensor, first: u64) -> bool {
    x.node().is_some_and(|node| node.seq >= first && !node.op().is_some_and(Op::is_view))
}

/// Whether `op` reads `x`, which all examples share, as it is, and its results are masked. For products that
/// is as good, since they are linear in each operand; others may be singular at `x`.
fn stays_shared(op: &Op, x: &Tensor) -> bool {
    match op.class() {
        Class::Elementwise => false,
        Class::Bilinear => true,
        _ => matches!(op, Op::Affine(_) | Op::ConvBias(_)) || x.numel() > SHARED,
    }
}

/// Whether a tensor has derivatives.
fn is_number(x: &Tensor) -> bool {
    x.dtype().is_float() || x.dtype().is_complex()
}

/// The branch that a batched value is of: that which `traced` was made in.
fn made_in(traced: &Traced) -> Option<BranchId> {
    match traced.payload {
        Payload::Batched { branch, .. } => Some(branch),
        _ => None,
    }
}

/// The branch that the results of `op` are made in, at the level `tag`: a view is where its operand is.
pub fn of_results(op: &Op, inputs: &[&Tensor], tag: Tag) -> BranchId {
    let of_operand = || inputs.first().and_then(|x| made_in(x.owned_by(tag)?));
    if id() != 0 && op.is_view() { of_operand().unwrap_or(id()) } else { id() }
}

/// Whether a value may differ between examples.
fn is_batched(x: &Tensor) -> bool {
    x.levels().any(|traced| made_in(traced).is_some())
}

/// Whether a value that may differ between examples was made before the branch that runs.
fn is_from_before(x: &Tensor) -> bool {
    x.levels().any(|traced| made_in(traced).is_some_and(|branch| branch < id()))
}

/// Whether a branch runs, and this tensor is from outside of it.
pub fn is_outside(x: &Tensor) -> bool {
    if id() == 0 || x.traced().is_some_and(|t| t.tag > id()) || (is_batched(x) && !is_from_before(x)) {
        return false;
    }
    // A view may have become a copy.
    saving::bottom(x).is_some_and(is_old)
}

/// Whether a branch runs, and this memory is older.
pub fn is_old(memory: &Array) -> bool {
    memory.buffer().born() < id()
}
