//! Settings `pg_io_probe.*`: caps that only a superuser (or a role with GRANT SET) may move, and defaults
//! that anyone may.

use std::ffi::CStr;

use crate::words::words;

/// A setting.
#[derive(Debug, Clone, Copy)]
pub struct Setting<T> {
    /// Its name.
    pub name: &'static CStr,
    /// Who may set it.
    pub who: Setter,
    /// Its default, and what else it may be.
    pub value: T,
    /// What it is.
    pub short: &'static CStr,
    /// What else there is to know.
    pub long: &'static CStr,
}

words! {
    /// Who may set a setting.
    Setter {
        /// Superusers, and roles that were granted SET on it.
        Superuser = "superuser",
        /// Everyone.
        Anyone = "anyone",
    }
}

/// A whole number.
#[derive(Debug, Clone, Copy)]
pub struct Number {
    /// Its default.
    pub default: i32,
    /// The least that it may be.
    pub least: i32,
    /// The most that it may be.
    pub most: i32,
    /// What it counts.
    pub unit: Unit,
}

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// No unit that the server knows.
    One,
    /// Milliseconds.
    Ms,
    /// Megabytes.
    Mb,
}

/// One of some words, of which the first is the default.
#[derive(Debug, Clone, Copy)]
pub struct Choice(pub &'static [&'static str]);

/// Each with who may set it, its name, default, range, unit, and what pg_settings says of it.
macro_rules! numbers {
    ($($setting:ident = $who:ident(
        $name:literal, $default:expr, $least:literal..=$most:expr, $unit:ident, $short:literal, $long:literal
    );)+) => {
        $(
            #[doc = $short]
            pub const $setting: Setting<Number> = Setting {
                name: c(concat!("pg_io_probe.", $name, "\0")),
                who: Setter::$who,
                value: Number { default: $default, least: $least, most: $most, unit: Unit::$unit },
                short: c(concat!($short, "\0")),
                long: c(concat!($long, "\0")),
            };
        )+

        /// The settings that are numbers.
        pub const NUMBERS: &[Setting<Number>] = &[$($setting),+];
    };
}

#[rustfmt::skip]
numbers! {
    MAX_DURATION = Superuser("max_duration", 60_000, 1..=24 * 3_600_000, Ms,
        "Longest time that all probes of one statement may take together.",
        "This includes every row and every call, also calls by LATERAL.");
    MAX_BYTES = Superuser("max_bytes", 64 << 10, 1..=i32::MAX, Mb,
        "Greatest amount of data that one row of a probe may read, or make durable.",
        "A larger max_bytes option is an error.");
    MAX_DEPTH = Superuser("max_depth", 128, 1..=1024, One,
        "Greatest number of requests that a probe may keep in flight.",
        "A larger depth argument is an error.");
    MAX_IOPS = Superuser("max_iops", 0, 0..=i32::MAX, One,
        "Greatest number of requests per second that a probe may issue.",
        "Zero is no limit.");
    MAX_MIB_PER_S = Superuser("max_mib_s", 0, 0..=i32::MAX, One,
        "Greatest number of MiB per second that a probe may move.",
        "Zero is no limit.");
    MAX_UTIL_PCT = Superuser("max_util_pct", 0, 0..=100, One,
        "Share of the time, in percent, in which a probe may have requests in flight.",
        "Zero is no limit. The probe rests between its requests.");
    MAX_P99 = Superuser("max_p99", 0, 0..=i32::MAX, Ms,
        "Ends a probe as soon as more than 10 requests in a batch of 1,000 took longer than this.",
        "Zero is no limit. Only the probe's own requests count. Its rows are then partial, and no other \
         probe of the statement begins.");
    MAX_BUSY_PCT = Superuser("max_busy_pct", 0, 0..=100, One,
        "Refuses a probe if the device is busier than this percentage before the probe begins.",
        "Zero is no limit. Busy is the share of time with requests in flight, as util of iostat, over a \
         quarter of a second.");
    SCRATCH_LIMIT = Superuser("scratch_limit", 64, 1..=1 << 20, Mb,
        "Greatest size of all scratch files of a probe together.",
        "Probes that write do so in a scratch file, never in a relation.");
    SCRATCH_RESERVE = Superuser("scratch_reserve", 1 << 10, 0..=i32::MAX, Mb,
        "A scratch file must leave this much free space on its file system.",
        "The server stops if its WAL finds no room, so be generous.");
    ROW_DURATION = Anyone("row_duration", 5_000, 1..=24 * 3_600_000, Ms,
        "Longest time of each row of a probe if the call gives no duration.",
        "All rows of a call together then take at most half of pg_io_probe.max_duration. \
         io_probe_page_cost, io_probe_recommend and io_probe_report have times of their own.");
    DEFAULT_MAX_BYTES = Anyone("default_max_bytes", 1 << 10, 1..=i32::MAX, Mb,
        "Greatest amount of data that each row reads, or makes durable, if the call gives no max_bytes.",
        "Bounded by pg_io_probe.max_bytes.");
}

/// How reads past the server are issued.
pub const ENGINE: Setting<Choice> = Setting {
    name: c"pg_io_probe.engine",
    who: Setter::Anyone,
    value: Choice(&["auto", "io_uring", "threads"]),
    short: c"How probes issue reads that bypass the server, at a depth over 1.",
    long: c"auto takes io_uring, or threads if the kernel or the container refuses io_uring.",
};

/// Does the planner take the correlations that are stored?
pub const CORRECT_CORRELATION: Setting<bool> = Setting {
    name: c"pg_io_probe.correct_correlation",
    who: Setter::Anyone,
    value: true,
    short: c"Lets the planner use the correlations that io_probe_correct stored.",
    long: c"Indexes without a stored correlation are planned as usual.",
};

/// A text that ends with a zero byte.
const fn c(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("a zero byte within a text"),
    }
}
