//! The channels between a run and its session.

use std::sync::{Arc, Mutex, PoisonError};

use agentd_protocol::{
    command::{Work, WorkKind},
    message::{CustomMessage, ImageContent, ToolCall},
    settings::BudgetLimits,
};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{message::RunMessage, open_events::OpenEvents};
use crate::{abort::AbortSwitch, child_environment::ChildEnvironment, transcript::SessionIntentLog};

/// The prompt of a run.
#[derive(Debug)]
pub(crate) struct Prompt {
    pub(crate) text: String,
    pub(crate) images: Vec<ImageContent>,
    /// Messages of extensions that come after it.
    pub(crate) also: Vec<CustomMessage>,
    /// The limits of its run.
    pub(crate) budget: Option<BudgetLimits>,
    /// The span that its run belongs to.
    pub(crate) traceparent: Option<String>,
}

/// The beginning of a run.
#[derive(Debug)]
pub(crate) enum RunBeginning {
    /// With a message of the user's.
    Prompt(Prompt),
    /// With what a crash interrupted: the intent log has the run already.
    AfterCrash,
    /// With the context as it stands.
    Context,
    /// With what waits in the queues.
    Queued,
    /// With a message of an extension.
    Custom(Box<CustomMessage>),
}

/// The channels between a run and its session.
pub(crate) struct RunChannels {
    /// Sends run messages to the actor.
    pub(crate) to_actor: mpsc::Sender<RunMessage>,
    /// Asks what is in flight.
    pub(crate) questions: mpsc::Receiver<()>,
    /// Stops the calls of an answer.
    pub(crate) abort: AbortSwitch,
    /// Stops the run.
    pub(crate) cancel: CancellationToken,
    /// The intent log.
    pub(crate) intent_log: SessionIntentLog,
    /// Tracks its events that have begun and not ended.
    pub(crate) open_events: OpenEvents,
    /// Calls that were stopped and do not end.
    pub(crate) survivors: DetachedCalls,
    /// Fires once the extensions have seen the session begin; `None` without extensions.
    pub(crate) extensions_started: Option<CancellationToken>,
    /// Fires once the shell hooks have seen the session begin; `None` where that is over.
    pub(crate) hooks_started: Option<CancellationToken>,
    /// The environment of commands, where the client that began the run has its own.
    pub(crate) environment: Option<ChildEnvironment>,
}

/// Shared by the run that leaves them behind and the actor that tells of them.
#[derive(Clone, Default)]
pub(crate) struct DetachedCalls(Arc<Mutex<Vec<(Work, CancellationToken)>>>);

impl DetachedCalls {
    /// A call is left to itself until `over` fires.
    pub(crate) fn add(&self, call: &ToolCall, over: CancellationToken) {
        let id = Some(Value::String(call.id.clone()));
        let work = Work { kind: WorkKind::Tool, id, name: Some(call.name.clone()) };
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        left.retain(|(_, over)| !over.is_cancelled());
        left.push((work, over));
    }

    /// The calls that have not ended.
    pub(crate) fn works(&self) -> Vec<Work> {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        left.retain(|(_, over)| !over.is_cancelled());
        left.iter().map(|(work, _)| work.clone()).collect()
    }
}
