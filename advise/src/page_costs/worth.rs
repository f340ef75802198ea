//! Which of many indexes the planner is asked about, where there is no time for all.

use std::time::Duration;

/// How many times `each` fits into what is left, at least once.
pub fn fitting(left: Duration, each: Duration) -> usize {
    usize::try_from(left.as_nanos() / each.as_nanos().max(1)).unwrap_or(usize::MAX).max(1)
}

/// The `room` items that lose most, in the order in which they came, and the others.
pub fn most_losing<T>(items: Vec<(f64, T)>, room: usize) -> (Vec<T>, Vec<T>) {
    let mut places: Vec<usize> = (0..items.len()).collect();
    // Of those that lose as much the first.
    places.sort_by(|a, b| items[*b].0.total_cmp(&items[*a].0));
    places.truncate(room);
    let (mut kept, mut others) = (Vec::new(), Vec::new());
    for (place, (_, item)) in items.into_iter().enumerate() {
        if places.contains(&place) {
            kept.push(item);
        } else {
            others.push(item);
        }
    }
    (kept, others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_lose_most_are_kept_and_none_is_lost() {
        let items = || vec![(0.1, 'a'), (1.0, 'b'), (0.1, 'c'), (0.5, 'd')];
        assert_eq!(most_losing(items(), 2), (vec!['b', 'd'], vec!['a', 'c']));
        assert_eq!(most_losing(items(), 3), (vec!['a', 'b', 'd'], vec!['c']));
        assert_eq!(most_losing(items(), 9), (vec!['a', 'b', 'c', 'd'], vec![]));
    }

    #[test]
    fn as_many_are_asked_about_as_time_allows() {
        let fit = |left, each| fitting(Duration::from_millis(left), Duration::from_millis(each));
        assert_eq!([fit(1000, 100), fit(299, 100), fit(50, 100), fit(0, 100)], [10, 2, 1, 1]);
        assert!(fit(1000, 0) > 1000);
    }
}
