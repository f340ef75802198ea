//! Which reads with gaps are measured where turns are slow: the order of their importance, and how many have
//! room in the time.
//!
//! Each point needs several turns, or it has no interval. So the first round goes from the most important on,
//! and tells by its own turns how many points may have as many rounds as that takes. A first round takes
//! longer than others: where these let expect room for more points, more are taken.

use std::time::Duration;

/// Rounds that have to have room, or another point is left out: with fewer turns an interval says little.
const LEAST_ROUNDS: f64 = 5.0;

/// Rounds that have to have room for further points to be taken: these may take longer than those before.
const ROUNDS_OF_MORE: f64 = 7.5;

/// Concurrencies and densities that are measured in any case: fewer make no curve. With 0 and 1, which are
/// nearly the same, a third one is.
const LEAST_CONCURRENCIES: usize = 2;
const LEAST_DENSITIES: usize = 3;

/// The points, by their places in the run, the most important first.
#[derive(Debug)]
pub(super) struct Points {
    /// Concurrency and density of each.
    all: Vec<(usize, usize)>,
    /// How many points there are after each stage: with the same densities at each concurrency.
    stages: Vec<usize>,
    /// How many of them it takes to have some at each concurrency.
    at_each: usize,
    /// How many are taken; the others are left out.
    taken: usize,
}

impl Points {
    /// Points at these concurrencies, the most important first, and at these densities.
    pub(super) fn of(concurrencies: &[u32], densities: &[f64]) -> Self {
        let densities = by_span(densities);
        let (few, more) = densities.split_at(densities.len().min(LEAST_DENSITIES));
        let up_to_a_high_one = concurrencies.iter().take_while(|concurrency| **concurrency <= 1).count() + 1;
        let concurrencies = concurrencies.len();
        let first = up_to_a_high_one.max(LEAST_CONCURRENCIES).min(concurrencies);
        let mut points = Self { all: Vec::new(), stages: Vec::new(), at_each: 0, taken: 0 };
        points.add_stage(0..first, few);
        (first..concurrencies).for_each(|concurrency| points.add_stage(concurrency..concurrency + 1, few));
        points.at_each = points.all.len();
        more.iter().for_each(|density| points.add_stage(0..concurrencies, &[*density]));
        points
    }

    fn add_stage(&mut self, concurrencies: std::ops::Range<usize>, densities: &[usize]) {
        self.all.extend(concurrencies.flat_map(|c| densities.iter().map(move |density| (c, *density))));
        self.stages.push(self.all.len());
        self.taken = self.all.len();
    }

    /// How many are taken: all, until some are left out.
    pub(super) fn len(&self) -> usize {
        self.taken
    }

    pub(super) fn at(&self, index: usize) -> (usize, usize) {
        self.all[index]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, usize)> {
        self.all[..self.taken].iter().copied()
    }

    /// Those that are left out.
    pub(super) fn left_out(&self) -> &[(usize, usize)] {
        &self.all[self.taken..]
    }

    /// Is there room for the stage that begins with this point, if those before it took `gone` of the time?
    pub(super) fn has_room(&self, point: usize, gone: f64) -> bool {
        let stage = self.stages.iter().position(|end| *end == point);
        let Some(end) = stage.and_then(|stage| self.stages.get(stage + 1)) else { return true };
        point == 0 || gone * *end as f64 / point as f64 * LEAST_ROUNDS <= 1.0
    }

    /// How many points there are at the end of the stage that the last of so many is in.
    pub(super) fn end_of_stage(&self, points: usize) -> usize {
        self.stages.iter().copied().find(|end| *end >= points).unwrap_or(self.len())
    }

    /// Leaves out all from this point on.
    pub(super) fn leave_out(&mut self, from: usize) {
        self.taken = from.min(self.all.len());
    }

    /// Takes the stages as well that have room in the time that is left, if a round of those that are taken
    /// lasts so long.
    pub(super) fn take_more(&mut self, round: Duration, left: Duration) {
        let rounds = |points: usize| ROUNDS_OF_MORE * points as f64 / self.taken.max(1) as f64;
        let with_room = self.stages.iter().copied().filter(|end| round.mul_f64(rounds(*end)) <= left);
        self.taken = with_room.fold(self.taken, usize::max);
    }

    /// How many turns those that are taken should have, all together.
    pub(super) fn turns(&self) -> f64 {
        LEAST_ROUNDS * self.len() as f64
    }

    /// How many turns it takes to know each concurrency, if one is left out.
    pub(super) fn turns_at_each(&self) -> Option<f64> {
        (self.taken < self.at_each).then_some(ROUNDS_OF_MORE * self.at_each as f64)
    }
}

/// The places of these densities: both ends, and then the one that is furthest from all before it, by the
/// logarithm.
fn by_span(densities: &[f64]) -> Vec<usize> {
    let mut left: Vec<usize> = (0..densities.len()).collect();
    left.sort_by(|a, b| densities[*a].total_cmp(&densities[*b]));
    let mut taken: Vec<usize> = (!left.is_empty()).then(|| left.remove(0)).into_iter().collect();
    while !left.is_empty() {
        let off = |place: usize| {
            let each = taken.iter().map(|taken| (densities[place] / densities[*taken]).ln().abs());
            each.fold(f64::INFINITY, f64::min)
        };
        let furthest = (0..left.len()).rev().max_by(|a, b| off(left[*a]).total_cmp(&off(left[*b])));
        taken.push(left.remove(furthest.unwrap_or(0)));
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    const DENSITIES: [f64; 7] = [0.03, 0.1, 0.2, 0.35, 0.5, 0.72, 1.0];

    #[test]
    fn densities_that_span_the_curve_come_first() {
        let order: Vec<f64> = by_span(&DENSITIES).into_iter().map(|place| DENSITIES[place]).collect();
        assert_eq!(order, [0.03, 1.0, 0.2, 0.1, 0.5, 0.35, 0.72]);
        assert_eq!(by_span(&[]), Vec::<usize>::new());
        assert_eq!(by_span(&[0.5, 0.1]), [1, 0]);
    }

    #[test]
    fn concurrencies_come_before_more_densities() {
        let points = Points::of(&[16, 0, 64, 128], &DENSITIES);
        assert_eq!(points.stages, [6, 9, 12, 16, 20, 24, 28]);
        assert_eq!(points.len(), 28);
        assert!(
            points
                .iter()
                .take(6)
                .all(|(concurrency, density)| concurrency < 2 && [0, 2, 6].contains(&density))
        );
        assert_eq!(Points::of(&[1, 0, 10, 64], &DENSITIES).stages, [9, 12, 16, 20, 24, 28]);
        assert_eq!(Points::of(&[0], &[0.5]).stages, [1]);
        assert_eq!(Points::of(&[], &DENSITIES).len(), 0);
    }

    #[test]
    fn a_stage_has_room_if_all_has_room_often_enough() {
        let points = Points::of(&[16, 0, 64, 128], &DENSITIES);
        // Nine points in place of six: by hand, 0.13 · 9 / 6 · 5 is 0.975.
        assert!(points.has_room(6, 0.13) && !points.has_room(6, 0.14));
        assert_eq!([0, 6, 7, 28, 29].map(|taken| points.end_of_stage(taken)), [6, 6, 9, 28, 28]);
        let mut few = Points::of(&[16, 0, 64, 128], &DENSITIES);
        few.leave_out(6);
        assert_eq!((few.len(), few.left_out().len()), (6, 22));
        assert_eq!((few.turns(), few.turns_at_each()), (30.0, Some(90.0)));
        // By hand: a round of twelve would take 0.1, and 7.5 of them 0.75; one of 16 takes 0.133.
        let seconds = Duration::from_secs_f64;
        few.take_more(seconds(0.05), seconds(0.76));
        assert_eq!((few.len(), few.iter().count(), few.turns_at_each()), (12, 12, None));
        // What is taken stays so.
        few.take_more(seconds(0.2), seconds(0.1));
        assert_eq!(few.len(), 12);
        // Within a stage, and before the first, there always is.
        assert!(points.has_room(5, 0.9) && points.has_room(7, 0.9) && points.has_room(0, 0.9));
    }
}
