//! The JSON of this API.

pub(super) mod incoming;
pub(super) mod outgoing;
