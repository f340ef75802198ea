//! The probes: what each is called, which further rights it may need, and what a stored run of it is about.

use super::named::NamedEnum;

/// A probe, by the number under which it reports its progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Probe {
    Seqscan,
    Random,
    RandomSeries,
    Depth,
    Ping,
    Sync,
    Readahead,
    PageCost,
    Recommend,
    Iostat,
    IostatQuery,
    Device,
    Counters,
    Cache,
    Evict,
}

/// What a stored run is about where the call names no relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// All that the server uses.
    Server,
    /// The WAL, or the tablespace that the arguments name.
    WalOrTablespace,
    /// Nothing: runs of it can't be stored.
    Never,
}

const PREFIX: &str = "io_probe_";

/// The probe, its function, what of it needs the right to evict, and to write (each the beginning of a
/// DETAIL), and what its stored runs are about.
type ProbeFacts = (Probe, &'static str, &'static str, &'static str, Recorded);

const COLD: &str = "cold => true needs";

/// In the order of the numbers.
#[rustfmt::skip]
const TABLE: [ProbeFacts; 15] = [
    (Probe::Seqscan, "io_probe_seqscan", COLD, "", Recorded::Server),
    (Probe::Random, "io_probe_random", COLD, "", Recorded::Server),
    (Probe::RandomSeries, "io_probe_random_series", COLD, "", Recorded::Server),
    (Probe::Depth, "io_probe_depth", "", "", Recorded::Server),
    (Probe::Ping, "io_probe_ping", "", "The modes that write need", Recorded::Server),
    (Probe::Sync, "io_probe_sync", "", "", Recorded::WalOrTablespace),
    (Probe::Readahead, "io_probe_readahead", "io_probe_readahead needs", "", Recorded::Server),
    (Probe::PageCost, "io_probe_page_cost", "cold needs", "", Recorded::Server),
    (Probe::Recommend, "io_probe_recommend", COLD, "writes => true needs", Recorded::Server),
    (Probe::Iostat, "io_probe_iostat", "", "", Recorded::Server),
    (Probe::IostatQuery, "io_probe_iostat_query", "", "", Recorded::Server),
    (Probe::Device, "io_probe_device", "", "", Recorded::Server),
    (Probe::Counters, "io_probe_counters", "", "", Recorded::Server),
    (Probe::Cache, "io_probe_cache", "", "", Recorded::Server),
    (Probe::Evict, "io_probe_evict", "", "", Recorded::Never),
];

const ALL: [Probe; TABLE.len()] = {
    let mut all = [Probe::Seqscan; TABLE.len()];
    let mut number = 0;
    while number < TABLE.len() {
        all[number] = TABLE[number].0;
        assert!(all[number] as usize == number, "the table is in the order of the numbers");
        number += 1;
    }
    all
};

impl NamedEnum for Probe {
    const WHAT: (&'static str, &'static str) = ("probe", "probes");
    const ALL: &'static [Probe] = &ALL;

    fn name(self) -> &'static str {
        &self.function()[PREFIX.len()..]
    }
}

impl Probe {
    fn line(self) -> &'static ProbeFacts {
        &TABLE[self as usize]
    }

    /// The function that SQL calls.
    pub(crate) fn function(self) -> &'static str {
        self.line().1
    }

    /// The one whose rows have all columns; a probe whose rows are short has none.
    pub(crate) fn function_of_all_columns(self) -> String {
        format!("{}_full", self.function())
    }

    /// What of it needs the right to evict.
    pub(super) fn evicting(self) -> &'static str {
        self.line().2
    }

    /// What of it needs the right to write.
    pub(super) fn writing(self) -> &'static str {
        self.line().3
    }

    /// What its stored runs are about.
    pub(crate) fn recorded(self) -> Recorded {
        self.line().4
    }

    /// Those of which runs can be stored, the only ones that can be called by their name.
    pub(crate) fn recordable() -> Vec<Self> {
        ALL.into_iter().filter(|probe| probe.recorded() != Recorded::Never).collect()
    }

    /// The name of the one that reports under this number.
    pub(crate) fn name_of(number: i64) -> Option<&'static str> {
        Some(ALL.get(usize::try_from(number).ok()?)?.name())
    }
}
