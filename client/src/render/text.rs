//! A run for people: the answer on stdout, what the tools do on stderr.

use std::{
    collections::HashMap,
    env,
    io::{self, IsTerminal},
    time::Duration,
};

use agentd_protocol::event::{
    AssistantMessageEvent, AutoRetryStart, Event, ToolExecutionEnd, ToolExecutionStart,
};

use super::tool_line::{outcome, subject};
use crate::output::Chunk;

/// What the two streams can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Style {
    /// Whether notices on stderr are coloured.
    pub(crate) colour: bool,
    /// Whether stdout is a terminal, which must not be steered by what a model writes.
    pub(crate) plain_out: bool,
}

impl Style {
    /// The style for this process: colour only on a terminal, and without `NO_COLOR`.
    pub(crate) fn detect() -> Self {
        let wanted = env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            && env::var_os("TERM").is_none_or(|term| term != "dumb");
        Self { colour: wanted && io::stderr().is_terminal(), plain_out: io::stdout().is_terminal() }
    }
}

const DIM: &str = "2";
const GREEN: &str = "32";
const RED: &str = "31";

/// Turns events into text.
#[derive(Debug, Default)]
pub(crate) struct TextRenderer {
    style: Style,
    /// Whether the last character on stdout did not end a line.
    in_line: bool,
    /// What the running calls are about.
    calls: HashMap<String, String>,
}

impl TextRenderer {
    pub(crate) fn new(style: Style) -> Self {
        Self { style, ..Self::default() }
    }

    /// What to write for an event.
    pub(crate) fn event(&mut self, event: &Event) -> Vec<Chunk> {
        match event {
            Event::MessageUpdate(update) => match &update.assistant_message_event {
                AssistantMessageEvent::TextDelta { delta, .. } => self.text(delta),
                AssistantMessageEvent::TextEnd { .. } => self.end_line(),
                _ => Vec::new(),
            },
            Event::MessageEnd(_) => self.end_line(),
            Event::ToolExecutionStart(call) => self.call_started(call),
            Event::ToolExecutionEnd(call) => self.call_ended(call),
            Event::AutoRetryStart(retry) => self.retried(retry),
            _ => Vec::new(),
        }
    }

    fn text(&mut self, delta: &str) -> Vec<Chunk> {
        let text: String = if self.style.plain_out {
            delta.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
        } else {
            delta.to_owned()
        };
        let Some(last) = text.chars().next_back() else { return Vec::new() };
        self.in_line = last != '\n';
        vec![Chunk::Out(text.into_bytes())]
    }

    fn end_line(&mut self) -> Vec<Chunk> {
        if std::mem::take(&mut self.in_line) { vec![Chunk::Out(b"\n".to_vec())] } else { Vec::new() }
    }

    fn call_started(&mut self, call: &ToolExecutionStart) -> Vec<Chunk> {
        let subject = subject(call);
        let line = self.coloured(DIM, &format!("-> {subject}"));
        self.calls.insert(call.tool_call_id.clone(), subject);
        let mut chunks = self.end_line();
        chunks.push(Chunk::Err(format!("{line}\n").into_bytes()));
        chunks
    }

    fn call_ended(&mut self, call: &ToolExecutionEnd) -> Vec<Chunk> {
        let subject = self.calls.remove(&call.tool_call_id).unwrap_or_else(|| call.tool_name.clone());
        let (begun, ended) = (self.coloured(DIM, &format!("<- {subject}:")), outcome(call));
        let ended = self.coloured(if call.is_error { RED } else { GREEN }, &ended);
        let mut chunks = self.end_line();
        chunks.push(Chunk::Err(format!("{begun} {ended}\n").into_bytes()));
        chunks
    }

    fn retried(&self, retry: &AutoRetryStart) -> Vec<Chunk> {
        let seconds = Duration::from_millis(retry.delay_ms).as_secs_f64();
        let why: String = retry.error_message.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let line = format!(
            "The model's answer failed ({why}). Asking again in {seconds} s (retry {} of {}).",
            retry.attempt, retry.max_attempts
        );
        vec![Chunk::Err(format!("{}\n", self.coloured(DIM, &line)).into_bytes())]
    }

    fn coloured(&self, colour: &str, text: &str) -> String {
        if self.style.colour { format!("\x1b[{colour}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(style: Style, lines: &[&str]) -> (String, String) {
        let mut renderer = TextRenderer::new(style);
        let (mut out, mut err) = (String::new(), String::new());
        for line in lines {
            let kind: serde_json::Value = serde_json::from_str(line).unwrap();
            let event = Event::parse(kind["type"].as_str().unwrap(), line).unwrap().unwrap();
            for chunk in renderer.event(&event) {
                match chunk {
                    Chunk::Out(bytes) => out.push_str(std::str::from_utf8(&bytes).unwrap()),
                    Chunk::Err(bytes) => err.push_str(std::str::from_utf8(&bytes).unwrap()),
                }
            }
        }
        (out, err)
    }

    fn delta(text: &str) -> String {
        let text = serde_json::to_string(text).unwrap();
        format!(
            r#"{{"type":"message_update","usage":{{}},"assistantMessageEvent":{{"type":"text_delta","contentIndex":0,"delta":{text}}}}}"#
        )
    }

    const END: &str = r#"{"type":"message_update","usage":{},"assistantMessageEvent":{"type":"text_end","contentIndex":0,"content":""}}"#;
    const CALL: &str =
        r#"{"type":"tool_execution_start","toolCallId":"c","toolName":"bash","args":{"command":"ls"}}"#;
    const DONE: &str = r#"{"type":"tool_execution_end","toolCallId":"c","toolName":"bash","result":{"content":[]},"isError":false,"durationMs":5}"#;

    #[test]
    fn text_streams_and_ends_its_line_once() {
        let (out, err) =
            render(Style::default(), &[&delta("a"), &delta("b\n"), END, &delta("c"), CALL, DONE, END]);
        assert_eq!(out, "ab\nc\n");
        assert_eq!(err, "-> bash ls\n<- bash ls: ok, 5 ms\n");
    }

    #[test]
    fn a_model_cannot_steer_the_terminal() {
        let escape = delta("a\u{1b}[2J\tb\r\u{9b}");
        let plain = Style { plain_out: true, ..Style::default() };
        assert_eq!(render(plain, &[&escape]).0, "a[2J\tb");
        assert_eq!(render(Style::default(), &[&escape]).0, "a\u{1b}[2J\tb\r\u{9b}");
    }

    #[test]
    fn colour_only_where_wanted() {
        let (_, err) = render(Style { colour: true, ..Style::default() }, &[CALL, DONE]);
        assert_eq!(err, "\x1b[2m-> bash ls\x1b[0m\n\x1b[2m<- bash ls:\x1b[0m \x1b[32mok, 5 ms\x1b[0m\n");
    }
}
