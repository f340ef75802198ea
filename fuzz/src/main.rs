//! Fuzzes the function of `hostile`, in io_probe_core or io_probe_advise, that FUZZ_TARGET names.
#![no_main]

use std::sync::LazyLock;

use io_probe_advise::hostile as of_plans;
use io_probe_core::hostile;

static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| match std::env::var("FUZZ_TARGET").as_deref() {
    Ok("texts") => hostile::texts,
    Ok("trees") => hostile::trees,
    Ok("plans") => of_plans::plans,
    Ok("ledgers") => of_plans::ledgers,
    other => panic!("FUZZ_TARGET is {other:?}"),
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| TARGET(data));
