//! The chain of interpreters that gives operations their meaning, one per file (branches and random numbers
//! are what several of them share).
//!
//! The chain is thread-local and ordered: the innermost interpreter is `current`, each points to its parent,
//! and the last is `Eval`. A transform (`vjp`, `jvp`, `vmap`) pushes an interpreter of its own and an ambient
//! tape above it, so that `.backward()` works inside every transform too; an autocast region stays above
//! both. Values carry the tag of the interpreter that owns them, hence nested derivatives cannot be confused.

pub mod autocast;
pub mod batch;
pub mod branch;
pub mod dual;
pub mod eval;
pub mod linearized;
mod prelude;
mod randomness;
pub mod tape;

pub use autocast::{autocast_of, autocasting, below_autocast, eligible, enter_autocast, leave_autocast};
pub use randomness::{Randomness, batches};

use crate::array::buffer;
use crate::array::dtype::DType;
use crate::process::on_drop::OnDrop;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

/// Identity of one interpreter instance; larger is younger.
pub type Tag = u64;

/// What an interpreter does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Runs kernels.
    Eval,
    /// Records for reverse mode. An ambient tape is the one that `.backward()` uses.
    Tape {
        /// Whether tensors become leaves of this tape by `requires_grad`.
        ambient: bool,
    },
    /// Pushes tangents forward.
    Dual,
    /// Runs a whole batch at once.
    Batch {
        /// Length of the batch axis.
        size: usize,
        /// What random numbers mean inside.
        randomness: Randomness,
    },
    /// Writes operations down, to be run again with other inputs.
    Linearized,
    /// Casts inputs to a lower or higher precision, by operation.
    Autocast(Option<DType>),
}

/// One link of the chain.
pub struct Interp {
    /// What it does.
    pub kind: Kind,
    /// Its identity.
    pub tag: Tag,
    parent: Option<Arc<Interp>>,
    /// Whether everything from here on is ambient tapes and `Eval`.
    plain: bool,
}

/// The tag of the outermost tape. It exists before that tape, so that `no_grad` covers it.
pub const ROOT_TAG: Tag = 1;
/// The tag of donated tensors, which no interpreter owns.
pub const DONATED_TAG: Tag = 2;
static TAGS: AtomicU64 = AtomicU64::new(DONATED_TAG + 1);
static ROOT: LazyLock<Arc<Interp>> = LazyLock::new(|| {
    let eval = Arc::new(Interp { kind: Kind::Eval, tag: 0, parent: None, plain: true });
    Arc::new(Interp { kind: Kind::Tape { ambient: true }, tag: ROOT_TAG, parent: Some(eval), plain: true })
});

/// A tag that is larger than all before it.
pub fn new_tag() -> Tag {
    TAGS.fetch_add(1, Ordering::Relaxed)
}

/// Makes the outermost interpreter, if nobody has yet.
pub fn force_root() {
    LazyLock::force(&ROOT);
}

/// What every operation asks about its thread. Kept together and without a destructor: in a shared library
/// each thread-local is found by a call.
struct Here {
    /// Whether the chain is nothing but ambient tapes over `Eval`.
    plain: Cell<bool>,
    /// Whether the innermost interpreter is the outermost tape, so that nobody need ask `CURRENT`.
    outermost: Cell<bool>,
    /// Tapes with a tag below this one do not record.
    no_grad: Cell<Tag>,
    /// Whether a transform's tape records the operations of programs, and not their calls.
    apart: Cell<bool>,
}

impl Here {
    /// Takes note of a new innermost interpreter.
    fn note(&self, interp: &Interp) {
        self.plain.set(interp.plain);
        self.outermost.set(std::ptr::eq(interp, &**ROOT));
    }
}

thread_local! {
    static CURRENT: RefCell<Arc<Interp>> = RefCell::new(ROOT.clone());
    static HERE: Here = const {
        Here {
            plain: Cell::new(true),
            outermost: Cell::new(true),
            no_grad: Cell::new(0),
            apart: Cell::new(false),
        }
    };
    /// In inference mode, the threshold when it was entered, below which nothing turns recording on again.
    static INFERENCE: Cell<Tag> = const { Cell::new(0) };
}

impl Interp {
    /// A new interpreter on top of `parent`.
    pub fn above(parent: &Arc<Interp>, kind: Kind) -> Arc<Interp> {
        Interp::tagged(new_tag(), parent, kind)
    }

    /// This interpreter, with its tag, on top of another chain.
    pub fn on_top_of(&self, parent: &Arc<Interp>) -> Arc<Interp> {
        Interp::tagged(self.tag, parent, self.kind)
    }

    /// The interpreter that had this tag, on top of `parent`.
    pub fn tagged(tag: Tag, parent: &Arc<Interp>, kind: Kind) -> Arc<Interp> {
        let plain = parent.plain && kind == (Kind::Tape { ambient: true });
        Arc::new(Interp { kind, tag, parent: Some(parent.clone()), plain })
    }

    /// The next interpreter down; `Eval` is its own.
    pub fn below(self: &Arc<Self>) -> &Arc<Interp> {
        self.parent.as_ref().unwrap_or(self)
    }

    /// This interpreter and all below it, innermost first.
    fn chain(self: &Arc<Self>) -> impl Iterator<Item = &Arc<Interp>> {
        std::iter::successors(Some(self), |at| at.parent.as_ref())
    }

    /// Whether this tape records at the moment, given `no_grad`.
    pub fn records(&self) -> bool {
        self.tag >= grad_threshold()
    }

    /// Whether an interpreter with this tag is this one or below it.
    pub fn contains(self: &Arc<Self>, tag: Tag) -> bool {
        self.chain().any(|at| at.tag == tag)
    }
}

/// The innermost interpreter of this thread.
pub fn current() -> Arc<Interp> {
    if HERE.with(|here| here.outermost.get()) { ROOT.clone() } else { CURRENT.with_borrow(Arc::clone) }
}

/// Does `f` with the innermost interpreter of this thread.
#[inline]
pub fn with_current<T>(f: impl FnOnce(&Arc<Interp>) -> T) -> T {
    if let Some(root) = outermost() { f(root) } else { f(&current()) }
}

/// The outermost tape, if that is the innermost interpreter of this thread too.
#[inline]
pub fn outermost() -> Option<&'static Arc<Interp>> {
    HERE.with(|here| here.outermost.get()).then(|| &*ROOT)
}

/// Whether the chain is nothing but ambient tapes over `Eval`.
#[inline(always)]
pub fn is_plain() -> bool {
    HERE.with(|here| here.plain.get())
}

/// The level of the innermost interpreter where a transform runs; 0 where none does.
#[inline(always)]
pub fn level() -> Tag {
    if is_plain() { 0 } else { current().tag }
}

/// Whether a forward mode or a batch is in force: values are not memory there, and sharing goes by objects.
pub fn replaces_values() -> bool {
    let replaces = |at: &Arc<Interp>| matches!(at.kind, Kind::Dual | Kind::Batch { .. } | Kind::Linearized);
    !is_plain() && current().chain().take_while(|at| !at.plain).any(replaces)
}

/// Whether a transform is in force, or a branch runs, in which operations are masked.
pub fn in_transform() -> bool {
    let is_one = |at: &Arc<Interp>| !matches!(at.kind, Kind::Autocast(_) | Kind::Tape { ambient: true });
    branch::id() != 0 || !is_plain() && current().chain().take_while(|at| !at.plain).any(is_one)
}

/// The tape on which calls of programs are recorded: the outermost one, or that of the one transform in
/// force, if it is reverse mode. None under other transforms, in branches of a batch, and in [`apart`].
pub fn program_tape() -> Option<Tag> {
    if branch::id() != 0 {
        return None;
    }
    if is_plain() {
        return Some(ROOT_TAG);
    }
    let current = current();
    let tape = current.below();
    let [inner, outer] = [true, false].map(|ambient| Kind::Tape { ambient });
    let is_lone = current.kind == inner && tape.kind == outer && tape.below().plain;
    (is_lone && !HERE.with(|here| here.apart.get())).then_some(tape.tag)
}

/// Runs `f`, in which transforms record the operations of programs: what the backward of a program computes
/// for one cotangent cannot be batched.
pub fn apart<T>(f: impl FnOnce() -> T) -> T {
    let before = HERE.with(|here| here.apart.replace(true));
    let _restored = OnDrop(|| HERE.with(|here| here.apart.set(before)));
    f()
}

/// The innermost ambient tape: the one that `requires_grad` makes leaves for.
pub fn ambient() -> Arc<Interp> {
    let current = current();
    let mut at = &current;
    while at.kind != (Kind::Tape { ambient: true }) && at.parent.is_some() {
        at = at.below();
    }
    at.clone()
}

/// Restores the chain when dropped.
pub struct InterpGuard {
    /// The chain before, unless another guard restores it.
    previous: Option<Arc<Interp>>,
    /// The transform before, for the memory that is made.
    born: Tag,
}

impl InterpGuard {
    /// Ends what this guard began while `inner`, begun within it, goes on and restores what was before.
    pub fn end_before(mut self, inner: &mut InterpGuard) {
        (inner.previous, inner.born) = (self.previous.take(), self.born);
    }
}

impl Drop for InterpGuard {
    fn drop(&mut self) {
        if let Some(previous) = self.previous.take() {
            buffer::leave_transform(self.born);
            HERE.with(|here| here.note(&previous));
            // A region that was never left is dropped with its thread, when the slot may be gone already.
            let _ = CURRENT.try_with(|current| current.replace(previous));
        }
    }
}

/// Until the guard is dropped, operations run and mean nothing else.
#[must_use]
pub fn evaluating() -> InterpGuard {
    enter(ROOT.below().clone())
}

/// Makes `interp` the current interpreter until the guard is dropped.
#[must_use]
pub fn enter(interp: Arc<Interp>) -> InterpGuard {
    HERE.with(|here| here.note(&interp));
    // The outermost tape is no transform.
    let born = buffer::enter_transform(if interp.tag > ROOT_TAG { interp.tag } else { 0 });
    InterpGuard { previous: Some(CURRENT.replace(interp)), born }
}

/// Pushes a transform's interpreter, and the ambient tape above it, on the current chain.
#[must_use]
pub fn push(kind: Kind) -> (Arc<Interp>, InterpGuard) {
    stack(|below| Interp::above(below, kind))
}

/// Pushes a transform's interpreter, with its tag, and an ambient tape above it on the current chain again.
#[must_use]
pub fn reenter(level: &Interp) -> (Arc<Interp>, InterpGuard) {
    stack(|below| level.on_top_of(below))
}

/// Pushes the interpreter that `make` puts on a chain. An autocast region stays the innermost: what it has
/// cast is not cast again by a region around the transform, and the transform sees the casts.
fn stack(make: impl FnOnce(&Arc<Interp>) -> Arc<Interp>) -> (Arc<Interp>, InterpGuard) {
    let current = current();
    let level = make(below_autocast(&current));
    let mut top = Interp::above(&level, Kind::Tape { ambient: true });
    if let Some(dtype) = autocast_of(&current) {
        top = Interp::above(&top, Kind::Autocast(dtype));
    }
    (level, enter(top))
}

/// The recording threshold: tapes older than this tag do not record. For saving and restoring.
#[inline]
pub fn grad_threshold() -> Tag {
    HERE.with(|here| here.no_grad.get())
}

/// Sets the recording threshold, returning the one before.
pub fn set_grad_threshold(threshold: Tag) -> Tag {
    HERE.with(|here| here.no_grad.replace(threshold))
}

/// Turns recording on or off for every tape that exists now; returns the threshold to restore.
/// Transforms entered later record whatever this says.
pub fn set_grad_enabled(enabled: bool) -> Tag {
    set_grad_threshold(if enabled { INFERENCE.get() } else { TAGS.load(Ordering::Relaxed) })
}

/// What `set_inference` changed.
#[derive(Clone, Copy)]
pub struct InferenceState {
    threshold: Tag,
    floor: Tag,
    on: bool,
}

/// Begins inference mode (no recording by any tape that exists now, and memory that no tape may keep), or
/// leaves it for a region, which records; returns what to restore.
pub fn set_inference(on: bool) -> InferenceState {
    let floor = if on { TAGS.load(Ordering::Relaxed) } else { 0 };
    InferenceState {
        threshold: set_grad_threshold(floor),
        floor: INFERENCE.replace(floor),
        on: buffer::set_inference(on),
    }
}

/// Restores what `set_inference` found.
pub fn restore_inference(state: InferenceState) {
    set_grad_threshold(state.threshold);
    INFERENCE.set(state.floor);
    buffer::set_inference(state.on);
}

/// Whether the innermost ambient tape records.
pub fn is_grad_enabled() -> bool {
    grad_threshold() == 0 || ambient().records()
}

/// Turns recording on or off until the guard is dropped.
pub fn recording(enabled: bool) -> OnDrop<impl FnMut()> {
    let before = set_grad_enabled(enabled);
    OnDrop(move || _ = set_grad_threshold(before))
}

/// Makes `threshold` the recording threshold until the guard is dropped.
pub fn recording_from(threshold: Tag) -> OnDrop<impl FnMut()> {
    let before = set_grad_threshold(threshold);
    OnDrop(move || _ = set_grad_threshold(before))
}

/// Runs `f` with recording off.
pub fn no_grad<T>(f: impl FnOnce() -> T) -> T {
    let _recording = recording(false);
    f()
}

/// Runs `f` with recording on.
pub fn with_grad<T>(f: impl FnOnce() -> T) -> T {
    let _recording = recording(true);
    f()
}
