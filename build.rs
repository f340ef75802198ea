//! What the linker replaces in this library.

fn main() {
    // What pgrx does with each ERROR of the server's, see src/pg/backend/rethrow.rs. The names are our own:
    // the server loads all libraries into one space of names.
    for (its, ours) in
        [("CopyErrorData", "pg_io_probe_shown_error"), ("FreeErrorData", "pg_io_probe_free_nothing")]
    {
        link(&format!("--wrap={its},--defsym=__wrap_{its}={ours}"));
    }
    // glibc ends a process that has no memory for a thread-local variable with a destructor. Where it lacks
    // this function, Rust keeps account of such variables itself, in memory of core/src/run/memory.rs.
    link("--defsym=__cxa_thread_atexit_impl=0");
    println!("cargo:rerun-if-changed=build.rs");
}

fn link(argument: &str) {
    println!("cargo:rustc-cdylib-link-arg=-Wl,{argument}");
}
