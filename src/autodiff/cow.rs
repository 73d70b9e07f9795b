//! Copy on write: inside such a region, an in-place write to memory of a saved tensor first replaces the
//! saved tensor by a copy, so that backward sees the values that were saved.

use super::prelude::*;
use crate::array::Array;
use crate::op::Op;
use crate::process::sync::lock;
use crate::tape::host_ref::{HeldPart, Holder};
use crate::tape::location::Location;
use crate::tape::node::Slot;
use crate::tape::saving::{self, Packed, SavedHook, SavedTensor};
use crate::watch::debug;
use rustc_hash::FxHashMap;
use std::sync::{Mutex, Weak};

/// A region in which saved tensors survive in-place writes.
#[derive(Default)]
pub struct CopyOnWrite {
    /// The saved tensors, by the id of their buffer.
    saved: Mutex<FxHashMap<usize, Vec<Weak<Cell>>>>,
}

/// One saved tensor.
struct Cell {
    op: Op,
    /// The location of the operation, if locations were kept.
    location: Option<Location>,
    saved: Mutex<SavedTensor>,
}

impl SavedHook for CopyOnWrite {
    fn pack(&self, op: &Op, slot: Slot, value: &Tensor) -> Result<Arc<dyn Packed>> {
        let plain = SavedTensor::plain(slot, value.clone());
        let cell = Arc::new(Cell { op: op.clone(), location: debug::location(), saved: Mutex::new(plain) });
        if let Some(memory) = saving::bottom(value) {
            let mut saved = lock(&self.saved);
            let cells = saved.entry(memory.buffer().id()).or_default();
            if cells.len() == cells.capacity() {
                cells.retain(|c| c.strong_count() > 0);
            }
            cells.push(Arc::downgrade(&cell));
        }
        Ok(cell)
    }

    fn before_write(&self, memory: &Array) -> Result<()> {
        let cells = lock(&self.saved).remove(&memory.buffer().id()).unwrap_or_default();
        for cell in cells.iter().filter_map(Weak::upgrade) {
            let mut saved = lock(&cell.saved);
            if let Some(copy) = saved.copied_from(memory)? {
                *saved = copy;
            }
        }
        Ok(())
    }
}

impl Holder for Cell {
    fn parts(&self, see: &mut dyn FnMut(HeldPart<'_>)) {
        if let Ok(saved) = self.saved.try_lock() {
            see(saved.part());
        }
    }
}

impl Packed for Cell {
    fn unpack(&self) -> Result<Tensor> {
        lock(&self.saved).share().restore(&self.op, self.location)
    }

    fn bytes(&self) -> usize {
        lock(&self.saved).bytes()
    }
}
