//! What a scan of a table takes by the measured times, whichever way it goes.
//!
//! Queries ask one table for a range of one indexed column, which finds a known number of rows. Where these
//! lie is known from samples of the index: a share of them anywhere in the table, the rest in a stretch
//! around the place to which the order of the index has come ([`Locality`]). From that follow how many pages
//! are visited, how densely they lie, and in which order.
//!
//! | plan | cold | warm |
//! |---|---|---|
//! | sequential | the slower of device and processor, which overlap | pages from the OS cache; the tuples |
//! | index | each page once, at random or in order; hits; locks; the tuples | the same from memory |
//! | bitmap | each page once by the density curve; the tuples | each page once from memory; the tuples |
//! | index-only | the index's own pages; the tuples | the same from the OS cache |
//!
//! Each but the first also descends the index and reads its leaves in order. Warm means that the query ran
//! right before: what it visits is in shared buffers if it fits, else in the OS cache.
//!
//! # Limitations and caveats
//! - A tuple's work is taken as a multiple of what a bare count takes. The multiples, and those of memory,
//!   were found by fitting forced plans of one machine on PostgreSQL 15 and 18 (docs/model.md), and are about
//!   the same for any processor with caches.
//! - Which pages of a stretch the kernel foresees was fitted to a simulation of its readahead (Linux 6.18),
//!   between what that does with file systems that have large folios and with others. Where the pages come
//!   two to four windows apart, either may differ from what is said by up to a third of these pages.
//! - Ranges are read in the order of the index. ORDER BY … DESC reads them in the other one.
//! - Where the rows of a range lie is taken to be alike all over the index.
//! - Index-only scans are taken to find every page all-visible.
//!
//! Sources: `costsize.c` of PostgreSQL for what plans do; `mm/readahead.c` of Linux for what it foresees;
//! Cardenas, "Analysis and performance of inverted data base structures", Communications of the ACM 18
//! (1975), for how many pages a number of rows lie on.

use super::curve::GapCurve;
use super::locality::{Locality, median};
use super::visited::{Part, Visited};
use io_probe_core::measure::page_times::PageTimes;

/// A tuple's work over that in a bare count of all: in a sequential scan with a filter.
const FILTERED_TUPLE: f64 = 1.8;
/// A tuple's work in an index scan: its entry, its fetch, and its column.
const INDEX_TUPLE: f64 = 1.4;
/// What it takes besides to lock the page for each tuple, in hits.
const LOCKING: f64 = 0.7;
/// A tuple's work in a bitmap scan: its entry, its place in the bitmap, and its column.
pub const BITMAP_TUPLE: f64 = 2.8;
/// A tuple's work in an index-only scan.
const INDEX_ONLY_TUPLE: f64 = 1.7;

/// Random reads before the first row, with nothing cached, as fitted: among them are the pages of the index
/// from its root to the first leaf.
const DESCENT: f64 = 5.0;

/// The concurrency at which pages are read when they are needed, as an index scan reads all.
const UNAIDED: u32 = 0;

/// How many pages a bitmap scan reads through I/O workers until their reads overlap as the density curve
/// says, and how many random reads more it takes till then, times the square root of the pages.
const UNTIL_OVERLAP: f64 = 200.0;
const BEFORE_OVERLAP: f64 = 1.25;

/// Pages at each of several places that are read at random until the kernel sees their order: it looks for
/// those before in the page cache, and wants more than one.
const UNTIL_SEEN: f64 = 1.5;

/// A page in shared buffers that none of the processor's caches holds, over a hit in one that they do hold.
const FAR_PAGE: f64 = 13.0;
/// A row on a page that was visited before, with others in between, over a hit: of a stretch of up to so many
/// rows, and anywhere in the table. In between it grows by this power of the rows: fewer of them are in the
/// processor's caches.
const NEAR_AGAIN: f64 = 2.7;
const CACHED_ROWS: f64 = 30_000.0;
const AGAIN_GROWS: f64 = 0.4;
const FAR_AGAIN: f64 = 7.0;
/// What it takes to push another page out of shared buffers, in such hits.
const PUSHING: f64 = 15.0;

/// A table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Table {
    /// Its pages.
    pub pages: f64,
    /// Its rows, as far as the index has them.
    pub rows: f64,
}

/// An index of a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Index {
    /// Its pages.
    pub pages: f64,
    /// Where its rows lie.
    pub locality: Locality,
}

/// How a plan reads the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PlannedScan {
    /// All of it.
    Sequential,
    /// By the index, row by row.
    Index,
    /// By the index, page by page.
    Bitmap,
    /// The index only.
    IndexOnly,
}

/// What the caches hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caches {
    /// Nothing.
    Cold,
    /// Everything: in shared buffers what fits there, else in the OS cache.
    Warm,
}

/// The times that the model needs, in microseconds.
#[derive(Debug, Clone)]
pub struct Times {
    hit: f64,
    os_sequential: f64,
    os_random: f64,
    sequential: f64,
    random: f64,
    curve: GapCurve,
    tuple: f64,
    /// Pages of shared buffers.
    buffers: f64,
    window: f64,
    by_workers: bool,
    measured: PageTimes,
}

impl Times {
    /// The times of what was measured, on a server with `buffers` pages of shared buffers where the kernel
    /// reads up to `window` pages ahead; or the name of what is lacking.
    ///
    /// # Errors
    /// The first time that is not known.
    pub fn of(times: &PageTimes, buffers: f64, window: f64) -> Result<Self, &'static str> {
        Ok(Self {
            hit: times.shared.ok_or("a hit in shared buffers")?.us,
            os_sequential: times.os_sequential.ok_or("sequential reads from the OS cache")?.us,
            os_random: times.os_random.ok_or("random reads from the OS cache")?.us,
            sequential: times.device_sequential.ok_or("sequential reads from the device")?.us,
            random: times.device_random.ok_or("random reads from the device")?.us,
            curve: GapCurve::of(times).ok_or("reads with gaps")?,
            tuple: times.tuple.ok_or("the time per tuple")?.us,
            buffers,
            // What is asked for is read at least.
            window: window.max(1.0),
            by_workers: false,
            measured: times.clone(),
        })
    }

    /// Says whether I/O workers read ahead for bitmap scans.
    pub fn by_workers(self, by_workers: bool) -> Self {
        Self { by_workers, ..self }
    }

    /// What reads with gaps take.
    pub(super) fn curve(&self) -> &GapCurve {
        &self.curve
    }

    /// These times, where no read with gaps is off by more than `most` times what is usual of them: the
    /// median of how far their intervals reach up, as logarithms.
    pub(super) fn with_usual_errors(&self, most: f64) -> Self {
        let mut times = self.clone();
        let gaps = times.measured.sparse.iter().map(|point| &point.time);
        let above = gaps.filter_map(|time| time.interval.map(|(_, high)| (high / time.us).ln()));
        let Some(usual) = median(above) else { return times };
        for point in &mut times.measured.sparse {
            let cap = point.time.us * (most * usual).exp();
            point.time.interval = point.time.interval.map(|(low, high)| (low, high.min(cap)));
        }
        times
    }

    /// These times, with those of reads with gaps at one concurrency off by what the curve may be.
    pub(super) fn with_slower(&self, concurrency: u32) -> Self {
        Self { curve: self.curve.with_slower(concurrency), ..self.clone() }
    }

    /// Are reads without prefetch known, which index scans need, and those at this concurrency?
    pub fn covers(&self, concurrency: u32) -> bool {
        self.curve.has(0) && self.curve.has(concurrency)
    }

    /// These times, once for each measured one, with that one at the upper end of its interval.
    pub fn each_moved(&self) -> impl Iterator<Item = Self> {
        let moved =
            self.measured.each_moved().filter_map(|times| Self::of(&times, self.buffers, self.window).ok());
        moved.map(|times| times.by_workers(self.by_workers))
    }

    /// The time of a scan that finds `rows` rows, in microseconds.
    pub fn of_scan(
        &self,
        scan: PlannedScan,
        table: &Table,
        index: &Index,
        rows: f64,
        concurrency: u32,
        caches: Caches,
    ) -> f64 {
        let share = (rows / table.rows.max(1.0)).min(1.0);
        let visited = Visited::of(table, &index.locality, rows);
        let leaves = share * index.pages;
        // Leaves and pages of the table lie apart.
        let between = match caches {
            Caches::Cold => leaves / self.window * self.random,
            Caches::Warm => 0.0,
        };
        let leaves = match caches {
            Caches::Cold => DESCENT * self.random + leaves * self.in_order(),
            Caches::Warm => leaves * self.os_sequential,
        };
        match scan {
            PlannedScan::Sequential => self.all_pages(table, caches),
            PlannedScan::Index => {
                let locking = rows * LOCKING * self.hit;
                let pages = between + self.one_by_one(&visited, table, caches);
                leaves + pages + rows * INDEX_TUPLE * self.tuple + locking
            }
            PlannedScan::Bitmap => {
                let pages = match caches {
                    Caches::Cold => self.with_gaps(&visited, concurrency),
                    Caches::Warm => visited.pages() * self.memory_page(visited.pages()),
                };
                // Rows in no order find their places in the bitmap in no order.
                leaves + pages + rows * BITMAP_TUPLE * self.tuple + visited.far.rows * self.hit
            }
            PlannedScan::IndexOnly => leaves + rows * INDEX_ONLY_TUPLE * self.tuple,
        }
    }

    fn all_pages(&self, table: &Table, caches: Caches) -> f64 {
        let from_cache = table.pages * self.os_sequential + table.rows * FILTERED_TUPLE * self.tuple;
        match caches {
            Caches::Cold => from_cache.max(table.pages * self.sequential),
            Caches::Warm => from_cache,
        }
    }

    fn with_gaps(&self, visited: &Visited, concurrency: u32) -> f64 {
        let Visited { near, far, .. } = visited;
        let starting = if self.by_workers && concurrency != UNAIDED {
            BEFORE_OVERLAP * (near.pages + far.pages).min(UNTIL_OVERLAP).sqrt() * self.random
        } else {
            0.0
        };
        self.ascending(near, concurrency) + self.ascending(far, concurrency) + starting
    }

    /// The time of all pages of a part that are read ascending.
    fn ascending(&self, part: &Part, concurrency: u32) -> f64 {
        let pages: f64 =
            part.profile().iter().map(|(pages, density)| pages * self.curve.at(*density, concurrency)).sum();
        pages + self.going(part, part.pages, concurrency)
    }

    /// What so many pages of a part take besides, until readahead has got going: as far as they come as fast
    /// as in order, it begins with a few pages and doubles, and each time is waited for; at each place if
    /// nobody else asks for pages ahead.
    fn going(&self, part: &Part, pages: f64, concurrency: u32) -> f64 {
        let places = if concurrency == UNAIDED { part.places.min(pages) } else { pages.min(1.0) };
        let doublings = (1.0 + (pages / part.places).min(self.window)).log2();
        let in_order = (self.in_order() / self.curve.at(part.density, concurrency)).min(1.0);
        places * doublings * in_order * self.random
    }

    /// The time of a page in order that is read when it is needed.
    fn in_order(&self) -> f64 {
        self.curve.at(1.0, UNAIDED)
    }

    /// The time of a page, of `pages` that were visited right before, in no order.
    fn memory_page(&self, pages: f64) -> f64 {
        if pages <= self.buffers { FAR_PAGE * self.hit } else { self.pushing() }
    }

    /// The time of a page from the OS cache that pushes another one out of shared buffers.
    fn pushing(&self) -> f64 {
        self.os_random + PUSHING * self.hit
    }

    /// The time of a row on a page, one of `pages`, that was visited before: so many hits, if shared buffers
    /// still hold it.
    fn again(&self, hits: f64, pages: f64) -> f64 {
        let kept = (self.buffers / pages.max(1.0)).min(1.0);
        kept * hits * self.hit + (1.0 - kept) * self.pushing()
    }

    /// The time of the table's pages in an index scan.
    fn one_by_one(&self, visited: &Visited, table: &Table, caches: Caches) -> f64 {
        let Visited { near, far, .. } = visited;
        let far_again = if far.moves {
            self.again(near_again(far.stretch_rows), far.stretch)
        } else {
            self.again(FAR_AGAIN, table.pages)
        };
        let near_again = self.again(near_again(near.stretch_rows), near.stretch);
        let again = (near.rows * near.hops - near.pages).max(0.0) * near_again
            + (far.rows - far.pages).max(0.0) * far_again;
        let first = match caches {
            Caches::Warm => visited.pages() * self.memory_page(visited.pages()),
            Caches::Cold => self.as_they_come(near) + self.as_they_come(far),
        };
        first + again
    }

    /// The time of the pages of a part that are read when they are needed: in order the kernel reads ahead.
    fn as_they_come(&self, part: &Part) -> f64 {
        let unforeseen = part.unforeseen(self.window);
        let foreseen = part.pages - unforeseen;
        // Where the scan goes from place to place, the kernel sees an order by the pages that it has cached.
        let until_seen = if part.places > 1.0 {
            part.places * UNTIL_SEEN.min(foreseen / part.places) * self.random
        } else {
            0.0
        };
        let in_order = foreseen * self.curve.at(part.density, UNAIDED) + self.going(part, foreseen, UNAIDED);
        in_order + until_seen + unforeseen * self.random
    }
}

/// A row on a page that was visited before, of a stretch of so many rows, over a hit.
fn near_again(rows: f64) -> f64 {
    (NEAR_AGAIN * (rows / CACHED_ROWS).max(1.0).powf(AGAIN_GROWS)).min(FAR_AGAIN)
}

#[cfg(test)]
mod tests;
