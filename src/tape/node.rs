//! `Node`: a node of the tape, which is a leaf or a recorded operation.
//!
//! The tape is a reference-counted graph, not a list: a node lives as long as something can still be
//! differentiated through it. A global sequence number orders the nodes, so that the backward walk uses a
//! heap instead of recursion.
//! Read next: `src/tape/node/leaf.rs`, leaves and handles; `src/tape/node/vjp.rs`, the context of a rule.

mod leaf;
mod vjp;

pub use leaf::Handle;
pub use vjp::Vjp;

use crate::array::Array;
use crate::error::{Error, Result};
use crate::interp::Tag;
use crate::op::Op;
use crate::process::sync::lock;
use crate::tape::deferred_drop::{self, Deferred};
use crate::tape::hooks::Hooks;
use crate::tape::location::{self, Location};
use crate::tape::saving::SavedTensor;
use crate::tensor::{Aval, Tensor};
use crate::watch::debug;
use smallvec::SmallVec;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

/// Output `index` of `node`.
#[derive(Clone)]
pub struct Edge {
    /// The node.
    pub node: Arc<Node>,
    /// Which of its outputs.
    pub index: u32,
}

impl Edge {
    /// Shape, dtype and device of the value at this edge.
    pub fn aval(&self) -> &Aval {
        &self.node.outputs[self.index as usize]
    }

    /// Whether both edges lead to the same output of the same node.
    pub fn same(&self, other: &Edge) -> bool {
        Arc::ptr_eq(&self.node, &other.node) && self.index == other.index
    }
}

/// The edge of each input of an operation; `None` for an input without a gradient.
pub type Edges = SmallVec<[Option<Edge>; 2]>;

/// Which input or output of the operation a saved tensor is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slot {
    /// Input `i`.
    Input(u16),
    /// Output `i`.
    Output(u16),
}

/// The saved tensors of a node; a product has two.
pub type Saved = SmallVec<[SavedTensor; 2]>;

/// What a node stands for.
pub enum Origin {
    /// A tensor that requires a gradient.
    Leaf {
        /// The accumulated gradient.
        grad: Mutex<Option<Tensor>>,
        /// The number of [`Handle`]s to this leaf.
        handles: AtomicUsize,
        /// The current leaf of its tensor object, set once that was given data of another shape or dtype;
        /// shared by all leaves that the object has had.
        now: OnceLock<Arc<Mutex<Weak<Node>>>>,
    },
    /// A recorded operation.
    Op {
        /// The operation.
        op: Op,
        /// Its saved tensors; `None` once a backward has freed them.
        saved: Mutex<Option<Saved>>,
    },
}

/// A node of the tape.
pub struct Node {
    /// Position in the order of recording, over all threads.
    pub seq: u64,
    /// The tape it belongs to.
    pub tag: Tag,
    /// Leaf or operation.
    pub origin: Origin,
    /// The edges along which the gradients of its inputs go.
    pub edges: Edges,
    /// Shape, dtype and device of its outputs.
    pub outputs: SmallVec<[Aval; 1]>,
    /// The location that recorded it, if locations were kept.
    pub location: Option<Location>,
    /// Taken out when the node is dropped, so that nothing is left to drop.
    hooks: ManuallyDrop<OnceLock<Box<Hooks>>>,
}

static SEQ: AtomicU64 = AtomicU64::new(0);
static FREED: AtomicU64 = AtomicU64::new(0);

/// Number of nodes alive.
pub fn live_nodes() -> u64 {
    let freed = FREED.load(Ordering::Relaxed);
    SEQ.load(Ordering::Relaxed).saturating_sub(freed)
}

/// Number of nodes made so far.
pub fn recorded_nodes() -> u64 {
    SEQ.load(Ordering::Relaxed)
}

/// The node of a recorded operation while nobody else knows it. It is written in place: a node is large, and
/// moving it would cost more than writing it.
pub struct NewNode(Arc<Node>);

impl NewNode {
    /// A node without edges, saved tensors and outputs.
    #[inline(always)]
    pub fn new(tag: Tag, op: Op) -> NewNode {
        let memory = Arc::new(MaybeUninit::<Node>::uninit());
        let at: *mut Node = Arc::as_ptr(&memory).cast_mut().cast();
        // SAFETY: the memory is new and known here alone, and every field is written before `assume_init`.
        unsafe {
            (&raw mut (*at).seq).write(SEQ.fetch_add(1, Ordering::Relaxed));
            (&raw mut (*at).tag).write(tag);
            (&raw mut (*at).origin).write(Origin::Op { op, saved: Mutex::new(Some(Saved::new())) });
            (&raw mut (*at).edges).write(Edges::new());
            (&raw mut (*at).outputs).write(SmallVec::new());
            (&raw mut (*at).location).write(debug::location());
            (&raw mut (*at).hooks).write(ManuallyDrop::new(OnceLock::new()));
            let node = memory.assume_init();
            // What forgets a field does not compile.
            let Node { seq: _, tag: _, origin: _, edges: _, outputs: _, location: _, hooks: _ } = &*node;
            NewNode(node)
        }
    }

    /// What is to be written: edges, saved tensors and outputs; the operation to read.
    #[inline(always)]
    pub fn parts(&mut self) -> Option<(&Op, &mut Edges, &mut Saved, &mut SmallVec<[Aval; 1]>)> {
        // SAFETY: the `Arc` was made by `new` and given to nobody.
        let node = unsafe { &mut *Arc::as_ptr(&self.0).cast_mut() };
        let Origin::Op { op, saved } = &mut node.origin else { return None };
        let saved = saved.get_mut().unwrap_or_else(|e| e.into_inner()).as_mut()?;
        Some((op, &mut node.edges, saved, &mut node.outputs))
    }

    /// The node, as others may know it.
    #[inline(always)]
    pub fn finished(self) -> Arc<Node> {
        self.0
    }
}

impl Node {
    /// The name shown to users as `grad_fn`.
    pub fn name(&self) -> &'static str {
        match &self.origin {
            Origin::Leaf { .. } => "leaf",
            Origin::Op { op, .. } => op.name(),
        }
    }

    /// The operation; `None` for a leaf.
    pub fn op(&self) -> Option<&Op> {
        match &self.origin {
            Origin::Leaf { .. } => None,
            Origin::Op { op, .. } => Some(op),
        }
    }

    /// The number of outputs visible to users; a custom function may have hidden ones after them.
    pub fn visible(&self) -> usize {
        match self.op() {
            Some(Op::Custom(custom)) => custom.visible().unwrap_or(self.outputs.len()),
            _ => self.outputs.len(),
        }
    }

    /// The number that the next node gets.
    pub fn next_seq() -> u64 {
        SEQ.load(Ordering::Relaxed)
    }

    /// The hooks of this node, made on first use.
    pub fn hooks_mut(&self) -> &Hooks {
        self.hooks.get_or_init(Box::default)
    }

    /// The hooks of this node, if it has any.
    #[inline]
    pub fn hooks(&self) -> Option<&Hooks> {
        self.hooks.get().map(|h| &**h)
    }

    /// The saved tensors: which value, its shape, dtype and device unless a hook replaced it, and its bytes.
    pub fn saved_values(&self) -> Vec<(Slot, Option<Aval>, usize)> {
        let known = |k: &SavedTensor| (k.slot, k.aval(), k.bytes());
        match &self.origin {
            Origin::Op { saved, .. } => lock(saved).iter().flatten().map(known).collect(),
            Origin::Leaf { .. } => Vec::new(),
        }
    }

    /// Shows the saved tensors that no hook replaced.
    pub fn each_saved(&self, mut see: impl FnMut(&Tensor)) {
        if let Origin::Op { saved, .. } = &self.origin {
            lock(saved).iter().flatten().filter_map(SavedTensor::tensor).for_each(&mut see);
        }
    }

    /// Whether a backward has freed the saved tensors.
    pub fn is_freed(&self) -> bool {
        matches!(&self.origin, Origin::Op { saved, .. } if lock(saved).is_none())
    }

    /// Bytes of the saved tensors.
    pub fn saved_bytes(&self) -> usize {
        match &self.origin {
            Origin::Op { saved, .. } => lock(saved).iter().flatten().map(SavedTensor::bytes).sum(),
            Origin::Leaf { .. } => 0,
        }
    }

    /// Replaces saved outputs that lie in `memory`, which is about to be written in place, by copies.
    pub fn keep_copies(&self, memory: &Array) -> Result<()> {
        let Origin::Op { saved, .. } = &self.origin else { return Ok(()) };
        for kept in lock(saved).iter_mut().flatten() {
            if matches!(kept.slot, Slot::Output(_))
                && let Some(copy) = kept.copied_from(memory)?
            {
                *kept = copy;
            }
        }
        Ok(())
    }

    /// Writes the saved tensors to `out`. `attached` puts them back on the tape, so that the rule itself is
    /// recorded. Unless `retain`, the node gives them up. Those in reserve come only if `g` needs them.
    pub fn unpack(
        self: &Arc<Self>, retain: bool, attached: bool, g: &[Option<Tensor>], out: &mut Saved,
    ) -> Result<()> {
        let Origin::Op { op, saved } = &self.origin else { return Ok(()) };
        let mut guard = lock(saved);
        let Some(values) = guard.as_ref() else { return Err(freed(op.name(), self.location)) };
        let retain = retain || matches!(op, Op::Custom(custom) if custom.keeps_saved(g));
        if !retain && !attached && values.iter().all(|value| value.is_plain() && !value.in_reserve) {
            // The common case: plain arrays, passed on as they are.
            if let Some(values) = guard.take() {
                *out = values;
            }
            return out.iter().try_for_each(|value| value.check(op, self.location));
        }
        let kept: Saved = match retain {
            true => values.iter().map(SavedTensor::share).collect(),
            false => guard.take().unwrap_or_default(),
        };
        drop(guard);
        let reserve = matches!(op, Op::Custom(custom) if custom.wants_reserve(g));
        for value in kept {
            if value.in_reserve && !reserve {
                continue;
            }
            let slot = value.slot;
            let tensor = value.restore(op, self.location)?;
            out.push(SavedTensor::plain(slot, if attached { self.attach(slot, tensor) } else { tensor }));
        }
        Ok(())
    }

    /// Puts a saved tensor back on the tape.
    fn attach(self: &Arc<Self>, slot: Slot, primal: Tensor) -> Tensor {
        let edge = match slot {
            Slot::Input(i) => self.edges[i as usize].clone(),
            Slot::Output(i) => Some(Edge { node: self.clone(), index: i as u32 }),
        };
        let Some(Edge { node, index }) = edge else { return primal };
        primal.on_tape(self.tag, Handle::new(node), index)
    }
}

#[cold]
fn freed(op: &str, location: Option<Location>) -> Error {
    Error::autodiff(format!(
        "backward: the graph was already used and freed (reached again at {op}{}); pass retain_graph=True \
         to the first backward, run the forward again, or detach() state that is carried from one step to \
         the next{}",
        location::recorded(location),
        location::hint(location)
    ))
}

impl Drop for Node {
    fn drop(&mut self) {
        FREED.fetch_add(1, Ordering::Relaxed);
        for edge in &mut self.edges {
            if let Some(edge) = edge.take() {
                deferred_drop::drop_edge(edge);
            }
        }
        match &mut self.origin {
            Origin::Op { saved, .. } => {
                let saved = saved.get_mut().unwrap_or_else(|e| e.into_inner());
                if saved.as_ref().is_some_and(|s| !s.iter().all(SavedTensor::is_plain))
                    && let Some(saved) = saved.take()
                {
                    deferred_drop::drop_later(Deferred::Saved(Box::new(saved)));
                }
            }
            Origin::Leaf { grad, .. } => {
                let grad = grad.get_mut().unwrap_or_else(|e| e.into_inner()).take();
                if let Some(Tensor::Traced(grad)) = grad {
                    deferred_drop::drop_later(Deferred::Gradient(grad));
                }
            }
        }
        if let Some(hooks) = self.hooks.take() {
            deferred_drop::drop_later(Deferred::Hooks(hooks));
        }
    }
}
