//! The entries by which a session knows its subagents. Pure.

use agentd_protocol::{
    entry::EntryBody,
    subagent::{SUBAGENT_ENTRY, SubagentSnapshot, SubagentStatus},
};
use agentd_store::SessionTree;
use serde_json::json;

/// The entry for subagents that were started or have changed.
pub(crate) fn subagent_entry(subagents: &[SubagentSnapshot]) -> EntryBody {
    EntryBody::Custom {
        custom_type: SUBAGENT_ENTRY.to_owned(),
        data: Some(json!({ "subagents": subagents })),
    }
}

/// All subagents that the entries tell of, on every branch: each as the last entry has it. Those that were at work then were interrupted.
pub(crate) fn subagents_in(tree: &SessionTree) -> Vec<SubagentSnapshot> {
    let mut known: Vec<SubagentSnapshot> = Vec::new();
    for entry in tree.entries().iter().filter(|entry| entry.may_be_custom(SUBAGENT_ENTRY)) {
        let Some(EntryBody::Custom { custom_type, data: Some(data) }) = entry.body() else { continue };
        if custom_type != SUBAGENT_ENTRY {
            continue;
        }
        // What another version wrote in another form is passed over.
        let found = data
            .get("subagents")
            .cloned()
            .and_then(|found| serde_json::from_value::<Vec<SubagentSnapshot>>(found).ok());
        for subagent in found.into_iter().flatten() {
            match known.iter_mut().find(|known| known.id == subagent.id) {
                Some(known) => *known = subagent,
                None => known.push(subagent),
            }
        }
    }
    for subagent in known.iter_mut().filter(|subagent| subagent.status.is_active()) {
        subagent.status = SubagentStatus::Interrupted;
    }
    known
}

#[cfg(test)]
mod tests {
    use agentd_protocol::subagent::AgentSource;
    use agentd_store::{NewEntry, NewSession, Store, StoreOptions};

    use super::*;

    fn snapshot(id: &str, status: SubagentStatus) -> SubagentSnapshot {
        SubagentSnapshot {
            id: id.to_owned(),
            index: 0,
            agent: "task".to_owned(),
            agent_source: AgentSource::Bundled,
            status,
            task: None,
            session_id: None,
            session_file: None,
            last_update: 0,
            progress: None,
            parent_tool_call_id: None,
            isolated: false,
            error: None,
        }
    }

    #[test]
    fn the_last_entry_counts_and_nobody_is_at_work_after_a_crash() {
        let store = Store::new(StoreOptions::default());
        let mut tree = store.in_memory(NewSession::new("/w", 0)).unwrap().tree;
        let entries = [
            subagent_entry(&[snapshot("a", SubagentStatus::Running), snapshot("b", SubagentStatus::Pending)]),
            EntryBody::Custom { custom_type: SUBAGENT_ENTRY.into(), data: Some(json!({"subagents": 3})) },
            subagent_entry(&[snapshot("a", SubagentStatus::Completed)]),
        ];
        for body in entries {
            let entry = tree.prepare(NewEntry::from_body(&body).unwrap(), 0);
            tree.push(entry);
        }
        let found: Vec<_> = subagents_in(&tree).into_iter().map(|it| (it.id, it.status)).collect();
        assert_eq!(
            found,
            [("a".to_owned(), SubagentStatus::Completed), ("b".to_owned(), SubagentStatus::Interrupted)]
        );
    }

    #[test]
    fn other_entries_of_extensions_are_passed_over_without_being_parsed() {
        let store = Store::new(StoreOptions::default());
        let mut tree = store.in_memory(NewSession::new("/w", 0)).unwrap().tree;
        let state = json!({"rows": vec!["x".repeat(50); 40]});
        for _ in 0..1_000 {
            let body = EntryBody::Custom { custom_type: "theirs".into(), data: Some(state.clone()) };
            let entry = tree.prepare(NewEntry::from_body(&body).unwrap(), 0);
            tree.push(entry);
        }
        let body = subagent_entry(&[snapshot("a", SubagentStatus::Completed)]);
        let entry = tree.prepare(NewEntry::from_body(&body).unwrap(), 0);
        tree.push(entry);
        assert_eq!(subagents_in(&tree).len(), 1);
        assert_eq!(tree.entries().iter().filter(|entry| entry.may_be_custom(SUBAGENT_ENTRY)).count(), 1);
    }
}
