//! What a region changed outside, as it was before: a region that raises leaves everything as it was.
//!
//! From the first call of a function of the host on, nothing can be taken back.

use super::notes::{is_on, taken, with};
use super::{Origin, Script, View};
use crate::array::Array;
use crate::array::buffer::Device;
use crate::array::random;
use crate::device::on_device;
use crate::error::Result;
use crate::interp::eval;
use crate::tape::node::Node;
use crate::tensor::Tensor;
use crate::watch::debug::{Modes, suspend};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// What was changed, as it was.
#[derive(Default)]
pub struct Kept {
    /// Which arrays are copied.
    known: FxHashSet<View>,
    /// Arrays that were written, what they held and the version of their memory, in order.
    written: Vec<([Array; 2], u32)>,
    /// Gradients that were dropped or replaced, in order.
    gradients: Vec<(Arc<Node>, Option<Tensor>)>,
}

/// Copies an array in memory of outside that is about to be written, the first time.
pub fn keep(x: &Array) -> Result<()> {
    let mut is_new = false;
    with(|script| {
        let view = script.view(x);
        let is_outside = !matches!(script.memory[view.memory], Origin::Made(_) | Origin::Constant(..));
        is_new = is_outside && script.calls.is_empty() && script.kept.known.insert(view);
    });
    if !is_new {
        return Ok(());
    }
    let (held, version) = (copied(x)?, x.buffer().root_version());
    with(|script| script.kept.written.push(([x.clone(), held], version)));
    Ok(())
}

/// Holds a gradient that is about to be replaced.
pub fn replaced(node: &Arc<Node>, slot: &Option<Tensor>) {
    with(|script| script.keep_gradient(node, slot));
}

/// Copies the gradient of a leaf that is about to be added to, where the sum takes its place: on a GPU. On
/// the host it is written, which [`keep`] sees.
pub fn added_to(node: &Arc<Node>, slot: &Option<Tensor>) -> Result<()> {
    let Some(Tensor::Array(x)) = slot else { return Ok(()) };
    if is_on() && x.device() != Device::Cpu {
        let held = copied(x)?;
        replaced(node, &Some(Tensor::Array(held)));
    }
    Ok(())
}

/// A copy that is no step of the script.
fn copied(x: &Array) -> Result<Array> {
    let _quiet = suspend(Modes::SCRIPT);
    eval::copied(x)
}

impl Script {
    /// Holds a gradient that is about to be dropped or replaced.
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

/// Ends the script of this thread without a result, and takes back what was done.
///
/// # Errors
/// If memory cannot be written.
pub fn undo() -> Result<()> {
    let Some(script) = taken().filter(|script| script.calls.is_empty()) else { return Ok(()) };
    for ([place, held], version) in script.kept.written.iter().rev() {
        on_device!(place, copy::copy_into(place, held))?;
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
