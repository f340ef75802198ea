use super::*;
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Seconds from one night to the next.
const NIGHT: f64 = 86400.0;

/// Runs of one series, one a night from the given one on.
fn nights(first: usize, values: &[f64]) -> SeriesRuns {
    let run = |(night, value): (usize, &f64)| Run {
        at: NIGHT * (first + night) as f64,
        value: *value,
        error: None,
        taken: 0.0,
    };
    SeriesRuns { series: "nightly".to_owned(), runs: values.iter().enumerate().map(run).collect() }
}

/// Eleven runs: ln is −0.1 and 0.1 five times each and 0 once, so s = √(0.1 / 10) = 0.1 with 10 degrees of
/// freedom. t(0.975, 10) = 2.22814, so that the bound for two single independent runs is a factor of 1.37.
fn history() -> Vec<f64> {
    let low_and_high = (0..5).flat_map(|_| [(-0.1f64).exp(), 0.1f64.exp()]);
    low_and_high.map(|factor| 500.0 * factor).chain([500.0]).collect()
}

/// Two single runs after this history.
fn compared(past: &[f64], a: f64, b: f64) -> Comparison {
    let at = past.len();
    compare(&[nights(at, &[a])], &[nights(at + 1, &[b])], &[nights(0, past)], true)
}

fn verdict(past: &[f64], a: f64, b: f64) -> Verdict {
    compared(past, a, b).verdict(LEVEL)
}

#[test]
fn known_answer_of_two_runs() {
    let found = compared(&history(), 500.0, 700.0);
    let noise = found.noise(LEVEL).expect("enough runs");
    assert!((noise - 0.37).abs() < 0.02, "{noise}");
    assert!((found.ratio.expect("two figures") - 1.4).abs() < 1e-12);
    assert_eq!((found.verdict(LEVEL), found.runs, found.unknown), (Verdict::Better, 11, None));
    assert!((found.a.expect("a") - 500.0).abs() < 1e-9 && (found.b.expect("b") - 700.0).abs() < 1e-9);
    let (above, below) = (500.0 * (1.0 + noise) + 0.1, 500.0 * (1.0 + noise) - 0.1);
    assert_eq!(verdict(&history(), 500.0, above), Verdict::Better);
    assert_eq!(verdict(&history(), 500.0, below), Verdict::CantTell);
    assert_eq!(verdict(&history(), above, 500.0), Verdict::Worse);
    // Of a latency, less is better.
    let sides = |a, b| compare(&[nights(11, &[a])], &[nights(12, &[b])], &[nights(0, &history())], false);
    assert_eq!(sides(500.0, above).verdict(LEVEL), Verdict::Worse);
    assert_eq!(sides(above, 500.0).verdict(LEVEL), Verdict::Better);
}

#[test]
fn too_few_runs_say_how_many() {
    let runs = history();
    assert_ne!(verdict(&runs[..10], 500.0, 5e6), Verdict::CantTell);
    let found = compared(&runs[..9], 500.0, 5e6);
    assert_eq!((found.verdict(LEVEL), found.unknown), (Verdict::CantTell, Some(Unknown::FewRuns)));
    assert!(found.ratio.is_some() && found.noise(LEVEL).is_none() && found.chance().is_none());
    assert_eq!(
        found.notes(["before", "now"]),
        ["now is 10000.00 times before: too few runs for a verdict, which needs 10"]
    );
    // Nor do many runs, of which each is the only one of its configuration.
    let single: Vec<SeriesRuns> = (0..20).map(|night| nights(night, &[1.0])).collect();
    let found = compare(&[nights(20, &[500.0])], &[nights(21, &[5e6])], &single, true);
    assert_eq!((found.unknown, found.runs), (Some(Unknown::FewRuns), 0));
}

#[test]
fn without_a_figure_nothing_is_said() {
    let note = |a: &[f64], b: &[f64]| {
        let found = compare(&[nights(11, a)], &[nights(12, b)], &[nights(0, &history())], true);
        assert_eq!((found.verdict(LEVEL), found.ratio, found.noise(LEVEL)), (Verdict::CantTell, None, None));
        found.notes(["a", "b"]).concat()
    };
    assert_eq!(note(&[], &[1.0]), "no figure in column a");
    assert_eq!(note(&[1.0], &[0.0]), "no figure in column b");
    assert_eq!(note(&[f64::NAN], &[-1.0]), "no figure in either column");
    // Nor do such values count in the history.
    let odd = [0.0, -1.0, f64::NAN, f64::INFINITY, 2.0, 3.0];
    assert_eq!(compared(&odd, 1.0, 1.0).runs, 2);
}

#[test]
fn each_configuration_has_a_level_of_its_own() {
    // The same spread around 50 and around 400.
    let [slow, less]: [Vec<f64>; 2] =
        [0.1, 0.8].map(|factor| history().iter().map(|value| factor * value).collect());
    let sides = ([nights(40, &[500.0])], [nights(41, &[700.0])]);
    let noise =
        |past: &[SeriesRuns]| compare(&sides.0, &sides.1, past, true).noise(LEVEL).expect("enough runs");
    let two = noise(&[nights(0, &less), nights(11, &slow)]);
    assert!((0.33..0.39).contains(&two), "{two}");
    assert!(noise(&[nights(0, &[history(), less].concat())]) > 0.4);
}

#[test]
fn known_answer_of_means() {
    // Two runs against three, and eleven before: s = 0.1, 10 + 1 + 2 degrees and no more squares, so that
    // the error is √(0.1 / 13 · (1/2 + 1/3)) = 0.0801, and t(0.975, 13) = 2.16.
    let found =
        compare(&[nights(11, &[500.0; 2])], &[nights(13, &[540.0; 3])], &[nights(0, &history())], true);
    assert_eq!((found.runs, found.verdict(LEVEL)), (16, Verdict::Same));
    let noise = found.noise(LEVEL).expect("noise");
    assert!((noise - 0.173f64.exp_m1()).abs() < 0.03, "{noise}");
    // The mean is geometric.
    let mean = compare(&[nights(0, &[400.0, 625.0])], &[nights(2, &[1.0])], &[], true).a.expect("a");
    assert!((mean - 500.0).abs() < 1e-9, "{mean}");
}

#[test]
fn the_larger_error_counts() {
    let side = |night, value, error, runs| {
        let mut group = nights(night, &vec![value; runs]);
        group.runs.iter_mut().for_each(|run| run.error = Some(error));
        [group]
    };
    let of = |a: &[SeriesRuns], b: &[SeriesRuns]| compare(a, b, &[nights(0, &history())], true);
    // √(0.3² + 0.4²) = 0.5 is over the noise from run to run; √(0.1² + 0.1²) is not.
    let found = of(&side(11, 500.0, 0.3, 1), &side(12, 800.0, 0.4, 1));
    assert_eq!(found.verdict(LEVEL), Verdict::CantTell);
    assert!((found.noise(LEVEL).expect("noise") - 0.5f64.exp_m1()).abs() < 1e-9);
    let found = of(&side(11, 500.0, 0.1, 1), &side(12, 800.0, 0.1, 1));
    assert_eq!(found.verdict(LEVEL), Verdict::Better);
    // Of a mean of four, a half each.
    let found = of(&side(11, 500.0, 0.8, 4), &side(15, 800.0, 0.6, 4));
    assert!((found.noise(LEVEL).expect("noise") - 0.5f64.exp_m1()).abs() < 1e-9);
}

#[test]
fn what_is_rounded_is_no_difference() {
    let past = [500.0; 20];
    assert_eq!(verdict(&past, 500.0, 504.9), Verdict::Same);
    assert_eq!(verdict(&past, 500.0, 505.2), Verdict::Better);
    assert_eq!(verdict(&past, 500.0, 494.9), Verdict::Worse);
}

#[test]
fn a_clear_step_in_the_history_is_no_noise() {
    let levels = |group: &[f64]| {
        // In place of the time each has its value.
        let point = |&at: &f64| Point { at, ln: at.ln(), group: None, part: 0.0 };
        let mut levels = Vec::new();
        levels::split(&group.iter().map(point).collect::<Vec<_>>(), &mut levels);
        levels.iter().map(|level| level.iter().map(|point| point.at).collect()).collect::<Vec<Vec<f64>>>()
    };
    assert_eq!(levels(&[7.0, 7.0, 14.0, 14.0, 7.0, 7.0]), [vec![14.0; 2], vec![7.0; 4]]);
    let slow: Vec<f64> = history().iter().map(|value| value / 2.0).collect();
    // Fast before and after is one level.
    assert_eq!(levels(&[history(), slow.clone(), history()].concat()), [slow, history().repeat(2)]);
    // Without one, it is the same as ever, also where one run is far off, or where some are off by less.
    let mut odd = history();
    odd[4] = 5000.0;
    let less = [vec![7.0; 20], vec![11.0; 5]].concat();
    for group in [history(), odd, less, vec![1.0, 2.0], vec![7.0; 20]] {
        assert_eq!(levels(&group), std::slice::from_ref(&group));
    }
}

/// Twelve runs; others took the share `taken` of the first `disturbed`.
fn side(first: usize, factor: f64, disturbed: usize, taken: f64) -> [SeriesRuns; 1] {
    let mut group = nights(first, &history().repeat(2)[..12]);
    group.runs.iter_mut().for_each(|run| run.value *= factor);
    for run in &mut group.runs[..disturbed] {
        (run.taken, run.value) = (taken, run.value * (1.0 - taken));
    }
    [group]
}

#[test]
fn disturbed_runs_are_set_aside() {
    let found = compare(&side(0, 1.0, 0, 0.0), &side(12, 1.0, 6, 0.8), &[], true);
    assert_eq!((found.verdict(LEVEL), found.set_aside, found.compared.iter().sum()), (Verdict::Same, 6, 18));
    assert!(found.ratio.is_some_and(|ratio| (0.95..1.05).contains(&ratio)), "{found:?}");
    assert_eq!(found.notes(["a", "b"])[0], "others were at work: 6 of 24 runs do not count");
    // What differs besides is found.
    let found = compare(&side(0, 1.0, 3, 0.8), &side(12, 0.7, 6, 0.8), &[], true);
    assert_eq!((found.verdict(LEVEL), found.set_aside), (Verdict::Worse, 9));
}

#[test]
fn sides_with_other_neighbours_are_not_compared() {
    let found = compare(&side(0, 1.0, 0, 0.0), &side(12, 1.0, 8, 0.6), &[], true);
    assert_eq!(found.verdict(LEVEL), Verdict::CantTell);
    assert_eq!(found.notes(["a", "b"]), ["others took 0 % of disk traffic or CPU time (a) and 40 % (b)"]);
    // Those with the same are.
    let found = compare(&side(0, 1.0, 12, 0.5), &side(12, 0.5, 12, 0.55), &[], true);
    assert_eq!((found.verdict(LEVEL), found.set_aside), (Verdict::Worse, 0));
    // A disturbed history tells less than a quiet one, and more than none.
    let mut past = side(0, 1.0, 11, 0.8);
    let (a, b) = ([nights(12, &[500.0])], [nights(13, &[600.0])]);
    assert_eq!(compare(&a, &b, &past, true).runs, 12);
    past[0].runs.extend(side(12, 1.0, 0, 0.0)[0].runs.iter());
    assert_eq!(compare(&a, &b, &past, true).runs, 13);
}

#[test]
fn machines_of_one_time_are_not_alike() {
    // Two series at the same times: what one does says nothing of the other.
    let [mut a, b] = [side(0, 1.0, 0, 0.0), side(0, 1.0, 0, 0.0)];
    let together = compare(&a, &b, &[], true).effective.expect("judged");
    a[0].series = "other".to_owned();
    let apart = compare(&a, &b, &[], true).effective.expect("judged");
    assert!(apart <= 24.0 && together > apart, "{apart} {together}");
}

#[test]
fn many_figures_are_judged_together() {
    assert_eq!(holm([].into_iter()), LEVEL);
    assert_eq!(holm([0.04].into_iter()), LEVEL);
    // 0.01 ≤ 0.05 / 4, 0.016 ≤ 0.05 / 3, 0.026 > 0.05 / 2.
    assert_eq!(holm([0.026, 0.016, 0.04, 0.01].into_iter()), 0.05 / 2.0);
    assert_eq!(holm([0.02, 0.03, 0.04].into_iter()), 0.05 / 3.0);
}

/// Runs of which each is like the one before to this degree (AR(1)), with this coefficient of variation.
fn runs(count: usize, cv: f64, alike: f64, rng: &mut Xoshiro256PlusPlus) -> Vec<f64> {
    let mut state: f64 = StandardNormal.sample(rng);
    (0..count)
        .map(|_| {
            let shock: f64 = StandardNormal.sample(rng);
            state = alike * state + (1.0 - alike * alike).sqrt() * shock;
            500.0 * (cv * state).exp()
        })
        .collect()
}

/// The verdicts on pairs of runs, each with the runs before its later one, if anything is said of it.
fn verdicts(values: &[f64], pairs: impl Iterator<Item = (usize, usize)>) -> Vec<Verdict> {
    let all = nights(0, values);
    let group = |runs: Vec<Run>| [SeriesRuns { runs, ..all.clone() }];
    pairs
        .map(|(a, b)| {
            let past = (0..b).filter(|run| *run != a).map(|run| all.runs[run]).collect();
            compare(&group(vec![all.runs[a]]), &group(vec![all.runs[b]]), &group(past), true)
        })
        .filter(|found| found.unknown.is_none())
        .map(|found| found.verdict(LEVEL))
        .collect()
}

#[test]
fn simulated_idle_runs_are_seldom_called_different() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
    for alike in [0.0, 0.2, 0.4] {
        let mut all = Vec::new();
        for _ in 0..60 {
            let runs = runs(40, 0.07, alike, &mut rng);
            all.extend(verdicts(
                &runs,
                (0..40).step_by(4).flat_map(|a| (a + 1..40).step_by(5).map(move |b| (a, b))),
            ));
        }
        let different =
            all.iter().filter(|verdict| matches!(verdict, Verdict::Better | Verdict::Worse)).count();
        let share = different as f64 / all.len() as f64;
        assert!((0.02..=0.075).contains(&share), "AR({alike}): {share}");
    }
}

#[test]
fn simulated_halving_is_always_worse() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(6);
    for _ in 0..10 {
        let mut runs = runs(60, 0.07, 0.2, &mut rng);
        runs[40..].iter_mut().for_each(|value| *value /= 2.0);
        // As soon as it is slow, and when it has long been.
        let found = verdicts(&runs, (35..40).flat_map(|a| (40..60).map(move |b| (a, b))));
        assert_eq!(found, vec![Verdict::Worse; 100]);
    }
}

/// Sides of so many runs each, of which the second differs by a factor, after twenty runs of the first.
fn sides(count: usize, factor: f64, cv: f64, alike: f64, rng: &mut Xoshiro256PlusPlus) -> [SeriesRuns; 3] {
    let all = runs(20 + 2 * count, cv, alike, rng);
    let (past, [a, b]) = (&all[..20], [&all[20..20 + count], &all[20 + count..]]);
    let b: Vec<f64> = b.iter().map(|value| factor * value).collect();
    [nights(20, a), nights(20 + count, &b), nights(0, past)]
}

fn of_sides([a, b, past]: [SeriesRuns; 3]) -> Comparison {
    compare(&[a], &[b], &[past], true)
}

/// How often sides that differ by a factor are called the same.
fn share_of_same(count: usize, factor: f64, cv: f64, alike: f64) -> f64 {
    const SIMULATED: usize = 200;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
    let same = (0..SIMULATED)
        .filter(|_| of_sides(sides(count, factor, cv, alike, &mut rng)).verdict(LEVEL) == Verdict::Same);
    same.count() as f64 / SIMULATED as f64
}

#[test]
fn what_differs_by_thirty_percent_is_seldom_called_the_same() {
    for (cv, count) in [(0.07, 1), (0.2, 6), (1.0, 6)] {
        for alike in [0.0, 0.3] {
            for factor in [ALIKE, 1.0 / ALIKE] {
                let share = share_of_same(count, factor, cv, alike);
                assert!(share <= 0.045, "{count} runs, cv {cv}, AR({alike}), {factor}: {share}");
            }
        }
    }
}

#[test]
fn what_does_not_differ_is_the_same_where_the_noise_allows_it() {
    for (count, cv) in [(1, 0.03), (6, 0.07)] {
        let share = share_of_same(count, 1.0, cv, 0.0);
        assert!(share >= 0.85, "{count} runs, cv {cv}: {share}");
    }
    // A device whose runs differ by twenty times is never called the same.
    assert_eq!(share_of_same(6, 1.0, 1.0, 0.0), 0.0);
}

#[test]
fn what_is_lacking_tells() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(8);
    let (mut asked, mut told) = (0, 0);
    for factor in [1.0, 1.2, 1.5] {
        for _ in 0..60 {
            let found = of_sides(sides(2, factor, 0.15, 0.0, &mut rng));
            let Some(more) = found.more_runs(LEVEL, Growing::Both) else {
                assert_ne!(found.verdict(LEVEL), Verdict::CantTell);
                continue;
            };
            let found = of_sides(sides(2 + more, factor, 0.15, 0.0, &mut rng));
            (asked, told) = (asked + 1, told + usize::from(found.verdict(LEVEL) != Verdict::CantTell));
        }
    }
    // Other runs give another difference, which may need more again.
    assert!(asked > 60 && 5 * told > 3 * asked, "{told} of {asked}");
}

#[test]
fn known_answers_of_what_is_lacking() {
    // The noise of two single runs is 0.315 or so, and ln 1.3 is 0.262. 0.262 / 0.315 / 1.43 is 0.58, and so
    // is the root of 1/3: it takes three of each.
    let found = compared(&history(), 500.0, 500.0);
    assert_eq!(found.verdict(LEVEL), Verdict::CantTell);
    let more = found.more_runs(LEVEL, Growing::Both).expect("some");
    assert!((2..=3).contains(&more), "{more}");
    // One run of the past is too few for any number of them.
    assert_eq!(found.more_runs(LEVEL, Growing::Second), None);
    // Beside eleven, the noise falls from 12/11 to 1/11 + 1/n.
    let found = compare(&[nights(0, &history())], &[nights(11, &[500.0])], &[], true);
    assert_eq!((found.verdict(LEVEL), found.more_runs(LEVEL, Growing::Second)), (Verdict::Same, None));
    let found = compare(&[nights(0, &history())], &[nights(11, &[575.0])], &[], true);
    let more = found.more_runs(LEVEL, Growing::Second).expect("some");
    assert!((3..=20).contains(&more), "{more}");
    let remark = found.remark(LEVEL, Growing::Second, ["before", "now"]);
    assert_eq!(remark.as_deref(), Some(&*format!("{more} more runs")));
    // Where a verdict is known, or runs are not what lacks, there is none.
    let found = compared(&history(), 500.0, 900.0);
    assert_eq!(
        (found.more_runs(LEVEL, Growing::Both), found.remark(LEVEL, Growing::Both, ["a", "b"])),
        (None, None)
    );
    let found = compare(&side(0, 1.0, 0, 0.0), &side(12, 1.0, 8, 0.6), &[], true);
    assert_eq!(found.more_runs(LEVEL, Growing::Both), None);
    assert_eq!(found.remark(LEVEL, Growing::Both, ["a", "b"]).as_deref(), Some("others busy"));
    // Nine runs tell nothing: one more does.
    let found = compared(&history()[..9], 500.0, 500.0);
    assert_eq!(found.remark(LEVEL, Growing::Second, ["before", "now"]).as_deref(), Some("1 more run"));
    assert_eq!(
        compared(&[], 1.0, 2.0).remark(LEVEL, Growing::Both, ["a", "b"]).as_deref(),
        Some("5 more each")
    );
    // Where runs differ by a thousand times, no number of them would do.
    let wild: Vec<f64> = history().iter().map(|value| (value / 500.0).powi(70)).collect();
    let found = compared(&wild, 1.0, 1.0);
    assert_eq!((found.more_runs(LEVEL, Growing::Both), found.verdict(LEVEL)), (None, Verdict::CantTell));
    assert_eq!(found.remark(LEVEL, Growing::Both, ["a", "b"]).as_deref(), Some("too noisy"));
}
