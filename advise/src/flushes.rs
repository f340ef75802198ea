//! `checkpoint_flush_after` and the like, from what others wait for while data files are written; and
//! `checkpoint_completion_target`.
//!
//! Another value is better if reads beside the writes and the sync at the end both surely take less, by over
//! 5 %, and the writing takes no more than a tenth longer.

use io_probe_core::stats::Interval;

use crate::plateau::{AS_GOOD, SEEMS_WORSE};

/// How much longer the writing may take.
const SLOWER: f64 = 1.1;

/// What a value takes, as ratios to what the value in force takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlushRatios {
    /// A read beside the writes.
    pub read: Interval,
    /// The sync at the end.
    pub sync: Interval,
    /// All of the writing.
    pub writing: Interval,
}

impl FlushRatios {
    fn is_surely_better(&self) -> bool {
        let is_less = |ratio: Interval| ratio.high * AS_GOOD < 1.0;
        is_less(self.read) && is_less(self.sync) && self.writing.value <= SLOWER
    }

    fn seems_better(&self) -> bool {
        let is_less = |ratio: Interval| ratio.value * SEEMS_WORSE < 1.0;
        is_less(self.read) && is_less(self.sync) && self.writing.value <= SLOWER
    }

    fn is_surely_worse(&self) -> bool {
        self.read.low > AS_GOOD || self.sync.low > AS_GOOD || self.writing.low > SLOWER
    }
}

/// What to do about such a setting, of which one other value was tried.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FlushAfter {
    /// The other value is not surely better.
    Keep {
        /// Is it surely worse?
        other_is_worse: bool,
    },
    /// It is.
    Change,
    /// It seems better, but not surely.
    SeemsBetter,
    /// There are no ratios.
    Unmeasured,
}

/// Compares another value with the one in force.
pub fn flush_after(other: Option<FlushRatios>) -> FlushAfter {
    match other {
        None => FlushAfter::Unmeasured,
        Some(other) if other.is_surely_better() => FlushAfter::Change,
        Some(other) if other.seems_better() => FlushAfter::SeemsBetter,
        Some(other) => FlushAfter::Keep { other_is_worse: other.is_surely_worse() },
    }
}

/// The target that spreads a checkpoint's writes over almost all of the time until the next one.
pub const SPREAD: f64 = 0.9;

/// From this share of what the volume carries on, the writes of a checkpoint are worth spreading.
const BURDEN: f64 = 0.05;

/// Fewest timed checkpoints that tell something.
const LEAST_TIMED: f64 = 3.0;

/// What the server has counted of its checkpoints.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Checkpoints {
    /// That came when it was time.
    pub timed: f64,
    /// That came earlier: max_wal_size, or CHECKPOINT.
    pub requested: f64,
    /// Bytes that they wrote.
    pub bytes: f64,
    /// Time that they took to write, with the pauses in it, in seconds.
    pub seconds: f64,
}

impl Checkpoints {
    fn bytes_s(&self) -> f64 {
        self.bytes / self.seconds
    }
}

/// What to do about `checkpoint_completion_target`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CompletionTarget {
    /// It is large already.
    KeepSpread,
    /// Too few checkpoints came when it was time, or they wrote nothing.
    KeepUncounted,
    /// What the checkpoints write is a small share of what the volume carries.
    KeepLight {
        /// Bytes a second while a checkpoint writes.
        needed: f64,
    },
    /// They are to be spread.
    Spread {
        /// Bytes a second while a checkpoint writes: now, and then.
        needed: [f64; 2],
    },
    /// What the volume carries is not known.
    Unmeasured,
}

/// What to do, by the time of a write of a block of so many bytes on the volume, in nanoseconds.
pub fn completion_target(
    current: f64,
    counted: Option<Checkpoints>,
    write: Option<(Interval, u32)>,
) -> CompletionTarget {
    if current >= SPREAD {
        return CompletionTarget::KeepSpread;
    }
    let tells = |counted: &Checkpoints| {
        counted.timed >= LEAST_TIMED
            && counted.timed >= counted.requested
            && counted.bytes > 0.0
            && counted.seconds > 0.0
    };
    let Some(counted) = counted.filter(tells) else { return CompletionTarget::KeepUncounted };
    let Some((time, bytes)) = write else { return CompletionTarget::Unmeasured };
    let needed = counted.bytes_s();
    // The volume carries this much at most.
    let carried = f64::from(bytes) * 1e9 / time.low;
    match needed >= BURDEN * carried {
        true => CompletionTarget::Spread { needed: [needed, needed * current / SPREAD] },
        false => CompletionTarget::KeepLight { needed },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ratio(value: f64, half: f64) -> Interval {
        Interval { value, low: value - half, high: value + half }
    }

    fn ratios(read: f64, sync: f64, writing: f64, half: f64) -> FlushRatios {
        FlushRatios { read: ratio(read, half), sync: ratio(sync, half), writing: ratio(writing, half) }
    }

    #[test]
    fn reads_and_sync_must_both_take_less() {
        let advice = |read, sync, writing, half| flush_after(Some(ratios(read, sync, writing, half)));
        let keep = |other_is_worse| FlushAfter::Keep { other_is_worse };
        assert_eq!(advice(0.5, 0.2, 1.0, 0.1), FlushAfter::Change);
        assert_eq!(advice(0.5, 0.2, 1.2, 0.01), keep(true), "slower to write");
        assert_eq!(advice(0.5, 1.0, 1.0, 0.01), keep(false));
        assert_eq!(advice(0.93, 0.2, 1.0, 0.03), keep(false), "by less than 5 %");
        assert_eq!(advice(1.3, 0.2, 1.0, 0.1), keep(true));
        assert_eq!(advice(0.7, 0.2, 1.0, 0.4), FlushAfter::SeemsBetter);
        assert_eq!(flush_after(None), FlushAfter::Unmeasured);
    }

    proptest! {
        #[test]
        fn what_is_advised_would_not_be_taken_back(
            read in 0.1..3.0, sync in 0.1..3.0, writing in 0.5..2.0, half in 0.0..0.5,
        ) {
            let there = ratios(read, sync, writing, half);
            let turned = |ratio: Interval| Interval {
                value: 1.0 / ratio.value, low: 1.0 / ratio.high, high: 1.0 / ratio.low.max(1e-9),
            };
            let back = FlushRatios {
                read: turned(there.read), sync: turned(there.sync), writing: turned(there.writing),
            };
            if flush_after(Some(there)) == FlushAfter::Change {
                prop_assert!(read < 1.0 && sync < 1.0 && writing <= SLOWER);
                prop_assert_eq!(flush_after(Some(back)), FlushAfter::Keep { other_is_worse: true });
            }
        }
    }

    #[test]
    fn a_checkpoint_is_spread_if_it_is_a_burden() {
        let mib = f64::from(1 << 20);
        let counted = |timed, requested, mib_s: f64| {
            Some(Checkpoints { timed, requested, bytes: 100.0 * mib_s * mib, seconds: 100.0 })
        };
        // 8 kB in 78.125 us are 100 MiB a second.
        let write = Some((ratio(78_125.0, 0.0), 8192));
        let advice = |current, counted| completion_target(current, counted, write);
        assert_eq!(advice(0.9, counted(10.0, 0.0, 50.0)), CompletionTarget::KeepSpread);
        assert_eq!(advice(0.5, None), CompletionTarget::KeepUncounted);
        assert_eq!(advice(0.5, counted(2.0, 0.0, 50.0)), CompletionTarget::KeepUncounted);
        assert_eq!(advice(0.5, counted(10.0, 11.0, 50.0)), CompletionTarget::KeepUncounted);
        assert_eq!(advice(0.5, counted(10.0, 0.0, 0.0)), CompletionTarget::KeepUncounted);
        assert_eq!(advice(0.5, counted(10.0, 0.0, 4.9)), CompletionTarget::KeepLight { needed: 4.9 * mib });
        let spread = CompletionTarget::Spread { needed: [9.0 * mib, 5.0 * mib] };
        assert_eq!(advice(0.5, counted(10.0, 0.0, 9.0)), spread);
        assert_eq!(completion_target(0.5, counted(10.0, 0.0, 9.0), None), CompletionTarget::Unmeasured);
    }
}
