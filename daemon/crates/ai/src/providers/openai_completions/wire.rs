//! The JSON of the chat completions API. Private to this folder.

pub(super) mod incoming;
pub(super) mod outgoing;
