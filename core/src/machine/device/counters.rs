//! A block device's counters and what they say of an interval, in iostat's terms.
//!
//! The counters hold everybody's requests, not ours alone, since the device appeared. Their difference over
//! an interval of `t` ms gives, for reads, writes and discards apart:
//!
//! | figure | formula |
//! |---|---|
//! | `r_await`, `w_await`, `d_await`, `f_await`, ms | ticks ÷ requests |
//! | `rareq_kb`, `wareq_kb`, `dareq_kb` | sectors × 512 ÷ 1024 ÷ requests |
//! | `aqu_sz` | weighted ticks ÷ t |
//! | `util_pct` | 100 × io_ticks ÷ t |
//!
//! A ratio without requests is `None`, where iostat prints 0.
//!
//! # Limitations and caveats
//! - A sector is 512 bytes, whatever the device's block size.
//! - From kernel 5.0 on, io_ticks advances by whole timer ticks (1 to 10 ms) and the weighted ticks when a
//!   request completes. So `util_pct` overstates short sparse requests and may exceed 100 in a
//!   short interval, and a long request counts where it ends.
//! - A device that serves requests in parallel is not saturated at a `util_pct` of 100.
//! - All times wrap at 2^32 ms: that is handled. A counter of requests that went backwards means another
//!   device of the same name, or a wrap on a 32-bit kernel: the interval is unknown.
//! - Nothing is counted while `queue/iostats` is 0.
//!
//! Sources: the kernel's `Documentation/block/stat.rst` (fields) and `part_stat_show` in `block/genhd.c`
//! (widths); iostat(1) (formulas).

/// Bytes of a sector in every interface of the kernel.
pub(super) const SECTOR_BYTES: u64 = 512;

/// Up to this `util_pct`, more than 100 is the rounding of the timer tick.
const UTIL_ROUNDING_PCT: f64 = 102.0;

/// Requests of one kind since the device appeared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Requests {
    /// Requests completed.
    pub completed: u64,
    /// Requests merged into one that was already queued.
    pub merged: u64,
    /// Sectors of 512 bytes.
    pub sectors: u64,
    /// Time that all of them waited together, in ms, modulo 2^32.
    pub ticks_ms: u32,
}

/// The counters of a device at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counters {
    /// Reads.
    pub reads: Requests,
    /// Writes.
    pub writes: Requests,
    /// Discards; from kernel 4.18 on.
    pub discards: Option<Requests>,
    /// Flushes, which merge nothing and carry no data; from kernel 5.5 on.
    pub flushes: Option<Requests>,
    /// Requests that the driver has and hasn't completed.
    pub in_flight: u64,
    /// Time with at least one request, in ms, modulo 2^32.
    pub io_ticks_ms: u32,
    /// Time that all requests waited together, in ms, modulo 2^32.
    pub weighted_ticks_ms: u32,
}

impl Counters {
    /// Parses a `stat` file: one line of 11, 15 or 17 numbers. More are ignored, fewer or other words are
    /// `None`.
    pub fn parse(stat: &str) -> Option<Self> {
        let words = stat.split_ascii_whitespace().take(17);
        let fields = words.map(str::parse::<u64>).collect::<Result<Vec<_>, _>>().ok()?;
        let &[in_flight, io_ticks, weighted_ticks] = fields.get(8..11)? else { return None };
        let flushes = match fields.get(15..17) {
            Some(&[completed, ticks]) => {
                Some(Requests { completed, ticks_ms: ticks as u32, ..Requests::default() })
            }
            _ => None,
        };
        Some(Counters {
            reads: Requests::of(fields.get(..4)?)?,
            writes: Requests::of(fields.get(4..8)?)?,
            discards: fields.get(11..15).and_then(Requests::of),
            flushes,
            in_flight,
            io_ticks_ms: io_ticks as u32,
            weighted_ticks_ms: weighted_ticks as u32,
        })
    }

    /// What happened since `earlier`, in `elapsed_ms` of the monotonic clock. `None` if a count went
    /// backwards.
    pub fn since(&self, earlier: &Counters, elapsed_ms: f64) -> Option<Activity> {
        Some(Activity {
            elapsed_ms,
            reads: self.reads.since(earlier.reads)?,
            writes: self.writes.since(earlier.writes)?,
            discards: self
                .discards
                .zip(earlier.discards)
                .map_or(Some(None), |(a, b)| a.since(b).map(Some))?,
            flushes: self.flushes.zip(earlier.flushes).map_or(Some(None), |(a, b)| a.since(b).map(Some))?,
            aqu_sz: per(ticks_since(self.weighted_ticks_ms, earlier.weighted_ticks_ms), elapsed_ms),
            util_pct: per(ticks_since(self.io_ticks_ms, earlier.io_ticks_ms), elapsed_ms).map(|t| 100.0 * t),
        })
    }
}

impl Requests {
    /// The sectors in bytes.
    pub fn bytes(&self) -> u64 {
        self.sectors.saturating_mul(SECTOR_BYTES)
    }

    /// From the four numbers of a kind in a `stat` file.
    fn of(fields: &[u64]) -> Option<Self> {
        let &[completed, merged, sectors, ticks] = fields else { return None };
        Some(Requests { completed, merged, sectors, ticks_ms: ticks as u32 })
    }

    fn since(self, earlier: Requests) -> Option<Traffic> {
        Some(Traffic {
            requests: self.completed.checked_sub(earlier.completed)?,
            merges: self.merged.checked_sub(earlier.merged)?,
            bytes: self.sectors.checked_sub(earlier.sectors)?.saturating_mul(SECTOR_BYTES),
            ticks_ms: ticks_since(self.ticks_ms, earlier.ticks_ms),
        })
    }
}

/// The difference of two times modulo 2^32 ms. More than half of the range would be 25 days of waiting in
/// one interval: rather a counter that went backwards, hence unknown.
fn ticks_since(now: u32, earlier: u32) -> Option<u64> {
    let ticks = now.wrapping_sub(earlier);
    (ticks <= u32::MAX / 2).then_some(ticks.into())
}

/// `None` for a divisor that is 0, negative or no number.
fn per(amount: Option<u64>, divisor: f64) -> Option<f64> {
    (divisor.is_finite() && divisor > 0.0).then_some(amount? as f64 / divisor)
}

/// Requests of one kind in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Requests completed.
    pub requests: u64,
    /// Requests merged into others before they reached the device (iostat's rrqm, wrqm, drqm).
    pub merges: u64,
    /// Bytes transferred or discarded.
    pub bytes: u64,
    /// Time that the completed requests waited together, in ms.
    pub ticks_ms: Option<u64>,
}

impl Traffic {
    /// Mean time from queueing to completion, in ms (iostat's r_await, w_await, d_await, f_await).
    pub fn await_ms(&self) -> Option<f64> {
        per(self.ticks_ms, self.requests as f64)
    }

    /// Mean size of a request in kB of 1,024 bytes (iostat's rareq-sz, wareq-sz, dareq-sz).
    pub fn request_kb(&self) -> Option<f64> {
        per(Some(self.bytes), self.requests as f64).map(|bytes| bytes / 1024.0)
    }

    fn plus(self, other: Traffic) -> Traffic {
        Traffic {
            requests: self.requests.saturating_add(other.requests),
            merges: self.merges.saturating_add(other.merges),
            bytes: self.bytes.saturating_add(other.bytes),
            ticks_ms: self.ticks_ms.zip(other.ticks_ms).map(|(a, b)| a.saturating_add(b)),
        }
    }
}

/// What a device, or several together, did in an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Activity {
    /// Length of the interval in ms.
    pub elapsed_ms: f64,
    /// Reads.
    pub reads: Traffic,
    /// Writes.
    pub writes: Traffic,
    /// Discards, where the kernel counts them.
    pub discards: Option<Traffic>,
    /// Flushes, where the kernel counts them; without merges and bytes.
    pub flushes: Option<Traffic>,
    /// Mean number of requests queued or in flight.
    pub aqu_sz: Option<f64>,
    /// Share of the interval with at least one request, in percent, as iostat prints it: it may exceed 100.
    pub util_pct: Option<f64>,
}

impl Activity {
    /// `util_pct` without what the timer tick explains: up to 102 it is at most 100.
    pub fn busy_pct(&self) -> Option<f64> {
        self.util_pct.map(|percent| if percent <= UTIL_ROUNDING_PCT { percent.min(100.0) } else { percent })
    }

    /// Whether `util_pct` is more than the rounding of the timer tick explains.
    pub fn util_is_doubtful(&self) -> bool {
        self.util_pct.is_some_and(|percent| percent > UTIL_ROUNDING_PCT)
    }

    /// An amount of this interval, such as `reads.requests`, as a rate per second.
    pub fn per_second(&self, amount: u64) -> Option<f64> {
        per(Some(amount), self.elapsed_ms).map(|rate| 1000.0 * rate)
    }

    /// Several devices in the same interval as one: all is summed but `util_pct`, which is that of the
    /// busiest. What is unknown of one is unknown of all. `None` without devices.
    pub fn sum(devices: impl IntoIterator<Item = Activity>) -> Option<Activity> {
        devices.into_iter().reduce(Self::beside)
    }

    fn beside(self, other: Activity) -> Activity {
        Activity {
            elapsed_ms: self.elapsed_ms.max(other.elapsed_ms),
            reads: self.reads.plus(other.reads),
            writes: self.writes.plus(other.writes),
            discards: self.discards.zip(other.discards).map(|(a, b)| a.plus(b)),
            flushes: self.flushes.zip(other.flushes).map(|(a, b)| a.plus(b)),
            aqu_sz: self.aqu_sz.zip(other.aqu_sz).map(|(a, b)| a + b),
            util_pct: self.util_pct.zip(other.util_pct).map(|(a, b)| a.max(b)),
        }
    }

    /// Two intervals as one, in which nothing between them counts: amounts are summed, `aqu_sz` and
    /// `util_pct` are means over the time of both. What is unknown of one is unknown of both.
    pub fn then(self, later: Activity) -> Activity {
        let elapsed_ms = self.elapsed_ms + later.elapsed_ms;
        let [aqu_sz, util_pct] =
            [(self.aqu_sz, later.aqu_sz), (self.util_pct, later.util_pct)].map(|(a, b)| {
                Some((a? * self.elapsed_ms + b? * later.elapsed_ms) / elapsed_ms)
                    .filter(|mean| mean.is_finite())
            });
        Activity { elapsed_ms, aqu_sz, util_pct, ..self.beside(later) }
    }

    /// Stretches the interval to `elapsed_ms`: the longer it is, the smaller queue and busy share are.
    pub fn spread_over(self, elapsed_ms: f64) -> Activity {
        let [aqu_sz, util_pct] = [self.aqu_sz, self.util_pct]
            .map(|figure| figure.map(|figure| figure * self.elapsed_ms / elapsed_ms));
        Activity { elapsed_ms, aqu_sz, util_pct, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EARLIER: &str = "  100  10  8000  50  200  20  16000  400  1  1000  500  3  1  64  6  5  7\n";
    const LATER: &str = "  300  15  40000  150  250  70  20000  500  0  1600  1700  5  2  192  10  9  27\n";

    fn activity(later: &str, earlier: &str, elapsed_ms: f64) -> Option<Activity> {
        Counters::parse(later).unwrap().since(&Counters::parse(earlier).unwrap(), elapsed_ms)
    }

    #[test]
    fn reads_the_three_forms_of_the_file() {
        let old = Counters::parse("1 2 3 4 5 6 7 8 9 10 11").unwrap();
        assert_eq!(old.reads, Requests { completed: 1, merged: 2, sectors: 3, ticks_ms: 4 });
        assert_eq!(old.writes, Requests { completed: 5, merged: 6, sectors: 7, ticks_ms: 8 });
        assert_eq!((old.in_flight, old.io_ticks_ms, old.weighted_ticks_ms), (9, 10, 11));
        assert_eq!((old.discards, old.flushes), (None, None));

        let with_discards = Counters::parse("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15").unwrap();
        assert_eq!(
            with_discards.discards,
            Some(Requests { completed: 12, merged: 13, sectors: 14, ticks_ms: 15 })
        );
        assert_eq!(with_discards.flushes, None);

        let with_flushes = Counters::parse("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 x").unwrap();
        assert_eq!(
            with_flushes.flushes,
            Some(Requests { completed: 16, ticks_ms: 17, ..Requests::default() })
        );
    }

    #[test]
    fn refuses_other_text() {
        for text in ["", "1 2 3 4 5 6 7 8 9 10", "1 2 3 4 5 6 7 8 9 10 11 x", "1 2 3 4 -5 6 7 8 9 10 11"] {
            assert_eq!(Counters::parse(text), None, "{text}");
        }
    }

    #[test]
    fn intervals_follow_each_other() {
        let idle = Activity { elapsed_ms: 3000.0, ..activity(EARLIER, EARLIER, 3000.0).unwrap() };
        let busy = activity(LATER, EARLIER, 1000.0).unwrap();
        let both = busy.then(idle);
        assert_eq!((both.elapsed_ms, both.reads, both.flushes), (4000.0, busy.reads, busy.flushes));
        assert_eq!((both.aqu_sz, both.util_pct), (Some(0.3), Some(15.0)));
        assert_eq!((busy.aqu_sz, busy.util_pct), (Some(1.2), Some(60.0)));
        assert_eq!(busy.spread_over(4000.0), both);
        assert_eq!(busy.then(Activity { aqu_sz: None, ..idle }).aqu_sz, None);
    }

    #[test]
    fn gives_iostats_figures() {
        let a = activity(LATER, EARLIER, 1000.0).unwrap();
        assert_eq!(a.reads, Traffic { requests: 200, merges: 5, bytes: 32_000 * 512, ticks_ms: Some(100) });
        assert_eq!((a.reads.await_ms(), a.reads.request_kb()), (Some(0.5), Some(80.0)));
        assert_eq!(a.writes, Traffic { requests: 50, merges: 50, bytes: 4_000 * 512, ticks_ms: Some(100) });
        assert_eq!((a.writes.await_ms(), a.writes.request_kb()), (Some(2.0), Some(40.0)));
        let discards = a.discards.unwrap();
        assert_eq!((discards.requests, discards.merges, discards.bytes), (2, 1, 128 * 512));
        assert_eq!((discards.await_ms(), discards.request_kb()), (Some(2.0), Some(32.0)));
        let flushes = a.flushes.unwrap();
        assert_eq!((flushes.requests, flushes.await_ms()), (4, Some(5.0)));
        assert_eq!((a.aqu_sz, a.util_pct), (Some(1.2), Some(60.0)));
        assert_eq!(a.per_second(a.reads.requests), Some(200.0));
        assert_eq!(activity(LATER, EARLIER, 500.0).unwrap().per_second(a.reads.requests), Some(400.0));
    }

    #[test]
    fn an_idle_interval_has_no_ratios() {
        let a = activity(EARLIER, EARLIER, 1000.0).unwrap();
        assert_eq!((a.reads.await_ms(), a.reads.request_kb()), (None, None));
        assert_eq!((a.aqu_sz, a.util_pct), (Some(0.0), Some(0.0)));
    }

    #[test]
    fn an_interval_without_length_has_no_rates() {
        for elapsed_ms in [0.0, -1.0, f64::NAN] {
            let a = activity(LATER, EARLIER, elapsed_ms).unwrap();
            assert_eq!((a.aqu_sz, a.util_pct, a.per_second(1)), (None, None, None));
            assert_eq!(a.reads.requests, 200);
        }
    }

    #[test]
    fn times_wrap_at_32_bits() {
        let earlier = "0 0 0 4294967290 0 0 0 0 0 4294967000 4294967295";
        let a = activity("1 0 8 4 0 0 0 0 0 204 99", earlier, 1000.0).unwrap();
        assert_eq!(a.reads.await_ms(), Some(10.0));
        assert_eq!((a.util_pct, a.aqu_sz), (Some(50.0), Some(0.1)));
    }

    #[test]
    fn a_time_that_went_backwards_is_unknown() {
        let a = activity("1 0 8 4 0 0 0 0 0 4 4", "0 0 0 5 0 0 0 0 0 5 5", 1000.0).unwrap();
        assert_eq!((a.reads.await_ms(), a.util_pct, a.aqu_sz), (None, None, None));
        assert_eq!(a.reads.request_kb(), Some(4.0));
    }

    #[test]
    fn a_count_that_went_backwards_makes_the_interval_unknown() {
        assert_eq!(activity(EARLIER, LATER, 1000.0), None);
        let reset_discards = LATER.replace("5  2  192", "0  2  192");
        assert_eq!(activity(&reset_discards, EARLIER, 1000.0), None);
    }

    #[test]
    fn what_one_side_does_not_count_is_unknown() {
        let a = activity(LATER, "0 0 0 0 0 0 0 0 0 0 0", 1000.0).unwrap();
        assert_eq!((a.discards, a.flushes), (None, None));
    }

    #[test]
    fn utilization_is_clamped_within_rounding_only() {
        let busy = |ms: u64| {
            activity(&format!("0 0 0 0 0 0 0 0 0 {ms} 0"), "0 0 0 0 0 0 0 0 0 0 0", 1000.0).unwrap()
        };
        assert_eq!(busy(1020).util_pct, Some(102.0));
        assert_eq!((busy(1020).busy_pct(), busy(1020).util_is_doubtful()), (Some(100.0), false));
        assert_eq!((busy(1030).busy_pct(), busy(1030).util_is_doubtful()), (Some(103.0), true));
        assert_eq!((busy(999).busy_pct(), busy(999).util_is_doubtful()), (Some(99.9), false));
    }

    #[test]
    fn several_devices_sum_up() {
        let one = activity(LATER, EARLIER, 1000.0).unwrap();
        let busy = Activity { util_pct: Some(90.0), ..one };
        let sum = Activity::sum([one, busy, one]).unwrap();
        assert_eq!(
            sum.reads,
            Traffic { requests: 600, merges: 15, bytes: 96_000 * 512, ticks_ms: Some(300) }
        );
        assert_eq!(sum.reads.await_ms(), one.reads.await_ms());
        assert_eq!(sum.writes.requests, 150);
        assert_eq!(sum.discards.unwrap().requests, 6);
        assert_eq!(sum.flushes.unwrap().requests, 12);
        assert!((sum.aqu_sz.unwrap() - 3.6).abs() < 1e-9);
        assert_eq!((sum.util_pct, sum.elapsed_ms), (Some(90.0), 1000.0));

        let unknown = Activity { aqu_sz: None, flushes: None, ..one };
        let sum = Activity::sum([one, unknown]).unwrap();
        assert_eq!((sum.aqu_sz, sum.flushes, sum.util_pct), (None, None, Some(60.0)));
        assert_eq!(Activity::sum([]), None);
    }
}
