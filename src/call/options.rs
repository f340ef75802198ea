//! The `options jsonb` argument: rare options by name.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use io_probe_core::run::budget::Limits;
use io_probe_core::run::memory;
use io_probe_surface::function::OptionName;
use pgrx::pg_sys;

use super::arguments;
use super::named::quoted;
use crate::error::{Error, Result};
use crate::gucs;
use crate::pg::backend::interval::SqlInterval;
use crate::pg::backend::json::JsonbText;
use crate::pg::settings::{self, Units};

/// Shortest bound on latencies, in milliseconds.
const LEAST_P99_MS: f64 = 0.001;

/// Amounts are below this, so that each fits 64 bits.
const MOST_AMOUNT: f64 = 1e18;

/// A value for a message: all of it, or its start.
fn start(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(100) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// The JSON object that is the argument `name`; NULL is an empty one.
pub(crate) fn object(name: &str, value: Option<JsonbText>) -> Result<Map<String, Value>> {
    let text = value.as_deref().unwrap_or("{}");
    let _memory = memory::hold(memory::of_json(text))?;
    // What jsonb takes and this refuses are numbers beyond all range, and great depth.
    match serde_json::from_str(text) {
        Ok(Value::Null) => Ok(Map::new()),
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Error::invalid(format!("{name} must be a JSON object"))),
        Err(e) => Err(Error::invalid(format!("could not read the {name}: {e}"))),
    }
}

/// Options that are amounts: a number, or a text with a unit.
const AMOUNTS: [(OptionName, Units); 2] =
    [(OptionName::MaxBytes, Units::Bytes), (OptionName::MaxP99, Units::Milliseconds)];

/// Leaves out options that are null, and makes amounts numbers. What is no amount stays.
pub(crate) fn make_plain(options: &mut Map<String, Value>) {
    options.retain(|_, value| !value.is_null());
    for (option, units) in AMOUNTS {
        let Some(value) = options.get_mut(option.name()) else { continue };
        let amount = amount_of(value, units);
        // A whole number is printed without a fraction.
        let whole = amount.filter(|amount| amount.fract() == 0.0 && (0.0..MOST_AMOUNT).contains(amount));
        if let Some(amount) = whole.map(|amount| Value::from(amount as u64)).or(amount.map(Value::from)) {
            *value = amount;
        }
    }
}

/// The amount that a value says, as in SET; None if it says none.
fn amount_of(value: &Value, units: Units) -> Option<f64> {
    match value {
        Value::String(text) => settings::amount(text, units),
        value => value.as_f64(),
    }
}

pub(crate) struct Options {
    given: Map<String, Value>,
    /// What one of them is called.
    what: &'static str,
}

impl Options {
    /// Accepts an object whose keys are all `known`.
    pub(crate) fn parse(options: Option<JsonbText>, known: &[OptionName]) -> Result<Self> {
        let known: Vec<&str> = known.iter().map(|option| option.name()).collect();
        Self::of("options", "option", options, &known)
    }

    /// Accepts the object of another argument, in which each key is a `what`.
    pub(crate) fn of(
        argument: &str,
        what: &'static str,
        value: Option<JsonbText>,
        known: &[&str],
    ) -> Result<Self> {
        let given = object(argument, value)?;
        if let Some(key) = given.keys().find(|key| !known.contains(&key.as_str())) {
            let hint = format!("Valid {what}s are {}.", quoted(known));
            return Err(Error::invalid(format!("unknown {what} \"{key}\"")).hint(hint));
        }
        Ok(Self { given, what })
    }

    fn get<'a, T>(
        &'a self,
        key: &str,
        what: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>> {
        match self.given.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => read(value).map(Some).ok_or_else(|| {
                Error::invalid(format!("{} \"{key}\" must be {what}, not {}", self.what, start(value)))
            }),
        }
    }

    /// Rows of another function, as jsonb_agg collects them. What a row has besides is ignored.
    pub(crate) fn rows<T: DeserializeOwned>(
        &self,
        option: OptionName,
        function: &str,
    ) -> Result<Option<Vec<T>>> {
        let key = option.name();
        let hint = format!(
            "Use jsonb_agg on the function's rows: jsonb_build_object('{key}', (SELECT jsonb_agg(r) \
                 FROM {function}('tbl') AS r))."
        );
        let what = format!("an array of rows of {function}");
        let rows =
            self.get(key, &what, |value| value.as_array().filter(|rows| rows.iter().all(Value::is_object)));
        let Some(rows) = rows.map_err(|error| error.hint(hint.as_str()))? else { return Ok(None) };
        let rows = rows.iter().enumerate().map(|(index, row)| {
            T::deserialize(row).map_err(|e| {
                let message = format!("could not read row {} of option \"{key}\"", index + 1);
                Error::invalid(message).detail(format!("{e}.")).hint(hint.as_str())
            })
        });
        rows.collect::<Result<_>>().map(Some)
    }

    pub(crate) fn count(&self, option: OptionName, least: u64) -> Result<Option<u64>> {
        self.get(option.name(), &format!("a whole number of at least {least}"), |value| {
            value.as_u64().filter(|n| *n >= least)
        })
    }

    /// The bounds of each of `rows` rows that share the call's duration. What the statement has left is not
    /// in them.
    pub(crate) fn limits(&self, duration: Option<SqlInterval>, rows: usize) -> Result<Limits> {
        let given = arguments::duration(duration)?;
        let duration = gucs::share_of_duration(given, 1, rows as u32, gucs::ROW_DURATION.time())?;
        Ok(Limits { duration, ..self.bounds()? })
    }

    /// The bounds by max_bytes, max_iops, max_mib_s, max_util_pct, max_p99 and precision, or by their
    /// defaults; of the time, the cap alone.
    pub(crate) fn bounds(&self) -> Result<Limits> {
        let bytes = self.amount(AMOUNTS[0], pg_sys::BLCKSZ.into())?;
        Ok(Limits {
            duration: gucs::MAX_DURATION.time(),
            max_bytes: gucs::bytes(bytes.map(|bytes| bytes as u64))?,
            max_iops: gucs::MAX_IOPS.bounds("max_iops", self.rate(OptionName::MaxIops)?)?,
            max_mib_s: gucs::MAX_MIB_PER_S.bounds("max_mib_s", self.rate(OptionName::MaxMibS)?)?,
            max_util: gucs::util(self.number(OptionName::MaxUtilPct.name(), "from 0.01 to 100", |n| {
                (0.01..=100.0).contains(&n)
            })?)?,
            precision: self
                .number(OptionName::Precision.name(), "over 0 and under 1", |n| n > 0.0 && n < 1.0)?,
            latency: gucs::latency_bound(self.amount(AMOUNTS[1], LEAST_P99_MS)?)?,
        })
    }

    /// A number of bytes or milliseconds of at least `least`, or a text with a unit, as in SET.
    fn amount(&self, (option, units): (OptionName, Units), least: f64) -> Result<Option<f64>> {
        let (unit, example) = match units {
            Units::Bytes => ("bytes", "1GB"),
            Units::Milliseconds => ("ms", "500us"),
        };
        let what = format!("a number of at least {least} {unit}, or a text such as \"{example}\"");
        self.get(option.name(), &what, |value| {
            amount_of(value, units).filter(|amount| (least..MOST_AMOUNT).contains(amount))
        })
    }

    fn rate(&self, option: OptionName) -> Result<Option<u32>> {
        self.get(option.name(), "a whole number from 1 to 4294967295", |value| {
            u32::try_from(value.as_u64()?).ok().filter(|n| *n > 0)
        })
    }

    pub(crate) fn positive(&self, key: &str) -> Result<Option<f64>> {
        self.number(key, "over 0", |n| n > 0.0)
    }

    fn number(&self, key: &str, which: &str, fits: impl Fn(f64) -> bool) -> Result<Option<f64>> {
        self.get(key, &format!("a number {which}"), |value| value.as_f64().filter(|n| fits(*n)))
    }

    pub(crate) fn text(&self, option: OptionName) -> Result<Option<String>> {
        self.get(option.name(), "a text", |value| value.as_str().map(str::to_owned))
    }

    /// Is it to wait for another probe?
    pub(crate) fn waits(&self) -> Result<bool> {
        Ok(self.choice(OptionName::Wait)?.unwrap_or(false))
    }

    pub(crate) fn choice(&self, option: OptionName) -> Result<Option<bool>> {
        self.get(option.name(), "true or false", Value::as_bool)
    }
}
