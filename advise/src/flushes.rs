//! `checkpoint_flush_after` and the like, from what others wait for while data files are written; and
//! `checkpoint_completion_target`.
//!
//! Another value is better if reads beside the writes and the sync at the end both surely take less, by over
//! 5 %, and the writing takes no more than a tenth longer. 0 is better only if they surely take less than
//! half: no short turn shows the one large sync that a long checkpoint leaves then, nor what the kernel
//! writes back by itself.

use io_probe_core::stats::Interval;

use crate::plateau::{AS_GOOD, ByRatios, SEEMS_WORSE};

/// How much longer the writing may take.
const SLOWER: f64 = 1.1;

/// How many times less the others must take with 0.
const GAIN_OF_NEVER: f64 = 2.0;

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
    /// Do reads and the sync both take this many times less, by that figure of their intervals?
    fn is_better(&self, times: f64, figure: fn(Interval) -> f64) -> bool {
        figure(self.read).max(figure(self.sync)) * times < 1.0 && self.writing.value <= SLOWER
    }
}

fn high(ratio: Interval) -> f64 {
    ratio.high
}

fn value(ratio: Interval) -> f64 {
    ratio.value
}

/// Compares another value, which may be 0, with the one in force.
pub fn flush_after(other: Option<FlushRatios>, is_never: bool) -> ByRatios<()> {
    let [surely, seemingly] = if is_never { [GAIN_OF_NEVER; 2] } else { [AS_GOOD, SEEMS_WORSE] };
    match other {
        None => ByRatios::Unmeasured,
        Some(other) if other.is_better(surely, high) => ByRatios::Change(()),
        Some(other) if other.is_better(seemingly, value) => ByRatios::SeemsBetter,
        Some(_) => ByRatios::Keep,
    }
}

/// The target that spreads a checkpoint's writes over almost all of the time until the next one: the server's
/// default since 14.
const SPREAD: f64 = 0.9;

/// A better `checkpoint_completion_target`, if there is one.
pub fn completion_target(current: f64) -> Option<f64> {
    (current < SPREAD).then_some(SPREAD)
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
        let advice = |read, sync, writing, half| flush_after(Some(ratios(read, sync, writing, half)), false);
        assert_eq!(advice(0.5, 0.2, 1.0, 0.1), ByRatios::Change(()));
        assert_eq!(advice(0.5, 0.2, 1.2, 0.01), ByRatios::Keep, "slower to write");
        assert_eq!(advice(0.5, 1.0, 1.0, 0.01), ByRatios::Keep);
        assert_eq!(advice(0.93, 0.2, 1.0, 0.03), ByRatios::Keep, "by less than 5 %");
        assert_eq!(advice(1.3, 0.2, 1.0, 0.1), ByRatios::Keep);
        assert_eq!(advice(0.7, 0.2, 1.0, 0.4), ByRatios::SeemsBetter);
        assert_eq!(flush_after(None, false), ByRatios::Unmeasured);
    }

    #[test]
    fn to_write_nothing_back_must_gain_much() {
        let advice = |read, half| flush_after(Some(ratios(read, 0.2, 1.0, half)), true);
        assert_eq!(advice(0.3, 0.1), ByRatios::Change(()));
        assert_eq!(advice(0.45, 0.1), ByRatios::SeemsBetter);
        assert_eq!(advice(0.6, 0.05), ByRatios::Keep);
        assert_eq!(flush_after(None, true), ByRatios::Unmeasured);
    }

    #[test]
    fn a_checkpoint_is_spread() {
        assert_eq!(completion_target(0.5), Some(0.9));
        assert_eq!((completion_target(0.9), completion_target(1.0)), (None, None));
    }

    proptest! {
        #[test]
        fn what_is_advised_would_not_be_taken_back(
            read in 0.1..3.0, sync in 0.1..3.0, writing in 0.5..2.0, half in 0.0..0.5, is_never: bool,
        ) {
            let there = ratios(read, sync, writing, half);
            let turned = |ratio: Interval| Interval {
                value: 1.0 / ratio.value, low: 1.0 / ratio.high, high: 1.0 / ratio.low.max(1e-9),
            };
            let back = FlushRatios {
                read: turned(there.read), sync: turned(there.sync), writing: turned(there.writing),
            };
            if flush_after(Some(there), is_never) == ByRatios::Change(()) {
                prop_assert!(read < 1.0 && sync < 1.0 && writing <= SLOWER);
                prop_assert_eq!(flush_after(Some(back), !is_never), ByRatios::Keep);
            }
        }
    }
}
