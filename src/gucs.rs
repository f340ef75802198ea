//! Settings `pg_io_probe.*` in the server, and what they allow.

use std::cell::RefCell;
use std::fmt::Display;
use std::time::Duration;

use io_probe_core::engine::Kind;
use io_probe_core::run::budget::{BoundSource, LatencyBound};
use io_probe_surface::settings::{self, Setter, Setting, Unit};
use pgrx::guc::{GucContext, GucFlags, GucRegistry, GucSetting, PostgresGucEnum};

use crate::error::{Error, Result};
use crate::pg::backend::executor;
use crate::pg::backend::refused_setting::RefusedSetting;
use crate::pg::backend::server::reserve_setting_prefix;

pub(crate) struct Number {
    declared: Setting<settings::Number>,
    value: GucSetting<i32>,
}

macro_rules! numbers {
    ($($setting:ident)+) => {
        $(pub(crate) static $setting: Number = Number::of(settings::$setting);)+
        static NUMBERS: [&Number; settings::NUMBERS.len()] = [$(&$setting),+];
    };
}

numbers! {
    MAX_DURATION MAX_BYTES MAX_DEPTH MAX_IOPS MAX_MIB_PER_S MAX_UTIL_PCT MAX_P99 MAX_BUSY_PCT
    SCRATCH_LIMIT SCRATCH_RESERVE ROW_DURATION DEFAULT_MAX_BYTES
}

impl Number {
    const fn of(declared: Setting<settings::Number>) -> Self {
        Self { declared, value: GucSetting::<i32>::new(declared.value.default) }
    }

    fn define(&'static self) {
        let Setting { name, who, short, long, value } = self.declared;
        let unit = match value.unit {
            Unit::One => GucFlags::empty(),
            Unit::Ms => GucFlags::UNIT_MS,
            Unit::Mb => GucFlags::UNIT_MB,
        };
        let refused = RefusedSetting::when_defined(name, || {
            let (least, most) = (value.least, value.most);
            GucRegistry::define_int_guc(name, short, long, &self.value, least, most, context(who), unit);
        });
        if who == Setter::Superuser {
            REFUSED.with_borrow_mut(|all| all.extend(refused));
        }
    }

    fn get(&self) -> u32 {
        self.value.get().unsigned_abs()
    }

    /// As a number of milliseconds.
    pub(crate) fn time(&self) -> Duration {
        Duration::from_millis(self.get().into())
    }

    /// As a number of MiB, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.get()) << 20
    }

    /// What was asked for; an error if it is over this cap.
    pub(crate) fn allows<T: From<u32> + PartialOrd + Display>(&self, what: &str, asked: T) -> Result<T> {
        let cap = T::from(self.get());
        if asked > cap { Err(self.exceeded(what, asked, cap)) } else { Ok(asked) }
    }

    /// What was asked for, or else this cap; a cap of zero is none.
    pub(crate) fn bounds<T: From<u32> + PartialOrd + Display>(
        &self,
        what: &str,
        asked: Option<T>,
    ) -> Result<Option<T>> {
        match self.get() {
            0 => Ok(asked),
            cap => asked.map_or(Ok(T::from(cap)), |asked| self.allows(what, asked)).map(Some),
        }
    }

    fn exceeded(&self, what: &str, asked: impl Display, cap: impl Display) -> Error {
        let name = self.declared.name.to_string_lossy();
        Error::invalid(format!("{what} is {asked}, over the cap"))
            .detail(format!("{name} is {cap}."))
            .hint(format!("A superuser, or a role with GRANT SET ON PARAMETER {name}, can raise it."))
    }
}

/// Does the planner take the correlations that are stored?
pub(crate) static CORRECT_CORRELATION: GucSetting<bool> =
    GucSetting::<bool>::new(settings::CORRECT_CORRELATION.value);
static ENGINE: GucSetting<EngineSetting> = GucSetting::<EngineSetting>::new(EngineSetting::auto);

thread_local! {
    /// Caps whose value the server refused when the library was loaded: their default stands, which is no
    /// limit for some.
    static REFUSED: RefCell<Vec<RefusedSetting>> = const { RefCell::new(Vec::new()) };
}

/// The words of `settings::ENGINE`.
#[derive(Clone, Copy, PostgresGucEnum)]
#[allow(non_camel_case_types, reason = "the variants are the setting's values")]
enum EngineSetting {
    auto,
    io_uring,
    threads,
}

fn context(who: Setter) -> GucContext {
    match who {
        Setter::Superuser => GucContext::Suset,
        Setter::Anyone => GucContext::Userset,
    }
}

pub(crate) fn define() {
    NUMBERS.iter().for_each(|number| number.define());
    let Setting { name, who, short, long, .. } = settings::ENGINE;
    GucRegistry::define_enum_guc(name, short, long, &ENGINE, context(who), GucFlags::empty());
    let Setting { name, who, short, long, .. } = settings::CORRECT_CORRELATION;
    let flags = GucFlags::EXPLAIN;
    GucRegistry::define_bool_guc(name, short, long, &CORRECT_CORRELATION, context(who), flags);
    executor::define_setting();
    reserve_setting_prefix(c"pg_io_probe");
}

/// Refuses while the configured value of a cap is not known.
pub(crate) fn check_caps() -> Result<()> {
    REFUSED.with_borrow(|all| all.iter().find(|cap| cap.counts()).map_or(Ok(()), |cap| Err(unknown(cap))))
}

fn unknown(cap: &RefusedSetting) -> Error {
    let error = Error::denied(format!("{} is not known in this session", cap.name.to_string_lossy()));
    if cap.is_of_connection() {
        error
            .detail("The connection gave another value than the configured one, and the server refused it.")
            .hint("Connect without that value (PGOPTIONS), or add pg_io_probe to shared_preload_libraries.")
    } else {
        error
            .detail("The server refused the configured value when it loaded the library; a WARNING said so.")
            .hint("Connect again. If that does not help, a superuser has to correct the value.")
    }
}

/// Longest time of a part of a call that weighs `weight` of `all`: its share of the duration that the call
/// gives. Without one it is `usual`, and all parts together leave half of the cap to others.
pub(crate) fn share_of_duration(
    given: Option<Duration>,
    weight: u32,
    all: u32,
    usual: Duration,
) -> Result<Duration> {
    let (whole, most) = match given {
        Some(given) => (capped_duration("duration", given)?, Duration::MAX),
        None => (MAX_DURATION.time() / 2, usual),
    };
    Ok(most.min(whole * weight / all.max(1)))
}

/// The time that `what` asks a call to take; an error if it is over the cap.
pub(crate) fn capped_duration(what: &str, asked: Duration) -> Result<Duration> {
    let cap = MAX_DURATION.time();
    if asked > cap {
        let [asked, cap] = [asked, cap].map(|time| format!("{} ms", time.as_micros() as f64 / 1e3));
        return Err(MAX_DURATION.exceeded(what, asked, cap));
    }
    Ok(asked)
}

/// The byte budget of a row: as asked for, or the default, which gives way to the cap.
pub(crate) fn bytes(asked: Option<u64>) -> Result<u64> {
    let cap = MAX_BYTES.bytes();
    match asked {
        None => Ok(cap.min(DEFAULT_MAX_BYTES.bytes())),
        Some(asked) if asked > cap => Err(MAX_BYTES.exceeded("max_bytes", asked, cap)),
        Some(asked) => Ok(asked),
    }
}

/// The depth of a row: as asked for, or the default, which gives way to the cap.
pub(crate) fn depth(asked: Option<u32>, default: u32) -> Result<u32> {
    asked.map_or(Ok(MAX_DEPTH.get().min(default)), |asked| MAX_DEPTH.allows("depth", asked))
}

/// The share of its time that a probe may have requests in flight, if limited: as asked for in percent, or
/// what the cap says.
pub(crate) fn util(asked_pct: Option<f64>) -> Result<Option<f64>> {
    let percent = MAX_UTIL_PCT.bounds("max_util_pct", asked_pct)?;
    Ok(percent.filter(|&percent| percent < 100.0).map(|percent| percent / 100.0))
}

/// The bound of a probe's own latencies: as asked for in milliseconds, or what the cap says.
pub(crate) fn latency_bound(asked_ms: Option<f64>) -> Result<LatencyBound> {
    let cap_ms = Some(f64::from(MAX_P99.get())).filter(|&cap| cap > 0.0);
    match (asked_ms, cap_ms) {
        (Some(asked), Some(cap)) if asked > cap => {
            Err(MAX_P99.exceeded("max_p99", format!("{asked} ms"), format!("{cap} ms")))
        }
        (asked, cap) => {
            let [asked, cap] =
                [asked, cap].map(|ms| Some(LatencyBound::within(Duration::from_secs_f64(ms? / 1e3))));
            Ok(asked.or(cap.map(|cap| cap.of(BoundSource::Setting))).unwrap_or(LatencyBound::UNBOUND))
        }
    }
}

/// How busy a device may be, in percent, before a probe begins; None without a bound.
pub(crate) fn max_busy_pct() -> Option<f64> {
    Some(MAX_BUSY_PCT.get()).filter(|&percent| percent > 0).map(f64::from)
}

/// The engine that the session wants; None for the best that there is.
pub(crate) fn engine() -> Option<Kind> {
    match ENGINE.get() {
        EngineSetting::auto => None,
        EngineSetting::io_uring => Some(Kind::IoUring),
        EngineSetting::threads => Some(Kind::Threads),
    }
}
