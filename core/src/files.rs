//! The files that are measured: a relation's, and scratch files.

pub mod cache;
pub mod direct_io;
pub mod extents;
pub mod scratch;
pub mod source;
pub(crate) mod writeback;
