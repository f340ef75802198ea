//! How long each part of a task is at work, where the parts take turns that may be shorter than a look at the
//! clock.
//!
//! The first turns are timed one by one. If there are more of them, a thread looks now and again at which
//! part is at work, and the time since its last look is that part's: a turn then costs one store, and the
//! task takes as long as it would without.
//!
//! # Limitations and caveats
//! - Looks come every 0.1 ms at first, and every ms after 0.1 s. Of a task of a second a part that takes half
//!   of it is known to 3 %, of one of 10 ms to 20 %.
//! - Where no thread can be had each turn is timed, which may take longer than the turn itself.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::clock::{Clock, Monotonic};
use super::lock;
use super::workers::WorkerThreads;

/// So many turns are timed: less than a ms of looking at the clock.
const TIMED: u32 = 20_000;

/// Between two looks.
const LEAST: Duration = Duration::from_micros(100);
const MOST: Duration = Duration::from_millis(1);

/// Looks in the time that has passed so far, until [`MOST`] is between two.
const LOOKS: u64 = 100;

/// The times of the parts of a task, which has a part more than the caller knows: what is none of them.
pub struct TurnsAtWork {
    outside: usize,
    timed_left: u32,
    timed: Times,
    looked_at: Arc<LookedAt>,
    looker: Option<WorkerThreads>,
}

/// What a part had so far.
struct Times {
    each: Vec<u64>,
    last: u64,
}

impl Times {
    fn begin(parts: usize) -> Self {
        Self { each: vec![0; parts], last: Monotonic.now() }
    }

    fn give(&mut self, part: usize) {
        let now = Monotonic.now();
        self.each[part] += now - std::mem::replace(&mut self.last, now);
    }
}

/// What the thread that looks shares with the one that works.
struct LookedAt {
    at_work: AtomicUsize,
    looks: Mutex<Looks>,
    ended: Condvar,
}

struct Looks {
    times: Times,
    over: bool,
}

impl LookedAt {
    /// Looks until the task has ended.
    fn look_on(&self) {
        let mut looks = lock(&self.looks);
        let began = looks.times.last;
        while !looks.over {
            let so_far = Duration::from_nanos((looks.times.last - began) / LOOKS);
            let pause = so_far.clamp(LEAST, MOST);
            looks = self.ended.wait_timeout(looks, pause).unwrap_or_else(PoisonError::into_inner).0;
            looks.times.give(self.at_work.load(Relaxed));
        }
    }

    fn end(&self) {
        lock(&self.looks).over = true;
        self.ended.notify_all();
    }
}

impl TurnsAtWork {
    /// A task of so many parts, of which none is at work.
    pub fn begin(parts: usize) -> Self {
        let looks = Mutex::new(Looks { times: Times::begin(parts + 1), over: false });
        Self {
            outside: parts,
            timed_left: TIMED,
            timed: Times::begin(parts + 1),
            looked_at: Arc::new(LookedAt { at_work: AtomicUsize::new(parts), looks, ended: Condvar::new() }),
            looker: None,
        }
    }

    /// Now it is this part's turn; a number that no part has stands for none.
    #[inline(always)]
    pub fn turn_to(&mut self, part: usize) {
        if self.timed_left > 0 {
            self.time();
        }
        self.looked_at.at_work.store(part.min(self.outside), Relaxed);
    }

    #[inline(never)]
    fn time(&mut self) {
        self.timed.give(self.looked_at.at_work.load(Relaxed));
        self.timed_left -= 1;
        if self.timed_left == 0 && self.start_looking().is_err() {
            self.timed_left = u32::MAX;
        }
    }

    fn start_looking(&mut self) -> crate::Result<()> {
        lock(&self.looked_at.looks).times.last = self.timed.last;
        let [looked_at, ended] = [Arc::clone(&self.looked_at), Arc::clone(&self.looked_at)];
        let looker = WorkerThreads::start("looks", 1, move || looked_at.look_on(), move || ended.end())?;
        self.looker = Some(looker);
        Ok(())
    }

    /// Nanoseconds of each part. A part has at least `busy_ns` of it, which was measured otherwise.
    pub fn end(mut self, busy_ns: &[u64]) -> Vec<u64> {
        let mut seen = std::mem::take(&mut self.timed.each);
        match self.looker.take() {
            Some(looker) => {
                drop(looker);
                let looks = lock(&self.looked_at.looks);
                seen.iter_mut().zip(&looks.times.each).for_each(|(sum, more)| *sum += more);
            }
            None => {
                let part = self.looked_at.at_work.load(Relaxed);
                seen[part] += Monotonic.now() - self.timed.last;
            }
        }
        let mut times = fitted(&seen, busy_ns);
        times.truncate(self.outside);
        times
    }
}

/// Times of which none is less than what is known of it, and which are together as long as those that were
/// seen.
fn fitted(seen: &[u64], busy: &[u64]) -> Vec<u64> {
    let mut times = busy.to_vec();
    times.resize(seen.len(), 0);
    let all: u64 = seen.iter().sum();
    let left = all.saturating_sub(times.iter().sum());
    let beyond: Vec<u64> = seen.iter().zip(&times).map(|(seen, busy)| seen.saturating_sub(*busy)).collect();
    let all_beyond: u64 = beyond.iter().sum();
    for (time, beyond) in times.iter_mut().zip(beyond) {
        let share = u128::from(left) * u128::from(beyond) / u128::from(all_beyond.max(1));
        *time += share as u64;
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets so many nanoseconds pass.
    fn work(ns: u64) {
        let until = Monotonic.now() + ns;
        while Monotonic.now() < until {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn few_turns_are_timed() {
        let mut turns = TurnsAtWork::begin(2);
        for _ in 0..3 {
            turns.turn_to(0);
            work(200_000);
            turns.turn_to(1);
            work(100_000);
        }
        turns.turn_to(usize::MAX);
        work(50_000);
        let times = turns.end(&[]);
        assert_eq!(times.len(), 2);
        assert!(times[0] >= 600_000 && times[1] >= 300_000, "{times:?}");
    }

    #[test]
    fn many_turns_are_looked_at() {
        let began = Monotonic.now();
        let mut turns = TurnsAtWork::begin(3);
        for _ in 0..60_000 {
            turns.turn_to(0);
            work(1_500);
            turns.turn_to(2);
            work(500);
        }
        assert!(turns.looker.is_some());
        let all = Monotonic.now() - began;
        let times = turns.end(&[]);
        assert_eq!(times[1], 0);
        assert!((times[0] + times[2]) as f64 > 0.98 * all as f64, "{times:?} of {all}");
    }

    #[test]
    fn no_part_has_less_than_what_is_known_of_it() {
        assert_eq!(fitted(&[600, 300, 100], &[100, 200]), [600, 300, 100]);
        // The looks missed the second: what they gave the others is theirs in proportion.
        assert_eq!(fitted(&[800, 0, 200], &[0, 500]), [400, 500, 100]);
        assert_eq!(fitted(&[0, 0], &[0, 10]), [0, 10]);
        assert_eq!(fitted(&[100], &[120]), [120]);
    }

    #[test]
    fn a_task_that_is_given_up_leaves_no_thread() {
        let mut turns = TurnsAtWork::begin(1);
        (0..=TIMED).for_each(|_| turns.turn_to(0));
        let looked_at = Arc::clone(&turns.looked_at);
        drop(turns);
        assert_eq!(Arc::strong_count(&looked_at), 1);
    }
}
