//! A device that fails: its answers are EIO after a time, or on a part of it.

use crate::model::spec::{Invalid, Parameters};
use crate::request::{Request, Seconds};

/// Which requests fail.
#[derive(Debug)]
pub struct Failure {
    after: Option<Seconds>,
    /// The part that fails, in bytes.
    from: f64,
    to: f64,
}

impl Failure {
    /// `eio_after`: seconds after which each request fails. `eio_from` and `eio_to`: the MiB between which
    /// they fail.
    pub fn new(parameters: &mut Parameters) -> Result<Self, Invalid> {
        let after = parameters.optional("eio_after")?;
        let to = parameters.optional("eio_to")?.unwrap_or(0.0) * 1_048_576.0;
        Ok(Self { after, from: parameters.at_least_0("eio_from", 0.0)? * 1_048_576.0, to })
    }

    /// Does a request fail that is answered now?
    pub fn fails(&self, now: Seconds, request: Request) -> bool {
        let late = self.after.is_some_and(|after| now >= after);
        let damaged =
            request.length > 0 && (request.offset as f64) < self.to && request.end() as f64 > self.from;
        late || damaged
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Kind;
    use crate::simulation::Simulation;

    fn read(offset: u64) -> Request {
        Request { kind: Kind::Read, offset, length: 8192 }
    }

    #[test]
    fn a_part_fails() {
        let failure = Failure { after: None, from: 1_048_576.0, to: 2_097_152.0 };
        let failing = [1_048_576 - 8192, 1_048_576 - 4096, 1_048_576, 2_097_152 - 8192, 2_097_152];
        assert_eq!(failing.map(|offset| failure.fails(0.0, read(offset))), [false, true, true, true, false]);
        assert!(!failure.fails(0.0, Request { kind: Kind::Flush, offset: 0, length: 0 }));
    }

    #[test]
    fn all_fails_after_a_time() {
        let mut volume = Simulation::new("gp3 eio_after=60");
        assert!(!volume.fails_to_read(0, 8192));
        volume.wait(60.0);
        assert!(volume.fails_to_read(0, 8192));
    }

    #[test]
    fn nothing_fails_otherwise() {
        let mut disk = Simulation::new("hdd");
        disk.wait(1e6);
        assert!(!disk.fails_to_read(0, 8192));
    }
}
