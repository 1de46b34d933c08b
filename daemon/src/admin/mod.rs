//! Commands about the user's set-up instead of a session: models, keys, what is wrong. They run beside the session and
//! see what a session that started now would see.

mod catalogue;
mod context;
mod credentials;
mod dispatch;
mod doctor;
mod login;
mod models;
mod outputs;
mod setup;

pub use context::Context;
pub(crate) use dispatch::answer;
