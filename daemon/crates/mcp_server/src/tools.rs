//! Pure. Our tools as clients see them: names, descriptions for the model that calls, schemas of arguments and results.

use std::sync::LazyLock;

use agentd_protocol::model::ThinkingLevel;
use serde_json::{Value, json};

use crate::arguments::{DEFAULT_PAGE_MESSAGES, MAX_PAGE_MESSAGES, MAX_PAGE_SESSIONS};

/// What clients tell their models of this server.
pub(crate) const INSTRUCTIONS: &str = "agentd is a coding agent of its own: it works in a folder of this machine, with its own model and \
     its own tools (reading, searching and changing files, shell commands). Hand it a task by `prompt`; the result has its \
     answer and a sessionId, with which another `prompt` goes on in the same conversation. Prompts of different sessions run \
     side by side. While a session works, `steer` tells it something, `abort` stops it, and `read_session` shows what it does.";

/// All tools, as `tools/list` has them.
pub(crate) static TOOLS: LazyLock<Value> =
    LazyLock::new(|| json!([prompt(), steer(), abort(), read_session(), list_sessions()]));

/// A text that must not be empty.
fn text(description: &str) -> Value {
    json!({"type": "string", "minLength": 1, "description": description})
}

fn session_id() -> Value {
    text("The session's id, as `prompt` and `list_sessions` give it.")
}

fn prompt() -> Value {
    let levels = ThinkingLevel::ALL.map(ThinkingLevel::as_str);
    let limit = |description: &str| json!({"type": "integer", "minimum": 0, "description": description});
    json!({
        "name": "prompt",
        "title": "Have a coding agent do a task",
        "description": "Gives a task to a coding agent that works on files and runs commands in a folder, and waits until it is done. Say in the \
             prompt all that it has to know: it sees nothing of this conversation. Without `sessionId` a new session begins; with it, \
             the session goes on with all that was said before. A session works on one prompt at a time: while it does, use `steer`.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "prompt": text("The task, or the next message of the conversation."),
                "sessionId": text("Go on in this session. Without it, a new session begins."),
                "cwd": text("The folder to work in: an absolute path. Default: the folder that this server was started in; for a session that exists, its own."),
                "model": text("The model: an id, a part of an id or name, or provider/id. Default: what the user has configured."),
                "thinkingLevel": {"type": "string", "enum": levels, "description": "How much the model reasons."},
                "name": text("A name for the session, by which people find it."),
                "budget": {
                    "type": "object",
                    "description": "Limits of this prompt's work, beside those of the user: of each the lower one counts. Work that reaches one ends with an error.",
                    "properties": {
                        "costUsd": {"type": "number", "minimum": 0, "description": "US dollars for model calls."},
                        "tokens": limit("Tokens of model calls."),
                        "turns": limit("Answers of the model."),
                        "toolCalls": limit("Tool calls that are started."),
                        "seconds": limit("Seconds of work."),
                    },
                    "additionalProperties": false,
                },
            },
            "required": ["prompt"],
            "additionalProperties": false,
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "sessionId": {"type": "string", "description": "The session, for the next prompt."},
                "answer": {"type": "string", "description": "The text of the last answer."},
                "stopReason": {
                    "type": "string",
                    "enum": ["stop", "length", "aborted", "error"],
                    "description": "Why the work ended: the model was done; its answer was cut at its limit of tokens; it was stopped; it failed.",
                },
                "error": {"type": "string", "description": "What failed."},
                "code": {"type": "string", "description": "The kind of failure, such as model_failed, model_refused or limit_reached."},
                "model": {"type": "string", "description": "The model of the last answer, as provider/id."},
                "turns": {"type": "integer", "description": "Answers of the model in this prompt's work."},
                "toolCalls": {"type": "integer", "description": "Tool calls in them."},
                "usage": {
                    "type": "object",
                    "description": "Tokens of this prompt's work.",
                    "properties": {
                        "input": {"type": "integer"},
                        "output": {"type": "integer"},
                        "cacheRead": {"type": "integer"},
                        "cacheWrite": {"type": "integer"},
                        "total": {"type": "integer"},
                    },
                    "required": ["input", "output", "cacheRead", "cacheWrite", "total"],
                },
                "costUsd": {"type": "number", "description": "US dollars of this prompt's work, where the model has prices."},
                "denied": {
                    "type": "array",
                    "description": "Tool calls that the guard rails did not let run.",
                    "items": {
                        "type": "object",
                        "properties": {"tool": {"type": "string"}, "reason": {"type": "string"}},
                        "required": ["tool", "reason"],
                    },
                },
                "warnings": {"type": "array", "items": {"type": "string"}, "description": "What the user should know."},
            },
            "required": ["sessionId", "answer", "stopReason", "turns", "toolCalls", "usage", "costUsd"],
        },
        "annotations": {
            "title": "Have a coding agent do a task",
            "readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true,
        },
    })
}

fn steer() -> Value {
    json!({
        "name": "steer",
        "title": "Tell a working session something",
        "description": "Sends a message to a session that works on a prompt. The model gets it before its next answer, after the tool calls that run now.",
        "inputSchema": {
            "type": "object",
            "properties": {"sessionId": session_id(), "message": text("What to tell it.")},
            "required": ["sessionId", "message"],
            "additionalProperties": false,
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "sessionId": {"type": "string"},
                "queued": {"type": "boolean", "description": "Whether the message waits for the model's next answer."},
            },
            "required": ["sessionId", "queued"],
        },
        "annotations": {
            "title": "Tell a working session something",
            "readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true,
        },
    })
}

fn abort() -> Value {
    let work = json!({
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"kind": {"type": "string"}, "id": {"type": "string"}, "name": {"type": "string"}},
            "required": ["kind"],
        },
    });
    json!({
        "name": "abort",
        "title": "Stop a session's work",
        "description": "Stops what a session does. The `prompt` that it works on is answered with what there is. The session can go on afterwards.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "sessionId": session_id(),
                "scope": {
                    "type": "string",
                    "enum": ["turn", "tools", "all"],
                    "description": "turn (default): the model and its tool calls; tools: the running tool calls alone, and the model goes on; all: background processes, too.",
                },
            },
            "required": ["sessionId"],
            "additionalProperties": false,
        },
        "outputSchema": {
            "type": "object",
            "properties": {"sessionId": {"type": "string"}, "ended": work, "survives": work},
            "required": ["sessionId", "ended", "survives"],
        },
        "annotations": {
            "title": "Stop a session's work",
            "readOnlyHint": false, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false,
        },
    })
}

fn read_session() -> Value {
    json!({
        "name": "read_session",
        "title": "Read a session's transcript",
        "description": "Shows the messages of a session, oldest first, in pages: prompts, answers with their tool calls, results. Long texts are cut. `last` shows the end, \
             also while the session works.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "sessionId": session_id(),
                "cursor": text("The nextCursor of the page before. Without it and `last`, the page is the first."),
                "last": {"type": "integer", "minimum": 1, "maximum": MAX_PAGE_MESSAGES, "description": "Begin with the last so many messages."},
                "limit": {
                    "type": "integer", "minimum": 1, "maximum": MAX_PAGE_MESSAGES, "default": DEFAULT_PAGE_MESSAGES,
                    "description": "The most messages of the page.",
                },
            },
            "required": ["sessionId"],
            "additionalProperties": false,
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "sessionId": {"type": "string"},
                "total": {"type": "integer", "description": "Messages of the whole transcript."},
                "messages": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "index": {"type": "integer", "description": "The place in the transcript, from 0."},
                            "role": {"type": "string", "enum": ["user", "assistant", "tool", "bash", "summary", "note"]},
                            "text": {"type": "string"},
                            "tool": {"type": "string", "description": "The tool whose result it is."},
                            "isError": {"type": "boolean"},
                            "stopReason": {"type": "string"},
                            "error": {"type": "string"},
                            "toolCalls": {
                                "type": "array",
                                "items": {
                                    "type": "object",
                                    "properties": {"tool": {"type": "string"}, "arguments": {"type": "string"}},
                                    "required": ["tool", "arguments"],
                                },
                            },
                        },
                        "required": ["index", "role", "text"],
                    },
                },
                "nextCursor": {"type": "string", "description": "For the next page; absent on the last."},
            },
            "required": ["sessionId", "total", "messages"],
        },
        "annotations": {
            "title": "Read a session's transcript",
            "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false,
        },
    })
}

fn list_sessions() -> Value {
    json!({
        "name": "list_sessions",
        "title": "List sessions",
        "description": "Lists the user's sessions with agentd, newest first, in pages.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "cwd": text("Only sessions of this folder: an absolute path."),
                "search": text("Only sessions with this text in their id, name, folder or messages."),
                "limit": {"type": "integer", "minimum": 1, "maximum": MAX_PAGE_SESSIONS, "description": "The most sessions of the page."},
                "cursor": text("The nextCursor of the page before."),
            },
            "additionalProperties": false,
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "sessions": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "sessionId": {"type": "string"},
                            "cwd": {"type": "string"},
                            "name": {"type": "string"},
                            "firstMessage": {"type": "string"},
                            "modified": {"type": "string", "description": "ISO 8601 in UTC."},
                            "messages": {"type": "integer"},
                            "model": {"type": "string"},
                            "costUsd": {"type": "number"},
                            "isWorking": {"type": "boolean"},
                        },
                        "required": ["sessionId", "cwd", "firstMessage", "modified", "messages", "costUsd", "isWorking"],
                    },
                },
                "nextCursor": {"type": "string", "description": "For the next page; absent on the last."},
            },
            "required": ["sessions"],
        },
        "annotations": {
            "title": "List sessions",
            "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::read;

    #[test]
    fn every_tool_is_known_and_has_schemas_that_are_schemas() {
        let tools = TOOLS.as_array().unwrap();
        assert_eq!(tools.len(), 5);
        for tool in tools {
            let name = tool["name"].as_str().unwrap();
            assert!(read(name, None).is_some(), "{name} is not read");
            for schema in ["inputSchema", "outputSchema"] {
                assert!(jsonschema::meta::is_valid(&tool[schema]), "{name} {schema}");
                assert_eq!(tool[schema]["type"], "object");
            }
            assert!(tool["annotations"]["readOnlyHint"].is_boolean() && tool["title"].is_string());
        }
    }

    /// The schema and the reader agree about names: every argument of the schema is read.
    #[test]
    fn every_argument_is_read() {
        for tool in TOOLS.as_array().unwrap() {
            let name = tool["name"].as_str().unwrap();
            for argument in tool["inputSchema"]["properties"].as_object().unwrap().keys() {
                let given = json!({argument: {"no such": "value"}}).to_string();
                let raw = serde_json::value::RawValue::from_string(given).unwrap();
                let refusal = read(name, Some(&raw)).unwrap().unwrap_err();
                assert!(refusal.contains(argument.as_str()), "{name} {argument}: {refusal}");
                assert!(!refusal.contains(&format!("unknown field `{argument}`")), "{name}: {refusal}");
            }
        }
    }
}
