//! What SQL calls: one file per function family. Checks arguments, calls, shapes rows; measures
//! nothing and knows no pointer.

mod admission;
mod arguments;
mod cache;
mod check;
mod depth;
mod device;
mod explain;
mod history;
mod iostat;
mod options;
mod page_cost;
mod ping;
mod progress;
mod random;
mod readahead;
mod recommend;
mod seqscan;
mod subject;
mod sync;
