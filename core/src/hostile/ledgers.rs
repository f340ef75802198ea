//! The figures of a plan, apart from the text that held them.

use crate::plan::hostile as plan;

/// Reads four bytes a node: how far up its parent is, what it is, what it provides and needs, and how much it
/// counted.
pub fn ledgers(data: &[u8]) {
    let nodes: Vec<[u8; 4]> =
        data.chunks_exact(4).take(200).filter_map(|node| node.try_into().ok()).collect();
    if !nodes.is_empty() {
        plan::adds_up(&nodes);
    }
}
