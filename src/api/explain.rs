//! `io_probe_explain` and `io_probe_explain_json`: a plan as rows, a node each, with the blocks that
//! the node itself read.

use io_probe_core::plan::{self, Node};
use pgrx::prelude::*;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::pg::explain;
use crate::pg::row::Rows;

#[pg_extern(sql = false)]
fn io_probe_explain(query: Option<&str>, execute: Option<bool>) -> Rows {
    let query = query.ok_or_else(|| Error::invalid("query must not be null"));
    let plan = query.and_then(|query| explain::plan(query, execute.unwrap_or(false)));
    Rows::answer(plan.and_then(|plan| rows(&plan)))
}

// json arrives as the text it is: parsed once, after its size is known.
#[pg_extern(sql = false)]
fn io_probe_explain_json(plan: Option<&str>) -> Rows {
    let plan = plan.ok_or_else(|| Error::invalid("plan must not be null"));
    Rows::answer(plan.and_then(rows))
}

/// A plan is held in memory many times its own size, and Rust can't answer a lack of memory with an
/// ERROR as the server does: these bounds keep far from there.
const MAX_BYTES: usize = 8 << 20;
const MAX_NODES: usize = 20_000;

fn rows(json: &str) -> Result<Vec<Row>> {
    if json.len() > MAX_BYTES {
        return Err(Error::too_large("the plan is too large")
            .detail(format!("It has {} bytes, of at most {MAX_BYTES}.", json.len())));
    }
    let nodes = plan::nodes(json).map_err(|e| Error::invalid(e.to_string()))?;
    if nodes.len() > MAX_NODES {
        return Err(Error::too_large("the plan is too large")
            .detail(format!("It has {} nodes, of at most {MAX_NODES}.", nodes.len())));
    }
    Ok(nodes.into_iter().map(Row::from).collect())
}

/// `io_probe_explain_row`.
#[derive(Debug, Serialize)]
struct Row {
    node_id: u32,
    parent_id: Option<u32>,
    level: u32,
    node_type: String,
    relid: Option<u32>,
    indexid: Option<u32>,
    alias: Option<String>,
    access: Option<&'static str>,
    shared_blks_hit: Option<u64>,
    shared_blks_read: Option<u64>,
    temp_blks_read: Option<u64>,
    temp_blks_written: Option<u64>,
    io_read_ms: Option<f64>,
    self_ms: Option<f64>,
    total_ms: Option<f64>,
    plan_rows: Option<f64>,
    actual_rows: Option<f64>,
    loops: Option<u64>,
    startup_cost: Option<f64>,
    total_cost: Option<f64>,
    local_blks_hit: Option<u64>,
    local_blks_read: Option<u64>,
}

impl From<Node> for Row {
    fn from(node: Node) -> Self {
        let (relid, indexid) = match &node.relation {
            Some(relation) => explain::find_relation(node.schema.as_deref(), relation, node.index.as_deref()),
            None => (None, None),
        };
        Self {
            node_id: node.node_id,
            parent_id: node.parent_id,
            level: node.level,
            node_type: node.node_type,
            relid: relid.map(|oid| oid.to_u32()),
            indexid: indexid.map(|oid| oid.to_u32()),
            alias: node.alias,
            access: node.access.map(plan::Access::as_str),
            shared_blks_hit: node.shared_blks_hit,
            shared_blks_read: node.shared_blks_read,
            temp_blks_read: node.temp_blks_read,
            temp_blks_written: node.temp_blks_written,
            io_read_ms: node.io_read_ms,
            self_ms: node.self_ms,
            total_ms: node.total_ms,
            plan_rows: node.plan_rows,
            actual_rows: node.actual_rows,
            loops: node.loops,
            startup_cost: node.startup_cost,
            total_cost: node.total_cost,
            local_blks_hit: node.local_blks_hit,
            local_blks_read: node.local_blks_read,
        }
    }
}
