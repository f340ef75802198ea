use super::*;
use proptest::prelude::*;

fn exactly(us: f64) -> Estimate {
    Estimate { us, interval: Some((us, us)) }
}

/// ± a share of the time.
fn within(us: f64, share: f64) -> Estimate {
    Estimate { us, interval: Some((us * (1.0 - share), us * (1.0 + share))) }
}

fn hits(random: f64, sequential: f64) -> HitRatios {
    HitRatios { random, sequential }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

/// The old reasoning behind 4.0: a random read takes 40 sequential ones, and 90 % of them are cached.
#[test]
fn forty_with_nine_of_ten_cached_is_four() {
    let (random, sequential, free) = (exactly(40.0), exactly(1.0), exactly(0.0));
    let cost = CacheMix::cached(random, sequential, free, hits(0.9, 0.0)).ratio().expect("a ratio");
    assert!(close(cost.value, 4.0), "{cost:?}");
    assert_eq!(CacheMix::raw(random, sequential).ratio().map(|cost| cost.value), Some(40.0));
    let set =
        CacheMix::cached(random, sequential, free, hits(0.9, 0.0)).random_page_cost(2.0).expect("a cost");
    assert!(close(set.value, 8.0), "{set:?}");
}

#[test]
fn what_is_cached_alike_costs_alike() {
    let (random, sequential) = (exactly(68.0), exactly(5.5));
    // Hits alone: 1.3 ÷ 1.3. Half: (34 + 0.65) ÷ (2.75 + 0.65).
    for (share, ratio) in [(1.0, 1.0), (0.5, 34.65 / 3.4), (0.0, 68.0 / 5.5)] {
        let cost =
            CacheMix::cached(random, sequential, exactly(1.3), hits(share, share)).ratio().expect("a ratio");
        assert!(close(cost.value, ratio), "{share}: {cost:?}");
    }
    // All of it free: nothing is left to divide by.
    assert_eq!(CacheMix::cached(random, sequential, exactly(0.0), hits(1.0, 1.0)).ratio(), None);
}

/// 4.3 us a unit: a tuple takes 0.043 us, and the planner charges 0.01 for it.
#[test]
fn the_unit_of_the_processor() {
    let mix = CacheMix::raw(exactly(71.0), exactly(4.515));
    let costs = mix.in_cpu(exactly(0.043), 0.01).expect("costs");
    assert!(close(costs.sequential.value, 1.05), "{costs:?}");
    assert!(close(costs.random.value, 71.0 / 4.3), "{costs:?}");
    // A disk without a difference, and one that reads ahead badly.
    let flat = CacheMix::raw(exactly(3.0), exactly(4.3)).in_cpu(exactly(0.043), 0.01).expect("costs");
    assert_eq!((flat.random.value, flat.sequential.value), (1.0, 1.0));
    assert_eq!(mix.in_cpu(exactly(0.0), 0.01), None);
    assert_eq!(mix.in_cpu(exactly(0.043), 0.0), None);
}

#[test]
fn relative_half_widths_add_in_quadrature() {
    // 3 % and 4 % make 5 %, as long as a logarithm is straight: √(ln²1.03 + ln²0.96) = 0.05039 upwards.
    let cost = CacheMix::raw(within(100.0, 0.03), within(10.0, 0.04)).ratio().expect("a ratio");
    let (low, high) = cost.interval.expect("an interval");
    assert!((high - 10.0 * 0.050_391_f64.exp()).abs() < 1e-3, "{high}");
    assert!((low - 10.0 * (-0.049_667_f64).exp()).abs() < 1e-3, "{low}");
    // Of a mix each counts by its share: (0.5·100 ± 5 %·50 + 0.5·10) ÷ 10.
    let cost = CacheMix::cached(within(100.0, 0.05), exactly(10.0), exactly(10.0), hits(0.5, 0.0))
        .ratio()
        .expect("a ratio");
    let (low, high) = cost.interval.expect("an interval");
    assert!(close(cost.value, 5.5) && close(high, 5.75) && close(low, 5.25), "{cost:?}");
}

#[test]
fn without_one_interval_there_is_none() {
    let bare = Estimate { us: 10.0, interval: None };
    assert_eq!(CacheMix::raw(bare, exactly(1.0)).ratio(), Some(Cost { value: 10.0, interval: None }));
    assert_eq!(
        CacheMix::raw(exactly(10.0), Estimate { us: 1.0, interval: None })
            .ratio()
            .and_then(|cost| cost.interval),
        None
    );
    // An end at 0 says that the ratio may be anything.
    let wide = Estimate { us: 1.0, interval: Some((0.0, 3.0)) };
    assert_eq!(CacheMix::raw(exactly(10.0), wide).ratio().and_then(|cost| cost.interval), None);
    // The sequential cost does not depend on the random time; a hit that is never asked for does not count.
    let costs = CacheMix::raw(bare, exactly(1.0)).in_cpu(exactly(0.01), 0.01).expect("costs");
    assert_eq!((costs.random.interval.is_some(), costs.sequential.interval.is_some()), (false, true));
    let cost = CacheMix::cached(exactly(10.0), exactly(1.0), bare, hits(0.0, 0.0)).ratio().expect("a ratio");
    assert!(cost.interval.is_some());
}

#[test]
fn what_is_no_time_and_no_share_gives_nothing() {
    let one = exactly(1.0);
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(CacheMix::raw(exactly(bad), one).ratio(), None, "{bad}");
        assert_eq!(CacheMix::raw(one, exactly(bad)).ratio(), None, "{bad}");
    }
    for (random, sequential) in [(-0.1, 0.0), (1.1, 0.0), (0.0, -0.1), (0.0, 1.1), (f64::NAN, 0.0)] {
        assert_eq!(
            CacheMix::cached(one, one, one, hits(random, sequential)).ratio(),
            None,
            "{random} {sequential}"
        );
    }
    assert_eq!(CacheMix::cached(one, one, exactly(-1.0), hits(0.5, 0.5)).ratio(), None);
}

fn time() -> impl Strategy<Value = Estimate> {
    (0.01..1e5, 0.0..0.5).prop_map(|(us, share)| within(us, share))
}

fn shares() -> impl Strategy<Value = HitRatios> {
    (0.0..0.99, 0.0..0.99).prop_map(|(random, sequential)| hits(random, sequential))
}

proptest! {
    #[test]
    fn a_slower_random_read_never_costs_less(
        random in time(), sequential in time(), hit in time(), hits in shares(), factor in 1.0..100.0,
    ) {
        let slower = Estimate { us: random.us * factor, interval: None };
        let cost = |random| CacheMix::cached(random, sequential, hit, hits).random_page_cost(1.0).map(|c| c.value);
        prop_assert!(cost(slower) >= cost(random));
    }

    #[test]
    fn a_random_page_never_costs_less_than_a_sequential_one(
        random in time(), sequential in time(), hit in time(), hits in shares(), seq in 0.001..100.0, tuple in time(),
    ) {
        let mix = CacheMix::cached(random, sequential, hit, hits);
        let cost = mix.random_page_cost(seq).expect("a cost");
        prop_assert!(cost.value >= seq && cost.interval.expect("an interval").0 >= seq);
        let costs = mix.in_cpu(tuple, 0.01).expect("costs");
        prop_assert!(costs.random.value >= costs.sequential.value);
    }

    #[test]
    fn the_interval_holds_the_value(
        random in time(), sequential in time(), hit in time(), hits in shares(), tuple in time(),
    ) {
        let mix = CacheMix::cached(random, sequential, hit, hits);
        let costs = mix.in_cpu(tuple, 0.01).expect("costs");
        for cost in [mix.ratio(), mix.random_page_cost(1.1), Some(costs.random), Some(costs.sequential)] {
            let cost = cost.expect("a cost");
            let (low, high) = cost.interval.expect("an interval");
            prop_assert!(low <= cost.value && cost.value <= high, "{cost:?}");
        }
    }

    /// The same machine, but so many times as slow; and the same machine with other units.
    #[test]
    fn the_unit_of_pages_is_free_of_scale(
        random in time(), sequential in time(), hit in time(), hits in shares(), factor in 0.001..1000.0, seq in 0.1..10.0,
    ) {
        let slower = |time: Estimate| time.divided_by(1.0 / factor);
        let of = |random, sequential, hit| CacheMix::cached(random, sequential, hit, hits);
        let mix = of(random, sequential, hit);
        let cost = mix.random_page_cost(seq).expect("a cost");
        let same = of(slower(random), slower(sequential), slower(hit)).random_page_cost(seq).expect("a cost");
        prop_assert!(close(cost.value, same.value));
        let (a, b) = (cost.interval.expect("an interval"), same.interval.expect("an interval"));
        prop_assert!(close(a.0, b.0) && close(a.1, b.1));
        let unit = mix.random_page_cost(1.0).expect("a cost");
        prop_assert!(close(unit.value * seq, cost.value));
    }

    /// Both units say the same of one machine.
    #[test]
    fn both_units_have_one_ratio(random in time(), sequential in time(), tuple in time()) {
        let mix = CacheMix::raw(random, sequential);
        let costs = mix.in_cpu(tuple, 0.01).expect("costs");
        let cost = mix.random_page_cost(costs.sequential.value).expect("a cost");
        prop_assert!(close(cost.value, costs.random.value));
    }
}
