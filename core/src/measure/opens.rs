//! How often a call opens a relation's files.

use std::fs::read_link;
use std::path::PathBuf;

use crate::engine::{self, Kind};
use crate::files::open_file::opened;
use crate::files::relation_files::fixture::{BLOCK, Relation};
use crate::files::{Access, Part, RelationFiles};
use crate::measure::BlockReader;
use crate::measure::random::{self, FetchOrder, Look, Queued};
use crate::measure::scan::{self, Buffered, Direct, ScanRun, Steps};
use crate::run::budget::{Budget, Limits};
use crate::run::clock::Monotonic;
use crate::run::order::Permutation;

/// What the calls for a scan, random fetches and page times do with the files, one after the other.
fn call(files: &RelationFiles) {
    let (all, limits) = (0..files.blocks(), Limits::none());
    let bounded = Limits { max_bytes: (files.blocks() - 1) * BLOCK, ..limits };
    files.evict(all.clone(), &mut || None, &mut |_| ()).expect("evicted");
    let scanned = |steps, limits| ScanRun {
        source: files,
        blocks: 0..files.blocks(),
        steps,
        without_data: None,
        limits,
    };
    scanned(Steps::of(1), bounded).reach(&mut Budget::unlimited(&Monotonic, &mut || None)).expect("known");
    files.write_back(all.clone(), &mut || None).expect("written back");
    let mut engine = engine::open(Some(Kind::Threads), 4, 8 * BLOCK as usize).expect("threads").engine;
    let run = |steps, reader: &mut dyn BlockReader<Part>| {
        let mut should_stop = || None;
        let mut budget = Budget::unlimited(&Monotonic, &mut should_stop);
        scan::scan(&scanned(steps, limits), reader, &mut budget, &mut |_| ()).expect("scanned")
    };
    assert_eq!(run(Steps::of(8), &mut Direct::new(files, engine.as_mut(), 4, 8)).blocks, all);
    assert_eq!(run(Steps::above_readahead(0, BLOCK), &mut Buffered::new(files)).blocks, all);
    for look in [Look::Never, Look::for_depth(4)] {
        let mut fetch_order = FetchOrder::new(files, Permutation::new(files.blocks(), 1), 0, look);
        let mut queued = Queued::new(engine.as_mut(), 4);
        let run = random::run(
            &mut fetch_order,
            &mut queued,
            &limits,
            &mut Budget::unlimited(&Monotonic, &mut || None),
            &mut |_| (),
        );
        assert_eq!(run.expect("a run").fetches, files.blocks());
    }
    assert!(files.cached_bytes(all.clone()).expect("known") > 0);
    files.drop_cached(all).expect("dropped");
}

/// The files below a directory that this process has open.
fn open_below(directory: &std::path::Path) -> Vec<PathBuf> {
    let links = std::fs::read_dir("/proc/self/fd").expect("descriptors").flatten();
    links.filter_map(|link| read_link(link.path()).ok()).filter(|to| to.starts_with(directory)).collect()
}

#[test]
fn a_call_opens_a_segment_once_for_each_way_of_reading() {
    let relation = Relation::new(600, 0..600);
    let files = relation.source.afresh();
    opened::take();
    call(&files);
    let mut found = opened::take();
    found.sort_by_key(|(path, access)| (path.clone(), *access == Access::Direct));
    let paths: Vec<PathBuf> = (0..3).map(|segment| files.path(segment)).collect();
    let once = |path: &PathBuf| [Access::Buffered, Access::Direct].map(|access| (path.clone(), access));
    assert_eq!(found, paths.iter().flat_map(once).collect::<Vec<_>>());
    // None was opened elsewhere and kept open.
    let directory = paths[0].parent().expect("a directory");
    assert_eq!(open_below(directory).len(), 6);
    drop(files);
    assert_eq!(open_below(directory), [] as [PathBuf; 0]);
}

/// As many segments as 1 TB has, of one block each, most of them holes.
#[test]
fn a_relation_of_many_segments_keeps_few_open() {
    const SEGMENTS: u64 = 1024;
    let relation = Relation::of_segments(1, SEGMENTS, 0..200);
    let files = relation.source.afresh();
    call(&files);
    let directory = files.path(0);
    let open = open_below(directory.parent().expect("a directory")).len();
    assert!((1..=files.most_open()).contains(&open), "{open}");
}
