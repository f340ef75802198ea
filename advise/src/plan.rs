//! The text of `EXPLAIN (FORMAT JSON)`, read into one [`Node`] per plan node, each with the blocks
//! and the time that are its own.
//!
//! EXPLAIN's counters are inclusive: a node's figures hold those of everything that ran below it. What a node
//! did itself is the difference, which is easy until a CTE or an InitPlan appears: `ledger` says which node
//! ran it and therefore gives it up.
//!
//! # What is read
//! Known fields are taken from the JSON of PostgreSQL 15 to 18; anything else is ignored, so a newer
//! server's plan is read as far as its field names are the same. Times spent outside the plan's
//! nodes (planning, triggers, serialization, JIT) are not rows here.
//!
//! # Limitations and caveats
//! * Times are per-loop averages rounded to a microsecond; `total_ms` multiplies them back, so a node
//!   of a million loops is known to half a second.
//! * Times of nodes are the wall clock, blocks and times of I/O are sums over all processes: see
//!   `wall_clock`.
//! * A server before 15 tells no times of temporary files, one before 17 those of temporary tables not
//!   apart.
//! * A plan taken without VERBOSE shows neither schemas nor target lists: `schema` is `None`, and an
//!   InitPlan that only a target list uses may be credited to the wrong node.
//! * serde_json refuses more than 128 nested arrays and objects, which is a plan of about 60 levels.
//! * What is larger than any plan of a server is refused before it takes memory: [`MOST_BYTES`],
//!   [`MOST_NODES`].
//!
//! Source: `src/backend/commands/explain.c` and `src/backend/executor/instrument.c` of PostgreSQL.

#[cfg(any(test, fuzzing))]
pub(crate) mod hostile;
mod ledger;
pub mod measured_times;
mod naming;
#[cfg(test)]
pub(crate) mod tests;
mod wall_clock;

use std::ops::Deref;

use ledger::{COUNTERS, Entry, TIME};
use serde_json::{Map, Value};

use io_probe_core::run::memory;
use io_probe_surface::explain::ExplainRow;
use io_probe_surface::value::Text;
use io_probe_surface::words;

/// Most bytes of the text.
pub const MOST_BYTES: usize = 16 << 20;

/// Most nodes of a plan.
pub const MOST_NODES: usize = 20_000;

/// Most names of subplans in all nodes: those that they have, and those in their expressions.
const MOST_REFERENCES: usize = 200_000;

/// Most bytes of memory that the text may take when it is read. 16 MiB of EXPLAIN's output take half of that.
const MOST_MEMORY: usize = 512 << 20;

/// Most bytes of a name: the server's have 63 in its encoding. One may be in many rows.
const MOST_OF_NAME: usize = 1000;

words! {
    /// How a node reaches the blocks that it reads itself.
    NodeAccess {
        /// In the order of the file: a sequential, sample or TID range scan.
        Sequential = "sequential",
        /// Block by block, in an order that the disk can't foresee: an index or TID scan.
        Random = "random",
        /// In ascending order with gaps, prefetched: the heap side of a bitmap scan.
        Bitmap = "bitmap",
    }
}

/// One node of a plan, and what else the plan says of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// What is known without a server: not its relation, its index and predictions; nor is the type indented.
    /// A figure is `None` in a plan taken without what yields it: ANALYZE, BUFFERS, TIMING, COSTS,
    /// `track_io_timing`.
    pub row: ExplainRow,
    /// Schema of `relation`; only a VERBOSE plan tells. `pg_temp` for a temporary table.
    pub schema: Option<String>,
    /// The table that the node scans or modifies. A Bitmap Index Scan repeats that of the Bitmap Heap Scan
    /// that it works for, as context: its own blocks are the index's.
    pub relation: Option<String>,
    /// The index that the node scans; it is in the schema of `relation`.
    pub index: Option<String>,
    /// How the node reads; `None` for one that scans neither a table nor an index.
    pub access: Option<NodeAccess>,
    /// Does it share the relation with the other processes of a parallel plan?
    pub is_parallel: bool,
    /// Are its blocks the index's, or most of them?
    pub reads_index: bool,
}

impl Deref for Node {
    type Target = ExplainRow;

    fn deref(&self) -> &ExplainRow {
        &self.row
    }
}

/// Why a text could not be read as a plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The text is not JSON.
    #[error("could not read the plan as JSON: {0}")]
    Json(#[source] serde_json::Error),
    /// The plan has more levels than the parser takes.
    #[error("could not read the plan: its JSON is nested deeper than 128 levels")]
    TooDeep,
    /// The JSON holds no plan, as of a utility statement.
    #[error("could not find a plan in the JSON")]
    NoPlan,
    /// The JSON holds the plans of several statements.
    #[error("could not choose among several plans: the JSON has {0}")]
    SeveralPlans(usize),
    /// More than any plan has.
    #[error("the plan is too large")]
    TooLarge {
        /// What there is too much of, as a plural.
        what: &'static str,
        /// How many, so far as was read.
        found: usize,
        /// How many there may be.
        most: usize,
    },
    /// The kernel would not give the memory.
    #[error(transparent)]
    NoMemory(#[from] io_probe_core::Error),
    /// A field of a node is missing or not of its type.
    #[error("could not read \"{key}\" of plan node {node_id}")]
    Field {
        /// The node, counted as in [`ExplainRow::node_id`].
        node_id: usize,
        /// The field as EXPLAIN names it.
        key: &'static str,
    },
}

/// Reads the output of `EXPLAIN (FORMAT JSON)`: the array that the server returns, or the single object
/// that auto_explain logs. The nodes come in EXPLAIN's order, the top node first.
///
/// # Errors
/// [`PlanError`] when the text is not JSON, not a plan, more than one plan, too deep or too large, or there
/// is no memory for it.
pub fn nodes(json: &str) -> Result<Vec<Node>, PlanError> {
    at_most("bytes", json.len(), MOST_BYTES)?;
    let needed = memory::of_json(json);
    at_most("bytes in memory", needed, MOST_MEMORY)?;
    let _of_document = memory::hold(needed)?;
    let document = serde_json::from_str(json).map_err(|error| {
        // The only way that serde_json tells this error from others.
        if error.to_string().starts_with("recursion limit exceeded") {
            PlanError::TooDeep
        } else {
            PlanError::Json(error)
        }
    })?;
    let items = flatten(top(&document)?)?;
    let _of_nodes = memory::hold(items.len() * MEMORY_OF_NODE)?;
    let mut facts = items.iter().map(NodeFigures::read).collect::<Result<Vec<_>, _>>()?;
    wall_clock::apply(&items, &mut facts);
    let known = facts.first().map(|top| top.inclusive.map(|counter| counter.is_some())).unwrap_or_default();
    let mut entries = Vec::with_capacity(items.len());
    let mut references = 0;
    for (item, facts) in items.iter().zip(&facts) {
        let entry = entry(item, &facts.inclusive);
        references += entry.needs.len() + entry.provides.as_ref().map_or(0, Vec::len);
        at_most("references to subplans", references, MOST_REFERENCES)?;
        entries.push(entry);
    }
    let _of_ledger = memory::hold(ledger::memory(&entries))?;
    let own = ledger::own(&entries);
    items
        .iter()
        .zip(facts)
        .zip(own)
        .map(|((item, facts), own)| node(&items, item, facts, known, own))
        .collect()
}

/// Bytes of memory that is made of a node, names apart.
const MEMORY_OF_NODE: usize = 2048;

fn at_most(what: &'static str, found: usize, most: usize) -> Result<(), PlanError> {
    if found > most { Err(PlanError::TooLarge { what, found, most }) } else { Ok(()) }
}

/// A node's JSON and its place in the plan.
struct JsonNode<'a> {
    position: usize,
    parent: Option<usize>,
    level: u32,
    fields: &'a Map<String, Value>,
}

fn top(document: &Value) -> Result<&Value, PlanError> {
    let statement = match document {
        Value::Array(statements) if statements.len() > 1 => {
            return Err(PlanError::SeveralPlans(statements.len()));
        }
        Value::Array(statements) => statements.first().ok_or(PlanError::NoPlan)?,
        other => other,
    };
    statement.get("Plan").ok_or(PlanError::NoPlan)
}

/// The nodes in preorder.
fn flatten(top: &Value) -> Result<Vec<JsonNode<'_>>, PlanError> {
    let mut items = Vec::new();
    let mut waiting = vec![(top, None, 0)];
    while let Some((value, parent, level)) = waiting.pop() {
        let position = items.len();
        let fields = value.as_object().ok_or(PlanError::Field { node_id: position + 1, key: "Plan" })?;
        let item = JsonNode { position, parent, level, fields };
        let children = match fields.get("Plans") {
            Some(children) => children.as_array().ok_or(item.broken("Plans"))?.as_slice(),
            None => &[],
        };
        at_most("nodes", position + 1, MOST_NODES)?;
        items.push(item);
        waiting.extend(children.iter().rev().map(|child| (child, Some(position), level + 1)));
    }
    Ok(items)
}

impl<'a> JsonNode<'a> {
    fn text(&self, key: &str) -> Option<&'a str> {
        self.fields.get(key).and_then(Value::as_str)
    }

    /// A name, which may be in the rows of other nodes, too.
    fn name(&self, key: &'static str) -> Result<Option<String>, PlanError> {
        let name = self.text(key);
        name.map(|name| if name.len() > MOST_OF_NAME { Err(self.broken(key)) } else { Ok(name.to_owned()) })
            .transpose()
    }

    fn flag(&self, key: &str) -> bool {
        self.fields.get(key).and_then(Value::as_bool).unwrap_or(false)
    }

    fn kind(&self) -> &'a str {
        self.text("Node Type").unwrap_or_default()
    }

    fn gathers(&self) -> bool {
        naming::gathers(self.kind())
    }

    /// A CTE or an InitPlan: printed below a node that need not be the one that ran it.
    fn is_detached(&self) -> bool {
        self.text("Parent Relationship") == Some("InitPlan")
    }

    fn broken(&self, key: &'static str) -> PlanError {
        PlanError::Field { node_id: self.position + 1, key }
    }

    fn number(&self, key: &'static str) -> Result<Option<f64>, PlanError> {
        self.fields.get(key).map(|value| value.as_f64().ok_or(self.broken(key))).transpose()
    }

    fn count(&self, key: &'static str) -> Result<Option<u64>, PlanError> {
        let fits = |count: &u64| i64::try_from(*count).is_ok();
        self.fields.get(key).map(|value| value.as_u64().filter(fits).ok_or(self.broken(key))).transpose()
    }

    /// A time in ms as whole microseconds, which is all that EXPLAIN prints: whole numbers add up.
    fn micros(&self, key: &'static str) -> Result<Option<u64>, PlanError> {
        // The cast saturates, and takes what is negative as 0.
        Ok(self.number(key)?.map(|ms| (ms * 1000.0).round() as u64))
    }

    /// The sum of several times, of which a server may have only some.
    fn sum_of_micros<const N: usize>(&self, keys: [&'static str; N]) -> Result<Option<u64>, PlanError> {
        keys.into_iter().try_fold(None, |sum: Option<u64>, key| {
            let more = self.micros(key)?;
            Ok(sum.into_iter().chain(more).reduce(u64::saturating_add))
        })
    }
}

/// The figures of one node, what ran below it included.
struct NodeFigures {
    inclusive: [Option<u64>; COUNTERS],
    processes: Option<u64>,
    loops: Option<u64>,
}

impl NodeFigures {
    fn read(item: &JsonNode) -> Result<NodeFigures, PlanError> {
        item.name("Node Type")?.ok_or(item.broken("Node Type"))?;
        // What its type is made of, too.
        for key in ["Operation", "Command", "Join Type", "Custom Plan Provider"] {
            item.name(key)?;
        }
        let loops = item.count("Actual Loops")?;
        let total = item
            .micros("Actual Total Time")?
            .zip(loops)
            .map(|(average, loops)| average.saturating_mul(loops));
        Ok(NodeFigures {
            inclusive: [
                item.count("Shared Hit Blocks")?,
                item.count("Shared Read Blocks")?,
                item.count("Local Hit Blocks")?,
                item.count("Local Read Blocks")?,
                item.count("Temp Read Blocks")?,
                item.count("Temp Written Blocks")?,
                // One field up to 16, two from 17.
                item.sum_of_micros(["I/O Read Time", "Shared I/O Read Time", "Local I/O Read Time"])?,
                item.micros("Local I/O Read Time")?,
                item.sum_of_micros(["Temp I/O Read Time", "Temp I/O Write Time"])?,
                total,
            ],
            processes: None,
            loops,
        })
    }
}

/// What the ledger has to know of a node.
fn entry(item: &JsonNode, inclusive: &[Option<u64>; COUNTERS]) -> Entry {
    Entry {
        parent: item.parent,
        level: item.level,
        provides: item.is_detached().then(|| naming::provided(item.text("Subplan Name").unwrap_or_default())),
        needs: naming::needed(item.fields),
        reads_relations: naming::reads_relations(item.kind()),
        gathers: item.gathers(),
        modifies: item.kind() == "ModifyTable",
        inclusive: inclusive.map(Option::unwrap_or_default),
    }
}

fn node(
    items: &[JsonNode],
    item: &JsonNode,
    facts: NodeFigures,
    known: [bool; COUNTERS],
    own: [u64; COUNTERS],
) -> Result<Node, PlanError> {
    let mut own = own.into_iter().zip(known).map(|(own, known)| known.then_some(own));
    let mut next = || own.next().flatten();
    let target = if item.kind() == "Bitmap Index Scan" { bitmap_heap_scan(items, item) } else { Some(item) };
    let relation = name(target, "Relation Name")?;
    // A Function Scan has a "Schema" too: the function's.
    let schema = name(target.filter(|_| relation.is_some()), "Schema")?;
    let (index, access) = (item.name("Index Name")?, naming::access(item.kind()));
    let row = ExplainRow {
        node_id: Some(item.position as u32 + 1),
        parent_id: item.parent.map(|parent| parent as u32 + 1),
        level: item.level,
        node_type: naming::node_type(item).into(),
        alias: name(target, "Alias")?.map(Text::from),
        access: access.map(NodeAccess::name),
        shared_blks_hit: next(),
        shared_blks_read: next(),
        local_blks_hit: next(),
        local_blks_read: next(),
        temp_blks_read: next(),
        temp_blks_written: next(),
        io_ms: next().map(ms),
        local_io_ms: next().map(ms),
        temp_io_ms: next().map(ms),
        self_ms: next().map(ms),
        total_ms: facts.inclusive[TIME].map(ms),
        processes: facts.processes,
        plan_rows: item.number("Plan Rows")?,
        actual_rows: item.number("Actual Rows")?,
        loops: facts.loops,
        startup_cost: item.number("Startup Cost")?,
        total_cost: item.number("Total Cost")?,
        ..ExplainRow::default()
    };
    let reads_index = matches!(item.kind(), "Bitmap Index Scan" | "Index Only Scan");
    Ok(Node { row, schema, relation, index, access, is_parallel: item.flag("Parallel Aware"), reads_index })
}

fn ms(micros: u64) -> f64 {
    micros as f64 / 1000.0
}

fn name(item: Option<&JsonNode>, key: &'static str) -> Result<Option<String>, PlanError> {
    item.map_or(Ok(None), |item| item.name(key))
}

/// The node that a Bitmap Index Scan works for, past any BitmapAnd and BitmapOr: a Bitmap Heap Scan.
fn bitmap_heap_scan<'a>(items: &'a [JsonNode<'a>], item: &JsonNode) -> Option<&'a JsonNode<'a>> {
    let mut above = &items[item.parent?];
    while matches!(above.kind(), "BitmapAnd" | "BitmapOr") {
        above = &items[above.parent?];
    }
    Some(above)
}
