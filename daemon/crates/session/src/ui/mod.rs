//! Showing things to the user and asking them, through the clients that are connected.
//!
//! [`Ui`] is held by the parts that ask; the actor keeps unanswered dialogs ([`PendingDialogs`]) and publishes them, so that a
//! client that joins finds each dialog either in its snapshot or among the events that follow, never in both.
//!
//! A part that asks waits for the answer; the actor publishes the dialog as an event, and hands the first answer back. Each event says for
//! whom it is; the log passes it to all, and each connection's writer leaves out events that its client must not see. The number of clients
//! that could answer (`Presence`) is kept beside the event log, which outlives the loaded session.

mod asking;
mod dialog;
mod pending;

pub use self::{
    asking::Ui,
    dialog::{Asker, Dialog, DialogAnswer, Notice, PresenceGuard, UiAbilities},
};
pub(crate) use self::{
    asking::{ParentUi, UiMessage, request},
    dialog::Presence,
    pending::{EndedDialog, PendingDialogs},
};
