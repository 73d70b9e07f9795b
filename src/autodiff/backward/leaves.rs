//! The leaves of a backward walk: sums their gradients, runs their hooks and stores the result.

use super::walk::{Walk, add_to};
use crate::autodiff::accumulate;
use crate::autodiff::queue::Slots;
use crate::error::{Error, Result};
use crate::tape::node::Node;
use crate::tensor::Tensor;
use crate::watch::script;
use smallvec::smallvec;
use std::sync::{Arc, Weak};

/// The sum so far at a leaf that further gradients may reach.
pub(super) struct PartialSum {
    node: Arc<Node>,
    pub(super) total: Option<Tensor>,
    /// Whether a gradient that is zero everywhere arrived; `total` leaves it out.
    has_zero: bool,
    /// The number of edges processed, with or without a gradient.
    edges: usize,
}

impl Walk<'_> {
    /// Adds a gradient to the sum of a leaf. Without one, counts the edge only; `is_zero` says that its
    /// gradient is zero everywhere. Visits the leaf as soon as all edges to it were processed, so that what
    /// its gradient was computed from is freed early. A leaf with edges from other graphs too, or whose
    /// gradient still shares its memory, is visited at the end.
    pub(super) fn add_to_leaf(&mut self, leaf: &Arc<Node>, g: Option<Tensor>, is_zero: bool) -> Result<()> {
        if leaf.edges_to(0) == 1 && is_stored_as_is(leaf, g.as_ref()) {
            return if g.is_some() || is_zero { self.visit(leaf, smallvec![g]) } else { Ok(()) };
        }
        let key = Arc::as_ptr(leaf);
        let start = || PartialSum { node: leaf.clone(), total: None, has_zero: false, edges: 0 };
        let sum = self.leaves.entry(key).or_insert_with(start);
        sum.edges += 1;
        sum.has_zero |= is_zero;
        if let Some(g) = g {
            add_to(&mut sum.total, g, self.options.create_graph)?;
        }
        // The sum itself holds one reference.
        if sum.edges >= leaf.edges_to(1) && is_stored_as_is(leaf, sum.total.as_ref()) {
            let sum = self.leaves.remove(&key);
            return self.complete(sum);
        }
        Ok(())
    }

    /// Visits the remaining leaves, youngest first.
    pub(super) fn complete_leaves(&mut self) -> Result<()> {
        let mut left: Vec<PartialSum> = std::mem::take(&mut self.leaves).into_values().collect();
        left.sort_unstable_by_key(|sum| std::cmp::Reverse(sum.node.seq));
        left.into_iter().try_for_each(|sum| self.complete(Some(sum)))
    }

    /// Visits a leaf that no further gradient can reach.
    fn complete(&mut self, sum: Option<PartialSum>) -> Result<()> {
        match sum {
            Some(PartialSum { node, total, has_zero, .. }) if total.is_some() || has_zero => {
                self.visit(&node, smallvec![total])
            }
            _ => Ok(()),
        }
    }

    /// Adds the gradient of a leaf to its slot, and runs the hooks before and after.
    pub(super) fn accumulate(&self, node: &Arc<Node>, mut g: Slots) -> Result<()> {
        if !self.options.accumulate {
            return Ok(());
        }
        if let Some(next) = node.exchanged() {
            return self.accumulate_in_successor(node, next, g);
        }
        self.before(node, &mut g)?;
        let Some(value) = g[0].take() else { return Ok(()) };
        // Without handles, nobody can read the gradient.
        let Some(mut slot) = node.grad().filter(|_| node.has_handle()) else { return Ok(()) };
        script::touched(node, &slot);
        script::added_to(node, &slot)?;
        let Some(hooks) = node.hooks() else {
            return accumulate::into_slot(&mut slot, value, self.options.create_graph);
        };
        // Cloned only if needed: a second reference to the gradient would make the slot copy it.
        let seen = hooks.has_after().then(|| value.clone());
        accumulate::into_slot(&mut slot, value, self.options.create_graph)?;
        let total = slot.clone();
        // Hooks run outside the lock: they may read the slot.
        drop(slot);
        if let Some(total) = total {
            hooks.accumulated(&total)?;
        }
        if seen.is_some() { hooks.after(&mut [], &[seen]) } else { Ok(()) }
    }

    /// Passes the gradient of a leaf on to the leaf that replaced it.
    fn accumulate_in_successor(&self, node: &Node, next: Weak<Node>, mut g: Slots) -> Result<()> {
        let Some(next) = next.upgrade().filter(|next| next.has_handle()) else { return Ok(()) };
        let (was, now) = (&node.outputs[0], &next.outputs[0]);
        if was.shape != now.shape {
            return Err(Error::autodiff(format!(
                "backward: a leaf of shape {} was given data of shape {} after it was used, so its gradient \
                 has no place; assign .data before the forward, or data of the same shape",
                was.shape, now.shape
            )));
        }
        if let Some(g) = &mut g[0] {
            accumulate::fit(g, now)?;
        }
        self.accumulate(&next, g)
    }
}

/// Whether storing the gradient of a leaf at once needs no copy that waiting could avoid.
fn is_stored_as_is(leaf: &Node, g: Option<&Tensor>) -> bool {
    match g {
        Some(Tensor::Array(a)) => a.is_alone() || leaf.grad().is_some_and(|slot| slot.is_some()),
        _ => true,
    }
}
