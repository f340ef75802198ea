//! The distribution of latencies: an exact mean, and quantiles from a log-linear histogram.
//!
//! The histogram keeps two significant digits of each value, so that a quantile is right to within half a
//! percent at any magnitude, in memory that is fixed at the start. A quantile q is given only where at
//! least ten values lie above it: with fewer it is little more than the one unlucky request.

use hdrhistogram::Histogram;

use super::Slice;

/// Fewest values above a quantile that is given.
const LEAST_ABOVE: f64 = 10.0;

/// Factor from the end of one class of [`Latencies::classes`] to that of the next: four in a doubling.
const CLASS: f64 = 1.189_207_115_002_721;

/// Where the first class ends, in nanoseconds.
const FIRST_CLASS_NS: u64 = 1_000;

/// Longest latency that the histogram tells apart, in nanoseconds: an hour. Longer ones count as this.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Latencies of one run. Recording allocates nothing.
#[derive(Debug, Clone)]
pub struct Latencies {
    total: Slice,
    least: u64,
    most: u64,
    histogram: Histogram<u64>,
}

/// Latencies between two bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    /// They are at least this, in nanoseconds.
    pub low_ns: u64,
    /// They are below this.
    pub high_ns: u64,
    /// How many.
    pub count: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, 2);
        Self {
            total: Slice::default(),
            least: u64::MAX,
            most: 0,
            // The bounds are constants that the crate accepts.
            histogram: histogram.unwrap_or_else(|e| unreachable!("{e}")),
        }
    }
}

impl Latencies {
    /// Records one latency, in nanoseconds.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.total.add(ns);
        self.least = self.least.min(ns);
        self.most = self.most.max(ns);
        self.histogram.saturating_record(ns);
    }

    /// Adds all that `other` holds.
    pub fn absorb(&mut self, other: &Latencies) {
        self.total = self.total.plus(other.total);
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
        // Both have the same bounds.
        self.histogram.add(&other.histogram).unwrap_or_else(|e| unreachable!("{e}"));
    }

    /// How many there are, and their sum, exactly.
    pub fn total(&self) -> Slice {
        self.total
    }

    /// The greatest, in nanoseconds; None without any.
    pub fn most(&self) -> Option<u64> {
        (self.total.work > 0).then_some(self.most)
    }

    /// The latency, in nanoseconds, that a share `q` of the requests (0.99 for p99) did not exceed; None
    /// where fewer than ten lie above it.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        // 10,000 × (1 − 0.999) is 9.999999999999787.
        if self.total.work as f64 * (1.0 - q) + 1e-6 < LEAST_ABOVE {
            return None;
        }
        let middle = self.histogram.median_equivalent(self.histogram.value_at_quantile(q));
        Some(middle.clamp(self.least, self.most))
    }

    /// The latency, in nanoseconds, that the request under way did not exceed in a share `q` of all moments,
    /// if they were sent one after another: what lasts long counts for as long as it lasts. None for fewer
    /// than ten.
    pub fn quantile_of_time(&self, q: f64) -> Option<u64> {
        if (self.total.work as f64) < LEAST_ABOVE {
            return None;
        }
        let wanted = q * self.lasted().map(|(_, lasted)| lasted).sum::<f64>();
        let mut sum = 0.0;
        let reached = self.lasted().find(|(_, lasted)| {
            sum += lasted;
            sum >= wanted
        });
        reached.map(|(value, _)| value.clamp(self.least, self.most))
    }

    /// The latencies that there are, ascending, and how long the requests of each lasted together.
    fn lasted(&self) -> impl Iterator<Item = (u64, f64)> {
        self.histogram.iter_recorded().map(|class| {
            let value = class.value_iterated_to();
            (value, value as f64 * class.count_at_value() as f64)
        })
    }

    /// How many there are in each class that has some, ascending. A latency is told from another to within a
    /// hundredth.
    pub fn classes(&self) -> Vec<Class> {
        let mut low_ns = 0;
        let mut classes = Vec::new();
        for step in self.histogram.iter_log(FIRST_CLASS_NS, CLASS) {
            let high_ns = step.value_iterated_to() + 1;
            let count = step.count_since_last_iteration();
            classes.extend((count > 0).then_some(Class { low_ns, high_ns, count }));
            low_ns = high_ns;
        }
        classes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: impl IntoIterator<Item = u64>) -> Latencies {
        let mut latencies = Latencies::default();
        values.into_iter().for_each(|ns| latencies.record(ns));
        latencies
    }

    #[test]
    fn what_lasts_long_counts_for_as_long() {
        // 990 of 1 ms and one of 10 ms: the latter is one of 1,000 moments in 100.
        let latencies = of((0..990).map(|_| 1_000_000).chain([10_000_000]));
        let within = |ns: u64| (ns as f64 / 1e6).round();
        assert_eq!(latencies.quantile_of_time(0.98).map(within), Some(1.0));
        assert_eq!(latencies.quantile_of_time(0.995).map(within), Some(10.0));
        assert_eq!(of([1; 9]).quantile_of_time(0.5), None);
    }

    proptest! {
        #[test]
        fn by_time_they_are_no_shorter(values in prop::collection::vec(1u64..1_000_000_000, 1000..1200)) {
            let latencies = of(values);
            let by_time = latencies.quantile_of_time(0.9).expect("ten and more");
            // The classes are a hundredth wide.
            prop_assert!(by_time as f64 * 1.01 >= latencies.quantile(0.9).expect("enough") as f64);
            prop_assert!(Some(by_time) <= latencies.most());
        }
    }

    #[test]
    fn known_answers() {
        let latencies = of([2, 4, 4, 4, 5, 5, 7, 9]);
        let total = latencies.total();
        assert_eq!(total, Slice { ns: 40, work: 8 });
        assert_eq!((total.ns_each(), latencies.least, latencies.most()), (Some(5.0), 2, Some(9)));
    }

    #[test]
    fn two_halves_make_the_whole() {
        let mut half = of(1..=500);
        half.absorb(&of(501..=1000));
        let whole = of(1..=1000);
        assert_eq!((half.total(), half.quantile(0.5)), (whole.total(), whole.quantile(0.5)));
        assert_eq!((half.least, half.most()), (1, Some(1000)));
    }

    #[test]
    fn nothing_recorded_gives_nothing() {
        let latencies = Latencies::default();
        let mean = latencies.total().ns_each();
        assert_eq!((mean, latencies.most(), latencies.quantile(0.5)), (None, None, None));
    }

    #[test]
    fn of_equal_values_each_quantile_is_exact() {
        let latencies = of(std::iter::repeat_n(67_891, 1_000_000));
        assert_eq!(latencies.quantile(0.5), Some(67_891));
    }

    #[test]
    fn one_slow_request_in_a_thousand_shows_where_it_must() {
        let latencies = of((0..100_000).map(|i| if i % 1000 == 999 { 50_000_000 } else { 100_000 }));
        let near =
            |ns: Option<u64>, wanted: f64| (ns.expect("a quantile") as f64 / wanted - 1.0).abs() < 0.01;
        assert!(near(latencies.quantile(0.5), 1e5) && near(latencies.quantile(0.99), 1e5));
        assert!(near(latencies.quantile(0.9991), 5e7), "{:?}", latencies.quantile(0.9991));
        assert_eq!(latencies.most(), Some(50_000_000));
    }

    #[test]
    fn classes_grow_by_four_in_a_doubling() {
        let classes = of([10, 999, 100_000, 100_500, 7_000_000]).classes();
        assert_eq!(classes[0], Class { low_ns: 0, high_ns: 1_000, count: 2 });
        assert_eq!(classes.iter().map(|class| class.count).collect::<Vec<u64>>(), [2, 2, 1]);
        for class in &classes[1..] {
            let factor = class.high_ns as f64 / class.low_ns as f64;
            assert!((factor - CLASS).abs() < 0.001, "{class:?}");
        }
        assert!(Latencies::default().classes().is_empty());
    }

    #[test]
    fn a_quantile_needs_ten_above_it() {
        for (q, least) in [(0.5, 20), (0.95, 200), (0.99, 1000), (0.999, 10_000)] {
            assert!(of(1..=least).quantile(q).is_some(), "{q}");
            assert!(of(1..=least - 1).quantile(q).is_none(), "{q}");
        }
    }

    #[test]
    fn what_is_too_long_counts_as_the_longest() {
        let latencies = of(std::iter::repeat_n(u64::MAX / 1_000_000, 30));
        assert_eq!(latencies.most(), Some(u64::MAX / 1_000_000));
        assert!(latencies.quantile(0.5) >= Some(LONGEST_NS / 100 * 99));
    }

    proptest! {
        #[test]
        fn quantiles_are_right_to_within_a_hundredth(
            mut values in prop::collection::vec(1u64..10_000_000_000, 200..2000)
        ) {
            let latencies = of(values.iter().copied());
            let classes = latencies.classes();
            prop_assert_eq!(classes.iter().map(|class| class.count).sum::<u64>(), values.len() as u64);
            for class in classes {
                let near = |ns: &&u64| **ns as f64 * 1.01 >= class.low_ns as f64
                    && **ns as f64 <= class.high_ns as f64 * 1.01;
                prop_assert!(values.iter().filter(near).count() as u64 >= class.count);
            }
            values.sort_unstable();
            for q in [0.5, 0.9, 0.95] {
                let exact = values[(values.len() as f64 * q).ceil() as usize - 1] as f64;
                let found = latencies.quantile(q).expect("enough values") as f64;
                prop_assert!((found / exact - 1.0).abs() <= 0.01, "{q}: {found} for {exact}");
            }
        }
    }
}
