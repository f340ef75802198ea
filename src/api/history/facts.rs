//! Under which circumstances a probe ran: what it measured, the devices below and how they were set, the
//! machine and the server's settings. Read before the probe begins.

use std::ffi::CStr;

use io_probe_advise::compare::SETTINGS;
use io_probe_core::machine::device::{self, Leaf, Placement, Roots};
use io_probe_core::machine::host::Host;
use io_probe_surface::settings;
use pgrx::pg_sys;
use serde_json::{Map, Value, json};

use super::super::device::leaves_of_server;
use crate::api::shared::of_leaves;
use crate::call::probe::{Probe, Recorded};
use crate::pg::catalog::facts::{self, Object};
use crate::pg::history::{RelationFacts, setting_value};

/// How a device was set.
fn leaf_facts(leaf: &Leaf, placement: &Placement) -> Value {
    json!({
        "device": leaf.name,
        "model": leaf.model,
        "scheduler": leaf.scheduler,
        // The window of the device on which the file system sits.
        "read_ahead_kb": placement.read_ahead_kb.or(leaf.read_ahead_kb),
        "nr_requests": leaf.nr_requests,
        "max_sectors_kb": leaf.max_sectors_kb,
        "rotational": leaf.rotational,
        "write_cache": leaf.write_cache,
    })
}

/// The part of the result of a probe that is about to be called with `args` that says where its rows come
/// from, and the devices below the object. Its keys are the columns of io_probe_runs; those of the relation
/// are in an object of their own.
pub(super) fn gather(
    probe: Probe,
    rel: Option<pg_sys::Oid>,
    args: &Map<String, Value>,
) -> (Value, Vec<Leaf>) {
    let relation = rel.and_then(RelationFacts::find);
    let spcname = args.get("spcname").and_then(Value::as_str);
    let (object, spcname, placement) = locate(probe, relation.as_ref(), spcname);
    // Caps are among them: a cap holds where a call gives no value.
    let own = settings::NUMBERS.iter().map(|setting| setting.name).chain([settings::ENGINE.name]);
    let own = own.filter(|name| *name != settings::SCRATCH_RESERVE.name);
    let shown = |name: &CStr| (name.to_string_lossy().into_owned(), setting_value(name).into());
    let of_server = SETTINGS.iter().map(|(name, _)| *name);
    let mut settings: Map<String, Value> = of_server.chain(own).map(shown).collect();
    for (name, value) in spcname.iter().flat_map(|name| facts::tablespace_options(name)) {
        settings.insert(format!("tablespace {name}"), value.into());
    }
    let host = Host::here();
    let facts = json!({
        "object": object,
        "relation": relation,
        "spcname": spcname,
        "device": of_leaves(&placement, |leaf| Some(&leaf.name)),
        "model": of_leaves(&placement, |leaf| leaf.model.as_deref()),
        "leaves": placement.leaves.iter().map(|leaf| leaf_facts(leaf, &placement)).collect::<Value>(),
        "kernel": host.as_ref().map(|host| &host.kernel),
        "host": host.as_ref().map(|host| &host.name),
        "settings": settings,
    });
    (facts, placement.leaves)
}

/// What a probe measures, its tablespace, and the devices below.
pub(in crate::api) fn locate(
    probe: Probe,
    relation: Option<&RelationFacts>,
    spcname: Option<&str>,
) -> (String, Option<String>, Placement) {
    match (relation, spcname) {
        // A tablespace that is tried instead of the relation's own.
        (Some(relation), Some(_)) => {
            let (_, spcname, placement) = of_place(spcname);
            (of_relation(relation).0, spcname, placement)
        }
        (Some(relation), None) => of_relation(relation),
        (None, _) if probe.recorded() == Recorded::WalOrTablespace => of_place(spcname),
        (None, _) => of_server(),
    }
}

fn of_relation(relation: &RelationFacts) -> (String, Option<String>, Placement) {
    let object = format!("{}.{}", relation.schemaname, relation.relname);
    let placement = relation.directory().map(|directory| device::locate(&directory, &Roots::default()));
    (object, relation.spcname.clone(), placement.unwrap_or_default())
}

/// The place of a probe's scratch file: beside the WAL, or in a tablespace.
fn of_place(spcname: Option<&str>) -> (String, Option<String>, Placement) {
    let kind = if spcname.is_some() { "tablespace" } else { "wal" };
    let is_meant = |object: &Object| object.kind == kind && object.tablespace.as_deref() == spcname;
    let placed = facts::objects().into_iter().find(is_meant);
    let placement = placed.map(|object| device::locate(&object.directory, &Roots::default()));
    let name = spcname.map_or_else(|| kind.to_owned(), |name| format!("{kind} {name}"));
    (name, spcname.map(str::to_owned), placement.unwrap_or_default())
}

/// All devices that the server uses.
fn of_server() -> (String, Option<String>, Placement) {
    let (leaves, _) = leaves_of_server(&Roots::default());
    ("server".to_owned(), None, Placement { leaves, ..Placement::default() })
}
