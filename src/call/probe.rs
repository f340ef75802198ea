//! The probes: what each is called, which further rights it may need, and what a stored run of it is about.

use super::named::NamedEnum;
use crate::pg::backend::progress::WaitEvent;

/// What a stored run is about where the call names no relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// All that the server uses.
    Server,
    /// The WAL, or the tablespace that the arguments name.
    WalOrTablespace,
    /// The largest table that the caller may read.
    LargestTable,
    /// Nothing: runs of it can't be stored.
    Never,
}

const PREFIX: &str = "io_probe_";

/// A probe's function, what of it needs the right to evict, and to write (each the beginning of a DETAIL),
/// and what its stored runs are about.
type ProbeFacts = (&'static str, &'static str, &'static str, Recorded);

const COLD: &str = "cold => true needs";

macro_rules! probes {
    ($($probe:ident = $facts:expr;)+) => {
        /// A probe, by the number under which it reports its progress.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Probe { $($probe),+ }

        const ALL: &[Probe] = &[$(Probe::$probe),+];

        impl Probe {
            fn facts(self) -> ProbeFacts {
                match self { $(Probe::$probe => $facts),+ }
            }
        }
    };
}

#[rustfmt::skip]
probes! {
    Seqscan = ("io_probe_seqscan", COLD, "", Recorded::Server);
    Random = ("io_probe_random", COLD, "", Recorded::Server);
    Depth = ("io_probe_depth", "", "", Recorded::Server);
    Ping = ("io_probe_ping", "", "The modes that write need", Recorded::Server);
    Sync = ("io_probe_sync", "", "", Recorded::WalOrTablespace);
    Write = ("io_probe_write", "", "io_probe_write needs", Recorded::WalOrTablespace);
    Mix = ("io_probe_mix", "", "io_probe_mix needs", Recorded::Server);
    Sustain = ("io_probe_sustain", "", "", Recorded::Server);
    Readahead = ("io_probe_readahead", "io_probe_readahead needs", "", Recorded::Server);
    PageCost = ("io_probe_page_cost", "cold needs", "", Recorded::Server);
    Recommend = ("io_probe_recommend", COLD, "writes => true needs", Recorded::Server);
    Report = ("io_probe_report", COLD, "writes => true needs", Recorded::LargestTable);
    Iostat = ("io_probe_iostat", "", "", Recorded::Server);
    Device = ("io_probe_device", "", "", Recorded::Server);
    Cache = ("io_probe_cache", "", "", Recorded::Server);
    Evict = ("io_probe_evict", "", "", Recorded::Never);
    Correlation = ("io_probe_correlation", "", "", Recorded::Never);
    Sessions = ("io_probe_sessions", "", "", Recorded::Never);
}

impl NamedEnum for Probe {
    const WHAT: (&'static str, &'static str) = ("probe", "probes");
    const ALL: &'static [Probe] = ALL;

    fn name(self) -> &'static str {
        &self.function()[PREFIX.len()..]
    }
}

impl Probe {
    /// The function that SQL calls.
    pub(crate) fn function(self) -> &'static str {
        self.facts().0
    }

    /// The function whose rows have all columns; a probe whose rows are short has none.
    pub(crate) fn function_of_all_columns(self) -> String {
        format!("{}_full", self.function())
    }

    /// What of it needs the right to evict.
    pub(super) fn evicting(self) -> &'static str {
        self.facts().1
    }

    /// What of it needs the right to write.
    pub(super) fn writing(self) -> &'static str {
        self.facts().2
    }

    /// What its stored runs are about.
    pub(crate) fn recorded(self) -> Recorded {
        self.facts().3
    }

    /// What it waits for on a path, as others see it.
    pub(super) fn waits_for(self) -> WaitEvent {
        if matches!(self, Probe::Sync | Probe::Write) { WaitEvent::Syncs } else { WaitEvent::Reads }
    }

    /// The probes of which runs can be stored, the only ones that can be called by their name.
    pub(crate) fn recordable() -> Vec<Self> {
        ALL.iter().copied().filter(|probe| probe.recorded() != Recorded::Never).collect()
    }

    /// The name of the probe that reports under this number.
    pub(crate) fn name_of(number: i64) -> Option<&'static str> {
        Some(ALL.get(usize::try_from(number).ok()?)?.name())
    }
}
