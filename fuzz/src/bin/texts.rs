//! See `io_probe_core::hostile`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| io_probe_core::hostile::texts(data));
