//! One file per verb.

pub(crate) mod auth;
pub(crate) mod doctor;
pub(crate) mod models;
pub(crate) mod one_call;
pub(crate) mod prompt;
pub(crate) mod setup;
