//! What a region changed outside, as it was before: a region that raises leaves everything as it was.
//!
//! From the first call of a function of the host on, nothing can be taken back.

use super::notes::{taken, whole, with};
use super::{Origin, Script};
use crate::array::Array;
use crate::array::buffer::Device;
use crate::array::dtype::DType;
use crate::array::random;
use crate::array::shape::Shape;
use crate::cpu::pointwise::copy::copy_into;
use crate::error::Result;
use crate::tape::node::Node;
use crate::tensor::Tensor;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// What was changed, as it was.
#[derive(Default)]
pub struct Kept {
    /// Written memory, by its number: all of it, what it held, and its version.
    memory: FxHashMap<usize, ([Array; 2], u32)>,
    /// Gradients that were dropped.
    gradients: Vec<(Arc<Node>, Option<Tensor>)>,
}

/// Copies memory of outside that is about to be written, the first time.
pub fn keep(x: &Array) -> Result<()> {
    let mut found = None;
    with(|script| {
        let memory = script.view(x).memory;
        let is_outside = !matches!(script.memory[memory], Origin::Made(_) | Origin::Constant(..));
        if is_outside && script.calls.is_empty() && !script.kept.memory.contains_key(&memory) {
            found = Some(memory);
        }
    });
    let Some(memory) = found.filter(|_| x.device() == Device::Cpu) else { return Ok(()) };
    let (buffer, held, version) = (x.buffer(), whole(x.buffer())?, x.buffer().root_version());
    let place = Array::strided(buffer.clone(), Shape::new(&[buffer.bytes()])?, &[1], 0, DType::U8)?;
    with(|script| {
        script.kept.memory.insert(memory, ([place, held], version));
    });
    Ok(())
}

impl Script {
    /// Holds a gradient that is about to be dropped.
    pub(super) fn keep_gradient(&mut self, node: &Arc<Node>, slot: &Option<Tensor>) {
        if self.calls.is_empty() {
            self.kept.gradients.push((node.clone(), slot.clone()));
        }
    }

    /// Gives up what was kept; to be dropped where the script is not in use.
    pub(super) fn forget_kept(&mut self) -> Kept {
        std::mem::take(&mut self.kept)
    }
}

/// Holds a gradient that is about to be replaced.
pub fn replaced(node: &Arc<Node>, slot: &Option<Tensor>) {
    with(|script| script.keep_gradient(node, slot));
}

/// Ends the script of this thread without a result, and takes back what was done.
///
/// # Errors
/// If memory cannot be written.
pub fn undo() -> Result<()> {
    let Some(script) = taken().filter(|script| script.calls.is_empty()) else { return Ok(()) };
    for ([place, held], version) in script.kept.memory.values() {
        copy_into(place, held)?;
        place.buffer().restore_version(*version);
    }
    for (node, before) in script.kept.gradients.into_iter().rev() {
        if let Some(mut slot) = node.grad() {
            *slot = before;
        }
    }
    for leaf in script.leaves.iter().filter(|leaf| leaf.had == Some(false)) {
        if let Some(node) = leaf.node.upgrade()
            && let Some(mut slot) = node.grad()
        {
            *slot = None;
        }
    }
    random::set_state(script.random);
    Ok(())
}
