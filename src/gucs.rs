//! Settings `pg_io_probe.*`: caps that only a superuser (or a role with GRANT SET) may move, and defaults
//! that anyone may.

use std::cell::RefCell;
use std::ffi::CStr;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use io_probe_core::engine::Kind;
use io_probe_core::run::budget::{BoundSource, LatencyBound};
use pgrx::guc::{GucContext, GucFlags, GucRegistry, GucSetting, PostgresGucEnum};

use crate::error::{Error, Result};
use crate::pg::backend::refused_setting::RefusedSetting;
use crate::pg::reserve_setting_prefix;

/// A setting that is a number.
struct Number {
    name: &'static CStr,
    value: GucSetting<i32>,
}

/// Each with who may set it, its name, default, range, unit, and what pg_settings says of it.
macro_rules! numbers {
    ($($setting:ident = $who:ident(
        $name:expr, $default:expr, $range:expr, $unit:expr, $short:expr, $long:expr
    );)+) => {
        $(static $setting: Number = Number { name: $name, value: GucSetting::<i32>::new($default) };)+

        fn define_numbers() {
            $($setting.define(GucContext::$who, $range, $unit, [$short, $long]);)+
        }
    };
}

#[rustfmt::skip]
numbers! {
    MAX_DURATION = Suset(c"pg_io_probe.max_duration", 60_000, 1..=24 * 3_600_000, GucFlags::UNIT_MS,
        c"Longest time that all probes of one statement may take together.",
        c"Counts every row and every call, also through LATERAL. A longer duration argument is an error.");
    MAX_BYTES = Suset(c"pg_io_probe.max_bytes", 64 << 10, 1..=i32::MAX, GucFlags::UNIT_MB,
        c"Most data that one row of a probe may read, or make durable.",
        c"A larger max_bytes option is an error.");
    MAX_DEPTH = Suset(c"pg_io_probe.max_depth", 128, 1..=1024, GucFlags::empty(),
        c"Most requests that a probe may keep in flight.",
        c"A larger depth argument is an error.");
    MAX_IOPS = Suset(c"pg_io_probe.max_iops", 0, 0..=i32::MAX, GucFlags::empty(),
        c"Most requests a second that a probe may issue.",
        c"Zero is no limit. Probes without a limit of their own run under this one.");
    MAX_MIB_PER_S = Suset(c"pg_io_probe.max_mib_s", 0, 0..=i32::MAX, GucFlags::empty(),
        c"Most MiB a second that a probe may move.",
        c"Zero is no limit. Probes without a limit of their own run under this one.");
    MAX_UTIL_PCT = Suset(c"pg_io_probe.max_util_pct", 0, 0..=100, GucFlags::empty(),
        c"Share of the time, in percent, in which a probe may have requests in flight.",
        c"Zero is no limit. After requests it rests. Probes without a limit of their own run under this \
          one.");
    MAX_P99 = Suset(c"pg_io_probe.max_p99", 0, 0..=i32::MAX, GucFlags::UNIT_MS,
        c"Ends a probe early when more than ten of a thousand of its own requests took longer.",
        c"Zero is no bound. No other probe of the statement begins after that; rows are partial.");
    MAX_BUSY_PCT = Suset(c"pg_io_probe.max_busy_pct", 0, 0..=100, GucFlags::empty(),
        c"Refuses a probe when the device is busier than this before the probe begins.",
        c"Zero turns this off. Busy is the share of time with requests in flight, as util of iostat, over \
          a quarter of a second.");
    SCRATCH_LIMIT = Suset(c"pg_io_probe.scratch_limit", 64, 1..=1 << 20, GucFlags::UNIT_MB,
        c"Most that all scratch files of a probe may take together.",
        c"Probes that write do so in a nameless file, never in a relation.");
    SCRATCH_RESERVE = Suset(c"pg_io_probe.scratch_reserve", 1 << 10, 0..=i32::MAX, GucFlags::UNIT_MB,
        c"Free space that a scratch file must leave on its file system.",
        c"A server whose WAL finds no room stops, so be generous.");
    ROW_DURATION = Userset(c"pg_io_probe.row_duration", 5_000, 1..=24 * 3_600_000, GucFlags::UNIT_MS,
        c"Longest time of each row of a probe where the call gives no duration.",
        c"All rows of a call together take at most half of pg_io_probe.max_duration then. \
          io_probe_page_cost, io_probe_recommend and io_probe_report have times of their own.");
    DEFAULT_MAX_BYTES = Userset(c"pg_io_probe.default_max_bytes", 1 << 10, 1..=i32::MAX, GucFlags::UNIT_MB,
        c"Data that each row of a probe reads, or makes durable, at most where the call gives no max_bytes.",
        c"Bounded by pg_io_probe.max_bytes.");
}

impl Number {
    fn define(
        &'static self,
        who: GucContext,
        range: RangeInclusive<i32>,
        unit: GucFlags,
        [short, long]: [&'static CStr; 2],
    ) {
        let is_cap = matches!(who, GucContext::Suset);
        let (least, most) = range.into_inner();
        let refused = RefusedSetting::when_defined(self.name, || {
            GucRegistry::define_int_guc(self.name, short, long, &self.value, least, most, who, unit);
        });
        if is_cap {
            REFUSED.with_borrow_mut(|all| all.extend(refused));
        }
    }

    fn get(&self) -> u32 {
        self.value.get().unsigned_abs()
    }

    /// As a number of milliseconds.
    fn time(&self) -> Duration {
        Duration::from_millis(self.get().into())
    }

    /// As a number of MiB, in bytes.
    fn bytes(&self) -> u64 {
        u64::from(self.get()) << 20
    }

    /// What was asked for; an error if it is over this cap.
    fn allows<T: From<u32> + PartialOrd + Display>(&self, what: &str, asked: T) -> Result<T> {
        let cap = T::from(self.get());
        if asked > cap { Err(self.exceeded(what, asked, cap)) } else { Ok(asked) }
    }

    /// What was asked for, or else this cap; a cap of zero is none.
    fn bounds<T: From<u32> + PartialOrd + Display>(&self, what: &str, asked: Option<T>) -> Result<Option<T>> {
        match self.get() {
            0 => Ok(asked),
            cap => asked.map_or(Ok(T::from(cap)), |asked| self.allows(what, asked)).map(Some),
        }
    }

    fn exceeded(&self, what: &str, asked: impl Display, cap: impl Display) -> Error {
        let name = self.name.to_string_lossy();
        Error::invalid(format!("{what} of {asked} is over the cap"))
            .detail(format!("{name} is {cap}."))
            .hint(format!("A superuser, or a role with GRANT SET ON PARAMETER {name}, can raise it."))
    }
}

static CORRECT_CORRELATION: GucSetting<bool> = GucSetting::<bool>::new(true);
static ENGINE: GucSetting<EngineSetting> = GucSetting::<EngineSetting>::new(EngineSetting::auto);

thread_local! {
    /// Caps whose value the server refused when the library was loaded: their default stands, which is no
    /// limit for some.
    static REFUSED: RefCell<Vec<RefusedSetting>> = const { RefCell::new(Vec::new()) };
}

/// How reads past the server are issued.
#[derive(Clone, Copy, PostgresGucEnum)]
#[allow(non_camel_case_types, reason = "the variants are the setting's values")]
enum EngineSetting {
    /// The best that the kernel allows.
    auto,
    /// io_uring, or an error.
    io_uring,
    /// Threads.
    threads,
}

/// Defines the settings and reserves their prefix.
pub(crate) fn define() {
    define_numbers();
    GucRegistry::define_enum_guc(
        c"pg_io_probe.engine",
        c"How reads past the server are issued at a depth over 1.",
        c"auto takes io_uring, or threads where the kernel or the container refuses it.",
        &ENGINE,
        GucContext::Userset,
        GucFlags::empty(),
    );
    GucRegistry::define_bool_guc(
        c"pg_io_probe.correct_correlation",
        c"Lets the planner use the correlations that io_probe_correct keeps.",
        c"Indexes for which none is kept are planned as usual.",
        &CORRECT_CORRELATION,
        GucContext::Userset,
        GucFlags::EXPLAIN,
    );
    reserve_setting_prefix(c"pg_io_probe");
}

/// Does the planner take the correlations that are kept?
pub(crate) fn correct_correlation() -> bool {
    CORRECT_CORRELATION.get()
}

/// Refuses while the configured value of a cap is not known.
pub(crate) fn check_caps() -> Result<()> {
    REFUSED.with_borrow(|all| all.iter().find(|cap| cap.counts()).map_or(Ok(()), |cap| Err(unknown(cap))))
}

fn unknown(cap: &RefusedSetting) -> Error {
    let error = Error::denied(format!("{} is not known in this session", cap.name.to_string_lossy()));
    if cap.is_of_connection() {
        error
            .detail("The connection gave a value that was refused, in place of the configured one.")
            .hint("Connect without it (PGOPTIONS), or have pg_io_probe in shared_preload_libraries.")
    } else {
        error
            .detail("Its configured value was refused when the library was loaded, as a WARNING said.")
            .hint("Connect again. If that does not help, a superuser has to correct the value.")
    }
}

/// Longest time of one statement's probes.
pub(crate) fn max_duration() -> Duration {
    MAX_DURATION.time()
}

/// Longest time of a row where the call gives none.
pub(crate) fn row_duration() -> Duration {
    ROW_DURATION.time()
}

/// Longest time of a part of a call that weighs `weight` of `all`: its share of the duration that the call
/// gives. Without one it is `usual`, and all parts together leave half of the cap to others.
pub(crate) fn share_of_duration(
    given: Option<Duration>,
    weight: u32,
    all: u32,
    usual: Duration,
) -> Result<Duration> {
    let share = |whole: Duration| whole * weight / all.max(1);
    match given {
        Some(given) => Ok(share(capped_duration("duration", given)?)),
        None => Ok(usual.min(share(max_duration() / 2))),
    }
}

/// The time that `what` asks a call to take; an error if it is over the cap.
pub(crate) fn capped_duration(what: &str, asked: Duration) -> Result<Duration> {
    let cap = max_duration();
    if asked > cap {
        let [asked, cap] = [asked, cap].map(|time| format!("{} ms", time.as_micros() as f64 / 1e3));
        return Err(MAX_DURATION.exceeded(what, asked, cap));
    }
    Ok(asked)
}

/// Most bytes of all scratch files of a call together.
pub(crate) fn scratch_limit() -> u64 {
    SCRATCH_LIMIT.bytes()
}

/// Bytes that a scratch file must leave free.
pub(crate) fn scratch_reserve() -> u64 {
    SCRATCH_RESERVE.bytes()
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

/// A concurrency, which the same cap bounds.
pub(crate) fn concurrency(asked: u32) -> Result<u32> {
    MAX_DEPTH.allows("concurrency", asked)
}

/// Requests a second, if limited.
pub(crate) fn iops(asked: Option<u32>) -> Result<Option<u32>> {
    MAX_IOPS.bounds("max_iops", asked)
}

/// MiB a second, if limited.
pub(crate) fn mib_s(asked: Option<u32>) -> Result<Option<u32>> {
    MAX_MIB_PER_S.bounds("max_mib_s", asked)
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
            let within = |ms: f64| LatencyBound::within(Duration::from_secs_f64(ms / 1e3));
            let by_cap = cap.map(|cap| within(cap).of(BoundSource::Setting));
            Ok(asked.map(within).or(by_cap).unwrap_or(LatencyBound::UNBOUND))
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
