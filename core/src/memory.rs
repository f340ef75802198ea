//! Asking for memory before it is needed.
//!
//! Rust answers an allocation that fails with an abort, which in a server process restarts the whole server. Memory is
//! refused where the address space is bounded (`ulimit -v`) or the kernel keeps account of it
//! (`vm.overcommit_memory = 2`). So who is about to allocate much asks first.
//!
//! It is a question, not a reservation: others may take the memory meanwhile.

use std::num::NonZeroUsize;

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use crate::{Error, Result};

/// Would the kernel give this process so many bytes more?
///
/// # Errors
/// [`Error::NoMemory`] if not.
pub fn expect(bytes: usize) -> Result<()> {
    let Some(length) = NonZeroUsize::new(bytes) else { return Ok(()) };
    let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let mapping = unsafe { mmap_anonymous(None, length, protection, MapFlags::MAP_PRIVATE) }
        .map_err(|_| Error::NoMemory { bytes })?;
    // SAFETY: mapped just now, and nobody knows it.
    let _ = unsafe { munmap(mapping, length.get()) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_machine_has_is_refused() {
        assert!(expect(0).is_ok() && expect(1 << 20).is_ok());
        let error = expect(1 << 60).expect_err("refused");
        assert_eq!(error.to_string(), "not enough memory for 1152921504606846976 bytes more");
    }
}
