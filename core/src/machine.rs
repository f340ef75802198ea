//! The machine: its devices, control groups and processors, as the kernel tells of them.

pub mod account;
pub mod cgroup;
pub mod cpu;
pub mod device;
pub mod disturbance;
pub mod handed_reads;
pub mod host;
pub mod iostat;
pub mod observer;
pub mod pressure;
pub mod process_io;
