//! The words of a model: its name, and parameters of the form `KEY=VALUE`.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Why words are no model.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum Invalid {
    /// The first word.
    #[error("no model is called \"{0}\"")]
    Name(String),
    /// A word that is not KEY=VALUE with a number.
    #[error("\"{0}\" is not KEY=NUMBER")]
    Word(String),
    /// A number that the parameter can't have.
    #[error("{0} can't be {1}")]
    Value(String, f64),
    /// A parameter that this model does not have.
    #[error("this model has no parameter \"{0}\"")]
    Parameter(String),
}

/// Parameters that no model has taken yet.
#[derive(Debug)]
pub struct Parameters(BTreeMap<String, f64>);

impl Parameters {
    /// Splits a model's words into its name and its parameters.
    pub fn of(words: &str) -> Result<(String, Self), Invalid> {
        let mut words = words.split_whitespace();
        let name = words.next().unwrap_or_default().to_owned();
        Ok((name, Self(words.map(pair).collect::<Result<_, _>>()?)))
    }

    /// A number above 0; `default` unless it was given.
    pub fn positive(&mut self, key: &str, default: f64) -> Result<f64, Invalid> {
        Ok(self.optional(key)?.unwrap_or(default))
    }

    /// A number above 0; None unless it was given.
    pub fn optional(&mut self, key: &str) -> Result<Option<f64>, Invalid> {
        self.take(key, |value| value > 0.0)
    }

    /// A number of 0 or above; `default` unless it was given.
    pub fn at_least_0(&mut self, key: &str, default: f64) -> Result<f64, Invalid> {
        Ok(self.take(key, |value| value >= 0.0)?.unwrap_or(default))
    }

    /// A number in a range; `default` unless it was given.
    pub fn within(&mut self, key: &str, range: RangeInclusive<f64>, default: f64) -> Result<f64, Invalid> {
        Ok(self.take(key, |value| range.contains(&value))?.unwrap_or(default))
    }

    /// # Errors
    /// When there is one that nobody took.
    pub fn all_taken(self) -> Result<(), Invalid> {
        self.0.into_keys().next().map_or(Ok(()), |key| Err(Invalid::Parameter(key)))
    }

    fn take(&mut self, key: &str, valid: impl Fn(f64) -> bool) -> Result<Option<f64>, Invalid> {
        match self.0.remove(key) {
            Some(value) if !valid(value) => Err(Invalid::Value(key.to_owned(), value)),
            taken => Ok(taken),
        }
    }
}

/// The two parts of KEY=VALUE; no number is infinite.
fn pair(word: &str) -> Result<(String, f64), Invalid> {
    let (key, value) = word.split_once('=').ok_or_else(|| Invalid::Word(word.to_owned()))?;
    match value.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok((key.to_owned(), value)),
        _ => Err(Invalid::Word(word.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;

    fn why(words: &str) -> Option<Invalid> {
        Model::new(words, 1 << 30).err()
    }

    #[test]
    fn what_is_no_model_is_named() {
        assert_eq!(why("tape"), Some(Invalid::Name("tape".into())));
        assert_eq!(why(""), Some(Invalid::Name(String::new())));
        assert_eq!(why("gp3 iops"), Some(Invalid::Word("iops".into())));
        assert_eq!(why("gp3 iops=many"), Some(Invalid::Word("iops=many".into())));
        assert_eq!(why("gp3 iops=inf"), Some(Invalid::Word("iops=inf".into())));
        assert_eq!(why("gp3 iops=0"), Some(Invalid::Value("iops".into(), 0.0)));
        assert_eq!(why("gp3 jitter=1.5"), Some(Invalid::Value("jitter".into(), 1.5)));
        assert_eq!(why("hdd iops=500"), Some(Invalid::Parameter("iops".into())));
        assert_eq!(why("gp3 credits=5"), Some(Invalid::Parameter("credits".into())));
    }

    #[test]
    fn each_model_has_its_parameters() {
        for words in [
            "off",
            "off stall=1 stall_every=2",
            "hdd rpm=5400 mb=100",
            "gp3 iops=500 mib=20 ms=1 jitter=0 slots=8",
            "burst credits=0.1 base=100",
            "net cache=64 hit_ms=0.1",
            "ssd penalty_ms=2 penalty_for_ms=5",
            "ssd eio_after=60 eio_from=0 eio_to=10",
        ] {
            assert_eq!(why(words), None, "{words}");
        }
    }
}
