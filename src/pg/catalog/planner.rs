//! Asking the planner: which plan it picks for a query under other page costs. The queries are planned, not
//! executed.
//!
//! A tablespace's own page costs hide the session's. So, while it is asked, the planner is told that tables
//! and indexes lie in a tablespace that has none.
//!
//! Planning evaluates what is constant in the expressions of indexes and statistics. Where these call
//! functions that are not the server's, the planner is not asked.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::CStr;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use io_probe_advise::plan;
use pgrx::{pg_guard, pg_sys, spi::Spi};

use crate::pg::backend::encoding::query_of;
use crate::pg::backend::nodes::elements;
use crate::pg::backend::subtransaction::{NotDone, read_only_if_possible};
use crate::pg::backend::{OnDrop, interrupts, names};
use crate::pg::catalog::corrections;
use crate::pg::catalog::explain;
use crate::pg::compat;
use crate::pg::settings;
use crate::pg::storage::relation::Relation;

#[derive(Debug, Clone)]
pub(crate) struct TableQuery {
    pub(crate) table: pg_sys::Oid,
    pub(crate) what: &'static str,
    pub(crate) condition: String,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Picked {
    /// Type of the top node, as EXPLAIN names it.
    pub(crate) node_type: String,
    /// The index that it or the node below it uses.
    pub(crate) index: Option<String>,
    /// Rows that it expects.
    pub(crate) rows: f64,
}

/// Longest time that a table is locked before the last plan begins: others can't VACUUM it meanwhile.
const LONGEST_HOLD: Duration = Duration::from_millis(50);

/// How long planning a query may take: a table with slow expressions takes no time from others.
pub(in crate::pg) const LONGEST_PLANNING: Duration = Duration::from_millis(250);

/// Why a slower table is left out.
pub(crate) const SLOW: &str = "planning a query of this table takes more than 250 ms";

/// What the planner is told to assume.
#[derive(Debug, Clone)]
pub(crate) struct Premise {
    /// `seq_page_cost` and `random_page_cost`.
    pub(crate) costs: (f64, f64),
    /// The correlation of some indexes, if that is not to be what is stored or what their statistics say.
    pub(crate) correlation: Option<(Vec<pg_sys::Oid>, f64)>,
}

/// How long the planner is asked, and about which tables no more.
pub(crate) struct Patience {
    until: Instant,
    slow: RefCell<BTreeSet<u32>>,
}

impl Patience {
    pub(crate) fn of(most: Duration) -> Self {
        Self { until: Instant::now() + most, slow: RefCell::default() }
    }

    pub(crate) fn renew(&mut self, most: Duration) {
        self.until = Instant::now() + most;
    }

    pub(crate) fn left(&self) -> Duration {
        interrupts::check();
        self.until.saturating_duration_since(Instant::now())
    }

    pub(crate) fn is_over(&self) -> bool {
        self.left().is_zero()
    }

    /// Does planning a query of this table take longer than [`LONGEST_PLANNING`]?
    pub(crate) fn is_slow(&self, table: pg_sys::Oid) -> bool {
        self.slow.borrow().contains(&table.to_u32())
    }

    /// Does `work`, which plans queries of this table; None if it can't be had, or takes too long.
    fn try_for<T>(&self, table: pg_sys::Oid, work: impl FnOnce() -> Option<T>) -> Option<T> {
        let most = self.left().min(LONGEST_PLANNING);
        let done = read_only_if_possible(most, AssertUnwindSafe(work));
        if matches!(done, Err(NotDone::Slow)) && most == LONGEST_PLANNING {
            self.slow.borrow_mut().insert(table.to_u32());
        }
        done.ok().flatten()
    }
}

/// The plan of each query under each premise, as far as patience goes. None for a query that can't be
/// planned, or that there was no time for; and for all if each tablespace has page costs of its own.
pub(crate) fn picks(
    queries: &[TableQuery],
    premises: &[Premise],
    patience: &Patience,
) -> Option<Vec<Option<Vec<Picked>>>> {
    let plain = plain_tablespace()?;
    let mut picks = Vec::new();
    for query in queries {
        let picked = picked(query, premises, plain, patience);
        if picked.is_none() && patience.is_over() {
            break;
        }
        picks.push(picked);
    }
    picks.resize(queries.len(), None);
    Some(picks)
}

fn picked(
    query: &TableQuery,
    premises: &[Premise],
    plain: pg_sys::Oid,
    patience: &Patience,
) -> Option<Vec<Picked>> {
    let mut picked = Vec::new();
    while picked.len() < premises.len() {
        if patience.is_slow(query.table) || patience.is_over() {
            return None;
        }
        let left = &premises[picked.len()..];
        picked.extend(patience.try_for(query.table, || part(query, left, plain))?);
    }
    Some(picked)
}

/// The plans under the first of these premises, and under as many more as [`LONGEST_HOLD`] allows. None if
/// one can't be had.
fn part(query: &TableQuery, premises: &[Premise], plain: pg_sys::Oid) -> Option<Vec<Picked>> {
    let table = Relation::open_to_plan(query.table)?;
    let held = Instant::now();
    let TableQuery { what, condition, .. } = query;
    let (what, condition) = (format!("EXPLAIN (FORMAT JSON) {what}"), format!("WHERE {condition}"));
    let statement = query_of(&what, table.qualified_name()?, &condition);
    table.as_owner(|| {
        let _elsewhere = elsewhere(plain);
        let places = (0..premises.len()).take_while(|place| *place == 0 || held.elapsed() < LONGEST_HOLD);
        Spi::connect(|_| places.map(|place| pick(&statement, query.table, &premises[place])).collect())
    })
}

fn pick(statement: &CStr, table: pg_sys::Oid, premise: &Premise) -> Option<Picked> {
    interrupts::check();
    let told = premise.correlation.as_ref();
    let _telling = told.map(|(indexes, correlation)| corrections::tell(indexes.clone(), *correlation));
    let (sequential, random) = (premise.costs.0.to_string(), premise.costs.1.to_string());
    let costs = [
        (c"seq_page_cost", sequential.as_str()),
        (c"random_page_cost", &random),
        (c"constraint_exclusion", "off"),
        (c"max_parallel_workers_per_gather", "0"),
    ];
    let values = [&costs[..], &settings::PLAIN].concat();
    let printed = settings::with(&values, || explain::printed(&names::run(statement, &[], Some(table))));
    let nodes = plan::nodes(&printed).ok()?;
    let top = nodes.first()?;
    Some(Picked {
        node_type: top.node_type.to_string(),
        index: nodes.iter().take(2).find_map(|node| node.index.clone()),
        rows: top.plan_rows?,
    })
}

/// Can queries of this table be planned, and soon? Err says why not.
pub(crate) fn check_plannable(table: pg_sys::Oid) -> Result<(), &'static str> {
    match read_only_if_possible(LONGEST_PLANNING, move || scan_of_all(table)) {
        Ok(Some(_)) => Ok(()),
        Err(NotDone::Slow) => Err(SLOW),
        _ => {
            Err("its queries could not be planned, for one of these reasons: another session holds a lock; \
             expressions of an index or of statistics call a user-defined function or compute constants; \
             planning raised an ERROR")
        }
    }
}

/// How a query of all rows of this table scans it; None if the table can't be had.
fn scan_of_all(table: pg_sys::Oid) -> Option<String> {
    let open = Relation::open_to_plan(table)?;
    let explain = query_of("EXPLAIN (FORMAT JSON) SELECT", open.qualified_name()?, "");
    open.as_owner(|| Spi::connect(|_| leaf_node(&explain, table)))
}

/// The type of the deepest node of the plan that this EXPLAIN gives, of a query of this table. For a caller
/// that is connected to SPI.
pub(in crate::pg) fn leaf_node(explain: &CStr, table: pg_sys::Oid) -> Option<String> {
    let nodes = plan::nodes(&explain::printed(&names::run(explain, &[], Some(table)))).ok()?;
    nodes.into_iter().next_back().map(|node| node.row.node_type.into_owned())
}

/// Tablespace the planner is made to see; 0: no override.
static SAID: AtomicU32 = AtomicU32::new(0);

/// Until the result is dropped, the planner finds tables and indexes in a tablespace without page costs of
/// its own. May be nested.
fn elsewhere(tablespace: pg_sys::Oid) -> OnDrop<impl FnMut()> {
    let before = SAID.swap(tablespace.to_u32(), Ordering::Relaxed);
    OnDrop(move || SAID.store(before, Ordering::Relaxed))
}

/// A tablespace whose page costs are the session's.
fn plain_tablespace() -> Option<pg_sys::Oid> {
    let query = "SELECT oid::int8 FROM pg_tablespace \
         WHERE spcoptions IS NULL OR NOT EXISTS (SELECT FROM unnest(spcoptions) AS option \
             WHERE left(option, 20) ~ '^(seq|random)_page_cost=') ORDER BY oid LIMIT 1";
    names::rows(query, &[]).into_iter().next()
}

/// From now on the planner takes the correlations that are stored; and while it is asked, those that it is
/// told. To be called once, when the library is loaded.
pub(crate) fn watch() {
    corrections::watch();
    compat::watch_relations(look_at_relation);
}

/// # Safety
/// `info` must be what the planner knows of this relation.
#[pg_guard]
unsafe extern "C-unwind" fn look_at_relation(relation: pg_sys::Oid, info: *mut pg_sys::RelOptInfo) {
    let tablespace = SAID.load(Ordering::Relaxed);
    if tablespace == 0 && corrections::is_uncorrected(relation) {
        return;
    }
    // SAFETY: the caller vouches for it; the list, which does not change meanwhile, holds IndexOptInfos.
    unsafe {
        let list = elements((*info).indexlist);
        let indexes = list.iter().map(|index| index.ptr_value.cast::<pg_sys::IndexOptInfo>());
        if !list.is_empty() {
            corrections::apply(relation, indexes.clone());
        }
        if tablespace == 0 {
            return;
        }
        let tablespace = pg_sys::Oid::from(tablespace);
        (*info).reltablespace = tablespace;
        indexes.for_each(|index| (*index).reltablespace = tablespace);
    }
}
