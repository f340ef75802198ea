//! Columns that several rows have.

use crate::doubt::Doubts;
use crate::row::row;
use crate::value::{Relation, Text, Timestamp};

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
    }
}

row! {
    /// A device in an interval, as iostat -x shows it.
    shared SampleColumns {
        /// End of the interval
        sampled_at: Option<Timestamp>,
        /// Kernel name of the device, such as vda; NULL if no block device is known, and in a query's own row
        device: Option<Text>,
        /// Percent of the interval with at least one request in flight; it may read up to 102, since the
        /// kernel's clock is coarse. A device that serves requests in parallel is not saturated at 100
        util_pct: Option<f64>,
        /// Mean number of requests queued or in flight
        aqu_sz: Option<f64>,
        /// Reads completed per second
        r_s: Option<f64>,
        /// MiB (2^20 bytes) read per second
        rmib_s: Option<f64>,
        /// Mean time from queueing to completion of a read, in ms; NULL without reads
        r_await_ms: Option<f64>,
        /// Mean size of a read in kB of 1,024 bytes; NULL without reads
        rareq_kb: Option<f64>,
        /// Reads merged into queued ones per second
        rrqm_s: Option<f64>,
        /// Writes completed per second
        w_s: Option<f64>,
        /// MiB (2^20 bytes) written per second
        wmib_s: Option<f64>,
        /// Mean time from queueing to completion of a write, in ms; NULL without writes
        w_await_ms: Option<f64>,
        /// Mean size of a write in kB of 1,024 bytes; NULL without writes
        wareq_kb: Option<f64>,
        /// Writes merged into queued ones per second
        wrqm_s: Option<f64>,
        /// Discards completed per second; NULL before Linux 4.18
        d_s: Option<f64>,
        /// MiB (2^20 bytes) discarded per second
        dmib_s: Option<f64>,
        /// Mean time from queueing to completion of a discard, in ms; NULL without discards
        d_await_ms: Option<f64>,
        /// Mean size of a discard in kB of 1,024 bytes; NULL without discards
        dareq_kb: Option<f64>,
        /// Discards merged into queued ones per second
        drqm_s: Option<f64>,
        /// Flushes completed per second; NULL before Linux 5.5
        f_s: Option<f64>,
        /// Mean time from queueing to completion of a flush, in ms; NULL without flushes
        f_await_ms: Option<f64>,
        /// Percent of the machine's CPU time in user code, niced processes and guests included. This and the
        /// next four columns add up to 100
        cpu_user_pct: Option<f64>,
        /// Percent of the machine's CPU time in the kernel, interrupts included
        cpu_system_pct: Option<f64>,
        /// Percent of the machine's CPU time that was idle with I/O outstanding: a hint, not a measure of
        /// storage
        cpu_iowait_pct: Option<f64>,
        /// Percent of the machine's CPU time that was idle without I/O outstanding
        cpu_idle_pct: Option<f64>,
        /// Percent of the machine's CPU time that the hypervisor gave to others
        cpu_steal_pct: Option<f64>,
        /// Percent of the interval in which at least one task of the machine waited for I/O (some of
        /// /proc/pressure/io); NULL if the kernel does not tell
        io_pressure_pct: Option<f64>,
        /// Percent of the interval in which all tasks that had work waited for I/O (full of
        /// /proc/pressure/io); NULL if the kernel does not tell
        io_pressure_full_pct: Option<f64>,
        /// Part of rmib_s that the server's cgroup read; NULL without a cgroup that counts I/O
        cgroup_rmib_s: Option<f64>,
        /// Part of wmib_s that the server's cgroup wrote; NULL without a cgroup that counts I/O
        cgroup_wmib_s: Option<f64>,
        /// Number of the interval, from 1; NULL in a query's own row
        sample: Option<u32>,
        /// How long the interval really lasted, in ms
        elapsed_ms: Option<f64>,
    }
}
