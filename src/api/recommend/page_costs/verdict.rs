//! What a row says: the value, why, and when to keep what is set.

use io_probe_advise::Plateau;
use io_probe_advise::page_costs::choose::{Chosen, Regret, Settings};
use io_probe_advise::page_costs::concurrency::{QueryConcurrency, Scores};
use io_probe_advise::page_costs::curve::{ConcurrencyChoice, GapCurve, Use, choose_concurrency};
use io_probe_advise::page_costs::locality::Locality;
use serde_json::{Value, json};

use super::Advice;
use super::planned::Answers;
use crate::api::recommend::advice::{NEEDS_COLD, Recommendation, SEEMS_BETTER, Setting};
use crate::call::figure;

const NOT_BY_PLANS: &str = "the planner's plans could not be judged";

/// Why a value stays.
pub(super) const NOTHING_BETTER: &str = "no other value is surely better by over 5 %";

impl Advice<'_> {
    pub(super) fn fill_row(&self, setting: Setting, row: Recommendation) -> Recommendation {
        let row = self.advise(setting, self.evidence(row)).beside(self.measured.doubt);
        let not_measured = self.measured.not_measured.as_deref();
        row.short_of(not_measured.filter(|_| setting != Setting::RandomPageCost))
    }

    fn advise(&self, setting: Setting, row: Recommendation) -> Recommendation {
        match (&self.planned, setting) {
            (Ok(answers), Setting::RandomPageCost) => self.cost(row, answers),
            (Ok(answers), Setting::EffectiveIoConcurrency) => self.concurrency_of_queries(row, answers),
            (Err(why), Setting::RandomPageCost) => self.without_times(row, format!("{NOT_BY_PLANS}: {why}")),
            (Err(why), Setting::EffectiveIoConcurrency) => {
                let aside = format!("this rests on timed reads alone, since {NOT_BY_PLANS}: {why}");
                self.concurrency(setting, row).and_if_recommended(&aside)
            }
            _ => self.concurrency(setting, row),
        }
    }

    fn lacking(&self, row: Recommendation) -> Recommendation {
        self.without_times(row, self.measured.why_lacking("one has no confidence interval"))
    }

    fn without_times(&self, row: Recommendation, why: String) -> Recommendation {
        if self.measured.lacks_cold_blocks { row.without(NEEDS_COLD, why) } else { row.unknown(why) }
    }

    /// random_page_cost by what the planner picks.
    fn cost(&self, row: Recommendation, answers: &Answers) -> Recommendation {
        let Chosen { settings, as_good: (low, high), same_plans, .. } = answers.joint.chosen;
        let row = self.of_planner(row, answers).between(low.to_string(), high.to_string());
        let (why, same) = (self.regrets(answers), told_same(same_plans));
        match settings.cell.random {
            random if random != self.in_force.cell.random => row.alter(random.to_string(), why + &same),
            _ if same_plans.0 <= low && high <= same_plans.1 && low < high => {
                row.with_same_plans().keep(why + &same)
            }
            _ => row.keep(format!("{why}; {NOTHING_BETTER}{same}")),
        }
    }

    /// The concurrency by what the best plans of the queries take, and reads with gaps.
    fn concurrency_of_queries(&self, row: Recommendation, answers: &Answers) -> Recommendation {
        let QueryConcurrency { plateau, matters_to_queries, scores, scores_in_force } = answers.concurrency;
        let row = self
            .of_planner(row, answers)
            .between(plateau.low.to_string(), plateau.high.to_string())
            .rests_on("score", figure(scores.gaps))
            .rests_on("score_in_force", figure(scores_in_force.gaps))
            .rests_on("score_queries", figure(scores.queries))
            .rests_on("score_queries_in_force", figure(scores_in_force.queries));
        let (queries, left_out) = (answers.regrets.queries(), &answers.left_out);
        let told = if matters_to_queries { told_both } else { told_gaps };
        let lead = if matters_to_queries {
            format!("for {queries} queries over your tables, ")
        } else {
            format!(
                "for {queries} queries over your tables, the setting changes the mean time of the best plans \
                 by 5 % at most; "
            )
        };
        let passed_over = answers.passed_over.map_or(String::new(), |Plateau { low, high, .. }| {
            format!(
                "; from {low} to {high} the best plans are as fast or faster, but the planner picks slower \
                 ones"
            )
        });
        let why = format!("{lead}{}{passed_over}", told(&scores));
        if plateau.holds_current {
            return row.keep(format!("{why}; {NOTHING_BETTER}{left_out}"));
        }
        let now = told(&scores_in_force);
        row.alter(plateau.value.to_string(), format!("{why}; at the present setting {now}{left_out}"))
    }

    fn of_planner(&self, row: Recommendation, answers: &Answers) -> Recommendation {
        let chosen = &answers.joint.chosen;
        let indexes = answers.inquiry.indexes.iter().map(|probed| {
            let Locality { scattered, stretch, .. } = probed.visits.locality;
            let (scattered, stretch) = (figure(100.0 * scattered), figure(stretch));
            json!({"index": probed.facts.index.name, "scattered_pct": scattered, "stretch_blks": stretch})
        });
        row.rests_on("queries", answers.regrets.queries())
            .rests_on("tables", answers.tables)
            .rests_on("indexes", indexes.collect::<Value>())
            .rests_on("planner_ms", answers.elapsed.as_millis() as u64)
            .rests_on("regret", shown(&chosen.regret))
            .rests_on("regret_corrected", answers.corrected_at(&chosen.settings).as_ref().map(shown))
            .rests_on("regret_in_force", answers.regrets.at(&self.in_force).as_ref().map(shown))
            .rests_on("regret_in_force_corrected", answers.corrected_at(&self.in_force).as_ref().map(shown))
            .rests_on("seq_page_cost", chosen.settings.cell.sequential)
            .rests_on("random_page_cost", chosen.settings.cell.random)
            .rests_on("effective_io_concurrency", chosen.settings.concurrency)
    }

    /// What the three settings together do, and what those in force do; without the correlations that are
    /// advised, and with them.
    fn regrets(&self, answers: &Answers) -> String {
        let Chosen { settings, regret, .. } = &answers.joint.chosen;
        let Settings { cell, concurrency } = settings;
        let now = answers.regrets.at(&self.in_force).filter(|_| *settings != self.in_force);
        let now = now.map_or(String::new(), |Regret { cold, warm, .. }| {
            let corrected = answers.corrected(&self.in_force, "");
            format!(", and at the present settings {cold:.2} and {warm:.2} times{corrected}")
        });
        let corrected = answers.corrected(settings, "with the correlations that are advised ");
        format!(
            "at seq_page_cost {}, random_page_cost {} and effective_io_concurrency {concurrency}, by the \
             model, the planner's plans for {} made-up queries over your tables take {:.2} times as long as \
             the best ones with cold caches and {:.2} times with warm caches{corrected}{now}{}",
            cell.sequential,
            cell.random,
            answers.regrets.queries(),
            regret.cold,
            regret.warm,
            answers.left_out,
        )
    }

    /// A concurrency by the density curve alone.
    fn concurrency(&self, setting: Setting, row: Recommendation) -> Recommendation {
        let (in_force, what_for, which) = match setting {
            Setting::MaintenanceIoConcurrency => {
                (self.maintenance, Use::Maintenance, "a small share of the blocks")
            }
            _ => (Some(self.in_force.concurrency), Use::Queries, "a share of the blocks"),
        };
        let curve = self.curve().filter(GapCurve::has_intervals);
        if curve.as_ref().is_some_and(|curve| curve.concurrencies().count() < 2) {
            return self.without_times(row, self.measured.why_one_concurrency());
        }
        let choice = curve.and_then(|_| choose_concurrency(&self.measured.times, what_for, in_force));
        let Some(ConcurrencyChoice { plateau, score, score_in_force }) = choice else {
            return self.lacking(row);
        };
        let row = row.rests_on("score", figure(score)).rests_on("score_in_force", score_in_force.map(figure));
        let why = told_reads(which, score);
        if plateau.seems_worse {
            return row.unknown(format!("{why}; {SEEMS_BETTER}"));
        }
        let row = row.between(plateau.low.to_string(), plateau.high.to_string());
        if plateau.holds_current {
            return row.keep(format!("{why}; {NOTHING_BETTER}"));
        }
        let now = score_in_force.map(|score| format!(", and {} at the present setting", percent_over(score)));
        row.alter(plateau.value.to_string(), why + &now.unwrap_or_default())
    }
}

fn told_gaps(scores: &Scores) -> String {
    told_reads("a share of the blocks", scores.gaps)
}

fn told_reads(which: &str, score: f64) -> String {
    format!(
        "reading {which} in order takes {} longer than with the best value for each share",
        percent_over(score)
    )
}

fn told_both(scores: &Scores) -> String {
    let queries = percent_over(scores.queries);
    format!(
        "with cold caches the best plans take {queries} longer than with the best value for each query, and \
         {}",
        told_gaps(scores)
    )
}

/// Which values give the same plans, to be added to what is said.
fn told_same((low, high): (f64, f64)) -> String {
    if low < high {
        format!("; values from {low} to {high} give the very same plans here")
    } else {
        String::new()
    }
}

pub(super) fn shown(regret: &Regret) -> Value {
    json!({ "cold": figure(regret.cold), "warm": figure(regret.warm) })
}

fn percent_over(score: f64) -> String {
    format!("{:.0} %", (score - 1.0) * 100.0)
}

impl Answers {
    /// The regret at these settings with the correlations that are advised, to be added to that without.
    fn corrected(&self, settings: &Settings, what: &str) -> String {
        let corrected = self.corrected_at(settings);
        corrected
            .map_or(String::new(), |Regret { cold, warm, .. }| format!(" ({what}{cold:.2} and {warm:.2})"))
    }
}
