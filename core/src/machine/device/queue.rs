//! What a leaf device is and how its request queue is set.
//!
//! Each fact is one small file in sysfs, read when asked; a file that the kernel doesn't have or that
//! can't be read is `None`. The values are the kernel's: a virtual disk often says `rotational` of a
//! solid-state volume, and a drive may hide the size of its physical blocks.
//!
//! Source: the kernel's `Documentation/ABI/stable/sysfs-block`.

use std::path::Path;

use super::counters::SECTOR_BYTES;
use super::leaves::LeafFound;
use super::{BlockDevice, Counters, Roots, attribute, flag, leaves, text};

/// A device that does the I/O: a whole disk, never a partition.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Leaf {
    /// Kernel name, such as `sda`, `nvme0n1`, `loop0`.
    pub name: String,
    /// The names of the devices above it through which it was reached, such as `dm-0`, `md0`.
    pub above: Vec<String>,
    /// What the vendor calls it.
    pub model: Option<String>,
    /// Capacity of the whole disk.
    pub size_bytes: Option<u64>,
    /// Whether the kernel refuses writes.
    pub read_only: Option<bool>,
    /// Whether the device claims to be a spinning disk.
    pub rotational: Option<bool>,
    /// The I/O scheduler in force; `none` for none.
    pub scheduler: Option<String>,
    /// The schedulers that could be chosen now.
    pub schedulers: Option<Vec<String>>,
    /// The device's own readahead setting in kB. Reads through a file system use
    /// [`read_ahead_kb`](super::Placement::read_ahead_kb) of the placement.
    pub read_ahead_kb: Option<u64>,
    /// Requests that may be queued for reads, and as many for writes.
    pub nr_requests: Option<u64>,
    /// The largest request that the kernel makes, in kB.
    pub max_sectors_kb: Option<u64>,
    /// The largest request that the hardware takes, in kB.
    pub max_hw_sectors_kb: Option<u64>,
    /// The smallest unit that can be addressed, in bytes.
    pub logical_block_size: Option<u64>,
    /// The smallest unit that is written without read-modify-write, in bytes.
    pub physical_block_size: Option<u64>,
    /// Preferred size of sustained I/O in bytes, for RAID the stripe; 0 if the device states none.
    pub optimal_io_size: Option<u64>,
    /// Bytes from the start of the used partition, or of the disk, to its natural alignment; −1 if the
    /// kernel found that no alignment is possible.
    pub alignment_offset: Option<i64>,
    /// First sector (512 bytes) of the partition that is used; `None` if the disk is used whole or through
    /// several partitions.
    pub start_sector: Option<u64>,
    /// Whether each used partition, or the disk, starts on a boundary of the physical block and of
    /// `optimal_io_size`. What LVM and md put before the data is not seen here.
    pub aligned: Option<bool>,
    /// How the kernel treats the device's cache: `write back` (volatile: a sync must flush it) or
    /// `write through`.
    pub write_cache: Option<String>,
    /// Whether a single write can bypass the device's cache (Force Unit Access).
    pub fua: Option<bool>,
    /// Merging of requests: 0 on, 1 simple merges only, 2 off.
    pub nomerges: Option<u8>,
}

impl Leaf {
    /// Reads the facts of a disk.
    pub(super) fn read(found: LeafFound) -> Self {
        let LeafFound { disk, partitions, above } = found;
        let queue = disk.join("queue");
        let (scheduler, schedulers) =
            text(&queue, "scheduler").map(|line| parse_schedulers(&line)).unwrap_or_default();
        let optimal_io_size = attribute(&queue, "optimal_io_size");
        let start = match &partitions[..] {
            [] => Some(disk.as_path()),
            [partition] => Some(partition.as_path()),
            _ => None,
        };
        let aligned = if partitions.is_empty() {
            attribute(&disk, "alignment_offset").map(|offset: i64| offset == 0)
        } else {
            partitions
                .iter()
                .map(|partition| partition_aligned(partition, optimal_io_size))
                .reduce(all)
                .flatten()
        };
        Leaf {
            name: leaves::name(&disk).unwrap_or_default(),
            above,
            model: text(&disk, "device/model"),
            size_bytes: attribute(&disk, "size").map(sectors_to_bytes),
            read_only: flag(&disk, "ro"),
            rotational: flag(&queue, "rotational"),
            scheduler,
            schedulers,
            read_ahead_kb: attribute(&queue, "read_ahead_kb"),
            nr_requests: attribute(&queue, "nr_requests"),
            max_sectors_kb: attribute(&queue, "max_sectors_kb"),
            max_hw_sectors_kb: attribute(&queue, "max_hw_sectors_kb"),
            logical_block_size: attribute(&queue, "logical_block_size"),
            physical_block_size: attribute(&queue, "physical_block_size"),
            optimal_io_size,
            alignment_offset: start.and_then(|start| attribute(start, "alignment_offset")),
            start_sector: start.and_then(|start| attribute(start, "start")),
            aligned,
            write_cache: text(&queue, "write_cache"),
            fua: flag(&queue, "fua"),
            nomerges: attribute(&queue, "nomerges"),
        }
    }

    /// The device's counters now; `None` where `queue/iostats` turns the counting off.
    pub fn counters(&self, roots: &Roots) -> Option<Counters> {
        BlockDevice::find(&self.name, roots)?.counters()
    }
}

fn sectors_to_bytes(sectors: u64) -> u64 {
    sectors.saturating_mul(SECTOR_BYTES)
}

/// `false` is certain as soon as one is; `true` needs all.
fn all(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn partition_aligned(partition: &Path, optimal_io_size: Option<u64>) -> Option<bool> {
    let start = attribute(partition, "start").map(sectors_to_bytes)?;
    aligned(start, attribute(partition, "alignment_offset")?, optimal_io_size)
}

/// Whether a partition that starts at byte `start` lies well. An `optimal_io_size` that is no multiple of 4
/// kB is a bridge's largest transfer (65,535 sectors are common), not a boundary.
fn aligned(start: u64, alignment_offset: i64, optimal_io_size: Option<u64>) -> Option<bool> {
    let on_block = Some(alignment_offset == 0);
    let on_stripe =
        optimal_io_size.map(|size| size == 0 || !size.is_multiple_of(4096) || start.is_multiple_of(size));
    all(on_block, on_stripe)
}

/// The scheduler in force and all that are offered, from `none [mq-deadline] kyber`. Devices without a
/// choice show one bare word.
pub(super) fn parse_schedulers(line: &str) -> (Option<String>, Option<Vec<String>>) {
    let mut current = None;
    let mut offered = Vec::new();
    for word in line.split_whitespace() {
        let bare = word.strip_prefix('[').and_then(|word| word.strip_suffix(']'));
        current = current.or(bare.map(str::to_owned));
        offered.push(bare.unwrap_or(word).to_owned());
    }
    if let (None, [only]) = (&current, offered.as_slice()) {
        current = Some(only.clone());
    }
    (current, (!offered.is_empty()).then_some(offered))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedulers(line: &str) -> (String, Vec<String>) {
        let (current, offered) = parse_schedulers(line);
        (current.unwrap_or_default(), offered.unwrap_or_default())
    }

    #[test]
    fn the_bracketed_scheduler_is_in_force() {
        assert_eq!(
            schedulers("none [mq-deadline] kyber"),
            ("mq-deadline".into(), vec!["none".into(), "mq-deadline".into(), "kyber".into()])
        );
        assert_eq!(schedulers("[none] bfq"), ("none".into(), vec!["none".into(), "bfq".into()]));
        assert_eq!(schedulers("none"), ("none".into(), vec!["none".into()]));
        assert_eq!(schedulers("noop cfq").0, "");
        assert_eq!(parse_schedulers(""), (None, None));
    }

    #[test]
    fn alignment_follows_block_and_stripe() {
        const MIB: u64 = 1 << 20;
        assert_eq!(aligned(MIB, 0, Some(0)), Some(true));
        assert_eq!(aligned(63 * 512, 512, Some(0)), Some(false));
        assert_eq!(aligned(MIB, -1, Some(0)), Some(false));
        assert_eq!(aligned(MIB, 0, Some(192 << 10)), Some(false));
        assert_eq!(aligned(MIB, 0, Some(256 << 10)), Some(true));
        assert_eq!(aligned(MIB, 0, Some(65_535 * 512)), Some(true));
        assert_eq!(aligned(MIB, 0, None), None);
        assert_eq!(aligned(MIB, 8, None), Some(false));
    }
}
