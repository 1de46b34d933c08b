//! Images of messages and results, made such that a model can take them. One that no model takes would make the provider
//! refuse the message, and every later request with it.

use agentd_images::Images;
use agentd_protocol::{
    message::{ContentBlock, ImageContent},
    tool::ToolResult,
};

/// What becomes of the images of a prompt.
#[derive(Debug, Default)]
pub(crate) struct PromptImages {
    /// Those that the model gets.
    pub(crate) blocks: Vec<ContentBlock>,
    /// What it is told about them and about the others, a line each.
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

/// Prepares the images of a tool's result: the hints follow as a text of their own, and a text stands for an image that is
/// left out.
pub(crate) async fn of_result(mut result: ToolResult, images: &Images) -> ToolResult {
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
