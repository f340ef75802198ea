//! When is a request answered? Plain arithmetic, which takes the time from its caller.
//!
//! A model is a device (none, a disk with one head, or a volume), and what may be added to each of them: a
//! cache in front, stalls, failures.

mod after_writes;
mod cache;
mod failure;
mod head;
mod spec;
mod stalls;
mod volume;

use cache::Cache;
use failure::Failure;
use head::Head;
pub use spec::Invalid;
use spec::Parameters;
use stalls::Stalls;
use volume::Volume;

use crate::request::{Request, Seconds, Ticket};

#[derive(Debug)]
enum Device {
    /// Answers at once.
    Off,
    Head(Head),
    Volume(Volume),
}

impl Device {
    fn new(name: &str, size: u64, parameters: &mut Parameters) -> Result<Self, Invalid> {
        let volume = match name {
            "off" => return Ok(Self::Off),
            "hdd" => return Ok(Self::Head(Head::new(size, parameters)?)),
            "gp3" => volume::GP3,
            "burst" => volume::BURST,
            "net" => volume::NET,
            "ssd" => volume::SSD,
            _ => return Err(Invalid::Name(name.to_owned())),
        };
        Ok(Self::Volume(Volume::new(volume, parameters)?))
    }

    fn arrive(&mut self, now: Seconds, ticket: Ticket, request: Request) -> Option<Seconds> {
        match self {
            Self::Off => Some(now),
            Self::Head(head) => head.arrive(now, ticket, request),
            Self::Volume(volume) => Some(volume.arrive(now, request)),
        }
    }
}

/// Who answers a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The device itself.
    Device,
    /// The cache in front of it.
    Cache,
}

/// When a request is answered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Due {
    /// Which one.
    pub ticket: Ticket,
    /// The time.
    pub at: Seconds,
    /// By whom.
    pub by: Source,
}

/// A model with its state.
#[derive(Debug)]
pub struct Model {
    device: Device,
    cache: Option<Cache>,
    stalls: Stalls,
    failure: Failure,
}

impl Model {
    /// The model that the words name, such as `gp3 iops=500`, for a device of `size` bytes.
    ///
    /// # Errors
    /// When there is no such model or parameter, or a parameter has a value that it can't have.
    pub fn new(words: &str, size: u64) -> Result<Self, Invalid> {
        let (name, mut parameters) = Parameters::of(words)?;
        let model = Self {
            device: Device::new(&name, size, &mut parameters)?,
            cache: Cache::new(size, &mut parameters)?,
            stalls: Stalls::new(&mut parameters)?,
            failure: Failure::new(&mut parameters)?,
        };
        parameters.all_taken().map(|()| model)
    }

    /// A request comes: when it is answered. None: it waits, and `answered` will say when.
    pub fn arrive(&mut self, now: Seconds, ticket: Ticket, request: Request) -> Option<Due> {
        let worked = self.stalls.worked(now);
        let hit = self.cache.as_ref().and_then(|cache| cache.hit(worked, request));
        let (at, by) = match hit {
            Some(at) => (at, Source::Cache),
            None => (self.device.arrive(worked, ticket, request)?, Source::Device),
        };
        Some(Due { ticket, at: self.stalls.time(at), by })
    }

    /// A request that was due is answered: when the one is that has waited for that.
    pub fn answered(&mut self, due: Due, request: Request) -> Option<Due> {
        if due.by == Source::Cache {
            return None;
        }
        if let Some(cache) = &mut self.cache {
            cache.keep(request);
        }
        let Device::Head(head) = &mut self.device else { return None };
        let (ticket, at) = head.next(self.stalls.worked(due.at))?;
        Some(Due { ticket, at: self.stalls.time(at), by: Source::Device })
    }

    /// Does a request fail that is answered now?
    pub fn fails(&self, now: Seconds, request: Request) -> bool {
        self.failure.fails(now, request)
    }

    /// Burst credits that are left; None for a device without.
    pub fn credits(&self, now: Seconds) -> Option<f64> {
        let Device::Volume(volume) = &self.device else { return None };
        volume.credits(self.stalls.worked(now))
    }
}
