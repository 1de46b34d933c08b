//! The tree as nested JSON, for `get_tree`.

use crate::{SessionTree, object::quoted};

/// Writes the root nodes of a tree as JSON with commas between them, piece by piece: `{"entry":…,"children":[…],"label"?,"labelTimestamp"?}`,
/// children sorted by time.
///
/// Written without recursion: a conversation is a chain, one node deeper with each message. Readers of such JSON must mind its depth.
#[derive(Debug)]
pub struct TreeJson {
    /// The children of each entry, until they are written.
    children: Vec<Vec<u32>>,
    /// Each level's nodes that are still to be written, the next one last.
    levels: Vec<Vec<u32>>,
    /// The node whose children a level holds.
    above: Vec<u32>,
    /// Whether the next node is the first of its level.
    is_first: bool,
}

impl TreeJson {
    /// From the beginning of the tree.
    #[must_use]
    pub fn new(tree: &SessionTree) -> Self {
        let (mut roots, children) = tree.nodes();
        roots.reverse();
        Self { children, levels: vec![roots], above: Vec::new(), is_first: true }
    }

    /// The length of a tree's JSON in bytes, about.
    #[must_use]
    pub fn len(tree: &SessionTree) -> usize {
        tree.entries().iter().map(|entry| entry.line_len() + 32).sum()
    }

    /// Appends what comes next until `out` has at least `enough` bytes, or all is written. Returns whether all is, after which there is no
    /// more to be written. `tree` is the one it was made of. Blocks as a read of a file does, for messages that are in the session's file alone.
    pub fn write_piece(&mut self, tree: &SessionTree, enough: usize, out: &mut Vec<u8>) -> bool {
        while let Some(level) = self.levels.last_mut() {
            if out.len() >= enough {
                return false;
            }
            let Some(at) = level.pop() else {
                self.levels.pop();
                if let Some(parent) = self.above.pop() {
                    out.push(b']');
                    finish_node(tree, parent, out);
                }
                self.is_first = false;
                continue;
            };
            if !self.is_first {
                out.push(b',');
            }
            out.extend_from_slice(b"{\"entry\":");
            tree.entry(at).write_line(out);
            out.extend_from_slice(b",\"children\":[");
            let mut next = std::mem::take(&mut self.children[at as usize]);
            next.reverse();
            self.levels.push(next);
            self.above.push(at);
            self.is_first = true;
        }
        true
    }
}

fn finish_node(tree: &SessionTree, at: u32, out: &mut Vec<u8>) {
    if let Some(label) = tree.label(tree.entry(at).id()) {
        let (text, time) = (quoted(&label.text), quoted(&label.timestamp));
        out.extend_from_slice(format!(",\"label\":{text},\"labelTimestamp\":{time}").as_bytes());
    }
    out.push(b'}');
}

impl SessionTree {
    /// The JSON array of all root nodes, each as [`TreeJson`] writes it.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = Vec::with_capacity(TreeJson::len(self));
        out.push(b'[');
        TreeJson::new(self).write_piece(self, usize::MAX, &mut out);
        out.push(b']');
        // Entries are text, and so is what stands around them.
        String::from_utf8_lossy(&out).into_owned()
    }

    /// The roots, and the children of each entry, in order.
    fn nodes(&self) -> (Vec<u32>, Vec<Vec<u32>>) {
        let count = self.entries().len();
        let mut roots = Vec::new();
        let mut children = vec![Vec::new(); count];
        for at in 0..count as u32 {
            match self.parent(at) {
                Some(parent) => children[parent as usize].push(at),
                None => roots.push(at),
            }
        }
        for siblings in &mut children {
            if siblings.len() > 1 {
                siblings.sort_by_cached_key(|at| self.entry(*at).timestamp_ms());
            }
        }
        (roots, children)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use crate::testing::tree;

    /// `a(b c(d))`, with labels in brackets.
    fn shape(nodes: &Value) -> String {
        let one = |node: &Value| {
            let mut text = node["entry"]["id"].as_str().unwrap().to_owned();
            if let Some(label) = node.get("label") {
                text +=
                    &format!("[{}@{}]", label.as_str().unwrap(), node["labelTimestamp"].as_str().unwrap());
            }
            match shape(&node["children"]) {
                children if children.is_empty() => text,
                children => format!("{text}({children})"),
            }
        };
        nodes.as_array().unwrap().iter().map(one).collect::<Vec<_>>().join(" ")
    }

    fn check(entries: &[&str], expected: &str) {
        let json = tree(entries).to_json();
        assert_eq!(shape(&serde_json::from_str(&json).unwrap()), expected, "{json}");
    }

    #[test]
    fn shapes() {
        check(&[], "");
        check(&["a -"], "a");
        check(&["a -", "b a", "c b", "d a", "e -", "f e"], "a(b(c) d) e(f)");
        check(&["a x", "b b", "c a"], "a(b c)");
    }

    #[test]
    fn siblings_are_sorted_by_time() {
        let late = r#"{"type":"custom","customType":"x","id":"b","parentId":"a","timestamp":"2030-01-01T00:00:00.000Z"}"#;
        check(&["a -", late, "c a", "d a"], "a(c d b)");
    }

    #[test]
    fn labels_and_entries_that_only_count_tokens() {
        check(
            &[
                "a -",
                r#"{"type":"usage","id":"u","parentId":"a","usage":{}}"#,
                "b u",
                r#"{"type":"label","id":"l","parentId":"b","timestamp":"t","targetId":"a","label":"L\"1"}"#,
            ],
            "a[L\"1@t](u(b(l)))",
        );
    }

    #[test]
    fn a_long_conversation_is_no_deep_recursion() {
        let entries: Vec<String> = (0..50_000)
            .map(|at| if at == 0 { "n0 -".into() } else { format!("n{at} n{}", at - 1) })
            .collect();
        let json = tree(&entries.iter().map(String::as_str).collect::<Vec<_>>()).to_json();
        assert_eq!(json.matches("\"children\":[").count(), 50_000);
        assert!(json.ends_with("]}]}]"));
    }
}
