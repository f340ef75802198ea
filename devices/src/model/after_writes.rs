//! Writes that slow down reads, as a flash drive's that erases: a read soon after a write takes longer.

use crate::model::spec::{Invalid, Parameters};
use crate::request::{Kind, Request, Seconds};

/// The penalty of writes.
#[derive(Debug)]
pub struct AfterWrites {
    penalty: Seconds,
    lasts: Seconds,
    /// The last write.
    written: Option<Seconds>,
}

impl AfterWrites {
    /// `penalty_ms`: what a read takes more that comes within `penalty_for_ms` of a write; None without the
    /// first.
    pub fn new(parameters: &mut Parameters) -> Result<Option<Self>, Invalid> {
        let Some(ms) = parameters.optional("penalty_ms")? else { return Ok(None) };
        let lasts = parameters.positive("penalty_for_ms", 10.0)? / 1000.0;
        Ok(Some(Self { penalty: ms / 1000.0, lasts, written: None }))
    }

    /// A request comes: what it takes more.
    pub fn arrive(&mut self, now: Seconds, request: Request) -> Seconds {
        match request.kind {
            Kind::Write => self.written = Some(now),
            Kind::Read if self.written.is_some_and(|written| now < written + self.lasts) => {
                return self.penalty;
            }
            Kind::Read | Kind::Flush => {}
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use crate::simulation::{Simulation, about};

    #[test]
    fn a_read_soon_after_a_write_takes_longer() {
        let mut drive = Simulation::new("ssd jitter=0 penalty_ms=2 penalty_for_ms=10");
        about(drive.read(0, 8192), 0.00009, 1e-6);
        about(drive.write(0, 8192), 0.00009, 1e-6);
        about(drive.read(0, 8192), 0.00209, 1e-6);
        drive.wait(0.010);
        about(drive.read(0, 8192), 0.00009, 1e-6);
    }
}
