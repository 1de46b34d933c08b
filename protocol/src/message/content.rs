//! The content of messages: text, thinking, images, tool calls.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The content of a message: plain text, or a list of blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum MessageContent {
    /// Plain text.
    Text(String),
    /// Blocks.
    Blocks(Vec<ContentBlock>),
    /// Nothing (`null`, found in files of other programs).
    Nothing,
}

impl Default for MessageContent {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl MessageContent {
    /// The text of all text blocks joined by LF, or the plain text.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Blocks(blocks) => {
                blocks.iter().filter_map(ContentBlock::as_text).collect::<Vec<_>>().join("\n")
            }
            Self::Nothing => String::new(),
        }
    }

    /// The content as blocks: plain text is one text block, empty text none.
    #[must_use]
    pub fn blocks(&self) -> std::borrow::Cow<'_, [ContentBlock]> {
        match self {
            Self::Text(text) if text.is_empty() => std::borrow::Cow::Owned(Vec::new()),
            Self::Text(text) => std::borrow::Cow::Owned(vec![ContentBlock::text(text.clone())]),
            Self::Blocks(blocks) => std::borrow::Cow::Borrowed(blocks),
            Self::Nothing => std::borrow::Cow::Owned(Vec::new()),
        }
    }
}

/// A piece of content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum ContentBlock {
    /// Text.
    #[serde(rename_all = "camelCase")]
    Text {
        /// The text.
        text: String,
        /// The provider's opaque signature.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text_signature: Option<String>,
    },
    /// The model's reasoning, where the provider shows it.
    #[serde(rename_all = "camelCase")]
    Thinking {
        /// The reasoning.
        thinking: String,
        /// The provider's opaque signature, needed to send the block back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thinking_signature: Option<String>,
        /// Whether the provider withheld the text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        redacted: Option<bool>,
    },
    /// An image.
    Image(ImageContent),
    /// A tool call of the model.
    ToolCall(ToolCall),
}

impl ContentBlock {
    /// A text block.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into(), text_signature: None }
    }

    /// The image of an image block.
    #[must_use]
    pub fn as_image(&self) -> Option<&ImageContent> {
        match self {
            Self::Image(image) => Some(image),
            _ => None,
        }
    }

    /// The text of a text block.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text, .. } => Some(text),
            _ => None,
        }
    }
}

/// A tool call of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The call's id, unique in the session.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments, as the model gave them.
    #[serde(default, deserialize_with = "null_as_default")]
    pub arguments: Map<String, Value>,
    /// The provider's opaque signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought_signature: Option<String>,
    /// The provider's name space of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The reason why the arguments could not be read, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_error: Option<String>,
}

/// An image, inline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImageContent {
    /// The bytes in base64.
    pub data: String,
    /// Such as `image/png`.
    pub mime_type: String,
}

/// Reads `null` as the type's default: other programs write it for a list or an object.
pub(crate) fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}
