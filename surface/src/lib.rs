//! The SQL interface of `pg_io_probe`, declared once: functions and their arguments, rows and their columns,
//! settings.
//!
//! From it come the script of CREATE EXTENSION, docs/columns.md, the calls that tests make of each function,
//! and the structures that the library fills. Knows no server.

pub mod calls;
pub mod columns;
pub mod compare;
pub mod correlation;
pub mod depth;
pub mod doubt;
pub mod explain;
pub mod facts;
pub mod function;
pub mod history;
pub mod iostat;
pub mod mix;
pub mod page_cost;
pub mod ping;
pub mod random;
pub mod readahead;
pub mod recommend;
pub mod report;
pub mod row;
pub mod script;
pub mod seqscan;
pub mod sessions;
pub mod settings;
pub mod shared;
pub mod sustain;
pub mod sync;
pub mod value;
mod words;
pub mod write;
