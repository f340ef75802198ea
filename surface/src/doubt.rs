//! What speaks against the figures of a row.

use std::collections::BTreeSet;

use serde::de::{self, IntoDeserializer};
use serde::{Deserialize, Deserializer};

use crate::value::{ColumnType, SqlType, SqlValue};
use crate::words::words;

words! {
    /// A reason not to lean on a row's figures, the worst first. docs/interface.md explains each.
    Doubt {
        /// The figures contradict each other.
        Void = "void",
        /// It is not possible here.
        Unsupported = "unsupported",
        /// Something from outside ended the row early.
        Partial = "partial",
        /// It is not known which tier served the blocks.
        TiersUnknown = "tiers unknown",
        /// A limit held the rate.
        Paced = "paced",
        /// Something was cached that should not have been.
        NotCold = "not cold",
        /// An earlier path of the call left blocks in the OS cache.
        Warmed = "warmed",
        /// A limit of the server's control group held the device back.
        Limited = "limited",
        /// The control group's quota of CPU time was used up in over a tenth of its periods.
        CpuQuota = "cpu quota",
        /// Others used the device meanwhile.
        Others = "others",
        /// There are too few data for a rate, or for a confidence interval.
        Short = "short",
        /// The device became slower in the middle of the run.
        Slowed = "slowed",
        /// The figure changed from the start of the run to its end.
        Drift = "drift",
        /// The stored correlation, or stored advice, does not count any more.
        Stale = "stale",
        /// So little was read that caches below the kernel may have served it.
        Small = "small",
        /// The 95 % confidence interval is wide.
        Noisy = "noisy",
    }
}

/// All that speaks against a row. As a column it shows the two worst.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Doubts(BTreeSet<Doubt>);

impl Doubts {
    /// Adds one.
    pub fn add(&mut self, doubt: Doubt) {
        self.0.insert(doubt);
    }

    /// Is this one of them?
    pub fn has(&self, doubt: Doubt) -> bool {
        self.0.contains(&doubt)
    }

    /// The worst of those that take figures away: void, unsupported or partial.
    pub fn unusable(&self) -> Option<Doubt> {
        self.0.first().copied().filter(|doubt| *doubt <= Doubt::Partial)
    }

    /// What the column shows; None without a doubt.
    pub fn shown(&self) -> Option<String> {
        const MOST: usize = 2;
        let codes: Vec<&str> = self.0.iter().take(MOST).map(|doubt| doubt.name()).collect();
        (!codes.is_empty()).then(|| codes.join(", "))
    }
}

impl FromIterator<Doubt> for Doubts {
    fn from_iter<I: IntoIterator<Item = Doubt>>(doubts: I) -> Self {
        Self(doubts.into_iter().collect())
    }
}

/// Of what the column shows. Codes of another version are left out.
impl<'de> Deserialize<'de> for Doubts {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let shown = Option::<String>::deserialize(from)?.unwrap_or_default();
        let codes = shown.split(", ").filter(|code| !code.is_empty());
        let known = codes.filter_map(|code| {
            Doubt::deserialize(code.into_deserializer()).map_err(|error: de::value::Error| error).ok()
        });
        Ok(known.collect())
    }
}

impl ColumnType for Doubts {
    const SQL: SqlType = SqlType::Text;

    fn into_value(self) -> SqlValue {
        self.shown().into_value()
    }
}
