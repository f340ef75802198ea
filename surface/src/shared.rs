//! Columns that several rows have.

use crate::doubt::Doubts;
use crate::row::row;
use crate::value::{Json, Relation, Text};

row! {
    /// What the figures are about: the relation, and the devices behind it.
    shared PlaceColumns {
        /// Devices behind the relation, see io_probe_device; NULL if unknown
        device: Option<Text>,
        /// I/O scheduler of the devices behind the relation
        scheduler: Option<Text>,
        /// Readahead window in kB that newly opened files get; NULL if unknown
        read_ahead_kb: Option<u64>,
        /// Relation that the call names
        relid: Option<Relation>,
        /// Schema of the relation
        schemaname: Option<Text>,
        /// Name of the relation
        relname: Option<Text>,
        /// Tablespace of the relation
        spcname: Option<Text>,
    }
}

row! {
    /// What speaks against the figures.
    shared CaveatColumns {
        /// What speaks against this row's figures: at most two codes of docs/interface.md, the worst first;
        /// NULL: nothing
        doubt: Doubts,
        /// ok; partial: something from outside ended the row early; unsupported: not possible here; void: the
        /// figures contradict each other
        status: &'static str,
        /// What to know about this row, one sentence per element. What concerns the whole call stands in one
        /// of its rows
        notes: Vec<String>,
    }
}

row! {
    /// The 95 % confidence interval of a row's main figure.
    shared IntervalColumns {
        /// Half the width of the 95 % confidence interval of the main figure (block_us of scans and page
        /// costs, iops of random reads, op_us of syncs), in percent of it; NULL without an interval, or
        /// without ci_high
        err_pct: Option<f64>,
        /// Lower end of that interval, which covers the variation within this run; NULL if the run is too
        /// short for one, or under a rate limit
        ci_low: Option<f64>,
        /// Upper end of that interval; NULL without one
        ci_high: Option<f64>,
    }
}

row! {
    /// Which tier served the blocks.
    shared TierColumns {
        /// Percent of the blocks that shared buffers (of a temporary table: the session's own buffers)
        /// served; NULL if unknown
        shared_pct: Option<f64>,
        /// Percent of the blocks that the OS page cache served; NULL if unknown
        os_pct: Option<f64>,
        /// Percent of the blocks that came from the device, as far as the kernel can tell: it counts what a
        /// cache in the drive, a RAID controller or a hypervisor served as the device's. NULL if unknown
        device_pct: Option<f64>,
    }
}

row! {
    /// What the devices did meanwhile.
    shared ActivityColumns {
        /// Bytes fetched from storage for this row, readahead included; NULL if unknown
        device_bytes: Option<u64>,
        /// Reads that the devices completed meanwhile, for all processes
        device_ios: Option<u64>,
        /// device_ios per block that came from the device. Over 1: requests are split; under 1: requests are
        /// merged
        ios_per_block: Option<f64>,
        /// Mean size of the devices' reads in kB (rareq-sz of iostat); NULL without reads
        rareq_kb: Option<f64>,
        /// Mean number of requests queued or in flight (aqu-sz of iostat). This and util_pct of an emulated
        /// window (io_probe_readahead): over the time including cache_us
        aqu_sz: Option<f64>,
        /// Mean time of a device read in ms, queueing included (r_await of iostat); NULL without reads
        r_await_ms: Option<f64>,
        /// Percent of the time with at least one request in flight (%util of iostat); of several devices, the
        /// busiest's
        util_pct: Option<f64>,
        /// Bytes that the devices moved meanwhile beyond device_bytes: reads for other processes, and all
        /// writes
        other_bytes: Option<u64>,
    }
}

row! {
    /// Latencies of single fetches.
    shared LatencyColumns {
        /// Mean latency in microseconds, from issue until the block is seen to be there. Left out: warm-up,
        /// requests that fill the queue, and requests in flight while another segment file of the relation
        /// was looked at. NULL if the server reads ahead
        lat_us: Option<f64>,
        /// Median latency in microseconds; NULL if fewer than ten fetches lie above it
        p50_us: Option<f64>,
        /// Latency in microseconds that 95 % of the fetches did not exceed; NULL if fewer than ten fetches
        /// lie above it
        p95_us: Option<f64>,
        /// Latency in microseconds that 99 % of the fetches did not exceed; NULL if fewer than ten fetches
        /// lie above it
        p99_us: Option<f64>,
        /// How many fetches there are in each range of latencies that has some: an array of objects
        /// {low_us, high_us, count}, ascending; each range is 1.19 times the last. As rows:
        /// jsonb_to_recordset(histogram) AS r(low_us float8, high_us float8, count bigint)
        histogram: Option<Json>,
    }
}
