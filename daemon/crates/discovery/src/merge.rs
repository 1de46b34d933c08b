//! Decides which items count.

use std::{collections::HashMap, path::PathBuf, sync::Arc};

use agentd_protocol::capabilities::{CapabilityKind, CapabilityLevel};
use serde_json::{Map, Value};

use crate::{
    cache::Snapshot,
    capabilities::Capabilities,
    item::{Item, ItemDetail, OwnItem},
    provider::NATIVE,
    standing::{ListedItem, Standing},
    switches::Switches,
};

/// Decides which items of a scan count, in a project that is trusted or not. `own` are the items that other crates found; they come before
/// all others but agentd's own. Pure.
///
/// Of those with one key the first counts. An item that is disabled, waits for trust or has no effect does not shadow others; one that its
/// own file switches off does.
#[must_use]
pub fn merge(own: Vec<OwnItem>, snapshot: &Snapshot, switches: &Switches, trusted: bool) -> Capabilities {
    let is_native = |item: &&Arc<Item>| item.provider.id == NATIVE.id;
    let (native, foreign): (Vec<_>, Vec<_>) = snapshot.items.iter().partition(is_native);
    let found = |item: &Arc<Item>| (Arc::clone(item), false, None);
    let own = own.into_iter().map(|own| (Arc::new(own.item), own.waits_for_trust, own.reason));
    let all = native.into_iter().map(found).chain(own).chain(foreign.into_iter().map(found));
    let mut by_kind: Vec<Vec<(Arc<Item>, bool, Option<String>)>> =
        CapabilityKind::ALL.iter().map(|_| Vec::new()).collect();
    for found in all {
        let kind = CapabilityKind::ALL.iter().position(|kind| *kind == found.0.kind).unwrap_or_default();
        by_kind[kind].push(found);
    }
    let mut items = Vec::new();
    for of_kind in by_kind {
        let mut taken: HashMap<String, PathBuf> = HashMap::new();
        let mut servers: Vec<(Connection, String)> = Vec::new();
        for (item, own_waits, own_reason) in of_kind {
            let standing = if switches.disables(&item.id) {
                Standing::Disabled
            } else if switches.leaves_out(&item.id) {
                Standing::LeftOut
            } else if let Some(reason) = own_reason.or_else(|| item.no_effect.map(str::to_owned)) {
                Standing::NoEffect(reason)
            } else if own_waits || waits(&item, trusted) {
                Standing::WaitsForTrust
            } else if let Some(path) = taken.get(&item.key) {
                Standing::Shadowed(path.clone())
            } else if let Some((_, name)) =
                connection(&item).and_then(|it| servers.iter().find(|(known, _)| *known == it))
            {
                Standing::SameServer(name.clone())
            } else {
                taken.insert(item.key.clone(), item.path.clone());
                if item.is_switched_off {
                    Standing::SwitchedOff
                } else {
                    servers.extend(connection(&item).map(|connection| (connection, item.name.clone())));
                    Standing::Counts
                }
            };
            items.push(ListedItem { item, standing });
        }
    }
    Capabilities::new(items, snapshot.warnings.clone())
}

fn waits(item: &Item, trusted: bool) -> bool {
    !trusted && item.level == CapabilityLevel::Project && item.kind.needs_trust()
}

/// What makes two servers the same: how they are reached, and with which secrets.
type Connection = Map<String, Value>;

fn connection(item: &Item) -> Option<Connection> {
    let ItemDetail::Server(entry) = &item.detail else { return None };
    let keys = ["command", "args", "env", "cwd", "url", "headers"];
    let pairs = keys.iter().filter_map(|key| Some(((*key).to_owned(), entry.get(*key)?.clone())));
    let connection: Connection = pairs.collect();
    (!connection.is_empty()).then_some(connection)
}

#[cfg(test)]
mod tests;
