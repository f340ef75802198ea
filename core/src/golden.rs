//! Golden traces: what a limiter or a loop does at its boundary, on a made-up clock, is what it did before.
//!
//! A trace has a line for each event: nanoseconds since the start, what, where (`@`), and how many bytes or,
//! of a pause, how many nanoseconds. Equal steps in equal distances are folded. `UPDATE_GOLDEN=1` writes the
//! files anew.

use std::cell::RefCell;
use std::fmt::Write;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::Result;
use crate::engine::{Completion, Engine, Kind};
use crate::run::budget::Stop;
use crate::run::clock::{Clock, Manual, nanoseconds};

/// The most steps that are looked at as one sequence that repeats.
const LONGEST_PERIOD: usize = 100;

/// A loop that reads the clock this often at one moment waits for it to move. It then moves by [`SPIN_NS`].
const READINGS_OF_A_SPIN: u64 = 100;
const SPIN_NS: u64 = 100;

/// One event of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Event {
    at: u64,
    what: String,
    place: Option<u64>,
    amount: Option<u64>,
}

/// A clock that moves only with made-up events, and what has happened so far.
#[derive(Clone, Default)]
pub(crate) struct Trace {
    clock: Arc<Manual>,
    events: Arc<Mutex<Vec<Event>>>,
    /// The moment that was read last, and how often it was read again with nothing in between.
    read: Arc<Mutex<(u64, u64)>>,
    /// Nanoseconds that each sleep lasts too long.
    oversleeps: u64,
}

impl Trace {
    /// A trace on a clock whose sleeps last `ns` nanoseconds longer than asked for.
    pub(crate) fn oversleeping(ns: u64) -> Self {
        Self { oversleeps: ns, ..Self::default() }
    }

    /// The clock alone: a sleep on it leaves no trace.
    pub(crate) fn clock(&self) -> &Manual {
        &self.clock
    }

    fn note(&self, what: &str, place: Option<u64>, amount: Option<u64>) {
        let event = Event { at: self.clock.now(), what: what.to_owned(), place, amount };
        lock(&self.events).push(event);
        *lock(&self.read) = (0, 0);
    }

    /// Something happens at `place`, to `amount` bytes or blocks.
    pub(crate) fn happens(&self, what: &str, place: u64, amount: u64) {
        self.note(what, Some(place), Some(amount));
    }

    /// Something happens that has no place and no amount.
    pub(crate) fn says(&self, what: &str) {
        self.note(what, None, None);
    }

    /// A caller that has a reason to stop from `stops_at` on, and notes the longest time without a question.
    pub(crate) fn caller(&self, stops_at: Option<u64>) -> Caller {
        Caller {
            trace: self.clone(),
            stops_at: stops_at.unwrap_or(u64::MAX),
            last: self.clock.now(),
            longest: 0,
        }
    }

    /// Until the result is dropped, system calls of this thread that tell [`reached`] are part of the trace.
    /// `takes` says how many nanoseconds the call with this name and number takes.
    pub(crate) fn watch(&self, takes: impl Fn(&str, u64) -> u64 + 'static) -> Watched {
        let watch = Watch { trace: self.clone(), takes: Box::new(takes), calls: 0 };
        WATCH.set(Some(watch));
        Watched
    }
}

impl Clock for Trace {
    fn now(&self) -> u64 {
        let mut read = lock(&self.read);
        let (moment, readings) = *read;
        *read = if moment == self.clock.now() { (moment, readings + 1) } else { (self.clock.now(), 0) };
        if read.1 > READINGS_OF_A_SPIN {
            self.clock.advance(SPIN_NS);
            *read = (self.clock.now(), 0);
        }
        read.0
    }

    fn sleep(&self, duration: Duration) {
        self.note("pause", None, Some(nanoseconds(duration)));
        self.clock.sleep(duration + Duration::from_nanos(self.oversleeps));
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The caller that is asked for reasons to stop.
pub(crate) struct Caller {
    trace: Trace,
    stops_at: u64,
    last: u64,
    longest: u64,
}

impl Caller {
    /// The caller's answer.
    pub(crate) fn should_stop(&mut self) -> Option<Stop> {
        let now = self.trace.clock.now();
        self.longest = self.longest.max(now - self.last);
        self.last = now;
        (now >= self.stops_at).then_some(Stop::LockWaiter)
    }

    /// Adds the last event of a trace: why the run ended, or that all was done.
    pub(crate) fn ends(mut self, stop: Option<Stop>) {
        let reason = match stop {
            None => "all is done",
            Some(Stop::Duration) => "its time is up",
            Some(Stop::Statement) => "the statement's time is up",
            Some(Stop::Bytes) => "its bytes are used up",
            Some(Stop::Precise) => "it is precise",
            Some(Stop::LockWaiter) => "the caller stops it",
            Some(Stop::Slow(_)) => "the device is too slow",
        };
        let _ = self.should_stop();
        self.trace.says(&format!("end: {reason}; {} ns without a question at most", self.longest));
    }
}

/// Nanoseconds that the call of this name and number takes.
type TakesOfCall = Box<dyn Fn(&str, u64) -> u64>;

struct Watch {
    trace: Trace,
    takes: TakesOfCall,
    calls: u64,
}

thread_local! {
    static WATCH: RefCell<Option<Watch>> = const { RefCell::new(None) };
}

/// The thread is watched until this is dropped.
pub(crate) struct Watched;

impl Drop for Watched {
    fn drop(&mut self) {
        WATCH.set(None);
    }
}

/// A system call on real files is about to be made, which takes no time of a made-up clock by itself.
pub(crate) fn reached(what: &'static str, offset: u64, bytes: u64) {
    WATCH.with_borrow_mut(|watch| {
        let Some(watch) = watch else { return };
        watch.trace.happens(what, offset, bytes);
        watch.trace.clock.advance((watch.takes)(what, watch.calls));
        watch.calls += 1;
    });
}

/// Which place a request is for, by its file and its offset.
pub(crate) type PlaceOf = Box<dyn Fn(&File, u64) -> u64>;

/// A made-up disk, which serves its requests side by side.
pub(crate) struct Disk {
    trace: Trace,
    takes: Box<dyn Fn(u64) -> u64>,
    place: PlaceOf,
    requests: u64,
    /// Each request's end, number, slot, place and bytes.
    in_flight: Vec<(u64, u64, usize, u64, usize)>,
}

impl Disk {
    /// A disk whose requests take the nanoseconds that `takes` gives for their numbers.
    pub(crate) fn new(trace: &Trace, takes: impl Fn(u64) -> u64 + 'static) -> Self {
        let place = Box::new(|_: &File, offset| offset);
        Self { trace: trace.clone(), takes: Box::new(takes), place, requests: 0, in_flight: Vec::new() }
    }

    /// The same disk, whose trace has the places of `place` and not offsets.
    pub(crate) fn with_places(self, place: PlaceOf) -> Self {
        Self { place, ..self }
    }
}

impl Engine for Disk {
    fn kind(&self) -> Kind {
        Kind::IoUring
    }

    fn submit_at(&mut self, slot: usize, _at: usize, file: &Arc<File>, offset: u64, len: usize) {
        assert!(self.in_flight.iter().all(|(_, _, busy, ..)| *busy != slot), "slot {slot} is busy");
        let place = (self.place)(file, offset);
        self.trace.happens("submit", place, len as u64);
        let end = self.trace.clock.now() + (self.takes)(self.requests);
        self.in_flight.push((end, self.requests, slot, place, len));
        self.requests += 1;
    }

    fn wait(&mut self, _idle: &mut dyn FnMut()) -> Result<Completion> {
        let next = (0..self.in_flight.len()).min_by_key(|&i| self.in_flight[i]).expect("something in flight");
        let (end, _, slot, place, len) = self.in_flight.remove(next);
        self.trace.clock.advance(end.saturating_sub(self.trace.clock.now()));
        self.trace.happens("complete", place, len as u64);
        Ok(Completion { slot, result: Ok(len) })
    }

    fn copy(&self, _slot: usize, _at: usize, _into: &mut [u8]) {}
}

/// The traces of one limiter or loop.
pub(crate) struct Golden {
    name: &'static str,
    text: String,
}

impl Golden {
    /// Traces for the file of this name. `about` says what the places are, and what the traces do not cover.
    pub(crate) fn new(name: &'static str, about: &str) -> Self {
        Self { name, text: about.lines().map(|line| format!("# {}\n", line.trim())).collect() }
    }

    /// Adds what happened in one case.
    pub(crate) fn add(&mut self, case: &str, trace: &Trace) {
        let events = std::mem::take(&mut *lock(&trace.events));
        let mut lines = Vec::new();
        fold(&events, &mut lines);
        let _ = writeln!(self.text, "\n[{case}]");
        lines.iter().for_each(|line| self.text += &format!("{line}\n"));
    }

    /// Compares all with the file, or writes it.
    pub(crate) fn check(self) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{}.txt", self.name));
        if std::env::var_os("UPDATE_GOLDEN").is_some_and(|update| update == "1") {
            std::fs::create_dir_all(path.parent().expect("a directory")).expect("created");
            std::fs::write(&path, &self.text).expect("written");
        }
        let wanted = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        if let Some(difference) = difference(&wanted, &self.text) {
            panic!("{} differs (UPDATE_GOLDEN=1 writes it anew):\n{difference}", path.display());
        }
    }
}

/// The first lines that differ, with those before them; None if none does.
fn difference(wanted: &str, found: &str) -> Option<String> {
    const BEFORE: usize = 4;
    const SHOWN: usize = 8;
    let (wanted, found): (Vec<&str>, Vec<&str>) = (wanted.lines().collect(), found.lines().collect());
    let first = wanted.iter().zip(&found).take_while(|(a, b)| a == b).count();
    if first == wanted.len() && first == found.len() {
        return None;
    }
    let case = found[..first.min(found.len())].iter().rposition(|line| line.starts_with('['));
    let mut text = format!("line {}, in {}\n", first + 1, case.map_or("the header", |case| found[case]));
    let mut show = |sign: char, lines: &[&str]| {
        lines.iter().for_each(|line| text += &format!("{sign} {line}\n"));
    };
    show(' ', &found[first.saturating_sub(BEFORE)..first]);
    show('-', &wanted[first..wanted.len().min(first + SHOWN)]);
    show('+', &found[first..found.len().min(first + SHOWN)]);
    Some(text)
}

/// Adds a line for each event; what repeats is listed once.
fn fold(mut events: &[Event], lines: &mut Vec<String>) {
    while let Some(first) = events.first() {
        let best = (1..=LONGEST_PERIOD.min(events.len() / 2))
            .filter_map(|period| repeats(events, period).map(|repeats| (period, repeats)))
            .max_by_key(|(period, repeats)| (period * (repeats.times - 1), usize::MAX - period))
            .filter(|(period, repeats)| *period > 1 || repeats.times > 2);
        let Some((period, Repeats { times, later, further })) = best else {
            lines.push(line(first));
            events = &events[1..];
            continue;
        };
        let further = further.map_or(String::new(), |further| format!(", {further:+} on"));
        if period == 1 {
            lines.push(format!("{} x {times}, each {later} ns later{further}", line(first)));
        } else {
            fold(&events[..period], lines);
            lines.push(format!(
                "{:>12} the last {period} events x {times}, each {later} ns later{further}",
                ""
            ));
        }
        events = &events[period * times..];
    }
}

/// How often steps repeat, in which distances.
struct Repeats {
    times: usize,
    later: u64,
    further: Option<i64>,
}

/// How often the first `period` events repeat, if at all.
fn repeats(events: &[Event], period: usize) -> Option<Repeats> {
    let later = events[period].at - events[0].at;
    let further = events[..period].iter().zip(&events[period..]).find_map(|(a, b)| {
        let (a, b) = a.place.zip(b.place)?;
        Some(b as i64 - a as i64)
    });
    let is_like = |place: usize| {
        let (event, times) = (&events[place], (place / period) as i64);
        let model = &events[place % period];
        let expected = Event {
            at: model.at + times as u64 * later,
            place: model.place.map(|place| (place as i64 + times * further.unwrap_or(0)) as u64),
            ..model.clone()
        };
        *event == expected
    };
    let times = (period..events.len()).take_while(|&place| is_like(place)).count() / period + 1;
    (times > 1).then_some(Repeats { times, later, further })
}

fn line(event: &Event) -> String {
    let Event { at, what, place, amount } = event;
    let mut line = format!("{at:>12} {what}");
    if let Some(place) = place {
        let _ = write!(line, " @{place}");
    }
    if let Some(amount) = amount {
        let _ = write!(line, " {amount}");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_steps_are_folded() {
        let trace = Trace::default();
        for _ in 0..3 {
            trace.happens("submit", 7 + 8 * trace.clock.now(), 8);
            trace.clock.advance(5);
            trace.sleep(Duration::from_nanos(2));
        }
        trace.says("end");
        let mut lines = Vec::new();
        fold(&lock(&trace.events), &mut lines);
        let lines: Vec<&str> = lines.iter().map(|line| line.trim_start()).collect();
        let folded = "the last 2 events x 3, each 7 ns later, +56 on";
        assert_eq!(lines, ["0 submit @7 8", "5 pause 2", folded, "21 end"]);
    }

    #[test]
    fn the_first_difference_is_shown() {
        assert_eq!(difference("a\n[b]\nc\n", "a\n[b]\nc\n"), None);
        let shown = difference("a\n[b]\nc\nd\n", "a\n[b]\nc\ne\n").expect("a difference");
        assert_eq!(shown, "line 4, in [b]\n  a\n  [b]\n  c\n- d\n+ e\n");
        assert_eq!(difference("a\n", "a\nb\n"), Some("line 2, in the header\n  a\n+ b\n".to_owned()));
    }
}
