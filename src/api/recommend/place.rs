//! The tablespaces that there is advice for, and the relations to measure there.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use io_probe_core::machine::device::{self, Placement, Roots};
use pgrx::pg_sys;

use super::advice::{Found, Lacking, Recommendation, Setting};
use crate::call::{Call, NamedEnum, Probe, ProbedRelation, stop_if};
use crate::pg::catalog::facts::{self, SettingValue, UserTable, qualified_name};
use crate::pg::storage::relation::{Held, Relation};
use crate::pg::storage::tablespace::Tablespace;

/// Fewest bytes of a relation to measure: a smaller one says too little.
const LEAST_BYTES: u64 = 8 << 20;

/// Most relations of a tablespace to choose from: more are of no use.
const MOST_RELATIONS: usize = 16;

/// A relation that can be measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) oid: pg_sys::Oid,
    /// Bytes of the main fork.
    pub(super) bytes: u64,
}

const LOCKED: &str = "not measured: other sessions hold strong locks on the tablespace's tables";

pub(super) struct TablespaceTarget {
    pub(super) spcname: String,
    /// Settings of its own, and their values.
    pub(super) options: BTreeMap<String, String>,
    pub(super) placement: Placement,
    /// Relations to measure, the largest first: 8 MiB and more, and the caller may read them.
    pub(super) relations: Vec<Candidate>,
    why_none: String,
    /// The relation that the call names.
    pub(super) named: Option<pg_sys::Oid>,
}

/// The tables of a tablespace that the caller may read.
#[derive(Default)]
struct FoundTables {
    /// Those of 8 MiB and more, the largest first.
    largest: Vec<Candidate>,
    /// How many are smaller, and their bytes.
    small: (u64, u64),
    /// The largest TOAST table.
    toast: Option<Candidate>,
}

impl FoundTables {
    fn add(&mut self, table: &UserTable) {
        if !table.may_probe {
            return;
        }
        let (oid, bytes) = (table.oid, table.bytes());
        if bytes >= LEAST_BYTES {
            self.largest.push(Candidate { oid, bytes });
            self.largest.sort_by_key(|candidate| (Reverse(candidate.bytes), candidate.oid.to_u32()));
            self.largest.truncate(MOST_RELATIONS);
        } else {
            self.small = (self.small.0 + 1, self.small.1 + bytes);
        }
        let toast = table.toast.as_ref().map(|toast| Candidate { oid: toast.oid, bytes: toast.bytes() });
        self.toast = self.toast.into_iter().chain(toast).max_by_key(|toast| toast.bytes);
    }

    /// Why none can be measured, and what can be done.
    fn why_none(&self) -> String {
        let none = "not measured: the tablespace has no table of 8 MiB or more that you may read";
        if let Some(toast) = self.toast.filter(|toast| toast.bytes >= LEAST_BYTES)
            && let Some(name) = qualified_name(toast.oid)
        {
            let mib = toast.bytes >> 20;
            return format!(
                "{none}. The data is in a TOAST table of {mib} MiB, for which no queries can be planned: \
                 io_probe_page_cost('{name}') measures it"
            );
        }
        let (count, bytes) = self.small;
        if bytes < LEAST_BYTES {
            return none.to_owned();
        }
        let mib = bytes >> 20;
        format!(
            "{none}. Its {count} smaller tables have {mib} MiB together, but each is too small to be timed: \
             make one of 256 MiB there, and pass its name"
        )
    }
}

impl TablespaceTarget {
    /// The largest relation of all of them that no strong lock keeps from us; else why there is none.
    pub(super) fn largest(places: &[Self]) -> Found<(&Self, Candidate)> {
        let largest = places.iter().filter_map(|place| Some((place, place.free_relations().next()?)));
        let why = || places.first().map_or("", Self::why_none).to_owned();
        largest.max_by_key(|(_, relation)| relation.bytes).ok_or_else(|| Lacking::unknown(why()))
    }

    /// The tablespace of the relation that the call names.
    pub(super) fn of(probed: ProbedRelation) -> Self {
        let rel = probed.relation.oid();
        let spcname = probed.relation.file_tablespace().name().unwrap_or_default();
        let bytes = probed.source.blocks() * probed.block_size();
        let (mut relations, mut why_none) = (vec![Candidate { oid: rel, bytes }], String::new());
        if probed.relation.is_temporary() {
            relations.clear();
            why_none.push_str("not measured: a temporary table is read through buffers of the session's own");
        } else if bytes < LEAST_BYTES {
            relations.clear();
            why_none.push_str("not measured: the relation has less than 8 MiB, which is too little to time");
        }
        let options = facts::tablespace_options(&spcname);
        Self { spcname, options, placement: probed.placement, relations, why_none, named: Some(rel) }
    }

    /// Each tablespace that holds user tables, by name; if there are none, that of the database.
    pub(super) fn of_user_tables() -> Vec<Self> {
        let mut found: BTreeMap<String, FoundTables> = BTreeMap::new();
        facts::user_tables(|table| found.entry(table.spcname.clone()).or_default().add(&table));
        if found.is_empty() {
            found.insert(Tablespace::own().name().unwrap_or_default(), FoundTables::default());
        }
        let (objects, roots) = (facts::objects(), Roots::default());
        let places = found.into_iter().map(|(spcname, tables)| {
            let object = objects.iter().find(|object| object.tablespace.as_ref() == Some(&spcname));
            Self {
                options: facts::tablespace_options(&spcname),
                placement: object.map(|object| device::locate(&object.directory, &roots)).unwrap_or_default(),
                why_none: tables.why_none(),
                relations: tables.largest,
                named: None,
                spcname,
            }
        });
        places.collect()
    }

    /// The row of a setting that it may have of its own.
    pub(super) fn row(&self, setting: Setting) -> Recommendation {
        Recommendation::of_tablespace(setting, &self.spcname, &self.options, self.setting(setting.name()))
    }

    /// The value of a setting that it may have of its own; if it has not, the server's counts there.
    fn setting(&self, name: &str) -> Option<SettingValue> {
        self.options.get(name).map(|own| SettingValue::of_tablespace(own)).or_else(|| facts::setting(name))
    }

    pub(super) fn number(&self, setting: &str) -> Option<f64> {
        self.setting(setting)?.number()
    }

    /// Opens one of its relations if the call has time left. Where the call names none, a refusal is no
    /// ERROR: other tablespaces are measured all the same.
    pub(super) fn open(&self, call: &Call, relation: Candidate) -> Found<ProbedRelation> {
        stop_if(call.ended())?;
        // A session that holds the probe lock waits for no other lock.
        let Some(_held) = Held::take(relation.oid) else {
            return Err(Lacking::unknown(LOCKED));
        };
        let probed = match ProbedRelation::open(relation.oid, Probe::Recommend) {
            Ok(probed) => probed,
            Err(_) if self.named.is_none() => return Err(Lacking::Gone),
            Err(error) => return Err(error.into()),
        };
        probed.reads_of_device()?;
        match probed.check_admitted() {
            Ok(()) => Ok(probed),
            Err(refusal) if self.named.is_none() => Err(Lacking::unknown(refusal.as_note())),
            Err(refusal) => Err(refusal.into()),
        }
    }

    /// All relations that no strong lock keeps from us right now, the largest first.
    pub(super) fn free_relations(&self) -> impl Iterator<Item = Candidate> {
        self.relations.iter().filter(|relation| Relation::is_free(relation.oid)).copied()
    }

    pub(super) fn why_none(&self) -> &str {
        if self.relations.is_empty() { &self.why_none } else { LOCKED }
    }

    /// The relation that a row says it was measured on: `relation`, or else the one that the call names.
    pub(super) fn used(&self, relation: Option<Candidate>) -> Option<pg_sys::Oid> {
        relation.map(|relation| relation.oid).or(self.named)
    }
}
