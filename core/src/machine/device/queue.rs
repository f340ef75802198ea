//! What a leaf device is and how its request queue is set.
//!
//! Each fact is one small file in sysfs, read when asked; a file that the kernel doesn't have or that
//! can't be read is `None`. The values are the kernel's: a virtual disk often says `rotational` of a
//! solid-state volume, and a drive may hide the size of its physical blocks.
//!
//! Source: the kernel's `Documentation/ABI/stable/sysfs-block`.

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
    /// How the kernel treats the device's cache: `write back` (volatile: a sync must flush it) or
    /// `write through`.
    pub write_cache: Option<String>,
    /// Whether a single write can bypass the device's cache (Force Unit Access).
    pub fua: Option<bool>,
}

impl Leaf {
    /// Reads the facts of a disk.
    pub(super) fn read(found: LeafFound) -> Self {
        let LeafFound { disk, above } = found;
        let queue = disk.join("queue");
        let (scheduler, schedulers) =
            text(&queue, "scheduler").map(|line| parse_schedulers(&line)).unwrap_or_default();
        Leaf {
            name: leaves::name(&disk).unwrap_or_default(),
            above,
            model: text(&disk, "device/model"),
            size_bytes: attribute(&disk, "size").map(|sectors: u64| sectors.saturating_mul(SECTOR_BYTES)),
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
            write_cache: text(&queue, "write_cache"),
            fua: flag(&queue, "fua"),
        }
    }

    /// The device's counters now; `None` where `queue/iostats` turns the counting off.
    pub fn counters(&self, roots: &Roots) -> Option<Counters> {
        BlockDevice::find(&self.name, roots)?.counters()
    }
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
}
