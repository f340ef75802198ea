//! Columns that several rows have.

use crate::doubt::Doubts;
use crate::row::row;
use crate::value::{Json, Relation, Text};

row! {
    /// The relation that was measured, and the devices behind it.
    shared PlaceColumns {
        /// Devices behind the relation
        device: Option<Text>,
        /// I/O scheduler of the devices behind the relation
        scheduler: Option<Text>,
        /// Readahead window in kB that newly opened files get
        read_ahead_kb: Option<u64>,
        /// Relation that the call names
        relid: Option<Relation>,
        /// Schema of the relation
        schemaname: Option<Text>,
        /// Name of the relation
        relname: Option<Text>,
        /// Tablespace of the relation, or the tablespace that the call names
        spcname: Option<Text>,
    }
}

row! {
    /// Doubts about the figures.
    shared CaveatColumns {
        /// At most two doubts, the worst first; docs/interface.md explains them. NULL: nothing speaks against
        /// the figures of the row
        doubt: Doubts,
        /// ok; partial: something from outside ended the measurement early; unsupported: not possible on this
        /// system; void: the figures contradict each other
        status: &'static str,
        /// Sentences about this row. A note about the whole call is in one row only
        notes: Vec<String>,
    }
}

row! {
    /// The 95 % confidence interval of a row's main figure.
    shared IntervalColumns {
        /// Half of the 95 % confidence interval, in percent of the main figure (block_us, iops, op_us,
        /// writes_s)
        err_pct: Option<f64>,
        /// Lower end of the 95 % confidence interval. The interval covers only the variation within this run
        ci_low: Option<f64>,
        /// Upper end of the 95 % confidence interval
        ci_high: Option<f64>,
    }
}

row! {
    /// Which tier served the blocks.
    shared TierColumns {
        /// Percent of the blocks from shared buffers (temporary table: from the session's local buffers)
        shared_pct: Option<f64>,
        /// Percent of the blocks from the OS cache
        os_pct: Option<f64>,
        /// Percent of the blocks from the device. Caches of a drive, a RAID controller or a hypervisor count
        /// as the device
        device_pct: Option<f64>,
    }
}

row! {
    /// What the devices did during the measurement.
    shared ActivityColumns {
        /// Bytes fetched from storage for this row, readahead included
        device_bytes: Option<u64>,
        /// Reads that the devices completed during the measurement, for all processes
        device_ios: Option<u64>,
        /// device_ios per block from the device. Over 1: a block took several reads; under 1: a read had
        /// several blocks
        ios_per_block: Option<f64>,
        /// Mean size of the devices' reads in kB (rareq-sz of iostat)
        rareq_kb: Option<f64>,
        /// Mean number of requests queued or in flight (aqu-sz of iostat). In io_probe_readahead, mode
        /// emulated, the time for aqu_sz and util_pct includes cache_us
        aqu_sz: Option<f64>,
        /// Mean ms of a device read, queueing included (r_await of iostat)
        r_await_ms: Option<f64>,
        /// Percent of the time with a request in flight (%util of iostat). With several devices: of the
        /// busiest device
        util_pct: Option<f64>,
        /// Bytes that the devices moved in addition to device_bytes: reads for others, and all writes
        other_bytes: Option<u64>,
    }
}

row! {
    /// Latencies of single fetches.
    shared LatencyColumns {
        /// Mean latency in us, from the request until the probe has the block. Excludes the warm-up and the
        /// fetches that first fill the queue. NULL if the server reads ahead
        lat_us: Option<f64>,
        /// Median latency in us. Each percentile is NULL if fewer than ten fetches took longer
        p50_us: Option<f64>,
        /// 95th percentile of the latency in us
        p95_us: Option<f64>,
        /// 99th percentile of the latency in us
        p99_us: Option<f64>,
        /// Number of fetches in each latency range, without empty ranges: {low_us, high_us, count}. Each
        /// range is 1.19 times the one before
        histogram: Option<Json>,
    }
}
