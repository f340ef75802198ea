//! What the server's I/O workers fetch for a query (from 18 on), told apart by the nodes that had them read.
//!
//! Their accounts are looked at when another node begins to have them read, after the first thousand times at
//! most once a millisecond. What came since the last look is of the nodes that read meanwhile, by their
//! blocks: of one alone it is exact.

use std::time::{Duration, Instant};

use io_probe_core::machine::account::{self, Account, AccountTally, Workers};
use io_probe_core::machine::process_io::ProcessIo;

use super::counting::OUTSIDE;

/// A look takes some ten microseconds: so many are taken whenever there is a reason, others in this distance.
const FREE_LOOKS: u32 = 1000;
const DISTANCE: Duration = Duration::from_millis(1);

/// The workers while a query is counted.
pub(super) struct IoWorkers {
    /// All that they fetch, also by workers that come later, and what this process does, which had fetched
    /// `own` before.
    tally: AccountTally,
    own: u64,
    pids: Vec<i32>,
    /// Bytes by the last look, and when that was.
    seen: u64,
    looked: Instant,
    looks: u32,
    /// Bytes that were given to nodes.
    given: u64,
    /// The node that reads now, and the blocks that each has had read since the last look.
    reader: usize,
    since: Vec<(usize, u64)>,
    /// Was anything shared out among several nodes?
    shared_out: bool,
}

/// Bytes for a node.
pub(super) type Share = (usize, u64);

impl IoWorkers {
    /// None if the server has none.
    pub(super) fn of(account: Account) -> Option<Self> {
        let Account::With(Workers { pids, .. }) = account else { return None };
        let pids = pids();
        let seen = fetched(&pids);
        Some(Self {
            tally: AccountTally::begin(account),
            own: account::own_read_bytes()?,
            pids,
            seen,
            looked: Instant::now(),
            looks: 0,
            given: 0,
            reader: OUTSIDE,
            since: Vec::new(),
            shared_out: false,
        })
    }

    /// `node` begins to have blocks read. Returns what the nodes before it get.
    pub(super) fn begin(&mut self, node: usize) -> Vec<Share> {
        if self.reader == node {
            return Vec::new();
        }
        self.reader = node;
        let is_due = self.looks < FREE_LOOKS || self.looked.elapsed() >= DISTANCE;
        if self.since.is_empty() || !is_due {
            return Vec::new();
        }
        self.looks += 1;
        let now = fetched(&self.pids);
        let bytes = now.saturating_sub(self.seen);
        (self.seen, self.looked) = (now, Instant::now());
        self.share_out(bytes)
    }

    /// `node` has had so many blocks read.
    pub(super) fn add(&mut self, node: usize, blocks: u64) {
        match self.since.iter_mut().find(|(other, _)| *other == node) {
            Some((_, sum)) => *sum += blocks,
            None => self.since.push((node, blocks)),
        }
    }

    fn share_out(&mut self, bytes: u64) -> Vec<Share> {
        let since = std::mem::take(&mut self.since);
        self.shared_out |= since.len() > 1 && bytes > 0;
        let shares = by_blocks(&since, bytes);
        self.given += shares.iter().map(|(_, bytes)| bytes).sum::<u64>();
        shares
    }

    /// The query has ended: what was not given yet. `others` are the blocks that parallel workers had read.
    /// None if it is not known.
    pub(super) fn end(mut self, others: &[(usize, u64)]) -> Option<(Vec<Share>, bool)> {
        let own = account::own_read_bytes()?.saturating_sub(self.own);
        let bytes = self.tally.bytes().ok()?.saturating_sub(own + self.given);
        others.iter().for_each(|(node, blocks)| self.add(*node, *blocks));
        let shares = self.share_out(bytes);
        Some((shares, self.shared_out))
    }
}

/// Shares out bytes by blocks, without a rest.
fn by_blocks(blocks: &[(usize, u64)], bytes: u64) -> Vec<Share> {
    let (mut blocks_left, mut bytes_left) = (blocks.iter().map(|(_, blocks)| blocks).sum::<u64>(), bytes);
    let shares = blocks.iter().map(|(node, blocks)| {
        let part = (u128::from(bytes_left) * u128::from(*blocks) / u128::from(blocks_left.max(1))) as u64;
        (blocks_left, bytes_left) = (blocks_left - blocks, bytes_left - part);
        (*node, part)
    });
    shares.collect()
}

fn fetched(pids: &[i32]) -> u64 {
    pids.iter().filter_map(|pid| ProcessIo::of(*pid)).map(|io| io.fetched).sum()
}
