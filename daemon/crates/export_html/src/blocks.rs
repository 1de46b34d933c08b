//! Writes the content blocks of a message.

use std::io;

use agentd_protocol::message::{ContentBlock, ImageContent, ToolCall, ToolResultMessage};
use serde_json::{Map, Value};

use crate::{
    diff, figures,
    page::{Anchor, Attr, Page, Picture},
    terminal,
};

/// Characters of a thought shown in its summary line.
const THOUGHT_CHARS: usize = 100;

/// Writes a person's text unchanged, and other blocks.
pub(crate) fn plain(page: &mut Page<'_>, blocks: &[ContentBlock]) -> io::Result<()> {
    for block in blocks {
        match block {
            ContentBlock::Text { text, .. } if text.trim().is_empty() => {}
            ContentBlock::Text { text, .. } => page.preformatted("plain", text)?,
            other => self::other(page, other)?,
        }
    }
    Ok(())
}

/// Writes a block that is no text.
pub(crate) fn other(page: &mut Page<'_>, block: &ContentBlock) -> io::Result<()> {
    match block {
        ContentBlock::Text { text, .. } => page.preformatted("plain", text),
        ContentBlock::Thinking { thinking, redacted, .. } => {
            self::thinking(page, thinking, *redacted == Some(true))
        }
        ContentBlock::Image(image) => self::image(page, image),
        ContentBlock::ToolCall(call) => self::call(page, call, None),
    }
}

fn thinking(page: &mut Page<'_>, text: &str, is_withheld: bool) -> io::Result<()> {
    if is_withheld {
        return page.words("p", &[Attr::Class("note")], "The provider withheld this part of the thinking.");
    }
    // Thinking that only carries a signature has no text.
    if text.trim().is_empty() {
        return Ok(());
    }
    page.folded(
        &[Attr::Class("thinking")],
        |page| {
            page.words("span", &[Attr::Class("name")], "Thinking")?;
            page.ours(" ")?;
            page.words("span", &[Attr::Class("gist")], &figures::first_line(text, THOUGHT_CHARS))
        },
        |page| page.preformatted("plain", text.trim_end()),
    )
}

fn image(page: &mut Page<'_>, image: &ImageContent) -> io::Result<()> {
    match Picture::new(image) {
        Some(picture) => {
            let alt = format!("Image, {}", figures::size(picture.bytes));
            page.open("p", &[Attr::Class("image")])?;
            page.open("img", &[Attr::Source(picture), Attr::Alt(&alt)])?;
            page.close("p")
        }
        None => {
            let size = figures::size(image.data.len() / 4 * 3);
            let text = format!("An image that is not shown: {}, about {size}.", image.mime_type);
            page.words("p", &[Attr::Class("note")], &text)
        }
    }
}

/// Characters of a call shown in its summary line.
const CALL_CHARS: usize = 120;

/// A call's result, and the index of its entry.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) at: u32,
    pub(crate) result: ToolResultMessage,
}

/// Writes a call and its result, folded, with a summary line.
pub(crate) fn call(page: &mut Page<'_>, call: &ToolCall, answer: Option<&Answer>) -> io::Result<()> {
    let result = answer.map(|answer| &answer.result);
    let class = match result {
        Some(result) if result.is_error => "tool failed",
        Some(_) => "tool",
        None => "tool open",
    };
    let diff = (call.name == "edit").then(|| diff::of_edit(call, result)).flatten();
    let anchor = answer.map(|answer| Attr::Anchor(Anchor(answer.at)));
    let attributes: Vec<Attr<'_>> = [Attr::Class(class)].into_iter().chain(anchor).collect();
    page.folded(
        &attributes,
        |page| {
            page.words("span", &[Attr::Class("name")], &full_name(call))?;
            page.ours(" ")?;
            page.words("code", &[Attr::Class("gist")], &gist(call))?;
            if let Some((came, went)) = diff.as_deref().map(diff::counts) {
                page.ours(" ")?;
                page.words("span", &[Attr::Class("figures")], &format!("+{came} \u{2212}{went}"))?;
            }
            outcome(page, result)
        },
        |page| {
            match &diff {
                Some(diff) => {
                    arguments(page, &call.arguments, &["edits", "oldText", "newText"])?;
                    diff::write(page, diff)?;
                }
                None => arguments(page, &call.arguments, &[])?,
            }
            if let Some(error) = &call.arguments_error {
                page.words(
                    "p",
                    &[Attr::Class("error")],
                    &format!("The arguments could not be read: {error}"),
                )?;
            }
            match result {
                Some(result) => content(page, result),
                None => page.words("p", &[Attr::Class("note")], "There is no result."),
            }
        },
    )
}

/// Writes a result whose call is elsewhere, or missing.
pub(crate) fn lone_result(page: &mut Page<'_>, answer: &Answer) -> io::Result<()> {
    let Answer { at, result } = answer;
    let class = if result.is_error { "tool failed" } else { "tool" };
    page.folded(
        &[Attr::Class(class), Attr::Anchor(Anchor(*at))],
        |page| {
            page.words("span", &[Attr::Class("name")], &result.tool_name)?;
            page.ours(" ")?;
            page.words("code", &[Attr::Class("gist")], &figures::first_line(&result.text(), CALL_CHARS))?;
            outcome(page, Some(result))
        },
        |page| content(page, result),
    )
}

/// The end of a call's summary line.
fn outcome(page: &mut Page<'_>, result: Option<&ToolResultMessage>) -> io::Result<()> {
    let Some(result) = result else {
        page.ours(" ")?;
        return page.words("span", &[Attr::Class("badge")], "no result");
    };
    if result.is_error {
        page.ours(" ")?;
        page.words("span", &[Attr::Class("badge bad")], "failed")?;
    }
    if let Some(ms) = result.duration_ms {
        page.ours(" ")?;
        page.words("span", &[Attr::Class("figures")], &figures::duration(ms))?;
    }
    Ok(())
}

fn full_name(call: &ToolCall) -> String {
    match &call.namespace {
        Some(namespace) => format!("{namespace}.{}", call.name),
        None => call.name.clone(),
    }
}

/// The subject of a call, in one line.
fn gist(call: &ToolCall) -> String {
    let string = |name: &str| call.arguments.get(name).and_then(Value::as_str);
    let known = ["command", "path", "file_path", "pattern", "query", "url", "name"];
    let Some(main) = known.iter().find_map(|name| string(name)) else {
        return match call.arguments.is_empty() {
            true => String::new(),
            false => figures::first_line(&Value::Object(call.arguments.clone()).to_string(), CALL_CHARS),
        };
    };
    let number = |name: &str| call.arguments.get(name).and_then(Value::as_u64);
    let lines = match (number("offset"), number("limit")) {
        (None, None) => String::new(),
        (from, Some(count)) => {
            let from = from.unwrap_or(1);
            format!(":{from}-{}", from.saturating_add(count).saturating_sub(1))
        }
        (Some(from), None) => format!(":{from}-"),
    };
    format!("{}{lines}", figures::first_line(main, CALL_CHARS))
}

/// Writes arguments: commands and texts of several lines by themselves, because they are unreadable in JSON; the others
/// as JSON.
fn arguments(page: &mut Page<'_>, arguments: &Map<String, Value>, left_out: &[&str]) -> io::Result<()> {
    let by_itself = |name: &str, value: &Value| {
        value
            .as_str()
            .is_some_and(|text| name == "command" || name == "content" || text.trim_end().contains('\n'))
    };
    let others: Map<String, Value> = arguments
        .iter()
        .filter(|(name, value)| !left_out.contains(&name.as_str()) && !by_itself(name, value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    match others.get("path").and_then(Value::as_str) {
        Some(path) if others.len() == 1 => page.words("p", &[Attr::Class("path")], path)?,
        _ if others.is_empty() => {}
        _ => json(page, &Value::Object(others))?,
    }
    for (name, value) in arguments {
        if left_out.contains(&name.as_str()) || !by_itself(name, value) {
            continue;
        }
        let text = value.as_str().unwrap_or_default();
        if name == "command" {
            page.preformatted("command", text)?;
        } else {
            page.words("p", &[Attr::Class("argument")], name)?;
            page.preformatted("code", text)?;
        }
    }
    Ok(())
}

/// Writes a value as indented JSON.
pub(crate) fn json(page: &mut Page<'_>, value: &Value) -> io::Result<()> {
    page.preformatted("code", &format!("{value:#}"))
}

fn content(page: &mut Page<'_>, result: &ToolResultMessage) -> io::Result<()> {
    for block in &result.content {
        match block {
            ContentBlock::Text { text, .. } if text.is_empty() => {}
            ContentBlock::Text { text, .. } => page.preformatted("output", &terminal::plain(text))?,
            other => self::other(page, other)?,
        }
    }
    if result.content.is_empty() {
        page.words("p", &[Attr::Class("note")], "The result is empty.")?;
    }
    if let Some(details) = result.details.as_ref().filter(|details| tells_more(&result.tool_name, details)) {
        page.folded(&[Attr::Class("more")], |page| page.text("Details"), |page| json(page, details))?;
    }
    match result.usage.as_ref().map(figures::usage).filter(|usage| !usage.is_empty()) {
        Some(usage) => page.words("p", &[Attr::Class("figures")], &usage),
        None => Ok(()),
    }
}

/// Whether the details contain what the page does not show already.
fn tells_more(tool: &str, details: &Value) -> bool {
    let is_empty = match details {
        Value::Null => true,
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    !is_empty && tool != "edit"
}
