//! What a row says: the value, why, and when to keep what is set.

use io_probe_core::cost::Estimate;
use io_probe_core::cost::blend::Cost;
use io_probe_core::cost::choose::{Chosen, Regret, Settings};
use io_probe_core::cost::curve::{Choice, Curve};
use serde_json::json;

use super::planned::{Answers, rounded};
use super::{Advice, use_of};
use crate::api::arguments::figure;
use crate::api::recommend::row::Row;
use crate::api::recommend::setting::Setting;
use crate::api::recommend::{Cache, Unit};
use crate::pg::planner;

/// An interval wider than this, half of it over the value, says too little.
const TOO_WIDE: f64 = 0.25;

/// Is its interval so wide, or unknown?
pub(super) fn is_too_wide(time: Estimate) -> bool {
    time.interval.is_none_or(|(low, high)| (high - low) / 2.0 > TOO_WIDE * time.us)
}

impl Advice<'_> {
    /// Fills a row.
    pub(super) fn tell(&self, setting: Setting, row: Row) -> Row {
        let row = self.evidence(row);
        match setting {
            Setting::RandomPageCost | Setting::SeqPageCost => match &self.planned {
                Some(Ok((answers, chosen))) => self.cost_planned(setting, row, answers, chosen),
                Some(Err(why)) => row.unknown(format!("the planner was not asked: {why}")),
                None => self.cost(setting, row),
            },
            _ => match &self.planned {
                Some(Ok((answers, chosen))) if setting == Setting::EffectiveIoConcurrency => {
                    self.concurrency_planned(row, answers, chosen)
                }
                _ => self.concurrency(setting, row),
            },
        }
    }

    /// What is lacking.
    fn lacking(&self, row: Row) -> Row {
        let why = match &self.measured.lacking {
            Some(why) => format!("not all times could be measured: {why}"),
            None => "not all times could be measured".to_owned(),
        };
        row.unknown(why)
    }

    /// A page cost by the ratio of the times.
    fn cost(&self, setting: Setting, row: Row) -> Row {
        let unit = self.call.request.unit;
        if setting == Setting::SeqPageCost && unit == Unit::SeqPage {
            return row.keep("it is the unit in which the other costs are given: keep what you have");
        }
        if self.call.request.cache == Cache::Planned {
            // What a page takes says nothing of the planner's choices.
            return self.lacking(row);
        }
        let needs_hits = matches!(self.call.request.cache, Cache::Current | Cache::Stats);
        if needs_hits && self.hits.is_none() {
            return row
                .unknown("the hit ratios are not known: nothing was counted, or the OS cache can't be seen");
        }
        let Some(blend) = self.blend() else { return self.lacking(row) };
        let cost = match unit {
            Unit::SeqPage => blend.random_page_cost(self.in_force.cell.sequential),
            Unit::Cpu => self.measured.times.tuple.and_then(|tuple| {
                let costs = blend.in_cpu(tuple, planner::cost_in_force(c"cpu_tuple_cost"))?;
                Some(if setting == Setting::SeqPageCost { costs.sequential } else { costs.random })
            }),
        };
        let Some(cost) = cost else { return self.lacking(row) };
        let row = row.rests_on("cost", figure(cost.value));
        let Some((low, high)) =
            cost.interval.filter(|(low, high)| (high - low) / 2.0 <= TOO_WIDE * cost.value)
        else {
            return row.unknown(format!(
                "{:.3} by the mean, but the interval is too wide to say: measure for longer, or when the device is idle",
                cost.value
            ));
        };
        let current = current_of(setting, self);
        let row = row.between(rounded(low).to_string(), rounded(high).to_string());
        if (low..=high).contains(&current) {
            return row
                .keep(format!("{} is within the interval: keep what you have", self.reason(setting, cost)));
        }
        let value = rounded(cost.value).to_string();
        row.alter(value.clone(), &value, self.reason(setting, cost))
    }

    /// What a ratio is made of.
    fn reason(&self, setting: Setting, cost: Cost) -> String {
        let times = &self.measured.times;
        let us = |time: Option<io_probe_core::cost::Estimate>| time.map_or(0.0, |time| time.us);
        let (random, sequential) = (us(times.device_random), us(times.device_sequential));
        let of_caches = match self.hits {
            Some(hits) => format!(
                ", with {:.0} % of random and {:.0} % of sequential reads served by {}",
                hits.random * 100.0,
                hits.sequential * 100.0,
                if self.call.request.cache == Cache::Stats { "shared buffers" } else { "the OS cache" }
            ),
            None => ", nothing cached".to_owned(),
        };
        match (self.call.request.unit, setting) {
            (Unit::SeqPage, _) => format!(
                "a random block takes {random:.1} us and a sequential one {sequential:.2} us{of_caches}: {:.3} times",
                cost.value / self.in_force.cell.sequential
            ),
            (Unit::Cpu, Setting::SeqPageCost) => format!(
                "a sequential block takes {sequential:.2} us{of_caches}, a tuple {:.3} us, which costs cpu_tuple_cost",
                us(times.tuple)
            ),
            (Unit::Cpu, _) => format!(
                "a random block takes {random:.1} us{of_caches}, a tuple {:.3} us, which costs cpu_tuple_cost",
                us(times.tuple)
            ),
        }
    }

    /// A page cost by what the planner picks.
    fn cost_planned(&self, setting: Setting, row: Row, answers: &Answers, chosen: &Chosen) -> Row {
        let row = self.of_planner(row, answers, chosen);
        let is_random = setting == Setting::RandomPageCost;
        let (value, (low, high)) = if is_random {
            (chosen.settings.cell.random, chosen.random)
        } else {
            (chosen.settings.cell.sequential, chosen.sequential)
        };
        let row = row.between(low.to_string(), high.to_string());
        if !is_random && self.call.request.unit == Unit::SeqPage {
            return row.keep("it is the unit in which the other costs are given: keep what you have");
        }
        if value == current_of(setting, self) {
            return row.keep(format!("{}: keep what you have", self.regrets(answers, chosen)));
        }
        row.alter(value.to_string(), &value.to_string(), self.regrets(answers, chosen))
    }

    fn concurrency_planned(&self, row: Row, answers: &Answers, chosen: &Chosen) -> Row {
        let row = self.of_planner(row, answers, chosen);
        let (low, high) = chosen.concurrencies;
        let row = row.between(low.to_string(), high.to_string());
        if chosen.settings.concurrency == self.in_force.concurrency {
            return row.keep(format!("{}: keep what you have", self.regrets(answers, chosen)));
        }
        let value = chosen.settings.concurrency.to_string();
        row.alter(value.clone(), &value, self.regrets(answers, chosen))
    }

    fn of_planner(&self, row: Row, answers: &Answers, chosen: &Chosen) -> Row {
        let shown = |regret: Option<Regret>| {
            regret.map(|regret| {
                json!({
                    "cold": figure(regret.cold), "worst_cold": figure(regret.worst_cold),
                    "warm": figure(regret.warm), "worst_warm": figure(regret.worst_warm),
                })
            })
        };
        row.rests_on("queries", answers.regrets.queries())
            .rests_on("tables", answers.tables)
            .rests_on("indexes", answers.indexes)
            .rests_on("planner_ms", answers.elapsed.as_millis() as u64)
            .rests_on("regret", shown(Some(chosen.regret)))
            .rests_on("regret_in_force", shown(answers.regrets.at(&self.in_force)))
            .rests_on("seq_page_cost", chosen.settings.cell.sequential)
            .rests_on("random_page_cost", chosen.settings.cell.random)
            .rests_on("effective_io_concurrency", chosen.settings.concurrency)
    }

    /// What the three settings together do, and what those in force do.
    fn regrets(&self, answers: &Answers, chosen: &Chosen) -> String {
        let Settings { cell, concurrency } = chosen.settings;
        let now = answers.regrets.at(&self.in_force).filter(|_| chosen.settings != self.in_force);
        let now = now.map_or(String::new(), |now| {
            format!(", and at the present settings {:.2} and {:.2} times", now.cold, now.warm)
        });
        format!(
            "at seq_page_cost {}, random_page_cost {} and effective_io_concurrency {concurrency} the plans that the planner \
             picks for {} queries over your tables take {:.2} times as long as the best ones cold and {:.2} times warm{now}",
            cell.sequential,
            cell.random,
            answers.regrets.queries(),
            chosen.regret.cold,
            chosen.regret.warm,
        )
    }

    /// A concurrency by the density curve alone.
    fn concurrency(&self, setting: Setting, row: Row) -> Row {
        let in_force = match setting {
            Setting::MaintenanceIoConcurrency => self.maintenance,
            _ => Some(self.in_force.concurrency),
        };
        let curve = self.curve().filter(Curve::has_intervals);
        if curve.as_ref().is_some_and(|curve| curve.concurrencies().count() < 2) {
            return row.unknown(self.measured.why_one_concurrency());
        }
        let choice = curve.and_then(|curve| curve.choose(use_of(setting), in_force));
        let Some(Choice { value, low, high, score, score_in_force, .. }) = choice else {
            return self.lacking(row);
        };
        let row = row
            .between(low.to_string(), high.to_string())
            .rests_on("score", figure(score))
            .rests_on("score_in_force", score_in_force.map(figure));
        let over = |score: f64| (score - 1.0) * 100.0;
        let which = match setting {
            Setting::MaintenanceIoConcurrency => "sparse reads with gaps",
            _ => "reads with gaps",
        };
        let why = format!("{which} take {:.0} % more than at their best over the densities", over(score));
        if Some(value) == in_force {
            let why = score_in_force.map_or(why, |score| {
                format!("{which} take {:.0} % more than at their best over the densities", over(score))
            });
            return row.keep(format!("{why}: keep what you have"));
        }
        let why = score_in_force
            .map_or(why.clone(), |score| format!("{why}, and {:.0} % at the present setting", over(score)));
        row.alter(value.to_string(), &value.to_string(), why)
    }
}

fn current_of(setting: Setting, advice: &Advice<'_>) -> f64 {
    match setting {
        Setting::SeqPageCost => advice.in_force.cell.sequential,
        _ => advice.in_force.cell.random,
    }
}
