//! Arguments that several functions share, and the look of their figures.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use pgrx::datum::Interval;
use pgrx::pg_sys;

use crate::error::{Error, Result};
use crate::pg::backend::encoding::Text;

/// The three ways in which a page travels, in the order of their rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Path {
    /// O_DIRECT, large requests at a depth.
    Direct,
    /// Through the buffer manager, as the server itself reads.
    Server,
    /// Through the OS page cache, one block a call.
    Os,
}

impl Path {
    const ALL: [Path; 3] = [Path::Direct, Path::Server, Path::Os];

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Path::Direct => "direct",
            Path::Server => "server",
            Path::Os => "os",
        }
    }

    /// The path of this name, the first of `valid` by default.
    pub(crate) fn one_of(name: Option<&str>, valid: &[Path]) -> Result<Path> {
        let Some(name) = name else { return Ok(valid[0]) };
        valid.iter().copied().find(|path| path.name() == name).ok_or_else(|| {
            let names: Vec<&str> = valid.iter().map(|path| path.name()).collect();
            Error::invalid(format!("unknown path \"{name}\""))
                .hint(format!("Valid paths are {}.", quoted(&names)))
        })
    }

    /// The paths that were picked, each once, in the order of [`Path::ALL`].
    pub(crate) fn pick(names: Option<Vec<Option<Text>>>) -> Result<Vec<Path>> {
        let Some(names) = names else { return Ok(Self::ALL.to_vec()) };
        let hint = || format!("Valid paths are {}.", quoted(&Self::ALL.map(Path::name)));
        if names.is_empty() {
            return Err(Error::invalid("paths must not be empty").hint(hint()));
        }
        for name in &names {
            let Some(name) = name.as_deref() else {
                return Err(Error::invalid("paths must not contain nulls").hint(hint()));
            };
            if !Self::ALL.iter().any(|path| path.name() == name) {
                return Err(Error::invalid(format!("unknown path \"{name}\"")).hint(hint()));
            }
        }
        let picked = |path: &Path| names.iter().flatten().any(|name| **name == *path.name());
        Ok(Self::ALL.into_iter().filter(picked).collect())
    }
}

/// A relation must be named.
pub(crate) fn relation(rel: Option<pg_sys::Oid>) -> Result<pg_sys::Oid> {
    rel.ok_or_else(|| Error::invalid("relation must not be null"))
}

/// A duration must be positive.
pub(crate) fn duration(duration: Option<Interval>) -> Result<Option<Duration>> {
    let Some(duration) = duration else { return Ok(None) };
    let micros = duration.as_micros();
    if micros <= 0 {
        return Err(Error::invalid("duration must be positive"));
    }
    Ok(Some(Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))))
}

/// A time between two requests must not be negative.
pub(crate) fn pause(name: &str, pause: Option<Interval>) -> Result<Option<Duration>> {
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
    let any = || RandomState::new().build_hasher().finish() >> 1;
    seed.map_or_else(any, |seed| seed as u64)
}

/// A whole number of at least 1.
pub(crate) fn positive(name: &str, value: i32) -> Result<u32> {
    match u32::try_from(value) {
        Ok(value) if value > 0 => Ok(value),
        _ => Err(Error::invalid(format!("{name} must be at least 1, not {value}"))),
    }
}

/// Names as a list for a HINT.
pub(crate) fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
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
