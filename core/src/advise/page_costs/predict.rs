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

use serde::Serialize;

use super::curve::GapCurve;
use crate::measure::page_times::{Estimate, PageTimes};
use crate::plan::{Node, NodeAccess};

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
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
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
    // In whole microseconds, as EXPLAIN's times are.
    let ms = |read_us: Option<f64>| Some((hits_us? + read_us?).round() / 1000.0);
    let (os, device) = match access {
        NodeAccess::Sequential => (times.os_sequential, times.device_sequential),
        NodeAccess::Random => (times.os_random, times.device_random),
        NodeAccess::Bitmap => {
            let us = || sparse_us(node, read, &GapCurve::of(times)?, place()?);
            let one = if read > 0 { us() } else { None };
            // Memory has no readahead to win by: a block with a gap before it is a block by itself.
            (times.os_random, one.map(|us| Estimate { us, interval: None }))
        }
    };
    Prediction { os_ms: ms(blocks_us(read, os)), device_ms: ms(blocks_us(read, device)) }
}

/// Microseconds of so many blocks; without any the time of one need not be known.
fn blocks_us(blocks: u64, one: Option<Estimate>) -> Option<f64> {
    if blocks == 0 { Some(0.0) } else { one.map(|one| one.us * blocks as f64) }
}

/// Microseconds of a block, by the density in one pass over the relation. The processes of a parallel scan
/// share a pass; any other loop is one of its own.
fn sparse_us(node: &Node, read: u64, curve: &GapCurve, place: PagePlace) -> Option<f64> {
    let pages = place.pages.filter(|pages| *pages > 0)?;
    let shared = node.node_type.starts_with("Parallel ");
    let passes = node.loops.filter(|_| !shared).unwrap_or(1).max(1);
    Some(curve.at(read as f64 / passes as f64 / pages as f64, place.concurrency))
}

#[cfg(test)]
mod tests;
