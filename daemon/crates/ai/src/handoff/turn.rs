//! The form of a transcript that adapters encode, and the conversion of messages into its parts. Pure.

use std::borrow::Cow;

use agentd_protocol::{
    message::{BashExecutionMessage, ContentBlock, ImageContent, Message, MessageContent},
    model::Model,
};
use serde_json::{Map, Value};

/// One turn of a legal transcript.
#[derive(Debug, PartialEq)]
pub(crate) enum Turn<'a> {
    /// A change of the system state in the middle of the conversation, as text.
    System(String),
    /// A prompt; never empty.
    User(Vec<Part<'a>>),
    /// An answer; never empty.
    Assistant(Vec<AssistantPart<'a>>),
    /// The results of all calls of the answer before, in the order of the calls.
    Results(Vec<ToolAnswer<'a>>),
}

/// A piece of a prompt or of a result.
#[derive(Debug, PartialEq)]
pub(crate) enum Part<'a> {
    /// Text.
    Text(Cow<'a, str>),
    /// An image.
    Image(&'a ImageContent),
}

/// A piece of an answer.
#[derive(Debug, PartialEq)]
pub(crate) enum AssistantPart<'a> {
    /// Text.
    Text {
        /// The text; empty only if the API signed an empty text.
        text: &'a str,
        /// The signature that is sent back to the provider; only of the same model.
        signature: Option<&'a str>,
    },
    /// Reasoning of the same model.
    Thinking {
        /// The reasoning.
        text: &'a str,
        /// The signature that is sent back to the provider.
        signature: Option<&'a str>,
        /// Whether the provider withheld the reasoning.
        redacted: bool,
    },
    /// A tool call.
    ToolCall {
        /// The id in the transcript.
        original_id: &'a str,
        /// The id in the request, unique in its answer.
        id: Cow<'a, str>,
        /// The tool.
        name: &'a str,
        /// The arguments.
        arguments: &'a Map<String, Value>,
        /// The signature that is sent back to the provider; only of the same model.
        signature: Option<&'a str>,
    },
}

/// The result of a tool call.
#[derive(Debug, PartialEq)]
pub(crate) struct ToolAnswer<'a> {
    /// The id of the call in the request.
    pub(crate) call_id: Cow<'a, str>,
    /// The tool.
    pub(crate) tool_name: &'a str,
    /// Its output.
    pub(crate) parts: Vec<Part<'a>>,
    /// Whether it failed.
    pub(crate) is_error: bool,
}

/// Stand for images that the model must not or cannot see (the texts are pi's).
const BLOCKED: &str = "Image reading is disabled.";
const BLIND_PROMPT: &str = "(image omitted: model does not support images)";
const BLIND_RESULT: &str = "(tool image omitted: model does not support images)";

/// The text in place of images; `None` shows them.
pub(super) struct Images {
    pub(super) in_prompts: Option<&'static str>,
    pub(super) in_results: Option<&'static str>,
}

impl Images {
    pub(super) fn of(model: &Model, block_images: bool) -> Self {
        if block_images {
            Self { in_prompts: Some(BLOCKED), in_results: Some(BLOCKED) }
        } else if model.sees_images() {
            Self { in_prompts: None, in_results: None }
        } else {
            Self { in_prompts: Some(BLIND_PROMPT), in_results: Some(BLIND_RESULT) }
        }
    }
}

/// A message as a prompt; `None` if the model sees nothing of it.
pub(super) fn prompt<'a>(message: &'a Message, hidden_image: Option<&'static str>) -> Option<Vec<Part<'a>>> {
    let parts = match message {
        Message::User(user) => content(&user.content, hidden_image),
        Message::Custom(custom) => content(&custom.content, hidden_image),
        Message::BashExecution(bash) if bash.exclude_from_context == Some(true) => return None,
        Message::BashExecution(bash) => text(bash_text(bash)),
        Message::BranchSummary(branch) => text(format!(
            "The conversation left a branch and came back from it; this is a summary of what happened \
             there:\n\n<summary>\n{}</summary>",
            branch.summary
        )),
        Message::CompactionSummary(compaction) => text(format!(
            "The conversation up to this point was compacted into the following summary:\n\n\
             <summary>\n{}\n</summary>",
            compaction.summary
        )),
        Message::System(_) | Message::Assistant(_) | Message::ToolResult(_) => return None,
    };
    (!parts.is_empty()).then_some(parts)
}

/// The text that a model reads of a message that it gets as a prompt, without images: of prompts, bash commands and summaries. `None` for
/// all other messages and for messages without text.
#[must_use]
pub fn prompt_text(message: &Message) -> Option<String> {
    let parts = prompt(message, Some(""))?;
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text(text) if !text.is_empty() => Some(&**text),
        _ => None,
    });
    Some(texts.collect::<Vec<_>>().join("\n")).filter(|text| !text.is_empty())
}

fn text(text: String) -> Vec<Part<'static>> {
    vec![Part::Text(Cow::Owned(text))]
}

fn content<'a>(content: &'a MessageContent, hidden_image: Option<&'static str>) -> Vec<Part<'a>> {
    match content {
        MessageContent::Text(text) if text.is_empty() => Vec::new(),
        MessageContent::Text(text) => vec![Part::Text(Cow::Borrowed(text))],
        MessageContent::Blocks(blocks) => parts(blocks, hidden_image),
        MessageContent::Nothing => Vec::new(),
    }
}

/// Text and images of a list of blocks; each run of hidden images becomes one text.
pub(super) fn parts<'a>(blocks: &'a [ContentBlock], hidden_image: Option<&'static str>) -> Vec<Part<'a>> {
    let mut parts = Vec::with_capacity(blocks.len());
    let mut in_hidden_run = false;
    for block in blocks {
        match (block, hidden_image) {
            (ContentBlock::Text { text, .. }, _) if text.is_empty() => continue,
            (ContentBlock::Text { text, .. }, hidden) => {
                // A placeholder in the transcript counts as a part of the run.
                let placeholder = hidden == Some(text.as_str());
                if !(placeholder && in_hidden_run) {
                    parts.push(Part::Text(Cow::Borrowed(text)));
                }
                in_hidden_run = placeholder;
            }
            (ContentBlock::Image(image), None) => parts.push(Part::Image(image)),
            (ContentBlock::Image(_), Some(placeholder)) => {
                if !in_hidden_run {
                    parts.push(Part::Text(Cow::Borrowed(placeholder)));
                }
                in_hidden_run = true;
            }
            (ContentBlock::Thinking { .. } | ContentBlock::ToolCall(_), _) => {}
        }
    }
    parts
}

/// The text about a bash command of the user.
fn bash_text(bash: &BashExecutionMessage) -> String {
    let mut text = format!("Ran `{}`\n", bash.command);
    if bash.output.is_empty() {
        text.push_str("(no output)");
    } else {
        text.push_str("```\n");
        text.push_str(&bash.output);
        text.push_str("\n```");
    }
    if bash.cancelled {
        text.push_str("\n\n(command cancelled)");
    } else if let Some(code) = bash.exit_code.filter(|code| *code != 0) {
        text.push_str(&format!("\n\nCommand exited with code {code}"));
    }
    if let Some(path) = bash.full_output_path.as_ref().filter(|_| bash.truncated) {
        text.push_str(&format!("\n\n[Output truncated. Full output: {path}]"));
    }
    text
}
