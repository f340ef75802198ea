//! Reading blocks through the buffer manager: one ReadBuffer after the other on 15 and 16, with
//! PrefetchBuffer where it shall read ahead; a read stream from 17 on, which asks for block numbers and runs
//! ahead of what it returns. Bitmap heap scans came to read streams with 18.

use pgrx::pg_sys;

use crate::pg::compat::MAIN;
#[cfg(not(any(feature = "pg15", feature = "pg16")))]
use crate::pg::settings;

pub(in crate::pg) trait Blocks {
    /// All is ready; the first read comes next.
    fn begin(&mut self);

    /// The next block to read; None when there is none.
    ///
    /// Called from inside the server: must neither raise an ERROR nor panic, as indexing may, nor take a
    /// lock.
    fn next(&mut self) -> Option<pg_sys::BlockNumber>;

    /// The oldest block that was handed out has been read into this buffer, and its pin is released. All that
    /// was handed out arrives: to stop, hand out no more.
    fn arrived(&mut self, buffer: pg_sys::Buffer);
}

/// How far the server may run ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pg) enum ReadAhead {
    /// As a sequential scan of this server does, which on 15 and 16 is not at all.
    Sequential,
    By(u32),
    /// As a bitmap heap scan of this server does at this `effective_io_concurrency`.
    Bitmap(u32),
}

/// What a sequential scan of this server reads with.
#[cfg(any(feature = "pg15", feature = "pg16"))]
pub(in crate::pg) const READ_METHOD: &str = "ReadBuffer";
#[cfg(not(any(feature = "pg15", feature = "pg16")))]
pub(in crate::pg) const READ_METHOD: &str = "read stream";

/// What this server reads ahead with outside of sequential scans.
#[cfg(any(feature = "pg15", feature = "pg16"))]
pub(in crate::pg) const PREFETCH_METHOD: &str = "PrefetchBuffer";
#[cfg(not(any(feature = "pg15", feature = "pg16")))]
pub(in crate::pg) const PREFETCH_METHOD: &str = READ_METHOD;

/// Does a tablespace's own `effective_io_concurrency` rule how this server's bitmap heap scans read?
pub(in crate::pg) const STREAMS_OBEY_TABLESPACE: bool = cfg!(any(feature = "pg18", feature = "pg19"));

/// A ring of buffers in the present memory context: for a sequential scan the server's own for a large table,
/// else of as many as may be pinned, since a stream pins no more than its ring has.
pub(in crate::pg) fn ring(ahead: ReadAhead) -> pg_sys::BufferAccessStrategy {
    // SAFETY: allocates.
    unsafe {
        #[cfg(not(feature = "pg15"))]
        {
            const LEAST_KB: u32 = 256;
            const BUFFER_KB: u32 = pg_sys::BLCKSZ / 1024;
            let kb = match ahead {
                ReadAhead::By(depth) => Some(depth * BUFFER_KB),
                ReadAhead::Bitmap(concurrency) => {
                    Some(LEAST_KB.max(pinned_by_bitmap(concurrency) * BUFFER_KB))
                }
                ReadAhead::Sequential => None,
            };
            if let Some(kb) = kb {
                let kind = pg_sys::BufferAccessStrategyType::BAS_BULKREAD;
                return pg_sys::GetAccessStrategyWithSize(kind, kb as i32);
            }
        }
        let _ = ahead;
        pg_sys::GetAccessStrategy(pg_sys::BufferAccessStrategyType::BAS_BULKREAD)
    }
}

/// Most buffers that a bitmap heap scan holds: without a stream its present one.
#[cfg(any(feature = "pg16", feature = "pg17"))]
fn pinned_by_bitmap(_concurrency: u32) -> u32 {
    1
}

/// Most buffers that a bitmap heap scan holds: a stream those of all its reads, each as long as they get.
#[cfg(any(feature = "pg18", feature = "pg19"))]
fn pinned_by_bitmap(concurrency: u32) -> u32 {
    // SAFETY: reads a setting.
    let combined = unsafe { pg_sys::io_combine_limit };
    (concurrency + 1) * u32::try_from(combined).unwrap_or(1)
}

/// Most shared buffers that the read streams of a process may hold: its share of all.
#[cfg(any(feature = "pg18", feature = "pg19"))]
pub(in crate::pg) fn most_pinned() -> Option<u64> {
    // SAFETY: reads what was computed at the start of this process.
    Some(unsafe { pg_sys::GetPinLimit() }.max(1).into())
}
#[cfg(not(any(feature = "pg18", feature = "pg19")))]
pub(in crate::pg) fn most_pinned() -> Option<u64> {
    None
}

/// Reads a block, and lets go of it. Returns the buffer that it is in.
///
/// # Safety
/// `relation` must be open and locked, the block must exist.
pub(in crate::pg) unsafe fn read_block(
    relation: pg_sys::Relation,
    block: pg_sys::BlockNumber,
    ring: pg_sys::BufferAccessStrategy,
) -> pg_sys::Buffer {
    // SAFETY: the caller vouches for relation and block; the pin is released at once.
    unsafe {
        let mode = pg_sys::ReadBufferMode::RBM_NORMAL;
        let buffer = pg_sys::ReadBufferExtended(relation, MAIN, block, mode, ring);
        pg_sys::ReleaseBuffer(buffer);
        buffer
    }
}

/// Reads `blocks`, and lets go of each.
///
/// # Safety
/// `relation` must be open and locked, the blocks must exist, and `ring` be of the present transaction.
#[cfg(any(feature = "pg15", feature = "pg16"))]
pub(in crate::pg) unsafe fn read_blocks(
    relation: pg_sys::Relation,
    ring: pg_sys::BufferAccessStrategy,
    ahead: ReadAhead,
    blocks: &mut dyn Blocks,
) {
    let ReadAhead::By(depth) = ahead else {
        // A sequential scan asks for no block ahead.
        let concurrency = if let ReadAhead::Bitmap(concurrency) = ahead { concurrency } else { 0 };
        // SAFETY: the caller vouches for them.
        return unsafe { read_as_bitmap_scan(relation, ring, concurrency, blocks) };
    };
    let mut prefetched = std::collections::VecDeque::with_capacity(depth as usize);
    blocks.begin();
    loop {
        while prefetched.len() < depth as usize
            && let Some(block) = blocks.next()
        {
            // SAFETY: the caller vouches for relation and block.
            unsafe { pg_sys::PrefetchBuffer(relation, MAIN, block) };
            prefetched.push_back(block);
        }
        let Some(block) = prefetched.pop_front() else { break };
        // SAFETY: the caller vouches for them.
        let buffer = unsafe { read_block(relation, block, ring) };
        blocks.arrived(buffer);
    }
}

/// Reads `blocks`, and lets go of each.
///
/// # Safety
/// `relation` must be open and locked, the blocks must exist, and `ring` be of the present transaction.
#[cfg(not(any(feature = "pg15", feature = "pg16")))]
pub(in crate::pg) unsafe fn read_blocks(
    relation: pg_sys::Relation,
    ring: pg_sys::BufferAccessStrategy,
    ahead: ReadAhead,
    blocks: &mut dyn Blocks,
) {
    #[cfg(feature = "pg17")]
    if let ReadAhead::Bitmap(concurrency) = ahead {
        // SAFETY: the caller vouches for them.
        return unsafe { read_as_bitmap_scan(relation, ring, concurrency, blocks) };
    }
    // Not #[pg_guard]: it neither raises an ERROR nor panics, which would end the server, and is called
    // once a block.
    unsafe extern "C-unwind" fn next_block(
        _stream: *mut pg_sys::ReadStream,
        blocks: *mut std::ffi::c_void,
        _per_buffer_data: *mut std::ffi::c_void,
    ) -> pg_sys::BlockNumber {
        // SAFETY: the pointer below, whose target nothing else touches while the stream may call.
        let blocks = unsafe { &mut **blocks.cast::<*mut dyn Blocks>() };
        blocks.next().unwrap_or(pg_sys::InvalidBlockNumber)
    }
    // To the server the callback is data of one word.
    let mut handle: *mut dyn Blocks = blocks;
    // SAFETY: the caller vouches for relation, blocks and ring. The handle outlives the stream, and what it
    // points to is used either by the callback, inside of the stream's calls, or here, between them. Each
    // returned pin is released at once. After an ERROR the stream is not ended: the resource owner of the
    // (sub)transaction releases its pins, and nobody calls the callback again.
    unsafe {
        let stream = with_concurrency(ahead, || {
            pg_sys::read_stream_begin_relation(
                stream_flags(ahead) as i32,
                ring,
                relation,
                MAIN,
                Some(next_block),
                (&raw mut handle).cast(),
                0,
            )
        });
        (*handle).begin();
        loop {
            let buffer = pg_sys::read_stream_next_buffer(stream, std::ptr::null_mut());
            if buffer == pg_sys::InvalidBuffer as pg_sys::Buffer {
                break;
            }
            pg_sys::ReleaseBuffer(buffer);
            (*handle).arrived(buffer);
        }
        pg_sys::read_stream_end(stream);
    }
}

/// Reads `blocks` as a bitmap heap scan up to 17 does: after each block it asks for those that follow, up to
/// a target that grows to `concurrency`. With 1, a block is asked for right before it is read; with 0, never.
///
/// # Safety
/// `relation` must be open and locked, the blocks must exist, and `ring` be of the present transaction.
#[cfg(not(any(feature = "pg18", feature = "pg19")))]
unsafe fn read_as_bitmap_scan(
    relation: pg_sys::Relation,
    ring: pg_sys::BufferAccessStrategy,
    concurrency: u32,
    blocks: &mut dyn Blocks,
) {
    let most = concurrency as usize;
    let mut prefetched = std::collections::VecDeque::with_capacity(most);
    let mut target = 0;
    blocks.begin();
    while let Some(block) = prefetched.pop_front().or_else(|| blocks.next()) {
        // SAFETY: the caller vouches for relation and block.
        let buffer = unsafe { read_block(relation, block, ring) };
        // From page to page the target doubles, and grows by one with each row, here by one a page. (Were the
        // second page not asked for, the kernel would take neighbours for a sequential scan.)
        let doubled = if target >= most / 2 { most } else { 2 * target };
        target = (doubled + 1).min(most);
        while prefetched.len() < target
            && let Some(block) = blocks.next()
        {
            // SAFETY: as above.
            unsafe { pg_sys::PrefetchBuffer(relation, MAIN, block) };
            prefetched.push_back(block);
        }
        blocks.arrived(buffer);
    }
}

/// A sequential scan gives the kernel no advice; and from 18 on reads are started in batches, since the
/// callback takes no lock and does no I/O.
#[cfg(not(any(feature = "pg15", feature = "pg16")))]
fn stream_flags(ahead: ReadAhead) -> u32 {
    #[cfg(feature = "pg17")]
    const BATCHES: u32 = 0;
    #[cfg(any(feature = "pg18", feature = "pg19"))]
    const BATCHES: u32 = pg_sys::READ_STREAM_USE_BATCHING;
    BATCHES
        | if ahead == ReadAhead::Sequential {
            pg_sys::READ_STREAM_SEQUENTIAL
        } else {
            pg_sys::READ_STREAM_DEFAULT
        }
}

/// How many reads the server lets run ahead of a reader of this relation that wants `depth`: on 15 and 16
/// that is up to the reader; from 17 on the tablespace may have a setting of its own.
///
/// # Safety
/// `relation` must be open.
pub(in crate::pg) unsafe fn reads_ahead(relation: pg_sys::Relation, depth: u32) -> u32 {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    let _ = relation;
    #[cfg(not(any(feature = "pg15", feature = "pg16")))]
    let depth = {
        // SAFETY: the caller vouches for the relation; a lookup in the catalogs.
        let (allowed, pins) = unsafe {
            let tablespace = super::file_id(relation).tablespace;
            let concurrency = || pg_sys::get_tablespace_io_concurrency(tablespace);
            (with_concurrency(ReadAhead::By(depth), concurrency), pins(relation, depth))
        };
        depth.min(u32::try_from(allowed).unwrap_or(0)).min(pins)
    };
    depth
}

/// How many of `wanted` buffers a process may pin at once: with many connections the share of each is small,
/// and a temporary table has the session's own.
///
/// # Safety
/// `relation` must be open.
#[cfg(not(any(feature = "pg15", feature = "pg16")))]
unsafe fn pins(relation: pg_sys::Relation, wanted: u32) -> u32 {
    let mut pins = wanted;
    // SAFETY: the caller vouches for the relation; the calls read variables of this backend.
    unsafe {
        if (*(*relation).rd_rel).relpersistence as u8 != pg_sys::RELPERSISTENCE_TEMP {
            pg_sys::LimitAdditionalPins(&mut pins);
            return pins;
        }
        #[cfg(feature = "pg17")]
        pg_sys::LimitAdditionalLocalPins(&mut pins);
        #[cfg(any(feature = "pg18", feature = "pg19"))]
        {
            pins = pins.min(pg_sys::GetLocalPinLimit());
        }
    }
    pins
}

/// Calls `f` while `effective_io_concurrency` is the depth, which a stream looks at when it begins.
#[cfg(not(any(feature = "pg15", feature = "pg16")))]
fn with_concurrency<T>(ahead: ReadAhead, f: impl FnOnce() -> T) -> T {
    let (ReadAhead::By(depth) | ReadAhead::Bitmap(depth)) = ahead else { return f() };
    let depth = depth.min(pg_sys::MAX_IO_CONCURRENCY);
    settings::with(&[(c"effective_io_concurrency", &depth.to_string())], f)
}
