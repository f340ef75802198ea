//! Who served the reads of a query that was executed, and whether it waited for the disk.
//!
//! A block that the server read came from the OS page cache or from the device: what the kernel fetched is
//! the device's, the rest the cache's. Who waits for the device sleeps. So reads during which the process did
//! not put itself to sleep were copies out of the cache, however long they took on busy processors. Of the
//! others what is beyond the time of such copies was spent waiting.
//!
//! # Limitations and caveats
//! - The kernel fetches more than was asked for where it reads ahead. Then `device_bytes` is above
//!   `read_bytes`, and nothing counts as the cache's.
//! - Where blocks arrive while rows are processed (from PostgreSQL 18 on) the wait is what was left of it.
//! - Writes are not in it, but those of temporary files.
//! - Of parallel processes that want the same block at the same time one reads it, and has the wait: the
//!   server does not time the others'.

use std::fmt;

use io_probe_surface::words;

/// From this share of the query's time on, waiting for the device is what it takes, or a part of it.
const MOST_OF_IT: f64 = 0.5;
const PART_OF_IT: f64 = 0.1;

/// What a node read.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct NodeReads {
    /// Blocks of tables and indexes, in bytes.
    pub read_bytes: u64,
    /// Bytes that were fetched from the device for it; None if they are not known.
    pub device_bytes: Option<u64>,
    /// Blocks of temporary files that it read and wrote, in bytes.
    pub temp_bytes: u64,
    /// Milliseconds of reading blocks, of all processes together; None if they are not known.
    pub io_ms: Option<f64>,
    /// What of these came with a process asleep for a while.
    pub slept_ms: f64,
    /// Bytes that were read then, and not fetched.
    pub slept_cached_bytes: u64,
    /// Milliseconds of reading and writing temporary files, of all processes together.
    pub temp_ms: Option<f64>,
    /// How many processes ran it.
    pub processes: u64,
    /// Did other processes read for it?
    pub by_workers: bool,
}

impl NodeReads {
    /// Bytes that came from the OS page cache.
    pub fn os_bytes(&self) -> Option<u64> {
        self.device_bytes.map(|device| self.read_bytes.saturating_sub(device))
    }

    /// Milliseconds that a process waited for the device, if a byte from the OS page cache takes
    /// `ns_per_byte`, where that is known.
    fn waited_ms(&self, ns_per_byte: Option<f64>) -> Option<f64> {
        let slept_ms = self.slept_ms.min(self.io_ms?);
        let device_bytes = self.device_bytes?;
        let waited_ms = match ns_per_byte.filter(|_| !self.by_workers) {
            Some(ns_per_byte) => slept_ms - self.slept_cached_bytes as f64 * ns_per_byte / 1e6,
            // Other processes copy as well, or no copy was timed alone: it is only known which part of the
            // bytes came from the device.
            None => slept_ms * (device_bytes as f64 / self.read_bytes.max(1) as f64).min(1.0),
        };
        Some(self.of_one(waited_ms.max(0.0)))
    }

    /// Of a time of all its processes, that of one, as a mean.
    fn of_one(&self, ms: f64) -> f64 {
        ms / self.processes.max(1) as f64
    }
}

words! {
    /// Is a query slow because of the disk?
    Verdict {
        /// At least half of its time was waiting for the device.
        Disk = "the disk",
        /// A tenth to half of it was.
        Partly = "partly the disk",
        /// Less was.
        NotDisk = "not the disk",
        /// It is not known.
        Unknown = "unknown",
    }
}

/// A query that was executed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueryReads {
    /// Its nodes together; the times are those that a process waited.
    pub sum: NodeReads,
    /// Milliseconds that it took.
    pub total_ms: f64,
    /// Milliseconds of them that it waited for the device.
    pub waited_ms: Option<f64>,
    /// Bytes that the OS cache had.
    pub os_bytes: Option<u64>,
    /// Could more reads be wanted than a process may have in flight? Waiting for one of these to end is not
    /// timed.
    pub waits_untimed: bool,
}

impl QueryReads {
    /// A query of these nodes that took `total_ms`, where a byte from the OS page cache takes `ns_per_byte`.
    pub fn of(nodes: &[NodeReads], total_ms: f64, ns_per_byte: Option<f64>) -> Self {
        let sum = NodeReads {
            read_bytes: nodes.iter().map(|node| node.read_bytes).sum(),
            device_bytes: nodes.iter().map(|node| node.device_bytes).sum(),
            temp_bytes: nodes.iter().map(|node| node.temp_bytes).sum(),
            io_ms: nodes.iter().map(|node| Some(node.of_one(node.io_ms?))).sum(),
            temp_ms: nodes.iter().map(|node| Some(node.of_one(node.temp_ms?))).sum(),
            processes: 1,
            ..NodeReads::default()
        };
        let waited = nodes.iter().map(|node| node.waited_ms(ns_per_byte)).sum::<Option<f64>>();
        let os_bytes = nodes.iter().map(NodeReads::os_bytes).sum();
        Self {
            sum,
            total_ms,
            waited_ms: waited.map(|waited| waited.min(total_ms)),
            os_bytes,
            waits_untimed: false,
        }
    }

    /// Whether it is the disk.
    pub fn verdict(&self) -> Verdict {
        match self.waited_ms {
            None => Verdict::Unknown,
            // Others may have had it fetched, or the kernel keeps no account of that file system.
            Some(waited)
                if self.sum.device_bytes == Some(0)
                    && waited >= PART_OF_IT * self.total_ms
                    && waited > 0.0 =>
            {
                Verdict::Unknown
            }
            Some(waited) if waited >= MOST_OF_IT * self.total_ms && waited > 0.0 => Verdict::Disk,
            Some(_) if self.waits_untimed && self.sum.device_bytes != Some(0) => Verdict::Unknown,
            Some(waited) if waited >= PART_OF_IT * self.total_ms && waited > 0.0 => Verdict::Partly,
            Some(_) => Verdict::NotDisk,
        }
    }
}

impl fmt::Display for QueryReads {
    /// One sentence.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NodeReads { read_bytes, device_bytes, temp_bytes, temp_ms, .. } = self.sum;
        let verdict = match self.verdict() {
            Verdict::Disk => "The disk",
            Verdict::Partly => "Partly the disk",
            Verdict::NotDisk => "Not the disk",
            Verdict::Unknown => "Not known whether it was the disk",
        };
        if read_bytes + temp_bytes == 0 && device_bytes == Some(0) {
            return write!(out, "{verdict}: nothing was read; took {} ms", count(self.total_ms));
        }
        write!(out, "{verdict}: {} read", mib(read_bytes))?;
        if let (Some(device), Some(cached)) = (device_bytes, self.os_bytes) {
            write!(out, ", {} from the OS cache, {} from the device", mib(cached), mib(device))?;
            // Temporary files that were fetched are among what came from the device.
            if temp_bytes == 0 && device > read_bytes + read_bytes / 4 {
                write!(out, " (readahead fetched more than was read)")?;
            }
        }
        if let Some(waited) = self.waited_ms {
            write!(out, "; waited {} of {} ms for the device", count(waited), count(self.total_ms))?;
        }
        if temp_bytes > 0 {
            write!(out, "; {} of temporary files", mib(temp_bytes))?;
        }
        match temp_ms.filter(|_| temp_bytes > 0) {
            Some(ms) => write!(out, " took {} ms", count(ms)),
            None => Ok(()),
        }
    }
}

/// Bytes in MiB, of little with one digit behind the point.
pub fn mib(bytes: u64) -> String {
    let mib = bytes as f64 / f64::from(1 << 20);
    if bytes > 0 && mib < 10.0 { format!("{mib:.1} MiB") } else { format!("{} MiB", count(mib)) }
}

/// A whole number as people write it.
pub fn count(value: f64) -> String {
    let digits = format!("{:.0}", value.max(0.0));
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

/// EXPLAIN's text with a line behind the Buffers of each node: that of the node in EXPLAIN's order. None if
/// the text has another number of nodes.
pub fn with_reads(text: &str, lines: &[Option<String>]) -> Option<Vec<String>> {
    let (mut out, mut node, mut waits) = (Vec::new(), 0, false);
    for (number, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        if number == 0 || trimmed.starts_with("->  ") {
            node += 1;
            waits = true;
        }
        out.push(line.to_owned());
        if waits && trimmed.starts_with("Buffers: ") {
            let indent = line.len() - trimmed.len();
            let read = lines.get(node - 1)?;
            out.extend(read.iter().map(|read| format!("{:indent$}I/O: {read}", "")));
            waits = false;
        }
    }
    (node == lines.len()).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn node(read: u64, device: u64, io_ms: f64) -> NodeReads {
        NodeReads {
            read_bytes: read * MIB,
            device_bytes: Some(device * MIB),
            io_ms: Some(io_ms),
            slept_ms: io_ms,
            slept_cached_bytes: read.saturating_sub(device) * MIB,
            temp_ms: Some(0.0),
            processes: 1,
            ..NodeReads::default()
        }
    }

    /// A MiB from the OS page cache takes 0.25 ms.
    const NS_PER_BYTE: Option<f64> = Some(0.25e6 / MIB as f64);

    #[test]
    fn it_says_what_a_dba_asks() {
        let of = |nodes: &[NodeReads]| QueryReads::of(nodes, 1402.0, NS_PER_BYTE).to_string();
        let cached = node(692, 2, 176.5);
        assert_eq!(
            of(&[cached]),
            "Not the disk: 692 MiB read, 690 MiB from the OS cache, 2.0 MiB from the device; waited 4 of \
             1,402 ms for the device"
        );
        let sort = NodeReads { temp_bytes: 28 * MIB, temp_ms: Some(41.0), ..node(0, 0, 0.0) };
        assert!(of(&[cached, sort]).ends_with("for the device; 28 MiB of temporary files took 41 ms"));
        let cold = node(692, 700, 1200.0);
        assert!(of(&[cold]).starts_with("The disk: 692 MiB read, 0 MiB from the OS cache, 700 MiB"));
        assert!(of(&[cold]).contains("700 MiB from the device;"));
        assert!(
            of(&[node(6, 480, 900.0)])
                .contains("480 MiB from the device (readahead fetched more than was read);")
        );
        assert!(of(&[node(100, 50, 300.0)]).starts_with("Partly the disk"));
        assert_eq!(of(&[node(0, 0, 0.0)]), "Not the disk: nothing was read; took 1,402 ms");
        let unknown = NodeReads { device_bytes: None, ..cold };
        assert_eq!(of(&[unknown]), "Not known whether it was the disk: 692 MiB read");
    }

    #[test]
    fn processes_wait_beside_one_another() {
        let three = NodeReads { processes: 3, ..node(300, 300, 2400.0) };
        let query = QueryReads::of(&[three], 1000.0, NS_PER_BYTE);
        assert_eq!((query.waited_ms, query.sum.io_ms), (Some(800.0), Some(800.0)));
        assert_eq!(query.verdict(), Verdict::Disk);
    }

    #[test]
    fn copies_out_of_the_cache_are_no_wait_for_the_device() {
        let query = QueryReads::of(&[node(1000, 0, 250.0)], 1000.0, NS_PER_BYTE);
        assert_eq!((query.waited_ms, query.verdict()), (Some(0.0), Verdict::NotDisk));
        assert_eq!(QueryReads::of(&[], 0.0, NS_PER_BYTE).verdict(), Verdict::NotDisk);
        // It took far longer than copies do, and nothing is on the account.
        assert_eq!(QueryReads::of(&[node(1000, 0, 900.0)], 1000.0, NS_PER_BYTE).verdict(), Verdict::Unknown);
        // More reads than may be in flight: a wait that is not timed may be any part of the time.
        let waits = |query: QueryReads| QueryReads { waits_untimed: true, ..query };
        let of =
            |slept_ms| waits(QueryReads::of(&[node(1000, 1000, slept_ms)], 1000.0, NS_PER_BYTE)).verdict();
        assert_eq!([9.0, 300.0, 900.0].map(of), [Verdict::Unknown, Verdict::Unknown, Verdict::Disk]);
        assert_eq!(
            waits(QueryReads::of(&[node(1000, 0, 9.0)], 1000.0, NS_PER_BYTE)).verdict(),
            Verdict::NotDisk
        );
        // Of what other processes read the wait is in proportion.
        let by_workers = NodeReads { by_workers: true, ..node(1000, 250, 800.0) };
        assert_eq!(QueryReads::of(&[by_workers], 1000.0, NS_PER_BYTE).waited_ms, Some(200.0));
    }

    #[test]
    fn who_does_not_sleep_has_not_waited_however_long_it_took() {
        let busy = NodeReads { slept_ms: 2.0, slept_cached_bytes: 0, ..node(1000, 1, 900.0) };
        let query = QueryReads::of(&[busy], 1000.0, NS_PER_BYTE);
        assert_eq!((query.waited_ms, query.verdict()), (Some(2.0), Verdict::NotDisk));
    }

    #[test]
    fn the_sum_of_the_cache_is_that_of_the_nodes() {
        let query = QueryReads::of(&[node(100, 150, 10.0), node(100, 0, 10.0)], 1000.0, NS_PER_BYTE);
        assert_eq!((query.os_bytes, query.sum.device_bytes), (Some(100 * MIB), Some(150 * MIB)));
    }

    #[test]
    fn a_node_gets_its_line_behind_its_buffers() {
        let text = "Limit  (cost=0.00)\n  Buffers: shared read=3\n  ->  Seq Scan on t\n        Filter: (a = \
                    '->  x')\n        Buffers: shared read=3\n  ->  Result";
        let lines = [None, Some("device 1 MiB".to_owned()), None];
        let told = with_reads(text, &lines).expect("three nodes");
        assert_eq!(told[4..6], ["        Buffers: shared read=3", "        I/O: device 1 MiB"]);
        assert_eq!(told.len(), 7);
        assert_eq!(with_reads(text, &lines[..2]), None);
        assert_eq!(with_reads(text, &[lines.as_slice(), &[None]].concat()), None);
    }
}
