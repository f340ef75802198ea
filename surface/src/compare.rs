//! Comparing stored runs: their figures, the latest ones, and what has changed.

use crate::function::{Function, KEEP, Returns, Who, optional, required};
use crate::row::{Row, row};
use crate::value::{Text, Timestamp};

row! {
    /// one figure of both sides, or one setting that differs
    row CompareRow "compare" everyday [probe, item, metric, a, b, ratio, verdict, remark] {
        /// Name of the probe: seqscan is io_probe_seqscan, and so on
        probe: Option<Text>,
        /// Row of the probe, such as direct or depth 8, or the setting or argument that differs
        item: Option<Text>,
        /// The figure: a column of the probe; NULL for a setting
        metric: Option<Text>,
        /// Unit of a and b; NULL for a setting
        unit: Option<Text>,
        /// The figure in run_a, or its geometric mean over the runs of label_a
        a: Option<f64>,
        /// The figure in run_b, or its geometric mean over the runs of label_b
        b: Option<f64>,
        /// b divided by a, to four digits
        ratio: Option<f64>,
        /// Verdict on b: better or worse (by more than the noise), same (within 30 % with 95 % confidence),
        /// can't tell, or other cause (better or worse, but no setting that differs can affect the figure).
        /// NULL for a setting
        verdict: Option<&'static str>,
        /// If the verdict is can't tell: how many more runs of each side may be enough, if they are like
        /// these (too noisy: over 1,000), which figure is missing, or others busy (they used the device or
        /// the processors: repeat the runs). For a setting or an argument: its values on both sides
        remark: Option<Text>,
        /// By what percentage the greater figure must exceed the smaller one to count as different: the error
        /// within the runs or the noise from run to run, whichever is larger. NULL if the noise is not known
        noise_pct: Option<f64>,
        /// Number of runs from which the noise is computed: earlier runs of the same series, and runs of the
        /// labels, without disturbed runs. With fewer than 10, the verdict is can't tell
        runs: Option<u32>,
        /// Value of the setting on side a; NULL for a figure
        a_setting: Option<Text>,
        /// Value of the setting on side b
        b_setting: Option<Text>,
        /// What was measured
        object: Option<Text>,
        /// What limits the verdict
        notes: Vec<String>,
    }
}

row! {
    /// one figure of one series
    row ChangesRow "changes" everyday [probe, object, item, metric, before, now, verdict, remark] {
        /// Name of the probe: seqscan is io_probe_seqscan, and so on
        probe: Text,
        /// What was measured
        object: Text,
        /// Row of the probe, such as direct or depth 8
        item: Text,
        /// The figure: a column of the probe
        metric: Text,
        /// Unit of the figure
        unit: Text,
        /// Geometric mean of the figure in up to 30 runs before the last runs
        before: Option<f64>,
        /// Geometric mean of the figure in the last runs
        now: Option<f64>,
        /// now divided by before, to four digits
        ratio: Option<f64>,
        /// How now compares with before: better or worse (by more than the noise), same (within 30 % with 95
        /// % confidence) or can't tell
        verdict: &'static str,
        /// Arguments in which other series of the same probe and object differ. If the verdict is can't tell:
        /// how many more runs may be enough, if they are like these (too noisy: over 1,000; add them to
        /// argument last), which figure is missing, or others busy (they used the device or the processors:
        /// repeat the run)
        remark: Option<Text>,
        /// By what percentage the greater figure must exceed the smaller one to count. It grows with the
        /// number of figures that the call compares. NULL if the noise is not known
        noise_pct: Option<f64>,
        /// Number of earlier runs that count. Disturbed runs don't count, if enough other runs are left. With
        /// fewer than 10, the verdict is can't tell
        runs: u32,
        /// When the first of the last runs started
        since: Timestamp,
        /// Number of the last run in io_probe_runs
        run_id: i64,
        /// What limits the verdict
        notes: Vec<String>,
    }
}

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function {
        name: "compare",
        arguments: &[required("run_a", "bigint"), required("run_b", "bigint")],
        returns: Returns::Rows(&CompareRow::TYPE, 20),
        who: Who::Monitor,
        comment: "\
            Tells whether run_b is better or worse than run_a, by more than runs of the same configuration \
            differ anyway. There is one row for each figure, then one for each setting and argument that \
            differs. Reads stored runs only. pg_monitor may call it",
        example: "public.stored(), public.stored()",
        errors: &[&["42704"]],
        ..KEEP
    },
    Function {
        name: "compare",
        calls: Some("compare_labels"),
        arguments: &[required("label_a", "text"), required("label_b", "text")],
        returns: Returns::Rows(&CompareRow::TYPE, 20),
        who: Who::Monitor,
        comment: "\
            Compares the runs of two labels as io_probe_compare(run_a, run_b) compares two runs. Columns a \
            and b are geometric means over the latest 50 runs of each label in a series (see \
            io_probe_runs.series). Runs of the same series are compared, or else those of the same \
            probe, object and arguments. Further rows show the arguments that differ. If the labels take \
            turns, runs that are close in time count as pairs. pg_monitor may call it",
        example: "'first', 'first'",
        errors: &[&["42704"]],
        ..KEEP
    },
    Function {
        name: "changes",
        arguments: &[optional("last", "integer", "1"), optional("all_items", "boolean", "false")],
        returns: Returns::Rows(&ChangesRow::TYPE, 20),
        who: Who::Monitor,
        comment: "\
            Shows what changed by more than its noise. It compares the last runs of each series (argument \
            last says how many) with up to 30 runs before them. It shows only what is in use (the current \
            sync method, the kernel's readahead window, all paths except os); all_items => true shows all \
            items. If nothing has changed, about one call in twenty still reports a change, by chance \
            (Holm's correction). Reads stored runs only. pg_monitor may call it",
        example: "1",
        ..KEEP
    },
];
