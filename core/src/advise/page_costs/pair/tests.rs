use super::*;

const BOTH: MayChange = MayChange { sequential: true, random: true };
const SEQUENTIAL: MayChange = MayChange { sequential: true, random: false };
const RANDOM: MayChange = MayChange { sequential: false, random: true };

fn cell(sequential: f64, random: f64) -> Cell {
    Cell { sequential, random }
}

/// A cost that is known to a tenth.
fn known(value: f64) -> Cost {
    Cost { value, interval: Some((value * 0.9, value * 1.1)) }
}

/// One that is hardly known.
fn vague(value: f64) -> Cost {
    Cost { value, interval: Some((value * 0.5, value * 1.6)) }
}

fn alone(value: f64) -> Option<CostVerdict> {
    Some(CostVerdict::Set { value, with: None })
}

fn together(value: f64, other: f64) -> Option<CostVerdict> {
    Some(CostVerdict::Set { value, with: Some(other) })
}

/// The verdicts by these costs.
fn verdicts(in_force: Cell, wanted: MayChange, sequential: Cost, random: Cost) -> [Option<CostVerdict>; 2] {
    let pair = of_costs(in_force, wanted, Some(sequential), random);
    [pair.sequential, pair.random].map(|advised| advised.map(|advised| advised.verdict))
}

#[test]
fn either_alone_goes_by_what_stays() {
    // Random pages are set to less than what sequential ones take, and nobody asks for those.
    let set = cell(1.0, 1.1);
    assert_eq!(verdicts(set, SEQUENTIAL, known(2.3), known(13.0)), [Some(CostVerdict::OverRandom), None]);
    assert_eq!(verdicts(cell(1.0, 4.0), SEQUENTIAL, known(2.3), known(13.0)), [alone(2.3), None]);
    // What is set would be right, but for the other one.
    assert_eq!(
        verdicts(cell(2.3, 1.1), SEQUENTIAL, known(2.3), known(13.0)),
        [Some(CostVerdict::OverRandom), None]
    );
    // A random page is raised to what stays.
    assert_eq!(verdicts(cell(5.0, 9.0), RANDOM, known(1.0), known(2.0)), [None, alone(5.0)]);
    let raised = of_costs(cell(5.0, 9.0), RANDOM, None, known(2.0)).random.expect("advice");
    assert_eq!((raised.cost, raised.is_raised, raised.range), (5.0, true, Some((5.0, 5.0))));
}

#[test]
fn of_both_one_may_be_unknown() {
    let set = cell(1.0, 1.1);
    // Nothing is said of the random page, so it stays, below.
    assert_eq!(
        verdicts(set, BOTH, known(2.3), vague(13.0)),
        [Some(CostVerdict::OverRandom), Some(CostVerdict::Unsure)]
    );
    assert_eq!(
        verdicts(cell(1.0, 4.0), BOTH, known(2.3), vague(13.0)),
        [alone(2.3), Some(CostVerdict::Unsure)]
    );
    // The sequential page stays, and the random one is not below that.
    assert_eq!(
        verdicts(cell(5.0, 9.0), BOTH, vague(1.0), known(2.0)),
        [Some(CostVerdict::Unsure), alone(5.0)]
    );
    let unknown = Cost { value: 2.3, interval: None };
    assert_eq!(verdicts(set, BOTH, unknown, unknown), [Some(CostVerdict::Unsure); 2]);
}

#[test]
fn both_go_together_where_one_alone_would_cross_the_other() {
    assert_eq!(verdicts(cell(1.0, 4.0), BOTH, known(2.3), known(13.0)), [alone(2.3), alone(13.0)]);
    assert_eq!(verdicts(cell(1.0, 1.1), BOTH, known(2.3), known(13.0)), [together(2.3, 13.0), alone(13.0)]);
    assert_eq!(verdicts(cell(5.0, 20.0), BOTH, known(1.0), known(2.0)), [alone(1.0), together(2.0, 1.0)]);
    let verdicts = |in_force, chosen| {
        let pair = of_choice(in_force, BOTH, chosen);
        [pair.sequential, pair.random]
    };
    assert_eq!(verdicts(cell(1.0, 1.1), cell(2.0, 8.0)), [together(2.0, 8.0), alone(8.0)]);
    assert_eq!(verdicts(cell(5.0, 20.0), cell(1.0, 2.0)), [alone(1.0), together(2.0, 1.0)]);
    assert_eq!(verdicts(cell(1.0, 4.0), cell(1.0, 2.0)), [Some(CostVerdict::Keep), alone(2.0)]);
    assert_eq!(of_choice(cell(1.0, 4.0), RANDOM, cell(1.0, 2.0)).sequential, None);
}

#[test]
fn rounding_does_not_cross() {
    // To three digits it would be 2.02.
    assert_eq!(verdicts(cell(2.024, 4.0), RANDOM, known(1.0), known(2.0)), [None, alone(2.024)]);
    // And what rounds to what is set is no change.
    let tight = Cost { value: 4.001, interval: Some((4.0005, 4.0015)) };
    assert_eq!(verdicts(cell(1.0, 4.0), RANDOM, known(1.0), tight), [None, Some(CostVerdict::Keep)]);
}

/// What is in force after some of the statements.
fn left(mut set: Cell, pair: &CostPair<CostVerdict>, runs_sequential: bool, runs_random: bool) -> Cell {
    if let Some(CostVerdict::Set { value, with }) = pair.sequential.filter(|_| runs_sequential) {
        set = cell(value, with.unwrap_or(set.random));
    }
    if let Some(CostVerdict::Set { value, with }) = pair.random.filter(|_| runs_random) {
        set = cell(with.unwrap_or(set.sequential), value);
    }
    set
}

/// Whichever are asked for, known and run: a random page costs no less than a sequential one.
#[test]
fn no_statements_leave_them_in_the_wrong_order() {
    let values = [0.1, 0.999, 1.0, 1.1, 2.024, 2.3, 4.0, 13.006, 80.0];
    let mut changes = 0;
    let mut check = |set: Cell, pair: CostPair<CostVerdict>| {
        for (runs_sequential, runs_random) in [(true, false), (false, true), (true, true)] {
            let then = left(set, &pair, runs_sequential, runs_random);
            if then != set {
                changes += 1;
                assert!(then.random >= then.sequential, "{set:?}, {pair:?}: {then:?}");
            }
        }
        // Of a pair that stays in the wrong order neither is called right.
        if set.sequential > set.random && left(set, &pair, true, true) == set {
            assert!(
                [pair.sequential, pair.random].iter().all(|verdict| *verdict != Some(CostVerdict::Keep)),
                "{pair:?}"
            );
        }
    };
    let pairs = || values.into_iter().flat_map(|a| values.map(|b| cell(a, b)));
    for set in pairs() {
        for cost in pairs() {
            for wanted in [BOTH, SEQUENTIAL, RANDOM] {
                for sequential in [Some(known(cost.sequential)), Some(vague(cost.sequential)), None] {
                    for random in [known(cost.random), vague(cost.random)] {
                        let CostPair { sequential, random } = of_costs(set, wanted, sequential, random);
                        let verdict = |advised: Option<Advised>| advised.map(|advised| advised.verdict);
                        check(set, CostPair { sequential: verdict(sequential), random: verdict(random) });
                    }
                }
            }
            if cost.random >= cost.sequential {
                check(set, of_choice(set, BOTH, cost));
            }
        }
    }
    assert!(changes > 1000, "{changes}");
}
