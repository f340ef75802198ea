//! The planner in the loop: queries over the tables of a tablespace, and what the planner picks for them.

use std::time::{Duration, Instant};

use io_probe_core::advise::page_costs::choose::{Asked, Cell, Regrets, Settings};
use io_probe_core::advise::page_costs::correlation::{CORRELATIONS, CorrelationChoice, choose_correlation};
use io_probe_core::advise::page_costs::model::{Index, PlannedScan, Table, Times};
use io_probe_core::advise::page_costs::visits::{IndexVisits, index_visits};
use pgrx::pg_sys;

use crate::call::Call;
use crate::gucs;
use crate::pg::backend::interrupts;
use crate::pg::catalog::corrections::{self, Kept};
use crate::pg::catalog::indexes::{self, IndexFacts, IndexName};
use crate::pg::catalog::planner::{self, Picked, Premise, TableQuery, Workers};

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
pub(in crate::api::recommend) struct Probed {
    pub(in crate::api::recommend) facts: IndexFacts,
    pub(super) visits: IndexVisits,
    /// The correlations that are kept of the table's indexes, and are not stale.
    pub(super) kept: Vec<Kept>,
}

impl Probed {
    fn asked(&self, rows: f64, covered: bool, picks: Vec<PlannedScan>) -> Asked {
        let IndexFacts { pages, rows: all, index_pages, .. } = self.facts;
        let index = Index { pages: index_pages, locality: self.visits.locality };
        Asked { table: Table { pages, rows: all }, index, rows, covered, picks }
    }
}

/// A query by the index that has this place, and whether that holds all that it asks for.
struct IndexQuery {
    place: usize,
    covered: bool,
    query: TableQuery,
}

/// What came of asking.
pub(super) struct Answers {
    pub(super) regrets: Regrets,
    pub(super) tables: usize,
    /// The indexes that were asked about.
    pub(super) indexes: Vec<Probed>,
    /// How long it took.
    pub(super) elapsed: Duration,
    queries: Vec<IndexQuery>,
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
        let picks = planner::picks(&queries, &premises, Workers::AsSet, &mut goes_on(call))?;
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

impl Answers {
    /// What the planner should take each index's correlation for, where these settings are in force; by the
    /// place of the index. Without what could not be asked for lack of time.
    pub(super) fn correlations(
        &self,
        call: &Call,
        settings: &Settings,
        times: &Times,
    ) -> Vec<(usize, CorrelationChoice)> {
        let goes_on = goes_on(call);
        let of_index = |(place, probed): (usize, &Probed)| {
            let choice = self.correlation(place, probed, settings, times, &mut || goes_on())?;
            Some((place, choice))
        };
        self.indexes.iter().enumerate().filter_map(of_index).collect()
    }

    fn correlation(
        &self,
        place: usize,
        probed: &Probed,
        settings: &Settings,
        times: &Times,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Option<CorrelationChoice> {
        let alike: Vec<_> = probed.facts.alike.iter().map(|index| pg_sys::Oid::from(index.index)).collect();
        let in_force = probed.correlation();
        let others = CORRELATIONS.into_iter().filter(|correlation| *correlation != in_force);
        let correlations: Vec<f64> = [in_force].into_iter().chain(others.clone()).collect();
        let told = |correlation| Premise {
            correlation: Some((alike.clone(), correlation)),
            ..premise(settings.cell)
        };
        let premises: Vec<Premise> = [premise(settings.cell)].into_iter().chain(others.map(told)).collect();
        // What the index holds all of costs the same whatever the correlation.
        let is_mine = |query: &&IndexQuery| query.place == place && !query.covered;
        let mine: Vec<&IndexQuery> = self.queries.iter().filter(is_mine).collect();
        let queries: Vec<TableQuery> = mine.iter().map(|query| query.query.clone()).collect();
        let picks = planner::picks(&queries, &premises, Workers::None, goes_on)?;
        let asked: Vec<Asked> =
            mine.iter().zip(picks).filter_map(|(query, picks)| asked(query, probed, &picks?)).collect();
        choose_correlation(&asked, &probed.visits.each_moved(), &correlations, settings.concurrency, times)
    }
}

impl Probed {
    /// The correlation that the planner takes now.
    pub(in crate::api::recommend) fn correlation(&self) -> f64 {
        // Of several columns it takes less.
        let factor = if self.facts.key_columns > 1 { 0.75 } else { 1.0 };
        let analyzed = self.facts.correlation.map_or(0.0, |correlation| correlation.abs() * factor);
        self.in_force().unwrap_or(analyzed)
    }

    /// The one that is kept of it, where the planner takes it.
    pub(in crate::api::recommend) fn in_force(&self) -> Option<f64> {
        self.kept(self.facts.index).filter(|_| gucs::correct_correlation())
    }

    /// The one that is kept of an index of the table.
    pub(in crate::api::recommend) fn kept(&self, index: u32) -> Option<f64> {
        self.kept.iter().find(|kept| kept.index.to_u32() == index).map(|kept| kept.correlation)
    }
}

fn premise(cell: Cell) -> Premise {
    Premise::of_costs((cell.sequential, cell.random))
}

/// A query and what the planner picked, if all of that are scans which the model knows.
fn asked(query: &IndexQuery, probed: &Probed, picks: &[Picked]) -> Option<Asked> {
    let rows = picks.first()?.rows;
    // A plan of another kind says nothing.
    let picks = picks.iter().map(|picked| scan(picked, &probed.facts)).collect::<Option<_>>()?;
    Some(probed.asked(rows, query.covered, picks))
}

/// May the planner be asked on?
fn goes_on(call: &Call) -> impl Fn() -> bool {
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
    let probed = probed(tables, &goes_on);
    if probed.is_empty() {
        return Err(
            "no table there has an index and statistics by which the planner could be asked".to_owned()
        );
    }
    let queries = queries(&probed);
    let premises: Vec<Premise> = cells.iter().copied().map(premise).collect();
    let planned: Vec<TableQuery> = queries.iter().map(|query| query.query.clone()).collect();
    let picks = planner::picks(&planned, &premises, Workers::None, &mut { goes_on }).ok_or_else(|| {
        "every tablespace has page costs of its own, which the planner would take in their place".to_owned()
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
        .filter_map(|(query, picks)| asked(query, &probed[query.place], picks.as_ref()?))
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

/// The indexes of the tables whose rows can be found.
fn probed(tables: &[pg_sys::Oid], goes_on: impl Fn() -> bool) -> Vec<Probed> {
    indexes::of_tables(tables, MOST_OF_TABLE, MOST_INDEXES)
        .into_iter()
        .take_while(|_| goes_on())
        .filter_map(|facts| {
            let table = Table { pages: facts.pages, rows: facts.rows };
            let visits = |index: u32| index_visits(&indexes::samples(facts.table, index)?, &table, &[]);
            let of_index = visits(facts.index)?;
            // Equal values of the first column need not lie alike in all that begin with it.
            let is_alike = |other: &IndexName| {
                other.index == facts.index
                    || visits(other.index).is_some_and(|of| of.locality.is_like(&of_index.locality))
            };
            let alike = facts.alike.iter().filter(|other| is_alike(other)).cloned().collect();
            let kept = corrections::not_stale(pg_sys::Oid::from(facts.table));
            Some(Probed { visits: of_index, kept, facts: IndexFacts { alike, ..facts.clone() } })
        })
        .collect()
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

/// The scan that a plan is, if it is one of those that the model knows.
fn scan(picked: &Picked, facts: &IndexFacts) -> Option<PlannedScan> {
    // One that begins with the same column finds the same rows.
    let by_index = facts.alike.iter().any(|index| picked.index.as_ref() == Some(&index.name));
    match picked.node_type.as_str() {
        "Seq Scan" => Some(PlannedScan::Sequential),
        "Index Scan" if by_index => Some(PlannedScan::Index),
        "Bitmap Heap Scan" if by_index => Some(PlannedScan::Bitmap),
        "Index Only Scan" if by_index => Some(PlannedScan::IndexOnly),
        _ => None,
    }
}
