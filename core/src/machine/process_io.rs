//! What processes have moved, by the kernel's account of each (`/proc/PID/io`).
//!
//! # Limitations and caveats
//! - A write through the page cache counts when it makes a page dirty. The page goes to the device later, or
//!   never, if its file is deleted before.
//! - Reads by io_uring are in no count of calls, so that hits in the page cache by it are not seen.
//! - Only root and the owner of a process may look.

use std::fmt::Display;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Bytes since a process began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessIo {
    /// Read by system calls, whoever served them.
    pub called: u64,
    /// Fetched from storage.
    pub fetched: u64,
    /// Written.
    pub written: u64,
}

impl ProcessIo {
    /// Of the process of this number, or of `self`; None where there is none, or it can't be looked at.
    pub fn of(process: impl Display) -> Option<Self> {
        let mut text = [0; 512];
        let length = File::open(format!("/proc/{process}/io")).ok()?.read_at(&mut text, 0).ok()?;
        Self::parse(std::str::from_utf8(&text[..length]).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        Some(Self {
            called: number(text, "rchar:")?,
            fetched: number(text, "read_bytes:")?,
            written: number(text, "write_bytes:")?,
        })
    }

    /// What came since an earlier look at the same process.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            called: self.called.saturating_sub(earlier.called),
            fetched: self.fetched.saturating_sub(earlier.fetched),
            written: self.written.saturating_sub(earlier.written),
        }
    }

    /// Bytes that the OS page cache served.
    pub fn cached(self) -> u64 {
        self.called.saturating_sub(self.fetched)
    }

    /// Both together.
    pub fn and(self, other: Self) -> Self {
        Self {
            called: self.called + other.called,
            fetched: self.fetched + other.fetched,
            written: self.written + other.written,
        }
    }
}

/// The number in the line `name` of `/proc/PID/io`.
pub(crate) fn number(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_bytes_is_not_rchar() {
        let text = "rchar: 323934931\nwchar: 323929600\nsyscr: 632687\nsyscw: 632675\n\
                    read_bytes: 4096\nwrite_bytes: 323932160\ncancelled_write_bytes: 0\n";
        assert_eq!(number(text, "read_bytes:"), Some(4096));
        assert_eq!(number(text, "write_bytes:"), Some(323932160));
        assert_eq!(number("rchar: 1\n", "read_bytes:"), None);
        assert_eq!(number("read_bytes: many\n", "read_bytes:"), None);
    }

    #[test]
    fn its_own_reads_are_on_the_account() {
        let pid = std::process::id() as i32;
        let before = ProcessIo::of(pid).expect("an account");
        let read = std::fs::read("/proc/self/exe").expect("the test's own program").len() as u64;
        let moved = ProcessIo::of(pid).expect("an account").since(before);
        assert!(moved.called >= read && moved.cached() + moved.fetched >= read, "{moved:?}");
        assert_eq!(ProcessIo::of(0), None);
    }

    #[test]
    fn all_three_lines_are_needed() {
        let text = "rchar: 30\nwchar: 1\nsyscr: 1\nsyscw: 1\nread_bytes: 20\nwrite_bytes: 5\n";
        let found = ProcessIo::parse(text).expect("three lines");
        assert_eq!(found, ProcessIo { called: 30, fetched: 20, written: 5 });
        assert_eq!(found.cached(), 10);
        assert_eq!(ProcessIo::parse("rchar: 30\nread_bytes: 20\n"), None);
    }
}
