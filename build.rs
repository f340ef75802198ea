//! Two functions of the server's that pgrx calls for each ERROR are replaced by ours: see
//! `src/pg/backend/rethrow.rs`.

fn main() {
    // Names of our own: the server loads all libraries into one space of names.
    for (its, ours) in
        [("CopyErrorData", "pg_io_probe_shown_error"), ("FreeErrorData", "pg_io_probe_free_nothing")]
    {
        println!("cargo:rustc-cdylib-link-arg=-Wl,--wrap={its},--defsym=__wrap_{its}={ours}");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
