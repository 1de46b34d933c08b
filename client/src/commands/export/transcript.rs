//! A branch as a Markdown transcript.

use std::io::{self, BufRead, Seek, Write};

use agentd_protocol::{
    entry::EntryBody,
    message::{
        AssistantMessage, BashExecutionMessage, ContentBlock, ImageContent, Message, StopReason, ToolCall,
        ToolResultMessage, Usage,
    },
    prompt_text::typed_words,
};
use serde_json::{Map, Value};

use super::{
    branch::{CurrentBranch, SessionFacts},
    markdown::{code, fence, prose, words},
};
use crate::render::{counted, cut, duration};

/// The longest title, in characters.
const TITLE: usize = 80;

/// Writes the transcript of a branch.
///
/// # Errors
/// When the branch cannot be read, or `out` not written.
pub(super) fn write(branch: &mut CurrentBranch<impl BufRead + Seek>, out: &mut dyn Write) -> io::Result<()> {
    let mut totals = UsageTotals::default();
    let mut unknown = 0;
    let mut begun = false;
    while let Some(entry) = branch.next()? {
        let Some(entry) = entry else {
            unknown += 1;
            continue;
        };
        if !begun && let Some(title) = title(&branch.about, &entry) {
            out.write_all(head(&branch.about, &title).as_bytes())?;
            begun = true;
        }
        totals.add(&entry);
        let text = section(&entry);
        if !text.is_empty() {
            // Entries before the first prompt, such as the choice of a model, need a head as well.
            if !begun && matches!(entry, EntryBody::Message { .. }) {
                out.write_all(head(&branch.about, &words(&fallback(&branch.about))).as_bytes())?;
                begun = true;
            }
            if begun {
                out.write_all(b"\n")?;
                out.write_all(text.as_bytes())?;
            }
        }
    }
    if !begun {
        out.write_all(head(&branch.about, &words(&fallback(&branch.about))).as_bytes())?;
        out.write_all(b"\n*Nothing was said yet.*\n")?;
    }
    out.write_all(totals.text().as_bytes())?;
    if unknown > 0 {
        let text = counted(unknown, "line");
        out.write_all(
            format!("\n*Left out: {text} of kinds that this version does not know.*\n").as_bytes(),
        )?;
    }
    Ok(())
}

/// The title at the first prompt: the session's name, or the beginning of the prompt.
fn title(about: &SessionFacts, entry: &EntryBody) -> Option<String> {
    let EntryBody::Message { message: Message::User(user) } = entry else { return None };
    let text = about.name.clone().unwrap_or_else(|| typed_words(&user.content.text()));
    let first = text.lines().map(str::trim).find(|line| !line.is_empty());
    Some(words(&cut(first.map_or_else(|| fallback(about), str::to_owned).as_str(), TITLE)))
}

fn fallback(about: &SessionFacts) -> String {
    about.name.clone().unwrap_or_else(|| format!("Session {}", about.id))
}

fn head(about: &SessionFacts, title: &str) -> String {
    format!(
        "# {title}\n\n* Session: {}\n* Folder: {}\n* Begun: {}\n",
        code(&about.id),
        code(&about.cwd),
        words(&about.created)
    )
}

/// The section of an entry; empty for one that is no part of the conversation.
fn section(entry: &EntryBody) -> String {
    match entry {
        EntryBody::Message { message } => said(message),
        EntryBody::ModelChange { provider, model_id } => {
            format!("*Model: {}*\n", code(&format!("{provider}/{model_id}")))
        }
        EntryBody::ThinkingLevelChange { thinking_level } => {
            format!("*Thinking: {}*\n", words(thinking_level))
        }
        EntryBody::Compaction { summary, tokens_before, .. } => {
            let tokens =
                if *tokens_before > 0 { format!(" ({tokens_before} tokens)") } else { String::new() };
            format!("## Summary of everything before{tokens}\n\n{}", prose(summary))
        }
        EntryBody::BranchSummary { summary, .. } => {
            format!("## Summary of a branch that was left\n\n{}", prose(summary))
        }
        EntryBody::CustomMessage { custom_type, content, display: true, .. } => {
            format!("## {}\n\n{}", words(custom_type), blocks(&content.blocks()))
        }
        EntryBody::Usage { .. }
        | EntryBody::ContextEdit { .. }
        | EntryBody::Custom { .. }
        | EntryBody::CustomMessage { .. }
        | EntryBody::Label { .. }
        | EntryBody::SessionInfo { .. } => String::new(),
    }
}

fn said(message: &Message) -> String {
    match message {
        Message::User(user) => format!("## User\n\n{}", blocks(&user.content.blocks())),
        Message::Assistant(answer) => answered(answer),
        Message::ToolResult(result) => resulted(result),
        Message::BashExecution(bash) => ran(bash),
        Message::Custom(custom) if custom.display => {
            format!("## {}\n\n{}", words(&custom.custom_type), blocks(&custom.content.blocks()))
        }
        Message::BranchSummary(branch) => {
            format!("## Summary of a branch that was left\n\n{}", prose(&branch.summary))
        }
        Message::CompactionSummary(compaction) => {
            format!("## Summary of everything before\n\n{}", prose(&compaction.summary))
        }
        // A system prompt is long, and not part of the conversation.
        Message::System(_) | Message::Custom(_) => String::new(),
    }
}

fn answered(answer: &AssistantMessage) -> String {
    let model = answer.response_model.as_ref().unwrap_or(&answer.model);
    let who = if model.is_empty() {
        String::new()
    } else {
        format!(" ({})", code(&format!("{}/{model}", answer.provider)))
    };
    let end = match answer.stop_reason {
        StopReason::Error => {
            let why = answer.error_message.as_deref().unwrap_or("no reason given");
            format!("*The answer failed: {}*\n", words(why))
        }
        StopReason::Aborted => "*The answer was stopped.*\n".into(),
        StopReason::Length => "*The answer was cut off at the model's output limit.*\n".into(),
        StopReason::Stop | StopReason::ToolUse | StopReason::Pending | StopReason::Deferred => String::new(),
    };
    let mut parts = vec![format!("## Assistant{who}\n"), blocks(&answer.content), end];
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn blocks(blocks: &[ContentBlock]) -> String {
    let parts: Vec<String> = blocks.iter().map(block).filter(|part| !part.is_empty()).collect();
    parts.join("\n")
}

fn block(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text { text, .. } => prose(text),
        ContentBlock::Thinking { thinking, .. } if thinking.trim().is_empty() => String::new(),
        ContentBlock::Thinking { thinking, .. } => {
            let text = fence("text", thinking.trim_end());
            format!("<details>\n<summary>Thinking</summary>\n\n{text}\n</details>\n")
        }
        ContentBlock::Image(image) => pictured(image),
        ContentBlock::ToolCall(call) => called(call),
    }
}

fn pictured(image: &ImageContent) -> String {
    // Four characters of base64 are three bytes.
    let bytes = image.data.trim_end_matches('=').len() * 3 / 4;
    format!("*(Image, {}, {bytes} bytes)*\n", words(&image.mime_type))
}

fn called(call: &ToolCall) -> String {
    let mut text = format!("**Tool call** {}\n\n{}", code(&call.name), arguments(&call.arguments));
    if let Some(error) = &call.arguments_error {
        text.push_str(&format!("\n*The arguments could not be read: {}*\n", words(error)));
    }
    text
}

/// Arguments as JSON. A text of several lines, such as the content of a file, gets a block of its own, where it can be
/// read. A single `command` is shown as a script.
fn arguments(arguments: &Map<String, Value>) -> String {
    if let (1, Some(Value::String(command))) = (arguments.len(), arguments.get("command")) {
        return fence("sh", command);
    }
    let long = |value: &Value| value.as_str().is_some_and(|text| text.trim_end().contains('\n'));
    let short: Map<String, Value> = arguments
        .iter()
        .filter(|(_, value)| !long(value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let mut parts = Vec::new();
    if !short.is_empty() || arguments.is_empty() {
        // `#` indents the JSON.
        parts.push(fence("json", &format!("{:#}", Value::Object(short))));
    }
    for (name, value) in arguments.iter().filter(|(_, value)| long(value)) {
        parts.push(format!("{}:\n\n{}", code(name), fence("text", value.as_str().unwrap_or_default())));
    }
    parts.join("\n")
}

fn resulted(result: &ToolResultMessage) -> String {
    let mut how = vec![if result.is_error { "failed" } else { "ok" }.to_owned()];
    how.extend(result.duration_ms.map(|ms| duration(std::time::Duration::from_millis(ms))));
    let title = format!("**Result** of {} ({})\n", code(&result.tool_name), how.join(", "));
    let parts = result.content.iter().map(|part| match part {
        ContentBlock::Text { text, .. } => fence("text", text),
        other => block(other),
    });
    [title].into_iter().chain(parts).collect::<Vec<_>>().join("\n")
}

fn ran(bash: &BashExecutionMessage) -> String {
    let mut how = Vec::new();
    if bash.cancelled {
        how.push("stopped".to_owned());
    }
    how.extend(bash.exit_code.map(|exit| format!("exit code {exit}")));
    if bash.truncated {
        how.push("only the end of the output".into());
    }
    if bash.exclude_from_context == Some(true) {
        how.push("the model was not told".into());
    }
    let how = if how.is_empty() { String::new() } else { format!(" ({})", how.join(", ")) };
    format!("## Shell command{how}\n\n{}\n{}", fence("sh", &bash.command), fence("text", &bash.output))
}

/// Sums of tokens and costs by model, in order of appearance.
#[derive(Debug, Default)]
struct UsageTotals(Vec<(String, UsageSum)>);

#[derive(Debug, Clone, Copy, Default)]
struct UsageSum {
    answers: u64,
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
    cost: f64,
}

impl UsageSum {
    fn add(&mut self, other: &Self) {
        self.answers += other.answers;
        self.input += other.input;
        self.output += other.output;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
        self.cost += other.cost;
    }
}

impl UsageTotals {
    /// Adds the usage of an entry.
    fn add(&mut self, entry: &EntryBody) {
        match entry {
            EntryBody::Message { message: Message::Assistant(answer) } => {
                self.count(&format!("{}/{}", answer.provider, answer.model), &answer.usage, 1);
            }
            EntryBody::Message { message: Message::ToolResult(result) } => {
                self.other(&format!("tool {}", result.tool_name), result.usage.as_ref());
            }
            EntryBody::Usage { provider, model, usage, .. } => {
                self.count(&format!("{provider}/{model}"), usage, 0);
            }
            EntryBody::Compaction { usage, .. } | EntryBody::BranchSummary { usage, .. } => {
                self.other("summaries", usage.as_ref());
            }
            _ => {}
        }
    }

    fn other(&mut self, what: &str, usage: Option<&Usage>) {
        if let Some(usage) = usage {
            self.count(what, usage, 0);
        }
    }

    fn count(&mut self, what: &str, usage: &Usage, answers: u64) {
        let sum = UsageSum {
            answers,
            input: usage.input,
            output: usage.output,
            cache_read: usage.cache_read,
            cache_write: usage.cache_write,
            cost: usage.cost.total,
        };
        match self.0.iter_mut().find(|(name, _)| name == what) {
            Some((_, known)) => known.add(&sum),
            None => self.0.push((what.to_owned(), sum)),
        }
    }

    /// A table with a row for each model, and a row of sums for several; empty without usage.
    fn text(&self) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let mut text = String::from(
            "\n---\n\n| model | answers | input | output | cache read | cache write | US$ |\n\
             | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
        );
        let mut all = UsageSum::default();
        for (name, sum) in &self.0 {
            // A bar ends a cell, in code as well.
            text.push_str(&row(&code(&name.replace('|', "\\|")), sum));
            all.add(sum);
        }
        if self.0.len() > 1 {
            text.push_str(&row("all", &all));
        }
        text
    }
}

fn row(name: &str, sum: &UsageSum) -> String {
    let UsageSum { answers, input, output, cache_read, cache_write, cost } = sum;
    format!("| {name} | {answers} | {input} | {output} | {cache_read} | {cache_write} | {cost:.4} |\n")
}

#[cfg(test)]
mod tests;
