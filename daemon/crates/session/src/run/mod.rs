//! One run of a session, from the prompt to the point where the session is idle again.
//!
//! The run drives, the actor publishes and persists: a run is a task that asks models and tools and sends what happens
//! to the actor as steps. It goes no further than the actor lets it, which is no further than the slowest subscriber.

mod compact;
mod drive;
mod fallback;
mod host;
mod intents;
mod open_events;
mod prepare;
mod retry;

pub(crate) use drive::{Prompt, RunBeginning, RunChannels, drive};
pub(crate) use open_events::{OpenEvents, OpenParts};
pub(crate) use retry::{Retries, RetryPolicy};
