//! What a run cost the hardware: the kernel's account of reads, and the devices' own counters, looked at
//! before and after.
//!
//! The device counters hold everyone's requests. Ours are told apart by bytes only: the account
//! knows no requests.

use std::convert::Infallible;
use std::time::Duration;

use serde::Serialize;

use crate::machine::account::{Account, AccountTally, Lost, own_written_bytes};
use crate::machine::cgroup::{BURSTS_EVERY, Cgroup, IoLimit, QuotaPeriods};
use crate::machine::cpu::CpuTimes;
use crate::machine::device::{Activity, BlockDevice, Counters, Leaf, Roots};
use crate::machine::disturbance::{self, DISTURBING};
use crate::run::budget::{self, Stop};
use crate::run::clock::{Clock, Monotonic};

/// What is looked at: an account, the devices, and what holds the server back from them.
pub struct Observer<'a> {
    account: Account,
    leaves: &'a [Leaf],
    /// How many of these our own writes go to.
    written: usize,
    roots: &'a Roots,
    cgroup: Cgroup,
    /// The devices that the control group limits.
    limited: Vec<LimitedDevice>,
}

/// A device that the control group limits: one of the leaves, or one above them.
struct LimitedDevice {
    device: BlockDevice,
    limits: Vec<IoLimit>,
    /// Share of the leaves that stand below it.
    share: f64,
}

/// What one look has found.
pub struct Snapshot {
    at: u64,
    tally: AccountTally,
    written: Option<u64>,
    counters: Vec<Option<Counters>>,
    limited: Vec<Option<Counters>>,
    quotas: Vec<QuotaPeriods>,
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
    /// Bytes that this process has caused to be written; None where the kernel does not tell.
    pub written: Option<u64>,
    /// What the devices did, for us and for everyone else; None where one has no counters.
    pub activity: Option<Activity>,
    /// What the server's control group held back.
    pub held_back: HeldBack,
}

/// What the server's control group held back between two looks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldBack {
    /// Each limit that the devices came near, for our sake.
    pub limits: Vec<IoLimit>,
    /// Periods of each quota of CPU time, from the group's own up.
    pub quotas: Vec<QuotaPeriods>,
}

impl HeldBack {
    /// This and what was held back later.
    pub fn then(mut self, later: Self) -> Self {
        let new: Vec<IoLimit> =
            later.limits.into_iter().filter(|limit| !self.limits.contains(limit)).collect();
        self.limits.extend(new);
        self.quotas.resize(self.quotas.len().max(later.quotas.len()), QuotaPeriods::default());
        for (quota, later) in self.quotas.iter_mut().zip(later.quotas) {
            *quota = quota.then(later);
        }
        self
    }

    /// Periods of the quota that was used up most often, if it was short.
    pub fn short_quota(&self) -> Option<QuotaPeriods> {
        self.quotas.iter().copied().max_by_key(|quota| quota.used_up).filter(|quota| quota.is_short())
    }

    /// Says so, if it was short.
    pub fn quota_sentence(&self) -> Option<String> {
        let QuotaPeriods { all, used_up } = self.short_quota()?;
        Some(format!("the cgroup of the server used up its CPU quota in {used_up} of {all} periods"))
    }
}

/// What went on beside a run, independent of what the run did and tells of itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Surroundings {
    /// Bytes that the run read and wrote.
    pub own_bytes: Option<u64>,
    /// Bytes that the devices moved beyond these. Of a run that wrote, writes count only beyond
    /// [`OWN_WRITES_MAKE`] times its own, which bring others with them.
    pub other_bytes: Option<u64>,
    /// Share of the machine's CPU time that the hypervisor gave to others, in percent.
    pub steal_pct: Option<f64>,
    /// What the server's control group held back.
    #[serde(skip)]
    pub held_back: HeldBack,
}

impl Surroundings {
    /// Did others take a share that counts? False where that is not known.
    pub fn is_disturbed(&self) -> bool {
        is_disturbed(self.own_bytes, self.other_bytes)
    }
}

/// A byte that a process writes makes each device below write this many at most: journals, parity, metadata
/// that is written anew with each block and twice over.
pub const OWN_WRITES_MAKE: u64 = 10;

fn is_disturbed(own_bytes: Option<u64>, other_bytes: Option<u64>) -> bool {
    let [own, others] = [own_bytes, other_bytes].map(|bytes| bytes.map(|n| n as f64));
    disturbance::taken(own, others) > DISTURBING
}

/// Between two looks whether all is done.
const NAP: Duration = Duration::from_millis(2);

impl<'a> Observer<'a> {
    /// Watches an account and the devices below a directory.
    pub fn new(account: Account, leaves: &'a [Leaf], roots: &'a Roots) -> Self {
        let cgroup = Cgroup::find(roots);
        let limited = limited_devices(&cgroup, leaves, roots);
        Self { account, leaves, written: leaves.len(), roots, cgroup, limited }
    }

    /// As this one, but of these devices, of which we write to so many.
    pub fn of<'l>(&self, leaves: &'l [Leaf], written: usize) -> Observer<'l>
    where
        'a: 'l,
    {
        Observer { written, ..Observer::new(self.account, leaves, self.roots) }
    }

    /// How many devices are watched.
    pub fn devices(&self) -> usize {
        self.leaves.len()
    }

    /// Looks now.
    pub fn look(&self) -> Snapshot {
        // The counters last, as the moment counts for them; they are the first that is looked at again.
        Snapshot {
            tally: AccountTally::begin(self.account),
            written: own_written_bytes(),
            quotas: self.cgroup.quota_periods(),
            limited: self.limited_counters(),
            at: Monotonic.now(),
            counters: self.counters(),
        }
    }

    fn counters(&self) -> Vec<Option<Counters>> {
        self.leaves.iter().map(|leaf| leaf.counters(self.roots)).collect()
    }

    fn limited_counters(&self) -> Vec<Option<Counters>> {
        self.limited.iter().map(|limited| limited.device.counters()).collect()
    }

    fn limits(&self) -> impl Iterator<Item = &IoLimit> {
        self.limited.iter().flat_map(|limited| &limited.limits)
    }

    /// Waits, at most a tenth of a second, until the devices have nothing in flight.
    pub fn settle(&self) {
        const PATIENCE: Duration = Duration::from_millis(100);
        let Ok(()) = budget::wait_while(PATIENCE, NAP, &mut || Ok::<bool, Infallible>(self.is_busy()));
    }

    /// Waits, at most half a second, until what the kernel reads ahead has arrived, as `is_arriving` tells: a
    /// request that a control group holds back is not in flight yet. Then settles.
    ///
    /// # Errors
    /// Those of `is_arriving`.
    pub fn settle_after(&self, is_arriving: &mut dyn FnMut() -> crate::Result<bool>) -> crate::Result<()> {
        const PATIENCE: Duration = Duration::from_millis(500);
        budget::wait_while(PATIENCE, NAP, is_arriving)?;
        self.settle();
        Ok(())
    }

    /// Does the server's control group limit reads of one of the devices?
    pub fn limits_reads(&self) -> bool {
        self.limits().any(IoLimit::is_of_reads)
    }

    /// Bytes that the limits on reads let through at once, in requests of this size; 0 without a limit and
    /// 16 MiB at most: more would take too long to wait for.
    pub fn burst(&self, request: u64) -> u64 {
        const MOST: u64 = 16 << 20;
        let of_device = self.limited.iter().filter_map(|limited| {
            let of_reads = limited.limits.iter().filter(|limit| limit.is_of_reads());
            of_reads.map(|limit| limit.burst_bytes(request)).min()
        });
        of_device.fold(0, u64::saturating_add).min(MOST)
    }

    /// The limits on reads that so many requests and bytes a second come near, if all leaves have a like part
    /// of them.
    pub fn limits_near(&self, requests: f64, bytes: f64) -> Vec<IoLimit> {
        let of_device = self.limited.iter().flat_map(|LimitedDevice { limits, share, .. }| {
            let of_reads = limits.iter().filter(|limit| limit.is_of_reads());
            of_reads.filter(move |limit| limit.is_near(requests * share, bytes * share))
        });
        of_device.cloned().collect()
    }

    /// From one burst to the next that a limit on reads lets through; zero without one.
    pub fn bursts_every(&self) -> Duration {
        if self.limits_reads() { BURSTS_EVERY } else { Duration::ZERO }
    }

    fn is_busy(&self) -> bool {
        let mut counters = self.leaves.iter().filter_map(|leaf| leaf.counters(self.roots));
        counters.any(|counters| counters.in_flight > 0)
    }

    /// Does `work`, and tells what went on beside it.
    pub fn beside<T>(&self, work: impl FnOnce() -> T) -> (T, Surroundings) {
        let (before, cpu) = (self.look(), CpuTimes::read(self.roots));
        let done = work();
        let delta = self.since(&before);
        let written = delta.written;
        let most_of_own = OWN_WRITES_MAKE * self.written as u64;
        let moved = delta.activity.as_ref().zip(written).map(|(activity, written)| {
            activity.reads.bytes + activity.writes.bytes.saturating_sub(written.saturating_mul(most_of_own))
        });
        let fetched = delta.fetched_bytes();
        let shares = CpuTimes::read(self.roots).zip(cpu).and_then(|(now, before)| now.since(&before));
        let surroundings = Surroundings {
            own_bytes: fetched.zip(written).map(|(fetched, written)| fetched + written),
            other_bytes: moved.zip(fetched).map(|(moved, fetched)| moved.saturating_sub(fetched)),
            steal_pct: shares.map(|shares| shares.steal_pct),
            held_back: delta.held_back,
        };
        (done, surroundings)
    }

    /// What happened since `earlier`.
    pub fn since(&self, earlier: &Snapshot) -> IoDelta {
        let elapsed_ms = (Monotonic.now() - earlier.at) as f64 / 1e6;
        let of_leaves = activities(&self.counters(), &earlier.counters, elapsed_ms);
        let of_limited = activities(&self.limited_counters(), &earlier.limited, elapsed_ms);
        let fetched = earlier.tally.bytes();
        let written = own_written_bytes().zip(earlier.written).map(|(now, then)| now.saturating_sub(then));
        let limits = self.limits_reached(&of_limited, fetched.ok(), written);
        let quotas = self.cgroup.quota_periods().into_iter().zip(&earlier.quotas);
        let quotas = quotas.map(|(now, then)| now.since(*then)).collect();
        let held_back = HeldBack { limits, quotas };
        let activity = of_leaves.into_iter().collect::<Option<Vec<Activity>>>().and_then(Activity::sum);
        IoDelta { fetched, written, activity, held_back }
    }

    /// The limits that the devices came near, if it was we who read or wrote.
    fn limits_reached(
        &self,
        activities: &[Option<Activity>],
        fetched: Option<u64>,
        written: Option<u64>,
    ) -> Vec<IoLimit> {
        let own = |limit: &IoLimit| if limit.is_of_reads() { fetched } else { written };
        let of_device = self.limited.iter().zip(activities).filter_map(|(limited, activity)| {
            let activity = activity.as_ref()?;
            Some(limited.limits.iter().filter(|limit| limit.held_back(activity, own(limit))).cloned())
        });
        of_device.flatten().collect()
    }
}

/// What the devices did between two looks at their counters; None of one without counters.
fn activities(now: &[Option<Counters>], then: &[Option<Counters>], elapsed_ms: f64) -> Vec<Option<Activity>> {
    let pairs = now.iter().zip(then);
    pairs.map(|(now, then)| now.as_ref()?.since(then.as_ref()?, elapsed_ms)).collect()
}

/// The leaves and the devices above them, each once, as far as the control group limits them.
fn limited_devices(cgroup: &Cgroup, leaves: &[Leaf], roots: &Roots) -> Vec<LimitedDevice> {
    let mut names: Vec<&String> = Vec::new();
    for name in leaves.iter().flat_map(|leaf| leaf.above.iter().chain([&leaf.name])) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let limited = names.into_iter().filter_map(|name| {
        let device = BlockDevice::find(name, roots)?;
        let limits = cgroup.io_limits(name, device.number_in_cgroups()?);
        let below = leaves.iter().filter(|leaf| leaf.name == *name || leaf.above.contains(name)).count();
        let share = below as f64 / leaves.len() as f64;
        (!limits.is_empty()).then_some(LimitedDevice { device, limits, share })
    });
    limited.collect()
}

impl IoDelta {
    /// This and what happened later, together.
    pub fn then(self, later: IoDelta) -> IoDelta {
        IoDelta {
            fetched: self.fetched.and_then(|bytes| Ok(bytes + later.fetched?)),
            written: self.written.zip(later.written).map(|(a, b)| a + b),
            activity: self.activity.zip(later.activity).map(|(a, b)| a.then(b)),
            held_back: self.held_back.then(later.held_back),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::device::fixture::Fixture;

    /// A machine with a disk, and a control group that limits reads of it and has a quota of CPU time.
    fn limited() -> Fixture {
        let fixture = Fixture::new();
        fixture.mounts(&["30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"]);
        fixture.file("proc/self/cgroup", "0::/pg").file("sys/fs/cgroup/pg/cgroup.events", "");
        fixture.file("sys/fs/cgroup/pg/io.max", "8:0 riops=3000").disk("sda", "8:0");
        fixture.file("sys/fs/cgroup/pg/cpu.max", "15000 100000");
        fixture.file("sys/fs/cgroup/pg/cpu.stat", "nr_periods 10\nnr_throttled 10");
        fixture.attribute("sda", "stat", "1 0 8 1 0 0 0 0 0 1 1");
        fixture
    }

    #[test]
    fn what_held_the_server_back_is_seen_between_two_looks() {
        let fixture = limited();
        let roots = fixture.roots();
        let leaves = [Leaf { name: "sda".to_owned(), ..Leaf::default() }];
        let observer = Observer::new(Account::Unknown, &leaves, &roots);
        assert!(observer.limits_reads());
        assert_eq!((observer.burst(8192), observer.burst(1 << 20)), (300 * 8192, 16 << 20));
        let before = observer.look();
        let nothing = HeldBack { limits: Vec::new(), quotas: vec![QuotaPeriods::default()] };
        assert_eq!(observer.since(&before).held_back, nothing);
        // Within a moment, as many as in an hour.
        fixture.attribute("sda", "stat", "9000000 0 72000000 1 0 0 0 0 0 1 1");
        fixture.file("sys/fs/cgroup/pg/cpu.stat", "nr_periods 117\nnr_throttled 109");
        let held_back = observer.since(&before).held_back;
        let sentences: Vec<&str> = held_back.limits.iter().map(|limit| &*limit.sentence).collect();
        assert_eq!(
            sentences,
            ["the cgroup of the server limits reads of sda to 3000 requests per second (io.max)"]
        );
        let twice = held_back.clone().then(held_back);
        assert_eq!((twice.limits.len(), &*twice.quotas), (1, &[QuotaPeriods { all: 214, used_up: 198 }][..]));
        assert_eq!(
            twice.quota_sentence().as_deref(),
            Some("the cgroup of the server used up its CPU quota in 198 of 214 periods")
        );
        let (_, surroundings) = observer.beside(|| {
            fixture.file("sys/fs/cgroup/pg/cpu.stat", "nr_periods 217\nnr_throttled 110");
        });
        assert_eq!(surroundings.held_back.quota_sentence(), None);
        // Periods in which nobody had to wait count, too.
        let before = observer.look();
        fixture.file("sys/fs/cgroup/pg/cpu.stat", "nr_periods 300\nnr_throttled 110");
        assert_eq!(observer.since(&before).held_back.quotas, [QuotaPeriods { all: 83, used_up: 0 }]);
    }

    #[test]
    fn a_limit_on_a_device_made_of_others_counts_what_goes_through_it() {
        let fixture = limited();
        fixture
            .file("sys/fs/cgroup/pg/io.max", "254:0 rbps=1048576")
            .disk("sdb", "8:16")
            .disk("dm-0", "254:0");
        fixture.slave("dm-0", "sda").slave("dm-0", "sdb");
        for name in ["sda", "sdb", "dm-0"] {
            fixture.attribute(name, "stat", "1 0 8 1 0 0 0 0 0 1 1");
        }
        let leaves = fixture.resolve("/", "254:0").leaves;
        let roots = fixture.roots();
        let observer = Observer::new(Account::Unknown, &leaves, &roots);
        assert_eq!(observer.limits_near(1.0, 800_000.0).len(), 1);
        assert_eq!(observer.limits_near(1.0, 700_000.0), []);
        let before = observer.look();
        fixture.attribute("sda", "stat", "9000000 0 72000000 1 0 0 0 0 0 1 1");
        assert_eq!(observer.since(&before).held_back.limits, []);
        fixture.attribute("dm-0", "stat", "9000000 0 72000000 1 0 0 0 0 0 1 1");
        let limits = observer.since(&before).held_back.limits;
        let sentence = "the cgroup of the server limits reads of dm-0 to 1 MiB/s (io.max)";
        assert_eq!(limits.iter().map(|limit| &*limit.sentence).collect::<Vec<_>>(), [sentence]);
        // Each of two mirrors has a half of the reads.
        fixture.file("sys/fs/cgroup/pg/io.max", "8:16 rbps=1048576");
        let observer = Observer::new(Account::Unknown, &leaves, &roots);
        assert_eq!(observer.limits_near(1.0, 1_600_000.0).len(), 1);
        assert_eq!(observer.limits_near(1.0, 1_400_000.0), []);
    }

    #[test]
    fn a_limit_that_others_use_up_holds_nothing_of_ours_back() {
        let fixture = limited();
        let roots = fixture.roots();
        let leaves = [Leaf { name: "sda".to_owned(), ..Leaf::default() }];
        let observer = Observer::new(Account::Own, &leaves, &roots);
        let before = observer.look();
        fixture.attribute("sda", "stat", "9000000 0 72000000 1 0 0 0 0 0 1 1");
        assert_eq!(observer.since(&before).held_back.limits, []);
    }

    #[test]
    fn it_waits_until_what_was_read_ahead_has_arrived() {
        let roots = Fixture::new().roots();
        let mut looks = 0;
        let mut is_arriving = || {
            looks += 1;
            Ok(looks < 4)
        };
        Observer::new(Account::Own, &[], &roots).settle_after(&mut is_arriving).expect("settled");
        assert_eq!(looks, 4);
    }
}
