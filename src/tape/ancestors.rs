//! The part of the graph that some nodes were computed from.

use crate::tape::node::Node;
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// `nodes` and all that they were computed from, each once, but for those recorded before `oldest`.
pub fn ancestors<'a>(nodes: impl IntoIterator<Item = &'a Arc<Node>>, oldest: u64) -> Vec<&'a Arc<Node>> {
    let mut seen = FxHashSet::default();
    let mut found = Vec::new();
    let mut stack: Vec<&Arc<Node>> = nodes.into_iter().collect();
    while let Some(node) = stack.pop() {
        if node.seq >= oldest && seen.insert(node.seq) {
            found.push(node);
            stack.extend(node.edges.iter().flatten().map(|edge| &edge.node));
        }
    }
    found
}
