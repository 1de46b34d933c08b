//! The status line of a prompt: what it waits for, for how long, with how many tokens so far. Pure.

use std::time::{Duration, Instant};

use agentd_protocol::event::{AssistantMessageEvent, Event};

use crate::render::{cut, one_line, short_count, subject};

/// What is going on.
#[derive(Debug, Clone, PartialEq, Eq)]
enum RunPhase {
    /// The model was asked and has not begun.
    Asked,
    /// It thinks.
    Thinking,
    /// Its text is on the screen, or the answer has ended.
    Answered,
    /// It writes the arguments of a call.
    Calling { bytes: usize },
    /// The older part of the conversation is summarised.
    Compacting,
    /// It is asked again after a pause.
    Pausing,
}

/// A tool call that runs.
#[derive(Debug)]
struct RunningCall {
    id: String,
    subject: String,
    /// The last line of its output.
    last_line: String,
    begun: Instant,
}

/// The status of a run, from its events.
#[derive(Debug)]
pub(super) struct RunStatus {
    /// The model's id.
    model: String,
    phase: RunPhase,
    /// Since when.
    since: Instant,
    calls: Vec<RunningCall>,
}

impl RunStatus {
    /// Of a prompt that is sent now.
    pub(super) fn begin(model: &str, now: Instant) -> Self {
        Self { model: one_line(model), phase: RunPhase::Asked, since: now, calls: Vec::new() }
    }

    /// Takes an event; whether the line says something else now than a moment ago, but for times and counts.
    pub(super) fn take(&mut self, event: &Event, now: Instant) -> bool {
        let phase = match event {
            Event::MessageUpdate(update) => match &update.assistant_message_event {
                AssistantMessageEvent::ThinkingStart { .. } | AssistantMessageEvent::ThinkingDelta { .. } => {
                    RunPhase::Thinking
                }
                AssistantMessageEvent::TextStart { .. } | AssistantMessageEvent::TextDelta { .. } => {
                    RunPhase::Answered
                }
                AssistantMessageEvent::ToolcallStart { .. } => RunPhase::Calling { bytes: 0 },
                AssistantMessageEvent::ToolcallDelta { delta, .. } => {
                    if let RunPhase::Calling { bytes } = &mut self.phase {
                        *bytes += delta.len();
                        return false;
                    }
                    RunPhase::Calling { bytes: delta.len() }
                }
                _ => return false,
            },
            // Calls follow, or nothing.
            Event::MessageEnd(_) => RunPhase::Answered,
            Event::TurnStart(_) | Event::CompactionEnd(_) => RunPhase::Asked,
            Event::CompactionStart(_) => RunPhase::Compacting,
            Event::AutoRetryStart(_) => RunPhase::Pausing,
            Event::ToolExecutionStart(call) => {
                let id = call.tool_call_id.clone();
                self.calls.push(RunningCall {
                    id,
                    subject: subject(call),
                    last_line: String::new(),
                    begun: now,
                });
                return true;
            }
            Event::ToolExecutionUpdate(update) => {
                let call = self.calls.iter_mut().find(|call| call.id == update.tool_call_id);
                let texts = update.partial_result.content.iter().rev();
                let mut lines = texts.filter_map(|block| block.as_text()).flat_map(|text| text.lines().rev());
                let last = lines.find(|line| !line.trim().is_empty());
                if let (Some(call), Some(last)) = (call, last) {
                    call.last_line = one_line(last.trim()).chars().take(MOST_CHARS).collect();
                }
                return false;
            }
            Event::ToolExecutionEnd(call) => {
                self.calls.retain(|running| running.id != call.tool_call_id);
                self.since = now;
                return true;
            }
            _ => return false,
        };
        let changed = phase != self.phase;
        if changed {
            (self.phase, self.since) = (phase, now);
        }
        changed
    }

    /// The line; empty while the answer itself shows what goes on.
    pub(super) fn line(&self, tokens: u64, now: Instant) -> String {
        let tokens = if tokens > 0 { format!(" · {} tokens", short_count(tokens)) } else { String::new() };
        if let Some(call) = self.calls.last() {
            let others = match self.calls.len() - 1 {
                0 => String::new(),
                count => format!(" (and {count} more)"),
            };
            let last =
                if call.last_line.is_empty() { String::new() } else { format!(" · {}", call.last_line) };
            // The time and the last line are seen on a screen of 80 columns, too.
            return format!(
                "{}{others} · {}{last}",
                cut(&call.subject, SUBJECT_WIDTH),
                seconds(now - call.begun)
            );
        }
        let what = match &self.phase {
            RunPhase::Answered => return String::new(),
            RunPhase::Asked => "waiting for the answer".to_owned(),
            RunPhase::Thinking => "thinking".to_owned(),
            RunPhase::Calling { bytes } => format!("writing a call, {} bytes", short_count(*bytes as u64)),
            RunPhase::Compacting => "summarising the conversation".to_owned(),
            RunPhase::Pausing => "pausing before it is asked again".to_owned(),
        };
        format!("{} · {what} · {}{tokens}", self.model, seconds(now - self.since))
    }
}

/// The columns for the subject of a call.
const SUBJECT_WIDTH: usize = 40;

/// The longest last line of a call's output that is kept, in characters.
const MOST_CHARS: usize = 200;

fn seconds(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn event(value: &Value) -> Event {
        Event::parse(value["type"].as_str().unwrap(), &value.to_string()).unwrap().unwrap()
    }

    fn update(kind: &str) -> Event {
        event(&json!({"type": "message_update", "usage": {},
            "assistantMessageEvent": {"type": kind, "contentIndex": 0, "delta": "four"}}))
    }

    #[test]
    fn the_line_follows_the_answer() {
        let begun = Instant::now();
        let after = |seconds| begun + Duration::from_secs(seconds);
        let mut status = RunStatus::begin("m\u{1b}1", begun);
        assert_eq!(status.line(0, after(3)), "m 1 · waiting for the answer · 3 s");
        assert!(status.take(&update("thinking_delta"), after(5)));
        assert!(!status.take(&update("thinking_delta"), after(6)));
        assert_eq!(status.line(12_345, after(70)), "m 1 · thinking · 1 min 5 s · 12.3k tokens");
        assert!(status.take(&update("text_delta"), after(7)));
        assert_eq!(status.line(1, after(8)), "");
        assert!(status.take(&update("toolcall_delta"), after(9)));
        assert!(!status.take(&update("toolcall_delta"), after(9)));
        assert_eq!(status.line(0, after(9)), "m 1 · writing a call, 8 bytes · 0 s");
    }

    #[test]
    fn the_line_shows_the_last_call_and_its_output() {
        let now = Instant::now();
        let mut status = RunStatus::begin("m", now);
        let call = |kind: &str, id: &str, rest: Value| {
            let mut value =
                json!({"type": kind, "toolCallId": id, "toolName": "bash", "args": {"command": "make"}});
            value.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
            event(&value)
        };
        assert!(status.take(&call("tool_execution_start", "1", json!({})), now));
        assert!(status.take(&call("tool_execution_start", "2", json!({})), now));
        assert_eq!(status.line(5, now), "bash make (and 1 more) · 0 s");
        let output =
            json!({"partialResult": {"content": [{"type": "text", "text": "a\nlast\u{1b}[2J\n\n"}]}});
        assert!(!status.take(&call("tool_execution_update", "2", output), now));
        assert_eq!(status.line(5, now), "bash make (and 1 more) · 0 s · last [2J");
        let end = json!({"result": {"content": []}, "isError": false});
        status.take(&call("tool_execution_end", "2", end.clone()), now);
        assert_eq!(status.line(5, now), "bash make · 0 s");
        status.take(&call("tool_execution_end", "1", end), now);
        assert_eq!(status.line(0, now), "m · waiting for the answer · 0 s");
    }

    #[test]
    fn after_an_answer_nothing_is_waited_for() {
        let now = Instant::now();
        let mut status = RunStatus::begin("m", now);
        let answer = json!({"role": "assistant", "content": [], "stopReason": "stop"});
        assert!(status.take(&event(&json!({"type": "message_end", "message": answer})), now));
        assert_eq!(status.line(0, now), "");
        assert!(status.take(&event(&json!({"type": "turn_start"})), now));
        assert_eq!(status.line(0, now), "m · waiting for the answer · 0 s");
    }
}
