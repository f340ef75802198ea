//! Why a run ends early.

use std::fmt;

use super::BoundSource;

/// Why a run ended before it had done everything it was asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The run's own duration is used up.
    Duration,
    /// The time that all runs of one statement share is used up.
    Statement,
    /// The byte budget is used up.
    Bytes,
    /// The interval is as narrow as was asked for.
    Precise,
    /// Another session waits for a lock that the run keeps it from.
    LockWaiter,
    /// The device answers the run's own requests too slowly, see [`super::LatencyBound`].
    Slow(BoundSource),
}

impl Stop {
    /// Does it end all that a call still had to do, and not just the present run?
    pub fn is_for_all(self) -> bool {
        matches!(self, Stop::Statement | Stop::LockWaiter | Stop::Slow(_))
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stop::Duration => "stopped at the end of its duration",
            Stop::Statement => "stopped: this statement has used up pg_io_probe.max_duration",
            Stop::Bytes => "stopped at max_bytes",
            Stop::Precise => "stopped: the interval is as narrow as asked for",
            Stop::LockWaiter => "stopped early: another session waits for a lock on this relation",
            Stop::Slow(BoundSource::Call) => {
                "stopped early: more than ten of a thousand requests took longer than max_p99"
            }
            Stop::Slow(BoundSource::Setting) => {
                "stopped early: more than ten of a thousand requests took longer than pg_io_probe.max_p99"
            }
        })
    }
}

/// What the caller's closure may answer: nothing, or a reason to stop.
pub type StopCheck<'a> = dyn FnMut() -> Option<Stop> + 'a;
