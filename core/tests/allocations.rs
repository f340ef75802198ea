//! The loop of a random run allocates nothing: memory taken or given back while requests are timed would be
//! part of their latency.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use io_probe_core::engine::{self, Kind};
use io_probe_core::files::RelationFiles;
use io_probe_core::measure::random::{FetchOrder, Look, Queued, run};
use io_probe_core::run::budget::{Budget, Limits};
use io_probe_core::run::clock::Monotonic;
use io_probe_core::run::order::Permutation;

/// The system's allocator, with a count of a thread's calls.
struct Counting;

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: does what the system's allocator does.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: the caller vouches for the layout.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: the caller vouches for both.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_random_run_allocates_nothing_once_it_runs() {
    const BLOCKS: u64 = 4096;
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory");
    std::fs::write(directory.path().join("1"), vec![1; 8192 * BLOCKS as usize]).expect("written");
    let source = RelationFiles::new(directory.path().join("1"), 8192, 1 << 17, BLOCKS);
    let limits = Limits { duration: Duration::from_secs(60), ..Limits::none() };
    let mut engines = vec![
        (1, engine::open(None, 1, 8192).expect("pread")),
        (8, engine::open(Some(Kind::Threads), 8, 8192).expect("threads")),
    ];
    engines.extend(engine::open(Some(Kind::IoUring), 8, 8192).ok().map(|opened| (8, opened)));
    for (depth, mut opened) in engines {
        let mut fetch_order =
            FetchOrder::new(&source, Permutation::new(BLOCKS, 1), 0, Look::for_depth(depth));
        let mut queued = Queued::new(opened.engine.as_mut(), depth);
        // It tells how far it got after the first request, and then twice in a millisecond.
        let (mut first, mut last) = (None, 0);
        let mut progress = |_| {
            last = CALLS.get();
            first.get_or_insert(last);
        };
        let run = run(
            &mut fetch_order,
            &mut queued,
            &limits,
            &mut Budget::unlimited(&Monotonic, &mut || None),
            &mut progress,
        )
        .expect("a run");
        assert_eq!(run.fetches, BLOCKS);
        assert!(first.is_some());
        assert_eq!(first, Some(last), "allocations at depth {depth} with {:?}", opened.kind);
    }
}
