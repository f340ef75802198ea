//! Arguments that several functions share, and the look of their figures.

use std::cmp::Ordering;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use pgrx::pg_sys;

use super::named::named;
use crate::error::{Error, Result};
use crate::gucs;
use crate::pg::backend::interval::SqlInterval;

named! {
    /// The three ways in which a page travels, in the order of their rows.
    pub(crate) enum ReadPath: "path", "paths" {
        /// O_DIRECT, large requests at a depth.
        Direct = "direct",
        /// Through the buffer manager, as the server itself reads.
        Server = "server",
        /// Through the OS page cache, one block a call.
        Os = "os",
    }
}

/// A relation must be named.
pub(crate) fn relation(rel: Option<pg_sys::Oid>) -> Result<pg_sys::Oid> {
    rel.ok_or_else(|| Error::invalid("relation must not be null"))
}

/// A duration must be positive.
pub(crate) fn duration(duration: Option<SqlInterval>) -> Result<Option<Duration>> {
    positive_time("duration", duration)
}

/// A time that must be positive.
pub(crate) fn positive_time(name: &str, time: Option<SqlInterval>) -> Result<Option<Duration>> {
    let Some(time) = time else { return Ok(None) };
    let micros = time.as_micros();
    if micros <= 0 {
        return Err(Error::invalid(format!("{name} must be positive")));
    }
    Ok(Some(Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))))
}

/// A time between two requests must not be negative.
pub(crate) fn pause(name: &str, pause: Option<SqlInterval>) -> Result<Option<Duration>> {
    let Some(pause) = pause else { return Ok(None) };
    match u64::try_from(pause.as_micros()) {
        Ok(micros) => Ok(Some(Duration::from_micros(micros))),
        Err(_) if pause.as_micros() > 0 => Ok(Some(Duration::from_micros(u64::MAX))),
        Err(_) => Err(Error::invalid(format!("{name} must not be negative"))),
    }
}

/// The seed of a random order: as given, or any.
pub(crate) fn seed(seed: Option<i64>) -> u64 {
    // The keys of a RandomState are random. Positive, since it is reported and may be given again.
    seed.map_or_else(|| RandomState::new().build_hasher().finish() >> 1, |seed| seed as u64)
}

/// A whole number of at least 1.
pub(crate) fn positive(name: &str, value: i32) -> Result<u32> {
    match u32::try_from(value) {
        Ok(value) if value > 0 => Ok(value),
        _ => Err(Error::invalid(format!("{name} must be at least 1, not {value}"))),
    }
}

/// Requests in flight: at least 1 and within the cap, or the default, which gives way to the cap.
pub(crate) fn depth(depth: Option<i32>, default: u32) -> Result<u32> {
    gucs::depth(depth.map(|depth| positive("depth", depth)).transpose()?, default)
}

pub(crate) fn positive_up_to(name: &str, value: i32, most: u32) -> Result<u32> {
    match positive(name, value)? {
        value if value <= most => Ok(value),
        value => Err(Error::invalid(format!("{name} must be at most {most}, not {value}"))),
    }
}

/// The numbers of a list as `check` takes them, each once, ascending.
pub(crate) fn numbers<T, U: PartialOrd>(
    name: &str,
    numbers: Vec<Option<T>>,
    check: impl Fn(T) -> Result<U>,
) -> Result<Vec<U>> {
    let checked = numbers.into_iter().map(|number| match number {
        Some(number) => check(number),
        None => Err(Error::invalid(format!("{name} must not contain nulls"))),
    });
    let mut numbers = checked.collect::<Result<Vec<U>>>()?;
    numbers.sort_unstable_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal));
    numbers.dedup();
    Ok(numbers)
}

/// A list must have a number, unless it is left out.
pub(crate) fn not_empty<T>(name: &str, list: &[T]) -> Result<()> {
    if list.is_empty() { Err(Error::invalid(format!("{name} must not be empty"))) } else { Ok(()) }
}

/// A list must have at most `most` numbers.
pub(crate) fn not_over(name: &str, count: usize, most: usize) -> Result<()> {
    if count > most {
        return Err(Error::invalid(format!("{name} must contain at most {most}, not {count}")));
    }
    Ok(())
}

/// A measured figure with five significant digits: more would be noise on the screen.
pub(crate) fn figure(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let digits = 4 - value.abs().log10().floor() as i32;
    if digits <= 0 {
        return value.round();
    }
    let scale = 10f64.powi(digits.min(9));
    (value * scale).round() / scale
}
