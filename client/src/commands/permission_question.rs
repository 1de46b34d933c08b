//! A question about a call on a terminal, line by line.

use agentd_client_text::{QuestionLine, question_lines, question_options, time_left};
use agentd_protocol::{permissions::PermissionQuestion, ui::UiRequestResolved};

pub(super) use agentd_client_text::{TypedKey, typed_key as key};

use crate::render::{one_line, paint_diff};

/// The question as text.
pub(super) fn shown(question: &PermissionQuestion, colour: bool) -> String {
    let mut text = format!("? Allow this? ({}, {})\n", one_line(&question.tool), time_left(question));
    for line in question_lines(question) {
        let line = match line {
            QuestionLine::Text(line) | QuestionLine::Reason(line) => line,
            QuestionLine::Diff(line) => paint_diff(&line, colour),
        };
        text.push_str(&format!("  {line}\n"));
    }
    text + &keys(question)
}

/// The keys that answer.
pub(super) fn keys(question: &PermissionQuestion) -> String {
    let options = question_options(question).into_iter().map(|(key, text)| format!("  {key}  {text}\n"));
    options.collect::<String>() + "  m  No, with words to the model: m WORDS\n  Type a key and Enter.\n"
}

/// The instructions for the words to the model.
pub(super) const HOW_TO_SAY: &str = "  Type what the model should know; an empty line goes back.\n";

/// How a question ended that was not answered here.
pub(super) fn ended(resolved: &UiRequestResolved) -> String {
    format!("  {}\n", agentd_client_text::question_ended(resolved))
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
}
