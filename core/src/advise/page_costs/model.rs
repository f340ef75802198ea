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
//! - How readahead gets going was fitted on a device with a window of 8 MiB. With a smaller window, ranges in
//!   order take some random reads less than is said.
//! - Where the rows of a range lie is taken to be alike all over the index.
//! - Index-only scans are taken to find every page all-visible.
//!
//! Sources: `costsize.c` of PostgreSQL for what plans do; Cardenas, "Analysis and performance of inverted
//! data base structures", Communications of the ACM 18 (1975), for how many pages a number of rows lie on.

use std::cmp::Ordering;
use std::collections::HashSet;

use super::curve::GapCurve;
use crate::measure::page_times::{Estimate, PageTimes};

/// A tuple's work over that in a bare count of all: in a sequential scan that looks at a column of each.
const FILTERED_TUPLE: f64 = 1.8;
/// A tuple's work in an index scan: its entry, its fetch, and its column.
const INDEX_TUPLE: f64 = 1.4;
/// What it takes besides to lock the page for each tuple, in hits.
const LOCKING: f64 = 0.7;
/// A tuple's work in a bitmap scan: its entry, its place in the bitmap, and its column.
const BITMAP_TUPLE: f64 = 2.8;
/// A tuple's work in an index-only scan.
const INDEX_ONLY_TUPLE: f64 = 1.7;

/// Random reads before the first row, with nothing cached, as fitted: among them are the pages of the index
/// from its root to the first leaf.
const DESCENT: f64 = 5.0;

/// The concurrency at which pages are read when they are needed, as an index scan reads all.
const UNAIDED: u32 = 0;

/// How often readahead doubles at most: to 8 MiB.
const MOST_DOUBLINGS: f64 = 10.0;

/// How many pages a bitmap scan reads through I/O workers until their reads overlap as the density curve
/// says, and how many random reads more it takes till then, times the square root of the pages.
const UNTIL_OVERLAP: f64 = 200.0;
const BEFORE_OVERLAP: f64 = 1.25;

/// Longest stretch, in pages, that is as good as in order.
const IN_ORDER: f64 = 4.0;
/// Share of a longer stretch that is visited before the kernel sees an order in it.
const UNFORESEEN: f64 = 0.75;

/// A page in shared buffers that none of the processor's caches holds, over a hit in one that they do hold.
const FAR_PAGE: f64 = 13.0;
/// The same for a row on a page that was visited before, with others in between: of a stretch, and anywhere
/// in the table.
const NEAR_AGAIN: f64 = 2.7;
const FAR_AGAIN: f64 = 7.0;
/// What it takes to push another page out of shared buffers, in such hits.
const PUSHING: f64 = 15.0;

/// Where the rows lie that follow one another in an index.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Locality {
    /// Share of the rows that lie anywhere in the table. Of few, those on one page in a row count once.
    pub scattered: f64,
    /// Pages of the stretch that the others come from at any moment: 1 if the table is in the order of the
    /// index, or in the other.
    pub stretch: f64,
    /// How many of these others are on a page where they follow one another, if not as many as anywhere: of
    /// equal values spread over the table, or of an index on some rows that lie together.
    pub per_page: Option<f64>,
    /// Share of these others that lie on another page than the one before.
    pub hops: f64,
    /// Do they lie from the end of the table to its beginning, so that no kernel reads ahead?
    pub is_backward: bool,
}

impl Locality {
    /// Rows that lie forwards, as many on a page as anywhere.
    pub const fn of(scattered: f64, stretch: f64) -> Self {
        Self { scattered, stretch, per_page: None, hops: 1.0 - 1.0 / stretch, is_backward: false }
    }

    /// Do the rows lie in the order of the index, as far as a scan by it notices?
    pub fn is_in_order(&self) -> bool {
        self.scattered <= HARDLY_ANY && self.stretch <= IN_ORDER && !self.is_backward
    }

    /// Do the rows lie alike, as far as a range visits them?
    pub fn is_like(&self, other: &Self) -> bool {
        let is_near = |a: f64, b: f64| a.max(b) <= 2.0 * a.min(b);
        let density = |of: &Self| of.per_page.unwrap_or(0.0);
        (self.scattered - other.scattered).abs() <= 0.1
            && is_near(self.stretch.max(IN_ORDER), other.stretch.max(IN_ORDER))
            && is_near(density(self), density(other))
            && self.is_backward == other.is_backward
    }
}

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
    by_workers: bool,
    measured: PageTimes,
}

impl Times {
    /// The times of what was measured, on a server with `buffers` pages of shared buffers; or the name of
    /// what is lacking.
    ///
    /// # Errors
    /// The first time that is not known.
    pub fn of(times: &PageTimes, buffers: f64) -> Result<Self, &'static str> {
        let us = |time: Option<Estimate>, name| time.map(|time| time.us).ok_or(name);
        Ok(Self {
            hit: us(times.shared, "a hit in shared buffers")?,
            os_sequential: us(times.os_sequential, "sequential reads from the OS cache")?,
            os_random: us(times.os_random, "random reads from the OS cache")?,
            sequential: us(times.device_sequential, "sequential reads from the device")?,
            random: us(times.device_random, "random reads from the device")?,
            curve: GapCurve::of(times).ok_or("reads with gaps")?,
            tuple: us(times.tuple, "the tuples")?,
            buffers,
            by_workers: false,
            measured: times.clone(),
        })
    }

    /// The same on a server where I/O workers read ahead for bitmap scans, or not.
    pub fn by_workers(self, by_workers: bool) -> Self {
        Self { by_workers, ..self }
    }

    /// Are reads without prefetch known, which index scans need, and those at this concurrency?
    pub fn covers(&self, concurrency: u32) -> bool {
        self.curve.has(0) && self.curve.has(concurrency)
    }

    /// These times, once for each measured one, with that one at the upper end of its interval.
    pub fn each_moved(&self) -> impl Iterator<Item = Self> {
        let of = |times: PageTimes| Some(Self::of(&times, self.buffers).ok()?.by_workers(self.by_workers));
        self.measured.each_moved().filter_map(of)
    }

    /// `seq_page_cost` where the processor's costs stay as they are, and a tuple costs `cpu_tuple_cost`; None
    /// if that is no number above 0.
    pub fn seq_page_cost(&self, cpu_tuple_cost: f64) -> Option<f64> {
        Some(self.sequential / (self.tuple / cpu_tuple_cost)).filter(|cost| cost.is_finite() && *cost > 0.0)
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
        let leaves = match caches {
            Caches::Cold => DESCENT * self.random + leaves * self.in_order(),
            Caches::Warm => leaves * self.os_sequential,
        };
        let tuples = |work: f64| rows * work * self.tuple;
        match scan {
            PlannedScan::Sequential => self.all_pages(table, caches),
            PlannedScan::Index => {
                let locking = rows * LOCKING * self.hit;
                leaves + self.one_by_one(&visited, table, caches) + tuples(INDEX_TUPLE) + locking
            }
            PlannedScan::Bitmap => {
                let pages = match caches {
                    Caches::Cold => self.with_gaps(&visited, concurrency),
                    Caches::Warm => visited.pages() * self.memory_page(visited.pages()),
                };
                // Rows in no order find their places in the bitmap in no order.
                leaves + pages + tuples(BITMAP_TUPLE) + visited.far_rows * self.hit
            }
            PlannedScan::IndexOnly => leaves + tuples(INDEX_ONLY_TUPLE),
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
        let starting = if self.by_workers && concurrency != UNAIDED {
            BEFORE_OVERLAP * (visited.near + visited.far).min(UNTIL_OVERLAP).sqrt() * self.random
        } else {
            0.0
        };
        self.ascending(visited.near, visited.near_density, concurrency)
            + self.ascending(visited.far, visited.far_density, concurrency)
            + starting
    }

    /// The time of pages that are read ascending, from the first on: as far as they come as fast as in order,
    /// readahead has to get going. It begins with a few pages and doubles, and each time is waited for.
    fn ascending(&self, pages: f64, density: f64, concurrency: u32) -> f64 {
        if pages <= 0.0 {
            return 0.0;
        }
        let each = self.curve.at(density, concurrency);
        let doublings = (1.0 + pages).log2().min(MOST_DOUBLINGS);
        pages * each + doublings * (self.in_order() / each).min(1.0) * self.random
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

    /// The time of the table's pages in an index scan.
    fn one_by_one(&self, visited: &Visited, table: &Table, caches: Caches) -> f64 {
        // Of pages anywhere those are found again that shared buffers still hold.
        let kept = (self.buffers / table.pages.max(1.0)).min(1.0);
        let far_again = kept * FAR_AGAIN * self.hit + (1.0 - kept) * self.pushing();
        let again = (visited.near_rows * visited.hops - visited.near).max(0.0) * NEAR_AGAIN * self.hit
            + (visited.far_rows - visited.far).max(0.0) * far_again;
        let first = match caches {
            Caches::Warm => visited.pages() * self.memory_page(visited.pages()),
            Caches::Cold => {
                // In order the kernel reads ahead.
                let foreseen = visited.near - visited.unforeseen();
                let in_order = self.ascending(foreseen, visited.near_density, UNAIDED);
                in_order + (visited.unforeseen() + visited.far) * self.random
            }
        };
        first + again
    }
}

/// The pages that the rows of a range lie on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Visited {
    /// Rows near to one another, and anywhere.
    near_rows: f64,
    far_rows: f64,
    /// Pages near to one another, and which share of their stretch they are.
    near: f64,
    near_density: f64,
    /// Pages anywhere, and which share of the table they are.
    far: f64,
    far_density: f64,
    stretch: f64,
    hops: f64,
    table_pages: f64,
    is_backward: bool,
}

impl Visited {
    pub(super) fn of(table: &Table, locality: &Locality, rows: f64) -> Self {
        let pages = table.pages.max(1.0);
        let per_page = (table.rows / pages).max(FEWEST);
        let (far_rows, near_rows) = (rows * locality.scattered, rows * (1.0 - locality.scattered));
        let of_near = locality.per_page.unwrap_or(per_page).max(FEWEST);
        let stretch = (near_rows / of_near + locality.stretch).clamp(1.0, pages);
        let near = on_pages(near_rows, stretch, of_near);
        let far = on_pages(far_rows, pages, per_page);
        Self {
            near_rows,
            far_rows,
            near,
            near_density: (near / stretch).clamp(0.0, 1.0),
            far,
            far_density: (far / pages).clamp(0.0, 1.0),
            stretch: locality.stretch,
            hops: locality.hops,
            table_pages: pages,
            is_backward: locality.is_backward,
        }
    }

    /// All pages, each once.
    pub(super) fn pages(&self) -> f64 {
        self.near + self.far_alone()
    }

    /// Of the pages anywhere, those that are not near to others as well.
    fn far_alone(&self) -> f64 {
        self.far * (1.0 - self.near / self.table_pages)
    }

    /// Pages that an index scan reaches in no order that the kernel sees.
    pub(super) fn at_random(&self) -> f64 {
        self.unforeseen() + self.far_alone()
    }

    /// Of the pages near to one another, those that the kernel can't foresee.
    fn unforeseen(&self) -> f64 {
        if self.is_backward {
            self.near
        } else if self.stretch <= IN_ORDER {
            0.0
        } else {
            self.near.min(UNFORESEEN * self.stretch)
        }
    }
}

/// On how many of `pages` pages `rows` rows lie, if any row may lie on any.
fn on_pages(rows: f64, pages: f64, per_page: f64) -> f64 {
    let few = pages * (1.0 - (1.0 - 1.0 / pages.max(1.0)).powf(rows));
    // Whole pages at most, and not fewer than the rows fill.
    few.max((rows / per_page).min(pages)).min(rows.max(0.0)).min(pages)
}

/// Where the rows of an index lie, by samples: in each, the pages of rows that follow one another in the
/// index. None without a sample of several rows.
pub fn locality(samples: &[Vec<u64>], table: &Table) -> Option<Locality> {
    let samples = SampledRows::all(samples, table);
    if samples.is_empty() {
        return None;
    }
    let sum = |count: fn(&SampledRows) -> f64| samples.iter().map(count).sum::<f64>();
    let (rows, ups, downs) = (sum(|one| one.rows), sum(|one| one.ups), sum(|one| one.downs));
    let mut far = rows - sum(|one| one.near);
    if far <= FEW_FAR * rows {
        // Of few, more than by chance may lie on one page, which is read once: new versions of rows.
        far = sum(|one| one.far_pages);
    }
    // Of rows anywhere, some are near by chance.
    let scattered = (far / rows / (1.0 - 2.0 * FAR)).min(1.0);
    if scattered > MOSTLY {
        return Some(Locality::of(1.0, 1.0));
    }
    let everywhere = (table.rows / table.pages.max(1.0)).max(FEWEST);
    let is_in_a_row = ups.min(downs) <= AGAINST * (ups + downs);
    let of_samples = median(samples.iter().map(|one| one.near / (one.all + 1.0)))?;
    // How many are on a page is known to some rows only.
    let differs = is_in_a_row && !(1.0 / APART..=APART).contains(&(of_samples / everywhere));
    let per_page = if differs { of_samples } else { everywhere };
    // What the middle 80 % span, beyond what as many rows in order do.
    let stretch = median(samples.iter().map(|one| (one.middle / 0.8 - one.near / per_page).max(1.0)))?;
    Some(Locality {
        scattered,
        stretch,
        per_page: differs.then_some(per_page),
        hops: (ups + downs) / sum(|one| (one.near - 1.0).max(1.0)),
        is_backward: is_in_a_row && downs > ups,
    })
}

/// Do rows that lie far from the others lie anywhere? If several of them are on one page each time, they
/// have an order of their own.
pub(super) fn lie_anywhere(samples: &[Vec<u64>], table: &Table) -> bool {
    let samples = SampledRows::all(samples, table);
    let sum = |count: fn(&SampledRows) -> f64| samples.iter().map(count).sum::<f64>();
    let (rows, far) = (sum(|one| one.rows), sum(|one| one.rows - one.near));
    far <= FEW_FAR * rows || sum(|one| one.far_pages) >= ALONE * far
}

/// What a sample says of its rows.
struct SampledRows {
    rows: f64,
    /// Rows near to the middle of the sample.
    near: f64,
    /// Pages that the others lie on.
    far_pages: f64,
    /// Pages that the near rows span: all of them, and the middle 80 %.
    all: f64,
    middle: f64,
    /// How often the next near row lies on a later page, and on an earlier one.
    ups: f64,
    downs: f64,
}

impl SampledRows {
    /// What each sample says that has enough rows.
    fn all(samples: &[Vec<u64>], table: &Table) -> Vec<Self> {
        // Of more, a part would lie far away in any order.
        let most = (table.rows * FAR) as usize;
        let short = samples.iter().map(|sample| &sample[..sample.len().min(most)]);
        let of_several = short.filter(|sample| sample.len() >= LEAST_SAMPLE);
        of_several.map(|sample| Self::of(sample, table.pages * FAR)).collect()
    }

    /// Of rows anywhere, a tenth would be nearer than `far` by chance alone.
    fn of(pages: &[u64], far: f64) -> Self {
        let mut sorted = pages.to_vec();
        sorted.sort_unstable();
        let middle = sorted[sorted.len() / 2];
        let is_near = |page: &&u64| page.abs_diff(middle) as f64 <= far;
        let far_pages: HashSet<&u64> = pages.iter().filter(|page| !is_near(page)).collect();
        sorted.retain(|page| is_near(&page));
        let near: Vec<u64> = pages.iter().filter(is_near).copied().collect();
        let steps = |order| near.windows(2).filter(|step| step[1].cmp(&step[0]) == order).count() as f64;
        let at = |quantile: f64| sorted[((sorted.len() - 1) as f64 * quantile) as usize];
        Self {
            rows: pages.len() as f64,
            near: near.len() as f64,
            far_pages: far_pages.len() as f64,
            all: (at(1.0) - at(0.0)) as f64,
            middle: (at(0.9) - at(0.1)) as f64,
            ups: steps(Ordering::Greater),
            downs: steps(Ordering::Less),
        }
    }
}

/// The middle value; None without any.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Rows further from the middle of a sample than this share of the table lie anywhere.
const FAR: f64 = 0.05;
/// Of rows that lie anywhere, few are on a page that another one of the same sample is on: on fewer pages
/// than this share of them they are in an order.
const ALONE: f64 = 0.6;
/// Up to this share of far rows need not lie anywhere: how many pages they are on is known.
const FEW_FAR: f64 = 0.05;
/// Up to this share of rows anywhere the others may be said to lie in order.
const HARDLY_ANY: f64 = 0.01;
/// If more than this share of the rows lie anywhere, all do.
const MOSTLY: f64 = 0.9;
/// Rows lie in a row if no more than this share of the steps goes the other way.
const AGAINST: f64 = 0.1;
/// A number of rows a page is another one if it is over or under by this factor.
const APART: f64 = 2.0;
/// Fewest rows a page: an index of some of them may skip pages.
const FEWEST: f64 = 1e-6;
/// A sample of fewer rows says nothing.
const LEAST_SAMPLE: usize = 16;

#[cfg(test)]
mod tests;
