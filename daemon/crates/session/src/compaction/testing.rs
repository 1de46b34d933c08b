//! Sessions for the tests of this folder.

use agentd_store::{NewSession, SessionTree, Store, StoreOptions};

/// A tree of these lines.
pub(super) fn tree(lines: &[String]) -> SessionTree {
    let session = Store::new(StoreOptions::default()).in_memory(NewSession::new("/w", 0)).unwrap();
    let mut tree = session.tree;
    for line in lines {
        tree.push(agentd_store::Entry::parse(line).unwrap_or_else(|| panic!("no entry: {line}")));
    }
    tree
}

/// The line of a message with one text; an empty `parent` is none.
pub(super) fn say(id: &str, parent: &str, role: &str, text: &str) -> String {
    let parent = if parent.is_empty() { "null".to_owned() } else { format!("\"{parent}\"") };
    format!(
        r#"{{"type":"message","id":"{id}","parentId":{parent},"message":{{"role":"{role}","content":[{{"type":"text","text":"{text}"}}],"stopReason":"stop","toolCallId":"c","timestamp":1}}}}"#
    )
}
