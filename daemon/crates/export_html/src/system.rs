//! Shows the system messages: prompt, sections, tools, all folded.

use std::io;

use agentd_protocol::{message::SystemMessage, tool::ToolSpec};
use serde_json::Value;

use crate::{
    blocks, figures,
    page::{Anchor, Attr, Page},
};

/// Writes a system message. The first one of a conversation is the prompt, later ones change it.
pub(crate) fn write(page: &mut Page<'_>, at: u32, message: &SystemMessage, is_first: bool) -> io::Result<()> {
    let text = message.content.text();
    let added = message.tools_added.as_deref().unwrap_or_default();
    let removed = message.tools_removed.as_deref().unwrap_or_default();
    let sections = message.sections.as_ref();
    page.folded(
        &[Attr::Class("system"), Attr::Anchor(Anchor(at))],
        |page| {
            let name = if is_first { "System prompt and tools" } else { "System prompt changed" };
            page.words("span", &[Attr::Class("name")], name)?;
            let count = |count: usize, what: &str| (count > 0).then(|| figures::counted(count, what));
            let parts = [
                count(sections.map_or(0, serde_json::Map::len), "section"),
                count(added.len(), if is_first { "tool" } else { "new tool" }),
                count(removed.len(), "removed tool"),
            ];
            let parts: Vec<String> = parts.into_iter().flatten().collect();
            page.ours(" ")?;
            page.words("span", &[Attr::Class("figures")], &parts.join(" · "))
        },
        |page| {
            if !text.trim().is_empty() {
                page.preformatted("plain", &text)?;
            }
            for (name, value) in sections.into_iter().flatten() {
                section(page, name, value)?;
            }
            for spec in added {
                self::tool(page, spec)?;
            }
            for gone in removed {
                let text = format!("The tool {} was removed.", gone.name);
                page.words("p", &[Attr::Class("note")], &text)?;
            }
            Ok(())
        },
    )
}

fn section(page: &mut Page<'_>, name: &str, value: &Value) -> io::Result<()> {
    if value.is_null() {
        return page.words("p", &[Attr::Class("note")], &format!("The section {name} was removed."));
    }
    page.folded(
        &[Attr::Class("more")],
        |page| {
            page.text("Section ")?;
            page.words("code", &[], name)
        },
        |page| match value.as_str() {
            Some(text) => page.preformatted("plain", text),
            None => blocks::json(page, value),
        },
    )
}

fn tool(page: &mut Page<'_>, spec: &ToolSpec) -> io::Result<()> {
    page.folded(
        &[Attr::Class("more")],
        |page| {
            page.text("Tool ")?;
            page.words("code", &[], &spec.name)
        },
        |page| {
            page.preformatted("plain", &spec.description)?;
            blocks::json(page, &spec.parameters)
        },
    )
}
