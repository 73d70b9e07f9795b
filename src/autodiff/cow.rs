//! Copy on write: inside such a region, an in-place write to memory of a saved tensor first replaces the
//! saved tensor by a copy, so that backward sees the values that were saved.

use crate::array::Array;
use crate::error::Result;
use crate::interp::eval;
use crate::op::Op;
use crate::process::sync::lock;
use crate::tape::host_ref::{Holder, Part};
use crate::tape::location::Location;
use crate::tape::node::Slot;
use crate::tape::saving::{self, Packed, SavedHook, modified};
use crate::tensor::Tensor;
use crate::tensor::over_memory;
use crate::watch::debug;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, Weak};

/// A region in which saved tensors survive in-place writes.
#[derive(Default)]
pub struct CopyOnWrite {
    /// The saved tensors, by the id of their buffer.
    saved: Mutex<FxHashMap<usize, Vec<Weak<Cell>>>>,
}

/// One saved tensor.
struct Cell {
    op: &'static str,
    slot: Slot,
    /// The location of the operation, if locations were kept.
    location: Option<Location>,
    /// The tensor, and the version of its memory that holds the saved values.
    value: Mutex<(Tensor, u32)>,
}

impl SavedHook for CopyOnWrite {
    fn pack(&self, op: &Op, slot: Slot, value: &Tensor) -> Result<Arc<dyn Packed>> {
        let version = saving::version(value);
        let value_then = Mutex::new((value.clone(), version));
        let cell = Arc::new(Cell { op: op.name(), slot, location: debug::location(), value: value_then });
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
            let mut value = lock(&cell.value);
            let Some(own) = saving::bottom(&value.0) else { continue };
            // The id of a freed buffer may be reused, and a tensor of an old version is lost already.
            if own.buffer().same(memory.buffer()) && own.buffer().version() == value.1 {
                let copy = eval::copied(own)?;
                *value = (over_memory(&value.0, &copy), copy.buffer().version());
            }
        }
        Ok(())
    }
}

impl Holder for Cell {
    fn parts(&self, see: &mut dyn FnMut(Part<'_>)) {
        if let Ok(value) = self.value.try_lock() {
            see(Part::Tensor(&value.0));
        }
    }
}

impl Packed for Cell {
    fn unpack(&self) -> Result<Tensor> {
        let value = lock(&self.value);
        let now = saving::version(&value.0);
        if now == value.1 {
            Ok(value.0.clone())
        } else {
            Err(modified(self.op, self.location, self.slot, (value.1, now), &value.0))
        }
    }

    fn bytes(&self) -> usize {
        saving::bytes(&lock(&self.value).0)
    }
}
