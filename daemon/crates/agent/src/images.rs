//! Prepares the images of prompts and results for models. An image that no model accepts would make the provider refuse this request and
//! every later one.

use agentd_images::Images;
use agentd_protocol::{
    message::{ContentBlock, ImageContent},
    tool::ToolResult,
};

/// The prepared images of a prompt.
#[derive(Debug, Default)]
pub(crate) struct PromptImages {
    /// The images that the model gets.
    pub(crate) blocks: Vec<ContentBlock>,
    /// Notes for the model about changed and omitted images, a line each.
    pub(crate) notes: Vec<String>,
}

/// Prepares the images of a prompt, one after the other.
pub(crate) async fn of_prompt(given: Vec<ImageContent>, images: &Images) -> PromptImages {
    let mut found = PromptImages::default();
    for image in given {
        match images.prepare_content(image).await {
            Ok(prepared) => {
                found.blocks.push(ContentBlock::Image(prepared.image));
                found.notes.extend(prepared.hints);
            }
            Err(omission) => found.notes.push(omission.to_string()),
        }
    }
    found
}

/// Prepares the images of a tool result: notes follow as a separate text, and a text replaces each omitted image.
pub async fn of_result(mut result: ToolResult, images: &Images) -> ToolResult {
    if !result.content.iter().any(|block| matches!(block, ContentBlock::Image(_))) {
        return result;
    }
    let mut content = Vec::with_capacity(result.content.len());
    let mut hints = Vec::new();
    for block in result.content {
        content.push(match block {
            ContentBlock::Image(image) => match images.prepare_content(image).await {
                Ok(prepared) => {
                    hints.extend(prepared.hints);
                    ContentBlock::Image(prepared.image)
                }
                Err(omission) => ContentBlock::text(omission.to_string()),
            },
            other => other,
        });
    }
    if !hints.is_empty() {
        content.push(ContentBlock::text(hints.join("\n")));
    }
    result.content = content;
    result
}
