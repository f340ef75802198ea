//! The tablespaces that there is advice for, and the relations to measure there.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use io_probe_core::machine::device::{self, Placement, Roots};
use pgrx::pg_sys;

use super::row::{RecommendRow, Setting};
use crate::call::named::NamedEnum;
use crate::call::probe::Probe;
use crate::call::{Call, Failure, ProbedRelation};
use crate::error::Result;
use crate::pg::catalog::facts::{self, SettingValue};
use crate::pg::storage::relation::{Fork, Held, Relation};
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

/// What a row says of a relation that is gone.
pub(super) const GONE: &str = "not measured: meanwhile the table was dropped, or the right to read it taken";

/// Why no table was measured.
const LOCKED: &str = "not measured: others hold strong locks on the tablespace's tables";

/// A tablespace.
pub(super) struct TablespaceTarget {
    pub(super) spcname: String,
    /// Settings of its own, as `setting=value`.
    pub(super) options: Vec<String>,
    /// The devices below it.
    pub(super) placement: Placement,
    /// Relations to measure, the largest first: 8 MiB and more, and the caller may read them.
    pub(super) relations: Vec<Candidate>,
    /// Why there are no relations, if so.
    why_none: String,
    /// The relation that the call names.
    pub(super) named: Option<pg_sys::Oid>,
}

impl TablespaceTarget {
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
            why_none.push_str("not measured: the relation has less than 8 MiB, which is too little to tell");
        }
        let options = facts::tablespace_options(&spcname);
        Self { spcname, options, placement: probed.placement, relations, why_none, named: Some(rel) }
    }

    /// Each tablespace that holds user tables, by name; if there are none, that of the database.
    pub(super) fn of_user_tables() -> Vec<Self> {
        let mut found: BTreeMap<String, Vec<Candidate>> = BTreeMap::new();
        facts::user_tables(|table| {
            let bytes = if table.may_probe { table.bytes() } else { 0 };
            let largest = found.entry(table.spcname).or_default();
            if bytes >= LEAST_BYTES {
                largest.push(Candidate { oid: table.oid, bytes });
                largest.sort_by_key(|candidate| (Reverse(candidate.bytes), candidate.oid.to_u32()));
                largest.truncate(MOST_RELATIONS);
            }
        });
        if found.is_empty() {
            found.insert(Tablespace::own().name().unwrap_or_default(), Vec::new());
        }
        let (objects, roots) = (facts::objects(), Roots::default());
        let of_tablespace = |(spcname, relations)| {
            let object = objects.iter().find(|object| object.tablespace.as_ref() == Some(&spcname));
            Self {
                options: facts::tablespace_options(&spcname),
                placement: object.map(|object| device::locate(&object.directory, &roots)).unwrap_or_default(),
                relations,
                why_none: "not measured: the tablespace has no table of 8 MiB or more that you may read"
                    .to_owned(),
                named: None,
                spcname,
            }
        };
        found.into_iter().map(of_tablespace).collect()
    }

    /// The row of a setting that it may have of its own.
    pub(super) fn row(&self, setting: Setting) -> RecommendRow {
        RecommendRow::of_tablespace(setting, &self.spcname, &self.options, self.setting(setting))
    }

    /// The value of a setting that it may have of its own; if it has not, the server's counts there.
    pub(super) fn setting(&self, setting: Setting) -> Option<SettingValue> {
        let name = setting.name();
        let own = self.options.iter().find_map(|option| option.strip_prefix(name)?.strip_prefix('='));
        own.map(SettingValue::of_tablespace).or_else(|| facts::setting(name))
    }

    /// Opens one of its relations if the call has time left. The inner Err says why it is not measured. Where
    /// the call names none, that is no ERROR: other tablespaces are measured all the same.
    pub(super) fn open(
        &self,
        call: &Call,
        relation: Candidate,
    ) -> Result<std::result::Result<Option<ProbedRelation>, String>> {
        if let Some(stop) = call.ended() {
            return Ok(Err(stop.to_string()));
        }
        // A session that holds the probe lock waits for no other lock.
        let Some(_held) = Held::take(relation.oid) else { return Ok(Err(LOCKED.to_owned())) };
        let probed = match ProbedRelation::open(relation.oid, Fork::Main, Probe::Recommend) {
            Ok(probed) => probed,
            // By now the relation is gone, or the right to read it.
            Err(_) if self.named.is_none() => return Ok(Ok(None)),
            Err(error) => return Err(error),
        };
        if let Err(Failure::Unsupported(why)) = probed.reads_of_device() {
            return Ok(Err(format!("not measured: {why}")));
        }
        match probed.check_admitted() {
            Ok(()) => Ok(Ok(Some(probed))),
            Err(refusal) if self.named.is_none() => Ok(Err(refusal.as_note())),
            Err(refusal) => Err(refusal),
        }
    }

    /// All relations that no strong lock keeps from us right now, the largest first.
    pub(super) fn free_relations(&self) -> impl Iterator<Item = Candidate> {
        let is_free = |relation: &&Candidate| Relation::is_free(relation.oid);
        self.relations.iter().filter(is_free).copied()
    }

    /// Why there is none that can be measured now.
    pub(super) fn why_none(&self) -> &str {
        if self.relations.is_empty() { &self.why_none } else { LOCKED }
    }

    /// The relation that a row says it was measured on: `relation`, or else the one that the call names.
    pub(super) fn used(&self, relation: Option<Candidate>) -> Option<pg_sys::Oid> {
        relation.map(|relation| relation.oid).or(self.named)
    }
}
