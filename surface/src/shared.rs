//! Columns that several rows have.

use crate::doubt::Doubts;
use crate::row::row;
use crate::value::{Json, Relation, Text};

row! {
    /// What the figures are about: the relation, and the devices behind it.
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
        /// Tablespace of the relation, or the one that the call names
        spcname: Option<Text>,
    }
}

row! {
    /// What speaks against the figures.
    shared CaveatColumns {
        /// At most two codes of docs/interface.md, the worst first; NULL: nothing speaks against the row's
        /// figures
        doubt: Doubts,
        /// ok; partial: ended early from outside; unsupported: not possible here; void: contradictory
        status: &'static str,
        /// Sentences about this row. What concerns the whole call stands in one row
        notes: Vec<String>,
    }
}

row! {
    /// The 95 % confidence interval of a row's main figure.
    shared IntervalColumns {
        /// Half the 95 % confidence interval of the main figure (block_us, iops of random reads, op_us), in
        /// percent of it
        err_pct: Option<f64>,
        /// Lower end of that interval, which covers the variation within this run only
        ci_low: Option<f64>,
        /// Upper end of it
        ci_high: Option<f64>,
    }
}

row! {
    /// Which tier served the blocks.
    shared TierColumns {
        /// Percent of the blocks from shared buffers (of a temporary table: the session's own)
        shared_pct: Option<f64>,
        /// Percent of the blocks from the OS cache
        os_pct: Option<f64>,
        /// Percent of the blocks from the device; caches of a drive, a RAID controller or a hypervisor count
        /// as the device
        device_pct: Option<f64>,
    }
}

row! {
    /// What the devices did meanwhile.
    shared ActivityColumns {
        /// Bytes fetched from storage for this row, readahead included
        device_bytes: Option<u64>,
        /// Reads that the devices completed meanwhile, for all processes
        device_ios: Option<u64>,
        /// device_ios per block from the device. Over 1: requests are split; under 1: merged
        ios_per_block: Option<f64>,
        /// Mean size of the devices' reads in kB (rareq-sz of iostat)
        rareq_kb: Option<f64>,
        /// Mean requests queued or in flight (aqu-sz of iostat). Of an emulated window this and util_pct are
        /// over the time including cache_us
        aqu_sz: Option<f64>,
        /// Mean ms of a device read, queueing included (r_await of iostat)
        r_await_ms: Option<f64>,
        /// Percent of the time with a request in flight (%util of iostat); of several devices the busiest's
        util_pct: Option<f64>,
        /// Bytes that the devices moved beyond device_bytes: reads for others, and all writes
        other_bytes: Option<u64>,
    }
}

row! {
    /// Latencies of single fetches.
    shared LatencyColumns {
        /// Mean latency in us until the block is seen, without warm-up and filling the queue. NULL if the
        /// server reads ahead
        lat_us: Option<f64>,
        /// Median latency in us; NULL if fewer than ten fetches lie above it, as for all percentiles
        p50_us: Option<f64>,
        /// 95th percentile in us
        p95_us: Option<f64>,
        /// 99th percentile in us
        p99_us: Option<f64>,
        /// Fetches in each range of latencies that has some: {low_us, high_us, count}, each range 1.19 times
        /// the last
        histogram: Option<Json>,
    }
}
