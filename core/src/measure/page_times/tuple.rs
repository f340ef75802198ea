//! What a tuple costs the processor, beside the page that it is on.
//!
//! Two counts of tuples are taken, of many blocks and of few, all in shared buffers. The difference is the
//! tuples' work and the hits: planning and beginning are in both. Counts are repeated at some places of the
//! relation, since one alone takes less than a millisecond, for which a shared processor may be fast or slow.
//!
//! Places are the same in each run: what is counted stays in shared buffers, and later runs shall not find
//! more and more there. Around places of which the OS cache holds nothing it is emptied again.

use std::ops::Range;
use std::time::Duration;

use super::spans::ColdRanges;
use crate::Error;
use crate::files::RelationFiles;
use crate::measure::page_times::Estimate;
use crate::run::budget::Budget;
use crate::run::clock::nanoseconds;
use crate::run::order::Permutation;
use crate::stats::{median, of_median};

/// What counting the tuples of a range of blocks took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TuplesCounted {
    /// Nanoseconds of the processor, with what it takes to plan and to begin.
    pub ns: u64,
    /// Tuples.
    pub tuples: u64,
    /// Blocks that had to be read.
    pub reads: u64,
}

/// Counts the tuples in these ranges of blocks, one after the other. None if that can't be done, or not
/// without reading other blocks.
pub type Count<'a> = dyn FnMut(&[Range<u64>]) -> Option<Vec<TuplesCounted>> + 'a;

/// The time of a tuple.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TupleTime {
    /// Of one tuple, with an interval from six pairs on.
    pub time: Estimate,
    /// Tuples of a block.
    pub per_block: f64,
    /// Tuples in all pairs.
    pub tuples: u64,
    /// Pairs of counts.
    pub pairs: usize,
}

/// What came of counting.
#[derive(Debug, Default)]
pub struct CountOutcome {
    /// None without tuples, if they were not in shared buffers, or if the time is lost in noise.
    pub time: Option<TupleTime>,
    /// Did hits alone seem to take as long as the counts?
    pub is_lost_in_noise: bool,
    /// Was it not even possible to count?
    pub is_refused: bool,
    /// Why what was read stays in the OS cache, if so.
    pub left_behind: Option<Error>,
}

/// Places, and the blocks of a long count and of a short one.
const PLACES: u64 = 4;
const LONG: u64 = 128;
const SHORT: u64 = 16;

/// Fewest and most rounds that count at each place; between these, the time after which counting ends.
const LEAST_ROUNDS: usize = 6;
const MOST_ROUNDS: usize = 100;
const LEAST_TIME: Duration = Duration::from_millis(100);

/// Counts at some places of a relation where a hit in shared buffers takes `hit_ns`. Up to `window` bytes
/// behind each the kernel may read ahead. Ends early for a reason to stop.
pub fn measure(
    source: &RelationFiles,
    window: u64,
    hit_ns: f64,
    count: &mut Count<'_>,
    budget: &mut Budget<'_>,
) -> CountOutcome {
    let clock = budget.clock();
    let places = places(source.blocks());
    let mut cold = cold_around(source, window, &places);
    let ranges: Vec<Range<u64>> =
        places.iter().flat_map(|(long, short)| [long.clone(), short.clone()]).collect();
    let mut pairs = Vec::new();
    let mut end = clock.now();
    let mut is_refused = false;
    for round in 0..=MOST_ROUNDS {
        let over = round > LEAST_ROUNDS && clock.now() >= end;
        if over || budget.caller_stop().is_some() {
            break;
        }
        let Some(counted) = count(&ranges) else {
            is_refused = true;
            break;
        };
        if counted.iter().all(|counted| counted.tuples == 0) {
            break;
        }
        for (counts, (long, short)) in counted.chunks_exact(2).zip(&places) {
            if counts.iter().all(|counted| counted.reads == 0) {
                pairs.push(CountedPair {
                    ns: counts[0].ns as f64 - counts[1].ns as f64,
                    tuples: counts[0].tuples.saturating_sub(counts[1].tuples),
                    blocks: (long.end - long.start) - (short.end - short.start),
                });
            }
        }
        if round == 0 {
            // It brought them into shared buffers.
            end = clock.now().saturating_add(nanoseconds(LEAST_TIME));
        }
    }
    let time = per_tuple(&pairs, hit_ns);
    let is_lost_in_noise = time.is_none() && pairs.iter().any(|pair| pair.tuples > 0);
    CountOutcome { time, is_lost_in_noise, is_refused, left_behind: cold.release().err() }
}

/// Where to count: in many blocks, and in the first of them.
fn places(blocks: u64) -> Vec<(Range<u64>, Range<u64>)> {
    let (long, short) = (LONG.min(blocks), SHORT.min(blocks / 2));
    let starts = Permutation::new((blocks / long.max(1)).max(1), 0);
    (0..PLACES.min(starts.len()))
        .map(|place| starts.at(place) * long)
        .map(|start| (start..start + long, start..start + short))
        .collect()
}

/// Places of which the OS cache holds nothing, each with as much behind it as the kernel may read ahead.
fn cold_around<'a>(
    source: &'a RelationFiles,
    window: u64,
    places: &[(Range<u64>, Range<u64>)],
) -> ColdRanges<'a> {
    let window = window / u64::from(source.block_size());
    let around = places.iter().map(|(long, _)| long.start..(long.end + window).min(source.blocks()));
    let cold = around.filter(|range| source.cached_bytes(range.clone()).is_ok_and(|bytes| bytes == 0));
    ColdRanges::of(source, cold.collect())
}

/// How much more a long count took than a short one at the same place.
#[derive(Debug, Clone, Copy)]
struct CountedPair {
    /// Below 0 if the short one was disturbed.
    ns: f64,
    tuples: u64,
    blocks: u64,
}

/// The median over pairs, where a hit takes `hit_ns`. None without tuples, or if the hits took all of the
/// time.
fn per_tuple(pairs: &[CountedPair], hit_ns: f64) -> Option<TupleTime> {
    let pairs: Vec<&CountedPair> = pairs.iter().filter(|pair| pair.tuples > 0 && pair.blocks > 0).collect();
    let tuples: u64 = pairs.iter().map(|pair| pair.tuples).sum();
    let blocks: u64 = pairs.iter().map(|pair| pair.blocks).sum();
    let times = pairs.iter().map(|pair| (pair.ns - pair.blocks as f64 * hit_ns) / pair.tuples as f64 / 1e3);
    let times: Vec<f64> = times.collect();
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
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::files::relation_files::fixture::Relation;
    use crate::run::budget::Stop;
    use crate::run::clock::Manual;

    /// Tuples of 40 ns each, a hit of 100 ns, 50 us to begin with, and each seventh count is disturbed. What
    /// is counted the first time is read. Returns how many counts there were, too.
    fn measured(relation: &Relation, per_block: u64, hit_ns: f64) -> (Option<TupleTime>, usize) {
        let (clock, mut counts) = (Manual::default(), 0);
        let mut count = |ranges: &[Range<u64>]| {
            let first = counts == 0;
            let one = |range: &Range<u64>| {
                counts += 1;
                let blocks = range.end - range.start;
                let lost = if counts % 7 == 0 { 10_000_000 } else { 0 };
                let ns = 50_000 + blocks * (100 + per_block * 40) + lost;
                clock.advance(ns);
                if first {
                    relation.read(range.clone());
                }
                TuplesCounted { ns, tuples: blocks * per_block, reads: if first { blocks } else { 0 } }
            };
            Some(ranges.iter().map(one).collect())
        };
        let mut should_stop = || None;
        let mut budget = Budget::unlimited(&clock, &mut should_stop);
        let outcome = measure(&relation.source, 1 << 20, hit_ns, &mut count, &mut budget);
        assert!(outcome.left_behind.is_none(), "{outcome:?}");
        let has_tuples = per_block > 0 && relation.source.blocks() > 0;
        assert_eq!(outcome.is_lost_in_noise, has_tuples && outcome.time.is_none(), "{outcome:?}");
        (outcome.time, counts)
    }

    #[test]
    fn planning_and_hits_are_taken_out() {
        let relation = Relation::new(2000, 0..2000);
        let (tuple, counts) = measured(&relation, 70, 100.0);
        let tuple = tuple.expect("a time");
        assert!((tuple.time.us - 0.04).abs() < 1e-9, "{tuple:?}");
        // Of two counts at each of four places the first round, which read, is left out.
        assert_eq!((tuple.per_block, tuple.pairs), (70.0, (counts - 8) / 2));
        assert_eq!(tuple.tuples, tuple.pairs as u64 * 112 * 70);
        let (low, high) = tuple.time.interval.expect("enough pairs");
        assert!(low <= 0.04 + 1e-9 && high >= 0.04 - 1e-9);
    }

    #[test]
    fn counts_go_on_for_a_while() {
        let relation = Relation::new(600, 0..600);
        // A round of 4 × 144 blocks takes 0.4 ms and some disturbances; one with more tuples takes longer
        // than the least time.
        let (_, few) = measured(&relation, 1, 100.0);
        let (_, many) = measured(&relation, 5000, 100.0);
        assert!(few > many, "{few} {many}");
        assert_eq!(many, 8 * (LEAST_ROUNDS + 1));
        assert!(few <= 8 * (MOST_ROUNDS + 1));
    }

    #[test]
    fn what_was_cold_is_dropped_again() {
        let relation = Relation::new(2000, 0..2000);
        relation.evict();
        measured(&relation, 70, 100.0);
        assert_eq!(relation.source.cached_bytes(0..2000).expect("known"), 0);
        // A place that was partly cached before is left as it is.
        let (long, _) = places(2000)[0].clone();
        relation.read(long.end - 1..long.end);
        measured(&relation, 70, 100.0);
        let left = relation.source.cached_bytes(long.clone()).expect("known");
        assert_eq!(left, (long.end - long.start) * u64::from(relation.source.block_size()));
    }

    #[test]
    fn what_was_cold_is_dropped_also_by_unwinding() {
        let relation = Relation::new(600, 0..600);
        relation.evict();
        let mut count = |ranges: &[Range<u64>]| {
            relation.read(ranges[0].clone());
            panic!("cancelled");
        };
        let cancelled = AssertUnwindSafe(|| {
            let (clock, mut should_stop) = (Manual::default(), || None);
            let mut budget = Budget::unlimited(&clock, &mut should_stop);
            measure(&relation.source, 0, 100.0, &mut count, &mut budget);
        });
        assert!(catch_unwind(cancelled).is_err());
        assert_eq!(relation.source.cached_bytes(0..600).expect("known"), 0);
    }

    #[test]
    fn a_reason_to_stop_ends_it() {
        let (relation, clock, mut counts) = (Relation::new(600, 0..600), Manual::default(), 0);
        let mut count = |ranges: &[Range<u64>]| {
            counts += 1;
            Some(vec![TuplesCounted { ns: 1000, tuples: 7, reads: 0 }; ranges.len()])
        };
        let mut asked = 0;
        let mut should_stop = || {
            asked += 1;
            (asked > 2).then_some(Stop::LockWaiter)
        };
        let mut budget = Budget::unlimited(&clock, &mut should_stop);
        measure(&relation.source, 0, 100.0, &mut count, &mut budget);
        assert_eq!(counts, 2);
    }

    #[test]
    fn without_tuples_there_is_no_time() {
        assert_eq!(measured(&Relation::new(0, 0..0), 70, 100.0).0, None);
        let relation = Relation::new(300, 0..300);
        assert_eq!(measured(&relation, 0, 100.0).0, None);
        // A hit that takes all of it.
        assert_eq!(measured(&relation, 1, 1e6).0, None);
        // One block is enough, if need be.
        assert!(measured(&Relation::new(1, 0..1), 70, 100.0).0.is_some());
    }
}
