//! Storing runs, and deleting them. Only these statements run with the rights of the tables' owner; no other
//! role may write.

use pgrx::datum::DatumWithOid;

use super::probe::ProbeFunction;
use super::tables::Tables;
use crate::error::Result;
use crate::pg::backend::encoding::Text;
use crate::pg::backend::lock::check_may_write;
use crate::pg::backend::statement::StatementRows;
use crate::pg::backend::{JsonbText, SqlInterval};
use crate::pg::settings;

/// Most characters of a text of a run: each figure may repeat it when runs are compared.
pub(crate) const MOST_OF_TEXT: usize = 10_000;

/// Most bytes of a row of a run, and of all that a run has besides its rows.
const MOST_OF_PART: usize = 1 << 20;

/// Levels that values of a run may be nested in one another: each is looked at once more a level.
const MOST_LEVELS: u32 = 20;

/// What a result must have, as a path that leads to it.
const RESULT: &str = r#"strict $ ? (
    @.started_at.type() == "string" && @.object.type() == "string" && @.system_identifier.type() == "string"
    && (@.status == "ok" || @.status == "failed" || @.status == "skipped")
    && @.args.type() == "object" && @.settings.type() == "object"
    && @.leaves.type() == "array" && !exists(@.leaves[*] ? (@.type() != "object"))
    && @.rows.type() == "array" && !exists(@.rows[*] ? (@.type() != "object")))"#;

/// Can runs be stored, or deleted, here and now? `function` is the caller's name.
pub(crate) fn check_possible(function: &str) -> Result<()> {
    check_may_write(
        function,
        "Call io_probe_measure here. Then store its result on the primary by io_probe_import.",
    )?;
    Tables::find().check_for_triggers()
}

/// Stores a result, and returns the number of the run; or says why that is none. Stored is what the types of
/// the columns and of the probe's rows hold of it, as they print it, so that it reads the same for everyone.
pub(crate) fn insert(
    result: &JsonbText,
    probe: &ProbeFunction,
    label: Option<Text>,
) -> std::result::Result<i64, String> {
    let tables = Tables::find();
    let Tables { schema, columns, typed_columns, .. } = &tables;
    // A relation's name may be unknown here, or another one's: a row keeps the oid.
    let statement = format!(
        "WITH RECURSIVE run AS MATERIALIZED ( \
             SELECT * FROM jsonb_to_record( \
                 CASE WHEN jsonb_typeof($1 -> 'relation') = 'object' THEN $1 -> 'relation' \
                     ELSE '{{}}' END \
                 || $1 || jsonb_build_object('message', left($1 ->> 'message', {MOST_OF_TEXT}))) \
             AS run ({typed_columns}) \
         ), line AS MATERIALIZED ( \
             SELECT ordinal, jsonb_set(to_jsonb(jsonb_populate_record($3, value - 'relid'::text)), \
                 '{{relid}}', coalesce(to_jsonb((value ->> 'relid')::oid::int8), 'null'), false) AS result \
             FROM jsonb_array_elements($1 -> 'rows') WITH ORDINALITY AS line (value, ordinal) \
         ), part (name, value, level) AS ( \
             SELECT 'the run without its rows', to_jsonb(run), 0 FROM run \
             UNION ALL \
             SELECT 'row ' || ordinal, result, 0 FROM line WHERE length(result::text) > {MOST_OF_TEXT} \
             UNION ALL \
             SELECT inner_part.*, part.level + 1 FROM part, LATERAL ( \
                 SELECT * FROM jsonb_each(CASE jsonb_typeof(part.value) WHEN 'object' THEN part.value END) \
                 UNION ALL \
                 SELECT part.name, value \
                 FROM jsonb_array_elements(CASE jsonb_typeof(part.value) WHEN 'array' THEN part.value END) \
             ) AS inner_part WHERE part.level < {MOST_LEVELS} \
         ), wrong (why) AS ( \
             SELECT 'it must have started_at, object and system_identifier as texts, args and settings as \
                 objects, leaves and rows as arrays of objects, and the status ok, failed or skipped' \
             WHERE NOT jsonb_path_exists($1, '{RESULT}') \
             UNION ALL \
             SELECT 'its started_at is more than a day in the future' FROM run \
             WHERE started_at > now() + '1 day'::interval \
             UNION ALL \
             SELECT left(name, 100) || ' is nested too deep' FROM part WHERE level = {MOST_LEVELS} \
             UNION ALL \
             SELECT left(name, 100) || ' is too long' FROM part \
             WHERE length(name) > {MOST_OF_TEXT} OR CASE \
                 WHEN jsonb_typeof(value) IN ('object', 'array') \
                 THEN octet_length(value::text) > {MOST_OF_PART} \
                 ELSE length(value #>> '{{}}') > {MOST_OF_TEXT} END \
             LIMIT 1 \
         ), stored AS ( \
             INSERT INTO {schema}.io_probe_runs ({columns}, label) SELECT {columns}, $2 FROM run \
             WHERE NOT EXISTS (SELECT FROM wrong) RETURNING id \
         ), lines AS ( \
             INSERT INTO {schema}.io_probe_results (run_id, ordinal, result) \
             SELECT stored.id, line.ordinal, line.result FROM stored, line \
         ) \
         SELECT why FROM wrong UNION ALL SELECT id::text FROM stored"
    );
    let arguments = [result.clone().into(), label.into(), DatumWithOid::null_oid(probe.row_type)];
    let answer = settings::with(&settings::OWN_FORMS, || {
        tables.write(&statement, &arguments, |rows| rows.one_text().unwrap_or_default())
    });
    answer.parse().map_err(|_| answer)
}

/// Deletes the runs that started longer ago than `keep`, and returns how many there were; and the rows of
/// runs that are gone.
pub(crate) fn delete_older(keep: SqlInterval) -> i64 {
    let tables = Tables::find();
    let schema = &tables.schema;
    // In one statement none of its parts sees what another has deleted.
    let statement = format!(
        "WITH old AS (DELETE FROM {schema}.io_probe_runs WHERE started_at < now() - $1 RETURNING id), \
         kept AS (SELECT id FROM {schema}.io_probe_runs EXCEPT SELECT id FROM old), \
         orphans AS ( \
             DELETE FROM {schema}.io_probe_results \
             WHERE NOT EXISTS (SELECT FROM kept WHERE kept.id = io_probe_results.run_id) \
         ) \
         SELECT count(*) FROM old"
    );
    tables.write(&statement, &[DatumWithOid::from(keep.0)], StatementRows::one_bigint)
}
