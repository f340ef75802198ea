//! The planner in the loop: queries over the tables of a tablespace, and what the planner picks for them.

use std::time::{Duration, Instant};

use io_probe_core::advise::page_costs::choose::{Asked, Cell, Regrets};
use io_probe_core::advise::page_costs::model::{Index, PlannedScan, Table, Times};
use io_probe_core::advise::page_costs::visits::{IndexVisits, index_visits};
use pgrx::pg_sys;

use crate::call::Call;
use crate::pg::backend::interrupts;
use crate::pg::catalog::corrections::{self, Kept};
use crate::pg::catalog::indexes::{self, IndexFacts, IndexName};
use crate::pg::catalog::planner::{self, ParallelPlans, Picked, Premise, TableQuery};

/// Shares of a table's rows that queries ask for.
const SELECTIVITIES: [f64; 10] = [0.0003, 0.0007, 0.0016, 0.0038, 0.0088, 0.02, 0.05, 0.11, 0.26, 0.6];

/// Types of which a part of a difference can be taken.
const NUMBERS: [&str; 6] = ["smallint", "integer", "bigint", "numeric", "real", "double precision"];

/// Most indexes of a tablespace, and of a table, whose columns are asked for.
const MOST_INDEXES: u32 = 12;
const MOST_OF_TABLE: u32 = 4;

/// All of it takes so long at most.
const LONGEST: Duration = Duration::from_secs(15);

/// An index by whose ranges the planner was asked, and where its rows lie.
pub(super) struct Probed {
    pub(super) facts: IndexFacts,
    /// This index, and others of the same rows in about the same order: the planner may pick either.
    pub(super) alike: Vec<IndexName>,
    pub(super) visits: IndexVisits,
    /// The correlations that are kept of the table's indexes, and are not stale.
    pub(super) kept: Vec<Kept>,
}

impl Probed {
    /// None if it can't be looked at, or where its rows lie can't be told.
    fn of(facts: IndexFacts) -> Option<Self> {
        let table = Table { pages: facts.pages, rows: facts.rows };
        let visits = |index: u32| {
            let visits = index_visits(&indexes::samples(facts.table, index)?, &table, &[]);
            visits.filter(|visits| visits.fits)
        };
        let own = visits(facts.index.oid)?;
        // Equal values of the first column need not lie alike in all that begin with it.
        let is_alike = |other: &&IndexName| {
            visits(other.oid).is_some_and(|visits| visits.locality.is_like(&own.locality))
        };
        let others = facts.others.iter().filter(is_alike);
        let alike = [&facts.index].into_iter().chain(others).cloned().collect();
        let kept = corrections::not_stale(pg_sys::Oid::from(facts.table));
        Some(Self { alike, visits: own, kept, facts })
    }

    /// A query of it and what the planner picked, if all of that are scans which the model knows. A plan of
    /// another kind says nothing.
    pub(super) fn asked(&self, query: &IndexQuery, picks: &[Picked]) -> Option<Asked> {
        let IndexFacts { pages, rows, index_pages, .. } = self.facts;
        Some(Asked {
            table: Table { pages, rows },
            index: Index { pages: index_pages, locality: self.visits.locality },
            rows: picks.first()?.rows,
            covered: query.covered,
            picks: picks.iter().map(|picked| self.scan(picked)).collect::<Option<_>>()?,
        })
    }

    /// The scan that a plan is, if it is one of those that the model knows.
    fn scan(&self, picked: &Picked) -> Option<PlannedScan> {
        let by_index = self.alike.iter().any(|index| picked.index.as_ref() == Some(&index.name));
        match picked.node_type.as_str() {
            "Seq Scan" => Some(PlannedScan::Sequential),
            "Index Scan" if by_index => Some(PlannedScan::Index),
            "Bitmap Heap Scan" if by_index => Some(PlannedScan::Bitmap),
            "Index Only Scan" if by_index => Some(PlannedScan::IndexOnly),
            _ => None,
        }
    }
}

/// A query by the index that has this place, and whether that holds all that it asks for.
pub(super) struct IndexQuery {
    pub(super) place: usize,
    pub(super) covered: bool,
    pub(super) query: TableQuery,
}

/// What came of asking.
pub(super) struct Answers {
    pub(super) regrets: Regrets,
    pub(super) tables: usize,
    /// The indexes that were asked about.
    pub(super) indexes: Vec<Probed>,
    /// How long it took.
    pub(super) elapsed: Duration,
    pub(super) queries: Vec<IndexQuery>,
    /// What other page costs do to JIT and to parallel plans, if that is known.
    pub(super) thresholds: Option<Thresholds>,
}

/// Queries whose plans cross a threshold, at the page costs in force and at others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Thresholds {
    pub(super) queries: usize,
    /// Over `jit_above_cost`, if this session compiles.
    pub(super) jit: [usize; 2],
    /// With workers.
    pub(super) parallel: [usize; 2],
}

impl Answers {
    /// Looks at the thresholds, if page costs are to change.
    pub(super) fn look_at_thresholds(&mut self, call: &Call, in_force: Cell, chosen: Cell) {
        if in_force != chosen {
            self.thresholds = self.thresholds_at(call, in_force, chosen);
        }
    }

    /// None if there was no time, or no query could be planned.
    fn thresholds_at(&self, call: &Call, in_force: Cell, chosen: Cell) -> Option<Thresholds> {
        let premises = [in_force, chosen].map(premise);
        let queries: Vec<TableQuery> = self.queries.iter().map(|query| query.query.clone()).collect();
        let picks = planner::picks(&queries, &premises, ParallelPlans::AsSet, &mut goes_on(call))?;
        let picks: Vec<Vec<Picked>> = picks.into_iter().flatten().collect();
        let jit_above = planner::jit_above_cost().unwrap_or(f64::INFINITY);
        let count = |holds: &dyn Fn(&Picked) -> bool| {
            [0, 1].map(|cell| picks.iter().filter(|picks| holds(&picks[cell])).count())
        };
        let jit = count(&|picked| picked.cost > jit_above);
        let parallel = count(&|picked| picked.is_parallel);
        (!picks.is_empty()).then_some(Thresholds { queries: picks.len(), jit, parallel })
    }
}

pub(super) fn premise(cell: Cell) -> Premise {
    Premise { costs: (cell.sequential, cell.random), correlation: None }
}

/// May the planner be asked on?
pub(super) fn goes_on(call: &Call) -> impl Fn() -> bool {
    let started = Instant::now();
    move || {
        interrupts::check();
        started.elapsed() < LONGEST && !call.time_left().is_zero()
    }
}

/// Asks about the tables. Err says why nothing can be said.
pub(super) fn ask(
    call: &Call,
    tables: &[pg_sys::Oid],
    cells: &[Cell],
    concurrencies: &[u32],
    times: &Times,
) -> Result<Answers, String> {
    let started = Instant::now();
    let goes_on = goes_on(call);
    let known = indexes::of_tables(tables, MOST_OF_TABLE, MOST_INDEXES);
    let why_none = if known.is_empty() {
        "no table there has an index and statistics by which the planner could be asked"
    } else {
        "of no index there it can be told where its rows lie: io_probe_correlation says why"
    };
    let probed: Vec<Probed> = known.into_iter().take_while(|_| goes_on()).filter_map(Probed::of).collect();
    if probed.is_empty() {
        return Err(why_none.to_owned());
    }
    let queries = queries(&probed);
    let premises: Vec<Premise> = cells.iter().copied().map(premise).collect();
    let planned: Vec<TableQuery> = queries.iter().map(|query| query.query.clone()).collect();
    let picks =
        planner::picks(&planned, &premises, ParallelPlans::None, &mut { goes_on }).ok_or_else(|| {
            "every tablespace has page costs of its own, which the planner would take in their place"
                .to_owned()
        })?;
    if picks.iter().all(Option::is_none) {
        return Err(if picks.is_empty() {
            "there was no time left for it".to_owned()
        } else {
            "none of the queries could be planned: somebody holds a lock, indexes or statistics call functions, or planning \
             raised an ERROR"
                .to_owned()
        });
    }
    let asked: Vec<Asked> = queries
        .iter()
        .zip(&picks)
        .filter_map(|(query, picks)| probed[query.place].asked(query, picks.as_ref()?))
        .collect();
    let regrets = Regrets::of(&asked, cells, concurrencies, times).ok_or_else(|| {
        "the planner picked plans that are not scans by one index or of the whole table".to_owned()
    })?;
    let mut of_tables: Vec<u32> = probed.iter().map(|probed| probed.facts.table).collect();
    of_tables.dedup();
    Ok(Answers {
        regrets,
        tables: of_tables.len(),
        indexes: probed,
        elapsed: started.elapsed(),
        queries,
        thresholds: None,
    })
}

/// Queries by each index, in an order of which each beginning has some of all.
fn queries(probed: &[Probed]) -> Vec<IndexQuery> {
    const STEP: usize = 7;
    let of_index = |(place, probed): (usize, &Probed)| {
        let table = pg_sys::Oid::from(probed.facts.table);
        let of_range = move |condition: String| {
            // A tid is in the table only; nothing at all is in the index, too.
            [("SELECT ctid", false), ("SELECT", true)].map(|(what, covered)| IndexQuery {
                place,
                covered,
                query: TableQuery { table, what, condition: condition.clone() },
            })
        };
        ranges(&probed.facts).into_iter().flat_map(of_range)
    };
    let mut all: Vec<(usize, IndexQuery)> =
        probed.iter().enumerate().flat_map(of_index).enumerate().collect();
    all.sort_by_key(|(number, _)| number % STEP);
    all.into_iter().map(|(_, query)| query).collect()
}

/// Conditions that so many of the rows meet.
fn ranges(facts: &IndexFacts) -> Vec<String> {
    SELECTIVITIES.iter().enumerate().filter_map(|(number, share)| range(facts, *share, number)).collect()
}

fn range(facts: &IndexFacts, share: f64, number: usize) -> Option<String> {
    let IndexFacts { column, column_type, bounds, covered, category, .. } = facts;
    let parts = (bounds.len() - 1) as f64;
    // Parts of the column that hold so many rows.
    let wanted = share / covered.max(0.01) * parts;
    if wanted > parts {
        return None;
    }
    let literal = |place: usize| format!("{}::{column_type}", pgrx::spi::quote_literal(&bounds[place]));
    let whole = wanted.round() as usize;
    // Not always from the same place on.
    let first = (number * 37) % (bounds.len() - whole.max(1));
    let low = literal(first);
    let high = if whole >= 1 {
        literal(first + whole)
    } else {
        let next = literal(first + 1);
        match category.as_str() {
            "N" if NUMBERS.iter().any(|number| column_type.starts_with(number)) => {
                format!("({low} + (({next} - {low}) * {wanted:.4}))::{column_type}")
            }
            "D" if column_type == "date" => format!("({low} + (({next} - {low}) * {wanted:.4})::integer)"),
            "D" if column_type.starts_with("timestamp") => {
                format!("({low} + ({next} - {low}) * {wanted:.4})")
            }
            _ => return None,
        }
    };
    Some(format!("{column} >= {low} AND {column} <= {high}"))
}
