//! Contenders take turns, so that a device whose speed drifts drifts under all of them.
//!
//! One after the other, the last would be compared with what the device was a minute before. A round is one
//! turn of each. Every second round has them in reverse order, so that none always comes after the same other
//! one, or always later; or all rounds have them in the order that is given. References are contenders that
//! all others are compared with: they have a turn before each few of the others.
//!
//! What a turn does, what it uses of the budget and what is known in the end is up to the [`Contenders`].

use std::ops::ControlFlow;

use crate::Result;
use crate::run::budget::{Budget, Stop};

/// Which turns are taken, and in which order.
#[derive(Debug, Clone, Copy)]
pub struct Rounds {
    rounds: u64,
    /// Which of them are taken.
    from: u64,
    until: u64,
    contenders: usize,
    /// Contenders before them, and how many of the others come after their turns.
    references: usize,
    group: usize,
    there_and_back: bool,
}

/// One turn of a contender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Its number, the first being 1.
    pub number: u64,
    /// Number of all turns, with those of contenders that have nothing more to do.
    pub of: u64,
    /// The round, the first being 0.
    pub round: u64,
    /// The contender's index; references come before the others.
    pub contender: usize,
}

/// Why there are no more turns: None where there is nothing left to do, Continue where all were taken.
pub type Ended = ControlFlow<Option<Stop>>;

/// The contenders of [`Rounds`], which take the turns.
pub trait Contenders {
    /// Has this contender nothing more to do?
    fn is_over(&self, _contender: usize) -> bool {
        false
    }

    /// Takes a turn. Breaks when no contender is to have any more.
    fn turn(&mut self, turn: Turn, budget: &mut Budget<'_>) -> Result<Ended>;

    /// Is all known well enough, or are more turns in vain? Asked after each round, and where there are
    /// references, after each turn of them with the others that follow it.
    fn is_enough(&mut self) -> bool {
        false
    }
}

impl Rounds {
    /// `rounds` rounds of `contenders` contenders, every second one in reverse order.
    pub fn new(rounds: u64, contenders: usize) -> Self {
        let group = contenders.max(1);
        Self { rounds, from: 0, until: rounds, contenders, references: 0, group, there_and_back: true }
    }

    /// Takes the first of these rounds only.
    pub fn first(self) -> Self {
        self.only(0)
    }

    /// Takes all but the first of these rounds.
    pub fn after_first(self) -> Self {
        Self { from: 1, ..self }
    }

    /// Takes one of these rounds only.
    pub fn only(self, round: u64) -> Self {
        Self { from: round, until: self.rounds.min(round + 1), ..self }
    }

    /// Takes every round in the order that is given.
    pub fn as_given(self) -> Self {
        Self { there_and_back: false, ..self }
    }

    /// Adds `references` references, which have a turn each before every `before` of the others.
    pub fn with_references(self, references: usize, before: usize) -> Self {
        Self { references, group: before.max(1), ..self }
    }

    /// Has `who` take the turns.
    ///
    /// # Errors
    /// The first error of a turn.
    pub fn take(&self, who: &mut impl Contenders, budget: &mut Budget<'_>) -> Result<Ended> {
        let groups = self.contenders.div_ceil(self.group).max(1);
        let turns = self.contenders + groups * self.references;
        let of = self.rounds.saturating_mul(turns as u64);
        let mut number = self.from * turns as u64;
        for round in (self.from..self.until).take_while(|_| turns > 0) {
            for group in 0..groups {
                for contender in self.group_of(round, group) {
                    number += 1;
                    if who.is_over(contender) {
                        continue;
                    }
                    let ended = who.turn(Turn { number, of, round, contender }, budget)?;
                    if ended.is_break() {
                        return Ok(ended);
                    }
                }
                if who.is_enough() {
                    return Ok(Ended::Break(Some(Stop::Precise)));
                }
            }
        }
        Ok(Ended::Continue(()))
    }

    /// The contenders whose turns make a group of a round.
    fn group_of(self, round: u64, group: usize) -> impl Iterator<Item = usize> {
        let is_back = self.there_and_back && round % 2 == 1;
        let places = group * self.group..self.contenders.min((group + 1) * self.group);
        let others = places.map(move |place| if is_back { self.contenders - 1 - place } else { place });
        (0..self.references).chain(others.map(move |contender| self.references + contender))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::budget::Budget;
    use crate::run::clock::Manual;

    /// Records the contenders that took a turn, and ends after `most` turns.
    struct Order {
        taken: Vec<usize>,
        most: usize,
        over: Option<usize>,
        enough: usize,
    }

    impl Contenders for Order {
        fn is_over(&self, contender: usize) -> bool {
            self.over == Some(contender)
        }

        fn turn(&mut self, turn: Turn, _budget: &mut Budget<'_>) -> Result<Ended> {
            self.taken.push(turn.contender);
            assert!(turn.number <= turn.of && turn.number as usize >= self.taken.len());
            Ok(if self.taken.len() < self.most { Ended::Continue(()) } else { Ended::Break(None) })
        }

        fn is_enough(&mut self) -> bool {
            self.taken.len() >= self.enough
        }
    }

    fn taken(rounds: Rounds, mut order: Order) -> (Vec<usize>, Ended) {
        let clock = Manual::default();
        let mut should_stop = || None;
        let mut budget = Budget::unlimited(&clock, &mut should_stop);
        let ended = rounds.take(&mut order, &mut budget).expect("no error");
        (order.taken, ended)
    }

    const ALL: Order = Order { taken: Vec::new(), most: usize::MAX, over: None, enough: usize::MAX };

    #[test]
    fn there_and_back_or_as_given() {
        let rounds = Rounds::new(3, 3);
        assert_eq!(taken(rounds, ALL), (vec![0, 1, 2, 2, 1, 0, 0, 1, 2], Ended::Continue(())));
        assert_eq!(taken(rounds.as_given(), ALL).0, [0, 1, 2, 0, 1, 2, 0, 1, 2]);
        // In two parts.
        assert_eq!(taken(rounds.first(), ALL).0, [0, 1, 2]);
        assert_eq!(taken(rounds.after_first(), ALL).0, [2, 1, 0, 0, 1, 2]);
        assert_eq!(taken(rounds.only(1), ALL).0, [2, 1, 0]);
        assert_eq!(taken(Rounds::new(0, 3).after_first(), ALL).0, Vec::<usize>::new());
        assert_eq!(taken(Rounds::new(u64::MAX, 0), ALL), (Vec::new(), Ended::Continue(())));
    }

    #[test]
    fn references_come_before_each_few_of_the_others() {
        let rounds = Rounds::new(2, 3).with_references(2, 2);
        let of_two_rounds = vec![0, 1, 2, 3, 0, 1, 4, 0, 1, 4, 3, 0, 1, 2];
        assert_eq!(taken(rounds, ALL), (of_two_rounds, Ended::Continue(())));
        // Also where there are no others.
        assert_eq!(taken(Rounds::new(2, 0).with_references(1, 2), ALL).0, [0, 0]);
    }

    #[test]
    fn it_ends_when_one_breaks_or_all_is_known() {
        let rounds = Rounds::new(3, 3);
        assert_eq!(taken(rounds, Order { most: 2, ..ALL }), (vec![0, 1], Ended::Break(None)));
        let precise = Ended::Break(Some(Stop::Precise));
        assert_eq!(taken(rounds, Order { enough: 4, ..ALL }), (vec![0, 1, 2, 2, 1, 0], precise));
        assert_eq!(taken(rounds, Order { over: Some(1), ..ALL }).0, [0, 2, 2, 0, 0, 2]);
    }
}
