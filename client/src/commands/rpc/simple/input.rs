//! The lines of stdin: messages and interrupts.

use std::{
    io::{self, Read as _},
    thread,
};

use agentd_protocol::{
    command::{Image, PromptParams},
    lines::{DEFAULT_MAX_LINE_BYTES, Line, LineSplitter},
};
use serde::Deserialize;
use tokio::sync::mpsc;

/// How many lines wait to be taken. After that, stdin is not read.
const WAITING_LINES: usize = 16;

/// How much is read at once, in bytes.
const READ_BYTES: usize = 64 << 10;

/// A line that was understood.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Input {
    /// Something for the model, once what came before it is done.
    Message(Box<PromptParams>),
    /// Stop the work, and forget the messages that wait.
    Interrupt,
}

/// A line, or a sentence for the user about what it lacks.
pub(super) type ReadLine = Result<Input, String>;

/// The wire form of [`Input`]. Unknown fields, such as a timestamp, say nothing.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WireInput {
    Message { content: Content },
    Interrupt {},
}

/// A text, or the blocks of a user message.
#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Blocks(Vec<Block>),
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text { text: String },
    Image(Image),
}

fn parse(line: &str) -> ReadLine {
    const FORMS: &str = "Use {\"type\":\"message\",\"content\":\"...\"} or {\"type\":\"interrupt\"}.";
    let wire = serde_json::from_str(line).map_err(|error| format!("Invalid line: {error}. {FORMS}"))?;
    let WireInput::Message { content } = wire else { return Ok(Input::Interrupt) };
    let (mut texts, mut images) = (Vec::new(), Vec::new());
    match content {
        Content::Text(text) => texts.push(text),
        Content::Blocks(blocks) => blocks.into_iter().for_each(|block| match block {
            Block::Text { text } => texts.push(text),
            Block::Image(image) => images.push(image),
        }),
    }
    let message = texts.join("\n");
    if message.trim().is_empty() && images.is_empty() {
        return Err(format!("Invalid line: the content is empty. {FORMS}"));
    }
    Ok(Input::Message(Box::new(PromptParams { message, images, ..PromptParams::default() })))
}

/// Stdin, read by a thread of its own, which may block for good.
pub(super) struct InputLines {
    lines: mpsc::Receiver<ReadLine>,
    has_ended: bool,
}

impl InputLines {
    /// Begins to read.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub(super) fn start() -> io::Result<Self> {
        let (sender, lines) = mpsc::channel(WAITING_LINES);
        thread::Builder::new().name("input".into()).spawn(move || read(&sender))?;
        Ok(Self { lines, has_ended: false })
    }

    /// Whether the end was seen.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// The next line; `None` at the end.
    ///
    /// *Cancel safety*: no line is lost.
    pub(super) async fn next(&mut self) -> Option<ReadLine> {
        let next = self.lines.recv().await;
        self.has_ended = next.is_none();
        next
    }
}

fn read(sender: &mpsc::Sender<ReadLine>) {
    let mut stdin = io::stdin().lock();
    let mut splitter = LineSplitter::new(DEFAULT_MAX_LINE_BYTES);
    let (mut bytes, mut lines) = (vec![0; READ_BYTES], Vec::new());
    loop {
        let count = match stdin.read(&mut bytes) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                // What came before is still answered. A receiver that is gone needs no words.
                let _ = sender.blocking_send(Err(format!("Stdin cannot be read: {error}")));
                0
            }
        };
        splitter.push(&bytes[..count], &mut lines);
        if count == 0 {
            lines.extend(splitter.finish());
        }
        for line in lines.drain(..) {
            let input = match line {
                Line::Text(text) if text.trim().is_empty() => continue,
                Line::Text(text) => parse(&text),
                Line::TooLong => {
                    Err(format!("Invalid line: it is longer than {DEFAULT_MAX_LINE_BYTES} bytes."))
                }
                Line::Refused(failure) => Err(failure.error),
            };
            if sender.blocking_send(input).is_err() {
                return;
            }
        }
        if count == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_and_interrupts_are_read() {
        let message = |text: &str| {
            Input::Message(Box::new(PromptParams { message: text.into(), ..PromptParams::default() }))
        };
        let blocks =
            r#"{"type":"message","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"at":1}"#;
        for (line, input) in [
            (r#"{"type":"message","content":"List all."}"#, message("List all.")),
            (blocks, message("a\nb")),
            (r#"{"type":"interrupt"}"#, Input::Interrupt),
        ] {
            assert_eq!(parse(line), Ok(input), "{line}");
        }
    }

    #[test]
    fn an_image_needs_no_words() {
        let line = r#"{"type":"message","content":[{"type":"image","data":"aGk=","mimeType":"image/png"}]}"#;
        let Ok(Input::Message(message)) = parse(line) else { panic!("{line}") };
        assert_eq!((message.message.as_str(), message.images.len()), ("", 1));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, named) in [
            ("hello", "expected value"),
            (r#"{"type":"prompt","message":"x"}"#, "unknown variant `prompt`"),
            (r#"{"type":"message"}"#, "missing field `content`"),
            (r#"{"type":"message","content":"  "}"#, "the content is empty"),
            (r#"{"type":"message","content":[]}"#, "the content is empty"),
        ] {
            let error = parse(line).expect_err(line);
            assert!(error.contains(named) && error.contains("\"type\":\"interrupt\""), "{line}: {error}");
        }
    }
}
