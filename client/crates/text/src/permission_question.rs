//! A question about a call: what the call would do, why it is asked about, and the keys that answer.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agentd_protocol::{
    permissions::{PermissionAnswer, PermissionQuestion},
    terminal_text::visible,
    ui::UiRequestResolved,
};

use crate::{counted, one_line};

/// How many lines of a command, of arguments or of a diff are shown.
const MAX_LINES: usize = 60;

/// A line about a question, by what it tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuestionLine {
    /// A part of the command, a path, an argument; or a remark about them.
    Text(String),
    /// A line of the diff.
    Diff(String),
    /// Why it is asked about.
    Reason(String),
}

/// What a typed line says.
#[derive(Debug, PartialEq)]
pub enum TypedKey {
    /// The answer, with words to the model.
    Answer(PermissionAnswer, Option<String>),
    /// The next line has the words to the model.
    Words,
    /// None of the keys.
    Unclear,
}

/// Reads a line that was typed at a question.
#[must_use]
pub fn typed_key(question: &PermissionQuestion, line: &str) -> TypedKey {
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

/// The key for an answer.
#[must_use]
pub fn answer_key(answer: PermissionAnswer) -> char {
    match answer {
        PermissionAnswer::Once => 'y',
        PermissionAnswer::Session => 's',
        PermissionAnswer::Always => 'a',
        PermissionAnswer::Deny => 'n',
    }
}

/// What the call would do, and why it is asked about. Nothing hides in these lines.
#[must_use]
pub fn question_lines(question: &PermissionQuestion) -> Vec<QuestionLine> {
    let mut lines = Vec::new();
    let mut text = |line: String| lines.push(QuestionLine::Text(line));
    match (&question.command, &question.path) {
        (Some(command), _) => command_lines(command).into_iter().for_each(&mut text),
        (None, Some(path)) => text(format!("{}: {}", one_line(&question.tool), line(path))),
        (None, None) => {}
    }
    if question.parsed.len() > 1 {
        text("It runs:".to_owned());
        for command in question.parsed.iter().take(MAX_LINES) {
            let words = command.words.iter().chain(&command.redirections);
            let words: Vec<&str> = words.map(String::as_str).collect();
            text(format!("  {}", line(&words.join(" "))));
        }
        missing(question.parsed.len(), "command").into_iter().for_each(&mut text);
    }
    if let Some(arguments) = &question.arguments {
        let written = serde_json::to_string_pretty(arguments).unwrap_or_default();
        written.lines().take(MAX_LINES).for_each(|shown| text(line(shown)));
        missing(written.lines().count(), "line").into_iter().for_each(&mut text);
    }
    if let Some(diff) = &question.diff {
        lines.extend(diff.lines().take(MAX_LINES).map(|shown| QuestionLine::Diff(line(shown))));
        lines.extend(missing(diff.lines().count(), "line").map(QuestionLine::Text));
        if question.diff_cut {
            lines.push(QuestionLine::Text("… and more: the change is long.".to_owned()));
        }
    }
    lines.push(QuestionLine::Reason(format!("Asked, since {}.", line(&question.reason))));
    lines
}

/// The options with their keys.
#[must_use]
pub fn question_options(question: &PermissionQuestion) -> Vec<(char, String)> {
    question.options.iter().map(|option| (answer_key(option.decision), line(&option.text))).collect()
}

/// How a question ended that was not answered here.
#[must_use]
pub fn question_ended(resolved: &UiRequestResolved) -> String {
    match (&resolved.by, resolved.decision) {
        (Some(by), Some(decision)) => format!("Answered by {}: {}.", one_line(by), decision.done()),
        (Some(by), None) => format!("Answered by {}.", one_line(by)),
        (None, _) => "The question is over: nobody answered in time, or the call was stopped.".to_owned(),
    }
}

/// The time left to answer.
#[must_use]
pub fn time_left(question: &PermissionQuestion) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let left = Duration::from_millis(question.deadline).saturating_sub(now).as_secs();
    if left < 120 { format!("{left} s to answer") } else { format!("{} min to answer", left / 60) }
}

/// A line in which nothing hides.
fn line(text: &str) -> String {
    one_line(&visible(text))
}

fn command_lines(command: &str) -> Vec<String> {
    let lines: Vec<&str> = command.strip_suffix('\n').unwrap_or(command).split('\n').collect();
    let shown = lines.iter().take(MAX_LINES).enumerate();
    let shown = shown.map(|(index, shown)| format!("{} {}", if index == 0 { '$' } else { ' ' }, line(shown)));
    shown.chain(missing(lines.len(), "line")).collect()
}

/// The line about what is not shown; nothing where all is.
fn missing(count: usize, what: &str) -> Option<String> {
    let rest = count.saturating_sub(MAX_LINES);
    (rest > 0).then(|| format!("… {} more", counted(rest, what)))
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
    fn keys_are_answers() {
        use PermissionAnswer::{Deny, Once, Session};
        let key = |line: &str| typed_key(&asked(), line);
        assert_eq!(key(" Y "), TypedKey::Answer(Once, None));
        assert_eq!(key("s"), TypedKey::Answer(Session, None));
        assert_eq!(key("no"), TypedKey::Answer(Deny, None));
        assert_eq!(key("m"), TypedKey::Words);
        assert_eq!(key("m use a test"), TypedKey::Answer(Deny, Some("use a test".to_owned())));
        for line in ["a", "", "x", "y please", "yy"] {
            assert_eq!(key(line), TypedKey::Unclear, "{line}");
        }
    }

    #[test]
    fn nothing_hides_in_a_question() {
        let lines = question_lines(&asked());
        assert_eq!(lines[1], QuestionLine::Text("   touch \\u{1b}[2Jmade".to_owned()));
        assert_eq!(lines.last(), Some(&QuestionLine::Reason("Asked, since it says so.".to_owned())));
        assert_eq!(question_options(&asked()).iter().map(|(key, _)| *key).collect::<String>(), "ysn");
    }
}
