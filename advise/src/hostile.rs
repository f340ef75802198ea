//! What holds for any plan that comes from outside.
//!
//! As `io_probe_core::hostile`: the fuzzers in `fuzz/` call these functions, and so do the tests, with what
//! the fuzzers kept.
//!
//! | target | bytes | promise, beside that nothing panics |
//! |---|---|---|
//! | [`plans()`] | an EXPLAIN in JSON | the nodes' own figures sum up to the top's |
//! | [`ledgers()`] | figures of a plan, four bytes a node | the same, for figures that no JSON need hold |

pub(crate) mod plans;

pub use plans::plans;

/// Reads four bytes a node: how far up its parent is, what it is, what it provides and needs, and how much it
/// counted.
pub fn ledgers(data: &[u8]) {
    let nodes: Vec<[u8; 4]> =
        data.chunks_exact(4).take(200).filter_map(|node| node.try_into().ok()).collect();
    if !nodes.is_empty() {
        crate::plan::hostile::adds_up(&nodes);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    /// The inputs that the archive of a target keeps.
    fn corpus(target: &str) -> Vec<Vec<u8>> {
        let archive = format!("{}/../fuzz/corpus/{target}.tar", env!("CARGO_MANIFEST_DIR"));
        let mut archive = tar::Archive::new(std::fs::File::open(archive).expect(target));
        let input = |entry: std::io::Result<tar::Entry<_>>| {
            let mut bytes = Vec::new();
            entry.expect(target).read_to_end(&mut bytes).expect(target);
            bytes
        };
        archive.entries().expect(target).map(input).collect()
    }

    #[test]
    fn plans_of_the_corpus() {
        let inputs = corpus("plans");
        assert!(inputs.len() > 5);
        inputs.iter().for_each(|input| plans(input));
        crate::plan::tests::fixtures().for_each(|(_, text)| plans(text.as_bytes()));
    }

    #[test]
    fn ledgers_of_the_corpus() {
        let inputs = corpus("ledgers");
        assert!(inputs.len() > 5);
        inputs.iter().for_each(|input| ledgers(input));
    }
}
