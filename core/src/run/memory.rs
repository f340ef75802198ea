//! Asking for memory before it is needed.
//!
//! Rust answers an allocation that fails with an abort, which in a server process restarts the whole server.
//! Memory is refused where the address space is bounded (`ulimit -v`) or the kernel keeps account of it
//! (`vm.overcommit_memory = 2`). So code that is about to allocate much asks first.
//!
//! It is a question, not a reservation: others may take the memory meanwhile.

use std::num::NonZeroUsize;

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use crate::{Error, Result};

/// Would the kernel give this process `bytes` bytes more?
///
/// # Errors
/// [`Error::NoMemory`] if not.
pub fn expect(bytes: usize) -> Result<()> {
    let Some(length) = NonZeroUsize::new(bytes) else { return Ok(()) };
    let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let mapping = unsafe { mmap_anonymous(None, length, protection, MapFlags::MAP_PRIVATE) }
        .map_err(|_| Error::NoMemory { bytes })?;
    // SAFETY: mapped just now, and nothing else refers to it.
    let _ = unsafe { munmap(mapping, length.get()) };
    Ok(())
}

/// Bytes that a JSON text takes as a [`serde_json::Value`], at most, with all that is allocated on the way,
/// by the characters that begin or part values: `[{"":0},{"":0}` makes a node of a tree for each.
pub fn of_json(text: &str) -> usize {
    /// A map's first node, of 11 keys and values, and the list that the object may be in.
    const OBJECT: usize = 768;
    /// A list's first four elements.
    const ARRAY: usize = 160;
    /// An element of a list that is being doubled, or a map's, whose nodes may be half empty.
    const NEXT: usize = 128;
    /// A key of a map.
    const KEY: usize = 192;
    /// What an allocation takes beyond the text that is in it.
    const STRING: usize = 40;
    let (mut bytes, mut in_string, mut escaped) = (2 * text.len(), false, false);
    for byte in text.bytes() {
        if in_string {
            in_string = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
            continue;
        }
        bytes = bytes.saturating_add(match byte {
            b'"' => STRING,
            b'{' => OBJECT,
            b'[' => ARRAY,
            b',' => NEXT,
            b':' => KEY,
            _ => 0,
        });
        in_string = byte == b'"';
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_seen_through() {
        assert_eq!(of_json(""), 0);
        assert_eq!(of_json(r#""[{\"[{\\""#), of_json(r#""12345678""#));
        assert!(of_json(r#"["\\",{},{}]"#) > 2 * of_json("{}"));
    }

    #[test]
    fn what_no_machine_has_is_refused() {
        assert!(expect(0).is_ok() && expect(1 << 20).is_ok());
        let error = expect(1 << 60).expect_err("refused");
        assert_eq!(error.to_string(), "not enough memory for 1152921504606846976 bytes more");
    }
}
