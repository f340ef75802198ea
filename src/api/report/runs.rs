//! What a report reads of the runs of probes, in the form in which `io_probe_record` stores them: some
//! columns of the probes' rows. One that an older catalog lacks has its default.

use serde::Deserialize;
use serde_json::{Map, Value};

/// A run of a probe, with the rows `R`.
#[derive(Deserialize)]
pub(super) struct ReportedRun<R> {
    pub(super) status: String,
    pub(super) message: Option<String>,
    #[serde(flatten)]
    pub(super) circumstances: Circumstances,
    pub(super) rows: Vec<R>,
}

/// The circumstances of a run.
#[derive(Deserialize)]
pub(super) struct Circumstances {
    pub(super) own_bytes: Option<u64>,
    pub(super) other_bytes: Option<u64>,
    pub(super) steal_pct: Option<f64>,
    pub(super) host: Option<String>,
    pub(super) datname: Option<String>,
    pub(super) server_version: Option<String>,
    pub(super) in_recovery: bool,
    pub(super) started_at: String,
    pub(super) relation: Option<ReportedRelation>,
}

/// The relation that a run read.
#[derive(Deserialize)]
pub(super) struct ReportedRelation {
    pub(super) schemaname: String,
    pub(super) relname: String,
    pub(super) rel_bytes: Option<u64>,
}

/// A row of `io_probe_device`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ReportedPlace {
    pub(super) object: String,
    pub(super) spcname: Option<String>,
    pub(super) device: Option<String>,
    pub(super) scheduler: Option<String>,
    pub(super) read_ahead_kb: Option<u64>,
    pub(super) fs_type: Option<String>,
    pub(super) model: Option<String>,
    pub(super) write_cache: Option<String>,
}

/// A row of `io_probe_seqscan`, `io_probe_depth` or `io_probe_sync`: each has some of these columns.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ReportedFigure {
    pub(super) path: String,
    pub(super) mib_s: Option<f64>,
    pub(super) block_us: Option<f64>,
    pub(super) device_pct: Option<f64>,
    /// NULL of a scan by the server.
    pub(super) depth: Option<u32>,
    pub(super) iops: Option<f64>,
    pub(super) best: Option<bool>,
    pub(super) method: String,
    pub(super) write_kb: u32,
    pub(super) op_us: Option<f64>,
    pub(super) in_use: Option<bool>,
    pub(super) ci_low: Option<f64>,
    pub(super) ci_high: Option<f64>,
    pub(super) p50_us: Option<f64>,
    pub(super) p99_us: Option<f64>,
    pub(super) doubt: Option<String>,
}

impl ReportedFigure {
    pub(super) fn interval(&self) -> (Option<f64>, Option<f64>) {
        (self.ci_low, self.ci_high)
    }
}

/// A row of `io_probe_recommend`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ReportedAdvice {
    pub(super) name: Option<String>,
    pub(super) setting: String,
    pub(super) current: Option<String>,
    pub(super) recommended: Option<String>,
    pub(super) low: Option<String>,
    pub(super) high: Option<String>,
    pub(super) applies: String,
    pub(super) statement: Option<String>,
    pub(super) hides: Option<String>,
    pub(super) why: String,
    pub(super) doubt: Option<String>,
    pub(super) evidence: Map<String, Value>,
}
