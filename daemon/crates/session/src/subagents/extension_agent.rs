//! An agent that an extension runs: its session is driven here, and its extension is told what happens in it.
//!
//! The session's events and its answers come through one subscription, in one order, and go to the host of the extension in that order. So an
//! extension has seen all events of a prompt before it hears that the prompt has ended.

use std::{collections::HashMap, sync::Arc};

use agentd_extensions::{CallResponder, HostFailure, HostNotes};
use agentd_protocol::{
    command::{AbortParams, AbortScope, Command, PeerAccess, SessionCommand},
    error::{ErrorCode, Failure},
    frame::Response,
    message::StopReason,
    subagent::SubagentStatus,
};
use futures::{FutureExt as _, StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{agent_request::AgentRequest, table::Subagents};
use crate::{
    clock::unix_ms,
    event_log::{Audience, FeedItem, Subscriber},
    reply::Reply,
    subagent_host::SubagentSession,
    subagent_place::ChildState,
};

/// An agent of an extension at work. Its task ends with its session.
pub(super) struct ExtensionAgent {
    pub(super) id: String,
    pub(super) subagents: Subagents,
    pub(super) session: Arc<dyn SubagentSession>,
    pub(super) state: Arc<ChildState>,
    pub(super) notes: HostNotes,
    /// Fires when it is to end.
    pub(super) cancel: CancellationToken,
    pub(super) requests: mpsc::UnboundedReceiver<AgentRequest>,
}

/// A command that is not answered.
struct Waiting {
    responder: CallResponder,
    /// Whether the end of the work is waited for.
    waits: bool,
    is_prompt: bool,
    /// What the session answered, once the end of the work is waited for.
    answered: Option<Value>,
    /// Ends the wait for what would stop it.
    _over: DropGuard,
}

/// Something that has come to its end.
enum Done {
    /// A command was handed over, or refused.
    Sent { number: u64, outcome: Result<(), Failure> },
    /// Nothing works for the session any more, which the command of that number waits for.
    Idle(u64),
    /// What the command of that number began is to be stopped.
    Stop(u64),
    /// A command that could have been stopped has ended.
    Nothing,
}

impl ExtensionAgent {
    /// Serves it until it ends: by its extension, with the host of its extension, or with the session that it works for.
    pub(super) async fn run(mut self) {
        let Some(mut subscriber) = self.session.follow() else { return };
        let mut waiting: HashMap<u64, Waiting> = HashMap::new();
        let mut done: FuturesUnordered<BoxFuture<'static, Done>> = FuturesUnordered::new();
        let (mut items, mut last) = (Vec::new(), 0_u64);
        let host_over = self.notes.over().clone();
        let (reason, closing) = loop {
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => break ("it was stopped", None),
                () = host_over.cancelled() => break ("the host of its extension is gone", None),
                there = subscriber.next_items(&mut items) => {
                    if !there {
                        break ("its session has ended", None);
                    }
                    for item in items.drain(..) {
                        match item {
                            FeedItem::Reply { line } => {
                                let idle = self.answer(&line, &mut waiting).await;
                                done.extend(idle);
                            }
                            FeedItem::LongReply { reply } => {
                                let made = tokio::task::spawn_blocking(move || reply.line()).await;
                                if let Ok(line) = made {
                                    let idle = self.answer(&line, &mut waiting).await;
                                    done.extend(idle);
                                }
                            }
                            FeedItem::Lagged { .. } => {
                                // What was missed is read again by those who need it.
                                if let Some(again) = self.session.follow() {
                                    subscriber = again;
                                }
                                self.tell("agents.lagged", None).await;
                                break;
                            }
                            item => self.tell_event(item).await,
                        }
                    }
                }
                Some(done_now) = done.next() => match done_now {
                    Done::Sent { number, outcome: Err(failure) } => {
                        if let Some(refused) = waiting.remove(&number) {
                            self.refuse(refused, failure).await;
                        }
                    }
                    Done::Idle(number) => {
                        // A command behind all events so far: its answer comes after they were told.
                        done.push(self.send(number, SessionCommand::GetState(Default::default()), &subscriber));
                    }
                    Done::Stop(number) if waiting.contains_key(&number) => {
                        last += 1;
                        let command = SessionCommand::Abort(AbortParams { scope: Some(AbortScope::Turn) });
                        done.push(self.send(last, command, &subscriber));
                    }
                    Done::Sent { outcome: Ok(()), .. } | Done::Stop(_) | Done::Nothing => {}
                },
                request = self.requests.recv() => match request {
                    None => break ("the session that it works for has ended", None),
                    Some(AgentRequest::Close(responder)) => break ("its extension has ended it", Some(responder)),
                    Some(AgentRequest::Command { line, waits, stop, responder }) => match permitted(&line) {
                        Err(failure) => responder.send(&Err(host_failure(failure))),
                        Ok(command) => {
                            last += 1;
                            let is_prompt = matches!(command, SessionCommand::Prompt(_) | SessionCommand::Continue(_));
                            if is_prompt {
                                self.state.begin();
                                // On record before it does anything: after a crash it is known that it may have.
                                if let Err(error) = self.record(SubagentStatus::Running, None).await {
                                    responder.send(&Err(HostFailure::new("failed", format!("It could not be recorded: {error}"))));
                                    continue;
                                }
                            }
                            let over = CancellationToken::new();
                            if let Some(stop) = stop {
                                done.push(stopped(last, stop, over.clone()));
                            }
                            let _over = over.drop_guard();
                            waiting.insert(last, Waiting { responder, waits, is_prompt, answered: None, _over });
                            done.push(self.send(last, command, &subscriber));
                        }
                    },
                },
            }
        };
        drop((done, subscriber));
        self.session.close().await;
        let is_at_work = waiting.values().any(|waiting| waiting.is_prompt);
        for (_, waiting) in waiting {
            let text = format!("The agent {} has ended: {reason}.", self.id);
            waiting.responder.send(&Err(HostFailure::new("gone", text)));
        }
        if is_at_work {
            self.ended(SubagentStatus::Aborted, Some(reason.to_owned())).await;
        }
        if let Some(own) = self.subagents.own() {
            own.state.add_usage(&self.state.usage());
        }
        self.tell("agents.ended", Some(reason)).await;
        self.subagents.forget_agent(&self.id);
        if let Some(responder) = closing {
            responder.send(&Ok(Value::Null));
        }
    }

    /// Sends a command; the answer comes with the items of `subscriber`.
    fn send(
        &self,
        number: u64,
        command: SessionCommand,
        subscriber: &Subscriber,
    ) -> BoxFuture<'static, Done> {
        let reply = Reply::plain(subscriber.id(), Some(number.into()), command.name());
        let session = Arc::clone(&self.session);
        async move { Done::Sent { number, outcome: session.send(command, reply).await } }.boxed()
    }

    /// The session has answered a command. Returns what is to be waited for before its extension is answered.
    async fn answer(
        &self,
        line: &[u8],
        waiting: &mut HashMap<u64, Waiting>,
    ) -> Option<BoxFuture<'static, Done>> {
        let Ok(response) = serde_json::from_slice::<Response<Value>>(line) else { return None };
        let number = response.id.as_ref().and_then(Value::as_u64)?;
        let mut asked = waiting.remove(&number)?;
        if let Some(failure) = response.failure {
            self.refuse(asked, failure).await;
            return None;
        }
        if let Some(answered) = asked.answered {
            if asked.is_prompt {
                self.settled().await;
            }
            asked.responder.send(&Ok(answered));
            return None;
        }
        let data = response.data.unwrap_or_default();
        // What waits in a queue, or was taken by an extension, begins nothing.
        let begins = data.get("disposition").is_none_or(|disposition| disposition == "started");
        if !asked.waits || !begins {
            if asked.is_prompt {
                self.settled().await;
            }
            asked.responder.send(&Ok(data));
            return None;
        }
        asked.answered = Some(data);
        waiting.insert(number, asked);
        let session = Arc::clone(&self.session);
        Some(
            async move {
                session.idle().await;
                Done::Idle(number)
            }
            .boxed(),
        )
    }

    async fn refuse(&self, asked: Waiting, failure: Failure) {
        if asked.is_prompt {
            self.ended(SubagentStatus::Failed, Some(failure.error.clone())).await;
        }
        asked.responder.send(&Err(host_failure(failure)));
    }

    /// Its work has come to an end.
    async fn settled(&self) {
        let last = self.state.last_answer();
        let (status, error) = match last.stop_reason {
            Some(StopReason::Error) => (SubagentStatus::Failed, last.error),
            Some(StopReason::Aborted) => (SubagentStatus::Aborted, last.error),
            _ => (SubagentStatus::Completed, None),
        };
        self.ended(status, error).await;
    }

    async fn ended(&self, status: SubagentStatus, error: Option<String>) {
        if let Err(error) = self.record(status, error).await {
            tracing::warn!(%error, id = self.id, "the end of an agent's work could not be recorded");
        }
    }

    /// Puts its status on record.
    ///
    /// # Errors
    /// A sentence: the disk did not take it, or the session that it works for has ended.
    async fn record(&self, status: SubagentStatus, error: Option<String>) -> Result<(), String> {
        let changed = self.subagents.change(&self.id, |snapshot| {
            snapshot.status = status;
            snapshot.error = error;
            snapshot.last_update = unix_ms();
        });
        match changed {
            Some(snapshot) => self.subagents.record(vec![snapshot]).await,
            None => Ok(()),
        }
    }

    /// Tells the extension of an event, if it is one that pi's programs know.
    async fn tell_event(&self, item: FeedItem) {
        let line = match item {
            FeedItem::Event { audience: Audience::Everyone, line, .. } => line,
            FeedItem::Event { audience: Audience::Settled { split }, line, .. } => {
                line.slice(..(split as usize).min(line.len()))
            }
            _ => return,
        };
        let event =
            std::str::from_utf8(&line).ok().and_then(|text| serde_json::from_str::<&RawValue>(text).ok());
        let Some(event) = event else { return };
        #[derive(Serialize)]
        struct Note<'a> {
            agent: &'a str,
            event: &'a RawValue,
        }
        self.notes.tell("agents.event", &Note { agent: &self.id, event }).await;
    }

    async fn tell(&self, kind: &str, reason: Option<&str>) {
        let mut fields = json!({"agent": self.id});
        if let Some(reason) = reason {
            fields["reason"] = reason.into();
        }
        self.notes.tell(kind, &fields).await;
    }
}

/// Waits until the command of that number is to be stopped, or is over.
fn stopped(number: u64, stop: CancellationToken, over: CancellationToken) -> BoxFuture<'static, Done> {
    async move {
        tokio::select! {
            () = stop.cancelled() => Done::Stop(number),
            () = over.cancelled() => Done::Nothing,
        }
    }
    .boxed()
}

/// The command of a line, if extensions may send it to their agents: one about a session that a program of a session may send, too.
fn permitted(line: &Value) -> Result<SessionCommand, Failure> {
    let name = line["type"].as_str().unwrap_or_default();
    match Command::parse(name, &line.to_string()) {
        Some(Ok(Command::Session(command))) if command.spec().peer_access != PeerAccess::Never => Ok(command),
        Some(Ok(_)) => {
            let text = format!("Extensions do not send the command {name} to their agents.");
            Err(Failure::new(ErrorCode::Unsupported, text))
        }
        Some(Err(error)) => Err(error.into()),
        None => Err(Failure::new(ErrorCode::UnknownCommand, format!("agentd knows no command {name}."))),
    }
}

fn host_failure(failure: Failure) -> HostFailure {
    let code = serde_json::to_value(failure.code).ok().and_then(|code| code.as_str().map(str::to_owned));
    HostFailure::new(code.as_deref().unwrap_or("failed"), failure.error)
}
