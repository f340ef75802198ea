//! What holds for any text that comes from outside: the kernel's files, trees of them, and plans.
//!
//! Each function here reads bytes in one family of parsers and panics where a promise of theirs is broken.
//! The fuzzers in `fuzz/` call them with inputs of their own making. The tests call them with what the
//! fuzzers kept: `fuzz/corpus` has an archive a target. None of this is in the library that is shipped.
//!
//! | target | bytes | promise, beside that nothing panics |
//! |---|---|---|
//! | [`texts()`] | a file, then the same later, a NUL between | printed as by the kernel, it reads the same |
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
    use std::fs::File;
    use std::io::{self, Read};
    use std::path::{Path, PathBuf};

    /// Its name, and what it holds.
    type Input = (PathBuf, Vec<u8>);

    /// Reads all that the archive of a target keeps.
    fn replay(target: &str, read: fn(&[u8])) {
        replay_all(&format!("../fuzz/corpus/{target}.tar"), packed, read);
    }

    fn replay_all(corpus: &str, inputs: fn(&Path) -> io::Result<Vec<Input>>, read: fn(&[u8])) {
        let inputs = inputs(&Path::new(env!("CARGO_MANIFEST_DIR")).join(corpus)).expect(corpus);
        assert!(inputs.len() > 5, "{} inputs in {corpus}", inputs.len());
        for (path, bytes) in inputs {
            if let Err(broken) = std::panic::catch_unwind(|| read(&bytes)) {
                eprintln!("{corpus}: {}", path.display());
                std::panic::resume_unwind(broken);
            }
        }
    }

    /// The files of a tar archive.
    fn packed(archive: &Path) -> io::Result<Vec<Input>> {
        let mut inputs = Vec::new();
        for entry in tar::Archive::new(File::open(archive)?).entries()? {
            let mut entry = entry?;
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes)?;
            inputs.push((entry.path()?.into_owned(), bytes));
        }
        Ok(inputs)
    }

    /// The files of a folder.
    fn unpacked(folder: &Path) -> io::Result<Vec<Input>> {
        std::fs::read_dir(folder)?
            .map(|entry| entry.and_then(|entry| Ok((entry.path(), std::fs::read(entry.path())?))))
            .collect()
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
        replay_all("tests/fixtures/plan", unpacked, plans);
    }

    #[test]
    fn ledgers_of_the_corpus() {
        replay("ledgers", ledgers);
    }
}
