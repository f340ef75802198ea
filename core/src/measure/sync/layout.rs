//! The scratch files that the cases write to.
//!
//! Three at most. The sections of pg_test_fsync write the start of one again and again. `wal_segment` goes on
//! and on through a file like a new segment; where some methods do so with O_DIRECT and others without, each
//! kind has a file of its own, since a direct write drops the pages that the next buffered one would have to
//! bring back.

use std::sync::Arc;

use super::case::{Case, Section};
use crate::files::scratch::{Fill, Room, Scratch, ScratchLocation, ScratchName};
use crate::run::budget::{Limits, Outcome, StopCheck};

/// How large the files are to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of each, by [`file_of`]; 0 for none.
    sizes: [u64; 3],
}

/// The number of the file that a case writes to: 0 for the one that is written again and again; of those like
/// a segment, 1 for the one without O_DIRECT, and 2 for the one with it.
fn file_of(case: &Case) -> usize {
    match case.section {
        Section::WalSegment => 1 + usize::from(case.direct),
        _ => 0,
    }
}

/// Fewest bytes of the file that is written again and again, if the limit allows.
const OVERWRITTEN: u64 = 1 << 20;

impl Layout {
    /// What `cases` need, within `limit` bytes of all files together; a segment of the server has `segment`
    /// bytes. None if an operation writes more than the limit allows.
    pub fn plan(cases: &[Case], limit: u64, segment: u64) -> Option<Self> {
        // The longest operation on each file.
        let [overwriting, buffered, direct] =
            [0, 1, 2].map(|file| cases.iter().filter(|case| file_of(case) == file).map(Case::bytes).max());
        // A quarter of the limit at most, if that will do: the segments matter more.
        let overwritten = overwriting.map_or(0, |longest| longest.max(OVERWRITTEN.min(limit / 4)));
        let left = limit.checked_sub(overwritten)?;

        let Some(longest) = buffered.max(direct) else {
            return Some(Self { sizes: [overwritten, 0, 0] });
        };
        let count = [buffered, direct].into_iter().flatten().count() as u64;
        // Each write lies within the file.
        let segment = (left / count).min(segment) / longest * longest;
        let [buffered, direct] = [buffered, direct].map(|wanted| wanted.map_or(0, |_| segment));
        (segment > 0).then_some(Self { sizes: [overwritten, buffered, direct] })
    }

    /// Bytes of a file like a segment; None if there is none.
    pub fn segment_bytes(&self) -> Option<u64> {
        self.sizes[1..].iter().copied().find(|bytes| *bytes > 0)
    }

    fn total(&self) -> u64 {
        self.sizes.iter().sum()
    }

    /// Makes the files as `limits` let it, and leaves `reserve` bytes free. Segments are filled as the server
    /// fills them, with `fill` bytes at a time. `named`: they keep names, for as long as they are.
    ///
    /// # Errors
    /// As [`Scratch::create`]; there is room for all of them, or none is made.
    pub fn make(
        &self,
        place: ScratchLocation<'_>,
        named: bool,
        reserve: u64,
        limits: Limits,
        fill: usize,
        should_stop: &mut StopCheck<'_>,
    ) -> Outcome<Files> {
        Room { size: self.total(), reserve, limits }.check(place.directory)?;
        let zeros = Fill::Zeros { write_bytes: fill };
        let fills = [Fill::Incompressible, zeros, zeros];
        let mut files = Files::default();
        let each = files.each.iter_mut().zip(self.sizes).zip(fills).enumerate();
        for (number, ((file, size), fill)) in each.filter(|(_, ((_, size), _))| *size > 0) {
            let room = Room { size, reserve, limits };
            let number = named.then_some(number);
            let (scratch, name) = Scratch::create(place, number, room, fill, should_stop)?;
            *file = Some(Arc::new(scratch));
            files.names.extend(name);
        }
        Ok(files)
    }
}

/// The files.
#[derive(Default)]
pub struct Files {
    /// By [`file_of`].
    each: [Option<Arc<Scratch>>; 3],
    /// The names that they keep, if they keep any.
    names: Vec<ScratchName>,
}

impl Files {
    /// The file that a case writes to.
    pub(super) fn of(&self, case: &Case) -> &Arc<Scratch> {
        let file = self.each[file_of(case)].as_ref();
        file.unwrap_or_else(|| unreachable!("a file is made for each case"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::case::{FLUSHES, FlushMethod, Selection};
    use super::*;

    const MIB: u64 = 1 << 20;

    fn plan(
        sections: &[Section],
        write_kb: u32,
        limit: u64,
        direct: &dyn Fn(FlushMethod) -> bool,
    ) -> Option<Layout> {
        let write_bytes = write_kb << 10;
        let selection =
            Selection { sections, write_bytes, wal_block: 8192, flushes: &FLUSHES, segment_direct: direct };
        Layout::plan(&Case::all(&selection), limit, 16 * MIB)
    }

    #[test]
    fn only_what_is_needed_is_made() {
        let buffered = |_| false;
        let sizes = |sections: &[Section], direct: &dyn Fn(FlushMethod) -> bool| {
            plan(sections, 8, 64 * MIB, direct).map(|layout| (layout.sizes, layout.segment_bytes()))
        };
        let segment = ([0, 16 * MIB, 0], Some(16 * MIB));
        assert_eq!(sizes(&[Section::WalSegment], &buffered), Some(segment));
        assert_eq!(sizes(&[Section::NoSync], &buffered), Some(([MIB, 0, 0], None)));
        let all = ([MIB, 16 * MIB, 16 * MIB], Some(16 * MIB));
        assert_eq!(sizes(&Section::ALL, &|method| method.syncs_by_open()), Some(all));
    }

    #[test]
    fn the_limit_holds_for_all_together() {
        for limit in 1..40 {
            for write_kb in [1, 8, 100, 1024] {
                let planned = plan(&Section::ALL, write_kb, limit * MIB, &|m| m.syncs_by_open());
                let Some(planned) = planned else {
                    assert!(write_kb == 1024 && limit <= 2, "{write_kb} kB do not fit {limit} MiB");
                    continue;
                };
                assert!(planned.total() <= limit * MIB, "{planned:?}");
                let [overwritten, buffered, direct] = planned.sizes;
                assert!(overwritten >= 2 * (u64::from(write_kb) << 10));
                assert!(buffered.is_multiple_of(32 * 8192) && buffered > 0 && direct == buffered);
            }
        }
    }
}
