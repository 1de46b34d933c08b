//! The JSON of this API. Private to this folder.

pub(super) mod incoming;
pub(super) mod outgoing;
