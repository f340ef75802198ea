//! How the whole machine's CPU time was spent between two moments.
//!
//! The first line of `/proc/stat` counts, in ticks since boot and over all CPUs, the time spent in user
//! code, in the kernel, idle, and idle with I/O outstanding; the difference of two readings gives the shares.
//!
//! # Limitations and caveats
//! - It is everybody's time, not ours alone, and in most containers the host's.
//! - `iowait_pct` is a hint, not a measure of storage: it is idle time of CPUs on which a task began to wait
//!   for I/O. As soon as anything else runs there, the same wait counts as that task's time.
//! - `iowait` may decrease, and so may `idle` when a CPU goes offline. A decrease counts as 0.
//! - A tick is 10 ms on most machines: 100 a second and CPU, so short intervals give coarse shares.
//! - `guest` and `guest_nice` are left out because `user` and `nice` hold them already.
//!
//! Sources: proc_stat(5); the kernel's `Documentation/filesystems/proc.rst` (iowait), `get_idle_time` in
//! `fs/proc/stat.c` (CPUs that go offline) and `account_guest_time` in `kernel/sched/cputime.c`.

use std::fs;

use crate::machine::device::Roots;

/// CPU time since boot, summed over all CPUs, in ticks of `sysconf(_SC_CLK_TCK)` a second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// User code, guests included.
    pub user: u64,
    /// User code at a lowered priority, guests included.
    pub nice: u64,
    /// The kernel on behalf of tasks.
    pub system: u64,
    /// Nothing to do.
    pub idle: u64,
    /// Nothing to do but wait for I/O; from kernel 2.5.41 on.
    pub iowait: u64,
    /// Interrupts; from kernel 2.6.0 on.
    pub irq: u64,
    /// Softirqs; from kernel 2.6.0 on.
    pub softirq: u64,
    /// Time that the hypervisor gave to others; from kernel 2.6.11 on.
    pub steal: u64,
}

/// Shares of an interval's CPU time, in percent. Together they make 100, up to the rounding of the sum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuShares {
    /// User code at any priority, guests included.
    pub user_pct: f64,
    /// The kernel, interrupts and softirqs included.
    pub system_pct: f64,
    /// Idle with I/O outstanding.
    pub iowait_pct: f64,
    /// Idle.
    pub idle_pct: f64,
    /// Time that the hypervisor gave to others.
    pub steal_pct: f64,
}

impl CpuTimes {
    /// The first line of `/proc/stat`. `None` if it is not the line `cpu` with at least the four counters
    /// that every kernel has; those that an old kernel lacks are 0, unknown ones at the end are ignored.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.lines().next()?.split_ascii_whitespace();
        if words.next()? != "cpu" {
            return None;
        }
        let mut ticks = words.map(|word| word.parse().ok());
        let (user, nice, system, idle) = (ticks.next()??, ticks.next()??, ticks.next()??, ticks.next()??);
        let mut later = || ticks.next().unwrap_or(Some(0));
        let (iowait, irq, softirq, steal) = (later()?, later()?, later()?, later()?);
        Some(Self { user, nice, system, idle, iowait, irq, softirq, steal })
    }

    /// The counters now; `None` where the kernel does not tell.
    pub fn read(roots: &Roots) -> Option<Self> {
        Self::parse(&fs::read_to_string(roots.proc.join("stat")).ok()?)
    }

    /// The shares of the time since `earlier`; `None` if there was not a tick between the two.
    pub fn since(&self, earlier: &CpuTimes) -> Option<CpuShares> {
        let ticks = |counter: fn(&CpuTimes) -> u64| counter(self).saturating_sub(counter(earlier)) as f64;
        let user = ticks(|t| t.user) + ticks(|t| t.nice);
        let system = ticks(|t| t.system) + ticks(|t| t.irq) + ticks(|t| t.softirq);
        let (iowait, idle, steal) = (ticks(|t| t.iowait), ticks(|t| t.idle), ticks(|t| t.steal));
        let all = user + system + iowait + idle + steal;
        let share = |part: f64| 100.0 * part / all;
        (all > 0.0).then(|| CpuShares {
            user_pct: share(user),
            system_pct: share(system),
            iowait_pct: share(iowait),
            idle_pct: share(idle),
            steal_pct: share(steal),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EARLIER: &str = "cpu  100 10 50 1000 40 5 5 2 7 0\ncpu0 100 10 50 1000 40 5 5 2 7 0\nintr 12 3\n";
    const LATER: &str = "cpu  160 20 80 1080 50 7 8 7 67 9\ncpu0 160 20 80 1080 50 7 8 7 67 9\nintr 12 3\n";

    fn times(text: &str) -> CpuTimes {
        CpuTimes::parse(text).expect("counters")
    }

    #[test]
    fn reads_the_line_of_all_cpus() {
        let expected = CpuTimes {
            user: 100,
            nice: 10,
            system: 50,
            idle: 1000,
            iowait: 40,
            irq: 5,
            softirq: 6,
            steal: 2,
        };
        assert_eq!(CpuTimes::parse("cpu  100 10 50 1000 40 5 6 2 7 0\ncpu0 1 1 1 1\n"), Some(expected));
    }

    #[test]
    fn what_an_old_kernel_lacks_is_zero() {
        let four = CpuTimes { user: 1, nice: 2, system: 3, idle: 4, ..CpuTimes::default() };
        assert_eq!(CpuTimes::parse("cpu 1 2 3 4"), Some(four));
        let seven = CpuTimes { iowait: 5, irq: 6, softirq: 7, ..four };
        assert_eq!(CpuTimes::parse("cpu 1 2 3 4 5 6 7\n"), Some(seven));
    }

    #[test]
    fn refuses_other_text() {
        for text in [
            "",
            "\ncpu 1 2 3 4",
            "cpu0 1 2 3 4",
            "cpu 1 2 3",
            "cpu 1 2 3 x",
            "cpu 1 2 3 4 -5",
            "intr 1 2 3 4",
        ] {
            assert_eq!(CpuTimes::parse(text), None, "{text}");
        }
    }

    #[test]
    fn shares_are_of_all_ticks_and_guests_count_once() {
        let shares = times(LATER).since(&times(EARLIER)).expect("shares");
        assert_eq!(
            shares,
            CpuShares { user_pct: 35.0, system_pct: 17.5, iowait_pct: 5.0, idle_pct: 40.0, steal_pct: 2.5 }
        );
    }

    #[test]
    fn iowait_that_went_backwards_counts_as_none() {
        let shares = times("cpu 10 0 0 40 90").since(&times("cpu 0 0 0 10 100")).expect("shares");
        assert_eq!((shares.user_pct, shares.idle_pct, shares.iowait_pct), (25.0, 75.0, 0.0));
    }

    #[test]
    fn without_a_tick_there_are_no_shares() {
        assert_eq!(times(LATER).since(&times(LATER)), None);
        assert_eq!(times("cpu 1 2 3 4 5").since(&times("cpu 1 2 3 4 6")), None);
    }

    #[test]
    fn this_machine_has_spent_time() {
        let now = CpuTimes::read(&Roots::default()).expect("/proc/stat");
        assert!(now.since(&CpuTimes::default()).is_some());
        let elsewhere = Roots { proc: "/nowhere".into(), ..Roots::default() };
        assert_eq!(CpuTimes::read(&elsewhere), None);
    }
}
