//! Whose bytes: what a process fetched from storage and wrote to it, by the kernel's account.
//!
//! `read_bytes` of `/proc/PID/io` counts the bytes that a process, all its threads included, caused
//! to be fetched from the storage layer: exact for its own reads, buffered or direct, by system call
//! or io_uring; readahead counts with whoever triggered it. Reads that another process issues on its
//! behalf are in that process's account. File systems that fetch without the block layer (FUSE,
//! some network file systems) may count nothing. ZFS counts what it finds in its own cache as well (`zfs_read`).

use std::fs;
use std::path::PathBuf;

/// The processes whose reads belong to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Account {
    /// This process.
    Own,
    /// This process and others that read for it.
    With(Vec<i32>),
    /// Nobody's: the file system counts hits in a cache of its own, too.
    Unknown,
}

impl Account {
    /// Bytes fetched so far; None where the kernel does not tell.
    pub fn read_bytes(&self) -> Option<u64> {
        let own = read_bytes_of("self")?;
        match self {
            Account::Unknown => None,
            Account::Own => Some(own),
            Account::With(pids) => {
                pids.iter().try_fold(own, |sum, pid| Some(sum + read_bytes_of(&pid.to_string())?))
            }
        }
    }
}

/// Bytes that this process has caused to be fetched from storage and to be written to it; a write through the page
/// cache counts when it makes a page dirty. None where the kernel does not tell.
pub fn own_traffic() -> Option<u64> {
    let text = text_of("self")?;
    Some(parse(&text, "read_bytes:")? + parse(&text, "write_bytes:")?)
}

fn read_bytes_of(process: &str) -> Option<u64> {
    parse(&text_of(process)?, "read_bytes:")
}

fn text_of(process: &str) -> Option<String> {
    let path: PathBuf = ["/proc", process, "io"].iter().collect();
    fs::read_to_string(path).ok()
}

/// A line of `/proc/PID/io`.
pub(crate) fn parse(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_bytes_is_not_rchar() {
        let text = "rchar: 323934931\nwchar: 323929600\nsyscr: 632687\nsyscw: 632675\n\
                    read_bytes: 4096\nwrite_bytes: 323932160\ncancelled_write_bytes: 0\n";
        assert_eq!(parse(text, "read_bytes:"), Some(4096));
        assert_eq!(parse(text, "write_bytes:"), Some(323932160));
        assert_eq!(parse("rchar: 1\n", "read_bytes:"), None);
        assert_eq!(parse("read_bytes: many\n", "read_bytes:"), None);
    }

    #[test]
    fn a_process_that_is_gone_makes_the_sum_unknown() {
        assert!(Account::Own.read_bytes().is_some());
        assert_eq!(Account::With(vec![i32::MAX]).read_bytes(), None);
    }
}
