//! What SQL calls: one file per function family. Checks arguments, calls, shapes rows; measures
//! nothing and knows no pointer.

mod cache;
mod check;
mod correlation;
mod depth;
mod device;
mod direct_reads;
mod explain;
mod history;
mod iostat;
mod mix;
mod page_cost;
mod ping;
mod progress;
mod random;
mod readahead;
mod recommend;
mod report;
mod seqscan;
mod sessions;
mod shared;
mod sustain;
mod sync;
mod write;
