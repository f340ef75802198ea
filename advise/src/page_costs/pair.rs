//! How the two page costs are changed, so that a random page never costs less than a sequential one.
//!
//! Both are decided together. But what is advised for each is a statement of its own, of which people run
//! some and not others. So where one alone would put them in the wrong order, its statement has to set both.

use super::choose::CostPair;

/// What a page cost is changed to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CostChange {
    /// The value.
    pub value: f64,
    /// What the other one has to be set to at the same time, if this value alone would be on the wrong side
    /// of it.
    pub with: Option<f64>,
}

/// How `seq_page_cost` and `random_page_cost` change to a choice in which a random page costs no less than a
/// sequential one; None for what stays. Where a cost crosses what is set for the other, that changes, too.
pub fn changes(in_force: CostPair, chosen: CostPair) -> [Option<CostChange>; 2] {
    let CostPair { sequential, random } = chosen;
    let with_random = (sequential > in_force.random).then_some(random);
    let with_sequential = (random < in_force.sequential).then_some(sequential);
    [
        (sequential != in_force.sequential).then_some(CostChange { value: sequential, with: with_random }),
        (random != in_force.random).then_some(CostChange { value: random, with: with_sequential }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(sequential: f64, random: f64) -> CostPair {
        CostPair { sequential, random }
    }

    fn alone(value: f64) -> Option<CostChange> {
        Some(CostChange { value, with: None })
    }

    fn together(value: f64, other: f64) -> Option<CostChange> {
        Some(CostChange { value, with: Some(other) })
    }

    #[test]
    fn both_go_together_where_one_alone_would_cross_the_other() {
        for (in_force, chosen, sequential, random) in [
            (cell(1.0, 4.0), cell(2.3, 13.0), alone(2.3), alone(13.0)),
            (cell(1.0, 1.1), cell(2.0, 8.0), together(2.0, 8.0), alone(8.0)),
            (cell(5.0, 20.0), cell(1.0, 2.0), alone(1.0), together(2.0, 1.0)),
            (cell(1.0, 4.0), cell(1.0, 2.0), None, alone(2.0)),
            (cell(1.0, 4.0), cell(1.0, 4.0), None, None),
            // Out of the wrong order.
            (cell(2.0, 1.1), cell(2.0, 8.0), None, alone(8.0)),
            (cell(2.0, 1.1), cell(1.0, 1.1), alone(1.0), None),
        ] {
            assert_eq!(changes(in_force, chosen), [sequential, random], "{in_force:?}, {chosen:?}");
        }
    }

    /// What is in force after some of the statements.
    fn left(
        mut set: CostPair,
        pair: &[Option<CostChange>; 2],
        runs_sequential: bool,
        runs_random: bool,
    ) -> CostPair {
        if let (Some(CostChange { value, with }), true) = (pair[0], runs_sequential) {
            set = cell(value, with.unwrap_or(set.random));
        }
        if let (Some(CostChange { value, with }), true) = (pair[1], runs_random) {
            set = cell(with.unwrap_or(set.sequential), value);
        }
        set
    }

    /// Whichever statements are run, a random page costs no less than a sequential one.
    #[test]
    fn no_statements_leave_them_in_the_wrong_order() {
        let values = [0.1, 0.999, 1.0, 1.1, 2.024, 2.3, 4.0, 13.006, 80.0];
        let pairs = || values.into_iter().flat_map(|a| values.map(|b| cell(a, b)));
        let mut changed = 0;
        for set in pairs() {
            for chosen in pairs().filter(CostPair::is_in_order) {
                let pair = changes(set, chosen);
                for (runs_sequential, runs_random) in [(true, false), (false, true), (true, true)] {
                    let then = left(set, &pair, runs_sequential, runs_random);
                    changed += usize::from(then != set);
                    assert!(then == set || then.is_in_order(), "{set:?}, {pair:?}: {then:?}");
                }
                assert_eq!(left(set, &pair, true, true), chosen, "{set:?}, {pair:?}");
            }
        }
        assert!(changed > 1000, "{changed}");
    }
}
