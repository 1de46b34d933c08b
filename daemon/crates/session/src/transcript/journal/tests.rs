use agentd_store::{NewSession, Store, StoreOptions};
use serde_json::json;

use super::*;

fn message(role: &str) -> NewEntry {
    let message = json!({"role": role, "content": [], "timestamp": 0, "stopReason": "stop", "api": "a", "provider": "p", "model": "m"});
    NewEntry::message(serde_json::from_str(&message.to_string()).unwrap())
}

/// Two things happen in one millisecond, and clocks go back: what came first is told by the order of the entries.
#[test]
fn an_answer_is_older_than_a_compaction_by_its_place() {
    let mut session = Store::new(StoreOptions::default()).in_memory(NewSession::new("/w", 0)).unwrap();
    let mut add = |entry: NewEntry, now_ms| {
        let entry = session.tree.prepare(entry, now_ms);
        session.tree.push(entry.clone());
        let (tree, writer) = (
            session.tree.clone(),
            Store::new(StoreOptions::default()).in_memory(NewSession::new("/w", 0)).unwrap().writer,
        );
        let intent_log = SessionIntentLog::of(writer.intent_log());
        let journal = Journal::new(OpenSession { tree, writer, report: LoadReport::default() }, intent_log);
        (entry.id().to_owned(), journal.answer_precedes_compaction())
    };
    assert!(!add(message("user"), 1_000).1);
    let (kept, precedes) = add(message("assistant"), 5_000);
    assert!(!precedes, "nothing was compacted");
    let compaction: EntryBody = serde_json::from_value(json!({
        "type": "compaction", "summary": "s", "firstKeptEntryId": kept, "tokensBefore": 9,
    }))
    .unwrap();
    let compaction = || NewEntry::from_body(&compaction).unwrap();
    // The clock went back by two seconds since the answer.
    assert!(add(compaction(), 3_000).1);
    assert!(add(message("user"), 3_000).1);
    for now_ms in [3_000, 2_000, 9_000] {
        assert!(!add(message("assistant"), now_ms).1, "{now_ms}");
    }
}
