//! The tree as nested JSON, for `get_tree`.

use crate::{SessionTree, object::quoted};

impl SessionTree {
    /// The JSON array of root nodes: `{"entry":…,"children":[…],"label"?,"labelTimestamp"?}`, children sorted by time.
    ///
    /// Written without recursion: a conversation is a chain, one node deeper with each message. Readers of such JSON must mind
    /// its depth.
    #[must_use]
    pub fn to_json(&self) -> String {
        let (roots, children) = self.nodes();
        let mut out = Vec::with_capacity(self.entries().iter().map(|entry| entry.line_len() + 32).sum());
        out.push(b'[');
        // Each level's nodes that are still to be written, the next one last.
        let mut levels: Vec<Vec<u32>> = vec![roots.into_iter().rev().collect()];
        // The node whose children a level holds.
        let mut above: Vec<u32> = Vec::new();
        let mut is_first = true;
        while let Some(level) = levels.last_mut() {
            let Some(at) = level.pop() else {
                levels.pop();
                out.push(b']');
                if let Some(parent) = above.pop() {
                    self.finish_node(parent, &mut out);
                }
                is_first = false;
                continue;
            };
            if !is_first {
                out.push(b',');
            }
            out.extend_from_slice(b"{\"entry\":");
            self.entry(at).write_line(&mut out);
            out.extend_from_slice(b",\"children\":[");
            let mut next = children[at as usize].clone();
            next.reverse();
            levels.push(next);
            above.push(at);
            is_first = true;
        }
        // Entries are text, and so is what stands around them.
        String::from_utf8_lossy(&out).into_owned()
    }

    fn finish_node(&self, at: u32, out: &mut Vec<u8>) {
        if let Some(label) = self.label(self.entry(at).id()) {
            let (text, time) = (quoted(&label.text), quoted(&label.timestamp));
            out.extend_from_slice(format!(",\"label\":{text},\"labelTimestamp\":{time}").as_bytes());
        }
        out.push(b'}');
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
