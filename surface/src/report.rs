//! io_probe_report: all that there is to know of the storage, in one call and in words.

use serde::Deserialize;

use crate::doubt::Doubts;
use crate::function::{FILES, Function, MEASURE, MEASURING, Returns, optional, options};
use crate::row::{Row, row};
use crate::value::{ColumnType, SqlType, SqlValue, Text, column_types};
use crate::words::words;

words! {
    /// What a line is about, in the order of the report.
    #[derive(Default)]
    ReportSection {
        /// The server, and the call itself.
        #[default]
        Server = "server",
        /// What the server's data lies on.
        Device = "device",
        /// How far the figures can be trusted.
        Trust = "trust",
        /// Rate of a scan.
        Scan = "scan",
        /// Reads per second at a depth.
        Depth = "depth",
        /// Median latency at a depth.
        P50 = "p50",
        /// 99th percentile of the latencies at a depth.
        P99 = "p99",
        /// Random writes per second at a depth.
        Write = "write",
        /// Median latency of a random write at a depth.
        WriteP50 = "write_p50",
        /// 99th percentile of the latencies of random writes at a depth.
        WriteP99 = "write_p99",
        /// Rate of long writes in sequence.
        LongWrite = "long_write",
        /// Time of a flush of WAL.
        Commit = "commit",
        /// 99th percentile of the flushes of WAL.
        CommitP99 = "commit_p99",
        /// Reads and writes per second, each alone; loads are shares of these rates.
        Load = "load",
        /// Median latency of reads beside writes.
        LoadP50 = "load_p50",
        /// 99th percentile of the latencies of reads beside writes.
        LoadP99 = "load_p99",
        /// Median time of a flush of WAL beside reads.
        CommitLoadP50 = "commit_load_p50",
        /// 99th percentile of the flushes of WAL beside reads.
        CommitLoadP99 = "commit_load_p99",
        /// Rate of a cold scan by readahead.
        Readahead = "readahead",
        /// What it means.
        Verdict = "verdict",
        /// What to set.
        Advice = "advice",
        /// What is not known.
        Missing = "missing",
    }
}

words! {
    /// What a figure is, besides its value.
    Mark {
        /// The smallest depth that is as good as the fastest.
        Best = "best",
        /// What the server does.
        InUse = "in use",
        /// Too little of the scan came from the device to call it that of the device.
        FromMemory = "from memory",
        /// Not all requests of the load were answered in time, so that a percentile of it is too low.
        NotCarried = "not carried",
    }
}

column_types! {
    ReportSection: Text = |section| SqlValue::Text(section.name().into());
    Mark: Text = |mark| SqlValue::Text(mark.name().into());
}

row! {
    /// one line, a figure or a fact
    #[derive(Deserialize)]
    row ReportFullRow "report_full" everyday [] {
        /// Subject of the line: server, device, trust, scan, depth, p50, p99, write, write_p50, write_p99,
        /// long_write, commit, commit_p99, load, load_p50, load_p99, commit_load_p50, commit_load_p99,
        /// readahead, verdict, advice, missing
        section: ReportSection,
        /// What the line is about. trust: good, fair, poor or unknown, for the parts that finding names
        /// (scans, reads, writes, commits, mixed load). scan: the path. depth, p50, p99, write, write_p50,
        /// write_p99, long_write: requests in flight. commit, commit_p99: the sync method. load: reads alone
        /// or writes alone. load_p50, load_p99, commit_load_p50, commit_load_p99: rate of reads, in percent
        /// of reads alone. readahead: the window in kB
        item: Text,
        /// Figure that was measured; NULL for a fact
        value: Option<f64>,
        /// Unit of value
        unit: Option<Text>,
        /// Lower end of the 95 % confidence interval of value
        low: Option<f64>,
        /// Upper end of the 95 % confidence interval of value
        high: Option<f64>,
        /// What argument promised gives for this figure
        promised: Option<f64>,
        /// Is the promise kept, within 5 percent? NULL without a promise, or if unknown (a line of section
        /// verdict has the cause)
        kept: Option<bool>,
        /// The fact, in words. NULL for a figure, except for the size of the relation: there the relation's
        /// name
        finding: Option<Text>,
        /// best: the smallest depth that is as good as the fastest; in use: the server uses it; from memory:
        /// under 90 % of the scan came from the device; not carried: under 95 % of reads or writes were
        /// answered in time, so the true percentile is higher
        mark: Option<Mark>,
        /// At most two doubts, the worst first; docs/interface.md explains them. NULL: nothing speaks against
        /// the figure, or the line has none
        doubt: Doubts,
        /// Section advice: statement that carries out the advice
        statement: Option<Text>,
        /// Sections load_p50, load_p99: rate of writes meanwhile, in percent of the rate of writes alone.
        /// commit_load_p50, commit_load_p99: rate of commits, in percent of the rate of commits alone
        write_pct: Option<u32>,
    }
}

row! {
    /// one line of the report, as text or as HTML
    row ReportRow "report" everyday [] {
        /// The line
        report: Text,
    }
}

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function {
        name: "report_full",
        arguments: &[
            optional("rel", "regclass", "NULL"),
            optional("duration", "text", "NULL"),
            optional("cold", "boolean", "false"),
            optional("writes", "boolean", "false"),
            optional("promised", "jsonb", "NULL"),
            options(MEASURING),
        ],
        returns: Returns::Rows(&ReportFullRow::TYPE, 50),
        comment: "Returns the content of io_probe_report as rows, to join and to store",
        example: r#"'public.probed', '30 ms', true, true, '{"iops": 1000}'"#,
        errors: &[FILES],
        ..MEASURE
    },
    Function {
        name: "report",
        arguments: &[
            optional("rel", "regclass", "NULL"),
            optional("duration", "text", "NULL"),
            optional("cold", "boolean", "false"),
            optional("writes", "boolean", "false"),
            optional("promised", "jsonb", "NULL"),
            optional("format", "text", "'text'"),
            optional("run", "bigint", "NULL"),
            options(MEASURING),
        ],
        returns: Returns::Rows(&ReportRow::TYPE, 50),
        comment: "\
            Reports on the storage in one call: devices, scans, random reads, readahead and settings, with \
            verdicts in words. It takes half a minute unless duration says otherwise. writes => true adds \
            writes, flushes, and latencies of reads during writes. Measures relation rel, or the largest \
            table. promised is what you pay for: {\"mib_s\": 2000, \"iops\": 100000, \"p99_us\": 500, \
            \"write_mib_s\": 1000, \"write_iops\": 50000, \"commit_us\": 1000, \"commit_p99_us\": 2000}. \
            format: text (80 columns) or html (one page, with pictures). run shows a report that \
            io_probe_record('report') has stored. cold => true evicts what the report reads. writes => true \
            writes scratch files in the folder of the WAL and in the relation's tablespace. The report \
            leaves out and lists what the caller has no right to measure (rights on the _full functions \
            count). Options: max_bytes, max_iops, max_mib_s, max_util_pct, max_p99, precision (not for reads \
            at several depths, and not for writes), wait",
        example: "'public.probed', '30 ms', true, true, format => 'html'",
        errors: &[FILES],
        ..MEASURE
    },
];
