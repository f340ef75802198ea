//! What the linker replaces in this library.

/// What pgrx does with each ERROR of the server's, see src/pg/backend/rethrow.rs. The names are our own: the
/// server loads all libraries into one space of names.
///
/// glibc ends a process that has no memory for a thread-local variable with a destructor. Where it lacks the
/// last of these functions, Rust keeps account of such variables itself, in memory of core/src/run/memory.rs.
const REPLACED: [&str; 3] = [
    "--wrap=CopyErrorData,--defsym=__wrap_CopyErrorData=pg_io_probe_shown_error",
    "--wrap=FreeErrorData,--defsym=__wrap_FreeErrorData=pg_io_probe_free_nothing",
    "--defsym=__cxa_thread_atexit_impl=0",
];

fn main() {
    for replaced in REPLACED {
        println!("cargo:rustc-cdylib-link-arg=-Wl,{replaced}");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
