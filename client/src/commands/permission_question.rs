//! A question about a call on a terminal: what the call would do, why it is asked about, and the keys that answer.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agentd_protocol::{
    permissions::{PermissionAnswer, PermissionQuestion},
    terminal_text::visible,
    ui::UiRequestResolved,
};

use crate::render::{counted, one_line, paint_diff};

/// How many lines of a command, of arguments or of a diff are shown.
const MAX_LINES: usize = 60;

/// What a typed line says.
#[derive(Debug, PartialEq)]
pub(super) enum TypedKey {
    /// The answer, with words to the model.
    Answer(PermissionAnswer, Option<String>),
    /// The next line has the words to the model.
    Words,
    /// None of the keys.
    Unclear,
}

/// Reads a line that was typed at a question.
pub(super) fn key(question: &PermissionQuestion, line: &str) -> TypedKey {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let answer = match word.to_lowercase().as_str() {
        "y" | "yes" => PermissionAnswer::Once,
        "s" => PermissionAnswer::Session,
        "a" => PermissionAnswer::Always,
        "n" | "no" => PermissionAnswer::Deny,
        "m" if rest.trim().is_empty() => return TypedKey::Words,
        "m" => return TypedKey::Answer(PermissionAnswer::Deny, Some(rest.trim().to_owned())),
        _ => return TypedKey::Unclear,
    };
    if !rest.is_empty() || question.option(answer).is_none() {
        return TypedKey::Unclear;
    }
    TypedKey::Answer(answer, None)
}

/// The question as text.
pub(super) fn shown(question: &PermissionQuestion, colour: bool) -> String {
    let mut text = format!("? Allow this? ({}, {})\n", one_line(&question.tool), time_left(question));
    match (&question.command, &question.path) {
        (Some(command), _) => text.push_str(&command_lines(command)),
        (None, Some(path)) => text.push_str(&format!("  {}: {}\n", one_line(&question.tool), line(path))),
        (None, None) => {}
    }
    if question.parsed.len() > 1 {
        text.push_str("  It runs:\n");
        for command in question.parsed.iter().take(MAX_LINES) {
            let words = command.words.iter().chain(&command.redirections);
            let words: Vec<&str> = words.map(String::as_str).collect();
            text.push_str(&format!("    {}\n", line(&words.join(" "))));
        }
        text.push_str(&missing(question.parsed.len(), "command"));
    }
    if let Some(arguments) = &question.arguments {
        let written = serde_json::to_string_pretty(arguments).unwrap_or_default();
        for shown in written.lines().take(MAX_LINES) {
            text.push_str(&format!("  {}\n", line(shown)));
        }
        text.push_str(&missing(written.lines().count(), "line"));
    }
    if let Some(diff) = &question.diff {
        for shown in diff.lines().take(MAX_LINES) {
            text.push_str(&format!("  {}\n", paint_diff(&visible(shown), colour)));
        }
        text.push_str(&missing(diff.lines().count(), "line"));
        if question.diff_cut {
            text.push_str("  … and more: the change is long.\n");
        }
    }
    text.push_str(&format!("  Asked, since {}.\n", line(&question.reason)));
    text + &keys(question)
}

/// The keys that answer.
pub(super) fn keys(question: &PermissionQuestion) -> String {
    let mut text = String::new();
    for option in &question.options {
        let key = match option.decision {
            PermissionAnswer::Once => 'y',
            PermissionAnswer::Session => 's',
            PermissionAnswer::Always => 'a',
            PermissionAnswer::Deny => 'n',
        };
        text.push_str(&format!("  {key}  {}\n", line(&option.text)));
    }
    text + "  m  No, with words to the model: m WORDS\n  Type a key and Enter.\n"
}

/// The instructions for the words to the model.
pub(super) const HOW_TO_SAY: &str = "  Type what the model should know; an empty line goes back.\n";

/// How a question ended that was not answered here.
pub(super) fn ended(resolved: &UiRequestResolved) -> String {
    match (&resolved.by, resolved.decision) {
        (Some(by), Some(decision)) => format!("  Answered by {}: {}.\n", one_line(by), decision.done()),
        (Some(by), None) => format!("  Answered by {}.\n", one_line(by)),
        (None, _) => "  The question is over: nobody answered in time, or the call was stopped.\n".to_owned(),
    }
}

/// A line in which nothing hides.
fn line(text: &str) -> String {
    one_line(&visible(text))
}

fn command_lines(command: &str) -> String {
    let lines: Vec<&str> = command.strip_suffix('\n').unwrap_or(command).split('\n').collect();
    let shown = lines.iter().take(MAX_LINES).enumerate();
    let text: String = shown
        .map(|(index, shown)| format!("  {} {}\n", if index == 0 { '$' } else { ' ' }, line(shown)))
        .collect();
    text + &missing(lines.len(), "line")
}

/// The line about what is not shown; nothing where all is.
fn missing(count: usize, what: &str) -> String {
    let rest = count.saturating_sub(MAX_LINES);
    if rest == 0 { String::new() } else { format!("  … {} more\n", counted(rest, what)) }
}

fn time_left(question: &PermissionQuestion) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let left = Duration::from_millis(question.deadline).saturating_sub(now).as_secs();
    if left < 120 { format!("{left} s to answer") } else { format!("{} min to answer", left / 60) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked() -> PermissionQuestion {
        let rule = json!({ "tool": "bash", "command": "touch *", "action": "allow" });
        serde_json::from_value(json!({
            "title": "t", "tool": "bash", "command": "cd sub &&\n touch \u{1b}[2Jmade", "reason": "it says so",
            "parsed": [{ "words": ["cd", "sub"], "redirections": [] }, { "words": ["touch", "made"], "redirections": ["> log"] }],
            "options": [
                { "decision": "once", "text": "Yes, this once" },
                { "decision": "session", "text": "Yes, and for this session: touch *", "rule": rule },
                { "decision": "deny", "text": "No" },
            ],
            "timeout": 60_000, "deadline": 0,
        }))
        .unwrap()
    }

    #[test]
    fn it_says_what_runs_and_which_keys_there_are() {
        let text = shown(&asked(), false);
        assert!(
            text.starts_with(
                "? Allow this? (bash, 0 s to answer)\n  $ cd sub &&\n     touch \\u{1b}[2Jmade\n"
            ),
            "{text}"
        );
        assert!(text.contains("  It runs:\n    cd sub\n    touch made > log\n"), "{text}");
        assert!(text.contains("  Asked, since it says so.\n  y  Yes, this once\n  s  Yes, and for this session: touch *\n  n  No\n"));
        assert!(!text.contains("  a  "));
    }

    #[test]
    fn a_diff_is_painted_and_cut() {
        let diff = format!("--- a/x\n+++ b/x\n@@ -1 +1,80 @@\n-old\n{}", "+new\n".repeat(80));
        let question = PermissionQuestion { diff: Some(diff), command: None, parsed: Vec::new(), ..asked() };
        let text = shown(&question, true);
        assert!(text.contains("  \u{1b}[31m-old\u{1b}[0m\n  \u{1b}[32m+new\u{1b}[0m\n"), "{text}");
        assert!(text.contains("  … 24 lines more\n"), "{text}");
    }

    #[test]
    fn keys_are_answers() {
        use PermissionAnswer::{Deny, Once, Session};
        let key = |line: &str| key(&asked(), line);
        assert_eq!(key(" Y "), TypedKey::Answer(Once, None));
        assert_eq!(key("s"), TypedKey::Answer(Session, None));
        assert_eq!(key("no"), TypedKey::Answer(Deny, None));
        assert_eq!(key("m"), TypedKey::Words);
        assert_eq!(key("m use a test"), TypedKey::Answer(Deny, Some("use a test".to_owned())));
        for line in ["a", "", "x", "y please", "yy"] {
            assert_eq!(key(line), TypedKey::Unclear, "{line}");
        }
    }
}
