//! Writes the content blocks of a message.

use std::io;

use agentd_protocol::message::{ContentBlock, ImageContent};

use crate::{
    figures,
    page::{Attr, Page},
    picture::Picture,
    tool,
};

/// Characters of a thought shown in its summary line.
const GIST: usize = 100;

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
        ContentBlock::ToolCall(call) => tool::call(page, call, None),
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
            page.words("span", &[Attr::Class("gist")], &figures::first_line(text, GIST))
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
