//! `io_probe_device`: which devices are behind the server's directories, and how they are set.

use io_probe_core::files::direct_io;
use io_probe_core::machine::device::{self, Leaf, Placement, Roots};
use io_probe_surface::facts::DeviceRow;
use io_probe_surface::value::Text;
use pgrx::prelude::*;

use crate::pg::backend::Rows;
use crate::pg::catalog::facts::{self, Object};

#[pg_extern(sql = false)]
fn io_probe_device() -> Rows {
    Rows::answer(|| Ok(rows()))
}

/// The rows of `io_probe_device`.
pub(super) fn rows() -> Vec<DeviceRow> {
    facts::objects().iter().flat_map(of_object).collect()
}

/// A row for each device below an object, or one without a device.
fn of_object(object: &Object) -> Vec<DeviceRow> {
    let placement = device::locate(&object.directory, &Roots::default());
    if placement.leaves.is_empty() {
        return vec![device_row(object, &placement, None)];
    }
    placement.leaves.iter().map(|leaf| device_row(object, &placement, Some(leaf))).collect()
}

fn device_row(object: &Object, placement: &Placement, leaf: Option<&Leaf>) -> DeviceRow {
    let (mount, file_system) = (placement.mount.as_ref(), placement.file_system.as_ref());
    let status = if leaf.is_some() { "ok" } else { "unsupported" };
    let device = leaf.map(|leaf| leaf.name.clone().into());
    // Without a device all of its facts are unknown.
    let leaf = leaf.cloned().unwrap_or_default();
    DeviceRow {
        object: object.kind,
        spcname: object.tablespace.clone().map(Text::from),
        device,
        scheduler: leaf.scheduler.map(Text::from),
        read_ahead_kb: placement.read_ahead_kb,
        rotational: leaf.rotational,
        fs_type: mount.map(|mount| mount.fs_type.clone().into()),
        mount_point: mount.map(|mount| mount.mount_point.display().to_string().into()),
        directory: placement.directory.display().to_string().into(),
        fs_free_bytes: file_system.map(|file_system| file_system.free_bytes),
        mount_options: mount.map(|mount| mount.options.clone().into()),
        top_device: placement.top.clone().map(Text::from),
        model: leaf.model.map(Text::from),
        schedulers: leaf.schedulers,
        nr_requests: leaf.nr_requests,
        max_sectors_kb: leaf.max_sectors_kb,
        max_hw_sectors_kb: leaf.max_hw_sectors_kb,
        logical_block_size: leaf.logical_block_size,
        physical_block_size: leaf.physical_block_size,
        fs_block_size: file_system.map(|file_system| file_system.block_size),
        size_bytes: leaf.size_bytes,
        read_only: leaf.read_only,
        write_cache: leaf.write_cache.map(Text::from),
        fua: leaf.fua,
        direct_io_align: direct_io::alignment_below(&placement.directory),
        status,
        notes: placement.notes.clone(),
    }
}

/// The devices behind the tablespaces, the WAL and temporary files, each once, and what could not be found
/// out.
pub(super) fn leaves_of_server(roots: &Roots) -> (Vec<Leaf>, Vec<String>) {
    let (mut leaves, mut notes): (Vec<Leaf>, Vec<String>) = Default::default();
    for object in facts::objects() {
        let placement = device::locate(&object.directory, roots);
        for leaf in placement.leaves {
            if !leaves.iter().any(|known| known.name == leaf.name) {
                leaves.push(leaf);
            }
        }
        for note in placement.notes {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    (leaves, notes)
}
