//! Fuzzes the function of `io_probe_core::hostile` that FUZZ_TARGET names.
#![no_main]

use std::sync::LazyLock;

use io_probe_core::hostile;

static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| match std::env::var("FUZZ_TARGET").as_deref() {
    Ok("texts") => hostile::texts,
    Ok("trees") => hostile::trees,
    Ok("plans") => hostile::plans,
    Ok("ledgers") => hostile::ledgers,
    other => panic!("FUZZ_TARGET is {other:?}"),
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| TARGET(data));
