//! The pages that a range of an index visits: how many, how densely they lie, and in which order.

use super::locality::{IN_ORDER, Locality, Reach};
use super::model::Table;

/// Share of a longer stretch that is visited before the kernel sees an order in it.
pub(super) const UNFORESEEN: f64 = 0.75;
/// Share of the pages behind it that the kernel never sees an order in, where its window is much too small.
const NEVER: f64 = 0.68;
/// Windows apart from which on it misses half of those, and how sharp the change is.
const WINDOWS_APART: f64 = 2.5;
const SHARPNESS: i32 = 4;
/// Share of the pages of a longer stretch that wait if it moves towards the beginning of the table: now and
/// then two lie side by side.
const BACKWARD: f64 = 0.8;

/// Rows of a stretch are off their places by a normal distribution: the stretch spans so many standard
/// deviations, as what the middle 80 % span says of it. Each half is looked at from so many of them on, in so
/// many slices.
const SPREADS: f64 = 3.2;
const TAIL: f64 = 3.0;
const SLICES: usize = 10;

/// Fewest rows a page: an index of some of them may skip pages.
pub(super) const FEWEST: f64 = 1e-6;

/// The pages that the rows of a range lie on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Visited {
    /// Of rows near to one another.
    pub(super) near: Part,
    /// Of the others.
    pub(super) far: Part,
    table_pages: f64,
}

/// The pages that a part of the rows lies on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) rows: f64,
    pub(super) pages: f64,
    /// Which share they are of those that they lie among.
    pub(super) density: f64,
    /// Do the rows come from a stretch that moves as the scan does? Else from anywhere.
    pub(super) moves: bool,
    /// Pages of the stretch at any moment, at all places together; its rows; and at how many places it lies.
    pub(super) stretch: f64,
    pub(super) stretch_rows: f64,
    pub(super) places: f64,
    /// How many pages further the scan is, on average, when it comes to a page of the stretch.
    pub(super) apart: f64,
    /// Share of the rows that lie on another page than the one before.
    pub(super) hops: f64,
    pub(super) is_backward: bool,
}

impl Visited {
    pub(super) fn of(table: &Table, locality: &Locality, rows: f64) -> Self {
        let table_pages = table.pages.max(1.0);
        let per_page = (table.rows / table_pages).max(FEWEST);
        let of_near = locality.per_page.unwrap_or(per_page).max(FEWEST);
        let near = Part {
            hops: locality.hops,
            is_backward: locality.is_backward,
            ..Part::moving(rows * (1.0 - locality.scattered), of_near, locality.stretch, 1.0, table_pages)
        };
        let far = rows * locality.scattered;
        let far = match locality.reach {
            Some(Reach { pages, places }) => Part::moving(far, per_page, pages, places, table_pages),
            None => Part { moves: false, ..Part::moving(far, per_page, table_pages, 1.0, table_pages) },
        };
        Self { near, far, table_pages }
    }

    /// All pages, each once.
    pub(super) fn pages(&self) -> f64 {
        self.near.pages + self.far.pages * self.alone()
    }

    /// Which share of the far pages are not near to others as well.
    fn alone(&self) -> f64 {
        1.0 - self.near.pages / self.table_pages
    }

    /// Pages that an index scan reaches in no order that the kernel sees, which reads up to `window` pages
    /// ahead.
    pub(super) fn at_random(&self, window: f64) -> f64 {
        self.near.unforeseen(window) + self.far.unforeseen(window) * self.alone()
    }
}

impl Part {
    /// Of so many rows, `per_page` of which lie on a page, from a stretch at so many places.
    fn moving(rows: f64, per_page: f64, stretch: f64, places: f64, table_pages: f64) -> Self {
        let all = (rows / per_page + stretch).clamp(1.0, table_pages);
        let pages = on_pages(rows, all, per_page);
        Self {
            rows,
            pages,
            density: (pages / all).clamp(0.0, 1.0),
            moves: true,
            stretch,
            stretch_rows: stretch * per_page,
            places,
            apart: stretch / places / per_page,
            hops: 1.0,
            is_backward: false,
        }
    }

    /// Its pages, slice by slice, and their densities: rows are off their places by a normal distribution.
    pub(super) fn profile(&self) -> Vec<(f64, f64)> {
        if self.pages <= 0.0 {
            return Vec::new();
        }
        let stretch = self.stretch / self.places;
        if !self.moves || stretch <= IN_ORDER {
            return vec![(self.pages, self.density)];
        }
        let spread = stretch / SPREADS;
        let per_page = self.stretch_rows / self.stretch;
        let length = self.rows / self.places / per_page;
        // One half is as the other.
        let width = (length / 2.0 + TAIL * spread) / SLICES as f64;
        let slices = (0..SLICES).map(|slice| {
            let at = (slice as f64 + 0.5) * width - TAIL * spread;
            let rows = per_page * (normal(at / spread) - normal((at - length) / spread));
            -(-rows).exp_m1()
        });
        let densities: Vec<f64> = slices.collect();
        let all: f64 = densities.iter().sum();
        // Of hardly any rows nothing is told apart.
        if all <= 0.0 {
            return vec![(self.pages, self.density)];
        }
        densities.into_iter().map(|density| (self.pages * density / all, density)).collect()
    }

    /// Pages that the kernel can't foresee in an index scan.
    pub(super) fn unforeseen(&self, window: f64) -> f64 {
        if !self.moves {
            return self.pages;
        }
        match (self.is_backward, self.stretch / self.places <= IN_ORDER) {
            (true, true) => self.pages,
            (true, false) => BACKWARD * self.pages,
            (false, true) => 0.0,
            (false, false) => {
                let before = self.pages.min(UNFORESEEN * self.stretch);
                before + (self.pages - before) * missed(self.apart / window)
            }
        }
    }
}

/// Share of a normal distribution below so many standard deviations.
fn normal(deviations: f64) -> f64 {
    (1.0 + statrs::function::erf::erf(deviations / std::f64::consts::SQRT_2)) / 2.0
}

/// Share of the pages of a moving stretch that the kernel does not foresee, if the scan comes to a page when
/// it is so many windows further. Up to two windows it reads ahead of the stretch, and the scan finds all.
/// (With `WINDOWS_APART` 2 and `SHARPNESS` 2 this is within 0.05 of a simulation without large folios.)
fn missed(windows: f64) -> f64 {
    NEVER / (1.0 + (WINDOWS_APART / windows).powi(SHARPNESS))
}

/// On how many of `pages` pages `rows` rows lie, if any row may lie on any.
pub(super) fn on_pages(rows: f64, pages: f64, per_page: f64) -> f64 {
    let few = pages * (1.0 - (1.0 - 1.0 / pages.max(1.0)).powf(rows));
    // Whole pages at most, and not fewer than the rows fill.
    few.max((rows / per_page).min(pages)).min(rows.max(0.0)).min(pages)
}

#[cfg(test)]
mod readahead;
#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::seq::SliceRandom;
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    #[test]
    fn rows_lie_on_as_many_pages_as_in_a_simulation() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        let (pages, per_page) = (500_usize, 10_usize);
        let mut places: Vec<usize> = (0..pages * per_page).map(|row| row / per_page).collect();
        for rows in [1, 10, 100, 500, 1000, 2500, 5000] {
            let rounds = 20;
            let mut visited = 0;
            for _ in 0..rounds {
                let (chosen, _) = places.partial_shuffle(&mut rng, rows);
                let mut chosen = chosen.to_vec();
                chosen.sort_unstable();
                chosen.dedup();
                visited += chosen.len();
            }
            let simulated = visited as f64 / f64::from(rounds);
            let formula = on_pages(rows as f64, pages as f64, per_page as f64);
            assert!((formula / simulated - 1.0).abs() < 0.04, "{rows}: {formula}, not {simulated}");
        }
        assert_eq!(on_pages(0.0, 100.0, 10.0), 0.0);
        // Rows of an index in order of a table fill their pages.
        assert_eq!(on_pages(10.0, 1.0, 10.0), 1.0);
    }
}
