//! One load that goes on: how many requests were answered in each slice of the time, and how fast.
//!
//! Requests are sent as fast as others are answered ([`crate::measure::load`]), in slices that follow one
//! another. All that is answered in a slice counts in its rate; its latencies are without the first tenth.
//!
//! # Limitations and caveats
//! - Between two slices all answers are awaited, as long as one takes. A volume saves up some credit
//!   meanwhile.

use std::sync::Arc;
use std::time::Duration;

use crate::Result;
use crate::engine::Kind;
use crate::machine::observer::Observer;
use crate::measure::contradictions;
use crate::measure::load::{self, Requests, Stream};
use crate::run::budget::{Budget, Limits, Stop};
use crate::run::clock::nanoseconds;
use crate::stats::{Latencies, Slice};

/// What is to be measured.
pub struct SustainRun<'a> {
    /// What is sent.
    pub requests: Arc<dyn Requests>,
    /// Most in flight.
    pub workers: usize,
    /// Length of a slice.
    pub every: Duration,
    /// What bounds all of it.
    pub limits: Limits,
    /// What reads.
    pub engine: Option<Kind>,
    /// Looks at the device before and after.
    pub observer: &'a Observer<'a>,
}

/// A slice of the time.
#[derive(Debug, Clone)]
pub struct SustainSlice {
    /// When it began, in nanoseconds from the first one.
    pub began_ns: u64,
    /// Its time, with that until the next one, and its requests.
    pub slice: Slice,
    /// Of its requests.
    pub latencies: Latencies,
}

/// What was measured.
#[derive(Debug, Default)]
pub struct Sustain {
    /// All slices.
    pub slices: Vec<SustainSlice>,
    /// Bytes that were read.
    pub bytes: u64,
    /// Bytes that the device read meanwhile; None where it has no counters.
    pub moved: Option<u64>,
    /// What ended it early.
    pub stop: Option<Stop>,
    /// Did limits of the call hold it back?
    pub paced: bool,
}

impl Sustain {
    /// Is this known to be no figure of the device: did it read less than was asked of it, or were more
    /// requests answered than may have been in flight?
    pub fn is_void(&self, workers: usize) -> bool {
        let sum =
            |of: fn(&SustainSlice) -> Slice| self.slices.iter().map(of).fold(Slice::default(), Slice::plus);
        let (latencies, all) = (sum(|slice| slice.latencies.total()), sum(|slice| slice.slice));
        let exceeds = contradictions::exceeds_depth(latencies, all, workers as u64);
        contradictions::moved_less(self.moved, self.bytes) || !self.paced && exceeds
    }
}

/// Measures; `report` hears of each slice before it begins: its number, and of how many.
///
/// # Errors
/// Those of the requests.
pub fn run(
    run: &SustainRun<'_>,
    budget: &mut Budget<'_>,
    report: &mut dyn FnMut(u64, u64),
) -> Result<Sustain> {
    let bytes = run.requests.bytes();
    let stream = Stream::new(Arc::clone(&run.requests), run.workers).by(run.engine).within(&run.limits);
    let mut budget = budget.part(&run.limits);
    budget.pace(&Limits { max_iops: None, max_mib_s: None, ..run.limits }, 1);
    let of = run.limits.duration.as_nanos().div_ceil(run.every.as_nanos().max(1)) as u64;
    let mut sustain = Sustain { paced: run.limits.make_pauses(), ..Sustain::default() };
    let before = run.observer.look();
    let first = budget.clock().now();
    let mut began = first;
    for number in 1..=of {
        report(number, of);
        let (mut reached, stop) = load::run(std::slice::from_ref(&stream), run.every, &mut budget)?;
        let busy = budget.clock().now() - began;
        budget.pacer().rest(began, busy);
        let stop = stop.or_else(|| budget.wait());
        let ended = budget.clock().now();
        let (ns, work) = (ended - began, reached[0].bytes / bytes);
        // What is left of the time may be too short for a slice like the others.
        if ns >= nanoseconds(run.every) / 2 {
            let latencies = std::mem::take(&mut reached[0].latencies);
            let slice = SustainSlice { began_ns: began - first, slice: Slice { ns, work }, latencies };
            sustain.slices.push(slice);
        }
        sustain.bytes += reached[0].bytes;
        began = ended;
        if let Some(stop) = stop {
            sustain.stop = (stop != Stop::Duration).then_some(stop);
            break;
        }
    }
    sustain.moved = run.observer.since(&before).activity.map(|activity| activity.reads.bytes);
    budget.rest_at_end(&run.limits);
    Ok(sustain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::account::Account;
    use crate::machine::device::Roots;
    use crate::run::clock::{Clock, Monotonic};

    struct Answers;

    impl Requests for Answers {
        fn make(&self, _number: u64, _worker: usize) -> Result<()> {
            Monotonic.sleep(Duration::from_millis(1));
            Ok(())
        }

        fn bytes(&self) -> u64 {
            8192
        }
    }

    fn sustain(limits: Limits) -> Sustain {
        let (roots, leaves) = (Roots::default(), []);
        let observer = Observer::new(Account::Own, &leaves, &roots);
        let requests = Arc::new(Answers);
        let every = Duration::from_millis(50);
        let run = SustainRun { requests, workers: 2, every, limits, engine: None, observer: &observer };
        let mut should_stop = || None;
        let mut budget = Budget::unlimited(&Monotonic, &mut should_stop);
        super::run(&run, &mut budget, &mut |_, _| ()).expect("answers")
    }

    #[test]
    fn slices_follow_one_another_and_hold_all_requests() {
        let found = sustain(Limits { duration: Duration::from_millis(300), ..Limits::none() });
        assert!((1..=6).contains(&found.slices.len()) && !found.paced && found.stop.is_none());
        for two in found.slices.windows(2) {
            assert_eq!(two[0].began_ns + two[0].slice.ns, two[1].began_ns);
        }
        let work: u64 = found.slices.iter().map(|slice| slice.slice.work).sum();
        assert!(work > 0 && work * 8192 <= found.bytes);
        // Two at a time, each at least a millisecond.
        assert!(found.slices.iter().all(|slice| slice.slice.work <= 2 * (slice.slice.ns / 1_000_000 + 1)));
    }

    #[test]
    fn its_bytes_bound_all_slices_together() {
        let limits = Limits { duration: Duration::from_secs(60), max_bytes: 20 * 8192, ..Limits::none() };
        let found = sustain(limits);
        assert_eq!((found.bytes, found.stop), (20 * 8192, Some(Stop::Bytes)));
    }
}
