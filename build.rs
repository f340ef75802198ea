//! Two functions of the server's that pgrx calls for each ERROR are replaced: see `src/pg/backend/rethrow.rs`.

fn main() {
    for name in ["CopyErrorData", "FreeErrorData"] {
        println!("cargo:rustc-cdylib-link-arg=-Wl,--wrap={name}");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
