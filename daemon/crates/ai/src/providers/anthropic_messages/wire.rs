//! The JSON of the messages API. Private to this folder.

pub(super) mod incoming;
pub(super) mod outgoing;
