//! The files that are measured: a relation's, and scratch files.
//!
//! From the top down: a relation's files, which of them are open, eviction and holes, write-back, one open
//! file, what the page cache and the extent map tell of it.

pub mod btree;
pub(crate) mod cached_data;
pub(crate) mod descriptors;
pub mod direct_io;
pub(crate) mod eviction;
mod fiemap;
pub mod holes;
pub mod open_file;
pub mod page_cache;
pub mod relation_files;
pub mod scratch;
pub(crate) mod writeback;

pub use open_file::{Access, OpenFile};
pub use relation_files::{Part, RelationFiles};
