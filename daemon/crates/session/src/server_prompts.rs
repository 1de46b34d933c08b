//! Messages that call a prompt of an MCP server, while the server is asked for it.

use agentd_agent::queue::QueueKind;
use agentd_mcp::{PromptError, PromptText};
use agentd_protocol::{
    command::{Image, PromptParams, QueueParams},
    message::ImageContent,
};
use tokio_util::sync::CancellationToken;

use crate::requests::PendingRequest;

/// A command that brings a message.
pub(crate) enum MessageCommand {
    /// `prompt`.
    Prompt(PromptParams),
    /// `abort_and_prompt`.
    AbortAndPrompt(PromptParams),
    /// `steer` and `follow_up`.
    Queue(QueueKind, QueueParams),
}

/// A message whose prompt the server has given, or not.
pub(crate) struct ExpandedMessage {
    pub(crate) command: MessageCommand,
    pub(crate) request: PendingRequest,
    pub(crate) outcome: Result<PromptText, PromptError>,
}

/// The messages that wait for a server.
#[derive(Default)]
pub(crate) struct PromptRequests {
    /// Gives them up.
    pub(crate) cancel: CancellationToken,
    pub(crate) count: usize,
}

impl PromptRequests {
    /// Gives up all that wait. Later ones are not affected.
    pub(crate) fn give_up(&mut self) {
        std::mem::take(&mut self.cancel).cancel();
    }

    /// Whether a message waits.
    pub(crate) fn is_active(&self) -> bool {
        self.count > 0
    }
}

impl MessageCommand {
    /// Its text.
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Prompt(params) | Self::AbortAndPrompt(params) => &params.message,
            Self::Queue(_, params) => &params.message,
        }
    }

    /// Its text.
    pub(crate) fn message_mut(&mut self) -> &mut String {
        match self {
            Self::Prompt(params) | Self::AbortAndPrompt(params) => &mut params.message,
            Self::Queue(_, params) => &mut params.message,
        }
    }

    /// Puts a prompt in the place of the text.
    pub(crate) fn set(&mut self, PromptText { text, images: of_server }: PromptText) {
        let (message, images) = match self {
            Self::Prompt(params) | Self::AbortAndPrompt(params) => (&mut params.message, &mut params.images),
            Self::Queue(_, params) => (&mut params.message, &mut params.images),
        };
        *message = text;
        // Those that the user attached come last, as they do in other messages.
        let own = std::mem::replace(images, of_server.into_iter().map(image).collect());
        images.extend(own);
    }

    /// Puts others in the place of the text and the images, where they are given.
    pub(crate) fn replace(&mut self, text: Option<String>, images_now: Option<Vec<Image>>) {
        let (message, images) = match self {
            Self::Prompt(params) | Self::AbortAndPrompt(params) => (&mut params.message, &mut params.images),
            Self::Queue(_, params) => (&mut params.message, &mut params.images),
        };
        if let Some(text) = text {
            *message = text;
        }
        if let Some(images_now) = images_now {
            *images = images_now;
        }
    }

    /// Its images.
    pub(crate) fn images(&self) -> &[Image] {
        match self {
            Self::Prompt(params) | Self::AbortAndPrompt(params) => &params.images,
            Self::Queue(_, params) => &params.images,
        }
    }
}

fn image(ImageContent { data, mime_type }: ImageContent) -> Image {
    Image { kind: "image".to_owned(), data, mime_type }
}
