//! A plan's JSON.

use serde_json::{Value, json};

use crate::plan::{Node, nodes};

/// The fields whose figures are credited, in the order of [`own`].
pub(crate) const BLOCKS: [&str; 6] = [
    "Shared Hit Blocks",
    "Shared Read Blocks",
    "Local Hit Blocks",
    "Local Read Blocks",
    "Temp Read Blocks",
    "Temp Written Blocks",
];

/// Reads a plan, and reads it again in the other forms in which a server gives the same one.
pub fn plans(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let read = nodes(text);
    let Ok(document) = serde_json::from_str::<Value>(text) else {
        assert!(read.is_err(), "no JSON, but a plan");
        return;
    };
    let Ok(plan) = read else { return };
    check(&document, &plan);
    let statement = document.get(0).unwrap_or(&document);
    let text = |value: &Value| serde_json::to_string(value).expect("JSON");
    let again = nodes(&text(statement)).expect("the object that auto_explain logs");
    // A number may lose its last digit on the way through a text.
    assert_eq!(names(&again), names(&plan));
    if let Ok(again) = nodes(&text(&json!([statement]))) {
        assert_eq!(names(&again), names(&plan));
    }
}

/// The fields of each node that are not fractions.
fn names(plan: &[Node]) -> Vec<impl PartialEq + std::fmt::Debug> {
    let of = |node: &Node| {
        let Node { row, schema, relation, index, access, is_parallel, reads_index } = node.clone();
        let place = (row.node_id, row.parent_id, row.level, access, row.loops);
        let kind = (row.node_type, is_parallel, reads_index);
        (place, own(node), kind, schema, relation, index, row.alias)
    };
    plan.iter().map(of).collect()
}

/// Blocks of the node itself, in the order of [`BLOCKS`].
pub(crate) fn own(node: &Node) -> [Option<u64>; 6] {
    [
        node.shared_blks_hit,
        node.shared_blks_read,
        node.local_blks_hit,
        node.local_blks_read,
        node.temp_blks_read,
        node.temp_blks_written,
    ]
}

/// Does a CTE modify data? It goes on after the top node has ended, which does not count what it does then.
fn has_later_writes(node: &Value) -> bool {
    let detached = node["Parent Relationship"] == "InitPlan" && node["Node Type"] == "ModifyTable";
    detached || node["Plans"].as_array().is_some_and(|plans| plans.iter().any(has_later_writes))
}

fn check(document: &Value, plan: &[Node]) {
    let top = &document.get(0).unwrap_or(document)["Plan"];
    for (position, node) in plan.iter().enumerate() {
        assert_eq!(node.node_id, Some(position as u32 + 1));
        match node.parent_id {
            None => assert_eq!((position, node.level), (0, 0)),
            Some(parent) => {
                assert!(Some(parent) < node.node_id, "a parent is printed first");
                assert_eq!(plan[parent as usize - 1].level + 1, node.level);
            }
        }
        // The figure of a node that lacks it, where the top has it, is 0.
        assert!(node.self_ms.is_none_or(|own| own >= 0.0 && own <= node.total_ms.unwrap_or(0.0)), "{node:?}");
        assert!(node.io_ms.is_none_or(|own| own >= 0.0), "{node:?}");
        assert!(node.temp_io_ms.is_none_or(|own| own >= 0.0), "{node:?}");
        assert!(node.processes.is_none_or(|processes| processes >= 1), "{node:?}");
        assert!(own(node).into_iter().flatten().all(|blocks| i64::try_from(blocks).is_ok()), "{node:?}");
    }
    let modifies = has_later_writes(top);
    if let Some(whole) = plan[0].total_ms.filter(|_| !modifies) {
        // The largest figures have no fractions left.
        let sum = plan.iter().filter_map(|node| node.self_ms).sum::<f64>();
        assert!(sum <= whole * (1.0 + 1e-9) + 0.0005, "{sum} ms of {whole}");
    }
    for (at, key) in BLOCKS.into_iter().enumerate() {
        let sum = plan.iter().map(|node| own(node)[at].map(u128::from)).sum::<Option<u128>>();
        let expected = top.get(key).and_then(Value::as_u64).map(u128::from);
        assert_eq!(sum.is_some(), expected.is_some(), "{key}");
        assert!(sum == expected || modifies && sum > expected, "{key}: {sum:?} of {expected:?}");
    }
}
