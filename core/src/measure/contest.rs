//! Which of several contenders for a setting is the fastest.
//!
//! They take turns, see [`Rounds`]. Within a round each is compared with the one in force: what others do to
//! the device meanwhile cancels out. Over the rounds the median of these ratios counts, with an interval that
//! assumes nothing about their distribution. A round in which a turn was disturbed counts for none.

use std::ops::ControlFlow::{Break, Continue};

use crate::run::budget::{Budget, Limits, Stop};
use crate::run::rounds::{Contenders, Ended, Rounds, Turn};
use crate::stats::{Interval, MIN_FOR_MEDIAN, of_median};

/// Most rounds: more would say nothing new.
const MOST_ROUNDS: u64 = 40;

/// Number of unfit turns after which there is no use in going on, if no round counts by then.
const GIVE_UP_AFTER: u64 = 8;

/// What a turn gave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TurnResult {
    /// Nanoseconds for a unit of work.
    Took(f64),
    /// It was disturbed: its time is not what was to be measured.
    Unfit,
    /// There is nothing more to measure on.
    Exhausted,
    /// Something from outside ended it.
    Stopped(Stop),
}

/// What was found.
#[derive(Debug, Clone, Default)]
pub struct Contest {
    /// Of each round that counts, the time of each contender, in nanoseconds.
    pub rounds: Vec<Vec<f64>>,
    /// Turns that were not fit.
    pub unfit: u64,
    /// Did a rate limit make it pause between turns?
    pub paused: bool,
    /// What ended it for the whole call.
    pub stop: Option<Stop>,
    /// Did it end since there was nothing more to measure on?
    pub exhausted: bool,
}

impl Contest {
    /// Time of a contender over that of another one in the same round: median and 95 % interval. None for too
    /// few rounds.
    pub fn ratio(&self, contender: usize, to: usize) -> Option<Interval> {
        let ratios: Vec<f64> = self.rounds.iter().map(|round| round[contender] / round[to]).collect();
        of_median(&ratios)
    }

    /// Is the half-width of each ratio's interval within the share `wanted`?
    fn is_precise(&self, to: usize, wanted: Option<f64>) -> bool {
        let contenders = self.rounds.first().map_or(0, Vec::len);
        let is_narrow = |contender, wanted| {
            self.ratio(contender, to).is_some_and(|ratio| ratio.relative_half_width() <= wanted)
        };
        wanted.is_some_and(|wanted| contenders > 0 && (0..contenders).all(|c| is_narrow(c, wanted)))
    }
}

/// Lets `contenders` contenders take turns, of which `current` is the one in force. Each turn moves
/// `bytes_of_turn`.
///
/// `limits.duration` and `limits.max_bytes` bound all of it; what limits the rate or the time makes it pause
/// between turns, each of which runs at full speed.
pub fn contest<E>(
    contenders: usize,
    current: usize,
    bytes_of_turn: u64,
    limits: &Limits,
    budget: &mut Budget<'_>,
    turn: &mut TakeTurn<'_, E>,
) -> Result<Contest, E> {
    let mut budget = budget.part(limits);
    budget.pace(limits, bytes_of_turn);
    let bytes_of_round = bytes_of_turn.saturating_mul(contenders as u64).max(1);
    let rounds = Rounds::new((limits.max_bytes / bytes_of_round).min(MOST_ROUNDS), contenders);
    let mut race = Race {
        current,
        bytes_of_turn,
        precision: limits.precision,
        turn,
        times: vec![None; contenders],
        found: Contest::default(),
    };
    let ended = rounds.take(&mut race, &mut budget)?;
    let mut found = race.found;
    found.stop = ended.break_value().flatten().filter(|stop| stop.is_for_all());
    let rested = budget.pacer().rested_in_sum();
    budget.rest_until(rested);
    found.paused = budget.has_paused();
    Ok(found)
}

/// What takes a turn of a contender.
type TakeTurn<'a, E> = dyn FnMut(usize, &mut Budget<'_>) -> Result<TurnResult, E> + 'a;

/// A contest that is under way.
struct Race<'a, E> {
    current: usize,
    bytes_of_turn: u64,
    precision: Option<f64>,
    turn: &'a mut TakeTurn<'a, E>,
    /// Times of the present round.
    times: Vec<Option<f64>>,
    found: Contest,
}

impl<E> Contenders for Race<'_, E> {
    type Error = E;

    fn turn(&mut self, turn: Turn, budget: &mut Budget<'_>) -> Result<Ended, E> {
        if let Some(stop) = budget.wait() {
            return Ok(Break(Some(stop)));
        }
        let began = budget.clock().now();
        let taken = (self.turn)(turn.contender, budget)?;
        let busy = budget.clock().now() - began;
        budget.pacer().charge_in_sum(self.bytes_of_turn, busy);
        match taken {
            TurnResult::Took(ns) => self.times[turn.contender] = Some(ns),
            TurnResult::Unfit => self.found.unfit += 1,
            TurnResult::Exhausted => {
                self.found.exhausted = true;
                return Ok(Break(None));
            }
            TurnResult::Stopped(stop) => return Ok(Break(Some(stop))),
        }
        let is_hopeless = self.found.unfit >= GIVE_UP_AFTER && self.found.rounds.is_empty();
        Ok(if is_hopeless { Break(None) } else { Continue(()) })
    }

    fn is_enough(&mut self) -> bool {
        // All times are taken out: none is for another round.
        let times: Vec<Option<f64>> = self.times.iter_mut().map(Option::take).collect();
        self.found.rounds.extend(times.into_iter().collect::<Option<Vec<f64>>>());
        self.found.rounds.len() >= 2 * MIN_FOR_MEDIAN && self.found.is_precise(self.current, self.precision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    use crate::run::clock::{Clock, Manual};

    const LIMITS: Limits = Limits { duration: Duration::from_secs(10), ..Limits::none() };

    fn run(limits: &Limits, clock: &Manual, turn: &mut dyn FnMut(usize) -> TurnResult) -> Contest {
        let mut taken = |contender, _: &mut Budget<'_>| -> Result<TurnResult, ()> {
            clock.advance(1_000_000);
            Ok(turn(contender))
        };
        contest(3, 1, 1 << 20, limits, &mut Budget::unlimited(clock, &mut || None), &mut taken)
            .expect("no error")
    }

    #[test]
    fn a_drifting_disk_drifts_under_all() {
        // The disk becomes ten times slower, while the second takes 8, and the third 10 for each 10 of the
        // first.
        let (clock, mut order, mut speed) = (Manual::default(), Vec::new(), 1.0);
        let found = run(&LIMITS, &clock, &mut |contender| {
            order.push(contender);
            speed *= 1.02;
            TurnResult::Took(speed * [10.0, 8.0, 10.0][contender])
        });
        assert_eq!(order[..6], [0, 1, 2, 2, 1, 0]);
        assert_eq!(found.rounds.len() as u64, MOST_ROUNDS);
        let ratio = found.ratio(0, 1).expect("enough rounds");
        assert!((1.2..1.3).contains(&ratio.value) && ratio.low > 1.2 && ratio.high < 1.3, "{ratio:?}");
        let none = found.ratio(1, 1).expect("enough rounds");
        assert_eq!((none.low, none.high), (1.0, 1.0));
    }

    #[test]
    fn a_round_with_an_unfit_turn_counts_for_none() {
        let (clock, mut turns) = (Manual::default(), 0);
        let found = run(&LIMITS, &clock, &mut |_| {
            turns += 1;
            if turns % 6 == 0 { TurnResult::Unfit } else { TurnResult::Took(5.0) }
        });
        assert_eq!((found.rounds.len(), found.unfit), (20, 20));
        // The first is disturbed in each other round and the last in those between: none is whole.
        let (mut turns, mut rounds) = (0, 0);
        let found = run(&LIMITS, &clock, &mut |contender| {
            (turns, rounds) = (turns + 1, turns / 3);
            let disturbed = if rounds % 2 == 0 { 0 } else { 2 };
            if contender == disturbed { TurnResult::Unfit } else { TurnResult::Took(5.0) }
        });
        assert_eq!(found.rounds.len(), 0);
        let mut turns = 0;
        let found = run(&LIMITS, &clock, &mut |_| {
            turns += 1;
            TurnResult::Unfit
        });
        assert_eq!((turns, found.rounds.len()), (GIVE_UP_AFTER, 0));
        assert_eq!(found.ratio(0, 1), None);
    }

    #[test]
    fn each_bound_ends_it() {
        let clock = Manual::default();
        let rounds = |limits: Limits| {
            let found = run(&limits, &clock, &mut |_| TurnResult::Took(5.0));
            (found.rounds.len(), found.stop, found.paused)
        };
        assert_eq!(rounds(Limits { max_bytes: 10 << 20, ..LIMITS }), (3, None, false));
        assert_eq!(rounds(Limits { duration: Duration::from_millis(12), ..LIMITS }), (4, None, false));
        assert_eq!(rounds(Limits { precision: Some(0.01), ..LIMITS }), (12, None, false));
        let found = run(&LIMITS, &clock, &mut |_| TurnResult::Exhausted);
        assert_eq!((found.rounds.len(), found.stop), (0, None));
        let found = run(&LIMITS, &clock, &mut |_| TurnResult::Stopped(Stop::LockWaiter));
        assert_eq!(found.stop, Some(Stop::LockWaiter));
    }

    #[test]
    fn a_rate_limit_pauses_between_turns() {
        let clock = crate::run::clock::Monotonic;
        let limits = Limits { max_mib_s: Some(100), max_bytes: 6 << 20, ..LIMITS };
        let started = clock.now();
        let mut turn = |_, _: &mut Budget<'_>| -> Result<TurnResult, ()> { Ok(TurnResult::Took(1.0)) };
        let found = contest(3, 0, 1 << 20, &limits, &mut Budget::unlimited(&clock, &mut || None), &mut turn)
            .expect("no error");
        assert!(
            found.paused && clock.now() - started >= 49_000_000,
            "six turns of 1 MiB, the last due after 50 ms"
        );
        assert_eq!(found.rounds.len(), 2);
    }

    #[test]
    fn a_share_of_the_time_makes_it_rest_between_turns() {
        let clock = Manual::default();
        let limits = Limits { max_util: Some(0.1), max_bytes: 6 << 20, ..LIMITS };
        let mut turn = |_, _: &mut Budget<'_>| -> Result<TurnResult, ()> {
            clock.advance(1_000_000);
            Ok(TurnResult::Took(1.0))
        };
        let found = contest(3, 0, 1 << 20, &limits, &mut Budget::unlimited(&clock, &mut || None), &mut turn)
            .expect("no error");
        assert!(found.paused && found.rounds.len() == 2);
        // Six turns of a millisecond, with their rests.
        assert!((60_000_000..62_000_000).contains(&clock.now()), "{}", clock.now());
    }
}
