//! One request now and then, each timed by itself: what ioping does.
//!
//! Requests follow a schedule; one that is late goes out at once and moves none of the others. Reads fetch
//! single blocks of a relation in random order, writes go to random blocks of a scratch file only.
//! The first request of each kind is warm-up. Only the system call is timed: which block it is, what the page
//! cache holds of it and what is to be written are settled before.
//!
//! Caveats. A write is not followed by a sync: through the page cache it is a copy in memory, past it the
//! device may keep it in a volatile cache. A device that has idled since the last request may have to wake
//! up, which under load it would not; that is what a ping is for.

use std::time::Duration;

use crate::Result;
use crate::engine::{Engine, Pread, expect_full};
use crate::measure::load::ScratchWrites;
use crate::measure::random::{FetchOrder, Found, Located};
use crate::run::budget::{Budget, Limits, Stop};
use crate::run::clock::nanoseconds;

/// An answered request.
#[derive(Debug, Clone, Copy)]
pub struct Pong {
    /// The block, of the relation or of the scratch file.
    pub block: u64,
    /// What the page cache had of it; None for a write.
    pub found: Option<Found>,
    /// The first of its kind.
    pub warmup: bool,
    /// What the system call took, in nanoseconds.
    pub time_ns: u64,
}

/// Reads the next block of `fetch_order` that holds data; None when none is left.
fn read(
    fetch_order: &mut FetchOrder<'_>,
    engine: &mut Pread,
    budget: &mut Budget<'_>,
) -> Result<Option<Pong>> {
    let (source, clock) = (fetch_order.source(), budget.clock());
    let block_size = source.block_size() as usize;
    loop {
        fetch_order.prepare(budget)?;
        let Some(fetch) = fetch_order.hand_out(budget)? else { return Ok(None) };
        if fetch.found == Found::Hole {
            if budget.poll().is_some() {
                return Ok(None);
            }
            continue;
        }
        let Located { file, offset, .. } = fetch_order.locate(fetch.block)?;
        let started = clock.now();
        engine.submit(0, &file, offset, block_size);
        let completion = engine.wait(&mut || ())?;
        let time_ns = clock.now() - started;
        expect_full(completion, &source.path(source.segment(fetch.block)), offset, block_size)?;
        return Ok(Some(Pong { block: fetch.block, found: Some(fetch.found), warmup: false, time_ns }));
    }
}

/// Sends `count` requests of `block_size` bytes, one each `every` or as often as the limits allow: reads of
/// the blocks of `fetch_order`, writes, or both in turn, a write first. `report` hears how many are answered.
///
/// Returns the answers, and what stopped it. Fewer answers without a reason: no more blocks hold data.
#[allow(clippy::too_many_arguments, reason = "who, what, how often, within which bounds")]
pub fn ping(
    fetch_order: Option<FetchOrder<'_>>,
    writes: Option<ScratchWrites>,
    block_size: u32,
    count: u32,
    every: Duration,
    limits: &Limits,
    budget: &mut Budget<'_>,
    report: &mut dyn FnMut(u64),
) -> Result<(Vec<Pong>, Option<Stop>)> {
    let mut budget = budget.part(limits);
    let clock = budget.clock();
    let mut reader = fetch_order
        .map(|fetch_order| Pread::new(block_size as usize).map(|engine| (fetch_order, engine)))
        .transpose()?;
    let block_size = u64::from(block_size);
    budget.pace(limits, block_size);
    budget.pacer().set_every(nanoseconds(every));
    let mut rested = budget.started();
    let mut pongs: Vec<Pong> = Vec::new();
    let (mut written, mut stop) = (0, None);
    for index in 0..u64::from(count) {
        stop = if budget.bytes_left() < block_size { Some(Stop::Bytes) } else { budget.wait() };
        if stop.is_some() {
            break;
        }
        let writes_now = reader.is_none() || index % 2 == 0;
        let pong = match (&writes, &mut reader) {
            (Some(writes), _) if writes_now => {
                budget.spend(block_size);
                let (block, time_ns) = writes.timed(written, clock)?;
                written += 1;
                Some(Pong { block, found: None, warmup: false, time_ns })
            }
            (_, Some((fetch_order, engine))) => read(fetch_order, engine, &mut budget)?,
            _ => None,
        };
        let Some(pong) = pong else {
            stop = budget.poll();
            break;
        };
        budget.pacer().charge_on_schedule(block_size, pong.time_ns);
        rested = clock.now().saturating_add(budget.pacer().rest_ns(pong.time_ns));
        budget.latency_mut().observe(pong.time_ns);
        let warmup = pongs.iter().all(|earlier| earlier.found.is_some() != pong.found.is_some());
        pongs.push(Pong { warmup, ..pong });
        report(pongs.len() as u64);
    }
    budget.rest_until(rested);
    Ok((pongs, stop))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::RelationFiles;
    use crate::files::scratch::{Fill, Room, Scratch, ScratchLocation};
    use crate::measure::random::Look;
    use crate::run::budget::StopCheck;
    use crate::run::clock::{Clock, Monotonic, Ticking};
    use crate::run::order::Permutation;
    use std::fs::File;
    use std::os::unix::fs::FileExt;
    use std::sync::Arc;

    const BLOCK: u32 = 8192;
    const BLOCKS: u64 = 64;

    fn relation(directory: &std::path::Path) -> RelationFiles {
        let source = RelationFiles::new(directory.join("1"), BLOCK, 1 << 17, BLOCKS);
        let file = File::create(source.path(0)).expect("created");
        file.write_all_at(&[1; BLOCK as usize * (BLOCKS as usize - 16)], 0).expect("written");
        file.set_len(BLOCKS * u64::from(BLOCK)).expect("extended");
        file.sync_all().expect("synced");
        source
    }

    fn scratch(directory: &std::path::Path) -> Arc<Scratch> {
        let place = ScratchLocation { directory, fallback: &directory.join("fallback") };
        let room = Room { size: 16 * u64::from(BLOCK), reserve: 0, limits: Limits::none() };
        let created = Scratch::create(place, None, room, Fill::Incompressible, &mut || None);
        Arc::new(created.expect("created").0)
    }

    fn writes(scratch: &Arc<Scratch>, flags: i32) -> Option<ScratchWrites> {
        Some(ScratchWrites::new(Arc::clone(scratch), flags, BLOCK, Some(1), false).expect("writes"))
    }

    fn limits() -> Limits {
        Limits { duration: Duration::from_secs(60), ..Limits::none() }
    }

    #[test]
    fn writes_and_reads_take_turns_and_each_has_a_warm_up() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory");
        let source = relation(directory.path());
        let scratch = scratch(directory.path());
        let before = std::fs::read(source.path(0)).expect("read");
        let mut held = vec![0; scratch.size() as usize];
        scratch.file().read_exact_at(&mut held, 0).expect("read");
        let fetch_order = FetchOrder::new(&source, Permutation::new(BLOCKS, 1), 0, Look::Batches(1));
        let every = Duration::from_millis(2);
        let (started, mut reported) = (Monotonic.now(), Vec::new());
        let (pongs, stop) = ping(
            Some(fetch_order),
            writes(&scratch, 0),
            BLOCK,
            10,
            every,
            &limits(),
            &mut Budget::unlimited(&Monotonic, &mut || None),
            &mut |answered| reported.push(answered),
        )
        .expect("answers");
        assert_eq!((stop, reported), (None, Vec::from_iter(1..=10)));
        assert!(Monotonic.now() - started >= 18_000_000);
        let reads: Vec<_> = pongs.iter().map(|pong| (pong.found.is_some(), pong.warmup)).collect();
        assert_eq!(reads[..3], [(false, true), (true, true), (false, false)]);
        assert_eq!(reads[9], (true, false));
        assert!(pongs.iter().all(|pong| pong.time_ns > 0));
        assert!(pongs.iter().all(|pong| pong.found != Some(Found::Hole)), "holes are passed over");
        assert_eq!(std::fs::read(source.path(0)).expect("read"), before, "the relation is only read");
        let mut now = vec![0; scratch.size() as usize];
        scratch.file().read_exact_at(&mut now, 0).expect("read");
        let block = BLOCK as usize;
        let changed: Vec<u64> = (0..16)
            .filter(|&b| held[b * block..][..block] != now[b * block..][..block])
            .map(|b| b as u64)
            .collect();
        let mut written: Vec<u64> = pongs.iter().filter(|p| p.found.is_none()).map(|p| p.block).collect();
        written.sort_unstable();
        assert_eq!(changed, written);
    }

    #[test]
    fn a_relation_that_is_read_through_ends_it() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory");
        let source = relation(directory.path());
        let fetch_order = FetchOrder::new(&source, Permutation::new(BLOCKS, 1), 0, Look::Never);
        let (pongs, stop) = ping(
            Some(fetch_order),
            None,
            BLOCK,
            1000,
            Duration::ZERO,
            &limits(),
            &mut Budget::unlimited(&Monotonic, &mut || None),
            &mut |_| (),
        )
        .expect("answers");
        assert_eq!((pongs.len() as u64, stop), (BLOCKS - 16, None));
    }

    #[test]
    fn the_duration_and_the_caller_end_it() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory");
        let scratch = scratch(directory.path());
        let run = |limits: &Limits, should_stop: &mut StopCheck<'_>| {
            let every = Duration::from_millis(20);
            ping(
                None,
                writes(&scratch, libc::O_DIRECT),
                BLOCK,
                1000,
                every,
                limits,
                &mut Budget::unlimited(&Monotonic, should_stop),
                &mut |_| (),
            )
            .expect("answers")
        };
        let short = Limits { duration: Duration::from_millis(50), ..limits() };
        let (pongs, stop) = run(&short, &mut || None);
        assert!((1..=3).contains(&pongs.len()) && stop == Some(Stop::Duration));
        let (pongs, stop) = run(&Limits { max_bytes: 2 * u64::from(BLOCK) + 1, ..limits() }, &mut || None);
        assert_eq!((pongs.len(), stop), (2, Some(Stop::Bytes)));
        let rested = Limits { max_util: Some(1e-7), duration: Duration::from_millis(100), ..limits() };
        assert_eq!(run(&rested, &mut || None).0.len(), 1);
        // The last request has its rest, too.
        let started = Monotonic.now();
        let pongs = ping(
            None,
            writes(&scratch, libc::O_DIRECT),
            BLOCK,
            1,
            Duration::ZERO,
            &rested,
            &mut Budget::unlimited(&Monotonic, &mut || None),
            &mut |_| (),
        );
        assert!(pongs.expect("answers").0.len() == 1 && Monotonic.now() - started >= 100_000_000);
        // So it has if the bytes end it. On this clock a call takes 20 us.
        let clock = Ticking::default();
        let two = Limits { max_util: Some(0.001), max_bytes: 2 * u64::from(BLOCK), ..limits() };
        let mut should_stop = || None;
        let mut budget = Budget::unlimited(&clock, &mut should_stop);
        let writes = writes(&scratch, libc::O_DIRECT);
        let ended = ping(None, writes, BLOCK, 1000, Duration::ZERO, &two, &mut budget, &mut |_| ());
        assert_eq!(ended.map(|(pongs, stop)| (pongs.len(), stop)).ok(), Some((2, Some(Stop::Bytes))));
        assert!(clock.now() >= 2 * 20_000_000, "{}", clock.now());
        let slow = Limits { max_iops: Some(10), duration: Duration::from_millis(250), ..limits() };
        assert!((1..=3).contains(&run(&slow, &mut || None).0.len()));
        let mut asked = 0;
        let mut should_stop = || {
            asked += 1;
            (asked > 5).then_some(Stop::LockWaiter)
        };
        let (pongs, stop) = run(&limits(), &mut should_stop);
        assert!(pongs.len() < 10);
        assert_eq!(stop, Some(Stop::LockWaiter));
    }
}
