//! One run of a session, from the prompt to the point where the session is idle again.
//!
//! The run drives, the actor publishes and persists: a run is a task that asks models and tools and sends what happens
//! to the actor as steps. It goes no further than the actor lets it, which is no further than the slowest subscriber.

mod compact;
mod drive;
mod fallback;
mod host;
mod intents;
mod prepare;
mod retry;
mod told;

pub(crate) use drive::{Beginning, Prompt, Way, drive};
pub(crate) use retry::{Retries, RetryPolicy};
pub(crate) use told::{Open, Told};
