//! The JSON of the Converse API. Private to this folder.

pub(super) mod incoming;
pub(super) mod outgoing;
