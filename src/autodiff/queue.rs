//! The priority queue of a backward walk: pending nodes, with the gradients that have reached them.
//!
//! Nodes are visited from the youngest to the oldest, so every node is visited after all its consumers. In
//! most graphs few nodes are pending at once: they are in a short sorted list, where a search takes a
//! comparison or two. Nodes that do not fit are older than all of these, in a hash map ordered by a heap.

use super::prelude::*;
use rustc_hash::FxHashMap;
use std::collections::BinaryHeap;

/// Gradients of the outputs of one node.
pub type Slots = SmallVec<[Option<Tensor>; 1]>;

/// The capacity of the short list.
const RECENT: usize = 8;

/// A pending node and its gradients.
struct Waiting {
    seq: u64,
    node: Arc<Node>,
    slots: Slots,
}

/// The pending nodes. Those in `recent` are younger than all in `older`.
#[derive(Default)]
pub struct Queue {
    /// The youngest nodes, in order of recording.
    recent: Vec<Waiting>,
    /// The sequence numbers of the other nodes, largest on top.
    order: BinaryHeap<u64>,
    /// The other nodes and their gradients, by sequence number.
    older: FxHashMap<u64, (Arc<Node>, Slots)>,
}

impl Queue {
    /// Returns the gradients at `node`, which becomes pending if it was not.
    #[inline]
    pub fn slots(&mut self, node: &Arc<Node>) -> &mut Slots {
        let seq = node.seq;
        let mut index = self.recent.len();
        while index > 0 && self.recent[index - 1].seq > seq {
            index -= 1;
        }
        if index > 0 && self.recent[index - 1].seq == seq {
            return &mut self.recent[index - 1].slots;
        }
        let oldest = index == 0 && self.order.peek().is_some_and(|&youngest| youngest >= seq);
        if oldest || (index == 0 && self.recent.len() == RECENT) {
            return self.set_aside(node);
        }
        if self.recent.len() == RECENT {
            let first = self.recent.remove(0);
            self.order.push(first.seq);
            self.older.insert(first.seq, (first.node, first.slots));
            index -= 1;
        }
        self.recent.insert(index, Waiting { seq, node: node.clone(), slots: empty(node) });
        &mut self.recent[index].slots
    }

    /// Returns the gradients at `node` among the older nodes.
    #[cold]
    fn set_aside(&mut self, node: &Arc<Node>) -> &mut Slots {
        let older = self.older.entry(node.seq).or_insert_with(|| {
            self.order.push(node.seq);
            (node.clone(), empty(node))
        });
        &mut older.1
    }

    /// Removes the youngest node.
    #[inline]
    pub fn pop(&mut self) -> Option<(Arc<Node>, Slots)> {
        if let Some(Waiting { node, slots, .. }) = self.recent.pop() {
            return Some((node, slots));
        }
        self.older.remove(&self.order.pop()?)
    }
}

/// Empty slots for the gradients of a node.
#[inline]
fn empty(node: &Node) -> Slots {
    let mut slots = Slots::new();
    for _ in 0..node.outputs.len() {
        slots.push(None);
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::dtype::DType;
    use crate::error::Result;

    /// Nodes come out from the youngest to the oldest, each once, in whatever order they were inserted.
    #[test]
    fn the_order_is_that_of_recording() -> Result<()> {
        let value = Tensor::scalar(1.0, DType::F32, crate::array::buffer::Device::Cpu)?;
        let nodes: Vec<Arc<Node>> = (0..64).map(|_| Arc::new(Node::leaf(1, value.aval()))).collect();
        for step in [1, 5, 11, 27, 63] {
            let mut queue = Queue::default();
            let mut waiting = std::collections::BTreeSet::new();
            for i in 0..256 {
                let node = &nodes[i * step % 64];
                // As in a walk, nothing younger than a removed node is inserted again.
                if waiting.last().is_none_or(|&last| node.seq <= last) || i < 20 {
                    queue.slots(node)[0] = Some(value.clone());
                    waiting.insert(node.seq);
                }
                if i % 3 == 2 {
                    assert_eq!(queue.pop().map(|(node, _)| node.seq), waiting.pop_last());
                }
            }
            while let Some((node, slots)) = queue.pop() {
                assert!(slots[0].is_some());
                assert_eq!(Some(node.seq), waiting.pop_last());
            }
            assert!(waiting.is_empty());
        }
        Ok(())
    }
}
