//! `io_probe_explain` and `io_probe_explain_json`: a plan as rows, a node each, with the blocks that
//! the node itself read.

use std::rc::Rc;

use io_probe_advise::page_costs::predict::{PagePlace, Prediction, predict};
use io_probe_advise::plan::{self, Node};
use io_probe_core::measure::page_times::{MeasuredTime, PageTimes};
use io_probe_surface::explain::{ExplainRow, OPTIONS};
use io_probe_surface::function::OptionName;
use io_probe_surface::value;
use pgrx::pg_sys;
use pgrx::prelude::*;

use crate::api::page_cost;
use crate::call::Options;
use crate::error::{Error, Result};
use crate::pg::backend::{JsonbText, Rows, Text, UpTo, interrupts, server};
use crate::pg::catalog::explain;
use crate::pg::catalog::query::Query;
use crate::pg::storage::relation::{Fork, Relation};
use crate::pg::storage::tablespace::Tablespace;

#[pg_extern(sql = false)]
fn io_probe_explain(query: Option<Query>, execute: Option<bool>, options: Option<JsonbText>) -> Rows {
    Rows::answer(|| {
        let query = query.ok_or_else(|| Error::invalid("query must not be null"))?;
        let given = given_times(options)?;
        let executes = execute.unwrap_or(false);
        let rows = rows(&explain::plan(&query, executes)?, given.as_ref())?;
        if executes {
            tell_what_is_unknown(&rows, given.is_none());
        }
        Ok(rows)
    })
}

// json arrives as the text it is: parsed once, after its size is known.
#[pg_extern(sql = false)]
fn io_probe_explain_json(plan: Option<UpTo<16, Text>>, options: Option<JsonbText>) -> Rows {
    Rows::answer(|| {
        let plan = plan.ok_or_else(|| Error::invalid("plan must not be null"))?;
        rows(&plan.0, given_times(options)?.as_ref())
    })
}

/// Times that the call gives to predict from, for all relations. Without them each tablespace has those that
/// the session measured there last.
fn given_times(options: Option<JsonbText>) -> Result<Option<Rc<PageTimes>>> {
    let options = Options::parse(options, OPTIONS)?;
    let Some(rows) = options.rows::<MeasuredTime>(OptionName::PageCost, "io_probe_page_cost")? else {
        return Ok(None);
    };
    if let Some(index) = rows.iter().position(|time| !plausible(time)) {
        let message = format!("row {} of option \"page_cost\" is out of range", index + 1);
        return Err(Error::invalid(message)
            .detail("A density is over 0 and at most 1, and no time is negative.")
            .hint("Pass the rows of io_probe_page_cost as they are."));
    }
    if rows.len() > MAX_TIMES {
        return Err(Error::too_large("option \"page_cost\" has too many rows")
            .detail(format!("It has {} rows, of at most {MAX_TIMES}.", rows.len())));
    }
    Ok(Some(Rc::new(PageTimes::of(rows))))
}

fn plausible(measured: &MeasuredTime) -> bool {
    let times = [measured.time.map(|time| time.us), measured.tuple_us];
    times.into_iter().flatten().all(|us| us >= 0.0)
        && measured.density.is_none_or(|density| density > 0.0 && density <= 1.0)
}

/// What a bitmap scan's time depends on. The size is the present one, as the plan does not tell it.
fn place(relation: pg_sys::Oid) -> PagePlace {
    let open = Relation::open_for_facts(relation, "io_probe_explain").ok();
    let source = open.and_then(|relation| relation.source(Fork::Main));
    PagePlace {
        pages: source.map(|source| source.blocks()),
        concurrency: Tablespace::of_relation(relation).io_concurrency(),
    }
}

/// Most rows of times: a call of io_probe_page_cost gives some hundred at most.
const MAX_TIMES: usize = 1000;

fn rows(json: &str, given: Option<&Rc<PageTimes>>) -> Result<Vec<ExplainRow>> {
    Ok(interrupts::collect(plan::nodes(json)?.into_iter().map(|node| row(node, given))))
}

/// Says why columns of a query that was executed are NULL. `remembers` if the call gives no times.
fn tell_what_is_unknown(rows: &[ExplainRow], remembers: bool) {
    if server::setting(c"track_io_timing").as_deref() != Some("on") {
        pgrx::notice!("io_ms is not known: track_io_timing is off");
    }
    if remembers && rows.iter().any(lacks_times) {
        pgrx::notice!(
            "device_ms is not known of all nodes: io_probe_page_cost of a table in their tablespace measures \
             it for this session, with cold => true, which evicts that table from the caches"
        );
    }
}

fn lacks_times(row: &ExplainRow) -> bool {
    row.access.is_some() && row.shared_blks_read.is_some_and(|read| read > 0) && row.device_ms.is_none()
}

fn row(node: Node, given: Option<&Rc<PageTimes>>) -> ExplainRow {
    let (relid, indexid) = match &node.relation {
        Some(relation) => explain::find_relation(node.schema.as_deref(), relation, node.index.as_deref()),
        None => (None, None),
    };
    let Prediction { os_ms, device_ms } = prediction(&node, relid, indexid, given);
    let [relid, indexid] = [relid, indexid].map(|oid| oid.map(|oid| value::Relation(oid.to_u32())));
    let indent = 2 * node.level as usize;
    let name = format!("{:indent$}{}", "", node.node_type).into();
    ExplainRow { node: name, relid, indexid, os_ms, device_ms, ..node.row }
}

/// By the given times, or else by those that the session measured last where the node's blocks are.
fn prediction(
    node: &Node,
    relid: Option<pg_sys::Oid>,
    indexid: Option<pg_sys::Oid>,
    given: Option<&Rc<PageTimes>>,
) -> Prediction {
    // An index scan visits both, and more blocks of the table.
    let home = if node.reads_index { indexid.or(relid) } else { relid };
    let times = given.cloned().or_else(|| page_cost::recall(Tablespace::of_relation(home?)));
    times.map(|times| predict(node, &times, || relid.map(place))).unwrap_or_default()
}
