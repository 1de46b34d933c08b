//! The boundaries of a run: after each turn, and before it settles. Extensions may add entries there, and have the model asked once more.

use agentd_agent::HostError;
use agentd_extensions::EventKind;
use agentd_protocol::{
    event::TurnEnd,
    message::{Message, StopReason},
};
use futures::FutureExt as _;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use super::{
    host::RunHost,
    message::{BoundaryMessage, RunMessage},
};

/// How a turn ended, as extensions are told.
fn outcome(stop: Option<StopReason>) -> &'static str {
    match stop {
        Some(StopReason::Error) => "error",
        Some(StopReason::Aborted) => "aborted",
        _ => "completed",
    }
}

impl RunHost {
    /// The end of a turn: its handlers are asked before clients are told.
    ///
    /// # Errors
    /// The session is gone.
    pub(super) async fn turn_boundary(&mut self, end: &TurnEnd) -> Result<(), HostError> {
        let stop = match end.message.get() {
            Some(Message::Assistant(answer)) => Some(answer.stop_reason),
            _ => None,
        };
        self.boundary.outcome = stop;
        let mut fields = Map::new();
        fields.insert("turnIndex".to_owned(), self.turn_index.saturating_sub(1).into());
        fields.insert("message".to_owned(), json!(end.message));
        fields.insert("toolResults".to_owned(), json!(end.tool_results));
        fields.insert("messageEntryId".to_owned(), json!(self.boundary.answer));
        fields.insert("toolResultEntryIds".to_owned(), json!(self.boundary.results));
        fields.insert("outcome".to_owned(), outcome(stop).into());
        self.boundary.goes_on = self.at_boundary(EventKind::TurnEnd, fields).await?;
        Ok(())
    }

    /// The run is about to settle; true where the model is to be asked once more.
    pub(super) async fn settle_boundary(&mut self) -> bool {
        let listens = |kind| self.context.extensions.as_ref().is_some_and(|it| it.listens(kind));
        if self.is_cancelled() || !listens(EventKind::AgentBeforeSettle) {
            return false;
        }
        let fields = Map::from_iter([("outcome".to_owned(), outcome(self.boundary.outcome).into())]);
        // A session that is gone has nobody to tell.
        self.at_boundary(EventKind::AgentBeforeSettle, fields).await.unwrap_or(false)
    }

    /// Asks the handlers of a boundary, and does what they say. True where the model is to be asked once more.
    async fn at_boundary(&mut self, kind: EventKind, fields: Map<String, Value>) -> Result<bool, HostError> {
        let Some(extensions) = self.context.extensions.clone() else { return Ok(false) };
        let (asked, to_actor) = (extensions.clone(), self.channels.to_actor.clone());
        let asking = async move {
            let check = |drafts: Vec<Value>| {
                let to_actor = to_actor.clone();
                async move {
                    let (reply, answer) = oneshot::channel();
                    let message = RunMessage::Boundary(Box::new(BoundaryMessage::Check { drafts, reply }));
                    let gone = || "the session is closed".to_owned();
                    to_actor.send(message).await.map_err(|_| gone())?;
                    answer.await.unwrap_or_else(|_| Err(gone()))
                }
                .boxed()
            };
            asked.boundary(kind, &fields, &check).await
        };
        // Boxed: the run's future has no room for what only sessions with extensions do.
        let Some(Some(boundary)) = self.handled(Box::pin(asking)).await? else { return Ok(false) };
        if !boundary.entries.is_empty() {
            let drafts = boundary.entries;
            let ask = |reply| RunMessage::Boundary(Box::new(BoundaryMessage::Append { drafts, reply }));
            if let Err(error) = self.ask(ask).await? {
                extensions.boundary_failed(kind, format!("Invalid boundary entries: {error}"));
                return Ok(false);
            }
        }
        let has_failed = matches!(self.boundary.outcome, Some(StopReason::Error | StopReason::Aborted));
        if !boundary.goes_on || has_failed || self.is_cancelled() {
            return Ok(false);
        }
        let is_last = kind == EventKind::AgentBeforeSettle;
        let ask = |reply| RunMessage::Boundary(Box::new(BoundaryMessage::CanContinue { is_last, reply }));
        let can_continue = self.ask(ask).await?;
        if !can_continue {
            let name = kind.name();
            let text = format!("{name} requested continuation without runnable model context");
            extensions.boundary_failed(kind, text);
        }
        Ok(can_continue)
    }
}
