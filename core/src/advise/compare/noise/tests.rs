use super::*;

/// Two sides, of runs at these times.
fn points(a: &[(f64, f64)], b: &[(f64, f64)]) -> Vec<Point> {
    let side = |runs: &[(f64, f64)], group, sign: f64| -> Vec<Point> {
        let part = sign / runs.len() as f64;
        runs.iter().map(|(at, ln)| Point { at: *at, ln: *ln, group: Some(group), part }).collect()
    };
    let mut points = [side(a, 0, -1.0), side(b, 1, 1.0)].concat();
    points.sort_by(|one, other| one.at.total_cmp(&other.at));
    points
}

fn hypothesis(points: &[Point], tau: f64, own: f64) -> Hypothesis {
    Hypothesis::of(&[points.to_vec()], tau, own).expect("more runs than groups")
}

#[test]
fn independent_runs_have_students_test() {
    // Squares around the means 2 and 3: 2 and 2, over 4 degrees; √(1 · (1/3 + 1/3)).
    let points = points(&[(0.0, 1.0), (1.0, 2.0), (2.0, 3.0)], &[(3.0, 2.0), (4.0, 3.0), (5.0, 4.0)]);
    let found = hypothesis(&points, 0.0, 1.0);
    assert!((found.error - (2.0f64 / 3.0).sqrt()).abs() < 1e-12 && found.degrees == 4.0, "{found:?}");
    assert!((found.inflation - 1.0).abs() < 1e-12);
    // t(0.975, 4) = 2.776445.
    assert!((found.chance(2.776445 * found.error) - 0.05).abs() < 1e-6);
}

#[test]
fn alike_runs_by_matrices() {
    // With ρ = 1/2 from run to run the difference of two and two has the variance
    // 1 + (2ρ − ρ − 2ρ² − ρ³) / 2 = 0.9375, against 1 of independent ones.
    let (a, b) = ([(0.0, 0.0), (1.0, 1.0)], [(2.0, 1.0), (3.0, 4.0)]);
    let tau = 1.0 / 2.0f64.ln();
    let found = hypothesis(&points(&a, &b), tau, 0.0);
    assert!((found.inflation - 0.9375).abs() < 1e-12, "{found:?}");
    // In turns: 1 + (2ρ² − 3ρ − ρ³) / 2.
    let turns = hypothesis(&points(&[a[0], (2.0, 1.0)], &[(1.0, 1.0), b[1]]), tau, 0.0);
    assert!((turns.inflation - 0.4375).abs() < 1e-12, "{turns:?}");
    // Half of it is a run's own: the products of neighbours count half.
    let own = hypothesis(&points(&a, &b), tau, 0.5);
    assert!((own.inflation - 0.96875).abs() < 1e-12, "{own:?}");
}

/// The filter does what the inverse of the matrix of covariances does: generalised least squares.
#[test]
fn the_filter_is_generalised_least_squares() {
    // One group of two runs with the correlation r: the squares are (y₂ − y₁)² / (2 (1 − r)), the
    // determinants 1 − r² and 2 / (1 + r).
    let (tau, own) = (1.0f64, 0.3);
    let r = (1.0 - own) * (-1.0f64).exp();
    let one = |at, ln| Point { at, ln, group: Some(0), part: 0.0 };
    let fit = Fit::of(&[one(0.0, 1.0), one(1.0, 4.0)], tau, own);
    assert!((fit.squares - 9.0 / (2.0 * (1.0 - r))).abs() < 1e-12, "{}", fit.squares);
    assert!((fit.determinant - (1.0 - r * r).ln() - (2.0 / (1.0 + r)).ln()).abs() < 1e-12);
}

#[test]
fn the_bound_has_the_chance() {
    let a: Vec<(f64, f64)> = (0..12).map(|run| (f64::from(run), f64::from(run * run % 7))).collect();
    let b: Vec<(f64, f64)> = (12..24).map(|run| (f64::from(run), f64::from(run * run % 5))).collect();
    let noise = Noise::of(&[points(&a, &b)]).expect("enough runs");
    for chance in [0.5, 0.05, 0.001] {
        assert!((noise.chance(noise.bound(chance)) / chance - 1.0).abs() < 1e-5, "{chance}");
    }
}

#[test]
fn runs_of_one_time_and_of_one_value_do() {
    let noise = Noise::of(&[points(&[(0.0, 1.0); 6], &[(0.0, 1.0); 6])]).expect("enough runs");
    assert!(noise.bound(0.05) < 1e-4 && noise.chance(0.0) > 0.99, "{noise:?}");
    assert!(Noise::of(&[points(&[(0.0, 1.0)], &[(1.0, 2.0)])]).is_none());
    assert!(Noise::of(&[]).is_none());
}

#[test]
fn a_run_with_a_level_of_its_own_tells_nothing_and_is_as_uncertain() {
    let (a, b) = ([(0.0, 1.0), (1.0, 2.0), (2.0, 4.0)], [(3.0, 5.0)]);
    let in_group = hypothesis(&points(&a, &b), 2.0, 0.5);
    let mut alone = points(&a, &b);
    alone[3].group = None;
    let alone = hypothesis(&alone, 2.0, 0.5);
    let figures = |found: &Hypothesis| [found.likelihood, found.error, found.degrees];
    for (one, other) in figures(&in_group).iter().zip(figures(&alone)) {
        assert!((one - other).abs() < 1e-9, "{in_group:?} {alone:?}");
    }
}
