//! Showing things to the user and asking them, through the clients that are connected.
//!
//! [`Ui`] is held by the parts that ask; the actor keeps unanswered dialogs ([`PendingDialogs`]) and publishes them, so that a
//! client that joins finds each dialog either in its snapshot or among the events that follow, never in both.

mod asking;
mod dialog;

pub use self::{
    asking::Ui,
    dialog::{Asker, Dialog, DialogAnswer, Notice, PresenceGuard, UiAbilities},
};
pub(crate) use self::{
    asking::{UiMessage, request},
    dialog::{PendingDialogs, Presence},
};
