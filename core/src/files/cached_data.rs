//! How much of a file's data the OS page cache holds, span by span.

use std::ops::Range;

use crate::files::holes::Holes;
use crate::files::open_file::OpenFile;

/// Cached bytes of a byte range, span by span. Zero pages that stand for holes are not data.
pub(crate) struct CachedData {
    cached: Vec<u64>,
    length: u64,
}

impl CachedData {
    const SPAN: u64 = 1 << 20;

    /// Counts the spans up to which the first `data` bytes of data go: no more may be read. None where the
    /// kernel does not tell.
    pub(crate) fn count(open: &OpenFile, bytes: Range<u64>, holes: &Holes, mut data: u64) -> Option<Self> {
        let resident = |range| Some(open.residency(range).ok()?.cached_bytes);
        let mut cached = Vec::new();
        let mut at = bytes.start;
        while at < bytes.end && data > 0 {
            let end = (at + Self::SPAN).min(bytes.end);
            let zeroes: u64 = holes.within(at..end).map(resident).sum::<Option<u64>>()?;
            cached.push(resident(at..end)?.saturating_sub(zeroes));
            let hole: u64 = holes.within(at..end).map(|hole| hole.end - hole.start).sum();
            data = data.saturating_sub(end - at - hole);
            at = end;
        }
        Some(Self { cached, length: bytes.end - bytes.start })
    }

    /// Cached bytes among the first `length` of the range.
    pub(crate) fn up_to(&self, length: u64) -> u64 {
        let whole = (length / Self::SPAN) as usize;
        let sum: u64 = self.cached.iter().take(whole).sum();
        let rest = length % Self::SPAN;
        let Some(&last) = self.cached.get(whole) else { return sum };
        let span = (self.length - whole as u64 * Self::SPAN).min(Self::SPAN);
        sum + last * rest / span
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::open_file::Access;
    use crate::files::relation_files::fixture::Relation;

    #[test]
    fn what_can_not_be_read_is_not_looked_up() {
        const MIB: u64 = 1 << 20;
        let relation = Relation::of_segments(2048, 2048, 1024..2048);
        let open = relation.source.open(0, Access::Buffered).expect("opened");
        let holes = Holes::find(&open, 0..16 * MIB, &mut || None).expect("holes");
        for (data, spans) in [(0, 0), (1, 9), (MIB, 9), (MIB + 1, 10), (8 * MIB, 16), (u64::MAX, 16)] {
            let count = CachedData::count(&open, 0..16 * MIB, &holes, data).expect("a count");
            assert_eq!(count.cached.len(), spans, "{data}");
        }
    }
}
