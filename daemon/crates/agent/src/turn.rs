//! One model call: deltas in, one assistant message out.

use std::time::Instant;

use agentd_ai::{Accumulator, Delta, DeltaStream, SeenContent, failure::Failure, failure::FailureKind};
use agentd_protocol::{
    Json,
    event::{MessageEnd, MessageStart, MessageUpdate},
    message::{AssistantMessage, Message, StopReason},
};
use futures::StreamExt;
use tokio_util::sync::CancellationToken;

use crate::{Host, HostError, StreamInterrupt, TurnSetup, in_flight};

/// Sends one request and emits the answer as it streams.
///
/// A provider that fails before it answers gives `message_start` with the final message at once.
///
/// # Errors
/// As [`Host::emit`]. Dropping the stream then closes the connection.
pub(crate) async fn ask<H: Host>(
    host: &mut H,
    setup: &TurnSetup,
    cancel: &CancellationToken,
) -> Result<Answer, HostError> {
    let model = &setup.request.model;
    let frame = AssistantMessage::pending(&model.api, &model.provider, &model.id, host.now_ms());
    let level = setup.request.thinking_level.as_str().to_owned();
    let begun = Instant::now();
    let mut accumulator = Accumulator::new(std::sync::Arc::clone(model), frame.timestamp);
    let mut started = false;
    let mut kept = SeenContent::default();
    let mut interrupted = None;
    if cancel.is_cancelled() {
        accumulator.fold(aborted(host));
    } else {
        let mut deltas = setup.provider.stream(setup.request.clone(), cancel.clone());
        while !accumulator.is_finished() {
            match next(host, &mut deltas).await {
                Next::Asked => {
                    let so_far = if started {
                        in_flight::answer(accumulator.so_far())
                    } else {
                        in_flight::nothing_in_flight()
                    };
                    host.answer_in_flight_query(so_far?).await?;
                }
                Next::Keep => host.save_streamed(accumulator.since(&mut kept)).await,
                Next::Delta(Some(Delta::Started)) if !started => {
                    started = true;
                    let message = message(Message::Assistant(frame.clone()))?;
                    host.emit(MessageStart { message }.into()).await?;
                }
                Next::Delta(Some(Delta::Stalled(stall))) => host.stalled(model, stall).await?,
                Next::Delta(Some(Delta::Failed { failure, .. })) if failure.kind == FailureKind::Aborted => {
                    accumulator.fold(aborted(host));
                }
                Next::Delta(Some(delta)) => {
                    if let Some(assistant_message_event) = accumulator.fold(delta) {
                        let usage = accumulator.usage_json();
                        host.emit(MessageUpdate { usage, assistant_message_event }.into()).await?;
                        // What comes of the provider after this is dropped with its stream.
                        if let Some(failure) = host.interruption().filter(|_| !accumulator.is_finished()) {
                            interrupted = Some(failure.message.clone());
                            accumulator.fold(Delta::Failed { failure, raw_stop_reason: None });
                        }
                    }
                }
                Next::Delta(None) => {
                    accumulator.fold(if cancel.is_cancelled() { aborted(host) } else { ended_early() });
                }
            }
        }
    }
    let failure = accumulator.failure().cloned();
    let mut answer = accumulator.into_message();
    answer.duration_ms = Some(u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX));
    answer.thinking_level = Some(level);
    if let Some(why) = interrupted {
        // Of an abort, clients know one text; this is none.
        answer.error_message = Some(why);
    }
    Ok(Answer { failure, ..emit_whole(host, answer, started).await? })
}

/// The next thing to do while an answer streams.
enum Next {
    /// A delta of the provider; `None` at the end of its stream.
    Delta(Option<Delta>),
    /// A query about what is in flight.
    Asked,
    /// Streamed content is to be saved.
    Keep,
}

/// Waits for the provider or an interruption. Queries are checked before each delta, so that a fast model does not delay them; the check is
/// cheap.
async fn next<H: Host>(host: &mut H, deltas: &mut DeltaStream) -> Next {
    if host.has_in_flight_query() {
        host.in_flight_query().await;
        return Next::Asked;
    }
    if host.is_save_due() {
        return Next::Keep;
    }
    tokio::select! {
        biased;
        delta = deltas.next() => Next::Delta(delta),
        disturbance = host.interrupted() => match disturbance {
            StreamInterrupt::InFlightQuery => Next::Asked,
            StreamInterrupt::SaveDue => Next::Keep,
        },
    }
}

/// Emits an answer that failed before any model could be asked.
///
/// # Errors
/// As [`Host::emit`].
pub(crate) async fn fail<H: Host>(host: &mut H, answer: AssistantMessage) -> Result<Answer, HostError> {
    emit_whole(host, answer, false).await
}

/// A complete answer, in both forms.
pub(crate) struct Answer {
    pub(crate) json: Json<Message>,
    pub(crate) message: AssistantMessage,
    /// The provider's failure, if the answer failed.
    pub(crate) failure: Option<Failure>,
}

async fn emit_whole<H: Host>(
    host: &mut H,
    answer: AssistantMessage,
    started: bool,
) -> Result<Answer, HostError> {
    let json = message(Message::Assistant(answer.clone()))?;
    if !started {
        host.emit(MessageStart { message: json.clone() }.into()).await?;
    }
    host.emit(MessageEnd { message: json.clone() }.into()).await?;
    Ok(Answer { json, message: answer, failure: None })
}

/// A failed answer without content.
pub(crate) fn failed_answer(
    (api, provider, model): (&str, &str, &str),
    now_ms: i64,
    stop_reason: StopReason,
    error: String,
) -> AssistantMessage {
    AssistantMessage {
        stop_reason,
        error_message: Some(error),
        ..AssistantMessage::pending(api, provider, model, now_ms)
    }
}

fn aborted<H: Host>(host: &H) -> Delta {
    let failure = host.stopped_by().unwrap_or_else(Failure::aborted);
    Delta::Failed { failure, raw_stop_reason: None }
}

/// The last delta for a provider whose stream ended without one.
fn ended_early() -> Delta {
    let failure = Failure::new(FailureKind::Retryable, "The provider's stream ended without saying why");
    Delta::Failed { failure, raw_stop_reason: None }
}

fn message(message: Message) -> Result<Json<Message>, HostError> {
    Json::new(message).map_err(|error| HostError::NotStored(error.to_string()))
}
