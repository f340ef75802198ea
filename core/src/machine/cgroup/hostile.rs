//! For `crate::hostile`: what holds for any text in the files of a group.

use super::limits;
use super::place::{self, Version};
use crate::machine::device::DeviceNumber;

/// Reads one text as each of the files that have a line for each device, and as `/proc/self/cgroup`.
pub(crate) fn lines(text: &str, device: Option<DeviceNumber>) {
    for controller in ["blkio", "cpu", "memory"] {
        if let Some((version, path)) = place::path(text, controller) {
            let printed = match version {
                Version::V1 => format!("1:name=systemd:/x\n2:{controller}:{path}\n0::/y"),
                Version::V2 => format!("1:name=systemd:/x\n0::{path}"),
            };
            assert_eq!(place::path(&printed, controller), Some((version, path)), "{printed:?}");
        }
    }
    let Some(device) = device else { return };
    let keys = ["rbps", "wbps", "riops", "wiops"];
    let found = keys.map(|key| limits::of_io_max(text, device, key));
    let [rbps, wbps, riops, wiops] =
        found.map(|limit| limit.map_or("max".to_owned(), |limit| limit.to_string()));
    let printed = format!("{device} rbps={rbps} wbps={wbps} riops={riops} wiops={wiops}");
    assert_eq!(keys.map(|key| limits::of_io_max(&printed, device, key)), found);
}
