//! Shell hooks: programs of the user or of a trusted project that are asked, or told, when something happens in a session.
//!
//! The form is the one that users of Claude Code know: the key `hooks` of a `settings.json`, and executables in `hooks/pre` and
//! `hooks/post`. [`load`] reads them into a [`HookSet`], [`HookRunner`] runs those that an event is for, side by side, and merges their
//! answers in order into one [`HookOutcome`]. An answer can make something stricter and never looser: see [`HookOutcome`].
//!
//! This crate knows nothing of sessions: it is given facts, and says what the hooks want.

mod arguments;
mod config;
mod dialect;
mod event;
mod executables;
mod hook;
mod input;
mod load;
mod matcher;
mod outcome;
mod process;
mod reply;
mod runner;
mod set;

pub use self::{
    event::HookEvent,
    hook::{Hook, HookOrigin, HookProgram},
    input::{HookFacts, HookInput, ToolCallFacts},
    load::{HookOptions, HookSources, load},
    outcome::{HookOutcome, NamedText},
    runner::{HookRunner, HookSandbox},
    set::HookSet,
};
