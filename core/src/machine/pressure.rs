//! How long tasks of the whole machine stood waiting for I/O: pressure stall information.
//!
//! `/proc/pressure/io` counts, in microseconds since boot, the time in which at least one task waited for I/O
//! (`some`), and that in which all tasks that were not idle did (`full`): nothing got done.
//!
//! # Limitations and caveats
//! - It is everybody's, in most containers the host's too, and network file systems count as well as disks.
//! - It counts tasks that wait, not requests: sixteen that wait at a time count as one. `full` is the share
//!   of lost time, so with idle CPUs it comes near `some`.
//! - Absent before Linux 4.20, without CONFIG_PSI, and with `psi=0` on the kernel's command line, when the
//!   file may exist and refuse to be read.
//!
//! Source: the kernel's `Documentation/accounting/psi.rst`.

use std::fs;

use crate::machine::device::Roots;

/// Time since boot, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pressure {
    /// At least one task waited.
    pub some_us: u64,
    /// All tasks that were not idle waited; not on every kernel.
    pub full_us: Option<u64>,
}

/// Shares of an interval, in percent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PressureShares {
    /// At least one task waited.
    pub some_pct: f64,
    /// All tasks that were not idle waited.
    pub full_pct: Option<f64>,
}

impl Pressure {
    /// The text of a pressure file: `some avg10=… avg60=… avg300=… total=…`, and a like line `full`.
    pub fn parse(text: &str) -> Option<Self> {
        Some(Self { some_us: total(text, "some")?, full_us: total(text, "full") })
    }

    /// The totals now; `None` where the kernel does not tell.
    pub fn read(roots: &Roots) -> Option<Self> {
        Self::parse(&fs::read_to_string(roots.proc.join("pressure/io")).ok()?)
    }

    /// The shares of the `elapsed_ns` since `earlier`, at most 100: the kernel's clock is another one. `None`
    /// for no time, or if the time waited went backwards.
    pub fn since(&self, earlier: &Pressure, elapsed_ns: u64) -> Option<PressureShares> {
        let full = self.full_us.zip(earlier.full_us);
        Some(PressureShares {
            some_pct: percent(self.some_us, earlier.some_us, elapsed_ns)?,
            full_pct: full.and_then(|(now, earlier)| percent(now, earlier, elapsed_ns)),
        })
    }
}

fn total(text: &str, kind: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.split_ascii_whitespace().next() == Some(kind))?;
    line.split_ascii_whitespace().find_map(|word| word.strip_prefix("total=")?.parse().ok())
}

fn percent(now_us: u64, earlier_us: u64, elapsed_ns: u64) -> Option<f64> {
    let waited = now_us.checked_sub(earlier_us)? as f64;
    (elapsed_ns > 0).then(|| (100_000.0 * waited / elapsed_ns as f64).min(100.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::device::fixture::Fixture;

    const TEXT: &str = "some avg10=1.73 avg60=8.42 avg300=4.42 total=28040613\n\
                        full avg10=1.73 avg60=8.29 avg300=3.86 total=23080495\n";

    #[test]
    fn reads_the_totals() {
        let both = Pressure { some_us: 28_040_613, full_us: Some(23_080_495) };
        assert_eq!(Pressure::parse(TEXT), Some(both));
        let some = Pressure { some_us: 5, full_us: None };
        assert_eq!(Pressure::parse("some avg10=0.00 total=5\n"), Some(some));
        for text in
            ["", "full avg10=0.00 total=5\n", "some avg10=0.00\n", "some total=x\n", "something total=5"]
        {
            assert_eq!(Pressure::parse(text), None, "{text}");
        }
    }

    #[test]
    fn shares_are_of_the_time_that_passed() {
        let earlier = Pressure { some_us: 1_000_000, full_us: Some(500_000) };
        let later = Pressure { some_us: 1_250_000, full_us: Some(600_000) };
        let half = PressureShares { some_pct: 50.0, full_pct: Some(20.0) };
        assert_eq!(later.since(&earlier, 500_000_000), Some(half));
        let all = PressureShares { some_pct: 100.0, full_pct: Some(50.0) };
        assert_eq!(later.since(&earlier, 200_000_000), Some(all));
        assert_eq!(later.since(&earlier, 0), None);
        assert_eq!(earlier.since(&later, 500_000_000), None);
        let without = Pressure { full_us: None, ..later };
        assert_eq!(without.since(&earlier, 500_000_000).and_then(|shares| shares.full_pct), None);
    }

    #[test]
    fn a_kernel_that_does_not_tell_is_no_error() {
        let fixture = Fixture::new();
        assert_eq!(Pressure::read(&fixture.roots()), None);
        fixture.file("proc/pressure/io", TEXT);
        assert_eq!(Pressure::read(&fixture.roots()), Pressure::parse(TEXT));
    }
}
