//! Shared buffers: which pages are in them, and what reads through them cost.

use std::cell::OnceCell;
use std::ops::Range;

use io_probe_core::files::Part;
use io_probe_core::files::holes::Holes;
use io_probe_core::run::budget::{Stop, StopCheck};
use io_probe_core::run::memory;
use pgrx::pg_sys;

use crate::error::or_raise;
use crate::pg::backend::interrupts;
pub(crate) use crate::pg::compat::EVICTS_SHARED_BUFFERS;
use crate::pg::compat::{self, MAIN, buffer_state};
use crate::pg::storage::relation::Relation;

/// The server's counters of blocks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Usage(pub(crate) pg_sys::BufferUsage);

impl Usage {
    pub(in crate::pg) fn now() -> Self {
        // SAFETY: a variable of this backend, only ever changed by it.
        Self(unsafe { pg_sys::pgBufferUsage })
    }

    pub(in crate::pg) fn add_since(&mut self, earlier: Usage) {
        // SAFETY: as above; what is added is the difference between two states of the same counters.
        unsafe { pg_sys::BufferUsageAccumDiff(&mut self.0, &raw const pg_sys::pgBufferUsage, &earlier.0) };
    }

    /// Blocks that this backend has found in buffers so far.
    #[inline]
    pub(in crate::pg) fn hits_so_far() -> i64 {
        // SAFETY: as in `now`.
        unsafe { pg_sys::pgBufferUsage.shared_blks_hit + pg_sys::pgBufferUsage.local_blks_hit }
    }

    /// Pages that had to be written to make room.
    pub(crate) fn written(&self) -> u64 {
        (self.0.shared_blks_written + self.0.local_blks_written) as u64
    }

    pub(crate) fn hits(&self) -> u64 {
        (self.0.shared_blks_hit + self.0.local_blks_hit) as u64
    }
}

#[derive(Clone, Copy)]
struct Page {
    /// Number of the shared buffer; without a meaning for one of the session's own.
    buffer: pg_sys::Buffer,
    block: pg_sys::BlockNumber,
    is_dirty: bool,
    /// Was it used more than once lately, as the clock sweep counts?
    is_used_again: bool,
}

/// The blocks of a relation in shared buffers, or in the session's own for a temporary table. Looks at all
/// buffer headers without locking them: a count to inform, as that of pg_buffercache is.
fn resident_pages(relation: &Relation) -> impl Iterator<Item = Page> {
    // SAFETY: the relation is open; the sizes are set at server start.
    let (file, count) = unsafe {
        let count = if relation.is_temporary() { pg_sys::NLocBuffer } else { pg_sys::NBuffers };
        (compat::file_id(relation.as_ptr()), usize::try_from(count).unwrap_or(0))
    };
    let local = relation.is_temporary();
    (0..count).filter_map(move |index| {
        if index % 65_536 == 0 {
            interrupts::check();
        }
        // SAFETY: an index of the array of the announced length, which stays for the life of the process.
        let header = unsafe {
            if local {
                pg_sys::LocalBufferDescriptors.add(index)
            } else {
                &raw mut (*pg_sys::BufferDescriptors.add(index)).bufferdesc
            }
        };
        // SAFETY: as above.
        unsafe { page_in(header, file, index as pg_sys::Buffer + 1) }
    })
}

/// The page that a buffer holds now, if it is one of this relation's blocks.
///
/// # Safety
/// `header` must be that of the buffer.
unsafe fn page_in(
    header: *const pg_sys::BufferDesc,
    file: compat::FileId,
    buffer: pg_sys::Buffer,
) -> Option<Page> {
    // SAFETY: others change a header at any time; it is copied by volatile reads, and any torn mixture of
    // values is still a valid one.
    let (tag, state) = unsafe {
        (
            std::ptr::read_volatile(&raw const (*header).tag),
            std::ptr::read_volatile(&raw const (*header).state.value),
        )
    };
    let is_valid = state & buffer_state::VALID != 0;
    let found = is_valid && tag.forkNum == MAIN && compat::tagged_file(&tag) == file;
    let is_dirty = state & buffer_state::DIRTY != 0;
    let is_used_again = buffer_state::uses(state) > 1;
    found.then_some(Page { buffer, block: tag.blockNum, is_dirty, is_used_again })
}

/// How many blocks of a relation are in buffers.
pub(crate) fn count_resident(relation: &Relation) -> u64 {
    resident_pages(relation).count() as u64
}

/// The blocks of a relation that are in buffers, looked up when they are first asked for.
pub(crate) struct Resident<'a> {
    relation: &'a Relation,
    /// Ascending.
    blocks: OnceCell<Vec<pg_sys::BlockNumber>>,
}

impl<'a> Resident<'a> {
    pub(crate) fn new(relation: &'a Relation) -> Self {
        Self { relation, blocks: OnceCell::new() }
    }

    pub(in crate::pg) fn blocks(&self) -> &[pg_sys::BlockNumber] {
        self.blocks.get_or_init(|| {
            let pages = resident_pages(self.relation);
            let mut blocks = or_raise(memory::collect(pages.map(|page| page.block)));
            blocks.sort_unstable();
            blocks.dedup();
            blocks
        })
    }

    /// The blocks themselves in place of a copy.
    pub(in crate::pg) fn into_blocks(self) -> Vec<pg_sys::BlockNumber> {
        self.blocks();
        self.blocks.into_inner().unwrap_or_default()
    }

    /// Holes in the file of a part, given as byte ranges, without the blocks that are in buffers: those have
    /// data.
    pub(crate) fn remove_from(&self, part: &Part, holes: Holes) -> Holes {
        if holes.is_empty() {
            return holes;
        }
        let resident = self.blocks();
        let block_size = u64::from(pg_sys::BLCKSZ);
        let first = resident.partition_point(|block| u64::from(*block) < part.blocks.start);
        let ranges: Vec<_> = resident[first..]
            .iter()
            .map(|block| u64::from(*block))
            .take_while(|block| *block < part.blocks.end)
            .map(|block| block % u64::from(pg_sys::RELSEG_SIZE) * block_size)
            .map(|start| start..start + block_size)
            .collect();
        holes.without(&ranges)
    }
}

/// Writes a relation's dirty shared buffers to its files, and lets go of its pages where this server can,
/// until there is a reason to stop. Pages stay that are pinned, or in the session's own buffers.
pub(crate) fn flush_and_evict(relation: &Relation, should_stop: &mut StopCheck<'_>) -> Option<Stop> {
    if relation.is_temporary() || crate::pg::backend::server::in_recovery() {
        return None;
    }
    for page in resident_pages(relation).filter(|page| page.is_dirty) {
        if let Some(stop) = should_stop() {
            return Some(stop);
        }
        flush(relation, page);
    }
    if EVICTS_SHARED_BUFFERS { evict_pages(relation, |_| true, should_stop) } else { None }
}

/// Makes shared buffers let go of these pages, until there is a reason to stop.
fn evict_pages(
    relation: &Relation,
    is_wanted: impl Fn(&Page) -> bool + Copy,
    should_stop: &mut StopCheck<'_>,
) -> Option<Stop> {
    // SAFETY: the relation is open.
    let file = unsafe { compat::file_id(relation.as_ptr()) };
    for page in resident_pages(relation).filter(is_wanted) {
        if let Some(stop) = should_stop() {
            return Some(stop);
        }
        // SAFETY: the number of a shared buffer, since the relation is not temporary. `should_stop` may have
        // taken long.
        unsafe { evict_if(page.buffer, file, is_wanted) };
    }
    None
}

/// Writes a page, if its buffer still holds it. (FlushRelationBuffers counts the pin of this session's cursor
/// on the relation twice, and the server crashes later.)
fn flush(relation: &Relation, page: Page) {
    // SAFETY: the relation is open; the number is that of a shared buffer, which is pinned and locked while
    // it is written.
    unsafe {
        if compat::pin_recent(relation.as_ptr(), page.block, page.buffer) {
            compat::lock_to_flush(page.buffer);
            pg_sys::FlushOneBuffer(page.buffer);
            pg_sys::UnlockReleaseBuffer(page.buffer);
        }
    }
}

/// Makes shared buffers let go of these blocks, what is dirty of them written, until there is a reason to
/// stop. Where they don't let go, the relation's dirty pages are written as far as this server may.
pub(crate) fn evict_blocks(
    relation: &Relation,
    blocks: &Range<u64>,
    should_stop: &mut StopCheck<'_>,
) -> Option<Stop> {
    if !can_evict(relation) {
        return flush_and_evict(relation, should_stop);
    }
    let is_wanted = |page: &Page| blocks.contains(&page.block.into());
    evict_pages(relation, is_wanted, should_stop)
}

/// Makes a buffer let go of its page, if that still is a wanted one of this relation. If the buffer gets
/// another page right after that look, that page goes, and is read again when it is needed.
///
/// # Safety
/// `buffer` must be the number of a shared buffer.
unsafe fn evict_if(buffer: pg_sys::Buffer, file: compat::FileId, is_wanted: impl FnOnce(&Page) -> bool) {
    // SAFETY: the caller vouches for the number.
    unsafe {
        let header = &raw const (*pg_sys::BufferDescriptors.add(buffer as usize - 1)).bufferdesc;
        if page_in(header, file, buffer).as_ref().is_some_and(is_wanted) {
            compat::evict_buffer(buffer);
        }
    }
}

/// Does this server make shared buffers let go of this relation's pages?
pub(crate) fn can_evict(relation: &Relation) -> bool {
    EVICTS_SHARED_BUFFERS && !relation.is_temporary() && !crate::pg::backend::server::in_recovery()
}

/// Makes these buffers let go of the relation's pages, if they still hold any. Only where this server can.
pub(in crate::pg) fn evict_if_unused(relation: &Relation, mut buffers: Vec<pg_sys::Buffer>) {
    if relation.is_temporary() {
        return;
    }
    buffers.sort_unstable();
    buffers.dedup();
    // SAFETY: the relation is open.
    let file = unsafe { compat::file_id(relation.as_ptr()) };
    // More than one use means that another process has touched it, as rings of buffers take it; and a dirty
    // page was changed by another process.
    for buffer in buffers {
        // SAFETY: the number of a shared buffer, since the relation is not temporary.
        unsafe { evict_if(buffer, file, |page| !page.is_used_again && !page.is_dirty) };
    }
}
