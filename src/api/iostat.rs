//! `io_probe_iostat`: what the devices behind the server do, interval by interval, as iostat -x shows it.

mod samples;

use std::time::Duration;

use io_probe_core::machine::device::{BlockDevice, Roots};
use io_probe_core::machine::iostat::{self, Sample, Watch};
use io_probe_core::run::budget::{Limits, Stop};
use io_probe_core::run::clock::{Clock, Monotonic, nanoseconds};
use io_probe_surface::function::OptionName;
use io_probe_surface::iostat::{IostatRow, OPTIONS};
use pgrx::prelude::*;

use super::device::leaves_of_server;
use super::shared::Caveats;
use crate::call::{Begin, Call, Options, Probe, arguments};
use crate::error::{Error, Result};
use crate::gucs;
use crate::pg::backend::{JsonbText, Rows, SqlInterval, interrupts, server};

/// Most samples of a call, and most rows that the samples of several devices may make.
pub(super) const MOST_ROWS: usize = 10_000;

/// Shorter intervals would show the ticks of the kernel's clock.
const LEAST_INTERVAL: Duration = Duration::from_millis(10);

#[pg_extern(sql = false)]
fn io_probe_iostat(every: Option<SqlInterval>, count: Option<i32>, options: Option<JsonbText>) -> Rows {
    Rows::answer(|| {
        let options = Options::parse(options, OPTIONS)?;
        let every = interval(every)?;
        let count = arguments::positive_up_to("count", count.unwrap_or(1), MOST_ROWS as u32)?;
        let length = gucs::capped_duration("count times every", every.saturating_mul(count))?;
        let watched = Watched::find(options.text(OptionName::Device)?.as_deref())?;
        watched.check_count(count)?;

        let call = Begin::of(Probe::Iostat).beside_probes()?;
        match watched.sample(&call, every, count, length)? {
            Some((samples, stop)) => samples::rows(&watched, &samples, stop),
            None => Ok(not_begun(&watched, Stop::Statement)),
        }
    })
}

/// The rows of a call that came too late to begin: one for each device, or one without.
fn not_begun(watched: &Watched, why: Stop) -> Vec<IostatRow> {
    let mut caveats = Caveats::default();
    caveats.not_begun(why);
    let sampled_at = Some(server::present());
    let rows = (0..watched.rows_a_sample()).map(|index| {
        let device = watched.watch.devices().get(index).map(|device| device.name().to_owned().into());
        IostatRow { sampled_at, device, caveats: caveats.clone().columns(), ..IostatRow::default() }
    });
    rows.collect()
}

/// The length of the intervals: a second by default.
pub(super) fn interval(every: Option<SqlInterval>) -> Result<Duration> {
    let every = arguments::pause("every", every)?.unwrap_or(Duration::from_secs(1));
    if every < LEAST_INTERVAL {
        return Err(Error::invalid(format!("every must be at least {} ms", LEAST_INTERVAL.as_millis())));
    }
    Ok(every)
}

struct Watched {
    watch: Watch,
    notes: Vec<String>,
}

impl Watched {
    /// The device of this name, or those behind the server.
    fn find(name: Option<&str>) -> Result<Self> {
        let roots = Roots::default();
        let (devices, notes) = match name {
            Some(name) => (vec![by_name(name, &roots)?], Vec::new()),
            None => {
                let (leaves, notes) = leaves_of_server(&roots);
                let found = leaves.iter().filter_map(|leaf| BlockDevice::find(&leaf.name, &roots));
                (found.collect(), notes)
            }
        };
        Ok(Self { watch: Watch::new(devices, roots), notes })
    }

    fn rows_a_sample(&self) -> usize {
        self.watch.devices().len().max(1)
    }

    /// Refuses a count whose samples, with a row for each device, are too many rows.
    fn check_count(&self, count: u32) -> Result<()> {
        let most = MOST_ROWS / self.rows_a_sample();
        if count as usize > most {
            let devices = self.rows_a_sample();
            return Err(Error::invalid(format!(
                "count must be at most {most} for {devices} devices, not {count}"
            )));
        }
        Ok(())
    }

    /// The samples, and why they ended early; None where the statement's time was used up before.
    fn sample(
        &self,
        call: &Call,
        every: Duration,
        samples: u32,
        length: Duration,
    ) -> Result<Option<(Vec<Sample>, Option<Stop>)>> {
        let left = call.time_left();
        if left.is_zero() {
            return Ok(None);
        }
        call.progress.total(samples.into());
        let end = Monotonic.now().saturating_add(nanoseconds(left));
        let limits = Limits { duration: length, ..Limits::none() };
        let end = if limits.are_cut_short_by(left) { end } else { u64::MAX };
        let mut wait = |when: u64| {
            interrupts::sleep_until(when.min(end));
            (when > end).then_some(Stop::Statement)
        };
        let mut done = |samples| call.progress.done(samples);
        Ok(Some(iostat::sample(&self.watch, every, samples as usize, &mut wait, &mut done)?))
    }
}

/// A device by the kernel's name, with or without `/dev/` before it; links in `/dev` are not followed.
fn by_name(name: &str, roots: &Roots) -> Result<BlockDevice> {
    BlockDevice::find(name.strip_prefix("/dev/").unwrap_or(name), roots).ok_or_else(|| {
        Error::invalid(format!("unknown device \"{name}\""))
            .hint("io_probe_device() shows the devices of this server.")
    })
}
