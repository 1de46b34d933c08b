//! The program as a state, messages that change it, and effects that are left to the outside.

mod chat;
mod commands;
mod completing;
mod dispatch;
mod events;
mod keys;
mod messages;
mod replies;
mod sending;
mod showing;

pub(crate) use self::{
    chat::{Chat, Connection, Panel},
    dispatch::update,
    messages::{Call, CallFailure, Effect, Message, Opened, Reply, SwitchTo},
};
