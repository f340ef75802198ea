//! The scratch files that the cases write to.
//!
//! Three at most. The sections of pg_test_fsync write the start of one again and again. `wal_segment` goes on
//! and on through a file like a new segment; where some methods do so with O_DIRECT and others without, each
//! kind has a file of its own, since a direct write drops the pages that the next buffered one would have to
//! bring back.

use std::sync::Arc;

use super::case::{Case, Section};
use crate::Result;
use crate::files::scratch::{Fill, Room, Scratch, ScratchLocation};
use crate::machine::observer::Observer;
use crate::run::budget::{Limits, Stop, StopCheck};

/// Which files there are to be, and how large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of the file that is written again and again; 0 for none.
    overwritten: u64,
    /// Bytes of each file like a segment; 0 for none.
    segment: u64,
    /// Is one written without O_DIRECT, and one with it?
    segments: [bool; 2],
}

/// Fewest bytes of the file that is written again and again, if the limit allows.
const OVERWRITTEN: u64 = 1 << 20;

impl Layout {
    /// What `cases` need, within `limit` bytes of all files together; a segment of the server has `segment`
    /// bytes. None if an operation writes more than the limit allows.
    pub fn plan(cases: &[Case], limit: u64, segment: u64) -> Option<Self> {
        let (in_segment, overwriting): (Vec<&Case>, Vec<&Case>) =
            cases.iter().partition(|case| case.section == Section::WalSegment);
        let longest = |cases: &[&Case]| cases.iter().map(|case| case.bytes()).max();
        // A quarter of the limit at most, if that will do: the segments matter more.
        let overwritten = longest(&overwriting).map_or(0, |longest| longest.max(OVERWRITTEN.min(limit / 4)));
        let left = limit.checked_sub(overwritten)?;

        let segments = [false, true].map(|direct| in_segment.iter().any(|case| case.direct == direct));
        let Some(longest) = longest(&in_segment) else {
            return Some(Self { overwritten, segment: 0, segments });
        };
        let count = segments.into_iter().filter(|wanted| *wanted).count() as u64;
        // Each write lies within the file.
        let segment = (left / count).min(segment) / longest * longest;
        (segment > 0).then_some(Self { overwritten, segment, segments })
    }

    /// Bytes of a file like a segment; None if there is none.
    pub fn segment_bytes(&self) -> Option<u64> {
        (self.segment > 0).then_some(self.segment)
    }

    fn total(&self) -> u64 {
        self.overwritten + self.segments.into_iter().filter(|wanted| *wanted).count() as u64 * self.segment
    }

    /// Makes the files as `limits` let it, and leaves `reserve` bytes free. Segments are filled as the server
    /// fills them, with `fill` bytes at a time. `observer` sees whether the device counts what reaches it.
    ///
    /// # Errors
    /// As [`Scratch::create`]; there is room for all of them, or none is made.
    pub fn make(
        &self,
        place: ScratchLocation<'_>,
        reserve: u64,
        limits: Limits,
        fill: usize,
        observer: &Observer<'_>,
        should_stop: &mut StopCheck<'_>,
    ) -> Result<std::result::Result<Files, Stop>> {
        let before = observer.look();
        Room { size: self.total(), reserve, limits }.check(place.directory)?;
        let Files { mut overwritten, segments: [mut buffered, mut direct], .. } = Files::default();
        let zeros = Fill::Zeros { write_bytes: fill };
        let wanted = [
            (&mut overwritten, self.overwritten > 0, self.overwritten, Fill::Incompressible),
            (&mut buffered, self.segments[0], self.segment, zeros),
            (&mut direct, self.segments[1], self.segment, zeros),
        ];
        for (file, _, size, fill) in wanted.into_iter().filter(|(_, is_wanted, ..)| *is_wanted) {
            match Scratch::create(place, Room { size, reserve, limits }, fill, should_stop)? {
                Ok(scratch) => *file = Some(Arc::new(scratch)),
                Err(stop) => return Ok(Err(stop)),
            }
        }
        let activity = observer.since(&before).activity;
        let counted = activity.is_some_and(|activity| activity.writes.requests > 0);
        Ok(Ok(Files { overwritten, segments: [buffered, direct], counted }))
    }
}

/// The files.
#[derive(Default)]
pub struct Files {
    overwritten: Option<Arc<Scratch>>,
    /// Without O_DIRECT, and with it.
    segments: [Option<Arc<Scratch>>; 2],
    /// Did the device count the writes that made them? Then writes that it does not count do not reach it.
    pub(super) counted: bool,
}

impl Files {
    /// The file that a case writes to.
    pub(super) fn of(&self, case: &Case) -> &Arc<Scratch> {
        let file = match case.section {
            Section::WalSegment => &self.segments[usize::from(case.direct)],
            _ => &self.overwritten,
        };
        file.as_ref().unwrap_or_else(|| unreachable!("a file is made for each case"))
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
        let segment = Layout { overwritten: 0, segment: 16 * MIB, segments: [true, false] };
        assert_eq!(plan(&[Section::WalSegment], 8, 64 * MIB, &buffered), Some(segment));
        let overwritten = Layout { overwritten: MIB, segment: 0, segments: [false, false] };
        assert_eq!(plan(&[Section::NoSync], 8, 64 * MIB, &buffered), Some(overwritten));
        let all = plan(&Section::ALL, 8, 64 * MIB, &|method| method.syncs_by_open()).expect("fits");
        assert_eq!((all.segments, all.total()), ([true, true], 33 * MIB));
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
                assert!(planned.overwritten >= 2 * (u64::from(write_kb) << 10));
                assert!(planned.segment.is_multiple_of(32 * 8192) && planned.segment > 0);
            }
        }
    }
}
