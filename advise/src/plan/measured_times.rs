//! The times that the nodes of a plan took themselves, as measured in each process, on the wall clock.
//!
//! Below a Gather processes run side by side: a node has the mean over them. What the leader spent down there
//! beyond the mean is the Gather's own time, as what it waited for the workers is, so that all nodes together
//! have the leader's time, which is the query's.
//!
//! # Limitations and caveats
//! - Workers go on while the nodes above their Gather work. Such time is in no node of the leader: where they
//!   are beyond what it spent in the Gather and below it, all below shrink alike.

use io_probe_surface::explain::ExplainRow;

use super::{Node, naming};

/// What a node took itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnTime {
    /// In all processes.
    pub ns: u64,
    /// In the leader.
    pub leader_ns: u64,
}

/// Gives the nodes of a plan their own times and those of all below them. Their times of I/O, which are sums
/// over the processes, shrink as these do.
pub fn put(nodes: &mut [Node], times: &[OwnTime]) {
    let gathers = gathers(nodes);
    let processes: Vec<f64> = nodes.iter().map(|node| node.processes.unwrap_or(1).max(1) as f64).collect();
    let mut own: Vec<f64> =
        times.iter().zip(&processes).map(|(time, processes)| time.ns as f64 / processes).collect();
    let mut below = vec![0.0; nodes.len()];
    for (position, gather) in gathers.iter().enumerate() {
        if let Some(gather) = *gather {
            own[gather] += times[position].leader_ns as f64 - own[position];
            below[gather] += own[position];
        }
    }
    for (position, node) in nodes.iter_mut().enumerate() {
        let shrunk = gathers[position].map_or(1.0, |gather| {
            let lacking = -own[gather].min(0.0);
            1.0 - lacking / below[gather].max(1.0)
        });
        let ExplainRow { io_ms, local_io_ms, temp_io_ms, self_ms, .. } = &mut node.row;
        *self_ms = Some((own[position].max(0.0) * shrunk / 1e3).round() / 1e3);
        for part in [io_ms, local_io_ms, temp_io_ms].into_iter().flatten() {
            *part *= shrunk;
        }
    }
    put_totals(nodes);
}

/// The Gather that each node is below.
fn gathers(nodes: &[Node]) -> Vec<Option<usize>> {
    let mut gathers: Vec<Option<usize>> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let parent = node.parent_id.map(|parent| parent as usize - 1);
        let above = parent.and_then(|parent| gathers[parent]);
        gathers.push(above.or_else(|| parent.filter(|parent| naming::gathers(&nodes[*parent].node_type))));
    }
    gathers
}

/// A node's total is its own time and the totals of the nodes right below it, in whole microseconds.
fn put_totals(nodes: &mut [Node]) {
    let mut totals: Vec<f64> = nodes.iter().map(|node| (node.self_ms.unwrap_or(0.0) * 1e3).round()).collect();
    for position in (0..nodes.len()).rev() {
        nodes[position].row.total_ms = Some(totals[position] / 1e3);
        if let Some(parent) = nodes[position].parent_id {
            totals[parent as usize - 1] += totals[position];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes one below the other, run by so many processes each.
    fn chain(processes: &[u64]) -> Vec<Node> {
        let row = |position: usize| ExplainRow {
            node_id: Some(position as u32 + 1),
            parent_id: (position > 0).then_some(position as u32),
            processes: Some(processes[position]),
            node_type: if processes.get(position + 1) > Some(&1) && processes[position] == 1 {
                "Gather".into()
            } else {
                "Seq Scan".into()
            },
            io_ms: Some(3.0),
            ..ExplainRow::default()
        };
        let node = |position| Node {
            row: row(position),
            schema: None,
            relation: None,
            index: None,
            access: None,
            is_parallel: false,
            reads_index: false,
        };
        (0..processes.len()).map(node).collect()
    }

    fn put_ms(nodes: &mut [Node], times: &[(u64, u64)]) -> Vec<(f64, f64, f64)> {
        let ns = |ms: u64| ms * 1_000_000;
        let times: Vec<OwnTime> =
            times.iter().map(|(all, leader)| OwnTime { ns: ns(*all), leader_ns: ns(*leader) }).collect();
        put(nodes, &times);
        let of = |node: &Node| Some((node.self_ms?, node.total_ms?, node.io_ms?));
        nodes.iter().filter_map(of).collect()
    }

    #[test]
    fn one_process_has_what_it_took() {
        let told = put_ms(&mut chain(&[1, 1]), &[(10, 10), (5, 5)]);
        assert_eq!(told, [(10.0, 15.0, 3.0), (5.0, 5.0, 3.0)]);
    }

    #[test]
    fn all_nodes_together_have_the_leader_s_time() {
        // The leader took 40 ms of the 120 + 60 below, and waited 20 ms.
        let told = put_ms(&mut chain(&[1, 1, 3, 3]), &[(10, 10), (20, 20), (120, 30), (60, 10)]);
        assert_eq!(told, [(10.0, 70.0, 3.0), (0.0, 60.0, 3.0), (40.0, 60.0, 3.0), (20.0, 20.0, 3.0)]);
    }

    #[test]
    fn one_worker_alone_is_waited_for_as_well() {
        let mut nodes = chain(&[1, 1, 1]);
        nodes[1].row.node_type = "Gather".into();
        // The leader waits 100 ms for the worker, which takes 99.
        let told = put_ms(&mut nodes, &[(5, 5), (100, 100), (99, 0)]);
        assert_eq!(told, [(5.0, 105.0, 3.0), (1.0, 100.0, 3.0), (99.0, 99.0, 3.0)]);
    }

    #[test]
    fn workers_that_go_on_are_in_no_node() {
        // The leader spent 15 ms in the Gather and below: the workers' mean of 30 shrinks to it.
        let told = put_ms(&mut chain(&[1, 1, 3]), &[(100, 100), (10, 10), (90, 5)]);
        assert_eq!(told, [(100.0, 115.0, 3.0), (0.0, 15.0, 3.0), (15.0, 15.0, 1.5)]);
    }
}
