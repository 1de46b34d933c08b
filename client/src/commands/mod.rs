//! One file per verb.

pub(crate) mod abort;
pub(crate) mod anyone;
pub(crate) mod ask;
pub(crate) mod attach;
pub(crate) mod auth;
pub(crate) mod complete;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod daemon;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod fork;
pub(crate) mod live;
pub(crate) mod man;
pub(crate) mod models;
pub(crate) mod one_call;
pub(crate) mod prompt;
pub(crate) mod ps;
mod questions;
pub(crate) mod rpc;
pub(crate) mod sessions;
pub(crate) mod setup;
pub(crate) mod steer;
pub(crate) mod tools;
pub(crate) mod tree;
pub(crate) mod watch;
pub(crate) mod which;
