//! What holds for any text that comes from outside: the kernel's files, and trees of them.
//!
//! Each function here reads bytes in one family of parsers and panics where a promise of theirs is broken.
//! The fuzzers in `fuzz/` call them with inputs of their own making. The tests call them with what the
//! fuzzers kept: `fuzz/corpus` has an archive a target. None of this is in the library that is shipped.
//!
//! | target | bytes | promise, beside that nothing panics |
//! |---|---|---|
//! | [`texts()`] | a file, then the same later, a NUL between | printed as by the kernel, it reads the same |
//! | [`trees()`] | files and links, see there | the walk ends, gives the same twice, and stays in the tree |

mod texts;
mod trees;

pub use texts::texts;
pub use trees::trees;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs::File;
    use std::io::Read;
    use std::path::Path;

    /// Reads all that the archive of a target keeps.
    fn replay(target: &str, read: fn(&[u8])) {
        let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
        let archive = File::open(archive.with_extension("tar")).expect(target);
        let mut count = 0;
        for entry in tar::Archive::new(archive).entries().expect(target) {
            let mut entry = entry.expect(target);
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).expect(target);
            if let Err(broken) = std::panic::catch_unwind(|| read(&bytes)) {
                eprintln!("{target}: {}", entry.path().expect(target).display());
                std::panic::resume_unwind(broken);
            }
            count += 1;
        }
        assert!(count > 5, "{count} inputs of {target}");
    }

    #[test]
    fn texts_of_the_corpus() {
        replay("texts", texts);
    }

    proptest! {
        /// Lines that may be some of the kernel's: words as in its tables of mounts.
        #[test]
        fn texts_of_words(text in r"([-:/\\0-9a-z,=]{0,12}[ \t\n\x00]){0,20}") {
            texts(text.as_bytes());
        }

        /// A line of counters that has grown.
        #[test]
        fn texts_of_counters(
            name in "(cpu  |some avg10=0 total=)?",
            counters in proptest::collection::vec((any::<u32>(), any::<u32>()), 1..20),
        ) {
            let line = |of: &dyn Fn((u32, u32)) -> u64| {
                let words: Vec<String> = counters.iter().map(|pair| of(*pair).to_string()).collect();
                format!("{name}{}", words.join(" "))
            };
            let earlier = line(&|(before, _)| before.into());
            let later = line(&|(before, more)| u64::from(before) + u64::from(more));
            texts(format!("{earlier}\0{later}").as_bytes());
        }
    }

    #[test]
    fn trees_of_the_corpus() {
        replay("trees", trees);
    }
}
