//! Indexes: which ranges of their tables can be asked for, and where the rows lie that follow one another in
//! them.
//!
//! Ranges are asked for by indexes of whole tables, on columns of the server's own types with short values,
//! whose statistics the caller may see.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use pgrx::pg_sys;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::pg::backend::names;
use crate::pg::backend::subtransaction::read_only_if_possible;
use crate::pg::settings;
use crate::pg::storage::btree;
use crate::pg::storage::relation::Relation;

/// An index whose table can be asked for ranges of its first column.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct IndexFacts {
    /// The table, and the index.
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
    /// Pages and rows of the table, pages of the index.
    pub(crate) pages: f64,
    pub(crate) rows: f64,
    pub(crate) index_pages: f64,
    /// Values that cut the column into parts of equally many rows, as text.
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

/// Indexes of these tables that a range query can use, of each column the smallest, of the largest tables
/// first: at most `of_table` of a table, and `of_all` in all.
pub(crate) fn of_tables(tables: &[pg_sys::Oid], of_table: u32, of_all: u32) -> Vec<IndexFacts> {
    let tables: Vec<String> = tables.iter().map(|oid| oid.to_u32().to_string()).collect();
    let query = format!(
        "WITH found AS (
             SELECT DISTINCT ON (c.relpages, c.oid, a.attnum) c.oid AS relid, c.relpages, c.reltuples,
                    i.indexrelid, x.relname, x.relpages AS index_pages, a.attname, a.attnum, a.atttypid,
                    a.atttypmod, t.typcategory,
                    s.histogram_bounds, s.null_frac, s.most_common_freqs, s.correlation,
                    n.nspname, c.relname AS table_name, i.indnkeyatts, i.indclass[0] AS of_class,
                    i.indcollation[0] AS of_collation
             FROM pg_index AS i
             JOIN pg_class AS c ON c.oid = i.indrelid
             JOIN pg_namespace AS n ON n.oid = c.relnamespace
             JOIN pg_class AS x ON x.oid = i.indexrelid
             JOIN pg_am AS m ON m.oid = x.relam AND m.amname = 'btree'
             JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
             JOIN pg_type AS t ON t.oid = a.atttypid AND t.typnamespace = 'pg_catalog'::regnamespace
             JOIN pg_opclass AS o ON o.oid = i.indclass[0] AND o.opcdefault
             JOIN pg_stats AS s
                  ON s.schemaname = n.nspname AND s.tablename = c.relname AND s.attname = a.attname
                  AND NOT s.inherited
             WHERE c.oid = ANY ('{{{}}}'::oid[]) AND c.relpages >= {LEAST_PAGES} AND c.reltuples > 0
                   AND i.indisvalid AND NOT i.indcheckxmin AND i.indpred IS NULL
                   AND i.indcollation[0] = a.attcollation
                   AND s.histogram_bounds IS NOT NULL AND s.avg_width <= {LONGEST_VALUE}
             ORDER BY c.relpages DESC, c.oid, a.attnum, x.relpages, i.indexrelid
         ), numbered AS (
             SELECT *, row_number() OVER (PARTITION BY relid ORDER BY attnum) AS number FROM found
         )
         SELECT json_build_object(
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
                 ORDER BY y.relname),
             'key_columns', indnkeyatts, 'correlation', correlation,
             'names', ARRAY[nspname, table_name, attname],
             'column', quote_ident(attname),
             'column_type', format_type(atttypid, atttypmod), 'category', typcategory,
             'pages', relpages, 'rows', reltuples, 'index_pages', index_pages,
             'bounds', histogram_bounds::text::text[],
             'covered', 1 - null_frac -
                        coalesce((SELECT sum(f) FROM unnest(most_common_freqs) AS f), 0))
         FROM numbered AS found WHERE number <= {of_table} ORDER BY relpages DESC, relid, attnum
         LIMIT {of_all}",
        tables.join(",")
    );
    rows(&query).into_iter().filter(|facts: &IndexFacts| facts.bounds.len() > 2).collect()
}

/// The rows of a query of statistics. One in which a number is none, as in restored statistics, is left out.
fn rows<T: DeserializeOwned>(query: &str) -> Vec<T> {
    let rows = settings::with(&settings::PLAIN, || names::rows::<Value>(query, &[]));
    rows.into_iter().filter_map(|row| serde_json::from_value(row).ok()).collect()
}

/// Fewest pages of a table: smaller ones are read whole, whatever the costs.
pub(crate) const LEAST_PAGES: f64 = 256.0;

/// Longest values, in bytes, of columns that are not left out: statistics may hold ten thousand of them.
const LONGEST_VALUE: u32 = 64;

/// An index of a table, whatever it is.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct AnyIndex {
    pub(crate) index: u32,
    /// Its access method.
    pub(crate) method: String,
    /// Can queries use it?
    pub(crate) is_valid: bool,
    /// Rows of the index and of its table, when that had `table_pages` pages; as far as that is known.
    pub(crate) rows: f64,
    pub(crate) table_rows: f64,
    pub(crate) table_pages: f64,
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
             'rows', CASE WHEN i.indpred IS NULL THEN c.reltuples ELSE x.reltuples END,
             'table_rows', c.reltuples, 'table_pages', c.relpages,
             'correlation', s.correlation, 'null_share', s.null_frac)
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
        table.to_u32()
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
