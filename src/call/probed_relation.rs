//! A relation that is being measured, the device below it, and the sessions that wait for it.

use std::ops::Range;

use io_probe_core::engine::{self, Opened};
use io_probe_core::files::{RelationFiles, page_cache};
use io_probe_core::machine::account::Account;
use io_probe_core::machine::device::{self, Placement, Roots};
use io_probe_core::machine::observer::Observer;
use pgrx::pg_sys;

use super::probe::Probe;
use super::{Call, Failure, Outcome, admission, stop_if};
use crate::error::{Error, Result};
use crate::gucs;
use crate::pg::backend::descriptors::Reserved;
use crate::pg::backend::interrupts::Interrupts;
use crate::pg::storage::buffers;
use crate::pg::storage::relation::Relation;

pub(crate) struct ProbedRelation {
    pub(crate) relation: Relation,
    pub(crate) source: RelationFiles,
    pub(crate) placement: Placement,
    pub(crate) roots: Roots,
    /// Does the file system keep a cache of its own, so that it can't be told what comes from there?
    has_own_cache: bool,
    /// Note of blocks that one might look for here, and that are elsewhere.
    apart: Option<String>,
    /// Looks for sessions that wait for it.
    pub(crate) interrupts: Interrupts,
    _descriptors: Reserved,
}

impl ProbedRelation {
    /// Opens a relation to read it, for a call of this probe that has begun.
    pub(crate) fn open(rel: pg_sys::Oid, probe: Probe) -> Result<Self> {
        let relation = Relation::open_to_read(rel, probe.function())?;
        relation.check_is_built()?;
        let source = relation.source().ok_or_else(|| {
            Error::undefined_relation(format!("relation \"{}\" has no files", relation.name()))
        })?;
        let roots = Roots::default();
        let placement = device::locate(&relation.directory(), &roots);
        let has_own_cache = page_cache::is_own_at(&relation.directory());
        let interrupts = Interrupts::of(relation.locked());
        let _descriptors = Reserved::of(&source);
        let apart = relation.toast_note();
        Ok(Self { relation, source, placement, roots, has_own_cache, apart, interrupts, _descriptors })
    }

    /// Notes for any row about it.
    pub(crate) fn notes(&self) -> impl Iterator<Item = &String> {
        let no_device = self.placement.notes.iter().filter(|_| self.placement.leaves.is_empty());
        no_device.chain(&self.apart)
    }

    /// Refuses where reads are not known to come from the device.
    pub(crate) fn reads_of_device(&self) -> Outcome<()> {
        if self.has_own_cache { Err(Failure::Unsupported(page_cache::OWN_CACHE.to_owned())) } else { Ok(()) }
    }

    /// Watches the devices below it, and this account if that tells what came from them.
    pub(crate) fn observer(&self, account: Account) -> Observer<'_> {
        let account = if self.has_own_cache { Account::Unknown } else { account };
        Observer::new(account, &self.placement.leaves, &self.roots)
    }

    /// Refuses if others keep its device busier than the cap on that allows.
    pub(crate) fn check_admitted(&self) -> Result<()> {
        admission::admit(&self.placement, &self.roots)
    }

    /// How far the kernel reads ahead in its files, in bytes. Where that is not known it is taken as 4 MiB,
    /// which few windows exceed.
    pub(crate) fn readahead_window(&self) -> u64 {
        self.placement.read_ahead_kb.unwrap_or(4 << 10) << 10
    }

    pub(crate) fn block_size(&self) -> u64 {
        self.source.block_size().into()
    }

    /// An engine of `depth` slots of `request` bytes. At a depth over 1 it is what `pg_io_probe.engine` says,
    /// which is an error where the kernel does not allow it.
    pub(crate) fn engine(depth: u32, request: u64) -> Result<Opened> {
        let wanted = gucs::engine().filter(|_| depth > 1);
        Ok(engine::open(wanted, depth as usize, request as usize)?)
    }

    /// Evicts `blocks` from shared buffers, and the segments that they lie in from the OS cache. What stays,
    /// a probe will count. Not from a cache of the file system's own: see `reads_of_device`.
    pub(crate) fn evict(&self, call: &Call, blocks: Range<u64>) -> Outcome<()> {
        let mut should_stop = || call.should_stop(&self.interrupts);
        stop_if(buffers::evict_blocks(&self.relation, &blocks, &mut should_stop))?;
        Ok(self.source.evict(blocks, &mut should_stop, &mut |_| ())?)
    }

    /// Evicts the whole relation. What others use of it is written, too.
    pub(crate) fn evict_all(&self, call: &Call) -> Outcome<()> {
        let mut should_stop = || call.should_stop(&self.interrupts);
        stop_if(buffers::flush_and_evict(&self.relation, &mut should_stop))?;
        Ok(self.source.evict(0..self.source.blocks(), &mut should_stop, &mut |_| ())?)
    }
}
