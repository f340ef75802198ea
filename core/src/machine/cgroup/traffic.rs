//! What a group has read from and written to devices.

use super::place::{Hierarchy, Version};
use crate::machine::device::{DeviceNumber, text as file};

/// Bytes since the group exists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    /// Read.
    pub read_bytes: u64,
    /// Written.
    pub written_bytes: u64,
}

impl Moved {
    /// What was moved since `earlier`; `None` if it went backwards.
    pub fn since(self, earlier: Moved) -> Option<Moved> {
        Some(Moved {
            read_bytes: self.read_bytes.checked_sub(earlier.read_bytes)?,
            written_bytes: self.written_bytes.checked_sub(earlier.written_bytes)?,
        })
    }
}

/// The text of the file with the group's counters. An empty one is as good as any: nothing was moved yet.
pub(super) fn text(hierarchy: &Hierarchy) -> Option<String> {
    let directory = hierarchy.levels.first()?;
    match hierarchy.version {
        Version::V2 => std::fs::read_to_string(directory.join("io.stat")).ok(),
        Version::V1 => file(directory, "blkio.throttle.io_service_bytes_recursive")
            .or_else(|| file(directory, "blkio.throttle.io_service_bytes")),
    }
}

/// A device's counters in that text. Version 2 leaves a device out that nothing was moved to or from; version
/// 1 may leave out one that it does not count.
pub(super) fn of(version: Version, text: &str, device: DeviceNumber) -> Option<Moved> {
    let device = device.to_string();
    let lines =
        || text.lines().filter_map(|line| line.split_once(' ')).filter(|(number, _)| *number == device);
    match version {
        Version::V2 => {
            let value = |name: &str| {
                lines()
                    .flat_map(|(_, rest)| rest.split_ascii_whitespace())
                    .find_map(|word| word.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
            };
            Some(Moved {
                read_bytes: value("rbytes").unwrap_or(0),
                written_bytes: value("wbytes").unwrap_or(0),
            })
        }
        Version::V1 => {
            let value =
                |name: &str| lines().find_map(|(_, rest)| rest.strip_prefix(name)?.trim().parse().ok());
            Some(Moved { read_bytes: value("Read ")?, written_bytes: value("Write ")? })
        }
    }
}
