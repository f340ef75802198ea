//! Rights beside EXECUTE on the probe itself.

use super::probe::Probe;
use crate::error::{Error, Result};
use crate::pg::backend::server;

/// Emptying caches is a right of its own. `what` names what needs it, as the beginning of a sentence.
pub(super) fn check_may_evict(what: &str) -> Result<()> {
    let function = Probe::Evict.function();
    if server::may_execute(function) {
        return Ok(());
    }
    Err(Error::denied("permission denied to evict caches").detail(format!("{what} EXECUTE on {function}.")))
}

/// So is writing a scratch file.
pub(super) fn check_may_write(what: &str) -> Result<()> {
    let function = Probe::Sync.function();
    if server::is_superuser() || server::may_execute(function) {
        return Ok(());
    }
    Err(Error::denied("permission denied to write a scratch file")
        .detail(format!("{what} EXECUTE on {function}.")))
}
