//! Where the rows lie that follow one another in an index, by samples of it.

use std::collections::HashSet;

use super::model::Table;
use super::visited::FEWEST;

/// Longest stretch, in pages, that is as good as in order.
pub(super) const IN_ORDER: f64 = 4.0;

/// Where the rows lie that follow one another in an index.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Locality {
    /// Share of the rows that lie far from the others (see [`reach`](Self::reach)). Of few, those on one page
    /// in a row count once.
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
    /// From where the scattered rows come at any moment; None if from anywhere.
    pub reach: Option<Reach>,
}

/// Pages from which rows that lie far from one another come at any moment. They move through the table as the
/// scan does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reach {
    /// All of them.
    pub pages: f64,
    /// How many places of the table they lie at: as many parts of it are in the order of the index, as of
    /// several writers.
    pub places: f64,
}

impl Locality {
    /// Rows that lie forwards, as many on a page as anywhere.
    pub const fn of(scattered: f64, stretch: f64) -> Self {
        Self {
            scattered,
            stretch,
            per_page: None,
            hops: 1.0 - 1.0 / stretch,
            is_backward: false,
            reach: None,
        }
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
            && match (self.reach, other.reach) {
                (Some(a), Some(b)) => is_near(a.pages, b.pages) && is_near(a.places, b.places),
                (a, b) => a.is_none() && b.is_none(),
            }
    }
}

fn is_near(a: f64, b: f64) -> bool {
    a.max(b) <= 2.0 * a.min(b)
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
    let reach = reach(&samples, table);
    if scattered > MOSTLY {
        return Some(Locality { reach, ..Locality::of(1.0, 1.0) });
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
        reach,
    })
}

/// From where the far rows of samples come, by how near to each the next one lies: of rows from anywhere few
/// are near.
fn reach(samples: &[SampledRows], table: &Table) -> Option<Reach> {
    // Where a row counts as far.
    let pages = table.pages * (1.0 - 2.0 * FAR);
    let rows = mean(samples.iter().map(|one| one.far.len() as f64));
    if rows < LEAST_FAR {
        return None;
    }
    let mut nearest: Vec<u64> = samples.iter().flat_map(|one| distances_to_nearest(&one.far)).collect();
    nearest.sort_unstable();
    let half = *nearest.get(nearest.len() / 2)?;
    // Of rows in no order on so many pages, one has none within a distance in exp(-rows · span / pages)
    // cases.
    let alone = nearest.iter().filter(|distance| **distance > half).count() as f64 / nearest.len() as f64;
    let span = (2 * half + 1) as f64;
    let distinct = mean(samples.iter().map(|one| one.far_pages));
    let reach = (rows * span / -alone.max(f64::MIN_POSITIVE).ln()).max(distinct);
    if reach > CONFINED * pages {
        return None;
    }
    let apart = SEPARATE * span;
    let seen = mean(samples.iter().map(|one| {
        let steps = one.far.windows(2).filter(|step| (step[1] - step[0]) as f64 > apart);
        steps.count() as f64 + 1.0
    }));
    Some(Reach { pages: reach, places: drawn_from(seen, rows).min(reach) })
}

/// How far each of some ascending pages is from the nearest other one.
fn distances_to_nearest(pages: &[u64]) -> impl Iterator<Item = u64> {
    let before = pages.iter().skip(1).zip(pages).map(|(page, before)| page - before);
    let after = before.clone().map(Some).chain([None]);
    let before = std::iter::once(None).chain(before.map(Some));
    before.zip(after).filter_map(|(before, after)| before.into_iter().chain(after).min())
}

/// Of how many places `seen` are among so many draws.
fn drawn_from(seen: f64, draws: f64) -> f64 {
    let mut places = seen;
    for _ in 0..DRAWN_STEPS {
        places = seen / (1.0 - (-draws / places).exp());
    }
    places
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len().max(1) as f64;
    values.sum::<f64>() / count
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
    /// The pages of the others, ascending; and how many these are, each once.
    far: Vec<u64>,
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
        let (near, mut others): (Vec<u64>, Vec<u64>) =
            pages.iter().partition(|page| page.abs_diff(middle) as f64 <= far);
        others.sort_unstable();
        let [first, tenth, ninth_tenth, last] =
            [0.0, 0.1, 0.9, 1.0].map(|share| sorted[((sorted.len() - 1) as f64 * share) as usize]);
        Self {
            rows: pages.len() as f64,
            at: middle,
            near: near.len() as f64,
            far_pages: others.iter().collect::<HashSet<_>>().len() as f64,
            far: others,
            all: (last - first) as f64,
            middle: (ninth_tenth - tenth) as f64,
            ups: near.windows(2).filter(|step| step[1] > step[0]).count() as f64,
            downs: near.windows(2).filter(|step| step[1] < step[0]).count() as f64,
        }
    }
}

/// The middle value; None without any.
pub(super) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Rows further from the middle of a sample than this share of the table are far from the others.
const FAR: f64 = 0.05;
/// Least pages per far row with which these rows count as scattered: on fewer pages they are in an order.
const ALONE: f64 = 0.6;
/// Up to this share of far rows need not be scattered: how many pages they are on is known.
const FEW_FAR: f64 = 0.05;
/// Largest share of scattered rows with which the others count as in order.
const HARDLY_ANY: f64 = 0.01;
/// If more than this share of the rows are far from the others, all are.
const MOSTLY: f64 = 0.9;
/// Far rows come from a part of the table if that is at most this share of it.
const CONFINED: f64 = 0.7;
/// Fewest far rows of a sample that say from where they come.
const LEAST_FAR: f64 = 4.0;
/// Far rows are at another place if they are so many times as far from one another as half of them are from
/// the nearest.
const SEPARATE: f64 = 15.0;
/// Steps until the number of places does not change by much.
const DRAWN_STEPS: usize = 20;
/// Rows lie in a row if no more than this share of the steps goes the other way.
const AGAINST: f64 = 0.1;
/// Samples lie backwards if at least this share of their pairs does: of samples in no order a half does, and
/// of twelve this many in one case of two hundred.
const FALLING: f64 = 0.75;
/// Numbers of rows a page differ if one is over the other by this factor.
const APART: f64 = 2.0;
/// A sample of fewer rows says nothing.
const LEAST_SAMPLE: usize = 16;

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    const IN_THE_ORDER: Locality = Locality::of(0.0, 1.0);
    const ANYWHERE: Locality = Locality::of(1.0, 1.0);
    const LARGE: Table = Table { pages: 10_000.0, rows: 100_000.0 };

    /// Where the rows of a simulated index are, by samples of 200 that follow one another in it.
    fn sampled(mut page: impl FnMut(u64, &mut Xoshiro256PlusPlus) -> u64) -> Locality {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
        let mut starts: Vec<u64> = (0..40).map(|_| rng.random_range(5000..94_000)).collect();
        starts.sort_unstable();
        let of = |start: u64| (start..start + 200).map(|row| page(row, &mut rng)).collect();
        let samples: Vec<Vec<u64>> = starts.into_iter().map(of).collect();
        locality(&samples, &LARGE).expect("samples")
    }

    #[test]
    fn where_rows_lie() {
        // On a page are ten rows that follow one another.
        let in_order = sampled(|row, _| row / 10);
        assert!((0.09..0.11).contains(&in_order.hops), "{in_order:?}");
        assert_eq!(Locality { hops: 0.0, ..in_order }, IN_THE_ORDER);
        // Ten rows of two pages, in no order.
        let found = sampled(|row, rng| row / 10 + rng.random_range(0..=1));
        assert!((0.4..0.6).contains(&found.hops) && found.is_in_order(), "{found:?}");
        assert_eq!(sampled(|_, rng| rng.random_range(0..10_000)), ANYWHERE);
        for jitter in [20, 100, 200] {
            let found = sampled(|row, rng| row / 10 + rng.random_range(0..=2 * jitter) - jitter);
            let stretch = 2.0 * jitter as f64;
            assert_eq!(found.scattered, 0.0, "{jitter}: {found:?}");
            assert!(found.hops > 0.95 && !found.is_in_order() && !found.is_backward, "{jitter}: {found:?}");
            assert!((0.55 * stretch..1.2 * stretch).contains(&found.stretch), "{jitter}: {found:?}");
        }
        // The steps of a sample don't show that it lies backwards, but the samples do.
        let found = sampled(|row, rng| (100_000 - row) / 10 + rng.random_range(0..=400));
        assert!(found.is_backward && (220.0..480.0).contains(&found.stretch), "{found:?}");
        // New versions of rows, in order at the end: ten on a page.
        let found = sampled(|row, _| if row % 25 == 0 { 9000 + row / 250 } else { row / 10 });
        assert!((0.0..0.015).contains(&found.scattered), "{found:?}");
        let found =
            sampled(|row, rng| if rng.random_bool(0.2) { rng.random_range(0..10_000) } else { row / 10 });
        assert!((0.17..0.23).contains(&found.scattered) && found.stretch < 10.0, "{found:?}");
    }

    #[test]
    fn few_rows_tell_nothing() {
        assert_eq!(locality(&[], &LARGE), None);
        assert_eq!(locality(&[vec![1; LEAST_SAMPLE - 1]], &LARGE), None);
        assert_eq!(locality(&[vec![7; LEAST_SAMPLE]], &LARGE), Some(IN_THE_ORDER));
    }

    /// Of a hundred writers, each with a hundred pages, in the order of the index but for some jitter.
    #[test]
    fn rows_of_many_writers_come_from_as_many_places() {
        for (jitter, pages) in [(0, 100.0), (2, 500.0), (5, 1100.0)] {
            let found = sampled(|row, rng| {
                let place = (row / 1000 + rng.random_range(0..=2 * jitter)).saturating_sub(jitter);
                100 * rng.random_range(0..100) + place.min(99)
            });
            let reach = found.reach.expect("confined");
            assert!(found.scattered > 0.8, "{jitter}: {found:?}");
            assert!((0.6 * pages..1.6 * pages).contains(&reach.pages), "{jitter}: {found:?}");
            assert!((70.0..140.0).contains(&reach.places), "{jitter}: {found:?}");
        }
    }

    /// Rows that lie up to a fifth of the table off come from less than all of it, and from one place.
    #[test]
    fn rows_far_off_their_places_come_from_a_part_of_the_table() {
        let found =
            sampled(|row, rng| (row / 10 + rng.random_range(0..=4000)).saturating_sub(2000).min(9999));
        let reach = found.reach.expect("confined");
        assert!((1500.0..5000.0).contains(&reach.pages) && reach.places < 3.0, "{found:?}");
    }
}
