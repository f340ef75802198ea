//! A disk with one head: seeks, waits for the sector to come round, and a buffer that reads on.
//!
//! A seek takes 1 ms + 8 ms * sqrt(distance / size). Between random places of the whole device that is 5.27
//! ms in the mean, to which half a turn is added. Of what waits, the request with the shortest seek is next
//! (native command queueing). After a read, the head goes on reading into the disk's buffer. Writes go to the
//! medium, so a flush has nothing to do.

use crate::model::spec::{Invalid, Parameters};
use crate::request::{Kind, Request, Seconds, Ticket};

/// The shortest seek, and what the longest takes more.
const SEEK: Seconds = 0.001;
const WHOLE_SEEK: Seconds = 0.008;
/// A flush, and the least that a read from the buffer takes.
const FLUSH: Seconds = 100e-6;
const FROM_BUFFER: Seconds = 50e-6;
/// Bytes that the head reads on beyond what was asked for, and that the buffer keeps behind the head.
const READ_ON: f64 = 8.0 * 1_048_576.0;
const KEPT: f64 = 16.0 * 1_048_576.0;
/// Requests that the disk knows at a time.
const QUEUE: usize = 32;
/// The part of a turn by which a sector may have passed and still be caught: rounding only.
const CAUGHT: f64 = 1e-6;

/// What the head has read without a seek.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    /// Where it begins.
    start: f64,
    /// The end of the last request.
    asked: f64,
}

#[derive(Debug)]
struct Waiting {
    ticket: Ticket,
    request: Request,
    since: Seconds,
}

/// A disk with one head.
#[derive(Debug)]
pub struct Head {
    /// Bytes.
    size: f64,
    /// Bytes a second that pass the head.
    rate: f64,
    /// Seconds a turn.
    turn: Seconds,
    /// The byte under the head at the time `since`. While it reads on it moves.
    position: f64,
    since: Seconds,
    /// None after a write.
    stretch: Option<Stretch>,
    busy: bool,
    waiting: Vec<Waiting>,
}

impl Head {
    /// A disk of `size` bytes. `rpm`: turns a minute; `mb`: MB/s that pass the head.
    pub fn new(size: u64, parameters: &mut Parameters) -> Result<Self, Invalid> {
        Ok(Self {
            size: size as f64,
            rate: parameters.positive("mb", 160.0)? * 1e6,
            turn: 60.0 / parameters.positive("rpm", 7200.0)?,
            position: 0.0,
            since: 0.0,
            stretch: None,
            busy: false,
            waiting: Vec::new(),
        })
    }

    /// A request comes: when it is done, or None while it waits for the head.
    pub fn arrive(&mut self, now: Seconds, ticket: Ticket, request: Request) -> Option<Seconds> {
        if self.busy {
            self.waiting.push(Waiting { ticket, request, since: now });
            return None;
        }
        self.busy = true;
        Some(self.serve(now, request))
    }

    /// The head is done with a request: which one it serves next, and until when.
    pub fn next(&mut self, now: Seconds) -> Option<(Ticket, Seconds)> {
        self.busy = !self.waiting.is_empty();
        let next = self.waiting.remove(self.nearest()?);
        Some((next.ticket, self.serve(now.max(next.since), next.request)))
    }

    /// Which of those that wait has the shortest seek.
    fn nearest(&self) -> Option<usize> {
        let known = self.waiting.iter().take(QUEUE).enumerate();
        known.min_by(|(_, a), (_, b)| self.distance(a).total_cmp(&self.distance(b))).map(|(index, _)| index)
    }

    /// Bytes from where the head was last.
    fn distance(&self, waiting: &Waiting) -> f64 {
        (waiting.request.offset as f64 - self.position).abs()
    }

    /// Serves a request from `now` on: when it is done.
    fn serve(&mut self, now: Seconds, request: Request) -> Seconds {
        if request.kind == Kind::Flush {
            return now + FLUSH;
        }
        let (offset, end) = (request.offset as f64, request.end() as f64);
        self.position = self.position_at(now);
        self.since = now;
        let by_seek = now + self.positioning(now, offset) + (end - offset) / self.rate;
        if let Some(buffered) = self.when_buffered(now, request).filter(|done| *done <= by_seek) {
            self.read_on(buffered, end);
            return buffered;
        }
        self.stretch = (request.kind == Kind::Read).then_some(Stretch { start: offset, asked: end });
        self.position = end;
        self.since = by_seek;
        by_seek
    }

    /// Where the head is.
    fn position_at(&self, now: Seconds) -> f64 {
        let Some(stretch) = self.stretch else { return self.position };
        let limit = stretch.asked + READ_ON;
        (self.position + (now - self.since).max(0.0) * self.rate).min(limit).max(self.position)
    }

    /// Seconds until the head is over a byte: a seek, and the rest of a turn.
    fn positioning(&self, now: Seconds, offset: f64) -> Seconds {
        let distance = (offset - self.position).abs() / self.size;
        let seek = if distance == 0.0 { 0.0 } else { SEEK + WHOLE_SEEK * distance.sqrt() };
        let angle = offset / (self.rate * self.turn);
        let missing = (angle - (now + seek) / self.turn).rem_euclid(1.0);
        seek + if missing > 1.0 - CAUGHT { 0.0 } else { missing * self.turn }
    }

    /// When a read is done that the buffer has, or will have without a seek.
    fn when_buffered(&self, now: Seconds, request: Request) -> Option<Seconds> {
        let stretch = self.stretch.filter(|_| request.kind == Kind::Read)?;
        let (offset, end) = (request.offset as f64, request.end() as f64);
        let kept = stretch.start.max(self.position - KEPT);
        let covered = kept <= offset && offset <= stretch.asked + READ_ON;
        covered.then(|| now + ((end - self.position) / self.rate).max(FROM_BUFFER))
    }

    /// A read up to `end` is done from the buffer; the head goes on from where it is.
    fn read_on(&mut self, done: Seconds, end: f64) {
        if let Some(stretch) = &mut self.stretch {
            stretch.asked = stretch.asked.max(end);
        }
        self.position = self.position_at(done).max(end);
        self.since = done;
    }
}

#[cfg(test)]
mod tests {
    use crate::simulation::{Simulation, about};

    #[test]
    fn random_reads_take_a_seek_and_half_a_turn() {
        // 1 ms + 8 ms * 8/15 + 8.333 ms / 2 + 8 kB at 160 MB/s
        about(Simulation::new("hdd").random_reads(8192, 1, 5000).seconds_each(), 0.009_485, 0.02);
    }

    #[test]
    fn a_queue_shortens_seeks() {
        let alone = Simulation::new("hdd").random_reads(8192, 1, 3000).per_second();
        let queued = Simulation::new("hdd").random_reads(8192, 32, 3000).per_second();
        assert!(queued > 1.4 * alone, "{queued} a second, alone {alone}");
    }

    #[test]
    fn a_scan_is_as_fast_as_the_medium() {
        about(Simulation::new("hdd").sequential_reads(1 << 20, 1, 500).bytes_per_second(), 160e6, 0.02);
        about(Simulation::new("hdd mb=80").sequential_reads(8192, 1, 5000).bytes_per_second(), 80e6, 0.02);
    }

    #[test]
    fn a_scan_with_pauses_finds_what_the_buffer_has_read_on() {
        let mut disk = Simulation::new("hdd");
        disk.read(0, 8192);
        disk.wait(0.02);
        about(disk.read(8192, 8192), 50e-6, 0.01);
        about(disk.read(4096, 4096), 50e-6, 0.01); // it is still there
    }

    #[test]
    fn the_buffer_reads_on_for_8_mib() {
        let mut disk = Simulation::new("hdd");
        disk.read(0, 8192);
        disk.wait(1.0);
        about(disk.read((8 << 20) - 8192, 8192), 50e-6, 0.01);
        assert!(disk.read(128 << 20, 8192) > 0.001, "no seek");
    }

    #[test]
    fn a_write_of_the_block_just_written_waits_for_a_whole_turn() {
        let mut disk = Simulation::new("hdd rpm=6000");
        disk.write(0, 8192);
        about(disk.write(0, 8192), 0.010, 0.01 + 8192.0 / 160e6 / 0.010);
    }

    #[test]
    fn writes_in_a_queue_follow_one_another_without_a_turn() {
        about(Simulation::new("hdd").sequential_writes(8192, 4, 5000).bytes_per_second(), 160e6, 0.02);
    }
}
