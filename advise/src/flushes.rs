//! `checkpoint_flush_after` and the like, from what others wait for while data files are written; and
//! `checkpoint_completion_target`.
//!
//! Another value is better if reads beside the writes and the sync at the end both surely take less, by over
//! 5 %, and the writing takes no more than a tenth longer.

use io_probe_core::stats::Interval;

use crate::plateau::{AS_GOOD, SEEMS_WORSE, least_by};

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

/// What to do about such a setting.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FlushAfter {
    /// No other value is surely better; from `low` to `high` none is surely worse.
    Keep {
        /// The least of these.
        low: u64,
        /// The greatest.
        high: u64,
    },
    /// This one is.
    Change {
        /// The better value.
        to: u64,
        /// The least of those around it that are better, too.
        low: u64,
        /// The greatest.
        high: u64,
    },
    /// Another one seems better, but not surely.
    SeemsBetter,
    /// There are no ratios.
    Unmeasured,
}

/// Compares other values with the one in force. Of several that are surely better, about as good as the best
/// one of them, the nearest to `usual`.
pub fn flush_after(current: u64, others: &[(u64, FlushRatios)], usual: u64) -> FlushAfter {
    if others.is_empty() {
        return FlushAfter::Unmeasured;
    }
    let better = || others.iter().filter(|(_, ratios)| ratios.is_surely_better());
    let Some(least) = better().map(|(_, ratios)| ratios.read.value).reduce(f64::min) else {
        if others.iter().any(|(_, ratios)| ratios.seems_better()) {
            return FlushAfter::SeemsBetter;
        }
        let good = others.iter().map(|(value, ratios)| (*value, !ratios.is_surely_worse()));
        let (low, high) = around(current, good.chain([(current, true)]).collect());
        return FlushAfter::Keep { low, high };
    };
    let best = better().filter(|(_, ratios)| ratios.read.value <= least * SEEMS_WORSE);
    let off_usual = |(value, _): &&(u64, FlushRatios)| (*value as f64 / usual as f64).ln().abs();
    let to = least_by(best, off_usual).map_or(current, |(value, _)| *value);
    let good = others.iter().map(|(value, ratios)| (*value, ratios.is_surely_better()));
    let (low, high) = around(to, good.chain([(current, false)]).collect());
    FlushAfter::Change { to, low, high }
}

/// The ends of the values around `chosen` that are good.
fn around(chosen: u64, mut values: Vec<(u64, bool)>) -> (u64, u64) {
    values.sort_unstable();
    let below = values.iter().rev().filter(|(value, _)| *value < chosen);
    let above = values.iter().filter(|(value, _)| *value > chosen);
    let low = below.take_while(|(_, is_good)| *is_good).last();
    let high = above.take_while(|(_, is_good)| *is_good).last();
    (low.map_or(chosen, |(value, _)| *value), high.map_or(chosen, |(value, _)| *value))
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
        let advice =
            |read, sync, writing, half| flush_after(0, &[(32, ratios(read, sync, writing, half))], 32);
        assert_eq!(advice(0.5, 0.2, 1.0, 0.1), FlushAfter::Change { to: 32, low: 32, high: 32 });
        assert_eq!(advice(0.5, 0.2, 1.2, 0.1), FlushAfter::Keep { low: 0, high: 32 }, "slower to write");
        assert_eq!(advice(0.5, 1.0, 1.0, 0.01), FlushAfter::Keep { low: 0, high: 32 });
        assert_eq!(advice(0.93, 0.2, 1.0, 0.03), FlushAfter::Keep { low: 0, high: 32 }, "by less than 5 %");
        assert_eq!(advice(1.3, 0.2, 1.0, 0.1), FlushAfter::Keep { low: 0, high: 0 }, "surely worse");
        assert_eq!(advice(0.7, 0.2, 1.0, 0.4), FlushAfter::SeemsBetter);
        assert_eq!(flush_after(0, &[], 32), FlushAfter::Unmeasured);
    }

    #[test]
    fn of_equals_the_usual_value() {
        let advice = |reads: [f64; 3]| {
            let others = [16, 32, 256].into_iter().zip(reads.map(|read| ratios(read, 0.2, 1.0, 0.05)));
            flush_after(0, &others.collect::<Vec<_>>(), 32)
        };
        assert_eq!(advice([0.5, 0.52, 0.5]), FlushAfter::Change { to: 32, low: 16, high: 256 });
        assert_eq!(advice([0.3, 0.52, 0.9]), FlushAfter::Change { to: 16, low: 16, high: 32 });
    }

    proptest! {
        #[test]
        fn what_is_advised_is_better_and_in_its_range(
            values in prop::collection::btree_map(0u64..256, (0.1..3.0, 0.1..3.0, 0.5..2.0, 0.0..0.5), 1..6),
            current in 0u64..256,
        ) {
            let others: Vec<(u64, FlushRatios)> = values.into_iter().filter(|(value, _)| *value != current)
                .map(|(value, (read, sync, writing, half))| (value, ratios(read, sync, writing, half))).collect();
            match flush_after(current, &others, 32) {
                FlushAfter::Keep { low, high } => prop_assert!(low <= current && current <= high),
                FlushAfter::Change { to, low, high } => {
                    let chosen = others.iter().find(|(value, _)| *value == to).expect("one of them");
                    prop_assert!(chosen.1.read.high < 1.0 && chosen.1.sync.high < 1.0 && chosen.1.writing.value <= 1.1);
                    prop_assert!(low <= to && to <= high && !(low..=high).contains(&current));
                }
                FlushAfter::SeemsBetter => prop_assert!(others.iter().any(|(_, ratios)| ratios.read.value < 1.0)),
                FlushAfter::Unmeasured => prop_assert!(others.is_empty()),
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
