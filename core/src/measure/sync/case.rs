//! What is measured: one case a row.

use super::calls::SyncCall;

/// A group of cases that answer one question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// Which method is fastest for one write?
    OneWrite,
    /// And for two writes before the sync?
    TwoWrites,
    /// What does it cost to write 16 kB in pieces, each synced?
    OpenSyncSize,
    /// Does a sync reach what another descriptor has written?
    OtherFd,
    /// What would a write cost without a sync?
    NoSync,
    /// What does the server's own pattern cost: on and on through a segment?
    WalSegment,
}

impl Section {
    /// All of them, in the order of their rows.
    pub const ALL: [Section; 6] = [
        Section::OneWrite,
        Section::TwoWrites,
        Section::OpenSyncSize,
        Section::OtherFd,
        Section::NoSync,
        Section::WalSegment,
    ];

    /// Does it compare the values of wal_sync_method?
    pub fn is_of_wal(self) -> bool {
        matches!(self, Section::OneWrite | Section::TwoWrites | Section::WalSegment)
    }
}

/// How a write is made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlushMethod {
    /// Each write syncs its data (`O_DSYNC`).
    OpenDatasync,
    /// `fdatasync(2)` after the writes.
    Fdatasync,
    /// `fsync(2)` after the writes.
    Fsync,
    /// Each write syncs data and metadata (`O_SYNC`).
    OpenSync,
    /// Opens, writes, syncs by the same descriptor.
    WriteFsyncClose,
    /// Opens, writes, closes, and syncs by another descriptor.
    WriteCloseFsync,
    /// Not at all.
    Write,
}

impl FlushMethod {
    /// The values that wal_sync_method has on Linux, in pg_test_fsync's order.
    pub const OF_WAL: [FlushMethod; 4] =
        [FlushMethod::OpenDatasync, FlushMethod::Fdatasync, FlushMethod::Fsync, FlushMethod::OpenSync];

    /// The method that wal_sync_method calls `name`.
    pub fn of_wal(name: &str) -> Option<Self> {
        Self::OF_WAL.into_iter().find(|method| method.name() == name)
    }

    /// Its name: as wal_sync_method has it, or as pg_test_fsync prints it.
    pub fn name(self) -> &'static str {
        match self {
            FlushMethod::OpenDatasync => "open_datasync",
            FlushMethod::Fdatasync => "fdatasync",
            FlushMethod::Fsync => "fsync",
            FlushMethod::OpenSync => "open_sync",
            FlushMethod::WriteFsyncClose => "write, fsync, close",
            FlushMethod::WriteCloseFsync => "write, close, fsync",
            FlushMethod::Write => "write",
        }
    }

    /// Does the descriptor itself make every write wait for the storage?
    pub fn syncs_by_open(self) -> bool {
        self.open_flag() != 0
    }

    /// The flag that makes a descriptor do so; 0 for none.
    pub(super) fn open_flag(self) -> i32 {
        match self {
            FlushMethod::OpenDatasync => libc::O_DSYNC,
            FlushMethod::OpenSync => libc::O_SYNC,
            FlushMethod::Fdatasync
            | FlushMethod::Fsync
            | FlushMethod::WriteFsyncClose
            | FlushMethod::WriteCloseFsync
            | FlushMethod::Write => 0,
        }
    }

    /// The call after the writes that waits for the storage; None where there is none.
    pub(super) fn sync_call(self) -> Option<SyncCall> {
        match self {
            FlushMethod::Fdatasync => Some(SyncCall::Fdatasync),
            FlushMethod::Fsync | FlushMethod::WriteFsyncClose | FlushMethod::WriteCloseFsync => {
                Some(SyncCall::Fsync)
            }
            FlushMethod::OpenDatasync | FlushMethod::OpenSync | FlushMethod::Write => None,
        }
    }
}

/// One way to write and sync, again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    /// The question that it belongs to.
    pub section: Section,
    /// How it syncs.
    pub method: FlushMethod,
    /// Past the page cache (`O_DIRECT`)?
    pub direct: bool,
    /// Write calls of an operation.
    pub writes: u32,
    /// Bytes of each write call.
    pub write_bytes: u32,
}

/// Which cases are wanted, and their sizes.
pub struct Selection<'a> {
    /// Sections that are wanted.
    pub sections: &'a [Section],
    /// Bytes of a write in the sections of pg_test_fsync.
    pub write_bytes: u32,
    /// Bytes of a WAL block.
    pub wal_block: u32,
    /// Blocks of WAL in a flush, or a commit, of `wal_segment`.
    pub flushes: &'a [u32],
    /// Is `wal_segment` written with `O_DIRECT` under this method?
    pub segment_direct: &'a dyn Fn(FlushMethod) -> bool,
}

/// Blocks of WAL in one flush: a small commit, and ever larger ones.
pub const FLUSHES: [u32; 4] = [1, 2, 8, 32];

/// What open_sync_size writes in one operation, in bytes.
const OPEN_SYNC_BYTES: u32 = 16 << 10;

impl Case {
    /// The cases of the wanted sections, in the order of their rows. pg_test_fsync opens with `O_DIRECT`
    /// where the descriptor syncs; such cases come in both variants here.
    pub fn all(selection: &Selection<'_>) -> Vec<Case> {
        Section::ALL
            .into_iter()
            .filter(|section| selection.sections.contains(section))
            .flat_map(|section| Self::of_section(section, selection))
            .collect()
    }

    fn of_section(section: Section, selection: &Selection<'_>) -> Vec<Case> {
        let case =
            |method, direct, writes, write_bytes| Case { section, method, direct, writes, write_bytes };
        let buffered = |method| case(method, false, 1, selection.write_bytes);
        match section {
            Section::OneWrite | Section::TwoWrites => {
                let writes = if section == Section::OneWrite { 1 } else { 2 };
                let mut cases = Vec::new();
                for method in FlushMethod::OF_WAL {
                    if method.syncs_by_open() {
                        cases.push(case(method, true, writes, selection.write_bytes));
                    }
                    cases.push(case(method, false, writes, selection.write_bytes));
                }
                cases
            }
            Section::OpenSyncSize => [1, 2, 4, 8, 16]
                .map(|writes| case(FlushMethod::OpenSync, true, writes, OPEN_SYNC_BYTES / writes))
                .into(),
            Section::OtherFd => {
                [FlushMethod::WriteFsyncClose, FlushMethod::WriteCloseFsync].map(buffered).into()
            }
            Section::NoSync => vec![buffered(FlushMethod::Write)],
            Section::WalSegment => selection
                .flushes
                .iter()
                .flat_map(|blocks| {
                    // One write call, as the server makes it of blocks that lie side by side.
                    FlushMethod::OF_WAL.map(|method| {
                        let direct = (selection.segment_direct)(method);
                        case(method, direct, 1, blocks * selection.wal_block)
                    })
                })
                .collect(),
        }
    }

    /// Bytes of an operation.
    pub fn bytes(&self) -> u64 {
        u64::from(self.writes) * u64::from(self.write_bytes)
    }

    /// Bytes that reach the storage with each operation.
    pub(super) fn durable_bytes(&self) -> u64 {
        if self.is_durable() { self.bytes() } else { 0 }
    }

    /// Is the storage meant to have the data when the operation ends?
    pub fn is_durable(&self) -> bool {
        self.syncs() > 0
    }

    /// Syncs of an operation: a descriptor that syncs does so at each write.
    pub(super) fn syncs(&self) -> u64 {
        match self.method {
            FlushMethod::Write => 0,
            method if method.syncs_by_open() => self.writes.into(),
            _ => 1,
        }
    }

    /// The flags that its descriptor is opened with, beyond those for reading and writing.
    pub(super) fn flags(&self) -> i32 {
        self.method.open_flag() | if self.direct { libc::O_DIRECT } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cases(sections: &[Section], segment_direct: &dyn Fn(FlushMethod) -> bool) -> Vec<Case> {
        Case::all(&Selection {
            sections,
            write_bytes: 8192,
            wal_block: 4096,
            flushes: &FLUSHES,
            segment_direct,
        })
    }

    #[test]
    fn the_order_is_that_of_the_sections() {
        let mut asked = Section::ALL;
        asked.reverse();
        let cases = cases(&asked, &|_| false);
        let mut sections: Vec<Section> = cases.iter().map(|case| case.section).collect();
        assert_eq!(sections.len(), 6 + 6 + 5 + 2 + 1 + 16);
        sections.dedup();
        assert_eq!(sections, Section::ALL);
    }

    #[test]
    fn descriptors_that_sync_come_with_and_without_direct() {
        let found: Vec<_> = cases(&[Section::TwoWrites], &|_| true)
            .iter()
            .map(|case| (case.method.name(), case.direct, case.flags(), case.writes))
            .collect();
        let (dsync, sync, direct) = (libc::O_DSYNC, libc::O_SYNC, libc::O_DIRECT);
        assert_eq!(
            found,
            [
                ("open_datasync", true, dsync | direct, 2),
                ("open_datasync", false, dsync, 2),
                ("fdatasync", false, 0, 2),
                ("fsync", false, 0, 2),
                ("open_sync", true, sync | direct, 2),
                ("open_sync", false, sync, 2),
            ]
        );
    }

    #[test]
    fn sixteen_kb_are_written_in_one_to_sixteen_pieces() {
        let found: Vec<_> = cases(&[Section::OpenSyncSize], &|_| false)
            .iter()
            .map(|case| (case.writes, case.write_bytes, case.syncs(), case.direct))
            .collect();
        assert_eq!(
            found,
            [
                (1, 16384, 1, true),
                (2, 8192, 2, true),
                (4, 4096, 4, true),
                (8, 2048, 8, true),
                (16, 1024, 16, true)
            ]
        );
    }

    #[test]
    fn a_segment_is_written_as_the_server_opens_it() {
        let found = cases(&[Section::WalSegment], &|method| method.syncs_by_open());
        let small: Vec<_> = found[..4].iter().map(|case| (case.method.name(), case.direct)).collect();
        assert_eq!(
            small,
            [("open_datasync", true), ("fdatasync", false), ("fsync", false), ("open_sync", true)]
        );
        let sizes: Vec<u32> = found.iter().step_by(4).map(|case| case.write_bytes).collect();
        assert_eq!(sizes, [4096, 8192, 32768, 131072]);
        assert!(found.iter().all(|case| case.writes == 1));
    }
}
