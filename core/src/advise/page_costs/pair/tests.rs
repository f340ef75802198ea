use super::*;

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

fn alone(value: f64) -> CostVerdict {
    CostVerdict::Set { value, with: None }
}

fn together(value: f64, other: f64) -> CostVerdict {
    CostVerdict::Set { value, with: Some(other) }
}

/// The verdicts by these costs.
fn verdicts(in_force: Cell, sequential: Cost, random: Cost) -> [CostVerdict; 2] {
    let pair = of_costs(in_force, Some(sequential), random);
    [pair.sequential.expect("advice").verdict, pair.random.verdict]
}

#[test]
fn without_its_cost_the_unit_stays() {
    // A random page is raised to what stays.
    let CostPair { sequential, random } = of_costs(cell(5.0, 9.0), None, known(2.0));
    assert_eq!((sequential, random.verdict), (None, alone(5.0)));
    assert_eq!((random.cost, random.is_raised, random.range), (5.0, true, Some((5.0, 5.0))));
}

#[test]
fn of_both_one_may_be_unknown() {
    let set = cell(1.0, 1.1);
    // Nothing is said of the random page, so it stays, below.
    assert_eq!(verdicts(set, known(2.3), vague(13.0)), [CostVerdict::OverRandom, CostVerdict::Unsure]);
    assert_eq!(
        verdicts(cell(2.3, 1.1), known(2.3), vague(13.0)),
        [CostVerdict::OverRandom, CostVerdict::Unsure]
    );
    assert_eq!(verdicts(cell(1.0, 4.0), known(2.3), vague(13.0)), [alone(2.3), CostVerdict::Unsure]);
    // The sequential page stays, and the random one is not below that.
    assert_eq!(verdicts(cell(5.0, 9.0), vague(1.0), known(2.0)), [CostVerdict::Unsure, alone(5.0)]);
    let unknown = Cost { value: 2.3, interval: None };
    assert_eq!(verdicts(set, unknown, unknown), [CostVerdict::Unsure; 2]);
}

#[test]
fn both_go_together_where_one_alone_would_cross_the_other() {
    assert_eq!(verdicts(cell(1.0, 4.0), known(2.3), known(13.0)), [alone(2.3), alone(13.0)]);
    assert_eq!(verdicts(cell(1.0, 1.1), known(2.3), known(13.0)), [together(2.3, 13.0), alone(13.0)]);
    assert_eq!(verdicts(cell(5.0, 20.0), known(1.0), known(2.0)), [alone(1.0), together(2.0, 1.0)]);
    let verdicts = |in_force, chosen| {
        let pair = of_choice(in_force, chosen);
        [pair.sequential, pair.random]
    };
    assert_eq!(verdicts(cell(1.0, 1.1), cell(2.0, 8.0)), [together(2.0, 8.0), alone(8.0)]);
    assert_eq!(verdicts(cell(5.0, 20.0), cell(1.0, 2.0)), [alone(1.0), together(2.0, 1.0)]);
    assert_eq!(verdicts(cell(1.0, 4.0), cell(1.0, 2.0)), [CostVerdict::Keep, alone(2.0)]);
}

#[test]
fn rounding_does_not_cross() {
    let random = |in_force, cost| of_costs(in_force, None, cost).random.verdict;
    // To three digits it would be 2.02.
    assert_eq!(random(cell(2.024, 4.0), known(1.0)), alone(2.024));
    // And what is within 5 % is no change, however well it is known.
    let tight = |value| Cost { value, interval: Some((value - 0.001, value + 0.001)) };
    assert_eq!(random(cell(1.0, 4.0), tight(4.19)), CostVerdict::Keep);
    assert_eq!(random(cell(1.0, 4.0), tight(4.21)), alone(4.21));
}

/// What is in force after some of the statements.
fn left(
    mut set: Cell,
    pair: &CostPair<CostVerdict, CostVerdict>,
    runs_sequential: bool,
    runs_random: bool,
) -> Cell {
    if let (CostVerdict::Set { value, with }, true) = (pair.sequential, runs_sequential) {
        set = cell(value, with.unwrap_or(set.random));
    }
    if let (CostVerdict::Set { value, with }, true) = (pair.random, runs_random) {
        set = cell(with.unwrap_or(set.sequential), value);
    }
    set
}

/// Whichever are known and run: a random page costs no less than a sequential one.
#[test]
fn no_statements_leave_them_in_the_wrong_order() {
    let values = [0.1, 0.999, 1.0, 1.1, 2.024, 2.3, 4.0, 13.006, 80.0];
    let mut changes = 0;
    let mut check = |set: Cell, pair: CostPair<CostVerdict, CostVerdict>| {
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
                [pair.sequential, pair.random].iter().all(|verdict| *verdict != CostVerdict::Keep),
                "{pair:?}"
            );
        }
    };
    let pairs = || values.into_iter().flat_map(|a| values.map(|b| cell(a, b)));
    for set in pairs() {
        for cost in pairs() {
            for sequential in [Some(known(cost.sequential)), Some(vague(cost.sequential)), None] {
                for random in [known(cost.random), vague(cost.random)] {
                    let CostPair { sequential, random } = of_costs(set, sequential, random);
                    let sequential = sequential.map_or(CostVerdict::Unsure, |advised| advised.verdict);
                    check(set, CostPair { sequential, random: random.verdict });
                }
            }
            if cost.random >= cost.sequential {
                check(set, of_choice(set, cost));
            }
        }
    }
    assert!(changes > 1000, "{changes}");
}
