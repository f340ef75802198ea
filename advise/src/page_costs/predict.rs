//! What the blocks of a plan's node would take by measured times, if one tier had served all that it read.
//!
//! A node that reads n blocks into shared buffers takes n times that of one block, by the order in which it
//! reaches them; what it found there takes the time of a hit. So there are two predictions, for the OS cache
//! and for the device, and the truth should lie between them, nearer to the one that served.
//!
//! # Limitations and caveats
//! * The times are those of one process at a time. Below a Gather the blocks are sums over all processes, and
//!   so is the prediction: what they would take one after the other, which is not how long the query runs.
//!   EXPLAIN's I/O time is such a sum too; processes that wait for one device at once each count their whole
//!   wait.
//! * They are whole times of a block: system call, buffer manager and copy. EXPLAIN's I/O time is the read
//!   calls' up to PostgreSQL 17. From 18 on it is waiting alone: with read streams, reads that finish while
//!   rows are processed are not in it, so it may be far below both predictions.
//! * Hits are in the predictions and never in EXPLAIN's I/O time.
//! * A scan in ranges (sample, TID range) is taken as a sequential one. Index scans are taken as random
//!   throughout; where the index's order is the table's, or a block is wanted again, the kernel's readahead
//!   and cache make them faster.
//! * Gaps of a bitmap scan are taken as even. How many requests it has in flight is today's setting.
//! * Local blocks, temporary files and writes are left out.

use super::curve::GapCurve;
use crate::plan::{Node, NodeAccess};
use io_probe_core::measure::page_times::{Estimate, PageTimes};

/// Where a node's blocks are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PagePlace {
    /// Blocks that the relation has; None if it is not known.
    pub pages: Option<u64>,
    /// `effective_io_concurrency` of its tablespace.
    pub concurrency: u32,
}

/// Milliseconds that a node's shared blocks would take; None where a time is not known, or the node was not
/// executed, reads no relation by itself, or reads a temporary one.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Prediction {
    /// If all that was read came from the OS page cache.
    pub os_ms: Option<f64>,
    /// If all that was read came from the device.
    pub device_ms: Option<f64>,
}

/// The prediction for a node of blocks at `place`, which only bitmap scans ask for.
pub fn predict(node: &Node, times: &PageTimes, place: impl FnOnce() -> Option<PagePlace>) -> Prediction {
    let (Some(access), Some(hit), Some(read)) = (node.access, node.shared_blks_hit, node.shared_blks_read)
    else {
        return Prediction::default();
    };
    if node.local_blks_hit.unwrap_or(0) + node.local_blks_read.unwrap_or(0) > 0 {
        return Prediction::default();
    }
    let hits_us = blocks_us(hit, times.shared);
    let (os, device) = match access {
        NodeAccess::Sequential => (times.os_sequential, times.device_sequential),
        NodeAccess::Random => (times.os_random, times.device_random),
        NodeAccess::Bitmap => {
            let curve = GapCurve::of(times).filter(|_| read > 0);
            let one = curve.and_then(|curve| sparse_us(node, read, &curve, place()?));
            // Memory has no readahead: there a block after a gap takes as long as any other.
            (times.os_random, one.map(Estimate::from))
        }
    };
    // In whole microseconds, as EXPLAIN's times are.
    let [os_ms, device_ms] =
        [os, device].map(|one| Some((hits_us? + blocks_us(read, one)?).round() / 1000.0));
    Prediction { os_ms, device_ms }
}

/// Microseconds of `blocks` blocks; without any the time of one need not be known.
fn blocks_us(blocks: u64, one: Option<Estimate>) -> Option<f64> {
    if blocks == 0 { Some(0.0) } else { one.map(|one| one.us * blocks as f64) }
}

/// Microseconds of a block, by the density in one pass over the relation. The processes of a parallel scan
/// share a pass; any other loop is one of its own.
fn sparse_us(node: &Node, read: u64, curve: &GapCurve, place: PagePlace) -> Option<f64> {
    let pages = place.pages.filter(|pages| *pages > 0)?;
    let passes = node.loops.filter(|_| !node.is_parallel).unwrap_or(1).max(1);
    Some(curve.at(read as f64 / passes as f64 / pages as f64, place.concurrency))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan;
    use io_probe_core::measure::page_times::times::Sparse;
    use serde_json::{Value, json};

    fn exactly(us: f64) -> Estimate {
        Estimate { us, interval: None }
    }

    /// Powers of two, so that each figure shows where it came from.
    fn times() -> PageTimes {
        let sparse = [(0.1, 16, 128.0), (0.2, 16, 256.0), (0.1, 0, 512.0)];
        let sparse =
            sparse.map(|(density, concurrency, us)| Sparse { density, concurrency, time: exactly(us) });
        PageTimes {
            shared: Some(exactly(0.5)),
            os_sequential: Some(exactly(1.0)),
            os_random: Some(exactly(2.0)),
            device_sequential: Some(exactly(8.0)),
            device_random: Some(exactly(64.0)),
            sparse: sparse.into(),
            tuple: None,
        }
    }

    /// A node that found 2,000 blocks and read 10,000.
    fn node(kind: &str, more: Value) -> Node {
        let mut fields = json!({
            "Node Type": kind, "Shared Hit Blocks": 2000, "Shared Read Blocks": 10_000, "Actual Loops": 1
        });
        for (key, value) in more.as_object().expect("fields") {
            fields[key] = value.clone();
        }
        plan::nodes(&json!({ "Plan": fields }).to_string()).expect("a plan").remove(0)
    }

    fn unasked() -> Option<PagePlace> {
        panic!("only bitmap scans need to know the place")
    }

    fn at(pages: u64, concurrency: u32) -> impl FnOnce() -> Option<PagePlace> {
        move || Some(PagePlace { pages: Some(pages), concurrency })
    }

    fn rounded(prediction: Prediction) -> (Option<i64>, Option<i64>) {
        let whole = |ms: Option<f64>| ms.map(|ms| ms.round() as i64);
        (whole(prediction.os_ms), whole(prediction.device_ms))
    }

    #[test]
    fn blocks_take_the_time_of_their_access() {
        for kind in ["Seq Scan", "Sample Scan", "Tid Range Scan"] {
            let found = predict(&node(kind, json!({})), &times(), unasked);
            assert_eq!(found, Prediction { os_ms: Some(11.0), device_ms: Some(81.0) }, "{kind}");
        }
        for kind in ["Index Scan", "Index Only Scan", "Bitmap Index Scan", "Tid Scan"] {
            let found = predict(&node(kind, json!({})), &times(), unasked);
            assert_eq!(found, Prediction { os_ms: Some(21.0), device_ms: Some(641.0) }, "{kind}");
        }
    }

    #[test]
    fn a_bitmap_scan_takes_the_time_of_its_density() {
        let of = |node: &Node, place| rounded(predict(node, &times(), move || place));
        let place = |pages, concurrency| Some(PagePlace { pages: Some(pages), concurrency });
        let scan = node("Bitmap Heap Scan", json!({}));
        assert_eq!(of(&scan, place(100_000, 16)), (Some(21), Some(1281)));
        assert_eq!(of(&scan, place(50_000, 16)), (Some(21), Some(2561)));
        assert_eq!(of(&scan, place(100_000, 0)), (Some(21), Some(5121)));
        // Between: 10,000 of 70,711.
        assert_eq!(of(&scan, place(70_711, 16)), (Some(21), Some(1811)));
        // The table has shrunk since, or is read again and again: at most every block.
        assert_eq!(of(&scan, place(5000, 16)), (Some(21), Some(2561)));
        // What is not known of the place.
        assert_eq!(of(&scan, None), (Some(21), None));
        assert_eq!(of(&scan, place(0, 16)), (Some(21), None));
        assert_eq!(of(&scan, Some(PagePlace { pages: None, concurrency: 16 })), (Some(21), None));
    }

    #[test]
    fn each_loop_is_a_pass_but_processes_share_one() {
        let ten = json!({"Actual Loops": 10});
        let again = predict(&node("Bitmap Heap Scan", ten), &times(), at(10_000, 16));
        assert_eq!(rounded(again), (Some(21), Some(1281)));
        let workers = json!({"Actual Loops": 3, "Parallel Aware": true});
        let shared = predict(&node("Bitmap Heap Scan", workers), &times(), at(50_000, 16));
        assert_eq!(rounded(shared), (Some(21), Some(2561)));
    }

    #[test]
    fn what_was_not_read_needs_no_time() {
        let hits = json!({"Shared Read Blocks": 0});
        let found = Some(1.0);
        let only_shared =
            PageTimes { shared: Some(exactly(0.5)), sparse: times().sparse, ..PageTimes::default() };
        for kind in ["Seq Scan", "Index Scan", "Bitmap Heap Scan"] {
            let prediction = predict(&node(kind, hits.clone()), &only_shared, unasked);
            assert_eq!(prediction, Prediction { os_ms: found, device_ms: found }, "{kind}");
        }
        let reads = node("Seq Scan", json!({"Shared Hit Blocks": 0}));
        let no_hits = PageTimes { shared: None, ..times() };
        assert_eq!(
            predict(&reads, &no_hits, unasked),
            Prediction { os_ms: Some(10.0), device_ms: Some(80.0) }
        );
        assert_eq!(predict(&node("Seq Scan", json!({})), &no_hits, unasked), Prediction::default());
    }

    #[test]
    fn one_tier_may_be_known_without_the_other() {
        let scan = node("Seq Scan", json!({}));
        let no_device = PageTimes { device_sequential: None, ..times() };
        let known = predict(&scan, &no_device, unasked);
        assert_eq!(known, Prediction { os_ms: Some(11.0), device_ms: None });
        let no_cache = PageTimes { os_sequential: None, ..times() };
        let known = predict(&scan, &no_cache, unasked);
        assert_eq!(known, Prediction { os_ms: None, device_ms: Some(81.0) });
        let no_curve = PageTimes { sparse: vec![], ..times() };
        let known = predict(&node("Bitmap Heap Scan", json!({})), &no_curve, at(1, 0));
        assert_eq!(known, Prediction { os_ms: Some(21.0), device_ms: None });
    }

    #[test]
    fn nothing_is_said_of_what_is_not_known() {
        let none = Prediction::default();
        // Not executed, or without BUFFERS.
        let planned = plan::nodes(r#"{"Plan": {"Node Type": "Seq Scan"}}"#).expect("a plan").remove(0);
        assert_eq!(predict(&planned, &times(), unasked), none);
        // Reads nothing by itself, or blocks of an unknown order.
        for kind in ["Sort", "ModifyTable", "Function Scan", "CTE Scan"] {
            assert_eq!(predict(&node(kind, json!({})), &times(), unasked), none, "{kind}");
        }
        for key in ["Local Hit Blocks", "Local Read Blocks"] {
            let temporary = json!({"Shared Hit Blocks": 0, "Shared Read Blocks": 0, key: 5});
            assert_eq!(predict(&node("Seq Scan", temporary), &times(), unasked), none, "{key}");
        }
    }
}
