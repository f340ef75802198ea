//! Scans under limits, on a made-up device.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use super::{Direct, Scan, ScanRun, Steps, scan};
use crate::engine::{Completion, Engine};
use crate::files::relation_files::fixture::{BLOCK, Relation};
use crate::run::budget::{Budget, Limits};
use crate::run::clock::{Clock, Manual};

const DEPTH: usize = 8;
const REQUEST_BLOCKS: u64 = 2;
const LATENCY_NS: u64 = 2_000_000;

/// What the device gives at this depth, in MiB a second.
fn at_depth(depth: usize) -> f64 {
    let bytes = (depth as u64 * REQUEST_BLOCKS * BLOCK) as f64;
    bytes / f64::from(1 << 20) * 1e9 / LATENCY_NS as f64
}

/// A device that serves all that is in flight side by side.
struct Device<'a> {
    clock: &'a Manual,
    in_flight: Vec<(u64, Completion)>,
    most: usize,
}

impl Engine for Device<'_> {
    fn submit_at(&mut self, slot: usize, _at: usize, _file: &Arc<File>, _offset: u64, len: usize) {
        assert!(self.in_flight.iter().all(|(_, busy)| busy.slot != slot), "slot {slot} is busy");
        self.in_flight.push((self.clock.now() + LATENCY_NS, Completion { slot, result: Ok(len) }));
        self.most = self.most.max(self.in_flight.len());
    }

    fn wait(&mut self, _idle: &mut dyn FnMut()) -> crate::Result<Completion> {
        let (end, completion) = self.in_flight.remove(0);
        self.clock.advance(end.saturating_sub(self.clock.now()));
        Ok(completion)
    }

    fn bytes(&self, _slot: usize, _at: usize, _len: usize) -> &[u8] {
        &[]
    }
}

/// A direct scan under a limit: what it found, and the most that was in flight.
fn limited(relation: &Relation, limits: Limits) -> (Scan, usize) {
    let clock = Manual::default();
    let mut device = Device { clock: &clock, in_flight: Vec::new(), most: 0 };
    let mut reader = Direct::new(&relation.source, &mut device, DEPTH, REQUEST_BLOCKS);
    let (source, blocks) = (&relation.source, 0..relation.source.blocks());
    let run = ScanRun { source, blocks, steps: Steps::of(REQUEST_BLOCKS), without_data: None, limits };
    let mut should_stop = || None;
    let mut budget = Budget::unlimited(&clock, &mut should_stop);
    let scan = scan(&run, &mut reader, &mut budget, &mut |_| ());
    (scan.expect("scanned"), device.most)
}

const LIMITS: Limits = Limits { duration: Duration::from_millis(500), ..Limits::none() };

fn mib_s(scan: &Scan) -> f64 {
    BLOCK as f64 / f64::from(1 << 20) * 1e9 / scan.ns_per_block().expect("a time")
}

#[test]
fn a_limit_that_is_out_of_reach_does_not_empty_the_queue() {
    let relation = Relation::of_segments(4096, 4096, 0..4096);
    let (free, _) = limited(&relation, LIMITS);
    assert!((mib_s(&free) / at_depth(DEPTH) - 1.0).abs() < 0.01, "{}", mib_s(&free));
    for limit in [75, 100, 200, 1000, 10_000] {
        let (scan, _) = limited(&relation, Limits { max_mib_s: Some(limit), ..LIMITS });
        assert!(!scan.throttled, "{limit}");
        assert!(mib_s(&scan) > 0.9 * at_depth(DEPTH), "{limit}: {}", mib_s(&scan));
    }
}

#[test]
fn a_share_of_the_time_is_kept() {
    let relation = Relation::of_segments(4096, 4096, 0..4096);
    for util in [0.02, 0.1, 0.5, 0.9] {
        let (scan, most) = limited(&relation, Limits { max_util: Some(util), ..LIMITS });
        assert!(scan.throttled && most == DEPTH, "{util}: {most}");
        let share = scan.rated.ns as f64 / scan.elapsed_ns as f64;
        assert!(share <= 1.02 * util && share > 0.5 * util, "{util}: {share}");
    }
    // A rate that is tighter counts.
    let both = Limits { max_util: Some(0.9), max_mib_s: Some(2), ..LIMITS };
    let (scan, _) = limited(&relation, both);
    let mib = (scan.rated.work * BLOCK) as f64 / f64::from(1 << 20);
    assert!(mib <= 2.0 * scan.elapsed_ns as f64 / 1e9 + 0.1, "{mib} MiB in {} ns", scan.elapsed_ns);
    // A scan that is hardly held back is throttled, too: its queue was emptied all the time.
    let (scan, _) = limited(&relation, Limits { max_util: Some(0.9999), ..LIMITS });
    assert!(scan.throttled);
}

#[test]
fn time_in_holes_is_not_saved_up() {
    // A second of holes, and some data: the data has its rests.
    let relation = Relation::of_segments(8192, 8192, 7168..8192);
    let limits = Limits { max_util: Some(0.5), duration: Duration::from_secs(10), ..LIMITS };
    let (scan, _) = limited(&relation, limits);
    assert_eq!((scan.holes, scan.rated.work, scan.throttled), (7168, 1024, true));
    let in_holes = LATENCY_NS * 7168 / REQUEST_BLOCKS / DEPTH as u64;
    let with_rests = (scan.elapsed_ns - in_holes) as f64;
    assert!(in_holes > scan.rated.ns && with_rests > 1.9 * scan.rated.ns as f64, "{scan:?}");
}

#[test]
fn a_limit_that_is_reached_is_seen() {
    let relation = Relation::of_segments(4096, 4096, 0..4096);
    // Also where it takes as much as two, four, or nearly all of the requests in flight to reach it.
    for limit in [2, 5, 7, 8, 15, 16, 20, 31, 32, 50, 60, 62] {
        let (scan, most) = limited(&relation, Limits { max_mib_s: Some(limit), ..LIMITS });
        assert!(scan.throttled || mib_s(&scan) > 0.9 * at_depth(DEPTH), "{limit}");
        let mib = (scan.rated.work * BLOCK) as f64 / f64::from(1 << 20);
        let allowed = f64::from(limit) * scan.elapsed_ns as f64 / 1e9;
        // A burst of 10 ms may be ahead.
        assert!(mib <= allowed * 1.02 + f64::from(limit) / 50.0, "{limit}: {mib} MiB, not {allowed}");
        assert!(mib >= allowed * 0.9, "{limit}: {mib} MiB, not {allowed}");
        // Requests go one by one where that is fast enough.
        assert!(most == 1 || f64::from(limit) > at_depth(1), "{limit}: {most}");
    }
}

#[test]
fn a_limit_that_makes_no_pause_is_seen() {
    let relation = Relation::of_segments(4096, 4096, 0..4096);
    // What one request, two, or four at a time give; and a scan that ends before it is far behind.
    let short = Limits { duration: Duration::from_millis(10), ..LIMITS };
    for (max_iops, limits) in [(500, LIMITS), (1000, LIMITS), (2000, LIMITS), (16_000, short)] {
        let (scan, _) = limited(&relation, Limits { max_iops: Some(max_iops), ..limits });
        assert!(scan.throttled, "{max_iops}");
    }
}
