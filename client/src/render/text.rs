//! A run for people: the answer on stdout, notices about tools and models on stderr.

use std::time::Instant;

use agentd_client_text::{
    compacted, decided, ended_process, extension_failed, fell_back, left_to_do, mode_changed, one_line,
    permissions_changed, proposed_plan, retried, rules_matched, slow_provider, subagent_news, unkept,
};
use agentd_protocol::event::{AssistantMessageEvent, AutoRetryStart, Event};

use super::{answer::AnswerView, steers, style::StreamStyle, tool_lines::ToolLines};
use crate::output::OutputChunk;

/// A user's message for stderr: each line after `> `.
pub(crate) fn prompt_line(style: StreamStyle, text: &str) -> String {
    let text: String = text.trim_end().chars().filter(|c| !steers(*c)).collect();
    let lines = if text.is_empty() { vec![""] } else { text.lines().collect() };
    lines.iter().map(|line| format!("{}\n", style.dim(format!("> {line}").trim_end()))).collect()
}

/// Turns events into text.
#[derive(Debug, Default)]
pub(crate) struct TextRenderer {
    style: StreamStyle,
    /// Whether the last character on stdout did not end a line.
    in_line: bool,
    tools: ToolLines,
    /// Whether answers are left out.
    notices_alone: bool,
    /// What is being written on a terminal.
    answer: AnswerView,
}

impl TextRenderer {
    pub(crate) fn new(style: StreamStyle) -> Self {
        Self {
            style,
            in_line: false,
            tools: ToolLines::new(style),
            notices_alone: false,
            answer: AnswerView::default(),
        }
    }

    /// One that leaves out answers.
    pub(crate) fn of_notices(style: StreamStyle) -> Self {
        Self { notices_alone: true, ..Self::new(style) }
    }

    /// The chunks to write for an event.
    pub(crate) fn event(&mut self, event: &Event) -> Vec<OutputChunk> {
        match event {
            Event::MessageUpdate(_) if self.notices_alone => Vec::new(),
            Event::MessageUpdate(update) => match &update.assistant_message_event {
                AssistantMessageEvent::TextDelta { delta, .. } => self.piece(delta),
                AssistantMessageEvent::ThinkingDelta { delta, .. } if self.style.markdown => {
                    self.answer.thinking(delta, self.style, Instant::now())
                }
                AssistantMessageEvent::TextEnd { .. } | AssistantMessageEvent::ThinkingEnd { .. } => {
                    self.end_line()
                }
                _ => Vec::new(),
            },
            Event::MessageEnd(_) => self.end_line(),
            Event::ToolExecutionStart(call) => match self.tools.started(call) {
                Some(line) => self.notice(line),
                None => self.end_line(),
            },
            Event::ToolExecutionEnd(call) => {
                let line = self.tools.ended(call);
                self.notice(line)
            }
            Event::ProcessEnd(end) => self.dim_notice(Some(ended_process(end))),
            Event::AutoRetryStart(retry) => self.retried(retry),
            Event::ProviderStalled(stalled) => self.dim_notice(Some(slow_provider(stalled))),
            Event::ModelFallback(fallback) => self.dim_notice(Some(fell_back(fallback))),
            Event::ExtensionError(failed) => self.dim_notice(Some(extension_failed(failed))),
            Event::PermissionDecision(decision) => self.dim_notice(Some(decided(decision))),
            Event::PermissionsChanged(changed) => self.dim_notice(Some(permissions_changed(changed))),
            Event::SubagentLifecycle(news) => self.dim_notice(subagent_news(&news.subagent)),
            Event::ModeChanged(changed) => self.dim_notice(Some(mode_changed(changed))),
            Event::ToolExecutionUpdate(update) => match proposed_plan(update) {
                Some(plan) => {
                    let lines = plan.lines().map(|line| format!("  | {}\n", one_line(line)));
                    self.notice(lines.collect())
                }
                None => Vec::new(),
            },
            Event::TtsrTriggered(triggered) => self.dim_notice(Some(rules_matched(triggered))),
            Event::TodoReminder(reminder) => self.dim_notice(Some(left_to_do(reminder))),
            Event::CheckpointCreated(created) => self.dim_notice(unkept(&created.checkpoint)),
            Event::CompactionEnd(end) => self.dim_notice(Some(compacted(end))),
            _ => Vec::new(),
        }
    }

    /// Whether the cursor is behind text of an answer, where no line of ours can stand.
    pub(crate) fn is_in_line(&self) -> bool {
        self.in_line
    }

    /// When to call [`TextRenderer::draw`] if no event comes before; `None` while everything is drawn.
    pub(crate) fn draw_at(&self) -> Option<Instant> {
        self.answer.draw_at()
    }

    /// Draws what came of the answer since the last time.
    pub(crate) fn draw(&mut self) -> Option<OutputChunk> {
        self.answer.draw(self.style, Instant::now())
    }

    /// A piece of an answer's text.
    pub(crate) fn piece(&mut self, delta: &str) -> Vec<OutputChunk> {
        if self.style.markdown {
            return if delta.is_empty() {
                Vec::new()
            } else {
                self.answer.text(delta, self.style, Instant::now())
            };
        }
        let text: String = if self.style.plain_out {
            delta.chars().filter(|c| !steers(*c)).collect()
        } else {
            delta.to_owned()
        };
        let Some(last) = text.chars().next_back() else { return Vec::new() };
        self.in_line = last != '\n';
        vec![OutputChunk::Out(text.into_bytes())]
    }

    fn end_line(&mut self) -> Vec<OutputChunk> {
        if self.style.markdown {
            return self.answer.end(self.style, Instant::now());
        }
        if std::mem::take(&mut self.in_line) { vec![OutputChunk::Out(b"\n".to_vec())] } else { Vec::new() }
    }

    pub(crate) fn prompt(&mut self, text: &str) -> Vec<OutputChunk> {
        let line = prompt_line(self.style, text);
        self.notice(line)
    }

    /// A dim line for stderr, if there is one.
    fn dim_notice(&mut self, line: Option<String>) -> Vec<OutputChunk> {
        match line {
            Some(line) => {
                let line = self.style.dim(&line);
                self.notice(format!("{line}\n"))
            }
            None => Vec::new(),
        }
    }

    /// A line for stderr, after the end of the current line on stdout; on a terminal above the rows that may still change.
    fn notice(&mut self, line: String) -> Vec<OutputChunk> {
        let mut chunks = if self.style.markdown { Vec::new() } else { self.end_line() };
        chunks.push(OutputChunk::Err(line.into_bytes()));
        chunks
    }

    fn retried(&self, retry: &AutoRetryStart) -> Vec<OutputChunk> {
        vec![OutputChunk::Err(
            format!(
                "{}
",
                self.style.dim(&retried(retry))
            )
            .into_bytes(),
        )]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_model_is_one_line() {
        let line = |purpose: &str| {
            let line = format!(
                r#"{{"type":"model_fallback","from":{{"provider":"a","id":"m"}},"to":{{"provider":"b","id":"n"}},"thinkingLevel":"off","purpose":"{purpose}","reason":"auth","errorMessage":"401: bad\n\u001b[2Jkey"}}"#
            );
            render(StreamStyle::default(), &[&line]).1
        };
        assert!(line("answer").starts_with("a/m failed (401: bad"), "{}", line("answer"));
        assert!(line("answer").ends_with("). b/n goes on.\n"), "{}", line("answer"));
        assert!(!line("answer").contains('\u{1b}') && line("summary").ends_with("b/n writes the summary.\n"));
    }

    #[test]
    fn the_end_of_a_background_process_is_one_line() {
        let end = |rest: &str| {
            let line = format!(
                r#"{{"type":"process_end","processId":"bg-1","command":"make\n\u001b[2J","durationMs":5,"outputBytes":0,{rest}}}"#
            );
            render(StreamStyle::default(), &[&line]).1
        };
        assert!(end(r#""exitCode":2"#).starts_with("bg-1 exited with code 2: make"));
        let killed = end(r#""exitCode":143,"signal":15,"endedBy":"timeout""#);
        assert!(killed.starts_with("bg-1 was ended by signal 15 at its time limit: make"), "{killed}");
        assert!(!killed.contains('\u{1b}') && killed.lines().count() == 1, "{killed:?}");
    }

    #[test]
    fn a_compaction_is_one_line() {
        let end = |rest: &str| {
            let line = format!(r#"{{"type":"compaction_end","reason":"overflow",{rest}}}"#);
            render(StreamStyle::default(), &[&delta("a"), &line])
        };
        let done = r#""result":{"summary":"S\n","firstKeptEntryId":"a","tokensBefore":900,"estimatedTokensAfter":50},"aborted":false,"willRetry":true"#;
        let (out, err) = end(done);
        assert_eq!(out, "a\n");
        assert_eq!(err, "The conversation was compacted: about 900 tokens became 50. Asking again.\n");
        assert_eq!(end(r#""aborted":true,"willRetry":false"#).1, "The compaction was stopped.\n");
        let failed = r#""aborted":false,"willRetry":false,"errorMessage":"Auto-compaction failed: x\ny""#;
        assert!(end(failed).1.starts_with("Auto-compaction failed: x"));
    }

    fn render(style: StreamStyle, lines: &[&str]) -> (String, String) {
        let mut renderer = TextRenderer::new(style);
        let (mut out, mut err) = (String::new(), String::new());
        for line in lines {
            let kind: serde_json::Value = serde_json::from_str(line).unwrap();
            let event = Event::parse(kind["type"].as_str().unwrap(), line).unwrap().unwrap();
            for chunk in renderer.event(&event) {
                match chunk {
                    OutputChunk::Out(bytes) => out.push_str(std::str::from_utf8(&bytes).unwrap()),
                    OutputChunk::Err(bytes) => err.push_str(std::str::from_utf8(&bytes).unwrap()),
                    OutputChunk::Status(_) | OutputChunk::Rows { .. } | OutputChunk::Typed(_) => {
                        unreachable!()
                    }
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
            render(StreamStyle::default(), &[&delta("a"), &delta("b\n"), END, &delta("c"), CALL, DONE, END]);
        assert_eq!(out, "ab\nc\n");
        assert_eq!(err, "-> bash ls\n<- bash ls: ok, 5 ms\n");
    }

    #[test]
    fn a_model_cannot_steer_the_terminal() {
        let escape = delta("a\u{1b}[2J\tb\r\u{9b}");
        let plain = StreamStyle { plain_out: true, ..StreamStyle::default() };
        assert_eq!(render(plain, &[&escape]).0, "a[2J\tb");
        assert_eq!(render(StreamStyle::default(), &[&escape]).0, "a\u{1b}[2J\tb\r\u{9b}");
    }

    #[test]
    fn prompts_stand_after_a_mark() {
        assert_eq!(prompt_line(StreamStyle::default(), "a\x1b\n\nb\n"), "> a\n>\n> b\n");
        assert_eq!(
            prompt_line(StreamStyle { colour: true, ..StreamStyle::default() }, ""),
            "\x1b[2m>\x1b[0m\n"
        );
    }

    #[test]
    fn colour_only_where_wanted() {
        let (_, err) = render(StreamStyle { colour: true, ..StreamStyle::default() }, &[CALL, DONE]);
        assert_eq!(err, "\x1b[2m-> bash ls\x1b[0m\n\x1b[2m<- bash ls:\x1b[0m \x1b[32mok, 5 ms\x1b[0m\n");
    }
}
