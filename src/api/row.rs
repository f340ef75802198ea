//! What rows of several families share: whether to trust a row, what the device saw, whose figures they are.

use io_probe_core::machine::account::Account;
use io_probe_core::machine::device::{Activity, Leaf, Placement};
use io_probe_core::machine::observer::IoDelta;
use io_probe_core::run::budget::Stop;
use serde::Serialize;

use crate::call::arguments::figure;
use crate::call::{Attempt, ProbedRelation};
use crate::pg::backend::server;

/// Can the figures of a row be trusted?
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    #[default]
    Ok,
    /// Not all that was wanted could be had.
    Partial,
    /// They contradict each other, or are not what was to be measured.
    Void,
    /// Nothing can be measured here.
    Unsupported,
}

/// Can a row be trusted, and what is there to know about it?
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Verdict {
    pub(super) status: Status,
    pub(super) notes: Vec<String>,
}

impl Verdict {
    /// One short sentence.
    pub(super) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// The file system can't do it.
    pub(super) fn refuse(&mut self, why: String) {
        self.status = Status::Unsupported;
        self.note(why);
    }

    /// Not all that was wanted could be had.
    pub(super) fn partial(&mut self, why: &str) {
        self.status = Status::Partial;
        self.note(why);
    }

    /// What was measured; if nothing was, it says why.
    pub(super) fn accept<T>(&mut self, attempt: Attempt<T>) -> Option<T> {
        match attempt {
            Attempt::Measured(measured) => return Some(measured),
            Attempt::NotBegun(stop) => self.not_begun(stop),
            Attempt::Unsupported(why) => self.refuse(why),
        }
        None
    }

    /// The call came too late to begin.
    pub(super) fn not_begun(&mut self, why: Stop) {
        self.partial(&why.to_string());
    }

    /// It read what it could until something from outside ended it, or a bound of its own.
    pub(super) fn stopped(&mut self, why: Stop) {
        if why.is_for_all() {
            self.status = Status::Partial;
        }
        self.note(why.to_string());
    }

    /// What there is to know of the devices' figures.
    pub(super) fn note_device(&mut self, cost: &IoDelta) {
        if cost.activity.as_ref().is_some_and(Activity::util_is_doubtful) {
            self.note(UTIL_DOUBTFUL);
        }
    }

    /// The figures contradict each other.
    pub(super) fn void(&mut self, why: &str) {
        self.status = Status::Void;
        self.note(why);
    }
}

/// What the devices did meanwhile, everyone's requests included.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct DeviceFigures {
    device_ios: Option<u64>,
    pub(super) ios_per_block: Option<f64>,
    rareq_kb: Option<f64>,
    aqu_sz: Option<f64>,
    r_await_ms: Option<f64>,
    util_pct: Option<f64>,
    other_bytes: Option<u64>,
}

impl DeviceFigures {
    /// Of a run that got so many blocks from the device.
    pub(super) fn of(cost: &IoDelta, device_blocks: Option<u64>) -> Self {
        let other_bytes = cost.other_bytes();
        let Some(activity) = &cost.activity else { return Self { other_bytes, ..Self::default() } };
        Self {
            device_ios: Some(activity.reads.requests),
            ios_per_block: device_blocks
                .filter(|blocks| *blocks > 0)
                .map(|blocks| figure(activity.reads.requests as f64 / blocks as f64)),
            rareq_kb: activity.reads.request_kb().map(figure),
            r_await_ms: activity.reads.await_ms().map(figure),
            aqu_sz: activity.aqu_sz.map(figure),
            util_pct: activity.busy_pct().map(figure),
            other_bytes,
        }
    }
}

/// Whose figures these are: what to join a row by.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Identity {
    device: Option<String>,
    scheduler: Option<String>,
    read_ahead_kb: Option<u64>,
    relid: u32,
    schemaname: Option<String>,
    relname: String,
    spcname: Option<String>,
    started_at: String,
}

impl Identity {
    /// Of a row that begins now.
    pub(super) fn of(probed: &ProbedRelation) -> Self {
        let ProbedRelation { relation, placement, .. } = probed;
        Self {
            device: of_leaves(placement, |leaf| Some(&leaf.name)),
            scheduler: of_leaves(placement, |leaf| leaf.scheduler.as_deref()),
            read_ahead_kb: placement.read_ahead_kb,
            relid: relation.oid().to_u32(),
            schemaname: relation.schema(),
            relname: relation.name(),
            spcname: relation.tablespace(),
            started_at: server::now(),
        }
    }
}

/// A fact of the devices behind a directory, those of equal neighbours once.
pub(super) fn of_leaves(placement: &Placement, fact: impl Fn(&Leaf) -> Option<&str>) -> Option<String> {
    let mut facts: Vec<&str> = placement.leaves.iter().filter_map(fact).collect();
    facts.dedup();
    (!facts.is_empty()).then(|| facts.join(","))
}

/// `device_source` of what this process reads itself.
pub(super) const BACKEND: &str = "backend";
/// `device_source` of what PostgreSQL's I/O workers read, for this process and for others.
pub(super) const IO_WORKERS: &str = "io_workers";

/// `device_source` of what this account counts.
pub(super) fn device_source(account: Account) -> &'static str {
    if matches!(account, Account::With(_)) { IO_WORKERS } else { BACKEND }
}

/// What there is to know of `device_bytes` in this account.
pub(super) fn account_notes(account: Account, cost: &IoDelta) -> Vec<String> {
    let shared = matches!(account, Account::With(_)).then_some(WORKERS_SERVE_ALL);
    let ended = cost.lost_workers.then_some(WORKERS_ENDED);
    shared.into_iter().chain(ended).map(str::to_owned).collect()
}

/// Note of a row whose device was busy for longer than the row lasted.
pub(super) const UTIL_DOUBTFUL: &str = "the device's busy time exceeds the wall clock: util_pct is doubtful";
/// Note of a row whose shares are NULL.
pub(super) const TIERS_UNKNOWN: &str =
    "who served the blocks is unknown: bytes fetched and blocks missing from the OS cache don't tell";
/// A direct row is void if less of it than this, in percent, came from the device.
pub(super) const DIRECT_PCT: f64 = 99.9;
/// From this share on, in percent, one tier served all as far as five digits show.
pub(super) const ONE_TIER_PCT: f64 = 99.9995;
/// Note of a row that is void.
pub(super) const NOT_DIRECT: &str = "O_DIRECT was accepted, but not all bytes came from a block device";
/// Note of what `IO_WORKERS` means.
pub(super) const WORKERS_SERVE_ALL: &str =
    "device_bytes counts all that the I/O workers read, for other sessions too";
/// Note of a row without device_bytes.
pub(super) const WORKERS_ENDED: &str =
    "device_bytes is unknown: an I/O worker ended meanwhile, or may have, and with it its account";
/// Note of a row that a rate limit made pause.
pub(super) const RATE_LIMITED: &str = "rate-limited: iops is not what the device could give";
/// Note of a row whose few fetches all belong to what is left out.
pub(super) const TOO_FEW_BLOCKS: &str =
    "too few blocks for a rate: warm-up and the ends of the queue are left out";
