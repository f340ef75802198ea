//! How the two page costs are changed, so that a random page never costs less than a sequential one.
//!
//! Both are decided together. But what is advised for each is a statement of its own, of which people run
//! some and not others. So where one alone would put them in the wrong order, its statement has to set both.

use super::choose::Cell;

/// What a page cost is changed to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CostChange {
    /// The value.
    pub value: f64,
    /// What the other one has to be set to at the same time, if this value alone would be on the wrong side
    /// of it.
    pub with: Option<f64>,
}

/// What becomes of both.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CostPair {
    /// Of `seq_page_cost`; None if it stays.
    pub sequential: Option<CostChange>,
    /// Of `random_page_cost`; None if it stays.
    pub random: Option<CostChange>,
}

impl CostPair {
    /// By a choice in which a random page costs no less than a sequential one. So where a cost crosses what
    /// is set for the other, that changes, too.
    pub fn of(in_force: Cell, chosen: Cell) -> Self {
        let Cell { sequential, random } = chosen;
        let change =
            |value: f64, crosses: bool, other: f64| CostChange { value, with: crosses.then_some(other) };
        Self {
            sequential: (sequential != in_force.sequential)
                .then(|| change(sequential, sequential > in_force.random, random)),
            random: (random != in_force.random)
                .then(|| change(random, random < in_force.sequential, sequential)),
        }
    }
}

#[cfg(test)]
mod tests;
