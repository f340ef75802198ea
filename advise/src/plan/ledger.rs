//! Turns inclusive figures into each node's own: finds the node that pays for each subplan.
//!
//! Own is inclusive minus what ran inside the node. For ordinary children and for SubPlans that is
//! what EXPLAIN prints below the node. *Detached* subplans, CTEs and InitPlans, are printed below the
//! top node of their query level but run inside whichever node first wants their result, so they are
//! subtracted there, from their *payer*. The nodes of a plan then add up to the top node's figure,
//! because each node's figure is added once and, but for the top one, subtracted once.
//!
//! # Which node is the payer
//! * A **CTE** is pulled by the CTE Scans of its name. One pays all. Of several, each counter is paid first
//!   by those that can't have run an InitPlan as well, and of these by the one with the most left over after
//!   its own children: exact as long as the scans themselves touch nothing, since then what is left over is
//!   just what each pulled.
//! * An **InitPlan** is run once, whole, by one node. The suspects are the nodes whose expressions name it
//!   and the nodes between them and the place where it is attached, because a Gather evaluates parameters
//!   before it starts workers, an Append to prune partitions, and a Nested Loop to restart an index scan,
//!   though no expression of theirs says so. The first suspect with blocks enough left over is the payer, and
//!   those that read no relation by themselves come first: what they have left over has no other explanation.
//!   Where no node names it, the node that it is attached to and the outer path below are the suspects.
//!   Without blocks to go by, the payer is the Gather on the way, or else a node that names it and has time
//!   enough left over.
//! * Subplans with one likely payer are settled first, so that they are not robbed by those with a
//!   choice.
//!
//! # What does not fit
//! * What no payer can cover is charged to the node of attachment, where it belongs when a Gather
//!   inside a CTE that was not read to its end is shut down with the statement.
//! * A node left with less than nothing gets 0 and hands the deficit to the node above, and so on. If
//!   even the top node can't bear it, the deficit is taken from below the nodes where it arose, and
//!   last from any node. The sum always holds.
//! * A CTE that modifies data runs to its end after the top node has finished, outside of the top
//!   node's figure: what its readers did not pull stays with it, and the sum is larger by as much.
//! * Time is the wall clock (`wall_clock`), of which ordinary children never have more than the node
//!   above them: it is credited as blocks are, and adds up to the top node's.
//!
//! # Limits
//! With several readers of a CTE that spill, several suspects for one InitPlan, or functions and
//! first looks into the system catalogs that read blocks in the middle of a plan, the payer is a
//! guess: the sum holds, single nodes may be off by that subplan's figure. Up to 16, `$1` in an
//! expression may also be a parameter of a prepared statement, which only adds a suspect.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Blocks first; then microseconds of waiting for reads of relations, the part of temporary tables, and
/// microseconds of temporary files; then microseconds in the node.
pub(super) const COUNTERS: usize = 10;
const BLOCKS: Range<usize> = 0..6;
/// Of these, the blocks of relations; the others are of temporary files.
const RELATION_BLOCKS: Range<usize> = 0..4;
pub(super) const TIME: usize = 9;

/// A node as the ledger sees it; nodes come in preorder, so a parent precedes its children.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// Position of the node below which this one is printed.
    pub parent: Option<usize>,
    /// Depth below the top node.
    pub level: u32,
    /// For a CTE or an InitPlan: the names under which others refer to it.
    pub provides: Option<Vec<String>>,
    /// The names of CTEs and InitPlans that this node uses.
    pub needs: Vec<String>,
    /// Whether the node reads relations by itself, rather than only through its expressions.
    pub reads_relations: bool,
    /// A Gather or Gather Merge.
    pub gathers: bool,
    /// Inserts, updates or deletes.
    pub modifies: bool,
    /// What EXPLAIN says: the node and everything that ran in it.
    pub inclusive: [u64; COUNTERS],
}

/// What is left of a node's figures, below 0 while a deficit waits. Wide enough for any number of nodes.
type Amounts = [i128; COUNTERS];

/// Bytes that [`own`] takes at most: a node may be a suspect of each subplan that something below it names.
pub(super) fn memory(entries: &[Entry]) -> usize {
    const SUSPECT: usize = 4 * size_of::<usize>();
    entries.iter().map(|entry| 1024 + entry.needs.len() * (entry.level as usize + 1) * SUSPECT).sum()
}

/// The own figures of each node.
pub(super) fn own(entries: &[Entry]) -> Vec<[u64; COUNTERS]> {
    let mut ledger = Ledger::open(entries);
    let mut subplans = detached(entries);
    let outer = outer_children(entries);
    for subplan in subplans.iter_mut().filter(|subplan| !subplan.is_cte) {
        subplan.find_suspects(entries, &outer);
    }
    subplans.sort_by_key(|subplan| subplan.rank(entries));
    let suspects: HashSet<usize> =
        subplans.iter().flat_map(|subplan| subplan.suspects.iter().copied()).collect();
    for subplan in &subplans {
        if subplan.is_cte {
            ledger.settle_cte(subplan, &suspects);
        } else {
            ledger.settle_init_plan(subplan);
        }
    }
    ledger.close()
}

/// CTEs or InitPlans of one name at one node: two if EXPLAIN shows two query levels as one.
struct Subplan {
    attached: usize,
    /// The position of the first of them.
    first: usize,
    is_cte: bool,
    modifies: bool,
    /// All members together.
    cost: Amounts,
    /// The nodes that name it.
    users: Vec<usize>,
    /// Where an InitPlan may have been run, the likeliest first.
    suspects: Vec<usize>,
}

/// The detached subplans and the nodes that use them.
fn detached(entries: &[Entry]) -> Vec<Subplan> {
    let mut subplans: Vec<Subplan> = Vec::new();
    let mut by_name: HashMap<(usize, &str), usize> = HashMap::new();
    for (position, entry) in entries.iter().enumerate() {
        let (Some(names), Some(attached)) = (&entry.provides, entry.parent) else { continue };
        let known = names.iter().find_map(|name| by_name.get(&(attached, name.as_str())).copied());
        let index = known.unwrap_or_else(|| {
            subplans.push(Subplan {
                attached,
                first: position,
                is_cte: names.iter().any(|name| name.starts_with("CTE ")),
                modifies: true,
                cost: [0; COUNTERS],
                users: Vec::new(),
                suspects: Vec::new(),
            });
            subplans.len() - 1
        });
        by_name.extend(names.iter().map(|name| ((attached, name.as_str()), index)));
        let subplan = &mut subplans[index];
        subplan.modifies &= entry.modifies;
        for (sum, &inclusive) in subplan.cost.iter_mut().zip(&entry.inclusive) {
            *sum += i128::from(inclusive);
        }
    }
    for (position, entry) in entries.iter().enumerate() {
        for name in &entry.needs {
            // The innermost of that name. A subplan sees those printed before it, not itself.
            let mut came_from = None;
            for node in upwards(entries, position) {
                if let Some(&index) = by_name.get(&(node, name.as_str()))
                    && came_from.is_none_or(|child| subplans[index].first < child)
                {
                    subplans[index].users.push(position);
                    break;
                }
                came_from = Some(node);
            }
        }
    }
    subplans
}

/// The node itself and those above it.
fn upwards(entries: &[Entry], from: usize) -> impl Iterator<Item = usize> + '_ {
    std::iter::successors(Some(from), |&node| entries[node].parent)
}

/// The first child of each node that is not a detached subplan.
fn outer_children(entries: &[Entry]) -> Vec<Option<usize>> {
    let mut outer = vec![None; entries.len()];
    for (position, entry) in entries.iter().enumerate() {
        if let (Some(parent), None) = (entry.parent, &entry.provides) {
            outer[parent].get_or_insert(position);
        }
    }
    outer
}

/// The nodes from a user of a subplan up to where that is attached, without those that only have the user in
/// a detached subplan of their own: the user is inside whichever node runs that one.
fn way(entries: &[Entry], user: usize, attached: usize) -> impl Iterator<Item = usize> + '_ {
    let mut came_from = None;
    upwards(entries, user)
        .take_while(move |&node| entries[node].level >= entries[attached].level)
        .filter(move |&node| came_from.replace(node).is_none_or(|child| entries[child].provides.is_none()))
}

impl Subplan {
    fn has(&self, blocks: Range<usize>) -> bool {
        self.cost[blocks].iter().any(|&blocks| blocks > 0)
    }

    fn find_suspects(&mut self, entries: &[Entry], outer: &[Option<usize>]) {
        // An upper node that only passes the value on names it as well.
        self.users.sort_by_key(|&user| Reverse(entries[user].level));
        let named = !self.users.is_empty();
        let on_the_way: Vec<usize> = if named {
            self.users.iter().flat_map(|&user| way(entries, user, self.attached)).collect()
        } else {
            std::iter::successors(Some(self.attached), |&node| outer[node]).collect()
        };
        let reads_relations = self.has(RELATION_BLOCKS);
        let prime = on_the_way.iter().filter(|&&node| {
            if reads_relations { !entries[node].reads_relations } else { named && entries[node].gathers }
        });
        let mut seen = HashSet::new();
        let suspects = prime.chain(&self.users).chain(&on_the_way);
        self.suspects = suspects.copied().filter(|&node| seen.insert(node)).collect();
    }

    /// Sorts first what has one likely payer, then CTEs, then the InitPlans that are named by a node which
    /// reads nothing by itself; among equals, what has the least choice.
    fn rank(&self, entries: &[Entry]) -> (bool, bool, bool, usize) {
        let choice = match (self.is_cte, self.users.len()) {
            (true, readers) => readers,
            (false, 0) => 1,
            (false, _) => self.suspects.len(),
        };
        let vague = self.users.iter().all(|&user| entries[user].reads_relations);
        (choice > 1, !self.is_cte, vague, choice)
    }
}

struct Ledger<'a> {
    entries: &'a [Entry],
    left: Vec<Amounts>,
}

impl<'a> Ledger<'a> {
    /// Inclusive figures less those of ordinary children.
    fn open(entries: &'a [Entry]) -> Self {
        let mut left: Vec<Amounts> = entries.iter().map(|entry| entry.inclusive.map(i128::from)).collect();
        for entry in entries {
            if let (Some(parent), None) = (entry.parent, &entry.provides) {
                for (left, &inclusive) in left[parent].iter_mut().zip(&entry.inclusive) {
                    *left -= i128::from(inclusive);
                }
            }
        }
        Ledger { entries, left }
    }

    /// Takes up to `amount`, which is never below 0, from what the node has left, and says what is
    /// still owed.
    fn take(&mut self, node: usize, counter: usize, amount: i128) -> i128 {
        let taken = self.left[node][counter].clamp(0, amount);
        self.left[node][counter] -= taken;
        amount - taken
    }

    fn settle_cte(&mut self, cte: &Subplan, suspects: &HashSet<usize>) {
        for counter in 0..COUNTERS {
            let mut readers = cte.users.clone();
            readers.sort_by_key(|reader| (suspects.contains(reader), Reverse(self.left[*reader][counter])));
            let owed =
                readers.into_iter().fold(cte.cost[counter], |owed, reader| self.take(reader, counter, owed));
            if !cte.modifies {
                self.left[cte.attached][counter] -= owed;
            }
        }
    }

    fn settle_init_plan(&mut self, plan: &Subplan) {
        let payer = plan.suspects.iter().copied().find(|&node| self.covers(node, plan));
        for counter in 0..COUNTERS {
            let owed = match payer {
                Some(payer) => self.take(payer, counter, plan.cost[counter]),
                // Run more than once, by several: each pays what it can.
                None => plan
                    .suspects
                    .iter()
                    .fold(plan.cost[counter], |owed, &suspect| self.take(suspect, counter, owed)),
            };
            self.left[plan.attached][counter] -= owed;
        }
    }

    /// May the node have run this InitPlan alone, by what it has left?
    fn covers(&self, node: usize, plan: &Subplan) -> bool {
        if plan.has(BLOCKS) {
            BLOCKS.into_iter().all(|block| self.left[node][block] >= plan.cost[block])
        } else {
            self.entries[node].gathers || self.left[node][TIME] >= plan.cost[TIME]
        }
    }

    /// Spreads the deficits and gives what is left.
    fn close(mut self) -> Vec<[u64; COUNTERS]> {
        for counter in 0..COUNTERS {
            self.spread_deficits(counter);
        }
        // The upper bound holds since nothing was ever added.
        self.left.iter().map(|left| left.map(|amount| amount.max(0) as u64)).collect()
    }

    /// Hands each deficit upwards; what is beyond the top node is taken from below where it arose first.
    fn spread_deficits(&mut self, counter: usize) {
        let mut inside: Vec<bool> = self.left.iter().map(|left| left[counter] < 0).collect();
        let mut owed = 0;
        for node in (0..self.entries.len()).rev() {
            let deficit = -self.left[node][counter].min(0);
            self.left[node][counter] += deficit;
            match self.entries[node].parent {
                Some(parent) => self.left[parent][counter] -= deficit,
                None => owed = deficit,
            }
        }
        if owed == 0 {
            return;
        }
        for node in 0..self.entries.len() {
            inside[node] |= self.entries[node].parent.is_some_and(|parent| inside[parent]);
        }
        for wanted in [true, false] {
            for (node, _) in inside.iter().enumerate().filter(|&(_, &inside)| inside == wanted) {
                owed = self.take(node, counter, owed);
            }
        }
    }
}
