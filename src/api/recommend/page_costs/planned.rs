//! The planner in the loop: queries over the tables of a tablespace, and what the planner picks for them.

use std::time::{Duration, Instant};

use io_probe_core::cost::choose::{Asked, Cell, Regrets};
use io_probe_core::cost::model::{self, Index, Locality, Scan, Table, Times};
use pgrx::pg_sys;

use crate::pg::indexes::{self, IndexFacts};
use crate::pg::interrupts;
use crate::pg::planner::{self, Picked, Query};
use crate::statement;

/// Shares of a table's rows that queries ask for.
const SELECTIVITIES: [f64; 10] = [0.0003, 0.0007, 0.0016, 0.0038, 0.0088, 0.02, 0.05, 0.11, 0.26, 0.6];

/// Types of which a part of a difference can be taken.
const NUMBERS: [&str; 6] = ["smallint", "integer", "bigint", "numeric", "real", "double precision"];

/// Most indexes of a tablespace, and of a table, whose columns are asked for.
const MOST_INDEXES: u32 = 12;
const MOST_OF_TABLE: u32 = 4;

/// Samples of an index, and rows of each.
const SAMPLES: usize = 6;
const SAMPLE_ROWS: usize = 200;

/// Smaller tables are read whole, whatever the costs, in pages.
const LEAST_PAGES: u32 = 256;

/// All of it takes so long at most.
const LONGEST: Duration = Duration::from_secs(15);

/// `random_page_cost` over `seq_page_cost`.
const RATIOS: [f64; 19] =
    [1.0, 1.1, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 16.0, 20.0, 24.0];
/// `seq_page_cost` over the one that the processor's costs ask for.
const SCALES: [f64; 7] = [0.35, 0.5, 0.71, 1.0, 1.41, 2.0, 2.83];

/// The pairs of page costs to ask for: those in force, and a grid. With the time of a tuple in units of the costs, also
/// other costs of a sequential page around what it says.
pub(super) fn cells(in_force: Cell, anchor: Option<f64>) -> Vec<Cell> {
    let mut sequential = vec![in_force.sequential];
    sequential.extend(anchor.into_iter().flat_map(|anchor| SCALES.map(|scale| rounded(anchor * scale))));
    let mut cells = vec![in_force];
    for &sequential in &sequential {
        for ratio in RATIOS {
            let cell = Cell { sequential, random: rounded(sequential * ratio) };
            if !cells.contains(&cell) {
                cells.push(cell);
            }
        }
    }
    cells
}

/// To three digits, as a person would set it.
pub(super) fn rounded(cost: f64) -> f64 {
    if cost <= 0.0 || !cost.is_finite() {
        return cost;
    }
    let scale = 10f64.powi(2 - cost.log10().floor() as i32);
    (cost * scale).round() / scale
}

/// An index, its table, and queries by it.
struct Probed {
    facts: IndexFacts,
    table: Table,
    index: Index,
}

/// What came of asking.
pub(super) struct Answers {
    pub(super) regrets: Regrets,
    pub(super) tables: usize,
    pub(super) indexes: usize,
    /// How long it took.
    pub(super) elapsed: Duration,
}

/// Asks about the tables. Err says why nothing can be said.
pub(super) fn ask(
    tables: &[pg_sys::Oid],
    cells: &[Cell],
    concurrencies: &[u32],
    times: &Times,
) -> Result<Answers, String> {
    let started = Instant::now();
    if !planner::can_be_asked() {
        return Err(
            "every tablespace has page costs of its own, which the planner would take in their place"
                .to_owned(),
        );
    }
    let goes_on = || {
        interrupts::check();
        started.elapsed() < LONGEST && !statement::left().is_zero()
    };
    let mut probed = Vec::new();
    for facts in indexes::of_tables(tables, LEAST_PAGES, MOST_OF_TABLE, MOST_INDEXES) {
        if !goes_on() {
            break;
        }
        let table = Table { pages: facts.pages, rows: facts.rows };
        if let Some(locality) = locality(&facts, &table) {
            let index = Index { pages: facts.index_pages, locality };
            probed.push(Probed { facts, table, index });
        }
    }
    if probed.is_empty() {
        return Err(
            "no table there has an index and statistics by which the planner could be asked".to_owned()
        );
    }
    let queries: Vec<(usize, bool, Query)> = (0..probed.len())
        .flat_map(|place| ranges(&probed[place].facts).into_iter().map(move |range| (place, range)))
        .flat_map(|(place, range)| {
            let table = pg_sys::Oid::from(probed[place].facts.table);
            // A tid is in the table only; nothing at all is in the index, too.
            [("SELECT ctid", false), ("SELECT", true)]
                .map(|(what, covered)| (place, covered, Query { table, what, condition: range.clone() }))
        })
        .collect();
    let queries = spread(queries);
    let costs: Vec<(f64, f64)> = cells.iter().map(|cell| (cell.sequential, cell.random)).collect();
    let planned: Vec<Query> = queries.iter().map(|(_, _, query)| query.clone()).collect();
    let picks = planner::picks(&planned, &costs, &mut { goes_on });
    let asked: Vec<Asked> = queries
        .iter()
        .zip(&picks)
        .filter_map(|((place, covered, _), picks)| {
            let Probed { facts, table, index } = &probed[*place];
            let picks = picks.as_ref()?;
            let rows = picks.first()?.rows;
            let picks = picks.iter().map(|picked| scan(picked, facts)).collect();
            Some(Asked { table: *table, index: *index, rows, covered: *covered, picks })
        })
        .collect();
    let regrets = Regrets::of(&asked, cells, concurrencies, times);
    if regrets.queries() == 0 {
        return Err(
            "the planner picked plans that are not scans by one index or of the whole table".to_owned()
        );
    }
    let mut of_tables: Vec<u32> = probed.iter().map(|probed| probed.facts.table).collect();
    of_tables.dedup();
    Ok(Answers { regrets, tables: of_tables.len(), indexes: probed.len(), elapsed: started.elapsed() })
}

/// Where its rows lie.
fn locality(facts: &IndexFacts, table: &Table) -> Option<Locality> {
    let last = facts.bounds.len() - 1;
    let starts: Vec<&str> =
        (0..SAMPLES).map(|sample| facts.bounds[(2 * sample + 1) * last / (2 * SAMPLES)].as_str()).collect();
    model::locality(&indexes::blocks_from(facts, &starts, SAMPLE_ROWS)?, table)
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

/// In an order of which each beginning has some of all.
fn spread<T: Clone>(all: Vec<T>) -> Vec<T> {
    const STEP: usize = 7;
    (0..STEP).flat_map(|first| all.iter().skip(first).step_by(STEP).cloned().collect::<Vec<T>>()).collect()
}

/// The scan that a plan is, if it is one of those that the model knows.
fn scan(picked: &Picked, facts: &IndexFacts) -> Option<Scan> {
    let by_index = picked.index.as_deref() == Some(&facts.index_name);
    match picked.node_type.as_str() {
        "Seq Scan" => Some(Scan::Sequential),
        "Index Scan" if by_index => Some(Scan::Index),
        "Bitmap Heap Scan" if by_index => Some(Scan::Bitmap),
        "Index Only Scan" if by_index => Some(Scan::IndexOnly),
        _ => None,
    }
}
