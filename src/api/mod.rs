//! What SQL calls: one file per function family. Checks arguments, calls, shapes rows; measures
//! nothing and knows no pointer.

mod arguments;
mod cache;
mod check;
mod device;
mod explain;
mod options;
mod progress;
mod seqscan;
