//! The kernel's readahead, simulated: which pages of a scan by an index wait for a read of their own.
//!
//! Sources: `page_cache_sync_ra`, `page_cache_async_ra` and `page_cache_ra_order` in `mm/readahead.c` of
//! Linux 6.18. On ext4 there it sends as many requests as counted below cold index scans, within 3 %.

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;

/// The kernel's pages of one of the server's.
const OF_PAGE: usize = 2;
const LARGEST_ORDER: u32 = 9;

/// A file, and the readahead of a descriptor of it. Places and sizes are in the kernel's pages.
struct File {
    /// Where the folio of each page that is cached begins, and its pages.
    folios: Vec<Option<(usize, usize)>>,
    /// Pages at which more is read ahead.
    is_marked: Vec<bool>,
    start: usize,
    size: usize,
    /// Of the window, what follows the mark.
    behind: usize,
    order: u32,
    /// Where the last read ended.
    last: usize,
    window: usize,
    has_large_folios: bool,
    waits: usize,
}

impl File {
    fn of(pages: usize, window: usize, has_large_folios: bool) -> Self {
        let size = OF_PAGE * (pages + 2 * window);
        Self {
            folios: vec![None; size],
            is_marked: vec![false; size],
            start: 0,
            size: 0,
            behind: 0,
            order: 0,
            last: usize::MAX / 2,
            window: OF_PAGE * window,
            has_large_folios,
            waits: 0,
        }
    }

    fn read(&mut self, page: usize) {
        let at = OF_PAGE * page;
        if self.folios[at].is_none() {
            self.waits += 1;
            self.begin(at);
        }
        for page in at..at + OF_PAGE {
            let (folio, pages) = self.folios[page].expect("it was read");
            if std::mem::take(&mut self.is_marked[folio]) {
                self.go_on(folio, pages, at + OF_PAGE);
            }
        }
        self.last = at + OF_PAGE;
    }

    /// Reads what is lacking, and more if what was read before it is cached.
    fn begin(&mut self, at: usize) {
        let before = self.folios[at.saturating_sub(self.window)..at].iter().rev();
        let contiguous = before.take_while(|folio| folio.is_some()).count();
        if at.wrapping_sub(self.last) <= 1 {
            self.size = if OF_PAGE <= self.window / 32 { 4 * OF_PAGE } else { 2 * OF_PAGE };
            self.behind = self.size - OF_PAGE;
        } else if contiguous > OF_PAGE {
            self.size = (contiguous + OF_PAGE).min(self.window);
            self.behind = 1;
        } else {
            return self.fill(at, OF_PAGE, None);
        }
        (self.start, self.order) = (at, 0);
        self.submit();
    }

    /// Reads the next window, since a marked folio was reached.
    fn go_on(&mut self, folio: usize, pages: usize, until: usize) {
        if folio == (self.start + self.size - self.behind) / pages * pages {
            self.start += self.size;
            self.size = self.size.max(self.larger(self.size));
        } else {
            let ahead = self.folios[folio + 1..].iter().take(self.window).position(Option::is_none);
            let Some(ahead) = ahead else { return };
            self.start = folio + 1 + ahead;
            self.size = self.larger(ahead + 1 + until.saturating_sub(folio));
        }
        if self.has_large_folios {
            self.order = (self.order + 2).min(LARGEST_ORDER);
            let end = (self.start + self.size) >> self.order << self.order;
            self.size = if end > self.start { end - self.start } else { self.size };
        }
        self.behind = self.size;
        self.submit();
    }

    fn larger(&self, size: usize) -> usize {
        match size {
            _ if size < self.window / 16 => 4 * size,
            _ if size <= self.window / 2 => 2 * size,
            _ => self.window,
        }
    }

    fn submit(&mut self) {
        let (end, mark) = (self.start + self.size, self.start + self.size - self.behind);
        self.order = self.order.min(self.size.ilog2());
        let mut at = self.start;
        while self.order > 0 && at < end {
            let mut order = self.order.min(at.trailing_zeros());
            while at + (1 << order) > end {
                order -= 1;
            }
            let pages = 1 << order;
            if self.folios[at..at + pages].iter().any(Option::is_some) {
                break;
            }
            self.folios[at..at + pages].fill(Some((at, pages)));
            self.is_marked[at] |= at == mark / pages * pages;
            at += pages;
        }
        self.fill(at, end - at, Some(mark));
    }

    /// Reads pages one by one, except for those that are cached.
    fn fill(&mut self, start: usize, pages: usize, mark: Option<usize>) {
        for page in start..start + pages {
            if self.folios[page].is_none() {
                self.folios[page] = Some((page, 1));
                self.is_marked[page] = mark == Some(page);
            }
        }
    }
}

/// Pages that wait, of a scan over so many pages of rows that lie `per_page` on a page and are displaced over
/// `stretch` pages; and all that are read.
fn simulated(walk: usize, per_page: f64, stretch: f64, is_backward: bool, file: &mut File) -> (f64, f64) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
    let end = walk + stretch as usize + 1;
    let mut visited = vec![false; end + 1];
    for row in 0..(walk as f64 * per_page) as usize {
        let page = (row as f64 / per_page + random.random_range(0.0..stretch)) as usize + 1;
        // A page that was visited is in shared buffers.
        if !std::mem::replace(&mut visited[page], true) {
            file.read(if is_backward { end - page } else { page });
        }
    }
    (file.waits as f64, visited.into_iter().filter(|visited| *visited).count() as f64)
}

const STRETCHES: [(f64, f64); 5] =
    [(1500.0, 58.0), (800.0, 58.0), (960.0, 10.0), (800.0, 10.0), (3000.0, 3.0)];

/// The model's and the simulated, with small folios and with large ones.
fn waits(walk: usize, (stretch, per_page): (f64, f64), window: usize, is_backward: bool) -> (f64, [f64; 2]) {
    let counted = [false, true].map(|large| {
        let mut file = File::of(walk + stretch as usize + 2, window, large);
        simulated(walk, per_page, stretch, is_backward, &mut file).0
    });
    let table = Table { pages: 1e6, rows: 1e6 * per_page };
    let locality = Locality { is_backward, ..Locality::of(0.0, stretch) };
    (Visited::of(&table, &locality, walk as f64 * per_page).near.unforeseen(window as f64), counted)
}

#[test]
fn as_many_pages_wait_as_in_a_simulation() {
    for of in STRETCHES {
        for window in [4, 16, 64, 1024] {
            for walk in [50, 1000, 6000] {
                let (modelled, counted) = waits(walk, of, window, false);
                let least = counted.iter().copied().fold(f64::INFINITY, f64::min);
                let most = counted.iter().copied().fold(0.0, f64::max);
                let near = least / 1.5 - 20.0 <= modelled && modelled <= most * 1.5 + 20.0;
                assert!(near, "{of:?}, {walk} pages, window {window}: {modelled}, counted {counted:?}");
            }
        }
    }
}

/// Most pages wait, whatever the window is.
#[test]
fn no_window_helps_on_the_way_back() {
    for of in STRETCHES {
        for window in [16, 1024] {
            let (modelled, counted) = waits(3000, of, window, true);
            let near = counted.iter().all(|waits| (0.75..1.4).contains(&(modelled / waits)));
            assert!(near, "{of:?}, window {window}: {modelled}, counted {counted:?}");
        }
    }
}
