//! Results of tool calls as this API takes them: all of a batch in one message.

use std::borrow::Cow;

use super::{
    messages::content,
    wire::outgoing::{BlockBody, ResultContent},
};
use crate::handoff::{Part, ToolAnswer};

/// Stands for a result without a word or an image.
const NO_OUTPUT: &str = "(no tool output)";

/// Stands in an error result for its images, which this API takes only beside it (the text is the reference's).
const IMAGE_FOLLOWS: &str = "(image attached after the tool results)";

/// The results, then the images that may not be inside of them. `ids` are those of the calls, in the same order.
pub(super) fn blocks<'a>(answers: &'a [ToolAnswer<'a>], ids: &[Cow<'a, str>]) -> Vec<BlockBody<'a>> {
    let mut blocks = Vec::with_capacity(answers.len());
    let mut images = Vec::new();
    for (place, answer) in answers.iter().enumerate() {
        let id = ids.get(place).unwrap_or(&answer.call_id).clone();
        let content = if answer.is_error {
            let moved = images.len();
            images.extend(answer.parts.iter().filter_map(|part| match part {
                Part::Image(image) => Some(BlockBody::image(image)),
                Part::Text(_) => None,
            }));
            if images.len() > moved {
                let text = format!("Images from the error result of tool call {id} ({}):", answer.tool_name);
                images.insert(moved, BlockBody::Text { text: text.into() });
            }
            ResultContent::Text(joined(&answer.parts))
        } else if answer.parts.iter().any(|part| matches!(part, Part::Image(_))) {
            ResultContent::Blocks(content(&answer.parts))
        } else {
            ResultContent::Text(joined(&answer.parts))
        };
        blocks.push(BlockBody::ToolResult { tool_use_id: id, content, is_error: answer.is_error });
    }
    blocks.append(&mut images);
    blocks
}

/// The text of a result, with a note in the place of each run of images.
fn joined<'a>(parts: &'a [Part<'a>]) -> Cow<'a, str> {
    let mut texts: Vec<&'a str> = Vec::with_capacity(parts.len());
    let mut after_image = false;
    for part in parts {
        match part {
            Part::Text(text) => texts.push(text),
            Part::Image(_) if after_image => {}
            Part::Image(_) => texts.push(IMAGE_FOLLOWS),
        }
        after_image = matches!(part, Part::Image(_));
    }
    let text = match texts[..] {
        [only] => Cow::Borrowed(only),
        _ => Cow::Owned(texts.join("\n")),
    };
    if text.trim().is_empty() { NO_OUTPUT.into() } else { text }
}
