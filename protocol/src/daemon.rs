//! The part of the protocol for one daemon with many sessions and clients: introductions, sessions by name, attaching, status.

mod sessions;
mod status;

pub use self::{sessions::*, status::*};
