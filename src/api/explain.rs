//! `io_probe_explain`: a plan as rows, a node each, with the blocks that the node itself read and who served
//! them.

use std::collections::BTreeSet;
use std::rc::Rc;

use io_probe_advise::page_costs::predict::{PagePlace, Prediction, predict};
use io_probe_advise::plan::measured_times::{self, OwnTime};
use io_probe_advise::plan::{self, Node, NodeAccess};
use io_probe_advise::served::{self, NodeReads, QueryReads, Verdict};
use io_probe_core::measure::page_times::{MeasuredTime, PageTimes};
use io_probe_surface::explain::{ExplainRow, ExplainTextRow, OPTIONS, OPTIONS_OF_PLAN};
use io_probe_surface::function::OptionName;
use io_probe_surface::value;
use pgrx::prelude::*;
use pgrx::{pg_sys, spi};

use crate::api::page_cost;
use crate::call::{Options, Probe, figure};
use crate::error::{Error, Result};
use crate::pg::backend::executor::{Counted, Counter, Execution, NodeCounts, OfNode};
use crate::pg::backend::server::TELLS_LOCAL_TIME;
use crate::pg::backend::{JsonbText, Rows, Text, UpTo, interrupts, server};
use crate::pg::catalog::explain;
use crate::pg::catalog::facts::qualified_name;
use crate::pg::catalog::query::Query;
use crate::pg::storage::buffers::EVICTS_SHARED_BUFFERS;
use crate::pg::storage::relation::Relation;
use crate::pg::storage::tablespace::Tablespace;

#[pg_extern(sql = false)]
fn io_probe_explain(query: Option<Query>, execute: Option<bool>, options: Option<JsonbText>) -> Rows {
    Rows::answer(|| {
        let query = query.ok_or_else(|| Error::invalid("query must not be null"))?;
        let options = Options::parse(options, OPTIONS)?;
        let given = given_times(&options)?;
        let exact = options.choice(OptionName::Exact)?.unwrap_or(false);
        if !execute.unwrap_or(false) {
            let rows = rows(&explain::plan(&query)?, given.as_ref())?;
            if rows.iter().all(|row| row.os_ms.is_none() && row.device_ms.is_none()) {
                pgrx::notice!(
                    "the query was not executed: execute => true also shows what the query reads and how \
                     long it waits, but refuses a query that writes"
                );
            }
            return Ok(rows);
        }
        let executed = Executed::of(&query, Execution { exact, prints: false }, given.as_ref())?;
        executed.tell();
        Ok(executed.into_rows())
    })
}

// json arrives as the text it is: parsed once, after its size is known.
#[pg_extern(sql = false)]
fn io_probe_explain_json(plan: Option<UpTo<16, Text>>, options: Option<JsonbText>) -> Rows {
    Rows::answer(|| {
        let plan = plan.ok_or_else(|| Error::invalid("plan must not be null"))?;
        let options = Options::parse(options, OPTIONS_OF_PLAN)?;
        rows(&plan.0, given_times(&options)?.as_ref())
    })
}

#[pg_extern(sql = false)]
fn io_probe_explain_text(query: Option<Query>) -> Rows {
    Rows::answer(|| {
        let query = query.ok_or_else(|| Error::invalid("query must not be null"))?;
        let executed = Executed::of(&query, Execution { exact: false, prints: true }, None)?;
        let lines = executed.into_lines().into_iter();
        Ok(lines.map(|plan| ExplainTextRow { plan: plan.into() }).collect())
    })
}

/// Times that the call gives to predict from, for all relations. Without them each tablespace has those that
/// the session measured there last.
fn given_times(options: &Options) -> Result<Option<Rc<PageTimes>>> {
    let Some(rows) = options.rows::<MeasuredTime>(OptionName::PageCost, "io_probe_page_cost")? else {
        return Ok(None);
    };
    if let Some(index) = rows.iter().position(|time| !plausible(time)) {
        let message = format!("row {} of option \"page_cost\" is out of range", index + 1);
        return Err(Error::invalid(message)
            .detail("A density is over 0 and at most 1, and no time is negative.")
            .hint("Pass the rows of io_probe_page_cost unchanged."));
    }
    if rows.len() > MAX_TIMES {
        return Err(Error::too_large("option \"page_cost\" holds too many rows")
            .detail(format!("It has {} rows, but at most {MAX_TIMES} are allowed.", rows.len())));
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
    let source = open.and_then(|relation| relation.source());
    PagePlace {
        pages: source.map(|source| source.blocks()),
        concurrency: Tablespace::of_relation(relation).io_concurrency(),
    }
}

/// May this node, if it reads ahead, have wanted more reads at a time than a process may have in flight? It
/// had to read as many blocks at least.
fn may_want_more_than_slots(row: &ExplainRow) -> bool {
    let is_ahead = server::reads_by_workers() || server::reads_by_io_uring();
    let (Some(slots), Some(read)) = (server::number::<u32>(c"io_max_concurrency"), row.shared_blks_read)
    else {
        return false;
    };
    let of_scan = row.relid.map(|table| Tablespace::of_relation(pg_sys::Oid::from(table.0)).io_concurrency());
    is_ahead && read > slots.into() && of_scan.is_some_and(|of_scan| of_scan > slots)
}

/// Blocks of this node that io_probe_evict would have made it read from the device.
fn evictable_blocks(row: &ExplainRow) -> u64 {
    let hit = row.shared_blks_hit.filter(|_| EVICTS_SHARED_BUFFERS).unwrap_or(0);
    hit + row.shared_blks_read.unwrap_or(0)
}

/// Fewer bytes are hardly worth a word.
const A_TRIFLE: u64 = 8 << 20;

/// A notice names at most so many relations.
const MOST_EVICTIONS: usize = 6;

/// Most rows of times: a call of io_probe_page_cost gives some hundred at most.
const MAX_TIMES: usize = 1000;

fn rows(json: &str, given: Option<&Rc<PageTimes>>) -> Result<Vec<ExplainRow>> {
    Ok(interrupts::collect(plan::nodes(json)?.into_iter().map(|node| row(node, given))))
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
    let mut row = ExplainRow { node: name, relid, indexid, os_ms, device_ms, ..node.row };
    let processes = row.processes.unwrap_or(1).max(1) as f64;
    let times =
        [&mut row.io_ms, &mut row.local_io_ms, &mut row.temp_io_ms, &mut row.os_ms, &mut row.device_ms];
    times.into_iter().flatten().for_each(|ms| *ms = figure(*ms / processes));
    row
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

/// A query that was executed.
struct Executed {
    rows: Vec<ExplainRow>,
    reads: Vec<NodeReads>,
    query: QueryReads,
    /// The plan as text.
    text: Option<String>,
    /// Were bytes shared out among nodes by their blocks?
    shared_out: bool,
}

impl Executed {
    fn of(query: &Query, how: Execution, given: Option<&Rc<PageTimes>>) -> Result<Self> {
        let (json, counted) = explain::execute(query, how)?;
        let mut nodes = plan::nodes(&json)?;
        let counted = counted
            .filter(|counted| counted.nodes.len() == nodes.len())
            .ok_or_else(|| Error::unsupported("another extension hides how queries are executed"))?;
        let pairs = nodes.iter_mut().zip(&counted.nodes);
        pairs.for_each(|(node, counted)| put_counts(&mut node.row, &counted.counts));
        let own_time =
            |node: &OfNode| OwnTime { ns: node.counts.get(Counter::OwnTime), leader_ns: node.leader_ns };
        measured_times::put(&mut nodes, &counted.nodes.iter().map(own_time).collect::<Vec<_>>());
        let reads: Vec<NodeReads> =
            nodes.iter().enumerate().map(|(index, node)| reads(node, index, &counted)).collect();
        let are_streams: Vec<bool> =
            nodes.iter().map(|node| node.access.is_some_and(|access| access != NodeAccess::Random)).collect();
        let rows = interrupts::collect(nodes.into_iter().map(|node| row(node, given)));
        let rows: Vec<ExplainRow> =
            rows.into_iter().zip(&reads).map(|(row, reads)| with_tiers(row, reads)).collect();
        let total_ms = rows.first().and_then(|top| top.total_ms).unwrap_or(0.0);
        let ns_per_byte = counted.copy_ns.map(|ns| ns / f64::from(pg_sys::BLCKSZ));
        let waits_untimed =
            !how.exact && rows.iter().zip(are_streams).any(|(row, is)| is && may_want_more_than_slots(row));
        let query = QueryReads { waits_untimed, ..QueryReads::of(&reads, total_ms, ns_per_byte) };
        Ok(Self { rows, reads, query, text: counted.text, shared_out: counted.shared_out })
    }

    /// Says what it was, and what is not known.
    fn tell(&self) {
        pgrx::notice!("{}", self.query);
        if self.shared_out {
            pgrx::notice!(
                "I/O workers read for several plan nodes at a time, so device bytes are split among nodes in \
                 proportion to their blocks; options => '{{\"exact\": true}}' counts them for each node"
            );
        }
        if self.query.waits_untimed && self.query.verdict() == Verdict::Unknown {
            pgrx::notice!(
                "effective_io_concurrency is above io_max_concurrency, and PostgreSQL does not time how long \
                 a process waits to start one more read: options => '{{\"exact\": true}}' counts all waits"
            );
        }
        if let Some(evictions) = self.evictions() {
            pgrx::notice!(
                "caches had the query's blocks: to see it wait for the disk, first run SELECT FROM \
                 {evictions}; that evicts these relations from the caches for all sessions"
            );
        }
        let waits = matches!(self.query.verdict(), Verdict::Disk | Verdict::Partly);
        if waits && server::may_execute("io_probe_sessions") {
            pgrx::notice!("io_probe_sessions() shows which sessions use the disk now");
        }
    }

    /// Calls that evict what it read, where that came from caches, is too much to be a trifle, and is evicted
    /// by them.
    fn evictions(&self) -> Option<String> {
        let bytes = self.rows.iter().map(evictable_blocks).sum::<u64>() * u64::from(pg_sys::BLCKSZ);
        let fetched = self.query.sum.device_bytes?;
        let is_cached = self.query.verdict() == Verdict::NotDisk && fetched <= bytes / 10;
        if !is_cached || bytes < A_TRIFLE || !server::may_execute(Probe::Evict.function()) {
            return None;
        }
        let readers = self.rows.iter().filter(|row| evictable_blocks(row) > 0);
        let read = readers.flat_map(|row| [row.relid, row.indexid]).flatten();
        let relations: BTreeSet<u32> =
            read.map(|relation| relation.0).filter(|oid| *oid >= pg_sys::FirstNormalObjectId).collect();
        if relations.is_empty() || relations.len() > MOST_EVICTIONS {
            return None;
        }
        let names = relations.into_iter().map(|oid| qualified_name(pg_sys::Oid::from(oid)));
        // Each has an alias: the name of the function may stand for one of them only.
        let calls = names.enumerate().map(|(number, name)| {
            Some(format!("io_probe_evict({}) AS r{number}", spi::quote_literal(name?)))
        });
        Some(calls.collect::<Option<Vec<String>>>()?.join(", "))
    }

    fn into_rows(mut self) -> Vec<ExplainRow> {
        let sums = self.sums();
        self.rows.push(sums);
        self.rows
    }

    /// The row of the sums.
    fn sums(&self) -> ExplainRow {
        let rows = self.rows.iter();
        let QueryReads { sum, total_ms, .. } = &self.query;
        let verdict = self.query.verdict().name();
        let row = ExplainRow {
            node_type: verdict.into(),
            node: match self.query.waited_ms {
                Some(waited) if self.query.verdict() != Verdict::Unknown => {
                    format!("= {verdict} ({} ms)", served::count(waited))
                }
                _ => format!("= {verdict}"),
            }
            .into(),
            shared_blks_hit: rows.clone().map(|row| row.shared_blks_hit).sum(),
            shared_blks_read: rows.clone().map(|row| row.shared_blks_read).sum(),
            local_blks_hit: rows.clone().map(|row| row.local_blks_hit).sum(),
            local_blks_read: rows.clone().map(|row| row.local_blks_read).sum(),
            temp_blks_read: rows.clone().map(|row| row.temp_blks_read).sum(),
            temp_blks_written: rows.map(|row| row.temp_blks_written).sum(),
            io_ms: sum.io_ms.map(figure),
            temp_io_ms: sum.temp_ms.map(figure),
            self_ms: Some(*total_ms),
            total_ms: Some(*total_ms),
            ..ExplainRow::default()
        };
        ExplainRow { os_mib: self.query.os_bytes.map(mib), ..with_tiers(row, sum) }
    }

    /// The plan as text, with what each node read.
    fn into_lines(self) -> Vec<String> {
        let read: Vec<Option<String>> =
            self.rows.iter().zip(&self.reads).map(|(row, reads)| line(row, reads)).collect();
        let text = self.text.unwrap_or_default();
        let lines = served::with_reads(&text, &read);
        let mut lines = lines.unwrap_or_else(|| text.lines().map(str::to_owned).collect());
        lines.push(self.query.to_string());
        lines
    }
}

/// Gives a node the blocks and the waiting that were counted of it.
fn put_counts(row: &mut ExplainRow, counts: &NodeCounts) {
    let ms = |counter| Some(counts.ns(counter) as f64 / 1e6);
    row.shared_blks_hit = Some(counts.get(Counter::SharedHit));
    row.shared_blks_read = Some(counts.get(Counter::SharedRead));
    row.local_blks_hit = Some(counts.get(Counter::LocalHit));
    row.local_blks_read = Some(counts.get(Counter::LocalRead));
    row.temp_blks_read = Some(counts.get(Counter::TempRead));
    row.temp_blks_written = Some(counts.get(Counter::TempWritten));
    row.io_ms = ms(Counter::IoTime);
    row.local_io_ms = ms(Counter::LocalIoTime).filter(|_| TELLS_LOCAL_TIME);
    row.temp_io_ms = ms(Counter::TempIoTime);
}

/// What the node of this index read.
fn reads(node: &Node, index: usize, counted: &Counted) -> NodeReads {
    let bytes =
        |blocks: [Option<u64>; 2]| blocks.into_iter().flatten().sum::<u64>() * u64::from(pg_sys::BLCKSZ);
    let own = &counted.nodes[index];
    NodeReads {
        read_bytes: bytes([node.shared_blks_read, node.local_blks_read]),
        device_bytes: counted.knows_device.then(|| own.counts.get(Counter::Device)),
        temp_bytes: bytes([node.temp_blks_read, node.temp_blks_written]),
        io_ms: node.io_ms,
        slept_ms: own.counts.get(Counter::SleptTime) as f64 / 1e6,
        slept_cached_bytes: own.counts.get(Counter::SleptCached),
        temp_ms: node.temp_io_ms,
        processes: node.processes.unwrap_or(1),
        by_workers: own.by_workers,
    }
}

fn mib(bytes: u64) -> f64 {
    figure(bytes as f64 / f64::from(1 << 20))
}

fn with_tiers(row: ExplainRow, reads: &NodeReads) -> ExplainRow {
    let device_share = reads.device_bytes.map(|device| {
        if reads.read_bytes == 0 { 0.0 } else { (device as f64 / reads.read_bytes as f64).min(1.0) }
    });
    ExplainRow {
        os_mib: reads.os_bytes().map(mib),
        device_mib: reads.device_bytes.map(mib),
        temp_mib: Some(mib(reads.temp_bytes)),
        // Processes share the device: what one of them takes says little of several.
        expected_ms: device_share
            .filter(|_| reads.processes == 1)
            .and_then(|share| Some(figure(row.os_ms? + (row.device_ms? - row.os_ms?) * share))),
        ..row
    }
}

/// What a node read, as a line; None if it read nothing.
fn line(row: &ExplainRow, reads: &NodeReads) -> Option<String> {
    let device = reads.device_bytes?;
    let read = reads.read_bytes.max(device);
    let share = 100.0 * device as f64 / read.max(1) as f64;
    let tiers = reads.os_bytes().filter(|_| read > 0).map(|cached| {
        format!("OS cache {}, device {} ({share:.0} %)", served::mib(cached), served::mib(device))
    });
    let parts = [
        tiers,
        (reads.temp_bytes > 0).then(|| format!("temporary files {}", served::mib(reads.temp_bytes))),
        row.io_ms.filter(|_| read > 0).map(|ms| format!("waited {} ms for reads", served::count(ms))),
        row.expected_ms.filter(|_| read > 0).map(|ms| format!("expected: {} ms", served::count(ms))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}
