use super::*;
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

fn one(value: f64) -> [Figure; 1] {
    [Figure { value, error: None }]
}

/// Eleven runs: ln is −0.1 and 0.1 five times each and 0 once, so s = √(0.1 / 10) = 0.1 with 10 degrees of
/// freedom. t(0.975, 10) = 2.22814, so that the bound for two single runs is 0.315107, a factor of 1.370407.
fn history() -> Vec<f64> {
    let low_and_high = (0..5).flat_map(|_| [(-0.1f64).exp(), 0.1f64.exp()]);
    low_and_high.map(|factor| 500.0 * factor).chain([500.0]).collect()
}

fn against(noise: &RunNoise, b: f64) -> Verdict {
    compare(&one(500.0), &one(b), noise, true).verdict
}

#[test]
fn known_answer_of_two_runs() {
    let noise = RunNoise::of_groups(&[history()]);
    let found = compare(&one(500.0), &one(690.0), &noise, true);
    assert!((found.noise.expect("enough runs") - 0.370407).abs() < 1e-5, "{found:?}");
    assert!((found.ratio.expect("two figures") - 1.38).abs() < 1e-12);
    assert_eq!((found.verdict, found.runs, found.note), (Verdict::Better, 11, None));
    assert!((found.a.expect("a") - 500.0).abs() < 1e-9 && (found.b.expect("b") - 690.0).abs() < 1e-9);
    assert_eq!(against(&noise, 685.3), Verdict::Better);
    assert_eq!(against(&noise, 685.1), Verdict::Same);
    assert_eq!(against(&noise, 365.0), Verdict::Same);
    assert_eq!(against(&noise, 364.7), Verdict::Worse);
    // Of a latency, less is better.
    assert_eq!(compare(&one(500.0), &one(690.0), &noise, false).verdict, Verdict::Worse);
    assert_eq!(compare(&one(690.0), &one(500.0), &noise, false).verdict, Verdict::Better);
}

#[test]
fn too_little_history_says_nothing() {
    let mut runs = history();
    runs.pop();
    assert_ne!(against(&RunNoise::of_groups(&[runs.clone()]), 5e6), Verdict::Unknown);
    runs.pop();
    // Nor do many runs, of which each is the only one of its configuration.
    for groups in [vec![runs], vec![], vec![vec![1.0]; 20]] {
        for noise in [RunNoise::of_groups(&groups), RunNoise::of_levels(&groups)] {
            let found = compare(&one(500.0), &one(5e6), &noise, true);
            assert_eq!(
                (found.verdict, found.note, found.noise),
                (Verdict::Unknown, Some("no history"), None)
            );
            assert!(found.ratio.is_some());
        }
    }
}

#[test]
fn without_a_figure_nothing_is_said() {
    let noise = RunNoise::of_groups(&[history()]);
    let note = |a: &[Figure], b: &[Figure]| {
        let found = compare(a, b, &noise, true);
        assert_eq!((found.verdict, found.ratio, found.noise), (Verdict::Unknown, None, None));
        found.note.expect("says why")
    };
    assert_eq!(note(&[], &one(1.0)), "no figure in a");
    assert_eq!(note(&one(1.0), &one(0.0)), "no figure in b");
    assert_eq!(note(&one(f64::NAN), &one(-1.0)), "no figure in either");
    // Nor do such values count in the history.
    assert_eq!(RunNoise::of_groups(&[vec![0.0, -1.0, f64::NAN, f64::INFINITY, 2.0, 3.0]]).runs, 2);
}

#[test]
fn each_configuration_has_a_mean_of_its_own() {
    // The same spread around 50 and around 500; 10 degrees of freedom in each.
    let slow: Vec<f64> = history().iter().map(|value| value / 10.0).collect();
    let pooled = RunNoise::of_groups(&[history(), slow.clone()]);
    assert!((pooled.deviation - 0.1).abs() < 1e-9, "{pooled:?}");
    assert_eq!((pooled.degrees, pooled.runs), (20.0, 22));
    assert!(RunNoise::of_groups(&[[history(), slow].concat()]).deviation > 1.0);
}

#[test]
fn known_answer_of_means() {
    // Four runs against nine, with the noise above: 2.22814 · 0.1 · √(1/4 + 1/9) = 0.133893.
    let noise = RunNoise::of_groups(&[history()]);
    let four =
        [[Figure { value: 400.0, error: None }; 2], [Figure { value: 625.0, error: None }; 2]].concat();
    let found = compare(&four, &[Figure { value: 550.0, error: None }; 9], &noise, true);
    assert!((found.a.expect("a") - 500.0).abs() < 1e-9, "the mean is geometric: {found:?}");
    assert!((found.noise.expect("noise") - 0.133893f64.exp_m1()).abs() < 1e-5, "{found:?}");
    assert_eq!(found.verdict, Verdict::Same);
    let found = compare(&four, &[Figure { value: 580.0, error: None }; 9], &noise, true);
    assert_eq!(found.verdict, Verdict::Better);
}

#[test]
fn the_larger_error_counts() {
    let noise = RunNoise::of_groups(&[history()]);
    let figure = |value, error| [Figure { value, error: Some(error) }];
    // √(0.3² + 0.4²) = 0.5 is over 0.315; √(0.1² + 0.1²) is not.
    let found = compare(&figure(500.0, 0.3), &figure(800.0, 0.4), &noise, true);
    assert_eq!((found.verdict, found.noise), (Verdict::Same, Some(0.5f64.exp_m1())));
    assert_eq!(compare(&figure(500.0, 0.1), &figure(800.0, 0.1), &noise, true).verdict, Verdict::Better);
    // Of a mean of four, a half each.
    let four = [Figure { value: 500.0, error: Some(0.8) }; 4];
    let found = compare(&four, &[Figure { value: 800.0, error: Some(0.6) }; 4], &noise, true);
    assert_eq!(found.noise, Some(0.5f64.exp_m1()));
}

#[test]
fn what_is_rounded_is_no_difference() {
    let noise = RunNoise::of_groups(&[vec![500.0; 20]]);
    assert_eq!(against(&noise, 504.9), Verdict::Same);
    assert_eq!(against(&noise, 505.2), Verdict::Better);
    assert_eq!(against(&noise, 494.9), Verdict::Worse);
}

#[test]
fn a_clear_step_in_the_history_is_no_noise() {
    let two = RunNoise::of_levels(&[vec![7.0, 7.0, 14.0, 14.0, 7.0, 7.0]]);
    assert!(two.deviation < 1e-6 && two.degrees == 4.0, "{two:?}");
    let slow: Vec<f64> = history().iter().map(|value| value / 2.0).collect();
    let noise = RunNoise::of_levels(&[[history(), slow, history()].concat()]);
    // Fast before and after is one level: √(0.3 / 31).
    assert!((noise.deviation - 0.0983739).abs() < 1e-6, "{noise:?}");
    assert_eq!((noise.degrees, noise.runs), (31.0, 33));
    // Without one, it is the same as ever, also where one run is far off, or where some are off by less.
    let mut odd = history();
    odd[4] = 5000.0;
    let less = [vec![7.0; 20], vec![11.0; 5]].concat();
    for group in [history(), odd, less, Vec::new(), vec![1.0, 2.0], vec![7.0; 20]] {
        assert_eq!(
            RunNoise::of_levels(std::slice::from_ref(&group)),
            RunNoise::of_groups(std::slice::from_ref(&group))
        );
    }
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

/// Share of pairs of `runs`, each compared as of its later one, of those of which anything is said: the
/// verdicts.
fn verdicts(runs: &[f64], pairs: impl Iterator<Item = (usize, usize)>) -> Vec<Verdict> {
    pairs
        .map(|(a, b)| {
            let earlier: Vec<f64> = (0..b).filter(|run| *run != a).map(|run| runs[run]).collect();
            compare(&one(runs[a]), &one(runs[b]), &RunNoise::of_levels(&[earlier]), true).verdict
        })
        .filter(|verdict| *verdict != Verdict::Unknown)
        .collect()
}

fn share_of_different(verdicts: &[Verdict]) -> f64 {
    verdicts.iter().filter(|verdict| **verdict != Verdict::Same).count() as f64 / verdicts.len() as f64
}

#[test]
fn simulated_idle_runs_are_seldom_called_different() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
    for (alike, most) in [(0.0, 0.07), (0.2, 0.07), (0.4, 0.08)] {
        let mut all = Vec::new();
        for _ in 0..40 {
            let runs = runs(40, 0.07, alike, &mut rng);
            all.extend(verdicts(&runs, (0..40).flat_map(|a| (a + 1..40).map(move |b| (a, b)))));
        }
        let share = share_of_different(&all);
        assert!((0.03..=most).contains(&share), "AR({alike}): {share}");
    }
}

#[test]
fn simulated_halving_is_always_worse() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(6);
    for _ in 0..50 {
        let mut runs = runs(60, 0.07, 0.2, &mut rng);
        runs[40..].iter_mut().for_each(|value| *value /= 2.0);
        // As soon as it is slow, and when it has long been.
        let found = verdicts(&runs, (35..40).flat_map(|a| (40..60).map(move |b| (a, b))));
        assert_eq!(found, vec![Verdict::Worse; 100]);
    }
}

#[test]
fn noises_are_pooled() {
    let (one, other) = (vec![100.0, 110.0, 90.0, 105.0, 97.0], vec![50.0, 60.0, 55.0, 52.0, 48.0, 51.0]);
    let both = RunNoise::of_groups(&[one.clone(), other.clone()]);
    let other = RunNoise::of_groups(&[other]);
    let pooled = RunNoise::of_groups(&[one]).and(other);
    assert!((both.deviation / pooled.deviation - 1.0).abs() < 1e-12);
    assert_eq!((both.degrees, both.runs), (pooled.degrees, pooled.runs));
    // What says nothing changes nothing.
    assert_eq!((other.and(RunNoise::of_groups(&[])), RunNoise::of_groups(&[]).and(other)), (other, other));
}
