//! What looks on while a session works: telemetry.
//!
//! The session calls an observer where it publishes what it does. An observer changes nothing and never waits; a session without one
//! pays a branch at each of these places. Deltas of answers and partial results of tools are not observed.

use std::sync::Arc;

use agentd_ai::failure::Failure;
use agentd_protocol::{
    Json,
    error::ErrorCode,
    event::Event,
    message::{AssistantMessage, Message},
    model::{Model, ThinkingLevel},
};

/// Makes the observers of sessions.
pub trait Observers: Send + Sync {
    /// The observer of the session with this id, which counts as loaded until the observer is dropped.
    fn session(&self, id: &str) -> Arc<dyn SessionObserver>;
}

/// Looks on while one session works. Every method returns at once, and calls may come from several tasks.
pub trait SessionObserver: Send + Sync {
    /// A run begins: its checks, before any event. `traceparent` is that of its prompt.
    fn run_begins(&self, traceparent: Option<&str>);

    /// The run is over. `refused`: the code of the failure when it did not get past its checks. Called once for each
    /// [`SessionObserver::run_begins`], for a run that panics, too.
    fn run_ends(&self, refused: Option<ErrorCode>);

    /// An event goes out. Called for the events of runs, compactions, permissions and budgets; never for deltas.
    fn event(&self, event: &Event);

    /// A model is asked. The returned number names the call.
    fn call_begins(&self, call: &ModelCall<'_>) -> u64;

    /// The answer to a call is whole, has failed or was aborted. A call of a task that was dropped has no end of its own: it ends with
    /// its turn or compaction.
    fn call_ends(&self, call: u64, answer: &AssistantMessage, failure: Option<&Failure>);

    /// The `traceparent` for commands of the current turn, if they are to get one.
    fn traceparent(&self) -> Option<String>;
}

/// A call of a model that begins.
#[derive(Debug, Clone, Copy)]
pub struct ModelCall<'a> {
    /// The model.
    pub model: &'a Model,
    /// The thinking level.
    pub level: ThinkingLevel,
    /// The transcript.
    pub messages: &'a [Json<Message>],
    /// What for.
    pub purpose: CallPurpose,
}

/// The purpose of a model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallPurpose {
    /// An answer of a run.
    Answer,
    /// A summary, of a compaction or of a branch.
    Summary,
    /// Something that an extension asks.
    Extension,
}
