//! What a client knows that read every event up to one: the measure of a snapshot.

use agentd_ai::partial_json::best_reading;
use agentd_protocol::daemon::InFlight;
use serde_json::{Value, json};

/// The session as its events tell it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Folded {
    /// The finished messages of the context.
    pub(crate) messages: Vec<Value>,
    /// The content of the answer that streams.
    pub(crate) answer: Option<Vec<Value>>,
    /// The calls that run: id, tool, arguments, last partial result.
    pub(crate) tools: Vec<Value>,
    /// The arguments of open calls in the answer, as text, by place.
    open: Vec<(usize, String)>,
}

impl Folded {
    pub(crate) fn of(events: &[Value]) -> Self {
        let mut folded = Self::default();
        events.iter().for_each(|event| folded.add(event));
        folded
    }

    /// What a snapshot says; it has no messages.
    pub(crate) fn joined(in_flight: Option<&InFlight>) -> Self {
        let shown = serde_json::to_value(in_flight).unwrap();
        let answer = shown["message"]["content"].as_array().cloned();
        Self {
            messages: Vec::new(),
            answer,
            tools: shown["tools"].as_array().cloned().unwrap_or_default(),
            open: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, event: &Value) {
        match event["type"].as_str().unwrap() {
            "message_start" if event["message"]["stopReason"] == "pending" => self.answer = Some(Vec::new()),
            "message_end" => {
                if event["message"]["role"] == "assistant" {
                    self.answer = None;
                    self.open.clear();
                }
                self.messages.push(event["message"].clone());
            }
            "message_update" => self.update(&event["assistantMessageEvent"]),
            "tool_execution_start" => {
                self.tools.push(json!({
                    "toolCallId": event["toolCallId"], "toolName": event["toolName"], "args": event["args"],
                }));
            }
            "tool_execution_update" => {
                let at = self.tool(event);
                self.tools[at]["partialResult"] = event["partialResult"].clone();
            }
            "tool_execution_end" => {
                let at = self.tool(event);
                self.tools.remove(at);
            }
            _ => {}
        }
    }

    fn tool(&self, event: &Value) -> usize {
        self.tools
            .iter()
            .position(|tool| tool["toolCallId"] == event["toolCallId"])
            .expect("a call that began")
    }

    fn update(&mut self, event: &Value) {
        let at = usize::try_from(event["contentIndex"].as_u64().unwrap()).unwrap();
        let answer = self.answer.as_mut().expect("an answer that streams");
        let text = || event["delta"].as_str().unwrap();
        let append = |block: &mut Value, key: &str| {
            block[key] = format!("{}{}", block[key].as_str().unwrap(), text()).into();
        };
        match event["type"].as_str().unwrap() {
            "text_start" => answer.push(json!({"type": "text", "text": ""})),
            "thinking_start" => answer.push(json!({"type": "thinking", "thinking": ""})),
            "toolcall_start" => {
                self.open.push((at, String::new()));
                answer.push(json!({
                    "type": "toolCall", "id": event["id"], "name": event["toolName"], "arguments": {},
                }));
            }
            "text_delta" => append(&mut answer[at], "text"),
            "thinking_delta" => append(&mut answer[at], "thinking"),
            "toolcall_delta" => {
                let (_, arguments) = self.open.iter_mut().find(|(place, _)| *place == at).unwrap();
                arguments.push_str(text());
                answer[at]["arguments"] = Value::Object(best_reading(arguments));
            }
            "toolcall_end" => answer[at] = event["toolCall"].clone(),
            "text_end" => answer[at]["text"] = event["content"].clone(),
            "thinking_end" => answer[at]["thinking"] = event["content"].clone(),
            other => panic!("an unknown update: {other}"),
        }
    }
}
