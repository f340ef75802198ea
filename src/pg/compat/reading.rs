//! Reading blocks through the buffer manager: one ReadBuffer after the other on 15 and 16, with PrefetchBuffer
//! where it shall read ahead; a read stream on 17 and 18, which asks for block numbers and runs ahead of what it
//! returns.

use pgrx::pg_sys;

/// The blocks to read.
pub(in crate::pg) trait Blocks {
    /// All is ready; the first read comes next.
    fn begin(&mut self);

    /// The next block to read; None when there is none.
    ///
    /// Called from inside the server: must neither raise an ERROR nor unwind, and take no lock.
    fn next(&mut self) -> Option<pg_sys::BlockNumber>;

    /// The oldest block that was handed out has been read, and its pin is released. Whoever wants to stop hands
    /// out no more: what was handed out is read, so that every block that the buffer manager counted is
    /// counted here.
    fn arrived(&mut self);
}

/// How far the server may run ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pg) enum Ahead {
    /// As a sequential scan of this server does, which on 15 and 16 is not at all.
    Sequential,
    /// So many reads.
    By(u32),
}

/// What a sequential scan of this server reads with.
#[cfg(any(feature = "pg15", feature = "pg16"))]
pub(in crate::pg) const READ_METHOD: &str = "ReadBuffer";
#[cfg(not(any(feature = "pg15", feature = "pg16")))]
pub(in crate::pg) const READ_METHOD: &str = "read stream";

/// What it reads ahead with elsewhere.
#[cfg(any(feature = "pg15", feature = "pg16"))]
pub(in crate::pg) const PREFETCH_METHOD: &str = "PrefetchBuffer";
#[cfg(not(any(feature = "pg15", feature = "pg16")))]
pub(in crate::pg) const PREFETCH_METHOD: &str = READ_METHOD;

/// A ring of buffers as bulk reads use it. One that shall run no further ahead than it is told gets as many buffers,
/// since a stream pins no more than its ring has. In the present memory context.
pub(in crate::pg) fn ring(ahead: Ahead) -> pg_sys::BufferAccessStrategy {
    // SAFETY: allocates.
    unsafe {
        #[cfg(feature = "pg15")]
        {
            let _ = ahead;
            pg_sys::GetAccessStrategy(pg_sys::BufferAccessStrategyType::BAS_BULKREAD)
        }
        #[cfg(not(feature = "pg15"))]
        {
            // 256 kB is what the server itself takes.
            let kb = match ahead {
                Ahead::By(depth) => depth * pg_sys::BLCKSZ / 1024,
                Ahead::Sequential => 256,
            };
            pg_sys::GetAccessStrategyWithSize(pg_sys::BufferAccessStrategyType::BAS_BULKREAD, kb as i32)
        }
    }
}

/// Reads a block, and lets go of it.
///
/// # Safety
/// `relation` must be open and locked, the block must exist.
pub(in crate::pg) unsafe fn read_block(
    relation: pg_sys::Relation,
    fork: pg_sys::ForkNumber::Type,
    block: pg_sys::BlockNumber,
    ring: pg_sys::BufferAccessStrategy,
) {
    // SAFETY: the caller vouches for relation and block; the pin is released at once.
    unsafe {
        let mode = pg_sys::ReadBufferMode::RBM_NORMAL;
        pg_sys::ReleaseBuffer(pg_sys::ReadBufferExtended(relation, fork, block, mode, ring));
    }
}

/// Reads `blocks`, and lets go of each.
///
/// # Safety
/// `relation` must be open and locked, the blocks must exist, and `ring` be of the present transaction.
#[cfg(any(feature = "pg15", feature = "pg16"))]
pub(in crate::pg) unsafe fn read_blocks(
    relation: pg_sys::Relation,
    fork: pg_sys::ForkNumber::Type,
    ring: pg_sys::BufferAccessStrategy,
    ahead: Ahead,
    blocks: &mut dyn Blocks,
) {
    let Ahead::By(depth) = ahead else {
        blocks.begin();
        while let Some(block) = blocks.next() {
            // SAFETY: the caller vouches for them.
            unsafe { read_block(relation, fork, block, ring) };
            blocks.arrived();
        }
        return;
    };
    let mut prefetched = std::collections::VecDeque::with_capacity(depth as usize);
    blocks.begin();
    loop {
        while prefetched.len() < depth as usize
            && let Some(block) = blocks.next()
        {
            // SAFETY: the caller vouches for relation and block.
            unsafe { pg_sys::PrefetchBuffer(relation, fork, block) };
            prefetched.push_back(block);
        }
        let Some(block) = prefetched.pop_front() else { break };
        // SAFETY: the caller vouches for them.
        unsafe { read_block(relation, fork, block, ring) };
        blocks.arrived();
    }
}

/// Reads `blocks`, and lets go of each.
///
/// # Safety
/// `relation` must be open and locked, the blocks must exist, and `ring` be of the present transaction.
#[cfg(not(any(feature = "pg15", feature = "pg16")))]
pub(in crate::pg) unsafe fn read_blocks(
    relation: pg_sys::Relation,
    fork: pg_sys::ForkNumber::Type,
    ring: pg_sys::BufferAccessStrategy,
    ahead: Ahead,
    blocks: &mut dyn Blocks,
) {
    // Not #[pg_guard]: it can neither raise an ERROR nor unwind, and is called once a block.
    unsafe extern "C-unwind" fn next_block(
        _stream: *mut pg_sys::ReadStream,
        blocks: *mut std::ffi::c_void,
        _per_buffer_data: *mut std::ffi::c_void,
    ) -> pg_sys::BlockNumber {
        // SAFETY: the pointer below, whose target nobody else touches while the stream may call.
        let blocks = unsafe { &mut **blocks.cast::<*mut dyn Blocks>() };
        blocks.next().unwrap_or(pg_sys::InvalidBlockNumber)
    }
    // To the server the callback is data of one word.
    let mut handle: *mut dyn Blocks = blocks;
    // SAFETY: the caller vouches for relation, blocks and ring. The handle outlives the stream, and what it points
    // to is used either by the callback, inside of the stream's calls, or here, between them. Each pin is released
    // at once.
    unsafe {
        let stream = with_concurrency(ahead, || {
            pg_sys::read_stream_begin_relation(
                stream_flags(ahead) as i32,
                ring,
                relation,
                fork,
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
            (*handle).arrived();
        }
        pg_sys::read_stream_end(stream);
    }
}

/// A sequential scan gives the kernel no advice; and from 18 on reads are started in batches, since the callback
/// takes no lock and does no I/O.
#[cfg(not(any(feature = "pg15", feature = "pg16")))]
fn stream_flags(ahead: Ahead) -> u32 {
    #[cfg(feature = "pg17")]
    const BATCHES: u32 = 0;
    #[cfg(feature = "pg18")]
    const BATCHES: u32 = pg_sys::READ_STREAM_USE_BATCHING;
    BATCHES
        | if ahead == Ahead::Sequential {
            pg_sys::READ_STREAM_SEQUENTIAL
        } else {
            pg_sys::READ_STREAM_DEFAULT
        }
}

/// How many reads the server lets run ahead of a reader of this relation that wants `depth`: on 15 and 16 that is
/// up to the reader; from 17 on the tablespace may have a setting of its own.
///
/// # Safety
/// `relation` must be open.
pub(in crate::pg) unsafe fn reads_ahead(relation: pg_sys::Relation, depth: u32) -> u32 {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    let _ = relation;
    #[cfg(not(any(feature = "pg15", feature = "pg16")))]
    let depth = {
        // SAFETY: the caller vouches for the relation; a lookup in the catalogs.
        let allowed = unsafe {
            let tablespace = super::file_id(relation).tablespace;
            with_concurrency(Ahead::By(depth), || pg_sys::get_tablespace_io_concurrency(tablespace))
        };
        depth.min(u32::try_from(allowed).unwrap_or(0)).min(pins(depth))
    };
    depth
}

/// How many of `wanted` buffers a process may pin at once: with many connections the share of each is small.
#[cfg(not(any(feature = "pg15", feature = "pg16")))]
fn pins(wanted: u32) -> u32 {
    let mut pins = wanted;
    // SAFETY: reads variables of this backend.
    unsafe { pg_sys::LimitAdditionalPins(&mut pins) };
    pins
}

/// Calls `f` while `effective_io_concurrency` is the depth, which a stream looks at when it begins.
#[cfg(not(any(feature = "pg15", feature = "pg16")))]
fn with_concurrency<T>(ahead: Ahead, f: impl FnOnce() -> T) -> T {
    let Ahead::By(depth) = ahead else { return f() };
    let depth = depth.min(pg_sys::MAX_IO_CONCURRENCY);
    let depth = std::ffi::CString::new(depth.to_string()).unwrap_or_default();
    // SAFETY: a value for the time of a nesting level, which an ERROR in between ends as well.
    unsafe {
        let level = pg_sys::NewGUCNestLevel();
        pg_sys::set_config_option(
            c"effective_io_concurrency".as_ptr(),
            depth.as_ptr(),
            pg_sys::GucContext::PGC_USERSET,
            pg_sys::GucSource::PGC_S_SESSION,
            pg_sys::GucAction::GUC_ACTION_SAVE,
            true,
            0,
            false,
        );
        let result = f();
        pg_sys::AtEOXact_GUC(true, level);
        result
    }
}
