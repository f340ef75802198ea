//! What others took from a run, by the evidence of its own row.
//!
//! # Limitations and caveats
//! - Others' bytes are all writes, too, the own server's among them.
//! - A row without evidence counts as undisturbed: nothing is known against it.

/// A run of which others took a greater share than this was disturbed. Two sides of which they took shares
/// that differ by no more had the same neighbours.
pub const DISTURBING: f64 = 0.1;

/// Fewer bytes of others than this disturb nothing: a server at rest writes as much.
const LEAST_OTHER_BYTES: f64 = 1048576.0;

/// What a row says of others. None is what it does not know.
#[derive(Debug, Clone, Copy, Default)]
pub struct Evidence {
    /// Bytes that the run fetched from storage.
    pub own_bytes: Option<f64>,
    /// Bytes that the devices moved meanwhile beyond these.
    pub other_bytes: Option<f64>,
    /// Time that a hypervisor gave to other machines, in percent.
    pub steal_pct: Option<f64>,
    /// Time that a limit held the run back, in percent of its duration.
    pub throttled_pct: Option<f64>,
}

impl Evidence {
    /// The largest share, from 0 to 1, that others took of something that the run needed.
    pub fn taken(&self) -> f64 {
        let bytes = self.own_bytes.zip(self.other_bytes).map(|(own, others)| of_bytes(own, others));
        let percents = [self.steal_pct, self.throttled_pct].into_iter().flatten().map(|pct| pct / 100.0);
        bytes.into_iter().chain(percents).fold(0.0, f64::max).min(1.0)
    }
}

/// Was a run with this evidence disturbed?
pub fn disturbed(evidence: &Evidence) -> bool {
    evidence.taken() > DISTURBING
}

/// What does not come from the device is not slowed by its other users.
fn of_bytes(own: f64, others: f64) -> f64 {
    if own > 0.0 && others >= LEAST_OTHER_BYTES { others / (own + others) } else { 0.0 }
}
