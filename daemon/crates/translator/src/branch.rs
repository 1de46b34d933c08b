//! Pure. The branch that a session is on.

use std::collections::HashMap;

use agentd_protocol::{
    Json,
    command::Entries,
    entry::{EntryBody, EntryHead, SessionEntry},
};

/// The entries from the root to the leaf, with their ids. Entries of kinds that this version does not know are left out.
#[must_use]
pub fn branch(entries: &Entries) -> Vec<(String, &EntryBody)> {
    let heads: Vec<Option<EntryHead>> =
        entries.entries.iter().map(|entry| serde_json::from_str(entry.text()).ok()).collect();
    let by_id: HashMap<&str, usize> = (heads.iter().enumerate())
        .filter_map(|(place, head)| head.as_ref().map(|head| (head.id.as_str(), place)))
        .collect();
    let mut places = Vec::new();
    let mut next = entries.leaf_id.as_deref();
    // A circle in a damaged file ends after as many steps as there are entries.
    while let Some(place) = next.and_then(|id| by_id.get(id)).filter(|_| places.len() < heads.len()) {
        places.push(*place);
        next = heads[*place].as_ref().and_then(|head| head.parent_id.as_deref());
    }
    let entry =
        |place: &usize| entries.entries.get(*place).and_then(|entry: &Json<SessionEntry>| entry.get());
    places
        .iter()
        .rev()
        .filter_map(|place| entry(place).map(|entry| (entry.id.clone(), &entry.body)))
        .collect()
}
