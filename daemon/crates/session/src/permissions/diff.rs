//! What a call of `edit` or `write` would change, for the user who is asked.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use agentd_protocol::text_bounds;
use agentd_safe_open::{AcceptedOwner, LinkPolicy, OpenRules};
use agentd_tools::edited_text;
use serde_json::Value;
use similar::TextDiff;

/// The longest file or text that is compared, in bytes: 1 MiB.
const MAX_FILE: u64 = 1 << 20;

/// The longest diff, in bytes: 64 KiB.
const MAX_DIFF: usize = 64 * 1024;

/// The time after which a diff becomes a coarse one.
const DEADLINE: Duration = Duration::from_millis(100);

/// A unified diff.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CallDiff {
    pub(super) text: String,
    /// Whether its end is missing.
    pub(super) is_cut: bool,
}

/// The diff of a call of `tool` that changes the file at `path`; `None` where that is long, no text or not readable. Reads the file;
/// blocks.
pub(super) fn of_call(tool: &str, path: &Path, arguments: &Value) -> Option<CallDiff> {
    let rules = OpenRules::new(LinkPolicy::Followed).owner(AcceptedOwner::Anybody).max_bytes(MAX_FILE);
    let old = rules.read(path).ok()?.map(String::from_utf8).transpose().ok()?;
    let new = match tool {
        // An edit of a call that changes several files comes with the whole text.
        "edit" if arguments.get("content").is_none() => edited_text(old.as_ref()?, arguments)?,
        "edit" | "write" => {
            arguments.get("content")?.as_str().filter(|text| text.len() as u64 <= MAX_FILE)?.to_owned()
        }
        _ => return None,
    };
    Some(unified(path, old.as_deref(), &new))
}

fn unified(path: &Path, old: Option<&str>, new: &str) -> CallDiff {
    let shown = path.display();
    let from = if old.is_some() { format!("a{shown}") } else { "/dev/null".to_owned() };
    let lines =
        TextDiff::configure().deadline(Instant::now() + DEADLINE).diff_lines(old.unwrap_or_default(), new);
    let mut text = lines.unified_diff().header(&from, &format!("b{shown}")).to_string();
    let is_cut = text.len() > MAX_DIFF;
    if is_cut {
        text.truncate(text_bounds::floor(&text, MAX_DIFF));
        // Whole lines.
        text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
    }
    CallDiff { text, is_cut }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn edits_and_writes_are_shown_as_diffs() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let write = json!({ "path": "x", "content": "one\n" });
        let new = of_call("write", &path, &write).unwrap();
        assert_eq!(new.text, format!("--- /dev/null\n+++ b{}\n@@ -0,0 +1 @@\n+one\n", path.display()));
        std::fs::write(&path, "one\ntwo\n").unwrap();
        let edit = json!({ "path": "x", "edits": [{ "oldText": "two", "newText": "2" }] });
        assert!(of_call("edit", &path, &edit).unwrap().text.ends_with(" one\n-two\n+2\n"));
        let long = json!({ "path": "x", "content": "line\n".repeat(20_000) });
        let cut = of_call("write", &path, &long).unwrap();
        assert!(cut.is_cut && cut.text.len() <= MAX_DIFF && cut.text.ends_with("+line\n"));
        std::fs::write(&path, [0xff, 0]).unwrap();
        assert_eq!(of_call("write", &path, &write), None);
        assert_eq!(of_call("write", dir.path(), &write), None);
    }
}
