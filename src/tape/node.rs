//! `Node`: one entry of the tape. Leaves and the values that stand for them are in `node/leaf.rs`; what a
//! reverse rule sees of an entry, `Vjp`, is in `node/vjp.rs`.
//!
//! The tape is a reference-counted graph, not a list: an entry lives as long as something can still be
//! differentiated through it. A global sequence number orders entries, so the backward walk is a heap and
//! needs no recursion.

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
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

/// Output `index` of `node`.
#[derive(Clone)]
pub struct Edge {
    /// The tape entry.
    pub node: Arc<Node>,
    /// Which of its outputs.
    pub index: u32,
}

impl Edge {
    /// What is known of the value at this edge.
    pub fn aval(&self) -> &Aval {
        &self.node.outputs[self.index as usize]
    }

    /// Whether both name the same value.
    pub fn same(&self, other: &Edge) -> bool {
        Arc::ptr_eq(&self.node, &other.node) && self.index == other.index
    }
}

/// Per input of an operation: where its gradient goes, if anywhere.
pub type Edges = SmallVec<[Option<Edge>; 2]>;

/// Which value of the operation a saved tensor is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slot {
    /// Input `i`.
    Input(u16),
    /// Output `i`.
    Output(u16),
}

/// The values an entry keeps for its reverse rule; a product keeps two.
pub type Saved = SmallVec<[SavedTensor; 2]>;

/// What a tape entry stands for.
pub enum Origin {
    /// A tensor that requires a gradient; the gradient accumulates here.
    Leaf {
        /// The accumulated gradient.
        grad: Mutex<Option<Tensor>>,
        /// How many values stand for this leaf; see [`Handle`].
        handles: AtomicUsize,
        /// The leaf that its object stands for, once that was given data of another shape or dtype. All that
        /// the object stood for share this.
        now: OnceLock<Arc<Mutex<Weak<Node>>>>,
    },
    /// A recorded operation. `None` once its saved values were freed.
    Op {
        /// The operation.
        op: Op,
        /// What it kept.
        saved: Mutex<Option<Saved>>,
    },
}

/// One entry of the tape.
pub struct Node {
    /// Position in the order of recording, over all threads.
    pub seq: u64,
    /// The tape it belongs to.
    pub tag: Tag,
    /// Leaf or operation.
    pub origin: Origin,
    /// Where the gradients of its inputs go.
    pub edges: Edges,
    /// What is known of its outputs.
    pub outputs: SmallVec<[Aval; 1]>,
    /// The line of the program that recorded it, if lines were kept.
    pub location: Option<Location>,
    hooks: OnceLock<Box<Hooks>>,
}

static SEQ: AtomicU64 = AtomicU64::new(0);
static FREED: AtomicU64 = AtomicU64::new(0);

/// How many tape entries exist at the moment.
pub fn live_nodes() -> u64 {
    let freed = FREED.load(Ordering::Relaxed);
    SEQ.load(Ordering::Relaxed).saturating_sub(freed)
}

/// How many tape entries were made so far.
pub fn recorded_nodes() -> u64 {
    SEQ.load(Ordering::Relaxed)
}

impl Node {
    /// An entry for a recorded operation. `fill` writes its edges and what it saves to where they stay: an
    /// entry is large, and to move it would cost more than to write it.
    #[inline(always)]
    pub fn recorded(
        tag: Tag,
        op: Op,
        fill: impl FnOnce(&Op, &mut Edges, &mut Saved, &mut SmallVec<[Aval; 1]>) -> Result<()>,
    ) -> Result<Arc<Node>> {
        let room = Arc::new(MaybeUninit::<Node>::uninit());
        let at: *mut Node = Arc::as_ptr(&room).cast_mut().cast();
        // SAFETY: nobody else knows this memory; every field is written, which the pattern below sees to,
        // before it becomes an entry, and the references end before the entry is handed out.
        let (node, Node { seq: _, tag: _, origin, edges, outputs, location: _, hooks: _ }) = unsafe {
            (&raw mut (*at).seq).write(SEQ.fetch_add(1, Ordering::Relaxed));
            (&raw mut (*at).tag).write(tag);
            (&raw mut (*at).origin).write(Origin::Op { op, saved: Mutex::new(Some(Saved::new())) });
            (&raw mut (*at).edges).write(Edges::new());
            (&raw mut (*at).outputs).write(SmallVec::new());
            (&raw mut (*at).location).write(debug::location());
            (&raw mut (*at).hooks).write(OnceLock::new());
            (room.assume_init(), &mut *at)
        };
        if let Origin::Op { op, saved } = origin
            && let Some(saved) = saved.get_mut().unwrap_or_else(|e| e.into_inner())
        {
            fill(op, edges, saved, outputs)?;
        }
        Ok(node)
    }

    /// The name that users see as `grad_fn`.
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

    /// The number of outputs that users see; a custom function may have hidden ones behind them.
    pub fn visible(&self) -> usize {
        match self.op() {
            Some(Op::Custom(custom)) => custom.visible().unwrap_or(self.outputs.len()),
            _ => self.outputs.len(),
        }
    }

    /// The hooks of this entry, made on first use.
    pub fn hooks_mut(&self) -> &Hooks {
        self.hooks.get_or_init(Box::default)
    }

    /// The hooks of this entry, if it has any.
    #[inline]
    pub fn hooks(&self) -> Option<&Hooks> {
        self.hooks.get().map(|h| &**h)
    }

    /// What this entry keeps for backward: which value, what is known of it unless something else was put in
    /// its location, and bytes.
    pub fn saved_values(&self) -> Vec<(Slot, Option<Aval>, usize)> {
        let known = |k: &SavedTensor| (k.slot, k.aval(), k.bytes());
        match &self.origin {
            Origin::Op { saved, .. } => lock(saved).iter().flatten().map(known).collect(),
            Origin::Leaf { .. } => Vec::new(),
        }
    }

    /// Whether a backward freed what this entry kept.
    pub fn is_freed(&self) -> bool {
        matches!(&self.origin, Origin::Op { saved, .. } if lock(saved).is_none())
    }

    /// Bytes that this entry keeps for backward.
    pub fn saved_bytes(&self) -> usize {
        match &self.origin {
            Origin::Op { saved, .. } => lock(saved).iter().flatten().map(SavedTensor::bytes).sum(),
            Origin::Leaf { .. } => 0,
        }
    }

    /// Keeps copies of the outputs that it keeps in `memory`, which is about to be written.
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

    /// Hands out the saved values as tensors; `attached` puts them back on the tape so that the rule itself
    /// is recorded. Unless `retain`, the entry gives them up. What is kept in reserve is left out unless the
    /// cotangents `g` ask for it.
    pub fn unpack(
        self: &Arc<Self>,
        retain: bool,
        attached: bool,
        g: &[Option<Tensor>],
        out: &mut Saved,
    ) -> Result<()> {
        let Origin::Op { op, saved } = &self.origin else { return Ok(()) };
        let mut guard = lock(saved);
        let Some(values) = guard.as_ref() else { return Err(freed(op.name(), self.location)) };
        if !retain && !attached && values.iter().all(|value| value.is_plain() && !value.in_reserve) {
            // Nearly always: arrays, which are handed out as they are.
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

    /// A saved value as the tensor it was on the tape.
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
