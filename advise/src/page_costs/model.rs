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

use std::collections::HashSet;

use super::curve::GapCurve;
use io_probe_core::measure::page_times::{Estimate, PageTimes};

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

/// How many pages a bitmap scan reads through I/O workers until their reads overlap as the density curve
/// says, and how many random reads more it takes till then, times the square root of the pages.
const UNTIL_OVERLAP: f64 = 200.0;
const BEFORE_OVERLAP: f64 = 1.25;

/// Longest stretch, in pages, that is as good as in order.
const IN_ORDER: f64 = 4.0;
/// Share of a longer stretch that is visited before the kernel sees an order in it.
const UNFORESEEN: f64 = 0.75;
/// Share of the pages behind it that the kernel never sees an order in, where its window is much too small.
const NEVER: f64 = 0.68;
/// Windows apart from which on it misses half of those, and how sharp the change is.
const WINDOWS_APART: f64 = 2.5;
const SHARPNESS: i32 = 4;
/// Share of the pages of a longer stretch that wait if it moves towards the beginning of the table: now and
/// then two lie side by side.
const BACKWARD: f64 = 0.8;

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
    /// Do these others lie from the end of the table to its beginning, so that no kernel reads ahead?
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
        (self.scattered - other.scattered).abs() <= 0.1
            && is_near(self.stretch.max(IN_ORDER), other.stretch.max(IN_ORDER))
            && is_near(self.per_page.unwrap_or(0.0), other.per_page.unwrap_or(0.0))
            && self.is_backward == other.is_backward
    }
}

fn is_near(a: f64, b: f64) -> bool {
    a.max(b) <= 2.0 * a.min(b)
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
            tuple: times.tuple.ok_or("the tuples")?.us,
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

    /// These times, where no read with gaps is off by more than `most` times what is usual of them: the median
    /// of how far their intervals reach up, as logarithms.
    pub(super) fn with_usual_errors(&self, most: f64) -> Self {
        let mut times = self.clone();
        let above = |time: &Estimate| time.interval.map(|(_, high)| (high / time.us).ln());
        let all = times.measured.sparse.iter().filter_map(|point| above(&point.time));
        let Some(usual) = median(all) else { return times };
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
                leaves + pages + rows * BITMAP_TUPLE * self.tuple + visited.far_rows * self.hit
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
        let doublings = (1.0 + pages.min(self.window)).log2();
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

    /// The time of a row on a page, one of `pages`, that was visited before: so many hits, if shared buffers
    /// still hold it.
    fn again(&self, hits: f64, pages: f64) -> f64 {
        let kept = (self.buffers / pages.max(1.0)).min(1.0);
        kept * hits * self.hit + (1.0 - kept) * self.pushing()
    }

    /// The time of the table's pages in an index scan.
    fn one_by_one(&self, visited: &Visited, table: &Table, caches: Caches) -> f64 {
        let far_again = self.again(FAR_AGAIN, table.pages);
        let near_again = self.again(near_again(visited.stretch_rows), visited.stretch);
        let again = (visited.near_rows * visited.hops - visited.near).max(0.0) * near_again
            + (visited.far_rows - visited.far).max(0.0) * far_again;
        let first = match caches {
            Caches::Warm => visited.pages() * self.memory_page(visited.pages()),
            Caches::Cold => {
                // In order the kernel reads ahead.
                let unforeseen = visited.unforeseen(self.window);
                let in_order = self.ascending(visited.near - unforeseen, visited.near_density, UNAIDED);
                in_order + (unforeseen + visited.far) * self.random
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
    stretch_rows: f64,
    /// How many pages further the scan is, on average, when it comes to a page of the stretch.
    apart: f64,
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
            stretch_rows: locality.stretch * of_near,
            apart: locality.stretch / of_near,
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

    /// Pages that an index scan reaches in no order that the kernel sees, which reads up to `window` pages
    /// ahead.
    pub(super) fn at_random(&self, window: f64) -> f64 {
        self.unforeseen(window) + self.far_alone()
    }

    /// Of the pages near to one another, those that the kernel can't foresee.
    fn unforeseen(&self, window: f64) -> f64 {
        match (self.is_backward, self.stretch <= IN_ORDER) {
            (true, true) => self.near,
            (true, false) => BACKWARD * self.near,
            (false, true) => 0.0,
            (false, false) => {
                let before = self.near.min(UNFORESEEN * self.stretch);
                before + (self.near - before) * missed(self.apart / window)
            }
        }
    }
}

/// A row on a page that was visited before, of a stretch of so many rows, over a hit.
fn near_again(rows: f64) -> f64 {
    (NEAR_AGAIN * (rows / CACHED_ROWS).max(1.0).powf(AGAIN_GROWS)).min(FAR_AGAIN)
}

/// Share of the pages of a moving stretch that the kernel does not foresee, if the scan comes to a page when
/// it is so many windows further. Up to two windows it reads ahead of the stretch, and the scan finds all.
/// (With `WINDOWS_APART` 2 and `SHARPNESS` 2 this is within 0.05 of a simulation without large folios.)
fn missed(windows: f64) -> f64 {
    NEVER / (1.0 + (WINDOWS_APART / windows).powi(SHARPNESS))
}

/// On how many of `pages` pages `rows` rows lie, if any row may lie on any.
fn on_pages(rows: f64, pages: f64, per_page: f64) -> f64 {
    let few = pages * (1.0 - (1.0 - 1.0 / pages.max(1.0)).powf(rows));
    // Whole pages at most, and not fewer than the rows fill.
    few.max((rows / per_page).min(pages)).min(rows.max(0.0)).min(pages)
}

/// Where the rows of an index lie, by samples in its order: in each, the pages of rows that follow one
/// another in the index. None without a sample of several rows.
pub fn locality(samples: &[Vec<u64>], table: &Table) -> Option<Locality> {
    let samples = SampledRows::all(samples, table);
    if samples.is_empty() {
        return None;
    }
    let rows = sum(&samples, |one| one.rows);
    let (ups, downs) = (sum(&samples, |one| one.ups), sum(&samples, |one| one.downs));
    let mut far = rows - sum(&samples, |one| one.near);
    if far <= FEW_FAR * rows {
        // Of few, more than by chance may lie on one page, which is read once: new versions of rows.
        far = sum(&samples, |one| one.far_pages);
    }
    // Corrects for scattered rows that are near by chance.
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
        hops: (ups + downs) / sum(&samples, |one| (one.near - 1.0).max(1.0)),
        is_backward: if is_in_a_row { downs > ups } else { falls(&samples) },
    })
}

/// Do the samples lie from the end of the table to its beginning? Where rows are displaced by more than a
/// sample spans, their steps don't tell.
fn falls(samples: &[SampledRows]) -> bool {
    let (mut ups, mut downs) = (0.0, 0.0);
    for (place, one) in samples.iter().enumerate() {
        ups += samples[place + 1..].iter().filter(|later| later.at > one.at).count() as f64;
        downs += samples[place + 1..].iter().filter(|later| later.at < one.at).count() as f64;
    }
    downs >= FALLING * (ups + downs) && downs > 0.0
}

/// Do rows that lie far from the others lie anywhere? If several of them are on one page each time, they
/// have an order of their own.
pub(super) fn lie_anywhere(samples: &[Vec<u64>], table: &Table) -> bool {
    let samples = SampledRows::all(samples, table);
    let (rows, far) = (sum(&samples, |one| one.rows), sum(&samples, |one| one.rows - one.near));
    far <= FEW_FAR * rows || sum(&samples, |one| one.far_pages) >= ALONE * far
}

fn sum(samples: &[SampledRows], count: impl Fn(&SampledRows) -> f64) -> f64 {
    samples.iter().map(count).sum()
}

/// What a sample says of its rows.
struct SampledRows {
    rows: f64,
    /// The page in the middle of the sample.
    at: u64,
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

    /// A row is near up to `far` pages from the middle: a tenth of scattered rows are, by chance.
    fn of(pages: &[u64], far: f64) -> Self {
        let mut sorted = pages.to_vec();
        sorted.sort_unstable();
        let middle = sorted[sorted.len() / 2];
        sorted.retain(|page| page.abs_diff(middle) as f64 <= far);
        let (near, others): (Vec<u64>, Vec<u64>) =
            pages.iter().partition(|page| page.abs_diff(middle) as f64 <= far);
        let [first, tenth, ninth_tenth, last] =
            [0.0, 0.1, 0.9, 1.0].map(|share| sorted[((sorted.len() - 1) as f64 * share) as usize]);
        Self {
            rows: pages.len() as f64,
            at: middle,
            near: near.len() as f64,
            far_pages: others.iter().collect::<HashSet<_>>().len() as f64,
            all: (last - first) as f64,
            middle: (ninth_tenth - tenth) as f64,
            ups: near.windows(2).filter(|step| step[1] > step[0]).count() as f64,
            downs: near.windows(2).filter(|step| step[1] < step[0]).count() as f64,
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
/// Least pages per far row with which these rows count as scattered: on fewer pages they are in an order.
const ALONE: f64 = 0.6;
/// Up to this share of far rows need not be scattered: how many pages they are on is known.
const FEW_FAR: f64 = 0.05;
/// Largest share of scattered rows with which the others count as in order.
const HARDLY_ANY: f64 = 0.01;
/// If more than this share of the rows lie anywhere, all do.
const MOSTLY: f64 = 0.9;
/// Rows lie in a row if no more than this share of the steps goes the other way.
const AGAINST: f64 = 0.1;
/// Samples lie backwards if at least this share of their pairs does: of samples in no order a half does, and
/// of twelve this many in one case of two hundred.
const FALLING: f64 = 0.75;
/// Numbers of rows a page differ if one is over the other by this factor.
const APART: f64 = 2.0;
/// Fewest rows a page: an index of some of them may skip pages.
const FEWEST: f64 = 1e-6;
/// A sample of fewer rows says nothing.
const LEAST_SAMPLE: usize = 16;

#[cfg(test)]
mod readahead;
#[cfg(test)]
mod tests;
