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

use std::time::Duration;
use std::{array, fs};

use crate::machine::device::Roots;

/// CPU time since boot, summed over all CPUs, in ticks of `sysconf(_SC_CLK_TCK)` a second: the first eight
/// counters of the line, from `user` to `steal`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTimes(pub(crate) [u64; 8]);

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
    /// The first line of `/proc/stat`. `None` if it is not the line `cpu` with these counters; later ones are
    /// ignored.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.lines().next()?.split_ascii_whitespace();
        if words.next()? != "cpu" {
            return None;
        }
        let ticks = words.take(8).map(|word| word.parse().ok()).collect::<Option<Vec<u64>>>()?;
        Some(Self(ticks.try_into().ok()?))
    }

    /// The counters now; `None` where the kernel does not tell.
    pub fn read(roots: &Roots) -> Option<Self> {
        Self::parse(&fs::read_to_string(roots.proc.join("stat")).ok()?)
    }

    /// The share of the processors' time since `earlier` that others used than this process, which used `own`
    /// of it: from 0 to 1. None if there was not a tick between the two.
    pub fn used_besides(&self, earlier: &CpuTimes, own: Duration) -> Option<f64> {
        let shares = self.since(earlier)?;
        let ticks: u64 = self.0.iter().zip(earlier.0).map(|(now, before)| now.saturating_sub(before)).sum();
        let own_ticks = own.as_secs_f64() * ticks_per_second();
        let used = (shares.user_pct + shares.system_pct + shares.steal_pct) / 100.0;
        Some((used - own_ticks / ticks as f64).clamp(0.0, 1.0))
    }

    /// The shares of the time since `earlier`; `None` if there was not a tick between the two.
    pub fn since(&self, earlier: &CpuTimes) -> Option<CpuShares> {
        let [user, nice, system, idle, iowait, irq, softirq, steal] =
            array::from_fn(|counter| self.0[counter].saturating_sub(earlier.0[counter]) as f64);
        let (user, system) = (user + nice, system + irq + softirq);
        let all = user + system + iowait + idle + steal;
        let [user_pct, system_pct, iowait_pct, idle_pct, steal_pct] =
            [user, system, iowait, idle, steal].map(|part| 100.0 * part / all);
        (all > 0.0).then_some(CpuShares { user_pct, system_pct, iowait_pct, idle_pct, steal_pct })
    }
}

/// Ticks that each processor counts in a second.
fn ticks_per_second() -> f64 {
    nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).ok().flatten().map_or(100.0, |ticks| ticks as f64)
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
        let expected = CpuTimes([100, 10, 50, 1000, 40, 5, 6, 2]);
        assert_eq!(times("cpu  100 10 50 1000 40 5 6 2 7 0\ncpu0 1 1 1 1\n"), expected);
        assert_eq!(times("cpu 1 2 3 4 5 6 7 8"), CpuTimes([1, 2, 3, 4, 5, 6, 7, 8]));
    }

    #[test]
    fn refuses_other_text() {
        for text in [
            "",
            "\ncpu 1 2 3 4 5 6 7 8",
            "cpu0 1 2 3 4 5 6 7 8",
            "cpu 1 2 3 4 5 6 7",
            "cpu 1 2 3 4 5 6 7 x",
            "cpu 1 2 3 4 -5 6 7 8",
            "intr 1 2 3 4 5 6 7 8",
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
    fn what_this_process_used_is_not_others() {
        let ticks = ticks_per_second();
        let [earlier, later] = [times(EARLIER), times(LATER)];
        let own = |share: f64| Duration::from_secs_f64(share * 200.0 / ticks);
        // Of 200 ticks 35, 17.5 and 2.5 percent were used or stolen, a quarter by this process.
        let used = later.used_besides(&earlier, own(0.25)).expect("known");
        assert!((used - 0.3).abs() < 1e-9, "{used}");
        assert_eq!(later.used_besides(&earlier, own(2.0)), Some(0.0));
        assert_eq!(later.used_besides(&later, own(0.0)), None);
    }

    #[test]
    fn iowait_that_went_backwards_counts_as_none() {
        let shares = times("cpu 10 0 0 40 90 0 0 0").since(&times("cpu 0 0 0 10 100 0 0 0")).expect("shares");
        assert_eq!((shares.user_pct, shares.idle_pct, shares.iowait_pct), (25.0, 75.0, 0.0));
    }

    #[test]
    fn without_a_tick_there_are_no_shares() {
        assert_eq!(times(LATER).since(&times(LATER)), None);
        assert_eq!(times("cpu 1 2 3 4 5 6 7 8").since(&times("cpu 1 2 3 4 6 6 7 8")), None);
    }

    #[test]
    fn this_machine_has_spent_time() {
        let now = CpuTimes::read(&Roots::default()).expect("/proc/stat");
        assert!(now.since(&CpuTimes::default()).is_some());
        let elsewhere = Roots { proc: "/nowhere".into(), ..Roots::default() };
        assert_eq!(CpuTimes::read(&elsewhere), None);
    }
}
