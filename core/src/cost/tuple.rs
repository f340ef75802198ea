//! What a tuple costs the processor, beside the page that it is on.
//!
//! Two counts of tuples are taken, of many blocks and of few, all in shared buffers. What lies between them is the
//! tuples' work and the hits: planning and beginning are in both.

use crate::cost::Estimate;
use crate::stats::{median, of_median};

/// One count of the tuples in some blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// Nanoseconds.
    pub ns: u64,
    /// Tuples.
    pub tuples: u64,
    /// Blocks.
    pub blocks: u64,
}

/// The time of a tuple.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TupleTime {
    /// Of one, with an interval from six pairs on.
    pub time: Estimate,
    /// How many a block has.
    pub per_block: f64,
    /// Tuples in all pairs.
    pub tuples: u64,
    /// Pairs of counts.
    pub pairs: usize,
}

/// The median over pairs of a long count and a short one, where a hit takes `hit_ns`. None without tuples, or if the hits
/// took all of the time.
pub fn per_tuple(pairs: &[(Count, Count)], hit_ns: f64) -> Option<TupleTime> {
    let (mut times, mut tuples, mut blocks) = (Vec::new(), 0, 0);
    for (long, short) in pairs {
        let more = |of: fn(&Count) -> u64| of(long).saturating_sub(of(short));
        let (more_tuples, more_blocks) = (more(|c| c.tuples), more(|c| c.blocks));
        if more_tuples == 0 || more_blocks == 0 {
            continue;
        }
        // Not saturating: a short count that was disturbed belongs to the other tail.
        let ns = long.ns as f64 - short.ns as f64 - more_blocks as f64 * hit_ns;
        times.push(ns / more_tuples as f64 / 1e3);
        tuples += more_tuples;
        blocks += more_blocks;
    }
    let us = median(&times).filter(|us| *us > 0.0)?;
    let interval = of_median(&times).map(|interval| (interval.low.max(0.0), interval.high));
    Some(TupleTime {
        time: Estimate { us, interval },
        per_block: tuples as f64 / blocks as f64,
        tuples,
        pairs: times.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pair of blocks with `per_block` tuples of 40 ns each, a hit of 100 ns, and 50 us to begin with.
    fn pair(per_block: u64, disturbed: u64) -> (Count, Count) {
        let count = |blocks: u64| Count {
            ns: 50_000 + blocks * (100 + per_block * 40),
            tuples: blocks * per_block,
            blocks,
        };
        let long = count(128);
        (Count { ns: long.ns + disturbed, ..long }, count(16))
    }

    #[test]
    fn planning_and_hits_are_taken_out() {
        let mut pairs = vec![pair(70, 0); 7];
        pairs.push(pair(70, 10_000_000));
        let tuple = per_tuple(&pairs, 100.0).expect("a time");
        assert!((tuple.time.us - 0.04).abs() < 1e-9, "{tuple:?}");
        assert_eq!((tuple.per_block, tuple.pairs, tuple.tuples), (70.0, 8, 8 * 112 * 70));
        let (low, high) = tuple.time.interval.expect("enough pairs");
        assert!(low <= 0.04 + 1e-9 && high >= 0.04 - 1e-9);
    }

    #[test]
    fn without_tuples_there_is_no_time() {
        assert_eq!(per_tuple(&[], 100.0), None);
        assert_eq!(per_tuple(&[pair(0, 0); 8], 100.0), None);
        // A hit that takes all of it.
        assert_eq!(per_tuple(&[pair(1, 0); 8], 1e6), None);
    }
}
