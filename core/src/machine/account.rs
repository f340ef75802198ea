//! Whose bytes: what a process fetched from storage and wrote to it, by the kernel's account.
//!
//! `read_bytes` of `/proc/PID/io` counts the bytes that a process, all its threads included, caused to be
//! fetched from the storage layer: exact for its own reads, buffered or direct, by system call or io_uring;
//! readahead counts with the process that triggered it. Reads that another process issues on its behalf are
//! in that process's account. File systems that fetch without the block layer (FUSE, some network file
//! systems) may count nothing. ZFS counts what it finds in its own cache as well (`zfs_read`).
//!
//! # Processes that come and go
//! The account of a process begins at 0 with it, so one that is new counts whole. When it has ended its
//! parent waits for it, and then the kernel adds what it read to the parent's account. So the last look has
//! seen all that those that are gone had read if the parent's account grew by just that, or by less than a
//! block more: a process that ends may fetch a page of its program. If it grew by more, others that it waited
//! for may have read that: it is not known. Between two looks a process may come, read and go unseen; where
//! each idles for a time before it goes, only if the looks are as far apart. Until its parent has waited for
//! it, what a process that has ended had read is shown to root alone.

use std::fmt::Display;
use std::fs;
use std::time::Duration;

use super::process_io::ProcessIo;
use crate::run::clock::{Clock, Monotonic};

/// The processes whose reads belong to a run.
#[derive(Debug, Clone, Copy)]
pub enum Account {
    /// This process.
    Own,
    /// This process and others that read for it.
    With(Workers),
    /// No account helps: the file system counts hits in a cache of its own, too.
    Unknown,
}

/// Processes that read for this one, and have the same parent.
#[derive(Debug, Clone, Copy)]
pub struct Workers {
    /// Their process numbers at the moment.
    pub pids: fn() -> Vec<i32>,
    /// How long one that ends by itself has had nothing to do before.
    pub idle: Duration,
    /// The least that one reads, in bytes.
    pub block: u64,
}

/// Why the bytes that were fetched are not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// The kernel does not tell.
    NoAccount,
    /// A process has ended, or may have come and gone, and what it read can't be told from what others read.
    Ended,
}

/// A process: another one may get its number once it has ended, but did not start at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    pid: i32,
    start: u64,
}

impl Process {
    /// The process that has this number now.
    fn of(pid: i32) -> Option<Self> {
        let start = start_of(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?;
        Some(Self { pid, start })
    }

    /// Bytes that it has read. None if the kernel does not tell.
    fn look(self) -> Option<Sight> {
        let bytes = read_bytes_of(self.pid);
        // Looked at last: the number is its own as long as it is there.
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        if start_of(&stat) != Some(self.start) {
            return Some(Sight::Gone);
        }
        match bytes {
            Some(bytes) => Some(Sight::There(bytes)),
            None => has_ended(&stat).then_some(Sight::Ended),
        }
    }
}

/// What a look at a process finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sight {
    /// It is there, and has read these bytes.
    There(u64),
    /// It has ended and its parent has not waited for it yet.
    Ended,
    /// There is no such process.
    Gone,
}

/// Has a process ended, or is it about to, by the line of `/proc/PID/stat`? Its files are root's as soon as
/// it has given up its memory.
fn has_ended(stat: &str) -> bool {
    const PF_EXITING: u32 = 4;
    // Behind its name are state, parent, group, session, terminal, foreground, flags.
    let fields: Vec<&str> =
        stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_ascii_whitespace().take(7).collect();
    let flags: u32 = fields.get(6).and_then(|flags| flags.parse().ok()).unwrap_or(0);
    fields.first().is_some_and(|state| state.starts_with(['Z', 'X'])) || flags & PF_EXITING != 0
}

/// When a process started, by the line of `/proc/PID/stat`: in clock ticks since boot.
fn start_of(stat: &str) -> Option<u64> {
    // Its name, in brackets, may have spaces and brackets. Behind it is field 3; this is field 22.
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// Does a look wait until the parent has waited for those that have ended?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Patience {
    Zero,
    Milliseconds,
}

/// One look: bytes so far.
#[derive(Debug, Clone)]
struct Reading {
    at: u64,
    own: u64,
    workers: Vec<(Process, u64)>,
    /// Those that have ended, until their parent has waited for them, and the bytes that were seen last.
    ended: Vec<(Process, u64)>,
    /// The parent's bytes: its own, and those of its processes that it has waited for.
    parent: Option<u64>,
}

impl Reading {
    /// Looks at the processes of an earlier look that are still there, and at those that came since. None if
    /// the kernel does not tell.
    fn take(account: &Account, earlier: Option<&Reading>, patience: Patience) -> Option<Self> {
        const TRIES: usize = 10;
        const NAP: Duration = Duration::from_millis(1);
        let workers = match account {
            Account::Unknown => return None,
            Account::Own => None,
            Account::With(workers) => Some(workers),
        };
        let mut parent = workers.and_then(|_| read_bytes_of(std::os::unix::process::parent_id()));
        let mut found = SeenWorkers::default();
        for _ in 0..TRIES {
            if let Some(workers) = workers {
                let known = earlier.iter().flat_map(|reading| reading.known()).map(|(process, _)| *process);
                found = look_at(known.collect(), &(workers.pids)())?;
            }
            let before = parent;
            parent = workers.and_then(|_| read_bytes_of(std::os::unix::process::parent_id()));
            let is_one_moment = parent == before; // none of them was waited for meanwhile
            if is_one_moment && (found.ended.is_empty() || patience == Patience::Zero) {
                break;
            }
            if is_one_moment {
                Monotonic.sleep(NAP);
            }
        }
        let seen_last = |process| earlier.and_then(|reading| reading.bytes_of(process)).unwrap_or(0);
        let ended = found.ended.into_iter().map(|process| (process, seen_last(process))).collect();
        Some(Self { at: Monotonic.now(), own: read_bytes_of("self")?, workers: found.there, ended, parent })
    }

    /// The processes that are not gone.
    fn known(&self) -> impl Iterator<Item = &(Process, u64)> {
        self.workers.iter().chain(&self.ended)
    }

    fn bytes_of(&self, process: Process) -> Option<u64> {
        self.known().find(|(other, _)| *other == process).map(|(_, bytes)| *bytes)
    }

    /// Bytes that were fetched since `earlier`.
    fn since(&self, earlier: &Reading, idle: Duration, block: u64) -> Result<u64, Lost> {
        let mut bytes = self.own.checked_sub(earlier.own).ok_or(Lost::NoAccount)?;
        for (process, now) in &self.workers {
            let before = earlier.bytes_of(*process).unwrap_or(0);
            bytes += now.checked_sub(before).ok_or(Lost::NoAccount)?;
        }
        let gone = earlier.known().filter(|(process, _)| self.bytes_of(*process).is_none());
        let (count, read) = gone.fold((0, 0), |(count, sum), (_, bytes)| (count + 1, sum + bytes));
        let unseen_ones = u128::from(self.at - earlier.at) >= idle.as_nanos();
        if count == 0 && !unseen_ones {
            return Ok(bytes);
        }
        let waited_for = self.parent.zip(earlier.parent).and_then(|(now, before)| now.checked_sub(before));
        let unseen = waited_for.and_then(|sum| sum.checked_sub(read));
        if unseen.is_some_and(|unseen| unseen < block) { Ok(bytes) } else { Err(Lost::Ended) }
    }
}

/// What a look at several processes finds.
#[derive(Debug, Default)]
struct SeenWorkers {
    /// Those that are there, and what each has read.
    there: Vec<(Process, u64)>,
    /// Those that have ended without being gone.
    ended: Vec<Process>,
}

/// Looks at `processes` and at those that have the numbers `pids`. None if the kernel does not tell.
fn look_at(mut processes: Vec<Process>, pids: &[i32]) -> Option<SeenWorkers> {
    for process in pids.iter().filter_map(|pid| Process::of(*pid)) {
        if !processes.contains(&process) {
            processes.push(process);
        }
    }
    let mut found = SeenWorkers { there: Vec::with_capacity(processes.len()), ended: Vec::new() };
    for process in processes {
        match process.look()? {
            Sight::There(bytes) => found.there.push((process, bytes)),
            Sight::Ended => found.ended.push(process),
            Sight::Gone => {}
        }
    }
    Some(found)
}

/// Bytes fetched by an account since it was looked at first.
#[derive(Debug, Clone)]
pub struct AccountTally {
    account: Account,
    sum: Result<u64, Lost>,
    last: Option<Reading>,
}

impl AccountTally {
    /// Looks for the first time.
    pub fn begin(account: Account) -> Self {
        let last = Reading::take(&account, None, Patience::Milliseconds);
        Self { account, sum: if last.is_some() { Ok(0) } else { Err(Lost::NoAccount) }, last }
    }

    /// Looks again. The shorter the time since the last look, the more is known of those that ended in
    /// between.
    fn follow(&mut self, patience: Patience) {
        let Some(last) = &self.last else { return };
        let (idle, block) = match self.account {
            Account::With(workers) => (workers.idle, workers.block),
            Account::Own | Account::Unknown => (Duration::MAX, 0),
        };
        let now = Reading::take(&self.account, Some(last), patience);
        let step = now.as_ref().ok_or(Lost::NoAccount).and_then(|now| now.since(last, idle, block));
        self.sum = self.sum.and_then(|sum| Ok(sum + step?));
        self.last = now;
    }

    /// Looks again if it is time to. For callers that may ask at any time.
    pub fn follow_now_and_then(&mut self) {
        /// A look takes 0.1 ms.
        const EVERY_NS: u64 = 250_000_000;
        let is_due = self.last.as_ref().is_some_and(|last| Monotonic.now() - last.at >= EVERY_NS);
        if matches!(self.account, Account::With(_)) && is_due {
            self.follow(Patience::Zero);
        }
    }

    /// The bytes up to now.
    pub fn bytes(&self) -> Result<u64, Lost> {
        let mut now = self.clone();
        now.follow(Patience::Milliseconds);
        let is_open = now.last.is_some_and(|reading| !reading.ended.is_empty());
        if is_open { now.sum.and(Err(Lost::Ended)) } else { now.sum }
    }
}

/// Bytes that this process has caused to be fetched from storage. None where the kernel does not tell.
pub fn own_read_bytes() -> Option<u64> {
    read_bytes_of("self")
}

/// Bytes that this process has caused to be fetched from storage and to be written to it; a write through the
/// page cache counts when it makes a page dirty. None where the kernel does not tell.
pub fn own_traffic() -> Option<u64> {
    ProcessIo::of("self").map(|io| io.fetched + io.written)
}

/// Bytes that this process has caused to be written, counted as in [`own_traffic`].
pub fn own_written_bytes() -> Option<u64> {
    ProcessIo::of("self").map(|io| io.written)
}

fn read_bytes_of(process: impl Display) -> Option<u64> {
    ProcessIo::of(process).map(|io| io.fetched)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_found_behind_any_name() {
        let stat =
            "25113 (a) b (c)) S 25108 25113 25113 0 -1 4194624 287 0 5 0 0 0 0 0 20 0 1 0 98765 226000896 1";
        assert_eq!(start_of(stat), Some(98765));
        assert_eq!(start_of("1 (short) S 0"), None);
        assert_eq!(start_of(""), None);
    }

    #[test]
    fn one_that_has_ended_is_seen_as_such_until_it_is_waited_for() {
        let look = || {
            // The kernel hides nothing from root. A thread can give up being root by itself.
            // SAFETY: the call takes numbers alone.
            unsafe { libc::syscall(libc::SYS_setresuid, 65534, 65534, 65534) };
            let mut child =
                std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
            let process = Process::of(child.id() as i32).unwrap();
            drop(child.stdin.take());
            let ended = loop {
                match process.look() {
                    Some(Sight::There(_)) => std::thread::yield_now(),
                    seen => break seen,
                }
            };
            assert_eq!(ended, Some(Sight::Ended));
            let found = look_at(vec![process], &[process.pid]).unwrap();
            assert!(found.ended == [process] && found.there.is_empty(), "{found:?}");
            child.wait().unwrap();
            assert_eq!(process.look(), Some(Sight::Gone));
        };
        // Each ends in a moment of its own.
        std::thread::spawn(move || (0..50).for_each(|_| look())).join().unwrap();
    }

    #[test]
    fn the_state_is_found_behind_any_name() {
        assert!(has_ended("25113 (a) Z (b) Z 25108") && has_ended("1 (a) X 2"));
        assert!(!has_ended("25113 (a) Z (b) S 25108") && !has_ended(""));
        // It is about to end, and still runs.
        assert!(has_ended("7 (a) R 1 7 7 0 -1 4194564 0") && !has_ended("7 (a) R 1 7 7 0 -1 4194560 4"));
    }

    const IDLE: Duration = Duration::from_secs(60);
    const BLOCK: u64 = 8;

    /// `workers` are a number, a start, and bytes.
    fn reading(seconds: u64, own: u64, workers: &[(i32, u64, u64)], parent: u64) -> Reading {
        let workers =
            workers.iter().map(|(pid, start, bytes)| (Process { pid: *pid, start: *start }, *bytes));
        let at = seconds * 1_000_000_000;
        Reading { at, own, workers: workers.collect(), ended: Vec::new(), parent: Some(parent) }
    }

    #[test]
    fn those_that_come_count_whole_and_those_that_stay_since_the_last_look() {
        let before = reading(0, 10, &[(7, 1, 1000), (8, 1, 0)], 500);
        let now = reading(1, 15, &[(7, 1, 1300), (8, 1, 0), (9, 2, 40)], 500);
        assert_eq!(now.since(&before, IDLE, BLOCK), Ok(345));
        // Others, whom the parent waited for, do not matter while all are there.
        assert_eq!(Reading { parent: Some(9999), ..now.clone() }.since(&before, IDLE, BLOCK), Ok(345));
        assert_eq!(Reading { parent: None, ..now }.since(&before, IDLE, BLOCK), Ok(345));
    }

    #[test]
    fn who_went_had_read_nothing_more_if_the_parent_got_just_that() {
        let before = reading(0, 0, &[(7, 1, 1000), (8, 1, 200), (9, 1, 30)], 500);
        let now = |parent| reading(1, 5, &[(7, 1, 1001)], parent);
        assert_eq!(now(500 + 230).since(&before, IDLE, BLOCK), Ok(6));
        // Its program may have needed a page; no block is that small.
        assert_eq!(now(500 + 230 + BLOCK - 1).since(&before, IDLE, BLOCK), Ok(6));
        for parent in [500, 500 + 229, 500 + 230 + BLOCK, 499] {
            assert_eq!(now(parent).since(&before, IDLE, BLOCK), Err(Lost::Ended), "{parent}");
        }
        assert_eq!(Reading { parent: None, ..now(730) }.since(&before, IDLE, BLOCK), Err(Lost::Ended));
    }

    #[test]
    fn who_has_ended_counts_when_the_parent_waits_for_it() {
        let before = reading(0, 0, &[(7, 1, 1000), (8, 1, 200)], 500);
        let ended = vec![(Process { pid: 8, start: 1 }, 200)];
        let between = Reading { ended, ..reading(1, 0, &[(7, 1, 1300)], 500) };
        assert_eq!(between.since(&before, IDLE, BLOCK), Ok(300));
        // Another process, whom the parent waited for, does not matter until then.
        assert_eq!(Reading { parent: Some(501), ..between.clone() }.since(&before, IDLE, BLOCK), Ok(300));
        let now = |parent| reading(2, 0, &[(7, 1, 1301)], parent).since(&between, IDLE, BLOCK);
        assert_eq!((now(700), now(500), now(700 + BLOCK)), (Ok(1), Err(Lost::Ended), Err(Lost::Ended)));
    }

    #[test]
    fn a_number_that_another_process_got_is_another_process() {
        let before = reading(0, 0, &[(7, 1, 1000)], 0);
        let now = reading(1, 0, &[(7, 2, 300)], 1000);
        assert_eq!(now.since(&before, IDLE, BLOCK), Ok(300));
    }

    #[test]
    fn looks_far_apart_may_have_missed_one() {
        let before = reading(0, 0, &[(7, 1, 1000)], 500);
        let now = |seconds, parent| reading(seconds, 0, &[(7, 1, 1300)], parent);
        assert_eq!(now(59, 500 + BLOCK).since(&before, IDLE, BLOCK), Ok(300));
        assert_eq!(now(60, 500 + BLOCK).since(&before, IDLE, BLOCK), Err(Lost::Ended));
        assert_eq!(now(60, 500).since(&before, IDLE, BLOCK), Ok(300));
        assert_eq!(now(60, 500 + BLOCK).since(&before, Duration::MAX, BLOCK), Ok(300));
    }

    #[test]
    fn an_account_that_shrinks_is_none() {
        let before = reading(0, 10, &[(7, 1, 1000)], 0);
        assert_eq!(reading(1, 9, &[(7, 1, 1000)], 0).since(&before, IDLE, BLOCK), Err(Lost::NoAccount));
        assert_eq!(reading(1, 10, &[(7, 1, 999)], 0).since(&before, IDLE, BLOCK), Err(Lost::NoAccount));
    }

    #[test]
    fn a_tally_of_real_processes() {
        fn nobody() -> Vec<i32> {
            vec![i32::MAX]
        }
        fn this_one() -> Vec<i32> {
            vec![std::process::id() as i32]
        }
        assert!(AccountTally::begin(Account::Own).bytes().is_ok());
        assert_eq!(AccountTally::begin(Account::Unknown).bytes(), Err(Lost::NoAccount));
        for (pids, count) in [(nobody as fn() -> Vec<i32>, 0), (this_one, 1)] {
            let mut tally =
                AccountTally::begin(Account::With(Workers { pids, idle: Duration::MAX, block: BLOCK }));
            assert_eq!(tally.last.as_ref().map(|reading| reading.workers.len()), Some(count));
            tally.follow(Patience::Zero);
            assert!(tally.bytes().is_ok());
        }
    }
}
