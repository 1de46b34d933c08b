//! The part of the protocol for one daemon with many sessions and clients: introductions, sessions by name, attaching, status.

mod activity;
mod sessions;
mod status;

pub use self::{activity::*, sessions::*, status::*};
