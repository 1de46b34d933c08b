//! Commands about the user's set-up instead of a session: models, keys, diagnosis. They run beside the sessions and see what a
//! session that started now would see.

mod context;
mod credentials;
mod dispatch;
mod doctor;
mod models;
mod outputs;
mod prompt_history;
mod setup;

pub use context::Context;
pub(crate) use dispatch::answer;
