//! Memory that the system refuses.
//!
//! Rust answers an allocation that fails with an abort, which in a server process restarts the whole server.
//! Memory is refused where the address space is bounded (`ulimit -v`) or the kernel keeps account of it
//! (`vm.overcommit_memory = 2`). So the library has an [`Allocator`] with a reserve: what the system refuses
//! comes from there, and the next [`check`] ends the call in order.
//!
//! # Limitations and caveats
//!
//! The reserve is finite. What grows with a size that a user chooses must not run on it: such code holds what
//! it needs beforehand ([`hold`]), or reserves fallibly ([`make_room`]), or calls [`check`] before each step.
//! A memory cgroup refuses nothing: its kernel kills.

use std::alloc::{GlobalAlloc, Layout, System};
use std::num::NonZeroUsize;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use crate::{Error, Result};

/// Takes from the system what it gives, and the rest from what is held.
pub struct Allocator;

// SAFETY: a block is the system's, or a part of a region that no other block has until it is given back.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller vouches.
        let block = unsafe { System.alloc(layout) };
        if block.is_null() { from_reserve(layout) } else { block }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller vouches.
        let block = unsafe { System.alloc_zeroed(layout) };
        if block.is_null() { from_reserve(layout) } else { block }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller vouches; no block of the system's lies in the reserve.
        unsafe {
            if BORROWED.load(Ordering::Relaxed) == 0 {
                let moved = System.realloc(block, layout, size);
                if !moved.is_null() {
                    return moved;
                }
            }
            let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !moved.is_null() {
                ptr::copy_nonoverlapping(block, moved, layout.size().min(size));
                self.dealloc(block, layout);
            }
            moved
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if BORROWED.load(Ordering::Relaxed) == 0 || !to_reserve(block) {
            // SAFETY: not of the reserve, so of the system.
            unsafe { System.dealloc(block, layout) };
        }
    }
}

/// A mapping that blocks are cut from, one after the other. Once none is in use it begins anew.
struct Region {
    start: usize,
    length: usize,
    used: usize,
    blocks: usize,
    held: bool,
}

impl Region {
    const NONE: Self = Self { start: 0, length: 0, used: 0, blocks: 0, held: false };

    fn cut(&mut self, layout: Layout) -> Option<usize> {
        let start = (self.start + self.used).next_multiple_of(layout.align());
        let used = (start - self.start).checked_add(layout.size()).filter(|used| *used <= self.length)?;
        (self.used, self.blocks) = (used, self.blocks + 1);
        Some(start)
    }

    fn has(&self, block: *mut u8) -> bool {
        block.addr().wrapping_sub(self.start) < self.length
    }

    /// Unmaps it when it is neither held nor in use.
    fn end_if_unused(&mut self) {
        if self.blocks == 0 {
            self.used = 0;
            if !self.held {
                let Self { start, length, .. } = std::mem::replace(self, Self::NONE);
                let mapping = NonNull::new(ptr::with_exposed_provenance_mut(start));
                // SAFETY: mapped by `hold`, and no block lies in it.
                mapping.map(|mapping| unsafe { munmap(mapping, length) });
            }
        }
    }
}

/// Bytes that a call has in reserve: more than what it allocates from one check to the next.
const RESERVE: usize = 4 << 20;

/// What is there from the start, to report that there is no more.
static LAST: [AtomicU8; 256 << 10] = [const { AtomicU8::new(0) }; 256 << 10];

/// As many as calls within calls hold at a time, and some more.
static REGIONS: Mutex<[Region; 32]> = Mutex::new([const { Region::NONE }; 32]);

/// Number of blocks in all regions.
static BORROWED: AtomicUsize = AtomicUsize::new(0);

/// Bytes that the system refused since the last check.
static REFUSED: AtomicUsize = AtomicUsize::new(0);

fn regions() -> MutexGuard<'static, [Region; 32]> {
    REGIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A block of zeros.
fn from_reserve(layout: Layout) -> *mut u8 {
    REFUSED.store(layout.size(), Ordering::Relaxed);
    // The last comes last.
    let block = regions().iter_mut().rev().find_map(|region| region.cut(layout));
    block.map_or(ptr::null_mut(), |start| {
        BORROWED.fetch_add(1, Ordering::Relaxed);
        let block = ptr::with_exposed_provenance_mut::<u8>(start);
        // SAFETY: it has this size, and nobody else has it.
        unsafe { block.write_bytes(0, layout.size()) };
        block
    })
}

/// Gives a block back if it is of the reserve.
fn to_reserve(block: *mut u8) -> bool {
    let mut regions = regions();
    let Some(region) = regions.iter_mut().find(|region| region.has(block)) else { return false };
    BORROWED.fetch_sub(1, Ordering::Relaxed);
    region.blocks -= 1;
    region.end_if_unused();
    true
}

/// Memory that is there until this is dropped, for what the system refuses. Blocks in it may live longer.
pub struct Held(usize);

/// Holds `bytes` bytes.
///
/// # Errors
/// [`Error::NoMemory`] if the system does not give them.
pub fn hold(bytes: usize) -> Result<Held> {
    let refused = || Error::NoMemory { bytes };
    let length = NonZeroUsize::MIN.saturating_add(bytes);
    let mut regions = regions();
    let free = regions.iter_mut().find(|region| region.length == 0).ok_or_else(refused)?;
    let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let mapping = unsafe { mmap_anonymous(None, length, protection, MapFlags::MAP_PRIVATE) };
    let start = mapping.map_err(|_| refused())?.as_ptr().expose_provenance();
    *free = Region { start, length: length.get(), used: 0, blocks: 0, held: true };
    Ok(Held(start))
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(region) = regions().iter_mut().find(|region| region.start == self.0) {
            region.held = false;
            region.end_if_unused();
        }
    }
}

/// Makes sure that a call that begins has a reserve.
///
/// # Errors
/// [`Error::NoMemory`] if the system does not give it.
pub fn begin() -> Result<()> {
    let is_large = regions().iter().any(|region| region.held && region.length - region.used > RESERVE / 2);
    if !is_large {
        std::mem::forget(hold(RESERVE)?);
    }
    REFUSED.store(0, Ordering::Relaxed);
    Ok(())
}

/// Gives the allocator what is there from the start, and makes room for the destructors of more thread-local
/// variables than this process has: Rust keeps a list of them that grows past all allocators, and ends the
/// process where the system refuses that. To be called when the library is loaded, again after that failed.
pub fn prepare() {
    let start = LAST.as_ptr().expose_provenance();
    let mut regions = regions();
    // What a load that failed has left there stays.
    if regions[0].length == 0 {
        regions[0] = Region { start, length: LAST.len(), held: true, ..Region::NONE };
    }
    drop(regions);
    macro_rules! take_places {
        ($($name:ident)+) => {{
            thread_local! { $(static $name: String = const { String::new() };)+ }
            $($name.with(|_| ());)+
        }};
    }
    // The list doubles: with over 32 entries there is room for 64.
    take_places!(A B C D E F G H I J K L M N O P Q);
    take_places!(A B C D E F G H I J K L M N O P Q);
}

/// To be called between steps.
///
/// # Errors
/// [`Error::NoMemory`] if the system has refused memory since the last check: what was asked for is there,
/// but not much more.
#[inline]
pub fn check() -> Result<()> {
    match REFUSED.load(Ordering::Relaxed) {
        0 => Ok(()),
        _ => Err(Error::NoMemory { bytes: REFUSED.swap(0, Ordering::Relaxed) }),
    }
}

/// Makes room for `more` items; what came from the reserve is an error.
///
/// # Errors
/// [`Error::NoMemory`] if the system does not give it.
pub fn make_room<T>(list: &mut Vec<T>, more: usize) -> Result<()> {
    list.try_reserve(more).map_err(|_| Error::NoMemory { bytes: more.saturating_mul(size_of::<T>()) })?;
    check()
}

/// A list of these items, of which a user may decide how many there are.
///
/// # Errors
/// As of [`make_room`].
pub fn collect<T>(items: impl IntoIterator<Item = T>) -> Result<Vec<T>> {
    let items = items.into_iter();
    let mut list = list_of(items.size_hint().0)?;
    for item in items {
        make_room(&mut list, 1)?;
        list.push(item);
    }
    Ok(list)
}

/// An empty list with room for `count` items.
///
/// # Errors
/// As of [`make_room`].
pub fn list_of<T>(count: usize) -> Result<Vec<T>> {
    let mut list = Vec::new();
    make_room(&mut list, count)?;
    Ok(list)
}

/// Bytes that a JSON text takes as a `serde_json::Value`, at most, with all that is allocated on the way,
/// by the characters that begin or part values: `[{"":0},{"":0}` makes a node of a tree for each.
pub fn of_json(text: &str) -> usize {
    /// A map's first node, of 11 keys and values, and the list that the object may be in.
    const OBJECT: usize = 768;
    /// A list's first four elements; an element of a list that is being doubled; an entry of a map, whose
    /// nodes may be half empty, or its key.
    const PART: usize = 192;
    /// What an allocation takes beyond the text that is in it.
    const STRING: usize = 40;
    let mut bytes = 2 * text.len();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes = bytes.saturating_add(match byte {
            b'"' => STRING,
            b'{' => OBJECT,
            b'[' | b',' | b':' => PART,
            _ => 0,
        });
        if byte == b'"' {
            while let Some(inner) = rest.next().filter(|inner| *inner != b'"') {
                // What is escaped ends no string.
                if inner == b'\\' {
                    rest.next();
                }
            }
        }
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
    fn a_region_begins_anew_once_no_block_is_in_use() {
        let layout = Layout::from_size_align(100, 64).expect("a layout");
        let mut region = Region { start: 1 << 20, length: 300, held: true, ..Region::NONE };
        let mut cut = || region.cut(layout);
        assert_eq!([cut(), cut(), cut()], [Some(1 << 20), Some((1 << 20) + 128), None]);
        region.blocks -= 1;
        region.end_if_unused();
        assert_eq!(region.cut(layout), None);
        region.blocks -= 1;
        region.end_if_unused();
        assert_eq!(region.cut(layout), Some(1 << 20));
    }

    #[test]
    fn what_the_system_refuses_is_there_and_the_next_check_tells() {
        assert!(hold(1 << 60).is_err() && check().is_ok());
        let held = hold(256 << 10).expect("memory");
        let layout = |size| Layout::from_size_align(size, 8).expect("a layout");
        let blocks: Vec<_> = (1..100_usize).map(|size| (size, from_reserve(layout(size)))).collect();
        assert!(matches!(check(), Err(Error::NoMemory { bytes: 99 })) && check().is_ok());
        // Blocks may outlive what held them.
        drop(held);
        // SAFETY: blocks of these sizes, each grown once and given back once.
        unsafe {
            for &(size, block) in &blocks {
                block.write_bytes(size as u8, size);
            }
            for &(size, block) in &blocks {
                let grown = Allocator.realloc(block, layout(size), 2 * size);
                assert!(std::slice::from_raw_parts(grown, size).iter().all(|byte| *byte == size as u8));
                Allocator.dealloc(grown, layout(2 * size));
            }
        }
        assert_eq!(BORROWED.load(Ordering::Relaxed), 0);
    }
}
