//! What a run cost the hardware: the kernel's account of reads, and the devices' own counters, looked at
//! before and after.
//!
//! The device counters hold everyone's requests. Ours are told apart by bytes only: the account
//! knows no requests.

use std::convert::Infallible;
use std::time::Duration;

use serde::Serialize;

use crate::machine::account::{Account, AccountTally, Lost, own_written_bytes};
use crate::machine::cpu::CpuTimes;
use crate::machine::device::{Activity, Counters, Leaf, Roots};
use crate::machine::disturbance::{self, DISTURBING};
use crate::run::budget::{self, Stop};
use crate::run::clock::{Clock, Monotonic};

/// What is looked at: an account and the devices.
pub struct Observer<'a> {
    account: Account,
    leaves: &'a [Leaf],
    roots: &'a Roots,
}

/// What one look has found.
pub struct Snapshot {
    at: u64,
    tally: AccountTally,
    counters: Vec<Option<Counters>>,
}

impl Snapshot {
    /// Wraps `should_stop`, and looks now and then at the processes that read for us: what was seen of one
    /// that ends is known.
    pub fn following<'l>(
        &'l mut self,
        mut should_stop: impl FnMut() -> Option<Stop> + 'l,
    ) -> impl FnMut() -> Option<Stop> + 'l {
        move || {
            self.tally.follow_now_and_then();
            should_stop()
        }
    }
}

/// What happened between two looks.
#[derive(Debug, Clone)]
pub struct IoDelta {
    /// Bytes fetched from storage in our account.
    pub fetched: Result<u64, Lost>,
    /// What the devices did, for us and for everyone else; None where one has no counters.
    pub activity: Option<Activity>,
}

/// What went on beside a run, independent of what the run did and tells of itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Surroundings {
    /// Bytes that the run read and wrote.
    pub own_bytes: Option<u64>,
    /// Bytes that the devices moved beyond these. Of a run that wrote, bytes read only: its writes bring
    /// others with them, as those of the journal.
    pub other_bytes: Option<u64>,
    /// Share of the machine's CPU time that the hypervisor gave to others, in percent.
    pub steal_pct: Option<f64>,
}

impl Surroundings {
    /// Did others take a share that counts? False where that is not known; of a run that wrote, only others'
    /// reads are.
    pub fn is_disturbed(&self) -> bool {
        is_disturbed(self.own_bytes, self.other_bytes)
    }
}

fn is_disturbed(own_bytes: Option<u64>, other_bytes: Option<u64>) -> bool {
    let [own, others] = [own_bytes, other_bytes].map(|bytes| bytes.map(|n| n as f64));
    disturbance::taken(own, others) > DISTURBING
}

impl<'a> Observer<'a> {
    /// Watches an account and the devices below a directory.
    pub fn new(account: Account, leaves: &'a [Leaf], roots: &'a Roots) -> Self {
        Self { account, leaves, roots }
    }

    /// Looks now.
    pub fn look(&self) -> Snapshot {
        Snapshot { at: Monotonic.now(), tally: AccountTally::begin(self.account), counters: self.counters() }
    }

    fn counters(&self) -> Vec<Option<Counters>> {
        self.leaves.iter().map(|leaf| leaf.counters(self.roots)).collect()
    }

    /// Waits, at most a tenth of a second, until the devices have nothing in flight.
    pub fn settle(&self) {
        const PATIENCE: Duration = Duration::from_millis(100);
        const NAP: Duration = Duration::from_millis(2);
        let busy = |leaf: &Leaf| leaf.counters(self.roots).is_some_and(|c| c.in_flight > 0);
        let mut is_busy = || Ok::<bool, Infallible>(self.leaves.iter().any(busy));
        let Ok(()) = budget::wait_while(PATIENCE, NAP, &mut is_busy);
    }

    /// Does `work`, and tells what went on beside it.
    pub fn beside<T>(&self, work: impl FnOnce() -> T) -> (T, Surroundings) {
        let (before, written, cpu) = (self.look(), own_written_bytes(), CpuTimes::read(self.roots));
        let done = work();
        let delta = self.since(&before);
        let written = own_written_bytes().zip(written).map(|(now, before)| now.saturating_sub(before));
        let moved = delta.activity.as_ref().zip(written).map(|(activity, written)| {
            activity.reads.bytes + if written == 0 { activity.writes.bytes } else { 0 }
        });
        let fetched = delta.fetched_bytes();
        let shares = CpuTimes::read(self.roots).zip(cpu).and_then(|(now, before)| now.since(&before));
        let surroundings = Surroundings {
            own_bytes: fetched.zip(written).map(|(fetched, written)| fetched + written),
            other_bytes: moved.zip(fetched).map(|(moved, fetched)| moved.saturating_sub(fetched)),
            steal_pct: shares.map(|shares| shares.steal_pct),
        };
        (done, surroundings)
    }

    /// What happened since `earlier`.
    pub fn since(&self, earlier: &Snapshot) -> IoDelta {
        let elapsed_ms = (Monotonic.now() - earlier.at) as f64 / 1e6;
        let activities: Option<Vec<Activity>> = self
            .counters()
            .iter()
            .zip(&earlier.counters)
            .map(|(now, earlier)| now.as_ref()?.since(earlier.as_ref()?, elapsed_ms))
            .collect();
        IoDelta { fetched: earlier.tally.bytes(), activity: activities.and_then(Activity::sum) }
    }
}

impl IoDelta {
    /// This and what happened later, together.
    pub fn then(self, later: IoDelta) -> IoDelta {
        IoDelta {
            fetched: self.fetched.and_then(|bytes| Ok(bytes + later.fetched?)),
            activity: self.activity.zip(later.activity).map(|(a, b)| a.then(b)),
        }
    }

    /// Bytes fetched from storage in our account; None where that is not known.
    pub fn fetched_bytes(&self) -> Option<u64> {
        self.fetched.ok()
    }

    /// Bytes that the devices moved beyond what we fetched: everyone else's reads, and all writes.
    pub fn other_bytes(&self) -> Option<u64> {
        let activity = self.activity.as_ref()?;
        Some((activity.reads.bytes + activity.writes.bytes).saturating_sub(self.fetched_bytes()?))
    }

    /// Did others take a share that counts? False where that is not known.
    pub fn is_disturbed(&self) -> bool {
        is_disturbed(self.fetched_bytes(), self.other_bytes())
    }
}
