//! A stream through io_uring: one thread sends what is due, and hears of the answers.
//!
//! A thread a request in flight would do as well, if it were not for the processors: to wake one for each of
//! 30,000 requests a second takes longer than the requests.

use std::mem;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use io_uring::{IoUring, squeue, types};

use super::{Answer, Feed, Running};
use crate::engine::uring;
use crate::run::budget::NAP;
use crate::run::clock::{Clock, Monotonic};
use crate::run::lock;
use crate::{Error, Result};

/// When the kernel is asked again that took nothing, and how often.
const RETRY: Duration = Duration::from_millis(1);
const MOST_REFUSED: u32 = 1000;

/// Requests that a ring may send.
pub trait RingRequests {
    /// The request of this number in this slot.
    fn entry(&self, number: u64, slot: usize) -> squeue::Entry;

    /// Judges what came of it: bytes, or an errno.
    ///
    /// # Errors
    /// Those of the system call.
    fn judge(&self, number: u64, result: Result<usize, i32>) -> Result<()>;
}

/// A stream, its ring, and what is in flight.
pub(super) struct RingFeed<'a> {
    feed: &'a Feed,
    running: &'a Running,
    requests: &'a dyn RingRequests,
    ring: IoUring,
    begins: u64,
    /// Slots without a request.
    idle: Vec<usize>,
    /// What is, or was, in each slot.
    sent: Vec<Sent>,
    /// The number of the request that waits until it is due, and when that is.
    next: Option<(u64, u64)>,
    /// When the thread last slept with a slot to spare.
    slept: RangeInclusive<u64>,
    /// Is nothing more to be sent?
    is_over: bool,
    answers: Vec<(usize, Result<usize, i32>)>,
    /// How often in a row the kernel took nothing.
    refused: u32,
}

/// The number of a request, when it was sent, and since when it counts.
#[derive(Debug, Clone, Copy, Default)]
struct Sent {
    number: u64,
    sent: u64,
    began: u64,
}

impl<'a> RingFeed<'a> {
    /// # Errors
    /// The kernel lets this thread have no ring.
    pub(super) fn new(
        feed: &'a Feed,
        running: &'a Running,
        requests: &'a dyn RingRequests,
        begins: u64,
    ) -> Result<Self> {
        let slots = feed.stream.workers;
        Ok(Self {
            feed,
            running,
            requests,
            ring: uring::build(slots as u32).map_err(uring::refused)?,
            begins,
            idle: (0..slots).rev().collect(),
            sent: vec![Sent::default(); slots],
            next: None,
            slept: 0..=0,
            is_over: false,
            answers: Vec::with_capacity(slots),
            refused: 0,
        })
    }

    /// Sends requests until all is over, and waits for their answers.
    pub(super) fn work(mut self) {
        loop {
            self.send();
            if self.is_over && self.idle.len() == self.sent.len() {
                return;
            }
            if let Err(error) = self.wait() {
                self.running.fail(error);
                // The kernel may write into their memory yet.
                mem::forget(Arc::clone(&self.feed.stream.requests));
                return;
            }
            self.take_answers();
        }
    }

    /// Sends what is due.
    fn send(&mut self) {
        while let Some(slot) = self.idle.last().copied() {
            self.is_over |= self.running.over.load(Relaxed);
            if self.is_over {
                return;
            }
            if self.next.is_none() {
                self.next = self.feed.take(self.begins);
            }
            let Some((number, due)) = self.next else {
                self.is_over = true;
                return;
            };
            let sent = Monotonic.now();
            if due > sent {
                return;
            }
            self.next = None;
            if !self.running.may_send(self.feed.stream.requests.bytes()) {
                self.is_over = true;
                return;
            }
            let entry = self.requests.entry(number, slot).user_data(slot as u64);
            // SAFETY: file and buffer belong to the stream's requests, which this thread keeps until nothing
            // is in flight, and the slot is busy until then.
            let pushed = unsafe { self.ring.submission().push(&entry) };
            pushed.expect("the ring has an entry for each slot");
            self.idle.pop();
            let woken = self.slept.contains(&due).then_some(*self.slept.end());
            let began = self.feed.counts_from(due, sent, woken);
            self.sent[slot] = Sent { number, sent, began };
            // What the kernel doesn't take now, the wait hands over.
            let _ = self.ring.submit();
        }
    }

    /// Waits for an answer, and no longer than until the next request is due.
    fn wait(&mut self) -> Result<()> {
        let began = Monotonic.now();
        let can_send = !self.idle.is_empty() && !self.is_over;
        let left = match self.next {
            Some((_, due)) if can_send => Duration::from_nanos(due.saturating_sub(began)).min(NAP),
            _ => NAP,
        };
        let time = types::Timespec::from(left);
        let until = types::SubmitArgs::new().timespec(&time);
        match self.ring.submitter().submit_with_args(1, &until) {
            Ok(_) => self.refused = 0,
            Err(e) => match e.raw_os_error() {
                Some(libc::ETIME | libc::EINTR) => {}
                // It has no memory for what was pushed, and may have it later.
                Some(libc::EAGAIN | libc::EBUSY) if self.refused < MOST_REFUSED => {
                    self.refused += 1;
                    Monotonic.sleep(RETRY);
                }
                _ => return Err(Error::System { action: "wait for io_uring", source: e }),
            },
        }
        if can_send {
            self.slept = began..=Monotonic.now();
        }
        Ok(())
    }

    fn take_answers(&mut self) {
        let answered = Monotonic.now();
        for entry in self.ring.completion() {
            let result = usize::try_from(entry.result()).map_err(|_| -entry.result());
            self.answers.push((entry.user_data() as usize, result));
        }
        if self.answers.is_empty() {
            return;
        }
        let mut state = lock(&self.running.state);
        for (slot, result) in self.answers.drain(..) {
            self.idle.push(slot);
            let Sent { number, sent, began } = self.sent[slot];
            let made = self.requests.judge(number, result);
            self.is_over |= made.is_err();
            self.running.take(&mut state, self.feed, number, made, Answer { sent, answered, began });
        }
    }
}
