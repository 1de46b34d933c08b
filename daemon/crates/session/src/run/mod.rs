//! One run of a session, from the prompt to the point where the session is idle again.
//!
//! A run is a task that asks models and tools and sends the actor [run messages](RunMessage); the actor publishes and stores.
//! It goes no further than the actor lets it, which is no further than the slowest subscriber.

mod agent_host;
mod boundary;
mod budget;
mod channels;
mod compact;
mod drive;
mod extension_events;
mod fallback;
mod host;
mod intents;
mod message;
mod observed;
mod open_events;
mod prepare;
mod route;
mod rule_watch;
mod shell_hooks;
mod slot;
mod stream_rules;
mod turn_boundary;

pub(crate) use channels::{DetachedCalls, Prompt, RunBeginning, RunChannels};
pub(crate) use drive::drive;
pub(crate) use message::{
    BoundaryMessage, ContextFill, ModelInputs, RUN_MESSAGES, RUN_MESSAGES_AT_ONCE, RunMessage,
};
pub(crate) use open_events::{OpenCall, OpenEvents, OpenParts};
pub(crate) use prepare::rendered as rendered_prompt;
pub(crate) use slot::{FinishedRun, NextUserMessage, RunSlot};
