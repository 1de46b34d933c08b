//! The `pi-messages` API: a gateway that takes the transcript as it is and sends the events that clients get.

mod decode;
mod encode;
mod incoming;
mod provider;

pub(crate) use provider::PiMessages;
