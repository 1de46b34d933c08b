//! The messages of a session in pages, for clients that read short lines.

use serde::{Deserialize, Serialize};

use crate::{Json, message::Message};

/// The messages of a page where the client does not say how many.
pub const DEFAULT_PAGE_LIMIT: u64 = 100;

/// The most messages of a page.
pub const MAX_PAGE_LIMIT: u64 = 256;

/// A page has no more bytes of messages than this, unless it is one message alone.
pub const MAX_PAGE_BYTES: usize = 768 << 10;

/// The fields of `get_messages_page`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GetMessagesPageParams {
    /// The `nextCursor` of the page before; without it, the first page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// The most messages: 1 to 256, default 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// The answer to `get_messages_page`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MessagesPage {
    /// Messages of the context, oldest first: at most 768 KiB, or one message.
    pub messages: Vec<Json<Message>>,
    /// The messages of the context, of all pages together.
    pub total_messages: u64,
    /// Gives the next page, as long as the context is what it is now; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
