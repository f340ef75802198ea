//! What a row says: the value, why, and when to keep what is set.

use io_probe_core::cost::Estimate;
use io_probe_core::cost::blend::{Blend, Cost, PageCosts};
use io_probe_core::cost::choose::{Chosen, Regret, Settings, rounded};
use io_probe_core::cost::curve::{self, Choice, Curve, Use};
use serde_json::json;

use super::Advice;
use super::planned::Answers;
use crate::api::arguments::figure;
use crate::api::recommend::row::Row;
use crate::api::recommend::setting::Setting;
use crate::api::recommend::{Cache, Unit};
use crate::pg::planner;

/// An interval wider than this, half of it over the value, says too little.
const TOO_WIDE: f64 = 0.25;

/// Why `seq_page_cost` stays.
const THE_UNIT: &str = "it is the unit in which the other costs are given";

/// A concurrency whose reads take so many times those of the best is only kept because nothing better is sure.
const MUCH_WORSE: f64 = 1.1;

/// The interval of a cost, if it has one that is not so wide.
fn narrow(cost: Cost) -> Option<(f64, f64)> {
    cost.interval.filter(|(low, high)| (high - low) / 2.0 <= TOO_WIDE * cost.value)
}

/// Is its interval so wide, or unknown?
pub(super) fn is_too_wide(time: Estimate) -> bool {
    time.interval.is_none_or(|(low, high)| (high - low) / 2.0 > TOO_WIDE * time.us)
}

impl Advice<'_> {
    /// Fills a row.
    pub(super) fn tell(&self, setting: Setting, row: Row) -> Row {
        let row = self.evidence(row);
        let row = if setting == Setting::RandomPageCost { self.of_bitmap_scans(row) } else { row };
        let cell = self.in_force.cell;
        match (&self.planned, setting) {
            (Some(Err(why)), Setting::RandomPageCost | Setting::SeqPageCost) => {
                row.unknown(format!("the planner was not asked: {why}"))
            }
            (Some(Ok((answers, chosen))), Setting::RandomPageCost) => {
                let values = (chosen.settings.cell.random, cell.random);
                self.planned(row, (answers, chosen), values, chosen.random)
            }
            (Some(Ok((answers, chosen))), Setting::SeqPageCost) => {
                let values = (chosen.settings.cell.sequential, cell.sequential);
                let row = self.planned(row, (answers, chosen), values, chosen.sequential);
                if self.call.request.unit == Unit::SeqPage { row.keep(THE_UNIT) } else { row }
            }
            (Some(Ok((answers, chosen))), Setting::EffectiveIoConcurrency) => {
                let values = (chosen.settings.concurrency, self.in_force.concurrency);
                self.planned(row, (answers, chosen), values, chosen.concurrencies)
            }
            (_, Setting::RandomPageCost | Setting::SeqPageCost) => self.cost(setting, row),
            _ => self.concurrency(setting, row),
        }
    }

    /// What bitmap scans alone would ask for, at the concurrency in force: from which share of the blocks on they take
    /// longer than a sequential scan, and the ratio of page costs at which the planner changes over there.
    fn of_bitmap_scans(&self, row: Row) -> Row {
        let concurrency = self.in_force.concurrency;
        let curve =
            self.curve().filter(|curve| curve.concurrencies().any(|measured| measured == concurrency));
        let share = curve.and_then(|curve| curve.crossing(concurrency));
        row.rests_on("bitmap_crossing_pct", share.map(|share| figure(share * 100.0)))
            .rests_on("bitmap_crossing_ratio", share.map(|share| figure(curve::cost_at(share))))
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
            return row.keep(THE_UNIT);
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
        let (cost, floor) = match (unit, self.in_cpu(blend)) {
            (Unit::SeqPage, _) => (blend.random_page_cost(self.in_force.cell.sequential), 0.0),
            (Unit::Cpu, Some(costs)) if setting == Setting::SeqPageCost => (Some(costs.sequential), 0.0),
            (Unit::Cpu, Some(costs)) => {
                (Some(costs.random), self.settled(Setting::SeqPageCost, costs.sequential))
            }
            (Unit::Cpu, None) => (None, 0.0),
        };
        let Some(measured) = cost else { return self.lacking(row) };
        let cost = measured.at_least(floor);
        let mut reason = self.reason(setting, cost);
        if cost.value > measured.value {
            reason += ", but no less than seq_page_cost";
        }
        let row = row.rests_on("cost", figure(cost.value));
        let Some((low, high)) = narrow(measured) else {
            return row.unknown(format!(
                "{:.3} by the mean, but the interval is too wide to say: measure for longer, or when the device is idle",
                cost.value
            ));
        };
        let row = row.between(rounded(low.max(floor)).to_string(), rounded(high.max(floor)).to_string());
        let settled = self.settled(setting, cost);
        if settled == self.current(setting) {
            return row.keep(format!("{reason} is within the interval"));
        }
        row.alter(settled.to_string(), &settled.to_string(), reason)
    }

    /// Both page costs with the processor's as they are.
    fn in_cpu(&self, blend: Blend) -> Option<PageCosts> {
        blend.in_cpu(self.measured.times.tuple?, planner::cpu_tuple_cost()?)
    }

    /// What the setting is to be: what is set, unless it is wanted and surely outside the interval.
    fn settled(&self, setting: Setting, cost: Cost) -> f64 {
        let current = self.current(setting);
        let wanted = self.call.wants(setting);
        match narrow(cost) {
            Some((low, high)) if wanted && !(low..=high).contains(&current) => rounded(cost.value),
            _ => current,
        }
    }

    /// What is set.
    fn current(&self, setting: Setting) -> f64 {
        match setting {
            Setting::SeqPageCost => self.in_force.cell.sequential,
            _ => self.in_force.cell.random,
        }
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

    /// A setting by what the planner picks.
    fn planned<T: PartialEq + ToString>(
        &self,
        row: Row,
        (answers, chosen): (&Answers, &Chosen),
        (value, in_force): (T, T),
        (low, high): (T, T),
    ) -> Row {
        let row = self.of_planner(row, answers, chosen).between(low.to_string(), high.to_string());
        let why = self.regrets(answers, chosen);
        if value == in_force {
            return row.keep(why);
        }
        row.alter(value.to_string(), &value.to_string(), why)
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
        let (in_force, what_for, which) = match setting {
            Setting::MaintenanceIoConcurrency => {
                (self.maintenance, Use::Maintenance, "sparse reads with gaps")
            }
            _ => (Some(self.in_force.concurrency), Use::Queries, "reads with gaps"),
        };
        let curve = self.curve().filter(Curve::has_intervals);
        if curve.as_ref().is_some_and(|curve| curve.concurrencies().count() < 2) {
            return row.unknown(self.measured.why_one_concurrency());
        }
        let choice = curve.and_then(|curve| curve.choose(what_for, in_force));
        let Some(Choice { value, low, high, score, score_in_force, .. }) = choice else {
            return self.lacking(row);
        };
        let row = row
            .between(low.to_string(), high.to_string())
            .rests_on("score", figure(score))
            .rests_on("score_in_force", score_in_force.map(figure));
        let over = |score: f64| (score - 1.0) * 100.0;
        let told = |score: f64| {
            format!("{which} take {:.0} % more than at their best over the densities", over(score))
        };
        if Some(value) == in_force {
            let why = score_in_force.map_or(told(score), |in_force| {
                let sure =
                    if in_force > MUCH_WORSE * score { ", but by times whose intervals overlap" } else { "" };
                told(in_force) + sure
            });
            return row.keep(why);
        }
        let now = score_in_force.map(|score| format!(", and {:.0} % at the present setting", over(score)));
        row.alter(value.to_string(), &value.to_string(), told(score) + &now.unwrap_or_default())
    }
}
