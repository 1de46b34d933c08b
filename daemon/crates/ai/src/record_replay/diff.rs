//! How a request differs from the one that was recorded, for people.

use std::time::Duration;

use serde_json::Value;
use similar::{ChangeTag, TextDiff};

/// How many lines are shown.
const MAX_LINES: usize = 60;

/// How many characters of a line are shown.
const MAX_CHARS: usize = 200;

/// Lines around a difference.
const CONTEXT: usize = 2;

/// How long the shortest difference is looked for.
const PATIENCE: Duration = Duration::from_millis(500);

/// The lines that differ: `-` recorded, `+` asked now.
pub(super) fn diff(recorded: &Value, now: &Value) -> String {
    let (recorded, now) = (format!("{recorded:#}\n"), format!("{now:#}\n"));
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(&recorded, &now);
    let mut lines = Vec::new();
    for (nth, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
        if nth > 0 {
            lines.push("  ...".to_owned());
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let sign = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => ' ',
            };
            let text = change.value().trim_end_matches('\n');
            let shown: String = text.chars().take(MAX_CHARS).collect();
            let cut = if shown.len() < text.len() { "..." } else { "" };
            lines.push(format!("{sign} {shown}{cut}"));
        }
    }
    let more = lines.len().saturating_sub(MAX_LINES);
    lines.truncate(MAX_LINES);
    if more > 0 {
        lines.push(format!("({more} more lines)"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_differs_is_shown() {
        let found = diff(&json!({"a": 1, "b": "x".repeat(300)}), &json!({"a": 2, "b": "x".repeat(300)}));
        assert!(found.starts_with("  {\n-   \"a\": 1,\n+   \"a\": 2,\n    \"b\": \"xxx"), "{found}");
        assert!(found.ends_with("...\n  }"), "{found}");
        let many = |from: i32| json!((from..from + 500).collect::<Vec<_>>());
        let found = diff(&many(0), &many(1000));
        assert!(found.lines().count() == MAX_LINES + 1 && found.ends_with("more lines)"), "{found}");
    }
}
