//! A device that stands still once in a while: whatever is due then is due when it goes on.
//!
//! The model below has a clock of its own, which stands during a stall.

use crate::model::spec::{Invalid, Parameters};
use crate::request::Seconds;

/// The stalls of a device; none if `stall` is 0.
#[derive(Debug)]
pub struct Stalls {
    /// Seconds of work between two stalls.
    every: Seconds,
    /// Seconds of a stall.
    stall: Seconds,
}

impl Stalls {
    /// `stall`: seconds that the device stands after each `stall_every` seconds of work.
    pub fn new(parameters: &mut Parameters) -> Result<Self, Invalid> {
        let Some(stall) = parameters.optional("stall")? else { return Ok(Self { every: 1.0, stall: 0.0 }) };
        Ok(Self { every: parameters.positive("stall_every", 30.0)?, stall })
    }

    /// Seconds of work until a time.
    pub fn worked(&self, now: Seconds) -> Seconds {
        let period = self.every + self.stall;
        (now / period).floor() * self.every + (now % period).min(self.every)
    }

    /// The time at which so much work is done.
    pub fn time(&self, worked: Seconds) -> Seconds {
        worked + (worked / self.every).floor() * self.stall
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::{Simulation, about};

    #[test]
    fn the_clock_below_stands_during_a_stall() {
        let stalls = Stalls { every: 30.0, stall: 5.0 };
        for (now, worked) in
            [(0.0, 0.0), (29.0, 29.0), (31.0, 30.0), (34.9, 30.0), (36.0, 31.0), (71.0, 61.0)]
        {
            about(stalls.worked(now), worked, 1e-9);
        }
        for (worked, time) in [(29.0, 29.0), (30.0, 35.0), (31.0, 36.0), (61.0, 71.0)] {
            about(stalls.time(worked), time, 1e-9);
        }
    }

    #[test]
    fn what_is_in_flight_waits_for_the_end_of_the_stall() {
        let mut volume = Simulation::new("gp3 jitter=0 stall=5 stall_every=30");
        volume.wait(29.9995);
        about(volume.read(0, 8192), 5.0007, 1e-6);
        about(volume.read(0, 8192), 0.0007, 1e-6);
    }

    #[test]
    fn what_comes_during_a_stall_waits_for_its_end() {
        let mut disk = Simulation::new("hdd stall=5 stall_every=30");
        disk.wait(31.0);
        let seconds = disk.read(0, 8192);
        assert!((4.0..4.05).contains(&seconds), "{seconds} s");
    }
}
