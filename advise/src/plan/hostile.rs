//! For `crate::hostile`: what holds for the figures of any plan.

use super::ledger::{self, COUNTERS, Entry};

/// Names that subplans provide and nodes need.
const NAMES: [&str; 4] = ["CTE x", "CTE y", "$1", "InitPlan 2"];

/// Credits the figures of a made-up plan, four bytes a node.
pub(crate) fn adds_up(nodes: &[[u8; 4]]) {
    let mut entries: Vec<Entry> = Vec::new();
    for (position, &[up, kind, names, amount]) in nodes.iter().enumerate() {
        // The parent is the previous node or one of those above it: a preorder.
        let mut parent = position.checked_sub(1);
        for _ in 0..up % 8 {
            parent = parent.and_then(|parent| entries[parent].parent.or(Some(parent)));
        }
        let named = |bits: u8| {
            let chosen = NAMES.iter().enumerate().filter(move |(at, _)| bits >> at & 1 == 1);
            chosen.map(|(_, name)| (*name).to_owned()).collect::<Vec<_>>()
        };
        let figure = match amount {
            0..=250 => u64::from(amount),
            251 => u64::from(u32::MAX),
            _ => i64::MAX as u64 - u64::from(amount),
        };
        entries.push(Entry {
            parent,
            level: parent.map_or(0, |parent| entries[parent].level + 1),
            provides: (kind & 1 == 1).then(|| named(names)),
            needs: named(names >> 4),
            reads_relations: kind & 2 != 0,
            gathers: kind & 4 != 0,
            // Few: what such a CTE did after the top node had ended is in no sum.
            modifies: kind & 15 == 9,
            inclusive: std::array::from_fn(
                |at| if kind >> (at % 4 + 4) & 1 == 1 { figure } else { figure / 3 },
            ),
        });
    }
    let own = ledger::own(&entries);
    assert_eq!(own.len(), entries.len());
    for (own, entry) in own.iter().zip(&entries) {
        assert!((0..COUNTERS).all(|counter| own[counter] <= entry.inclusive[counter]));
    }
    let later = |entry: &&Entry| entry.modifies && entry.provides.is_some();
    for counter in 0..COUNTERS {
        let sum: u128 = own.iter().map(|own| u128::from(own[counter])).sum();
        let top = u128::from(entries[0].inclusive[counter]);
        let most = top
            + entries.iter().filter(later).map(|entry| u128::from(entry.inclusive[counter])).sum::<u128>();
        assert!((top..=most).contains(&sum), "counter {counter}: {sum}, not {top} to {most}, in {entries:?}");
    }
}
