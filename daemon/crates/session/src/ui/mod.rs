//! What is shown to the user and asked of them, through whatever clients there are.
//!
//! [`Ui`] is held by those who ask; the actor keeps what is not answered yet ([`PendingDialogs`]) and publishes it, so that
//! a subscriber that joins finds each dialog either in its snapshot or among the events that follow, never in both.

mod asking;
mod dialog;
mod pending;
mod presence;

pub use self::{
    asking::Ui,
    dialog::{Asker, Dialog, DialogAnswer, Notice},
    presence::{PresenceGuard, UiAbilities},
};
pub(crate) use self::{
    asking::{UiMessage, request},
    pending::PendingDialogs,
    presence::Presence,
};
