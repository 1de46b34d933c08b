//! What a hook is told, on its standard input.

use std::path::PathBuf;

use agentd_protocol::{message::ContentBlock, tool::ToolResult};
use serde_json::{Map, Value, json};

use crate::{
    arguments::to_claude,
    dialect::{Dialect, names},
    event::HookEvent,
};

/// What every hook of a session is told.
#[derive(Debug, Clone)]
pub struct HookFacts {
    /// The id of the session.
    pub session_id: String,
    /// Its file; `None` where it has none.
    pub transcript_path: Option<PathBuf>,
    /// Its working directory, where hooks run.
    pub cwd: PathBuf,
}

/// A tool call of the model.
#[derive(Debug, Clone, Copy)]
pub struct ToolCallFacts<'a> {
    /// The tool.
    pub tool: &'a str,
    /// The id of the call.
    pub call_id: &'a str,
    /// The arguments, as the tool takes them.
    pub arguments: &'a Value,
}

/// What has happened, or is about to.
#[derive(Debug, Clone, Copy)]
pub enum HookInput<'a> {
    /// A call is about to start.
    PreToolUse(ToolCallFacts<'a>),
    /// A call has succeeded.
    PostToolUse(ToolCallFacts<'a>, &'a ToolResult),
    /// The user has sent a message.
    UserPromptSubmit {
        /// Its text, as it was sent.
        prompt: &'a str,
    },
    /// A session was opened.
    SessionStart {
        /// How: `startup`, `resume`, or `compact` after a compaction.
        source: &'a str,
    },
    /// The model is done.
    Stop {
        /// Whether it went on because of such a hook before.
        is_continuing: bool,
        /// Whether it is a subagent's: then the event is `SubagentStop`.
        of_subagent: bool,
    },
    /// The context is about to be compacted.
    PreCompact {
        /// Whose wish: `manual` or `auto`.
        trigger: &'a str,
        /// The focus of the summary, as the user says.
        instructions: Option<&'a str>,
    },
    /// The user is asked something.
    Notification {
        /// What about: `permission_prompt`, or `elicitation_dialog` for any other question.
        kind: &'a str,
        /// The question.
        message: &'a str,
    },
    /// The session was closed.
    SessionEnd {
        /// Why: `clear` or `other`.
        reason: &'a str,
    },
}

impl HookInput<'_> {
    /// The event.
    #[must_use]
    pub const fn event(&self) -> HookEvent {
        match self {
            Self::PreToolUse(_) => HookEvent::PreToolUse,
            Self::PostToolUse(..) => HookEvent::PostToolUse,
            Self::UserPromptSubmit { .. } => HookEvent::UserPromptSubmit,
            Self::SessionStart { .. } => HookEvent::SessionStart,
            Self::Stop { of_subagent: true, .. } => HookEvent::SubagentStop,
            Self::Stop { .. } => HookEvent::Stop,
            Self::PreCompact { .. } => HookEvent::PreCompact,
            Self::Notification { .. } => HookEvent::Notification,
            Self::SessionEnd { .. } => HookEvent::SessionEnd,
        }
    }

    /// What matchers are compared with.
    pub(crate) fn about(&self) -> Vec<&str> {
        match self {
            Self::PreToolUse(call) | Self::PostToolUse(call, _) => names(call.tool),
            Self::SessionStart { source } => vec![source],
            Self::PreCompact { trigger, .. } => vec![trigger],
            Self::Notification { kind, .. } => vec![kind],
            Self::SessionEnd { reason } => vec![reason],
            Self::UserPromptSubmit { .. } | Self::Stop { .. } => Vec::new(),
        }
    }

    /// The tool that it is about.
    pub(crate) const fn tool(&self) -> Option<&str> {
        match self {
            Self::PreToolUse(call) | Self::PostToolUse(call, _) => Some(call.tool),
            _ => None,
        }
    }

    /// The object that a hook gets.
    pub(crate) fn json(&self, facts: &HookFacts, dialect: Dialect) -> Value {
        let mut value = json!({
            "session_id": facts.session_id,
            "transcript_path": facts.transcript_path,
            "cwd": facts.cwd,
            "hook_event_name": self.event().name(),
        });
        let own = match self {
            Self::PreToolUse(call) => call.json(facts, dialect),
            Self::PostToolUse(call, result) => {
                let mut own = call.json(facts, dialect);
                let response = response(&own, result, dialect);
                own.insert("tool_response".to_owned(), response);
                own
            }
            Self::UserPromptSubmit { prompt } => object(json!({ "prompt": prompt })),
            Self::SessionStart { source } => object(json!({ "source": source })),
            Self::Stop { is_continuing, .. } => object(json!({ "stop_hook_active": is_continuing })),
            Self::PreCompact { trigger, instructions } => {
                object(json!({ "trigger": trigger, "custom_instructions": instructions.unwrap_or_default() }))
            }
            Self::Notification { kind, message } => {
                object(json!({ "message": message, "notification_type": kind }))
            }
            Self::SessionEnd { reason } => object(json!({ "reason": reason })),
        };
        if let Value::Object(members) = &mut value {
            members.extend(own);
        }
        value
    }
}

impl ToolCallFacts<'_> {
    fn json(&self, facts: &HookFacts, dialect: Dialect) -> Map<String, Value> {
        let (name, arguments) = match dialect {
            Dialect::Own => (self.tool.to_owned(), self.arguments.clone()),
            Dialect::Claude => to_claude(self.tool, self.arguments, &facts.cwd),
        };
        object(json!({ "tool_name": name, "tool_input": arguments, "tool_use_id": self.call_id }))
    }
}

/// The result of a call. For hooks of Claude Code it also has the members that its own tools have and scripts look at.
fn response(call: &Map<String, Value>, result: &ToolResult, dialect: Dialect) -> Value {
    let mut response = object(json!({ "content": result.content }));
    if let Some(details) = &result.details {
        response.insert("details".to_owned(), details.clone());
    }
    if dialect == Dialect::Claude {
        response.insert("success".to_owned(), true.into());
        let input = &call["tool_input"];
        if let Some(path) = input.get("file_path") {
            response.insert("filePath".to_owned(), path.clone());
        }
        if call["tool_name"] == "Bash" {
            let texts: Vec<&str> = result.content.iter().filter_map(ContentBlock::as_text).collect();
            response.insert("stdout".to_owned(), texts.join("\n").into());
            response.insert("stderr".to_owned(), "".into());
            response.insert("interrupted".to_owned(), false.into());
        }
    }
    Value::Object(response)
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> HookFacts {
        HookFacts { session_id: "s".into(), transcript_path: Some("/t.jsonl".into()), cwd: "/w".into() }
    }

    #[test]
    fn a_call_is_told_in_the_spelling_of_the_hook() {
        let arguments = json!({"path": "a", "content": "x"});
        let call = ToolCallFacts { tool: "write", call_id: "1", arguments: &arguments };
        let input = HookInput::PreToolUse(call);
        assert_eq!(
            input.json(&facts(), Dialect::Own),
            json!({
                "session_id": "s", "transcript_path": "/t.jsonl", "cwd": "/w", "hook_event_name": "PreToolUse",
                "tool_name": "write", "tool_input": {"path": "a", "content": "x"}, "tool_use_id": "1",
            })
        );
        let theirs = input.json(&facts(), Dialect::Claude);
        assert_eq!(theirs["tool_name"], "Write");
        assert_eq!(theirs["tool_input"], json!({"file_path": "/w/a", "content": "x"}));
        let result = ToolResult::text("done");
        let after = HookInput::PostToolUse(call, &result).json(&facts(), Dialect::Claude);
        assert_eq!(
            after["tool_response"],
            json!({"content": [{"type": "text", "text": "done"}], "success": true, "filePath": "/w/a"})
        );
        assert_eq!(HookInput::PostToolUse(call, &result).event(), HookEvent::PostToolUse);
    }

    #[test]
    fn every_event_says_what_matchers_look_at() {
        let about = |input: HookInput<'_>, expected: &[&str]| assert_eq!(input.about(), expected);
        about(HookInput::SessionStart { source: "startup" }, &["startup"]);
        about(HookInput::PreCompact { trigger: "auto", instructions: None }, &["auto"]);
        about(HookInput::Notification { kind: "permission_prompt", message: "" }, &["permission_prompt"]);
        about(HookInput::SessionEnd { reason: "other" }, &["other"]);
        about(HookInput::Stop { is_continuing: true, of_subagent: false }, &[]);
        let stop = HookInput::Stop { is_continuing: true, of_subagent: false }.json(&facts(), Dialect::Own);
        assert_eq!(stop["stop_hook_active"], true);
    }
}
