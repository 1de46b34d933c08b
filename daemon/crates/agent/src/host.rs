//! The interface between the loop and the session that runs it.

use std::{path::PathBuf, sync::Arc};

use agentd_ai::{AnswerPiece, Provider, Request, Stall, failure::Failure};
use agentd_images::Images;
use agentd_protocol::{
    Json,
    daemon::InFlight,
    event::Event,
    message::{AssistantMessage, Message, ToolCall, ToolResultMessage},
    model::Model,
};
use tokio_util::sync::CancellationToken;

use crate::{
    hooks::HookGate,
    queue::{QueueKind, QueuedMessage, Ticket},
    tool::{ToolEnvironment, ToolSet},
};

/// The host of the loop: the session that keeps the transcript, the queues and the subscribers.
///
/// Every method may wait for the disk or for slow subscribers; the loop waits, too. This is the back pressure that finally reaches the
/// provider's connection.
pub trait Host: Send {
    /// Publishes an event. A message whose `message_end` is published is on disk, and part of the context, first.
    ///
    /// # Errors
    /// Fails when the message could not be stored, or the session is gone. The loop then ends the run.
    fn emit(&mut self, event: Event) -> impl Future<Output = Result<(), HostError>> + Send;

    /// The next messages of a queue. They stay queued until [`Host::deliver`].
    ///
    /// # Errors
    /// Fails when the session is gone.
    fn next_queued(
        &mut self,
        kind: QueueKind,
    ) -> impl Future<Output = Result<Vec<QueuedMessage>, HostError>> + Send;

    /// Takes a message out of its queue and publishes that; false if it is no longer queued.
    ///
    /// # Errors
    /// Fails when the session is gone.
    fn deliver(&mut self, ticket: Ticket) -> impl Future<Output = Result<bool, HostError>> + Send;

    /// Called between two turns, the time to compact the context.
    ///
    /// # Errors
    /// Fails when the session is gone, or its file cannot be written.
    fn between_turns(&mut self) -> impl Future<Output = Result<(), HostError>> + Send {
        std::future::ready(Ok(()))
    }

    /// Called at the beginning of a turn: the system message that is due because the tools, or the prompt with them, have changed since the
    /// transcript. Not called for the turn that begins with the messages of [`crate::RunStart`], which include it. The message is published
    /// and stored like any other.
    ///
    /// # Errors
    /// Fails when the session is gone.
    fn turn_begins(&mut self) -> impl Future<Output = Result<Option<Json<Message>>, HostError>> + Send {
        std::future::ready(Ok(None))
    }

    /// Puts together the next model call from the context as it stands now.
    ///
    /// # Errors
    /// [`TurnSetupError::Refused`] when the model cannot be asked (no key, say): that becomes a failed answer.
    fn setup(&mut self) -> impl Future<Output = Result<TurnSetup, TurnSetupError>> + Send;

    /// Decides about an answer that failed or was aborted: true if the caller of [`crate::run`] will retry, which `agent_end` then reports.
    /// `failure`: the provider's failure, if it was asked.
    fn will_retry(
        &mut self,
        answer: &AssistantMessage,
        failure: Option<&Failure>,
    ) -> impl Future<Output = bool> + Send;

    /// Why the answer that streams is to be stopped, though nobody aborts the run. Asked after each delta was emitted, so it must cost next
    /// to nothing. The answer then ends as aborted, and [`Host::goes_on_after`] says how the run goes on.
    fn interruption(&mut self) -> Option<Failure> {
        None
    }

    /// Called for an answer that an interruption has stopped, once it is stored: the message with which the next turn begins. `None` ends
    /// the run as for any aborted answer.
    ///
    /// # Errors
    /// Fails when the session is gone, or its file cannot be written.
    fn goes_on_after(
        &mut self,
        _answer: &AssistantMessage,
    ) -> impl Future<Output = Result<Option<Json<Message>>, HostError>> + Send {
        std::future::ready(Ok(None))
    }

    /// Waits for a query about what is in flight; forever if there can be none. Cancel safe.
    fn in_flight_query(&mut self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }

    /// Whether a query waits right now. Called before every delta, so it must cost next to nothing.
    fn has_in_flight_query(&self) -> bool {
        false
    }

    /// Answers the queries about what is in flight, after everything that was emitted so far.
    ///
    /// # Errors
    /// Fails when the session is gone.
    fn answer_in_flight_query(
        &mut self,
        _in_flight: InFlight,
    ) -> impl Future<Output = Result<(), HostError>> + Send {
        std::future::ready(Ok(()))
    }

    /// Called before these calls run. The intents for crash recovery are on disk when this returns.
    ///
    /// # Errors
    /// Fails when it could not be written, or the session is gone. The calls do not run then.
    fn calls_begin(&mut self, _calls: &[&ToolCall]) -> impl Future<Output = Result<(), HostError>> + Send {
        std::future::ready(Ok(()))
    }

    /// Called when one of several calls that run side by side has ended, before that end is published. Its result is emitted when all have
    /// ended.
    fn call_ended(&mut self, _result: ToolResultMessage) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Waits for a query about what is in flight, or until streamed content is to be saved. Cancel safe.
    fn interrupted(&mut self) -> impl Future<Output = StreamInterrupt> + Send {
        async {
            self.in_flight_query().await;
            StreamInterrupt::InFlightQuery
        }
    }

    /// Whether streamed content is to be saved right now. Called before every delta, so it must cost next to nothing.
    fn is_save_due(&self) -> bool {
        false
    }

    /// Saves what the model streamed since the request, or since the last call.
    fn save_streamed(&mut self, _pieces: Vec<AnswerPiece>) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Called before the calls of an answer. When `stop` fires, running calls end, waiting ones do not start, and the run goes on.
    fn tools_begin(&mut self, _stop: CancellationToken) {}

    /// Called after the calls of an answer have ended and their results were emitted. `stopped`: those that were running when they were
    /// stopped. Called after every [`Host::tools_begin`] unless the session is gone.
    ///
    /// # Errors
    /// Fails when the session is gone.
    fn tools_end(
        &mut self,
        _stopped: Vec<StoppedCall>,
    ) -> impl Future<Output = Result<(), HostError>> + Send {
        std::future::ready(Ok(()))
    }

    /// Called for each call that is about to run. A refusal becomes the result of the call.
    fn admit_call(&mut self, _call: &ToolCall) -> impl Future<Output = Result<(), String>> + Send {
        std::future::ready(Ok(()))
    }

    /// Why the run was stopped, where that was no abort: the answer that ends it says so instead.
    fn stopped_by(&self) -> Option<Failure> {
        None
    }

    /// Called for a call that was stopped and does not end. It got its result anyway, and goes on detached until `over` fires.
    fn call_survives(&mut self, _call: &ToolCall, _over: CancellationToken) {}

    /// Called when the provider exceeded a deadline, before the request is sent again or the answer fails.
    ///
    /// # Errors
    /// Fails when the session is gone.
    fn stalled(
        &mut self,
        _model: &Model,
        _stall: Stall,
    ) -> impl Future<Output = Result<(), HostError>> + Send {
        std::future::ready(Ok(()))
    }

    /// The preparation of images for models, by the session's settings.
    fn images(&self) -> Images;

    /// Whether the model is asked once more, though it is done. Asked once after each turn.
    fn goes_on(&mut self) -> bool {
        false
    }

    /// Whether the run ends here, though the model waits for the results of its calls. Asked once after each turn.
    fn ends_here(&mut self) -> bool {
        false
    }

    /// Adds to the message of a result what the host knows of its call.
    fn complete_result(&mut self, message: ToolResultMessage) -> ToolResultMessage {
        message
    }

    /// Milliseconds since the Unix epoch.
    fn now_ms(&self) -> i64;
}

/// A tool call that was stopped while it ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoppedCall {
    /// The id of the call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Whether it was given up before it ended.
    pub survives: bool,
}

/// An interruption while an answer streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamInterrupt {
    /// A query about what is in flight.
    InFlightQuery,
    /// Streamed content is to be saved ([`Host::save_streamed`]).
    SaveDue,
}

/// The setup of a turn: all that one model call and its tool calls need.
#[derive(Clone)]
pub struct TurnSetup {
    /// Speaks the model's API.
    pub provider: Arc<dyn Provider>,
    /// The request.
    pub request: Request,
    /// The active tools.
    pub tools: Arc<ToolSet>,
    /// Asks the hooks, which watch and may change tool calls.
    pub gate: HookGate,
    /// Whether calls run one after the other even if they could run side by side.
    pub sequential_tools: bool,
    /// The session's working directory.
    pub cwd: PathBuf,
    /// Variables of the session for child processes.
    pub session_env: Vec<(String, String)>,
    /// The complete environment of child processes, if it is not the session's.
    pub environment: Option<ToolEnvironment>,
}

/// The reason why the loop cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// A message could not be written.
    #[error("{0}")]
    NotStored(String),
    /// The session is gone.
    #[error("the session was closed")]
    Gone,
}

/// The reason why there is no next model call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TurnSetupError {
    /// The model cannot be asked.
    #[error("{message}")]
    Refused {
        /// Why, for people.
        message: String,
        /// The API of the model.
        api: String,
        /// Its provider.
        provider: String,
        /// Its id.
        model: String,
    },
    /// The loop cannot go on at all.
    #[error(transparent)]
    Host(#[from] HostError),
}
