//! One file per verb.

pub(crate) mod anyone;
pub(crate) mod attach;
pub(crate) mod auth;
pub(crate) mod daemon;
pub(crate) mod doctor;
pub(crate) mod models;
pub(crate) mod one_call;
pub(crate) mod prompt;
pub(crate) mod sessions;
pub(crate) mod setup;
