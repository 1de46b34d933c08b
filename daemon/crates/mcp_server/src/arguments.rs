//! Pure. The arguments of tool calls: what is wrong with them is said by name, for the model that calls.

use std::path::Path;

use agentd_protocol::{command::AbortScope, model::ThinkingLevel, settings::BudgetLimits};
use agentd_translator::rpc::{fields, quoted};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The most messages of a page of a transcript.
pub(crate) const MAX_PAGE_MESSAGES: usize = 200;

/// The messages of a page where the caller does not say.
pub(crate) const DEFAULT_PAGE_MESSAGES: usize = 50;

/// The most sessions of a page.
pub(crate) const MAX_PAGE_SESSIONS: u32 = 100;

/// The sessions of a page where the caller does not say.
const DEFAULT_PAGE_SESSIONS: u32 = 20;

/// The longest text for a model, in bytes. A line to the daemon with it stays below the limit of lines, however it is escaped.
const MAX_TEXT_BYTES: usize = 8 << 20;

/// A call of one of our tools.
#[derive(Debug, PartialEq)]
pub(crate) enum ToolCall {
    /// `prompt`.
    Prompt(Box<PromptArguments>),
    /// `steer`.
    Steer(SteerArguments),
    /// `abort`.
    Abort(AbortArguments),
    /// `read_session`.
    ReadSession(ReadArguments),
    /// `list_sessions`.
    ListSessions(ListArguments),
}

/// The arguments of `prompt`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PromptArguments {
    pub(crate) prompt: String,
    #[serde(default)]
    pub(crate) session_id: Option<String>,
    #[serde(default)]
    pub(crate) cwd: Option<String>,
    #[serde(default)]
    pub(crate) model: Option<String>,
    #[serde(default)]
    pub(crate) thinking_level: Option<ThinkingLevel>,
    #[serde(default)]
    pub(crate) name: Option<String>,
    #[serde(default)]
    pub(crate) budget: Option<BudgetLimits>,
}

/// The arguments of `steer`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SteerArguments {
    pub(crate) session_id: String,
    pub(crate) message: String,
}

/// The arguments of `abort`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct AbortArguments {
    pub(crate) session_id: String,
    #[serde(default)]
    pub(crate) scope: Option<AbortScope>,
}

/// The arguments of `read_session`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ReadArguments {
    pub(crate) session_id: String,
    #[serde(default)]
    pub(crate) cursor: Option<String>,
    #[serde(default)]
    pub(crate) last: Option<usize>,
    #[serde(default)]
    pub(crate) limit: Option<usize>,
}

/// The arguments of `list_sessions`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ListArguments {
    #[serde(default)]
    pub(crate) cwd: Option<String>,
    #[serde(default)]
    pub(crate) search: Option<String>,
    #[serde(default)]
    pub(crate) limit: Option<u32>,
    #[serde(default)]
    pub(crate) cursor: Option<String>,
}

impl ListArguments {
    /// The size of the page.
    pub(crate) fn page(&self) -> u32 {
        self.limit.unwrap_or(DEFAULT_PAGE_SESSIONS)
    }
}

/// Reads a call; `None` where there is no such tool.
///
/// # Errors
/// Names the argument that cannot be used, and says why.
pub(crate) fn read(tool: &str, arguments: Option<&RawValue>) -> Option<Result<ToolCall, String>> {
    let given = arguments.filter(|arguments| arguments.get() != "null");
    let call = match tool {
        "prompt" => fields(given).and_then(prompt),
        "steer" => fields(given).and_then(|call: SteerArguments| {
            session(&call.session_id)?;
            not_blank("message", &call.message)?;
            Ok(ToolCall::Steer(call))
        }),
        "abort" => fields(given).and_then(|call: AbortArguments| {
            session(&call.session_id)?;
            Ok(ToolCall::Abort(call))
        }),
        "read_session" => fields(given).and_then(|call: ReadArguments| {
            session(&call.session_id)?;
            if call.cursor.is_some() && call.last.is_some() {
                return Err("cursor, last: only one of them can be given".to_owned());
            }
            in_range("last", call.last, MAX_PAGE_MESSAGES)?;
            in_range("limit", call.limit, MAX_PAGE_MESSAGES)?;
            Ok(ToolCall::ReadSession(call))
        }),
        "list_sessions" => fields(given).and_then(|call: ListArguments| {
            if let Some(cwd) = &call.cwd {
                absolute(cwd)?;
            }
            in_range("limit", call.limit, MAX_PAGE_SESSIONS)?;
            Ok(ToolCall::ListSessions(call))
        }),
        _ => return None,
    };
    Some(call.map_err(|text| format!("Invalid arguments: {text}")))
}

fn prompt(call: PromptArguments) -> Result<ToolCall, String> {
    not_blank("prompt", &call.prompt)?;
    if let Some(id) = &call.session_id {
        session(id)?;
    }
    if let Some(cwd) = &call.cwd {
        absolute(cwd)?;
    }
    for (name, text) in [("model", &call.model), ("name", &call.name)] {
        if let Some(text) = text {
            not_blank(name, text)?;
        }
    }
    Ok(ToolCall::Prompt(Box::new(call)))
}

fn not_blank(name: &str, text: &str) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err(format!("{name}: it is empty"));
    }
    if text.len() > MAX_TEXT_BYTES {
        return Err(format!("{name}: it is longer than {} MiB", MAX_TEXT_BYTES >> 20));
    }
    Ok(())
}

/// A beginning of an id, or a path, would mean a session in commands of ours, too. A flag is none.
fn session(id: &str) -> Result<(), String> {
    not_blank("sessionId", id)?;
    if id.contains(['/', '\\']) || id.starts_with('-') {
        return Err(format!("sessionId: there is no session \"{}\"", quoted(id)));
    }
    Ok(())
}

fn absolute(cwd: &str) -> Result<(), String> {
    if Path::new(cwd).is_absolute() {
        return Ok(());
    }
    Err(format!("cwd: expected the absolute path of a folder, got \"{}\"", quoted(cwd)))
}

fn in_range<N>(name: &str, given: Option<N>, most: N) -> Result<(), String>
where
    N: Copy + PartialOrd + From<u8> + std::fmt::Display,
{
    match given {
        Some(number) if number < N::from(1) || number > most => {
            Err(format!("{name}: expected 1 to {most}, got {number}"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn refusal(tool: &str, arguments: Value) -> String {
        let raw = RawValue::from_string(arguments.to_string()).unwrap();
        read(tool, Some(&raw)).expect("a tool").expect_err("a refusal")
    }

    #[test]
    fn what_is_wrong_is_said_by_name() {
        for (tool, arguments, expected) in [
            ("prompt", json!({}), "missing field `prompt`"),
            ("prompt", json!({"prompt": 5}), "prompt: invalid type: integer `5`, expected a string"),
            ("prompt", json!({"prompt": " \n"}), "prompt: it is empty"),
            (
                "prompt",
                json!({"prompt": "a", "cwd": "src"}),
                "cwd: expected the absolute path of a folder, got \"src\"",
            ),
            (
                "prompt",
                json!({"prompt": "a", "sessionId": "../x"}),
                "sessionId: there is no session \"../x\"",
            ),
            (
                "prompt",
                json!({"prompt": "a", "sessionId": "--fork"}),
                "sessionId: there is no session \"--fork\"",
            ),
            ("prompt", json!({"prompt": "a", "sessionId": ""}), "sessionId: it is empty"),
            ("prompt", json!({"prompt": "a", "model": ""}), "model: it is empty"),
            ("steer", json!({"sessionId": "s"}), "missing field `message`"),
            ("read_session", json!({"sessionId": "s", "limit": 0}), "limit: expected 1 to 200, got 0"),
            ("read_session", json!({"sessionId": "s", "last": 201}), "last: expected 1 to 200, got 201"),
            (
                "read_session",
                json!({"sessionId": "s", "last": 2, "cursor": "x"}),
                "cursor, last: only one of them can be given",
            ),
            ("list_sessions", json!({"limit": 101}), "limit: expected 1 to 100, got 101"),
            ("list_sessions", json!({"cwd": "."}), "cwd: expected the absolute path of a folder, got \".\""),
        ] {
            assert_eq!(
                refusal(tool, arguments.clone()),
                format!("Invalid arguments: {expected}"),
                "{arguments}"
            );
        }
        let long = refusal("prompt", json!({"prompt": "a".repeat(MAX_TEXT_BYTES + 1)}));
        assert_eq!(long, "Invalid arguments: prompt: it is longer than 8 MiB");
        let unknown = refusal("prompt", json!({"prompt": "a", "session": "s"}));
        assert!(unknown.contains("unknown field `session`"), "{unknown}");
        let scope = refusal("abort", json!({"sessionId": "s", "scope": "everything"}));
        assert!(scope.contains("scope: unknown variant `everything`"), "{scope}");
        let budget = refusal("prompt", json!({"prompt": "a", "budget": {"turns": "x"}}));
        assert!(budget.contains("budget.turns"), "{budget}");
    }

    #[test]
    fn absent_and_null_are_alike() {
        let raw = RawValue::from_string(r#"{"prompt":"a","sessionId":null,"cwd":null,"budget":null}"#.into())
            .unwrap();
        let Some(Ok(ToolCall::Prompt(call))) = read("prompt", Some(&raw)) else { panic!("no prompt") };
        assert_eq!((call.session_id, call.cwd, call.budget), (None, None, None));
        let null = RawValue::from_string("null".into()).unwrap();
        for none in [None, Some(&*null)] {
            assert!(matches!(read("list_sessions", none), Some(Ok(ToolCall::ListSessions(_)))));
        }
        assert_eq!(read("no_such_tool", None), None);
    }
}
