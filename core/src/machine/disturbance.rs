//! What others took from a run: of the device by bytes, and of the processors by what the hypervisor gave
//! away.
//!
//! # Limitations and caveats
//! - Others' bytes are all writes, too, the own server's among them.
//! - A run of which that is not known counts as undisturbed: nothing is known against it.
//! - Pressure stall information is not asked: a run's own waiting counts in it like that of others.

/// A run was disturbed if others took a greater share of it than this. Two runs had the same neighbours if
/// the shares that others took of them differ by no more.
pub const DISTURBING: f64 = 0.1;

/// Fewer bytes of others than this don't disturb: a server at rest writes as much.
const LEAST_OTHER_BYTES: f64 = 1048576.0;

/// The share, from 0 to 1, that others took of what the devices moved, from the bytes that the run fetched
/// and those that the devices moved beyond these.
pub fn taken(own_bytes: Option<f64>, other_bytes: Option<f64>) -> f64 {
    match own_bytes.zip(other_bytes) {
        // What does not come from the device is not slowed by its other users.
        Some((own, others)) if own > 0.0 && others >= LEAST_OTHER_BYTES => others / (own + others),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_take_a_share() {
        let share = |own, others| taken(Some(own), Some(others));
        assert!(share(700e6, 294e6) > DISTURBING && share(700e6, 70e6) <= DISTURBING);
        assert!((share(300e6, 100e6) - 0.25).abs() < 1e-12);
        // A few bytes are everywhere, and what is cached needs no device.
        assert_eq!((share(8192.0, 1e6), share(0.0, 1e9)), (0.0, 0.0));
        assert_eq!((taken(None, Some(1e9)), taken(Some(1e9), None)), (0.0, 0.0));
    }
}
