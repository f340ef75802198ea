//! Indexes: which ranges of their tables can be asked for, and where the rows lie that follow one another in
//! them.
//!
//! Ranges are asked for by indexes of whole tables, on columns of the server's own types with short values,
//! whose statistics the caller may see.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::time::Duration;

use pgrx::pg_sys;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::pg::backend::names;
use crate::pg::backend::server::data_directory;
use crate::pg::backend::subtransaction::read_only_if_possible;
use crate::pg::catalog::facts::bytes_of_files;
use crate::pg::catalog::statistics::{self, MOST_BYTES};
use crate::pg::settings;
use crate::pg::storage::btree;
use crate::pg::storage::relation::{MOST_INDEXES, Relation};

/// An index whose table can be asked for ranges of its first column.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct IndexFacts {
    pub(crate) table: u32,
    pub(crate) index: IndexName,
    /// The other btree indexes of all rows that begin with the column in this order.
    pub(crate) others: Vec<IndexName>,
    /// How many columns order it.
    pub(crate) key_columns: u32,
    /// The column, quoted, and its type.
    pub(crate) column: String,
    pub(crate) column_type: String,
    /// `N` for numbers, `D` for dates and times, see pg_type.typcategory.
    pub(crate) category: String,
    /// Pages of the table and of the index, by their files; rows of the table, if a page has as many as when
    /// they were counted.
    pub(crate) pages: f64,
    pub(crate) rows: f64,
    #[serde(skip)]
    pub(crate) index_pages: f64,
    /// Values that cut the column into parts of equally many rows, as text.
    #[serde(skip)]
    pub(crate) bounds: Vec<String>,
    /// Share of the rows that `bounds` cover: the others are null or among the most common values.
    pub(crate) covered: f64,
    /// The correlation of the column's order with the table's, as ANALYZE says.
    pub(crate) correlation: Option<f64>,
    /// The schema, the table and the column, as functions of the server take them.
    pub(crate) names: [String; 3],
}

/// An index by its names.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct IndexName {
    pub(crate) oid: u32,
    pub(crate) name: String,
    /// The name with its schema, quoted.
    pub(crate) qualified: String,
}

/// What is found of some tables.
pub(crate) struct KnownIndexes {
    pub(crate) indexes: Vec<IndexFacts>,
    /// Columns and indexes that can't be asked for, and why.
    pub(crate) left_out: Vec<String>,
}

const UNLIKE_ANALYZE: &str = "its statistics are too large, or ANALYZE did not make them";
const ROWS_UNKNOWN: &str = "the number of its rows is not known: ANALYZE the table";
const NO_RANGES: &str = "its first column has no histogram, or it is a partial index";

/// Most indexes, of all tables together, whose statistics are read.
const MOST_KNOWN: usize = 64;
/// Most of the other indexes that are counted.
const MOST_NAMED: usize = 1000;

/// Indexes that a range query can use, of these tables with their numbers of pages. Of each column it is the
/// index of the fewest columns. The first of each table comes first, then the second of each.
pub(crate) fn of_tables(tables: &[(pg_sys::Oid, u64)]) -> KnownIndexes {
    /// An index of a column that can be asked for, if there is no reason why not.
    #[derive(Deserialize)]
    struct Found {
        facts: IndexFacts,
        path: Option<PathBuf>,
        attnum: i16,
        atttypid: pg_sys::Oid,
        /// The column with its table.
        qualified: String,
        why_not: Option<String>,
        /// How many columns there are.
        count: usize,
    }
    let (oids, pages): (Vec<String>, Vec<String>) =
        tables.iter().map(|(oid, pages)| (oid.to_u32().to_string(), pages.to_string())).unzip();
    let query = format!(
        "WITH found AS (
             SELECT DISTINCT ON (place, a.attnum) place, pages, c.oid AS relid,
                    {rows_of_page} AS rows_of_page,
                    i.indexrelid, x.relname, a.attname, a.attnum, a.atttypid, a.atttypmod, t.typcategory,
                    s.null_frac, s.most_common_freqs, s.correlation,
                    s.null_frac BETWEEN 0 AND 1 AND coalesce(s.correlation BETWEEN -1 AND 1, true)
                        AND pg_column_size(s.histogram_bounds) <= {MOST_BYTES}
                        AND coalesce(pg_column_size(s.most_common_freqs) <= {MOST_BYTES}, true) AS is_likely,
                    n.nspname, c.relname AS table_name, i.indnkeyatts, i.indclass[0] AS of_class,
                    i.indcollation[0] AS of_collation
             FROM unnest('{{{oids}}}'::oid[], '{{{pages}}}'::int8[])
                  WITH ORDINALITY AS given(oid, pages, place)
             JOIN pg_class AS c ON c.oid = given.oid
             JOIN pg_namespace AS n ON n.oid = c.relnamespace
             JOIN pg_index AS i ON i.indrelid = c.oid
             JOIN pg_class AS x ON x.oid = i.indexrelid
             JOIN pg_am AS m ON m.oid = x.relam AND m.amname = 'btree'
             JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
             JOIN pg_type AS t ON t.oid = a.atttypid AND t.typnamespace = 'pg_catalog'::regnamespace
             JOIN pg_opclass AS o ON o.oid = i.indclass[0] AND o.opcdefault
             JOIN pg_stats AS s
                  ON s.schemaname = n.nspname AND s.tablename = c.relname AND s.attname = a.attname
                  AND NOT s.inherited
             WHERE i.indisvalid AND NOT i.indcheckxmin AND i.indpred IS NULL
                   AND i.indcollation[0] = a.attcollation
                   AND s.histogram_bounds IS NOT NULL AND s.avg_width <= {LONGEST_VALUE}
             ORDER BY place, a.attnum, i.indnatts, i.indexrelid
         ), numbered AS (
             SELECT *, row_number() OVER (PARTITION BY place ORDER BY attnum) AS number FROM found
         )
         SELECT json_build_object('facts', json_build_object(
                 'table', relid::int8,
                 'index', json_build_object('oid', indexrelid::int8, 'name', relname,
                                             'qualified', format('%I.%I', nspname, relname)),
                 'others', ARRAY(SELECT json_build_object('oid', y.oid::int8, 'name', y.relname,
                         'qualified', format('%I.%I', nspname, y.relname))
                     FROM pg_index AS j JOIN pg_class AS y ON y.oid = j.indexrelid
                     JOIN pg_am AS m ON m.oid = y.relam AND m.amname = 'btree'
                     WHERE j.indrelid = relid AND j.indexrelid <> found.indexrelid AND j.indkey[0] = attnum
                       AND j.indisvalid AND j.indpred IS NULL AND j.indclass[0] = of_class
                       AND j.indcollation[0] = of_collation
                     ORDER BY y.relname LIMIT {MOST_OTHERS}),
                 'key_columns', indnkeyatts, 'correlation', CASE WHEN is_likely THEN correlation END,
                 'names', ARRAY[nspname, table_name, attname],
                 'column', quote_ident(attname),
                 'column_type', format_type(atttypid, atttypmod), 'category', typcategory,
                 'pages', pages, 'rows', coalesce(rows_of_page * pages, 0),
                 'covered', CASE WHEN is_likely THEN 1 - null_frac - coalesce(
                     (SELECT sum(f) FROM unnest(most_common_freqs) AS f WHERE f BETWEEN 0 AND 1), 0)
                     ELSE 0 END),
             'path', pg_relation_filepath(indexrelid), 'attnum', attnum, 'atttypid', atttypid::int8,
             'qualified', format('%I.%I.%I', nspname, table_name, attname), 'count', count(*) OVER (),
             'why_not', CASE WHEN NOT is_likely THEN '{UNLIKE_ANALYZE}'
                 WHEN rows_of_page IS NULL THEN '{ROWS_UNKNOWN}'
                 WHEN {MOST_INDEXES} < (SELECT count(*) FROM pg_index AS j WHERE j.indrelid = relid)
                 THEN 'its table has over {MOST_INDEXES} indexes' END)
         FROM numbered AS found ORDER BY number, place LIMIT {MOST_KNOWN}",
        rows_of_page = rows_of_page("c.reltuples"),
        oids = oids.join(","),
        pages = pages.join(","),
    );
    let (mut indexes, mut left_out) = (Vec::new(), Vec::new());
    let (mut columns, mut all) = (Vec::new(), 0);
    for Found { facts, path, attnum, atttypid, qualified, why_not, count } in rows::<Found>(&query) {
        columns.push((facts.table, attnum));
        all = count;
        let bounds = match why_not {
            Some(why) => Err(why),
            None => {
                settings::with(&settings::PLAIN, || statistics::bounds(facts.table.into(), attnum, atttypid))
                    .ok_or_else(|| UNLIKE_ANALYZE.to_owned())
            }
        };
        match bounds {
            Ok(bounds) if bounds.len() > 2 => {
                let bytes = path.map_or(0, |path| bytes_of_files(&data_directory().join(path)));
                let index_pages = (bytes / u64::from(pg_sys::BLCKSZ)) as f64;
                indexes.push(IndexFacts { bounds, index_pages, ..facts });
            }
            Ok(_) => left_out.push(format!("{qualified} ({NO_RANGES})")),
            Err(why) => left_out.push(format!("{qualified} ({why})")),
        }
    }
    let others = without_ranges(&oids, &columns);
    left_out.extend(others.into_iter().map(|name| format!("{name} ({NO_RANGES})")));
    if columns.len() < all {
        left_out.push(format!("{} more columns (only {MOST_KNOWN} are looked at)", all - columns.len()));
    }
    KnownIndexes { indexes, left_out }
}

/// Btree indexes of these tables that are on no such column, or on some of the rows.
fn without_ranges(oids: &[String], columns: &[(u32, i16)]) -> Vec<String> {
    let (tables, attnums): (Vec<String>, Vec<String>) =
        columns.iter().map(|(table, attnum)| (table.to_string(), attnum.to_string())).unzip();
    let query = format!(
        "SELECT to_json(format('%I.%I', n.nspname, x.relname))
         FROM unnest('{{{oids}}}'::oid[]) WITH ORDINALITY AS given(oid, place)
         JOIN pg_index AS i ON i.indrelid = given.oid AND i.indisvalid
         JOIN pg_class AS x ON x.oid = i.indexrelid
         JOIN pg_namespace AS n ON n.oid = x.relnamespace
         JOIN pg_am AS m ON m.oid = x.relam AND m.amname = 'btree'
         WHERE i.indpred IS NOT NULL OR NOT EXISTS (
             SELECT FROM unnest('{{{tables}}}'::oid[], '{{{attnums}}}'::int2[]) AS found(oid, attnum)
             WHERE found.oid = i.indrelid AND found.attnum = i.indkey[0])
         ORDER BY place, x.relname LIMIT {MOST_NAMED}",
        oids = oids.join(","),
        tables = tables.join(","),
        attnums = attnums.join(","),
    );
    rows(&query)
}

/// How many rows a page has, by those of all pages when they were counted last; NULL where that can't be.
fn rows_of_page(rows: &str) -> String {
    // A row takes a byte at least.
    let most = pg_sys::BLCKSZ;
    format!(
        "CASE WHEN c.relpages > 0 AND {rows} > 0 AND {rows} <= {most}::float8 * c.relpages \
         THEN {rows}::float8 / c.relpages END"
    )
}

/// The rows of a query of statistics.
fn rows<T: DeserializeOwned>(query: &str) -> Vec<T> {
    settings::with(&settings::PLAIN, || names::rows(query, &[]))
}

/// Fewest pages of a table: smaller ones are read whole, whatever the costs.
pub(crate) const LEAST_PAGES: f64 = 256.0;

/// Longest values, in bytes, of columns whose ranges are asked for.
const LONGEST_VALUE: u32 = 64;

/// Most indexes that are looked at beside the one of a column.
const MOST_OTHERS: u32 = 15;

/// An index of a table, whatever it is.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct AnyIndex {
    pub(crate) index: u32,
    pub(crate) method: String,
    pub(crate) is_valid: bool,
    /// Rows of the index, and of its table, for each page of the table; as far as that is known.
    pub(crate) rows_of_page: Option<f64>,
    pub(crate) table_rows_of_page: Option<f64>,
    /// What ANALYZE says of its first column, if the caller may see that: the correlation, and the share of
    /// nulls.
    pub(crate) correlation: Option<f64>,
    pub(crate) null_share: Option<f64>,
}

/// The indexes of a table, by name.
pub(crate) fn all_of(table: pg_sys::Oid) -> Vec<AnyIndex> {
    let query = format!(
        "SELECT json_build_object(
             'index', x.oid::int8, 'method', m.amname, 'is_valid', i.indisvalid AND NOT i.indcheckxmin,
             'rows_of_page', CASE WHEN i.indpred IS NULL THEN {of_table} ELSE {of_index} END,
             'table_rows_of_page', {of_table},
             'correlation', CASE WHEN s.correlation BETWEEN -1 AND 1 THEN s.correlation END,
             'null_share', CASE WHEN s.null_frac BETWEEN 0 AND 1 THEN s.null_frac END)
         FROM pg_index AS i
         JOIN pg_class AS c ON c.oid = i.indrelid
         JOIN pg_namespace AS n ON n.oid = c.relnamespace
         JOIN pg_class AS x ON x.oid = i.indexrelid
         JOIN pg_am AS m ON m.oid = x.relam
         LEFT JOIN LATERAL (SELECT s.correlation, s.null_frac FROM pg_stats AS s, pg_attribute AS a
                 WHERE s.schemaname = n.nspname AND NOT s.inherited AND s.attname = a.attname
                       -- Of an expression they are the index's own.
                       AND CASE WHEN i.indkey[0] = 0
                                THEN a.attrelid = x.oid AND a.attnum = 1 AND s.tablename = x.relname
                                ELSE a.attrelid = c.oid AND a.attnum = i.indkey[0]
                                 AND s.tablename = c.relname END) AS s ON true
         WHERE i.indrelid = {}::oid ORDER BY x.relname",
        table.to_u32(),
        of_table = rows_of_page("c.reltuples"),
        of_index = rows_of_page("x.reltuples"),
    );
    rows(&query)
}

/// Places of an index where samples begin, and entries of a sample.
const SAMPLES: u32 = 12;
const ENTRIES: usize = 200;

/// The blocks of rows that follow one another in a btree index, from some places on. Reads a page or two of
/// it for each. None if it is gone, a lock would have to be waited for, or it takes longer than `most`.
pub(crate) fn samples(table: u32, index: u32, most: Duration) -> Option<Vec<Vec<u64>>> {
    let table = Relation::open_if_free(pg_sys::Oid::from(table))?;
    let work = AssertUnwindSafe(|| {
        settings::with(&settings::PLAIN, || {
            // What was found may have been dropped before the table was locked, and its oid be another's.
            let index = Relation::open(pg_sys::Oid::from(index))
                .ok()
                .filter(|index| index.is_btree_of(table.oid()))?;
            // SAFETY: open, and a btree.
            Some(unsafe { btree::samples(index.as_ptr(), SAMPLES, ENTRIES) })
        })
    });
    read_only_if_possible(most, work).ok().flatten()
}
