//! Which values of a ladder are as good as the best one.

use crate::stats::Interval;

/// Values within this share of the least time are as good.
const NEARLY: f64 = 0.97;

/// A value of a setting, and the time that it takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Choice {
    /// The value, in the setting's own unit.
    pub value: u64,
    /// Time of a unit of work, or its ratio to another one's, with its 95 % interval.
    pub time: Interval,
}

/// The values that are as good as the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plateau {
    /// The smallest and the largest of them.
    pub low: u64,
    /// See `low`.
    pub high: u64,
    /// The smallest whose mean is within 3 % of the least: what to set by who has to change.
    pub best: u64,
    /// Is what is set one of them?
    pub holds_current: bool,
}

/// Of `choices` those within 3 % of the fastest, or whose interval overlaps with its own; and whether the
/// value in force is one. None without choices, or if the value in force is none of them.
pub fn plateau(choices: &[Choice], current: u64) -> Option<Plateau> {
    let fastest = choices.iter().min_by(|a, b| a.time.value.total_cmp(&b.time.value))?.time;
    let is_near = |choice: &Choice| choice.time.value * NEARLY <= fastest.value;
    let is_on = |choice: &Choice| is_near(choice) || choice.time.low <= fastest.high;
    let on = || choices.iter().filter(|choice| is_on(choice)).map(|choice| choice.value);
    let in_force = choices.iter().find(|choice| choice.value == current)?;
    Some(Plateau {
        low: on().min()?,
        high: on().max()?,
        best: choices.iter().filter(|choice| is_near(choice)).map(|choice| choice.value).min()?,
        holds_current: is_on(in_force),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(value: u64, time: f64, half: f64) -> Choice {
        Choice { value, time: Interval { value: time, low: time - half, high: time + half } }
    }

    #[test]
    fn the_smallest_that_is_nearly_best_is_recommended() {
        let choices =
            [choice(8, 20.0, 0.1), choice(16, 10.2, 0.1), choice(32, 10.0, 0.1), choice(64, 11.0, 0.1)];
        let found = plateau(&choices, 8).expect("a plateau");
        assert_eq!(found, Plateau { low: 16, high: 32, best: 16, holds_current: false });
        assert!(plateau(&choices, 16).expect("a plateau").holds_current);
        assert!(!plateau(&choices, 64).expect("a plateau").holds_current);
    }

    #[test]
    fn within_the_noise_nothing_is_better() {
        let choices = [choice(8, 12.0, 1.5), choice(16, 10.0, 1.0), choice(32, 14.0, 0.5)];
        let found = plateau(&choices, 8).expect("a plateau");
        assert_eq!(found, Plateau { low: 8, high: 16, best: 16, holds_current: true });
        assert!(!plateau(&choices, 32).expect("a plateau").holds_current);
    }

    #[test]
    fn what_was_not_measured_can_t_be_compared() {
        assert_eq!(plateau(&[], 8), None);
        assert_eq!(plateau(&[choice(16, 10.0, 1.0)], 8), None);
    }
}
