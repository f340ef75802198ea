//! What reads take beside writes, as a map: reads down, writes across.

use super::plots::PLOTTED;
use super::{Line, Mark, ReportSection, count, of};

/// Most loads of a side that fit a line of text.
const MOST: usize = 4;

pub(super) struct LoadMap<'a> {
    /// What it shows of the latencies of reads, in microseconds.
    pub(super) what: &'static str,
    /// Reads, in percent of those alone, from the fewest on.
    pub(super) reads: Vec<&'a str>,
    /// Writes, in percent of those alone.
    pub(super) writes: Vec<u32>,
    lines: Vec<&'a Line>,
}

impl<'a> LoadMap<'a> {
    /// The 99th percentiles, or the medians if there are none. None without figures. A stored line may say
    /// anything: with too many loads it is no map.
    pub(super) fn find(lines: &'a [Line]) -> Option<Self> {
        let named = [("99th percentile", ReportSection::LoadP99), ("Median", ReportSection::LoadP50)];
        named.into_iter().find_map(|(what, section)| Self::of_section(lines, what, section))
    }

    fn of_section(lines: &'a [Line], what: &'static str, section: ReportSection) -> Option<Self> {
        let lines: Vec<&Line> = of(lines, section).collect();
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for line in &lines {
            let share = line.write_pct?;
            if !reads.contains(&&*line.item) {
                reads.push(&*line.item);
            }
            if !writes.contains(&share) {
                writes.push(share);
            }
        }
        let has_figures = lines.iter().any(|line| Self::value(line).is_some());
        let fits = reads.len() <= MOST && writes.len() <= MOST;
        (has_figures && fits).then_some(Self { what, reads, writes, lines })
    }

    /// What a picture of it is called.
    pub(super) fn title(&self) -> String {
        format!("{} of reads beside writes, us; loads in % of the rate alone", self.what)
    }

    /// The least and the greatest value of loads that were carried.
    pub(super) fn range(&self) -> (f64, f64) {
        let values = self.lines.iter().filter(|line| line.is_carried()).filter_map(|line| Self::value(line));
        values.fold((f64::MAX, 0.0), |(least, most), value| (value.min(least), value.max(most)))
    }

    /// The value of a line that can be drawn.
    pub(super) fn value(line: &Line) -> Option<f64> {
        line.value.filter(|value| PLOTTED.contains(value))
    }

    /// The line of this load.
    pub(super) fn at(&self, reads: &str, writes: u32) -> Option<&'a Line> {
        self.lines.iter().find(|line| line.item == reads && line.write_pct == Some(writes)).copied()
    }
}

impl Line {
    /// Was all of its load answered in time, as far as is known?
    pub(super) fn is_carried(&self) -> bool {
        self.mark != Some(Mark::NotCarried)
    }

    /// A percentile, as people write it; as what it surely exceeds where some of the load was not answered.
    pub(super) fn shown_of_load(&self) -> String {
        let over = if self.is_carried() { "" } else { "> " };
        self.value.map_or("-".to_owned(), |value| format!("{over}{}", count(value)))
    }
}
