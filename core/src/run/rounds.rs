//! Contenders take turns, so that a device whose speed drifts drifts under all of them.
//!
//! One after the other, the last would be compared with what the device was a minute before. A round is one
//! turn of each: there and back, so that none always comes after the same other one, or always later; or in
//! the order that is given. References are contenders that all others are compared with: they have a turn
//! before each few of the others.
//!
//! What a turn does, what it uses of the budget and what is known in the end is up to the [`Contenders`].

use std::ops::ControlFlow;

use crate::run::budget::{Budget, Stop};

/// Which turns there are.
#[derive(Debug, Clone, Copy)]
pub struct Rounds {
    rounds: u64,
    contenders: usize,
    /// Contenders before them, and how many of the others come after their turns.
    references: usize,
    group: usize,
    there_and_back: bool,
}

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Its number, the first being 1, and of how many.
    pub number: u64,
    /// How many there are, with those that nobody takes.
    pub of: u64,
    /// The round, the first being 0.
    pub round: u64,
    /// Whose it is; the references come before the others.
    pub contender: usize,
}

/// Why there are no more turns: None where there is nothing left to do, Continue where all were taken.
pub type Ended = ControlFlow<Option<Stop>>;

/// Who takes turns.
pub trait Contenders {
    /// What may fail.
    type Error;

    /// Has this one nothing more to do?
    fn is_over(&self, _contender: usize) -> bool {
        false
    }

    /// Takes a turn. Breaks when there are to be no more of anyone.
    fn turn(&mut self, turn: Turn, budget: &mut Budget<'_>) -> Result<Ended, Self::Error>;

    /// Is all known well enough, or in vain? Asked after each round, and where there are references, after
    /// each turn of them with the others that follow it.
    fn is_enough(&mut self) -> bool {
        false
    }
}

impl Rounds {
    /// So many rounds of so many contenders, there and back.
    pub fn new(rounds: u64, contenders: usize) -> Self {
        Self { rounds, contenders, references: 0, group: contenders.max(1), there_and_back: true }
    }

    /// The same, but each round in the order that is given.
    pub fn as_given(self) -> Self {
        Self { there_and_back: false, ..self }
    }

    /// The same with so many references, which have a turn each before so many of the others.
    pub fn with_references(self, references: usize, before: usize) -> Self {
        Self { references, group: before.max(1), ..self }
    }

    /// Has them taken.
    ///
    /// # Errors
    /// The first of a turn.
    pub fn take<C: Contenders>(&self, who: &mut C, budget: &mut Budget<'_>) -> Result<Ended, C::Error> {
        let groups = self.contenders.div_ceil(self.group).max(1);
        let turns = self.contenders + groups * self.references;
        let of = self.rounds.saturating_mul(turns as u64);
        let mut number = 0;
        for round in (0..self.rounds).take_while(|_| turns > 0) {
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

    /// Whose turns make a group.
    fn group_of(self, round: u64, group: usize) -> impl Iterator<Item = usize> {
        let is_back = self.there_and_back && round % 2 == 1;
        let places = group * self.group..self.contenders.min((group + 1) * self.group);
        let contender = move |place| if is_back { self.contenders - 1 - place } else { place };
        (0..self.references).chain(places.map(move |place| self.references + contender(place)))
    }
}

/// When to look whether all is precise: an interval takes time, and is hardly narrower than a turn before.
/// After so many turns at first, then whenever half as many more were made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Looks {
    next: u64,
}

impl Looks {
    pub(crate) fn from(turns: u64) -> Self {
        Self { next: turns }
    }

    /// Is one due after so many turns?
    pub(crate) fn are_due(&mut self, turns: u64) -> bool {
        let due = turns >= self.next;
        if due {
            self.next = turns + turns / 2;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::budget::Budget;
    use crate::run::clock::Manual;

    /// Those that took a turn, until there were so many turns.
    struct Order {
        taken: Vec<usize>,
        most: usize,
        over: Option<usize>,
        enough: usize,
    }

    impl Contenders for Order {
        type Error = ();

        fn is_over(&self, contender: usize) -> bool {
            self.over == Some(contender)
        }

        fn turn(&mut self, turn: Turn, _budget: &mut Budget<'_>) -> Result<Ended, ()> {
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

    #[test]
    fn looks_get_rarer() {
        let mut looks = Looks::from(6);
        let due: Vec<u64> = (1..=30).filter(|&turns| looks.are_due(turns)).collect();
        assert_eq!(due, [6, 9, 13, 19, 28]);
    }
}
