//! What the history says of stored runs: figures of two sides and of the runs before them, settings that
//! differ, and the last runs of each series.
//!
//! Read with the caller's rights. Tables and views are found through the extension, not through search_path,
//! under which the queries see nothing but the server's own functions and operators.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::MOST_OF_TEXT;
use super::tables::Tables;
use crate::pg::backend::names;
use crate::pg::settings;

/// Most runs before the compared ones that count, of each series and configuration. Older ones tell less of
/// the present noise.
const MOST_EARLIER: u32 = 30;

/// As many where labels are compared, the labels' own runs included: these are of many series.
const MOST_EARLIER_OF_LABEL: u32 = 20;

/// Most runs of a label that count, of each series.
const MOST_OF_LABEL: u32 = 50;

/// Arguments but for those that change nothing, as in the column `series` of io_probe_runs.
const ARGUMENTS: &str = "(SELECT CASE WHEN plain -> 'options' = '{}' THEN plain - 'options' ELSE plain END \
     FROM (VALUES (args - 'seed' #- '{options,wait}' #- '{options,seed}')) AS given (plain))";

/// What the names of arguments that differ begin with.
const ARGUMENT: &str = "argument ";

/// Each argument and option of a run by its name: an imported one may have any number of them.
const EACH_ARGUMENT: &str = "(SELECT left(key, 60) AS key, left(value, 100) AS value FROM (
         SELECT own.* FROM jsonb_each_text(args - '{options,seed}'::text[]) AS own
         UNION ALL
         SELECT own.* FROM jsonb_each_text(CASE jsonb_typeof(args -> 'options') WHEN 'object'
                                  THEN (args -> 'options') - '{wait,seed}'::text[] ELSE '{}' END) AS own
         LIMIT 30
     ) AS given)";

pub(crate) enum Sides<'a> {
    Runs(i64, i64),
    /// The runs of two labels, of each pair of series with the same probe, object and arguments. Their
    /// databases and clusters may be others: a table may have moved.
    Labels(&'a str, &'a str),
    /// All runs of two labels, of each probe and object of which a label has arguments that the other lacks.
    OtherArguments(&'a str, &'a str),
}

#[derive(Debug, Deserialize)]
pub(crate) struct StoredRun {
    pub(crate) id: i64,
    pub(crate) probe: String,
    pub(crate) status: String,
    pub(crate) message: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RunSide {
    A,
    B,
    /// Neither: it ran before the later of them, with the series and configuration of one.
    Past,
}

/// A figure in the runs of one side, one series and one configuration, in the order of time.
#[derive(Debug, Deserialize)]
pub(crate) struct Values {
    /// Names the series of two sides that are compared with each other.
    pub(crate) pair: String,
    pub(crate) whose: RunSide,
    #[serde(flatten)]
    pub(crate) metric: Metric,
    /// The row of the probe, from 1.
    pub(crate) ordinal: i64,
    pub(crate) series: String,
    pub(crate) runs: Vec<RunValue>,
}

/// A figure in one run.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct RunValue {
    id: i64,
    /// When it started, in seconds.
    pub(crate) at: f64,
    pub(crate) value: f64,
    /// See `io_probe_metrics.error`.
    pub(crate) error: Option<f64>,
    /// What its row, or else its run, says of others: bytes of its own, and of everyone else.
    pub(crate) own_bytes: Option<f64>,
    pub(crate) other_bytes: Option<f64>,
    /// See `io_probe_runs.steal_pct`.
    pub(crate) steal_pct: Option<f64>,
}

/// A [`RunValue`], of the rows `found` and `line` of a run `chosen`.
const RUN_VALUE: &str = "jsonb_build_object('id', chosen.id, 'at', extract(epoch FROM chosen.started_at), \
     'value', found.value, 'error', found.error, 'own_bytes', line.own_bytes, 'other_bytes', \
         line.other_bytes, \
     'steal_pct', line.steal_pct)";

/// Does the server work as the row `own` of a figure `found` did? Its path leads through the OS cache, whose
/// own path is measured beside it.
const IN_USE: &str = "CASE found.probe
         WHEN 'sync' THEN (own.result ->> 'in_use')::bool
         WHEN 'readahead' THEN own.result ->> 'mode' = 'kernel'
         WHEN 'seqscan' THEN own.result ->> 'path' <> 'os'
         WHEN 'random' THEN own.result ->> 'path' <> 'os'
         ELSE true END";

/// What else is known of the row of a figure `found`, and of its run, whose share of steal may be NaN. Bytes
/// are left out for a ping: it has so few that any others are many.
fn line(schema: &str) -> String {
    format!(
        "LATERAL (
             SELECT {}, {}, CASE WHEN run.steal_pct BETWEEN 0 AND 100 THEN run.steal_pct END AS steal_pct,
                    {IN_USE} AS in_use
             FROM {schema}.io_probe_runs AS run, {schema}.io_probe_results AS own
             WHERE run.id = found.run_id AND own.run_id = found.run_id AND own.ordinal = found.ordinal
         ) AS line",
        bytes("device_bytes", "own_bytes"),
        bytes("other_bytes", "other_bytes")
    )
}

/// A number of bytes, from where the probe has it: its row, or its run.
fn bytes(of_row: &str, of_run: &str) -> String {
    format!(
        "CASE WHEN found.probe IN ('seqscan', 'random', 'readahead')
              THEN (own.result ->> '{of_row}')::float8
              WHEN found.probe IN ('depth', 'page_cost', 'sync', 'write', 'mix', 'sustain', 'report')
              THEN run.{of_run} END AS {of_run}"
    )
}

/// The first rows of a stored report, as JSON; None if there is no such run.
pub(crate) fn report_lines(run: i64, most: usize) -> Option<Vec<String>> {
    let schema = Tables::find().schema;
    let query = format!(
        "SELECT result::text FROM {schema}.io_probe_results AS line \
         WHERE run_id = $1 AND EXISTS (SELECT FROM {schema}.io_probe_runs AS run \
             WHERE run.id = line.run_id AND probe = 'report' AND status = 'ok') ORDER BY ordinal LIMIT {most}"
    );
    let rows: Vec<String> = names::rows(&query, &[run.into()]);
    (!rows.is_empty()).then_some(rows)
}

/// What a stored run of iostat saw of a device, in the mean: requests a second, and bytes of each.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct WatchedLoad {
    pub(crate) r_s: f64,
    pub(crate) r_bytes: f64,
    pub(crate) w_s: f64,
    pub(crate) w_bytes: f64,
    /// Flushes; None where the kernel did not count them.
    pub(crate) f_s: Option<f64>,
}

/// What this stored run saw of this device; None if it is no run of iostat, or saw nothing of it.
pub(crate) fn watched_load(run: i64, device: &str) -> Option<WatchedLoad> {
    let schema = Tables::find().schema;
    let query = format!(
        "WITH line AS (
             SELECT (result ->> 'elapsed_ms')::float8 AS ms, (result ->> 'r_s')::float8 AS r_s,
                 (result ->> 'rareq_kb')::float8 AS r_kb, (result ->> 'w_s')::float8 AS w_s,
                 (result ->> 'wareq_kb')::float8 AS w_kb, (result ->> 'f_s')::float8 AS f_s
             FROM {schema}.io_probe_results AS line
             WHERE run_id = $1 AND result ->> 'device' = $2 AND result ->> 'r_s' IS NOT NULL AND EXISTS (
                 SELECT FROM {schema}.io_probe_runs AS run
                 WHERE run.id = line.run_id AND probe = 'iostat' AND status = 'ok'))
         SELECT jsonb_build_object('r_s', {}, 'w_s', {}, 'r_bytes', {}, 'w_bytes', {},
             'f_s', CASE WHEN count(f_s) > 0 THEN {} END)
             FROM line HAVING sum(ms) > 0",
        bounded("sum(r_s * ms) / sum(ms)"),
        bounded("sum(w_s * ms) / sum(ms)"),
        bounded("1024 * sum(r_s * ms * r_kb) / nullif(sum(r_s * ms), 0)"),
        bounded("1024 * sum(w_s * ms * w_kb) / nullif(sum(w_s * ms), 0)"),
        bounded("sum(f_s * ms) / sum(ms)"),
    );
    names::rows(&query, &[run.into(), device.into()]).pop()
}

/// A figure of stored rows, which may hold anything, as a number that JSON has; NULL is 0.
fn bounded(expression: &str) -> String {
    format!("least(greatest(coalesce({expression}, 0), 0), 1e12)")
}

/// Sorts by time. Done here, since the server would sort each group by itself, twice.
fn sort_by_time(runs: &mut [RunValue]) {
    runs.sort_by(|one, other| one.at.total_cmp(&other.at).then(one.id.cmp(&other.id)));
}

/// A figure, see `io_probe_metrics`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Metric {
    pub(crate) probe: String,
    pub(crate) object: String,
    pub(crate) item: String,
    pub(crate) metric: String,
    pub(crate) unit: String,
    pub(crate) more_is_better: bool,
}

/// A circumstance that is not the same on both sides.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Difference {
    pub(crate) name: String,
    pub(crate) a: Option<String>,
    pub(crate) b: Option<String>,
    /// Its probe and object; None if there are several.
    pub(crate) probe: Option<String>,
    pub(crate) object: Option<String>,
}

impl Difference {
    /// Is it an argument?
    pub(crate) fn is_argument(&self) -> bool {
        self.name.starts_with(ARGUMENT)
    }

    /// May it be of what such runs measured?
    pub(crate) fn is_of(&self, probe: &str, object: &str) -> bool {
        self.probe.as_ref().is_none_or(|own| own == probe)
            && self.object.as_ref().is_none_or(|own| own == object)
    }
}

/// A figure in the last runs of a series, and in those before them.
#[derive(Debug, Deserialize)]
pub(crate) struct Recent {
    #[serde(flatten)]
    pub(crate) metric: Metric,
    /// The row of the probe, from 1.
    pub(crate) ordinal: i64,
    pub(crate) now: Vec<RunValue>,
    pub(crate) before: Vec<RunValue>,
    /// Does the server work in this way?
    pub(crate) in_use: bool,
    /// When the first of the last runs started, in microseconds since 2000-01-01 00:00 UTC, and the number of
    /// the last.
    pub(crate) since: i64,
    pub(crate) run_id: i64,
}

impl Recent {
    /// Where it stands among the rows.
    pub(crate) fn place(&self) -> impl Ord {
        let Metric { probe, object, item, metric, .. } = &self.metric;
        (probe, object, self.run_id, self.ordinal, metric, item)
    }
}

pub(crate) fn runs(ids: &[i64]) -> Vec<StoredRun> {
    let ids: Vec<String> = ids.iter().map(i64::to_string).collect();
    ask(|schema| {
        format!(
            "SELECT id, probe, status, message FROM {schema}.io_probe_runs WHERE id IN ({})",
            ids.join(", ")
        )
    })
}

/// An argument of a run.
#[derive(Debug, Deserialize)]
pub(crate) struct RunArgument {
    pub(crate) run_id: i64,
    pub(crate) name: String,
    pub(crate) value: Option<String>,
}

/// The arguments of these runs.
pub(crate) fn arguments(ids: &[i64]) -> Vec<RunArgument> {
    let ids: Vec<String> = ids.iter().map(i64::to_string).collect();
    ask(|schema| {
        format!(
            "SELECT id AS run_id, argument.key AS name, argument.value
             FROM {schema}.io_probe_runs, LATERAL {EACH_ARGUMENT} AS argument
             WHERE id = ANY ('{{{}}}')",
            ids.join(",")
        )
    })
}

/// Has a run that succeeded this label?
pub(crate) fn has_label(label: &str) -> bool {
    let label = pgrx::spi::quote_literal(label);
    let found: Vec<serde_json::Value> = ask(|schema| {
        format!("SELECT FROM {schema}.io_probe_runs WHERE label = {label} AND status = 'ok' LIMIT 1")
    });
    !found.is_empty()
}

impl Sides<'_> {
    /// CTEs of which the last is `sides`: the runs of both, and which of them belong together.
    fn query(&self, schema: &str) -> String {
        match self {
            Sides::Runs(a, b) => format!(
                "WITH sides AS ({} UNION ALL {})",
                side_of_run(schema, *a, 'a'),
                side_of_run(schema, *b, 'b')
            ),
            Sides::Labels(a, b) => format!(
                // A series that both have is compared with itself: of servers of unequal speed the means
                // of all would differ as soon as one has more runs.
                "WITH RECURSIVE {}, {}, of_both AS (
                     SELECT series FROM series_a INTERSECT SELECT series FROM series_b
                 ), paired AS (
                     SELECT CASE WHEN series = ANY (ARRAY(SELECT series FROM of_both))
                                 THEN series ELSE pair END AS pair,
                            whose, {SIDE_COLUMNS}
                     FROM (SELECT * FROM runs_a UNION ALL SELECT * FROM runs_b) AS run
                 ), sides AS (
                     SELECT * FROM paired WHERE pair = ANY (ARRAY(
                         SELECT pair FROM paired WHERE whose = 'a'
                         INTERSECT SELECT pair FROM paired WHERE whose = 'b'))
                 )",
                series_of_label(schema, a, 'a'),
                series_of_label(schema, b, 'b')
            ),
            Sides::OtherArguments(a, b) => format!(
                "WITH RECURSIVE {}, {}, of_both AS (
                     SELECT pair FROM runs_a INTERSECT SELECT pair FROM runs_b
                 ), measured AS (
                     SELECT hashtextextended(concat_ws(E'\\n', probe, object), 0)::text AS same,
                            own.pair AS own, own.whose, run.*
                     FROM (SELECT * FROM runs_a UNION ALL SELECT * FROM runs_b) AS own
                     JOIN {schema}.io_probe_runs AS run USING (id)
                 ), sides AS (
                     SELECT same AS pair, whose, {SIDE_COLUMNS} FROM measured WHERE same = ANY (ARRAY(
                         SELECT same FROM measured WHERE own <> ALL (ARRAY(SELECT pair FROM of_both))
                         INTERSECT SELECT same FROM measured WHERE whose = 'a'
                         INTERSECT SELECT same FROM measured WHERE whose = 'b'))
                 )",
                series_of_label(schema, a, 'a'),
                series_of_label(schema, b, 'b')
            ),
        }
    }

    /// The figures of both, and of the runs before the later of them.
    pub(crate) fn figures(&self) -> Vec<Values> {
        // The runs of a label say themselves how much they differ.
        let wanted = match self {
            Sides::Runs(..) => MOST_EARLIER.to_string(),
            _ => format!("{MOST_EARLIER_OF_LABEL} - count(*)"),
        };
        let mut values: Vec<Values> = ask(|schema| {
            format!(
                "{}, kinds AS (
                     SELECT pair, series, configuration,
                            max(max(started_at)) OVER (PARTITION BY pair) AS until,
                            {wanted} AS wanted
                     FROM sides GROUP BY pair, series, configuration
                 ), chosen AS (
                     SELECT * FROM sides
                     UNION ALL
                     SELECT kinds.pair, 'past', kinds.series, kinds.configuration, past.started_at, past.id
                     FROM kinds, LATERAL (
                         SELECT run.started_at, run.id FROM {schema}.io_probe_runs AS run
                         WHERE run.status = 'ok' AND run.series = kinds.series
                           AND run.configuration = kinds.configuration AND run.started_at < kinds.until
                           AND run.id NOT IN (SELECT sides.id FROM sides)
                         ORDER BY run.started_at DESC, run.id DESC LIMIT greatest(kinds.wanted, 0)
                     ) AS past
                 )
                 SELECT chosen.pair, chosen.whose, chosen.series, found.probe, found.object, found.item,
                        found.metric, found.unit, found.more_is_better, min(found.ordinal) AS ordinal,
                        jsonb_agg({RUN_VALUE}) AS runs
                 FROM chosen, LATERAL (
                     SELECT * FROM {schema}.io_probe_metrics AS metrics WHERE metrics.run_id = chosen.id
                 ) AS found, {}
                 GROUP BY chosen.pair, chosen.whose, chosen.series, chosen.configuration, found.probe,
                          found.object, found.item, found.metric, found.unit, found.more_is_better",
                self.query(schema),
                line(schema)
            )
        });
        values.iter_mut().for_each(|values| sort_by_time(&mut values.runs));
        values
    }

    /// What differs of the circumstances. Where a side has several values, they are all there.
    pub(crate) fn differences(&self) -> Vec<Difference> {
        ask(|schema| {
            format!(
                "{}, examples AS (
                     SELECT DISTINCT ON (sides.pair, sides.whose, sides.series, sides.configuration)
                            sides.pair, sides.whose, run.*
                     FROM sides JOIN {schema}.io_probe_runs AS run ON run.id = sides.id
                     ORDER BY sides.pair, sides.whose, sides.series, sides.configuration,
                              sides.started_at DESC, sides.id DESC
                 ), facts AS (
                     SELECT pair, whose, probe, object, fact.place, fact.name, fact.value
                     FROM examples, LATERAL (
                         VALUES (1, 'object', object), (3, 'host', host),
                                (4, 'system_identifier', system_identifier), (5, 'datname', datname),
                                (6, 'in_recovery', in_recovery::text), (7, 'kernel', kernel),
                                (8, 'server_version', server_version), (9, 'pg_io_probe', version),
                                (10, 'spcname', spcname),
                                (11, 'device', device), (12, 'model', model)
                         UNION ALL
                         SELECT 2, '{ARGUMENT}' || argument.key, argument.value
                         FROM {EACH_ARGUMENT} AS argument
                         UNION ALL
                         SELECT 13, leaf.key, leaf.value
                         FROM jsonb_array_elements(leaves) AS each_leaf, jsonb_each_text(each_leaf) AS leaf
                         WHERE leaf.key NOT IN ('device', 'model')
                         UNION ALL
                         SELECT 14, setting.key, setting.value FROM jsonb_each_text(settings) AS setting
                     ) AS fact (place, name, value)
                 ), told AS (
                     SELECT pair, min(probe) AS probe, max(object) FILTER (WHERE whose = 'b') AS object,
                            min(place) AS place, name,
                            {} AS a, {} AS b
                     FROM facts GROUP BY pair, name
                 )
                 SELECT name, a, b, CASE WHEN min(probe) = max(probe) THEN min(probe) END AS probe,
                        CASE WHEN min(object) = max(object) THEN min(object) END AS object
                 FROM told WHERE a IS DISTINCT FROM b
                 GROUP BY name, a, b ORDER BY min(place), name, min(probe), min(object)",
                self.query(schema),
                values_of('a'),
                values_of('b')
            )
        })
    }
}

const SIDE_COLUMNS: &str = "series, configuration, started_at, id";

fn side_of_run(schema: &str, id: i64, side: char) -> String {
    format!(
        "SELECT '' AS pair, '{side}' AS whose, {SIDE_COLUMNS} FROM {schema}.io_probe_runs WHERE id = {id}"
    )
}

/// CTEs of a label's series, found one after the other by the index, and of their runs. What belongs together
/// is hashed, since each figure has it.
fn series_of_label(schema: &str, label: &str, side: char) -> String {
    let label = pgrx::spi::quote_literal(label);
    let of_label = format!("FROM {schema}.io_probe_runs WHERE label = {label} AND status = 'ok'");
    format!(
        "series_{side} (series) AS (
             (SELECT series {of_label} ORDER BY series LIMIT 1)
             UNION ALL
             SELECT (SELECT io_probe_runs.series {of_label} AND io_probe_runs.series > last.series
                     ORDER BY io_probe_runs.series LIMIT 1)
             FROM series_{side} AS last WHERE last.series IS NOT NULL
         ), runs_{side} AS (
             SELECT run.* FROM series_{side} AS last, LATERAL (
                 SELECT hashtextextended(concat_ws(E'\\n', probe, object, {ARGUMENTS}), 0)::text AS pair,
                        '{side}' AS whose, {SIDE_COLUMNS}
                 {of_label} AND io_probe_runs.series = last.series
                 ORDER BY started_at DESC, id DESC LIMIT {MOST_OF_LABEL}
             ) AS run
         )"
    )
}

/// The values of a circumstance on one side, cut to the length of a stored text: there may be many.
fn values_of(side: char) -> String {
    format!(
        "left(string_agg(DISTINCT value, ', ' ORDER BY value) FILTER (WHERE whose = '{side}'), \
             {MOST_OF_TEXT})"
    )
}

/// The `last` latest runs of each series, and up to [`MOST_EARLIER`] before them.
pub(crate) fn recent(last: u32) -> Vec<Recent> {
    with_earlier(|schema| {
        format!(
            "each (series) AS (
                 (SELECT series FROM {schema}.io_probe_runs WHERE status = 'ok' ORDER BY series LIMIT 1)
                 UNION ALL
                 SELECT (SELECT other.series FROM {schema}.io_probe_runs AS other
                         WHERE other.status = 'ok' AND other.series > each.series
                         ORDER BY other.series LIMIT 1)
                 FROM each WHERE each.series IS NOT NULL
             ), ranked AS (
                 SELECT run.*, row_number() OVER latest <= {last} AS now,
                        first_value(run.id) OVER latest AS run_id
                 FROM each, LATERAL (
                     SELECT found.series, found.started_at, found.id FROM {schema}.io_probe_runs AS found
                     WHERE found.status = 'ok' AND found.series = each.series
                     ORDER BY found.started_at DESC, found.id DESC LIMIT {last} + {MOST_EARLIER}
                 ) AS run
                 WINDOW latest AS (PARTITION BY run.series ORDER BY run.started_at DESC, run.id DESC)
             )"
        )
    })
}

/// This run, and up to [`MOST_EARLIER`] of its series before it.
pub(crate) fn run_and_earlier(run: i64) -> Vec<Recent> {
    with_earlier(|schema| {
        format!(
            "ranked AS (
                 SELECT found.id, found.started_at, found.id = run.id AS now, run.id AS run_id
                 FROM {schema}.io_probe_runs AS run, {schema}.io_probe_runs AS found
                 WHERE run.id = {run} AND found.status = 'ok' AND found.series = run.series
                       AND (found.started_at, found.id) <= (run.started_at, run.id)
                 ORDER BY found.started_at DESC, found.id DESC LIMIT 1 + {MOST_EARLIER}
             )"
        )
    })
}

/// The figures of runs and of those before them. The last of these CTEs is `ranked`: each run with whether
/// it is one of the last (`now`), and with the last one of its series (`run_id`).
fn with_earlier(ranked: impl FnOnce(&str) -> String) -> Vec<Recent> {
    let mut recent: Vec<Recent> = ask(|schema| {
        format!(
            "WITH RECURSIVE {}, chosen AS (
                 SELECT id, started_at, now, run_id,
                        min(started_at) FILTER (WHERE now) OVER (PARTITION BY run_id) AS since FROM ranked
             )
             SELECT found.probe, found.object, found.item, found.metric, found.unit, found.more_is_better,
                    min(found.ordinal) AS ordinal,
                    coalesce(jsonb_agg({RUN_VALUE}) FILTER (WHERE chosen.now), '[]') AS now,
                    coalesce(jsonb_agg({RUN_VALUE}) FILTER (WHERE NOT chosen.now), '[]') AS before,
                    coalesce(bool_or(line.in_use) FILTER (WHERE chosen.now), bool_or(line.in_use), false)
                        AS in_use,
                    chosen.run_id,
                    (extract(epoch FROM chosen.since - '2000-01-01 00:00 UTC'::timestamptz) * 1000000)::int8
                        AS since
             FROM chosen, LATERAL (
                 SELECT * FROM {schema}.io_probe_metrics AS metrics WHERE metrics.run_id = chosen.id OFFSET 0
             ) AS found, {}
             GROUP BY chosen.run_id, chosen.since, found.probe, found.object, found.item, found.metric,
                      found.unit, found.more_is_better",
            ranked(schema),
            line(schema)
        )
    });
    for figure in &mut recent {
        sort_by_time(&mut figure.now);
        sort_by_time(&mut figure.before);
    }
    recent
}

/// The rows of a query about the extension's objects, which are in this schema.
fn ask<T: DeserializeOwned>(query: impl FnOnce(&str) -> String) -> Vec<T> {
    let plain = [
        // Some runs out of many, by their indexes: the planner can't know that they are so few. To compile
        // such a query takes longer than to run it.
        (c"enable_hashjoin", "off"),
        (c"enable_mergejoin", "off"),
        (c"jit", "off"),
    ];
    let query = format!("SELECT row_to_json(row) FROM ({}) AS row", query(&Tables::find().schema));
    settings::with(&plain, || names::rows(&query, &[]))
}
