//! What holds for any text that comes from outside: the kernel's files, trees of them, and plans.
//!
//! Each function here reads bytes in one family of parsers and panics where a promise of theirs is broken. The fuzzers in
//! `fuzz/` call them with inputs of their own making; the tests call them with what the fuzzers kept in `fuzz/corpus`.
//! None of this is in the library that is shipped.
//!
//! | target | bytes | promise, beside that nothing panics |
//! |---|---|---|
//! | [`texts()`] | one file, earlier and later, with a NUL between | printed as the kernel prints it, it reads the same |
//! | [`trees()`] | files and links, see there | the walk ends, gives the same twice, and stays in the tree |
//! | [`plans()`] | an EXPLAIN in JSON | the nodes' own figures sum up to the top's |
//! | [`ledgers()`] | figures of a plan, four bytes a node | the same, for figures that no JSON need hold |

mod ledgers;
pub(crate) mod plans;
mod texts;
mod trees;

pub use ledgers::ledgers;
pub use plans::plans;
pub use texts::texts;
pub use trees::trees;

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads all that is kept for a target.
    fn replay(target: &str, read: fn(&[u8])) {
        replay_all(&format!("../fuzz/corpus/{target}"), read);
    }

    fn replay_all(folder: &str, read: fn(&[u8])) {
        let corpus = format!("{}/{folder}", env!("CARGO_MANIFEST_DIR"));
        let mut count = 0;
        for entry in std::fs::read_dir(corpus).expect("a corpus") {
            let path = entry.expect("an entry").path();
            let bytes = std::fs::read(&path).expect("an input");
            if let Err(broken) = std::panic::catch_unwind(|| read(&bytes)) {
                eprintln!("{}", path.display());
                std::panic::resume_unwind(broken);
            }
            count += 1;
        }
        assert!(count > 5, "{count} inputs in {folder}");
    }

    #[test]
    fn texts_of_the_corpus() {
        replay("texts", texts);
    }

    #[test]
    fn trees_of_the_corpus() {
        replay("trees", trees);
    }

    #[test]
    fn plans_of_the_corpus() {
        replay("plans", plans);
        replay_all("tests/fixtures/plan", plans);
    }

    #[test]
    fn ledgers_of_the_corpus() {
        replay("ledgers", ledgers);
    }
}
