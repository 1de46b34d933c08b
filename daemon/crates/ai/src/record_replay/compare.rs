//! Compares the body of a request with a recorded one, and shows the difference. Pure.
//!
//! Session ids, UUIDs, dates and times differ from run to run, and system prompts name folders and files of the machine: each is masked by
//! a word.

use std::time::Duration;

use serde_json::Value;
use similar::{ChangeTag, TextDiff};

/// Members whose value is the system prompt.
const SYSTEM_MEMBERS: [&str; 4] = ["system", "instructions", "systemInstruction", "system_instruction"];

/// Roles of messages that are the system prompt.
const SYSTEM_ROLES: [&str; 2] = ["system", "developer"];

/// The shortest session id that is masked, in bytes.
const MIN_SESSION_BYTES: usize = 8;

/// Numbers that are taken for Unix times in milliseconds: of the years 2001 to 2033, with thirteen digits.
const MILLISECONDS: std::ops::Range<u64> = 1_000_000_000_000..2_000_000_000_000;

/// The comparable form of a body. A body that is not JSON is compared as text.
pub(super) fn shape(body: &str, session: &str) -> Value {
    match serde_json::from_str(body) {
        Ok(mut value) => {
            mask(&mut value, session);
            value
        }
        Err(_) => Value::String(text(body, session)),
    }
}

fn mask(value: &mut Value, session: &str) {
    match value {
        Value::String(string) => *string = text(string, session),
        Value::Array(items) => items.iter_mut().for_each(|item| mask(item, session)),
        Value::Object(members) => {
            let is_system =
                members.get("role").and_then(Value::as_str).is_some_and(|role| SYSTEM_ROLES.contains(&role));
            for (name, value) in members {
                if SYSTEM_MEMBERS.contains(&name.as_str())
                    || (is_system && (name == "content" || name == "sections"))
                {
                    *value = "<system prompt>".into();
                } else {
                    mask(value, session);
                }
            }
        }
        Value::Number(number) if number.as_u64().is_some_and(|ms| MILLISECONDS.contains(&ms)) => {
            *value = "<time>".into();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A text with everything masked that differs from run to run. Looks at each byte a bounded number of times.
fn text(text: &str, session: &str) -> String {
    // A shorter id, which a user may choose, may occur anywhere by chance.
    let is_id = session.len() >= MIN_SESSION_BYTES;
    let text = if is_id { text.replace(session, "<session>") } else { text.to_owned() };
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let (mut at, mut kept) = (0, 0);
    while at < bytes.len() {
        let begins = at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
        let found = begins.then(|| volatile(&bytes[at..])).flatten();
        if let Some((len, word)) = found {
            out.push_str(&text[kept..at]);
            out.push_str(word);
            at += len;
            kept = at;
        } else {
            at += 1;
        }
    }
    out.push_str(&text[kept..]);
    out
}

/// The length of the UUID, date or time at the beginning of a text, and the word that masks it.
fn volatile(bytes: &[u8]) -> Option<(usize, &'static str)> {
    if follows(bytes, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx") {
        return Some((36, "<uuid>"));
    }
    // A Unix time in milliseconds, as in generated ids of calls.
    let ends = |at: usize| bytes.get(at).is_none_or(|byte| !byte.is_ascii_alphanumeric());
    if bytes[0] == b'1' && follows(bytes, "9999999999999") && ends(13) {
        return Some((13, "<time>"));
    }
    if !follows(bytes, "9999-99-99") {
        return None;
    }
    let mut len = 10;
    if follows(&bytes[len..], "T99:99:99") || follows(&bytes[len..], " 99:99:99") {
        len += 9;
        if bytes.get(len) == Some(&b'.') {
            len += 1 + bytes[len + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        }
        if bytes.get(len) == Some(&b'Z') {
            len += 1;
        }
    }
    Some((len, "<date>"))
}

/// Whether a text begins with a pattern: `x` stands for a hexadecimal digit, `9` for a digit, all else for itself.
fn follows(bytes: &[u8], pattern: &str) -> bool {
    bytes.len() >= pattern.len()
        && pattern.bytes().zip(bytes).all(|(pattern, byte)| match pattern {
            b'x' => byte.is_ascii_hexdigit(),
            b'9' => byte.is_ascii_digit(),
            other => other == *byte,
        })
}

/// The most lines that are shown.
const MAX_LINES: usize = 60;

/// The longest part of a line that is shown, in characters.
const MAX_CHARS: usize = 200;

/// The lines shown around a difference.
const CONTEXT: usize = 2;

/// The timeout of the search for the shortest difference.
const DIFF_TIMEOUT: Duration = Duration::from_millis(500);

/// The lines that differ: `-` recorded, `+` requested now.
pub(super) fn diff(recorded: &Value, now: &Value) -> String {
    let (recorded, now) = (format!("{recorded:#}\n"), format!("{now:#}\n"));
    let diff = TextDiff::configure().timeout(DIFF_TIMEOUT).diff_lines(&recorded, &now);
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
    fn what_differs_from_run_to_run_is_masked() {
        let check = |before: &str, after: &str| assert_eq!(text(before, "session-1"), after);
        check("key session-1.", "key <session>.");
        check("it is 2026-11-22, 2026-11-22T01:02:03.456Z", "it is <date>, <date>");
        check("0199a3b4-0000-7000-8000-0123456789ab ü", "<uuid> ü");
        check("read_1795319432634_2, 17953194326345", "read_<time>_2, 17953194326345");
        check("12026-11-22 and 2026-1-22", "12026-11-22 and 2026-1-22");
        check("", "");
    }

    #[test]
    fn system_prompts_are_not_compared_and_all_else_is() {
        let body = json!({
            "model": "m", "system": [{"text": "a"}], "prompt_cache_key": "session-1",
            "messages": [{"role": "developer", "content": "b", "sections": {"cwd": "/a"}}, {"role": "user", "content": "c", "timestamp": 1_795_319_432_634_u64, "n": 7}],
        });
        let expected = json!({
            "model": "m", "system": "<system prompt>", "prompt_cache_key": "<session>",
            "messages": [
                {"role": "developer", "content": "<system prompt>", "sections": "<system prompt>"}, {"role": "user", "content": "c", "timestamp": "<time>", "n": 7},
            ],
        });
        assert_eq!(shape(&body.to_string(), "session-1"), expected);
        assert_eq!(shape("no JSON", ""), json!("no JSON"));
    }
}

#[cfg(test)]
mod diff_tests {
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
