//! Checkpointing: drops the tensors saved inside a region, and reruns the region when backward needs one.
//!
//! A checkpoint is a `SavedHook`, not an operation: the region's operations are recorded as always, but each
//! saved tensor is replaced by a ticket. The first ticket that is unpacked reruns the region, under the same
//! interpreters, random state and recording mode, and collects what it saves, in order. So checkpoints work
//! with closed-over parameters, hooks, higher derivatives, and inside every transform.
//!
//! Derivatives taken within the region work too. A tape that a transform opens there saves its tensors as
//! always. While the region runs, its tickets keep their tensors, for a `backward()` before its end.

use crate::array::Array;
use crate::array::random;
use crate::error::{Error, Result};
use crate::interp::branch::{self, Branch};
use crate::interp::{self, Interp, Tag, eval};
use crate::op::Op;
use crate::process::sync::lock;
use crate::tape::host_ref::{self, HeldPart, Holder};
use crate::tape::node::Slot;
use crate::tape::saving::{self, Packed, SavedHook};
use crate::tensor::{Aval, Tensor, over_memory};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Reruns the region and discards its outputs. It must hold the region's inputs.
pub type Rerun = Box<dyn Fn() -> Result<()> + Send + Sync>;

/// What the forward saved at one index, for comparison with the rerun.
struct Expected {
    op: &'static str,
    slot: Slot,
    aval: Aval,
    /// Whether the ticket still exists, so that the rerun must collect the tensor.
    wanted: bool,
}

/// A checkpointed region.
struct Region {
    rerun: Rerun,
    /// The Python object that `rerun` holds.
    held: Option<host_ref::HostRef>,
    chain: Arc<Interp>,
    grad_threshold: Tag,
    branch: Option<Branch>,
    random: random::State,
    expected: Mutex<Vec<Expected>>,
    values: Mutex<Vec<Option<Tensor>>>,
    /// Whether the forward is still running.
    running: AtomicBool,
}

struct Ticket {
    region: Arc<Region>,
    index: usize,
}

impl Holder for Region {
    fn parts(&self, see: &mut dyn FnMut(HeldPart<'_>)) {
        if let Some(held) = &self.held {
            see(HeldPart::Host(held));
        }
        if let Ok(values) = self.values.try_lock() {
            values.iter().flatten().for_each(|value| see(HeldPart::Tensor(value)));
        }
    }
}

impl Holder for Ticket {
    fn parts(&self, see: &mut dyn FnMut(HeldPart<'_>)) {
        see(HeldPart::Shared(self.region.clone()));
    }
}

impl Packed for Ticket {
    fn unpack(&self) -> Result<Tensor> {
        if let Some(value) = self.take() {
            return Ok(value);
        }
        self.region.clone().recompute()?;
        self.take().ok_or_else(|| self.region.missing(self.index))
    }

    fn bytes(&self) -> usize {
        0
    }
}

impl Ticket {
    /// Returns the tensor if the region holds it; removes it unless the forward is still running.
    fn take(&self) -> Option<Tensor> {
        let mut values = lock(&self.region.values);
        let value = values.get_mut(self.index)?;
        if self.region.running.load(Ordering::Acquire) { value.clone() } else { value.take() }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(expected) = lock(&self.region.expected).get_mut(self.index) {
            expected.wanted = false;
        }
        // Drops outside the lock: a tensor may hold nodes with tickets of their own.
        let value = lock(&self.region.values).get_mut(self.index).and_then(Option::take);
        drop(value);
    }
}

/// The hook of the forward: replaces saved tensors by tickets.
struct Forward(Arc<Region>);

impl SavedHook for Forward {
    fn covers(&self, tape: Tag) -> bool {
        tape <= self.0.chain.tag
    }

    fn pack(&self, op: &Op, slot: Slot, value: &Tensor) -> Result<Arc<dyn Packed>> {
        let mut expected = lock(&self.0.expected);
        expected.push(Expected { op: op.name(), slot, aval: value.aval(), wanted: true });
        lock(&self.0.values).push(Some(value.clone()));
        Ok(Arc::new(Ticket { region: self.0.clone(), index: expected.len() - 1 }))
    }
}

/// The hook of a rerun: collects the saved tensors.
struct Collect {
    region: Arc<Region>,
    values: Mutex<Vec<Option<Tensor>>>,
}

/// A saved tensor of the nodes that a rerun records. Nodes on the differentiated tape are freed with the
/// rerun; those on outer tapes live on in the collected tensors, and higher derivatives walk them.
struct Held(Tensor);

impl Holder for Held {
    fn parts(&self, see: &mut dyn FnMut(HeldPart<'_>)) {
        see(HeldPart::Tensor(&self.0));
    }
}

impl Packed for Held {
    fn unpack(&self) -> Result<Tensor> {
        Ok(self.0.clone())
    }
    fn bytes(&self) -> usize {
        saving::bytes(&self.0)
    }
}

impl SavedHook for Collect {
    fn covers(&self, tape: Tag) -> bool {
        tape <= self.region.chain.tag
    }

    fn pack(&self, op: &Op, slot: Slot, value: &Tensor) -> Result<Arc<dyn Packed>> {
        let mut values = lock(&self.values);
        let expected = lock(&self.region.expected);
        let aval = value.aval();
        let wanted = match expected.get(values.len()) {
            Some(e) if e.op == op.name() && e.slot == slot && e.aval == aval => e.wanted,
            Some(e) => {
                return Err(Error::checkpoint(format!(
                    "checkpoint: the recomputation saved {}{} for {} where the forward saved {}{} for {}; \
                     the function must do the same both times (no branches on changing state, no changed \
                     inputs)",
                    aval.dtype,
                    aval.shape,
                    op.name(),
                    e.aval.dtype,
                    e.aval.shape,
                    e.op
                )));
            }
            None => {
                return Err(Error::checkpoint(format!(
                    "checkpoint: the recomputation saved more than the forward's {} values, first for {}; \
                     the function must do the same both times",
                    expected.len(),
                    op.name()
                )));
            }
        };
        values.push(wanted.then(|| value.clone()));
        Ok(Arc::new(Held(value.clone())))
    }

    /// Copies the collected tensors in `memory`, so that they keep the values they were saved with.
    fn before_write(&self, memory: &Array) -> Result<()> {
        for value in lock(&self.values).iter_mut().flatten() {
            if let Some(own) = saving::bottom(value).filter(|own| own.buffer().same(memory.buffer())) {
                *value = over_memory(value, &eval::copied(own)?);
            }
        }
        Ok(())
    }
}

impl Region {
    #[cold]
    fn missing(&self, index: usize) -> Error {
        let expected = lock(&self.expected);
        let (op, total) = (expected.get(index).map_or("?", |e| e.op), expected.len());
        Error::checkpoint(format!(
            "checkpoint: the recomputation ended before saving value {index} of {total} (for {op}); the \
             function must do the same both times"
        ))
    }

    /// Reruns the region and keeps what it saves.
    fn recompute(self: Arc<Self>) -> Result<()> {
        let collect = Arc::new(Collect { region: self.clone(), values: Mutex::new(Vec::new()) });
        let _chain = interp::enter(self.chain.clone());
        let _recording = interp::recording_from(self.grad_threshold);
        let _branch = branch::resume(self.branch.as_ref().map(Branch::fresh));
        let _random = random::replay(self.random);
        {
            let _hook = saving::with_saved_hook(collect.clone());
            (self.rerun)()?;
        }
        let found = std::mem::take(&mut *lock(&collect.values));
        let before = std::mem::replace(&mut *lock(&self.values), found);
        drop(before);
        Ok(())
    }
}

/// Runs `forward` without keeping what it saves. `rerun` must do the same again, on the same inputs; `held`
/// is the Python object that it holds.
pub fn checkpoint<T>(
    forward: impl FnOnce() -> Result<T>, rerun: Rerun, held: Option<host_ref::HostRef>,
) -> Result<T> {
    let region = Arc::new(Region {
        rerun,
        held,
        chain: interp::current(),
        grad_threshold: interp::grad_threshold(),
        branch: branch::running(),
        random: random::state(),
        expected: Mutex::new(Vec::new()),
        values: Mutex::new(Vec::new()),
        running: AtomicBool::new(true),
    });
    let out = {
        // What the branch around it has masked is masked again, as in the rerun.
        let _branch = branch::resume(region.branch.as_ref().map(Branch::fresh));
        let _hook = saving::with_saved_hook(Arc::new(Forward(region.clone())));
        forward()
    };
    region.running.store(false, Ordering::Release);
    let held = std::mem::take(&mut *lock(&region.values));
    drop(held);
    out
}
