//! From EXPLAIN's times, which add up processes, to the wall clock.
//!
//! EXPLAIN gives a node's time as the mean of its loops, and each process is a loop. Average times loops is
//! thus the time of all processes together. Below a Gather they run side by side, so the wall clock is the
//! mean of the processes: that sum divided by how many there were.
//!
//! # Limitations and caveats
//! * How many there were is how often the Gather's child was started each time that the Gather was. A mean of
//!   several times is rounded to be shown.
//! * The mean hides that one process took longer than another. The Gather waits for the last: what it waited
//!   is the Gather's own time. A plan below a Parallel Append that one process ran alone counts as if all had
//!   shared it.
//! * Workers go on while the nodes above their Gather work. Such time is in no node of the leader, and
//!   averages of many loops are rounded upwards as well as down. So the nodes below a node are never given
//!   more than the node: where they are beyond it, all below it shrink alike.
//! * A subplan that is printed below a Gather itself was run by the leader. One that is printed further down
//!   was run by each process.

use super::ledger::TIME;
use super::{JsonNode, NodeFigures};

/// How many processes ran a part of a plan: its starts over the runs of the Gather.
#[derive(Debug, Clone, Copy)]
struct Processes {
    starts: u64,
    runs: u64,
}

impl Processes {
    const ONE: Processes = Processes { starts: 1, runs: 1 };

    /// The processes of the child of a Gather.
    fn of(gather: &NodeFigures, child: &NodeFigures) -> Self {
        match (child.loops, gather.loops) {
            (Some(starts), Some(runs)) if starts > runs && runs > 0 => Self { starts, runs },
            _ => Self::ONE,
        }
    }

    fn mean(self, sum: u64) -> u64 {
        // No larger than the sum, since the starts are never fewer.
        (u128::from(sum) * u128::from(self.runs) / u128::from(self.starts)) as u64
    }

    fn rounded(self) -> u64 {
        self.starts.saturating_add(self.runs / 2) / self.runs
    }
}

/// Sets how many processes ran each node, and makes the times of all processes those of the wall clock.
pub(super) fn apply(items: &[JsonNode], figures: &mut [NodeFigures]) {
    let mut processes: Vec<Processes> = Vec::with_capacity(items.len());
    for (position, item) in items.iter().enumerate() {
        let here = match item.parent {
            None => Processes::ONE,
            Some(parent) if items[parent].gathers() && !item.is_detached() => {
                Processes::of(&figures[parent], &figures[position])
            }
            Some(parent) => processes[parent],
        };
        processes.push(here);
        figures[position].processes = figures[position].loops.map(|_| here.rounded());
    }
    let means: Vec<Option<u64>> = figures
        .iter()
        .zip(&processes)
        .map(|(node, here)| node.inclusive[TIME].map(|sum| here.mean(sum)))
        .collect();
    let walls = fitted(items, &means);
    figures.iter_mut().zip(walls).for_each(|(node, wall)| node.inclusive[TIME] = wall);
}

/// Times of which those of a node's children are together no more than the node's.
fn fitted(items: &[JsonNode], means: &[Option<u64>]) -> Vec<Option<u64>> {
    let mut children = vec![0_u128; items.len()];
    for (item, mean) in items.iter().zip(means) {
        if let Some(parent) = item.parent.filter(|_| !item.is_detached()) {
            children[parent] += u128::from(mean.unwrap_or(0));
        }
    }
    let mut walls = means.to_vec();
    // What remains for further children, and by what those are shortened.
    let (mut remaining, mut factors) = (vec![None; items.len()], vec![1.0_f64; items.len()]);
    for (position, item) in items.iter().enumerate() {
        let mut factor = item.parent.map_or(1.0, |parent| factors[parent]);
        let bound = item.parent.filter(|_| !item.is_detached());
        if let Some((parent, whole)) = bound.and_then(|parent| Some((parent, means[parent]?)))
            && children[parent] > u128::from(whole)
        {
            factor *= whole as f64 / children[parent] as f64;
        }
        factors[position] = factor;
        let shortened =
            means[position].map(|mean| if factor < 1.0 { (mean as f64 * factor) as u64 } else { mean });
        walls[position] = shortened.map(|wall| match bound.and_then(|parent| remaining[parent].as_mut()) {
            Some(left) => {
                let wall = wall.min(*left);
                *left -= wall;
                wall
            }
            None => wall,
        });
        remaining[position] = walls[position];
    }
    walls
}
