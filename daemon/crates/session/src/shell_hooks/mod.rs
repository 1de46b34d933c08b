//! The shell hooks of a session: where its work asks them and tells them, and what becomes of their answers.
//!
//! The actor never waits for a hook. Who waits is the run, or a task.

mod gate;
mod messages;
mod open;
mod session_hooks;

pub(crate) use self::{
    messages::{JudgedPrompt, context_message, prompt_refused, stop_message},
    open::{HookPlace, load_hooks},
    session_hooks::{HookSurroundings, SessionHooks},
};
