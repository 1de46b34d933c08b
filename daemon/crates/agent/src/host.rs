//! What the loop needs from whoever runs it.

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

/// The loop's surroundings: the session that keeps the transcript, the queues and the listeners.
///
/// Every method may wait, for the disk or for slow listeners; the loop goes no further meanwhile. That is the back
/// pressure which reaches the provider's connection in the end.
pub trait Host: Send {
    /// Publishes an event. A message whose `message_end` is published is on disk, and part of the context, first.
    ///
    /// # Errors
    /// Fails when the message could not be stored, or the session is gone. The loop then ends the run.
    fn emit(&mut self, event: Event) -> impl Future<Output = Result<(), HostError>> + Send;

    /// What is to be delivered next from a queue. It stays queued until [`Host::deliver`].
    ///
    /// # Errors
    /// Fails when the session is gone.
    fn next_queued(
        &mut self,
        kind: QueueKind,
    ) -> impl Future<Output = Result<Vec<QueuedMessage>, HostError>> + Send;

    /// Takes a message out of its queue, and says so to the listeners; false when it no longer waits there.
    ///
    /// # Errors
    /// Fails when the session is gone.
    fn deliver(&mut self, ticket: Ticket) -> impl Future<Output = Result<bool, HostError>> + Send;

    /// A turn has ended and another one follows: the time to make room in the context.
    ///
    /// # Errors
    /// Fails when the session is gone, or its file cannot be written.
    fn between_turns(&mut self) -> impl Future<Output = Result<(), HostError>> + Send {
        std::future::ready(Ok(()))
    }

    /// A turn begins: what the model has to be told first, because its tools, or the prompt with them, are not what the
    /// transcript says any more. Is not asked at the turn that begins with the messages of [`crate::RunStart`], which say it.
    /// What it gives is published and stored as any message.
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

    /// Decides about an answer that failed or was aborted: true when the caller of [`crate::run`] will ask again, which
    /// `agent_end` then says. `failure` is what the provider said, where it was asked.
    fn will_retry(
        &mut self,
        answer: &AssistantMessage,
        failure: Option<&Failure>,
    ) -> impl Future<Output = bool> + Send;

    /// Waits until somebody wants to know what is in flight; for ever where nobody can ask. Cancel safe.
    fn in_flight_query(&mut self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }

    /// Whether somebody wants to know right now. Looked at before every delta, so it must cost next to nothing.
    fn has_in_flight_query(&self) -> bool {
        false
    }

    /// Tells who asked what is in flight, after everything that was emitted so far.
    ///
    /// # Errors
    /// Fails when the session is gone.
    fn answer_in_flight_query(
        &mut self,
        _in_flight: InFlight,
    ) -> impl Future<Output = Result<(), HostError>> + Send {
        std::future::ready(Ok(()))
    }

    /// These calls are about to run. What is to be known of that after a crash is on disk once this returns.
    ///
    /// # Errors
    /// Fails when it could not be written, or the session is gone. The calls do not run then.
    fn calls_begin(&mut self, _calls: &[&ToolCall]) -> impl Future<Output = Result<(), HostError>> + Send {
        std::future::ready(Ok(()))
    }

    /// One of several calls that run side by side has ended; its result is emitted when all have. Is called before that end is
    /// published.
    fn call_ended(&mut self, _result: ToolResultMessage) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Waits until somebody wants to know what is in flight, or what the model streamed is to be kept. Cancel safe.
    fn interrupted(&mut self) -> impl Future<Output = StreamInterrupt> + Send {
        async {
            self.in_flight_query().await;
            StreamInterrupt::InFlightQuery
        }
    }

    /// Whether it is to be kept right now. Looked at before every delta, so it must cost next to nothing.
    fn is_save_due(&self) -> bool {
        false
    }

    /// Keeps what the model streamed since it was asked, or since the last call.
    fn save_streamed(&mut self, _pieces: Vec<AnswerPiece>) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// The calls of an answer begin. When `stop` fires they end, those that have not started do not, and the run goes on.
    fn tools_begin(&mut self, _stop: CancellationToken) {}

    /// The calls of that answer have ended, and their results were emitted; `stopped` are those that ran when they were
    /// stopped. Is called after every [`Host::tools_begin`] but when the session is gone.
    ///
    /// # Errors
    /// Fails when the session is gone.
    fn tools_end(
        &mut self,
        _stopped: Vec<StoppedCall>,
    ) -> impl Future<Output = Result<(), HostError>> + Send {
        std::future::ready(Ok(()))
    }

    /// A call was stopped and does not end. It got its result without that, and goes on by itself until `over` fires.
    fn call_survives(&mut self, _call: &ToolCall, _over: CancellationToken) {}

    /// The provider took too long: hears of it before it is asked again or the answer fails.
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

    /// What makes images fit for models, as the session's settings have it.
    fn images(&self) -> Images;

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
    /// Whether it had not ended when it was given up.
    pub survives: bool,
}

/// What there is to do while an answer streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamInterrupt {
    /// Somebody wants to know what is in flight.
    InFlightQuery,
    /// What came so far is to be kept ([`Host::save_streamed`]).
    SaveDue,
}

/// Everything that one model call and its tool calls need.
#[derive(Clone)]
pub struct TurnSetup {
    /// Speaks the model's wire API.
    pub provider: Arc<dyn Provider>,
    /// The question.
    pub request: Request,
    /// The tools that can be called.
    pub tools: Arc<ToolSet>,
    /// Asks whoever watches, and may change, tool calls.
    pub gate: HookGate,
    /// Whether calls run one after the other even where they need not.
    pub sequential_tools: bool,
    /// The session's working directory.
    pub cwd: PathBuf,
    /// Variables of the session for child processes.
    pub session_env: Vec<(String, String)>,
    /// The complete environment of child processes, where it is not the session's.
    pub environment: Option<ToolEnvironment>,
}

/// Why the loop cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// A message could not be written.
    #[error("{0}")]
    NotStored(String),
    /// The session is gone.
    #[error("the session was closed")]
    Gone,
}

/// Why there is no next model call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TurnSetupError {
    /// The model cannot be asked.
    #[error("{message}")]
    Refused {
        /// Why, for people.
        message: String,
        /// The wire API of the model that was to be asked.
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
