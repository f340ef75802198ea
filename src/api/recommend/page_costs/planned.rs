//! The planner in the loop: queries over the tables of a tablespace, and what the planner picks for them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use io_probe_advise::Plateau;
use io_probe_advise::page_costs::choose::{Asked, CostPair, Regret, Regrets, Settings};
use io_probe_advise::page_costs::concurrency::{QueryConcurrency, choose_for_queries, least_by_picks};
use io_probe_advise::page_costs::correlation::{CORRELATIONS, IndexPicks};
use io_probe_advise::page_costs::joint::{Joint, Planner, joint};
use io_probe_advise::page_costs::model::{Index, PlannedScan, Table, Times};
use io_probe_advise::page_costs::visits::{IndexVisits, index_visits};
use io_probe_advise::page_costs::worth::{fitting, most_losing};
use pgrx::pg_sys;

use crate::call::Call;
use crate::gucs;
use crate::pg::catalog::corrections::{self, Stored};
use crate::pg::catalog::indexes::{self, IndexFacts, IndexName, KnownIndexes};
use crate::pg::catalog::planner::{self, Patience, Picked, Premise, TableQuery};

/// Shares of a table's rows that queries ask for.
const SELECTIVITIES: [f64; 10] = [0.0003, 0.0007, 0.0016, 0.0038, 0.0088, 0.02, 0.05, 0.11, 0.26, 0.6];

/// Shares of ranges that a correlation may not harm either: between the last two of the others the planner
/// may go over to a scan of the whole table.
const GUARDED: [f64; 2] = [0.35, 0.45];

/// Types of which a part of a difference can be taken.
const NUMBERS: [&str; 6] = ["smallint", "integer", "bigint", "numeric", "real", "double precision"];

/// How often the planner is asked for each plan whose time tells how long planning takes: opening the table
/// counts less then.
const REPEATS: usize = 4;

const NO_TIME: &str = "there was no time left to ask the planner";

/// Longest time of a series of questions to the planner.
const LONGEST: Duration = Duration::from_secs(15);

/// Indexes by whose ranges the planner is not asked, and why.
#[derive(Default)]
pub(super) struct Unasked {
    /// There was no time for them.
    pub(super) not_looked_at: Vec<IndexFacts>,
    /// Where their rows lie could not be told.
    pub(super) unknown: Vec<IndexFacts>,
}

/// An index by whose ranges the planner was asked, and where its rows lie.
pub(super) struct Probed {
    pub(super) facts: IndexFacts,
    /// This index, and others of the same rows in about the same order: the planner may pick either.
    pub(super) alike: Vec<IndexName>,
    pub(super) visits: IndexVisits,
    /// The correlations that are stored for the table's indexes, and are not stale.
    pub(super) stored: Vec<Stored>,
}

impl Probed {
    /// An index whose rows lie so.
    fn of(facts: IndexFacts, own: IndexVisits, patience: &Patience) -> Self {
        // Equal values of the first column need not lie alike in all that begin with it.
        let others = facts.others.iter().filter(|other| {
            visits(&facts, other.oid, patience).is_some_and(|visits| visits.locality.is_like(&own.locality))
        });
        let alike = [&facts.index].into_iter().chain(others).cloned().collect();
        let stored = corrections::not_stale(pg_sys::Oid::from(facts.table));
        Self { alike, visits: own, stored, facts }
    }

    /// A query of it and what the planner picked, if all of that are scans which the model knows. A plan of
    /// another kind says nothing.
    fn asked(&self, query: &IndexQuery, picks: &[Picked]) -> Option<Asked> {
        let IndexFacts { pages, rows, index_pages, .. } = self.facts;
        Some(Asked {
            table: Table { pages, rows },
            index: Index { pages: index_pages, locality: self.visits.locality },
            rows: picks.first()?.rows,
            covered: query.covered,
            picks: picks.iter().map(|picked| self.scan(picked)).collect::<Option<_>>()?,
        })
    }

    /// The page costs, and this correlation of the index and of all that are alike.
    fn corrected(&self, cell: CostPair, correlation: f64) -> Premise {
        let alike = self.alike.iter().map(|index| pg_sys::Oid::from(index.oid)).collect();
        Premise { correlation: Some((alike, correlation)), ..premise(cell) }
    }

    /// The correlation that the planner takes now.
    fn correlation(&self) -> f64 {
        self.in_force().unwrap_or_else(|| self.analyzed())
    }

    /// The correlation that the planner takes by what ANALYZE says.
    pub(super) fn analyzed(&self) -> f64 {
        // For an index of several columns it takes less.
        let factor = if self.facts.key_columns > 1 { 0.75 } else { 1.0 };
        self.facts.correlation.map_or(0.0, |correlation| correlation.abs() * factor)
    }

    /// The correlation that is stored for it, where this session's planner takes it.
    pub(super) fn in_force(&self) -> Option<f64> {
        self.stored(self.facts.index.oid).filter(|_| gucs::CORRECT_CORRELATION.get())
    }

    /// The correlation that is stored for an index of the table.
    pub(super) fn stored(&self, index: u32) -> Option<f64> {
        self.stored.iter().find(|stored| stored.index.to_u32() == index).map(|stored| stored.correlation)
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

/// Where the rows of an index of this table lie; None if that can't be told.
fn visits(table: &IndexFacts, index: u32, patience: &Patience) -> Option<IndexVisits> {
    let left = patience.left();
    let samples = if left.is_zero() { None } else { indexes::samples(table.table, index, left) };
    // The window matters to ranges only.
    let visits = index_visits(&samples?, &Table { pages: table.pages, rows: table.rows }, &[], 0.0);
    visits.filter(|visits| visits.fits)
}

/// A query by the index at `place`; it is `covered` if the index holds all that it asks for.
struct IndexQuery {
    place: usize,
    covered: bool,
    query: TableQuery,
}

/// The indexes that the planner is asked about, and the queries.
pub(super) struct Inquiry {
    pub(super) indexes: Vec<Probed>,
    queries: Vec<IndexQuery>,
}

/// What the planner's answers lead to.
pub(super) struct Answers {
    /// The regrets with the correlations in force.
    pub(super) regrets: Regrets,
    /// The settings and correlations that are advised. A correlation is None if it could not be asked for;
    /// the regrets with them, if the settings were not chosen beside them.
    pub(super) joint: Joint,
    pub(super) tables: usize,
    pub(super) inquiry: Inquiry,
    pub(super) unasked: Unasked,
    /// What the concurrency was chosen by.
    pub(super) concurrency: QueryConcurrency,
    /// Where the best plans take as little, but not the planner's picks.
    pub(super) passed_over: Option<Plateau>,
    /// How long asking took.
    pub(super) elapsed: Duration,
    /// Which columns were left out, and why; to be added to what is said.
    pub(super) left_out: String,
}

impl Answers {
    /// The regret at these settings with the correlations that are advised, if they were chosen beside these.
    pub(super) fn corrected_at(&self, settings: &Settings) -> Option<Regret> {
        self.joint.corrected.as_ref()?.at(settings)
    }
}

fn premise(cell: CostPair) -> Premise {
    Premise { costs: (cell.sequential, cell.random), correlation: None }
}

/// Half of what is left at most: other measurements of the statement come after it.
fn time_for_a_series(call: &Call) -> Duration {
    LONGEST.min(call.time_left() / 2)
}

impl Inquiry {
    /// What the planner picks for each query in each cell; None where it was not asked, or the model does not
    /// know the plan. Err says why nothing can be said.
    fn ask_all(&self, cells: &[CostPair], patience: &Patience) -> Result<Vec<Option<Asked>>, String> {
        let premises: Vec<Premise> = cells.iter().copied().map(premise).collect();
        let queries: Vec<TableQuery> = self.queries.iter().map(|query| query.query.clone()).collect();
        let picks = planner::picks(&queries, &premises, patience).ok_or_else(|| {
            "every tablespace has page costs of its own, which the planner would use instead of those tried"
                .to_owned()
        })?;
        if picks.iter().all(Option::is_none) {
            return Err(if patience.is_over() {
                NO_TIME.to_owned()
            } else {
                "none of the queries could be planned, for one or more of these reasons: another session \
                 holds a lock; expressions of indexes or of statistics call user-defined functions or \
                 compute constants; planning raised an ERROR"
                    .to_owned()
            });
        }
        Ok(self.queries.iter().zip(picks).map(|(query, picks)| self.asked(query, picks)).collect())
    }

    /// What the planner picks for each of these queries under these premises; None where the model does not
    /// know the plan, or there was no time.
    fn ask(&self, its: &[&IndexQuery], premises: &[Premise], patience: &Patience) -> Vec<Option<Asked>> {
        let queries: Vec<TableQuery> = its.iter().map(|query| query.query.clone()).collect();
        let picks = planner::picks(&queries, premises, patience).unwrap_or_default();
        its.iter().zip(picks).map(|(query, picks)| self.asked(query, picks)).collect()
    }

    fn asked(&self, query: &IndexQuery, picks: Option<Vec<Picked>>) -> Option<Asked> {
        self.indexes[query.place].asked(query, &picks?)
    }

    /// What the planner picks at each of some correlations of an index, at these page costs.
    fn at_correlations(&self, place: usize, cell: CostPair, patience: &Patience) -> IndexPicks {
        let index = &self.indexes[place];
        let in_force = index.correlation();
        let others: Vec<f64> = CORRELATIONS.into_iter().filter(|other| *other != in_force).collect();
        let told = others.iter().map(|other| index.corrected(cell, *other));
        let premises: Vec<Premise> = [premise(cell)].into_iter().chain(told).collect();
        // An index-only scan of a vacuumed table costs the same whatever the correlation.
        let its = self.queries.iter().filter(|query| query.place == place && !query.covered);
        let its: Vec<&IndexQuery> = its.collect();
        let guarded = queries_of(place, &index.facts, &GUARDED);
        let guarded: Vec<&IndexQuery> = guarded.iter().filter(|query| !query.covered).collect();
        IndexPicks {
            guarded: self.ask(&guarded, &premises, patience).into_iter().flatten().collect(),
            asked: self.ask(&its, &premises, patience).into_iter().flatten().collect(),
            moved: index.visits.each_moved().to_vec(),
            correlations: [vec![in_force], others].concat(),
        }
    }
}

/// The planner, as long as there is time.
struct InTheLoop<'a> {
    inquiry: &'a Inquiry,
    /// What it picks as things are.
    asked: &'a [Option<Asked>],
    cells: &'a [CostPair],
    patience: &'a mut Patience,
    /// What it said at some page costs.
    known: Vec<(CostPair, Vec<IndexPicks>)>,
}

impl InTheLoop<'_> {
    /// What it picks at each of some correlations of the index at `place`; None if time ends meanwhile.
    fn of_index(&self, place: usize, cell: CostPair) -> Option<IndexPicks> {
        let picks = self.inquiry.at_correlations(place, cell, self.patience);
        (!self.patience.is_over()).then_some(picks)
    }
}

impl Planner for InTheLoop<'_> {
    fn at_correlations(&mut self, cell: CostPair) -> Option<Vec<IndexPicks>> {
        if let Some((_, known)) = self.known.iter().find(|(known, _)| *known == cell) {
            return Some(known.clone());
        }
        let picks: Option<Vec<IndexPicks>> =
            (0..self.inquiry.indexes.len()).map(|place| self.of_index(place, cell)).collect();
        self.known.extend(picks.clone().map(|picks| (cell, picks)));
        picks
    }

    fn told(&mut self, correlations: &[Option<f64>]) -> Option<Vec<Asked>> {
        let Inquiry { indexes, queries } = self.inquiry;
        let mut corrected = self.asked.to_vec();
        let told = correlations.iter().enumerate().filter_map(|(place, told)| Some((place, (*told)?)));
        for (place, correlation) in told {
            let premises: Vec<Premise> =
                self.cells.iter().map(|cell| indexes[place].corrected(*cell, correlation)).collect();
            // What was not asked before would weigh on one side only.
            let (before, its): (Vec<&mut Asked>, Vec<&IndexQuery>) = corrected
                .iter_mut()
                .zip(queries)
                .filter(|(_, query)| query.place == place)
                .filter_map(|(asked, query)| Some((asked.as_mut()?, query)))
                .unzip();
            let asked = self.inquiry.ask(&its, &premises, self.patience);
            for (before, asked) in before.into_iter().zip(asked) {
                *before = asked.unwrap_or_else(|| before.clone());
            }
        }
        (!self.patience.is_over()).then(|| known_ones(&corrected))
    }
}

fn known_ones(asked: &[Option<Asked>]) -> Vec<Asked> {
    asked.iter().flatten().cloned().collect()
}

/// What is asked for: pairs of page costs and concurrencies to choose from, what is in force, and the times
/// that plans are judged by.
pub(super) struct Question<'a> {
    pub(super) call: &'a Call,
    pub(super) cells: &'a [CostPair],
    pub(super) concurrencies: &'a [u32],
    pub(super) in_force: &'a Settings,
    pub(super) times: &'a Times,
}

impl Question<'_> {
    /// Asks about tables that have as many pages. Err says why nothing can be said.
    pub(super) fn ask(&self, tables: &[(pg_sys::Oid, u64)]) -> Result<Answers, String> {
        let KnownIndexes { indexes, mut left_out } = indexes::of_tables(tables);
        let names: BTreeMap<u32, String> = indexes.iter().map(table_name).collect();
        let mut patience = Patience::of(time_for_a_series(self.call));
        let found = self.ask_about(&mut patience, indexes);
        let slow = names.into_iter().filter(|(table, _)| patience.is_slow(pg_sys::Oid::from(*table)));
        left_out.extend(slow.map(|(_, name)| format!("{name} ({})", planner::SLOW)));
        match found {
            Ok(answers) => {
                left_out.splice(0..0, answers.unasked.told());
                Ok(Answers { left_out: told(&left_out), ..answers })
            }
            Err(why) => Err(why + &told(&left_out)),
        }
    }

    fn ask_about(&self, patience: &mut Patience, known: Vec<IndexFacts>) -> Result<Answers, String> {
        let Self { cells, concurrencies, in_force, times, .. } = *self;
        let started = Instant::now();
        if known.is_empty() {
            let why = "no table here has an index and the statistics that made-up queries need";
            return Err(why.to_owned());
        }
        let (probed, unasked) = self.look_at(known, patience);
        if probed.is_empty() {
            let of_none =
                "for no index here is it known where its rows are stored: io_probe_correlation says why";
            return Err(if unasked.unknown.is_empty() { NO_TIME } else { of_none }.to_owned());
        }
        let inquiry = Inquiry { queries: queries(&probed), indexes: probed };
        let asked = inquiry.ask_all(cells, patience)?;
        let known = known_ones(&asked);
        let regrets = Regrets::of(&known, cells, concurrencies, times).ok_or_else(|| {
            "for each query, at some page costs, the planner picked a plan other than a scan by one index or \
             of the whole table"
                .to_owned()
        })?;
        let as_good = choose_for_queries(&known, times, in_force.concurrency);
        let mut planner = InTheLoop { inquiry: &inquiry, asked: &asked, cells, patience, known: Vec::new() };
        let found = self.best_of(&as_good, &mut planner, &regrets);
        let (concurrency, joint) = match found {
            Some(found) => found,
            None => {
                let first = *as_good.first().ok_or("the concurrency in force was not measured")?;
                let chosen = regrets
                    .choose(&self.at(&first))
                    .ok_or("no query is faster with one setting than with another")?;
                planner.patience.renew(time_for_a_series(self.call));
                let Settings { cell, concurrency } = chosen.settings;
                let correlations = (0..inquiry.indexes.len())
                    .map(|place| planner.of_index(place, cell)?.choose(concurrency, concurrencies, times))
                    .collect();
                (first, Joint { chosen, correlations, corrected: None })
            }
        };
        let of_tables: BTreeSet<u32> = inquiry.indexes.iter().map(|probed| probed.facts.table).collect();
        Ok(Answers {
            regrets,
            joint,
            tables: of_tables.len(),
            inquiry,
            unasked,
            concurrency,
            passed_over: as_good.first().map(|of| of.plateau).filter(|first| *first != concurrency.plateau),
            elapsed: started.elapsed(),
            left_out: String::new(),
        })
    }

    /// The one of these concurrencies at which the planner's picks take least, with the page costs and
    /// correlations that are chosen beside each. None if they can't be for the first.
    fn best_of(
        &self,
        as_good: &[QueryConcurrency],
        planner: &mut InTheLoop,
        regrets: &Regrets,
    ) -> Option<(QueryConcurrency, Joint)> {
        let joints = as_good.iter().map_while(|of| joint(planner, regrets, &self.at(of), self.times));
        let mut joints: Vec<Joint> = joints.collect();
        let settings: Vec<(Settings, &Regrets)> =
            joints.iter().map(|of| (of.chosen.settings, of.corrected.as_ref().unwrap_or(regrets))).collect();
        let best = least_by_picks(&settings, self.times, as_good.first()?.plateau.holds_current);
        (best < joints.len()).then(|| (as_good[best], joints.swap_remove(best)))
    }

    fn at(&self, concurrency: &QueryConcurrency) -> Settings {
        Settings { concurrency: concurrency.plateau.value as u32, ..*self.in_force }
    }

    /// Looks where the rows of these indexes lie, for half of the time at most. Of those that it knows it
    /// keeps as many as there is time to ask about, those first whose plans lose most as things are.
    fn look_at(&self, known: Vec<IndexFacts>, patience: &Patience) -> (Vec<Probed>, Unasked) {
        let (looking, mut unasked) = (Patience::of(patience.left() / 2), Unasked::default());
        let mut losses = Vec::new();
        let (mut plans, mut planning) = (0, Duration::ZERO);
        for facts in known {
            match visits(&facts, facts.index.oid, &looking) {
                Some(visits) => {
                    let probed = Probed::of(facts, visits, &looking);
                    let began = Instant::now();
                    let (loss, count) = self.loss(&probed, patience);
                    (plans, planning) = (plans + count, planning + began.elapsed());
                    losses.push((loss, probed));
                }
                None if looking.is_over() => unasked.not_looked_at.push(facts),
                None => unasked.unknown.push(facts),
            }
        }
        let each = planning.div_f64(f64::from(plans.max(1))) * self.plans_of_index();
        let room = fitting(patience.left(), each);
        let (kept, others) = most_losing(losses, room);
        unasked.not_looked_at.extend(others.into_iter().map(|probed| probed.facts));
        (kept, unasked)
    }

    /// How much longer than the best plans those take that the planner picks as things are, as a logarithm;
    /// and how many plans it was asked for, where that was [`REPEATS`] times each.
    fn loss(&self, probed: &Probed, patience: &Patience) -> (f64, u32) {
        let queries = queries_of(0, &probed.facts, &SELECTIVITIES);
        let asked: Vec<TableQuery> = queries.iter().map(|query| query.query.clone()).collect();
        let cell = self.in_force.cell;
        let premises = vec![premise(cell); REPEATS];
        let picks = planner::picks(&asked, &premises, patience).unwrap_or_default();
        let known = queries.iter().zip(picks).filter_map(|(query, picks)| probed.asked(query, &picks?));
        let known: Vec<Asked> = known.collect();
        let regrets = Regrets::of(&known, &[cell], self.concurrencies, self.times);
        let loss = regrets.and_then(|regrets| regrets.at(self.in_force)).map_or(0.0, |regret| regret.cost());
        (loss, (queries.len() * REPEATS) as u32)
    }

    /// How many plans an index takes at least: the whole grid, and all correlations at one place of it.
    fn plans_of_index(&self) -> u32 {
        let of_grid = 2 * SELECTIVITIES.len() * self.cells.len();
        let of_correlations = (SELECTIVITIES.len() + GUARDED.len()) * (CORRELATIONS.len() + 1);
        (of_grid + of_correlations) as u32
    }
}

impl Unasked {
    /// Each of them, and why.
    fn told(&self) -> Vec<String> {
        let of = |indexes: &[IndexFacts], why: &str| -> Vec<String> {
            indexes.iter().map(|facts| format!("{} ({why})", facts.index.qualified)).collect()
        };
        [of(&self.not_looked_at, "not looked at, since no time was left"), of(&self.unknown, WHERE_UNKNOWN)]
            .concat()
    }
}

/// Why the planner is not asked about an index.
pub(super) const NO_TIME_FOR_IT: &str = "\
    no time was left for this index: call again with a longer duration (up to \
    pg_io_probe.max_duration), or give the index's table as the argument";
pub(super) const WHERE_UNKNOWN: &str =
    "it is not known where its rows are stored: io_probe_correlation says why";

fn table_name(index: &IndexFacts) -> (u32, String) {
    let [schema, table, _] = &index.names;
    (index.table, format!("{schema}.{table}"))
}

pub(super) fn told(left_out: &[String]) -> String {
    const MOST: usize = 8;
    if left_out.is_empty() {
        return String::new();
    }
    let named = left_out[..left_out.len().min(MOST)].join(", ");
    let others = left_out.len().saturating_sub(MOST);
    let others = if others > 0 { format!(" and {others} more") } else { String::new() };
    format!("; left out: {named}{others}")
}

/// Queries by each index, in such an order that any first part of them has some of each index.
fn queries(probed: &[Probed]) -> Vec<IndexQuery> {
    const STEP: usize = 7;
    let indexes = probed.iter().enumerate();
    let queries = indexes.flat_map(|(place, probed)| queries_of(place, &probed.facts, &SELECTIVITIES));
    let mut all: Vec<(usize, IndexQuery)> = queries.enumerate().collect();
    all.sort_by_key(|(number, _)| number % STEP);
    all.into_iter().map(|(_, query)| query).collect()
}

/// Two queries by the index at `place` for each of these shares of the rows.
fn queries_of(place: usize, facts: &IndexFacts, shares: &[f64]) -> Vec<IndexQuery> {
    let table = pg_sys::Oid::from(facts.table);
    let ranges = shares.iter().enumerate().filter_map(|(number, share)| range(facts, *share, number));
    let queries = ranges.flat_map(|condition| {
        // A tid is in the table only; a query without columns needs no more than the index.
        [("SELECT ctid", false), ("SELECT", true)].map(|(what, covered)| IndexQuery {
            place,
            covered,
            query: TableQuery { table, what, condition: condition.clone() },
        })
    });
    queries.collect()
}

/// A condition that this share of the rows meets.
fn range(facts: &IndexFacts, share: f64, number: usize) -> Option<String> {
    let IndexFacts { column, column_type, bounds, covered, category, .. } = facts;
    let parts = (bounds.len() - 1) as f64;
    // Parts of the column that hold this share of the rows.
    let wanted = share / covered.max(0.01) * parts;
    if wanted > parts {
        return None;
    }
    let literal = |place: usize| format!("{}::{column_type}", pgrx::spi::quote_literal(&bounds[place]));
    let whole = wanted.round() as usize;
    // The ranges do not all begin at the same place.
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
