//! Indexes: by which ranges their tables can be asked for, and where the rows lie that follow one another in
//! them.
//!
//! Those that are looked at are of whole tables, on columns of types of the server's own with short values,
//! whose statistics the caller may see.

use std::panic::AssertUnwindSafe;

use pgrx::pg_sys;
use serde::Deserialize;

use crate::pg::backend::encoding::c_string;
use crate::pg::backend::interrupts;
use crate::pg::backend::server;
use crate::pg::backend::subtransaction::read_only_if_possible;
use crate::pg::compat;
use crate::pg::settings;
use crate::pg::storage::relation::Relation;

/// An index by ranges of whose first column a table can be asked.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct IndexFacts {
    /// The table, and the index.
    pub(crate) table: u32,
    pub(crate) index: u32,
    pub(crate) index_name: String,
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
    /// Share of the rows that these cover: the others are null or among the most common values.
    pub(crate) covered: f64,
}

/// Indexes of these tables that a range query can use, of each column the smallest, of the largest tables
/// first: at most so many of a table and of all.
pub(crate) fn of_tables(
    tables: &[pg_sys::Oid],
    least_pages: u32,
    of_table: u32,
    of_all: u32,
) -> Vec<IndexFacts> {
    let tables: Vec<String> = tables.iter().map(|oid| oid.to_u32().to_string()).collect();
    let query = format!(
        "WITH found AS (
             SELECT DISTINCT ON (c.relpages, c.oid, a.attnum) c.oid AS relid, c.relpages, c.reltuples, i.indexrelid,
                    x.relname, x.relpages AS index_pages, a.attname, a.attnum, a.atttypid, a.atttypmod, t.typcategory,
                    s.histogram_bounds, s.null_frac, s.most_common_freqs
             FROM pg_index AS i
             JOIN pg_class AS c ON c.oid = i.indrelid
             JOIN pg_namespace AS n ON n.oid = c.relnamespace
             JOIN pg_class AS x ON x.oid = i.indexrelid
             JOIN pg_am AS m ON m.oid = x.relam AND m.amname = 'btree'
             JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
             JOIN pg_type AS t ON t.oid = a.atttypid AND t.typnamespace = 'pg_catalog'::regnamespace
             JOIN pg_opclass AS o ON o.oid = i.indclass[0] AND o.opcdefault
             JOIN pg_stats AS s
                  ON s.schemaname = n.nspname AND s.tablename = c.relname AND s.attname = a.attname AND NOT s.inherited
             WHERE c.oid = ANY ('{{{}}}'::oid[]) AND c.relpages >= {least_pages} AND c.reltuples > 0
                   AND i.indisvalid AND NOT i.indcheckxmin AND i.indpred IS NULL AND i.indcollation[0] = a.attcollation
                   AND s.histogram_bounds IS NOT NULL AND s.avg_width <= {LONGEST_VALUE}
             ORDER BY c.relpages DESC, c.oid, a.attnum, x.relpages, i.indexrelid
         ), numbered AS (
             SELECT *, row_number() OVER (PARTITION BY relid ORDER BY attnum) AS number FROM found
         )
         SELECT indexrelid, jsonb_build_object(
             'table', relid::int8, 'index', indexrelid::int8, 'index_name', relname, 'column', quote_ident(attname),
             'column_type', format_type(atttypid, atttypmod), 'category', typcategory,
             'pages', relpages, 'rows', reltuples, 'index_pages', index_pages,
             'bounds', histogram_bounds::text::text[],
             'covered', 1 - null_frac - coalesce((SELECT sum(f) FROM unnest(most_common_freqs) AS f), 0))::text
         FROM numbered WHERE number <= {of_table} ORDER BY relpages DESC, relid, attnum LIMIT {of_all}",
        tables.join(",")
    );
    let found = settings::with(&settings::PLAIN, || server::pairs::<pg_sys::Oid>(&query));
    let facts: Vec<IndexFacts> =
        found.iter().filter_map(|(_, facts)| serde_json::from_str(facts).ok()).collect();
    facts.into_iter().filter(|facts| facts.bounds.len() > 2).collect()
}

/// Columns of longer values, in bytes, are left out: statistics may hold ten thousand of them.
const LONGEST_VALUE: u32 = 64;

/// The blocks of some rows that follow one another in an index, from each of these values on. Reads a page or
/// two of the index for each. None if it is gone, or somebody has a lock.
pub(crate) fn blocks_from(facts: &IndexFacts, starts: &[&str], rows: usize) -> Option<Vec<Vec<u64>>> {
    let table = Relation::open_if_free(pg_sys::Oid::from(facts.table))?;
    let work = AssertUnwindSafe(|| {
        settings::with(&settings::PLAIN, || {
            // SAFETY: locked and opened, or an ERROR; closed below. An ERROR in between closes it, too.
            let index = unsafe { pg_sys::index_open(pg_sys::Oid::from(facts.index), LOCK) };
            let samples = starts
                .iter()
                .map(|start| {
                    interrupts::check();
                    // SAFETY: the index is open and of this table, whose first key is a column of it.
                    unsafe { from_value(table.as_ptr(), index, start, rows) }
                })
                .collect();
            // SAFETY: opened above.
            unsafe { pg_sys::index_close(index, LOCK) };
            samples
        })
    });
    read_only_if_possible(work)
}

const LOCK: pg_sys::LOCKMODE = pg_sys::AccessShareLock as pg_sys::LOCKMODE;

/// # Safety
/// `index` must be an open btree index of the open table `table`, whose first key is a column.
unsafe fn from_value(table: pg_sys::Relation, index: pg_sys::Relation, start: &str, rows: usize) -> Vec<u64> {
    // SAFETY: the caller vouches for the relations, whose arrays have an element for each key. The value is
    // of the column's type, and the comparison that of the index's own operator family. The scan ends before
    // the index is closed.
    unsafe {
        let attribute = (*(*index).rd_index).indkey.values.as_slice(1)[0];
        let (mut column, mut modifier, mut collation) = (pg_sys::InvalidOid, -1, pg_sys::InvalidOid);
        pg_sys::get_atttypetypmodcoll((*table).rd_id, attribute, &mut column, &mut modifier, &mut collation);
        let (mut input, mut parameter) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
        pg_sys::getTypeInputInfo(column, &mut input, &mut parameter);
        let text = c_string(start);
        let value = pg_sys::OidInputFunctionCall(input, text.as_ptr().cast_mut(), parameter, modifier);

        let (family, of_class) = (*(*index).rd_opfamily, *(*index).rd_opcintype);
        let strategy = pg_sys::BTGreaterEqualStrategyNumber as pg_sys::StrategyNumber;
        let operator = pg_sys::get_opfamily_member(family, of_class, of_class, strategy as i16);
        if operator == pg_sys::InvalidOid {
            return Vec::new();
        }
        let mut key = pg_sys::ScanKeyData::default();
        pg_sys::ScanKeyEntryInitialize(
            &mut key,
            0,
            1,
            strategy,
            of_class,
            *(*index).rd_indcollation,
            pg_sys::get_opcode(operator),
            value,
        );
        let scan = compat::begin_index_scan(table, index);
        pg_sys::index_rescan(scan, &mut key, 1, std::ptr::null_mut(), 0);
        // Towards greater values: forwards, a scan of a descending index would begin at the greatest.
        let is_descending = *(*index).rd_indoption & pg_sys::INDOPTION_DESC as i16 != 0;
        let direction = match is_descending {
            true => pg_sys::ScanDirection::BackwardScanDirection,
            false => pg_sys::ScanDirection::ForwardScanDirection,
        };
        let mut blocks = Vec::with_capacity(rows);
        while blocks.len() < rows {
            let tid = pg_sys::index_getnext_tid(scan, direction);
            if tid.is_null() {
                break;
            }
            blocks.push(u64::from(pgrx::itemptr::item_pointer_get_block_number_no_check(*tid)));
        }
        pg_sys::index_endscan(scan);
        blocks
    }
}
