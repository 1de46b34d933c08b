//! The task that holds the connection.

use std::{path::PathBuf, sync::Arc, time::Duration};

use agentd_protocol::{
    command::{ForkParams, NoParams},
    daemon::{ClientCapabilities, HelloParams, PROTOCOL, Role, SessionParams},
};
use agentd_rpc as rpc;
use agentd_rpc::{CallError, Client, IncomingEvents};
use tokio::sync::mpsc;

use super::{
    calls::perform,
    joining::{ChatTarget, Followed, Joined, join},
};
use crate::{
    app::{Call, CallFailure, Message, Reply, SwitchTo},
    options::{ChatError, ChatOptions, FirstSession},
};

/// The pauses between attempts to come back: the first, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// How long after its sessions a daemon that ends may close the connection.
const END_AFTER_CLOSE: Duration = Duration::from_secs(1);

/// What the program wants of the connection.
#[derive(Debug)]
pub(crate) enum LinkRequest {
    Call(Box<Call>),
    Switch(SwitchTo),
    Reconnect,
}

/// How a connection ended.
enum LinkEnd {
    Lost(String),
    /// The session was closed by another client.
    Closed,
    /// Events were left out, or the user wants it: it is joined again.
    Rejoin,
    /// Nobody takes messages any more.
    Gone,
}

/// Connects and follows sessions until the program ends.
///
/// # Errors
/// When the first session cannot be opened.
pub(crate) async fn run(
    options: Arc<ChatOptions>,
    mut requests: mpsc::Receiver<LinkRequest>,
    messages: mpsc::Sender<Message>,
) -> Result<(), ChatError> {
    let mut target = match &options.first {
        FirstSession::Listed(id) => ChatTarget::Listed(id.clone()),
        FirstSession::Flags(flags) => {
            let mut open = options.open.clone();
            open.args.extend(flags.iter().cloned());
            ChatTarget::Open(Box::new(open))
        }
    };
    let mut may_start = true;
    let mut was_up = false;
    let mut pause = PAUSES.0;
    loop {
        let lost = match connect(&options, may_start).await {
            Ok(Some((client, mut incoming))) => match join(&client, &mut incoming.events, &target).await {
                Ok((joined, opened)) => {
                    was_up = true;
                    pause = PAUSES.0;
                    let folder = opened
                        .state
                        .cwd
                        .clone()
                        .map_or_else(|| options.open.cwd.clone().into(), PathBuf::from);
                    let mut link =
                        Link { options: &options, client, joined, folder, messages: messages.clone() };
                    if messages.send(Message::Opened(Box::new(opened))).await.is_err() {
                        return Ok(());
                    }
                    let end = link.follow(&mut incoming, &mut requests).await;
                    target = ChatTarget::Again { id: link.joined.id, open: Box::new(options.open.clone()) };
                    match end {
                        LinkEnd::Gone => return Ok(()),
                        LinkEnd::Rejoin => {
                            may_start = false;
                            continue;
                        }
                        LinkEnd::Closed => {
                            // A daemon that ends closes its sessions first: then the connection ends, too.
                            let is_over = tokio::time::timeout(END_AFTER_CLOSE, async {
                                while incoming.events.recv().await.is_some() {}
                            });
                            if is_over.await.is_ok() {
                                "agentd has ended".to_owned()
                            } else {
                                if messages.send(Message::Closed).await.is_err()
                                    || !asked(&mut requests, &messages).await
                                {
                                    return Ok(());
                                }
                                may_start = true;
                                continue;
                            }
                        }
                        LinkEnd::Lost(how) => how,
                    }
                }
                Err(error) if !was_up => return Err(ChatError::Call(error)),
                Err(error) => error.to_string(),
            },
            Ok(None) => "agentd is not running".to_owned(),
            Err(error) if !was_up => return Err(error),
            Err(error) => error.to_string(),
        };
        if messages.send(Message::Lost(lost)).await.is_err() {
            return Ok(());
        }
        // Nothing tells when a daemon is back: it is looked for, ever more seldom.
        may_start = tokio::select! {
            is_asked = asked(&mut requests, &messages) => {
                if !is_asked {
                    return Ok(());
                }
                true
            }
            () = tokio::time::sleep(pause) => false,
        };
        pause = (pause * 2).min(PAUSES.1);
    }
}

/// Waits until the user wants to connect; false when the program ends. Calls are answered: there is no connection.
async fn asked(requests: &mut mpsc::Receiver<LinkRequest>, messages: &mpsc::Sender<Message>) -> bool {
    loop {
        match requests.recv().await {
            None => return false,
            Some(LinkRequest::Reconnect) => return true,
            Some(LinkRequest::Switch(_)) => {
                let failure = not_connected();
                if messages.send(Message::Reply(Box::new(Reply::NotSwitched(failure)))).await.is_err() {
                    return false;
                }
            }
            Some(LinkRequest::Call(call)) => {
                let reply = match *call {
                    Call::Prompt(params) => {
                        Reply::PromptFailed(params, CallFailure { is_lost: true, ..not_connected() })
                    }
                    _ => Reply::Failed(not_connected()),
                };
                if messages.send(Message::Reply(Box::new(reply))).await.is_err() {
                    return false;
                }
            }
        }
    }
}

fn not_connected() -> CallFailure {
    let error = "There is no connection to the daemon.".to_owned();
    CallFailure { error, hint: Some("R connects again.".to_owned()), code: None, is_lost: false }
}

async fn connect(
    options: &ChatOptions,
    may_start: bool,
) -> Result<Option<(Arc<Client>, IncomingEvents)>, ChatError> {
    let stream = if may_start {
        Some(options.endpoint.connect_or_start(&options.launch).await?.stream)
    } else {
        options.endpoint.connect().await?
    };
    let Some(stream) = stream else { return Ok(None) };
    let (output, input) = stream.into_split();
    let (client, incoming) = Client::start(input, output);
    let hello = HelloParams {
        protocol: PROTOCOL,
        client: Some(options.client.clone()),
        capabilities: ClientCapabilities {
            sessions: true,
            ui: true,
            permissions: true,
            ..ClientCapabilities::default()
        },
        role: Role::Control,
    };
    client.call::<rpc::Hello>(&hello).await.map_err(ChatError::Call)?;
    Ok(Some((Arc::new(client), incoming)))
}

struct Link<'a> {
    options: &'a ChatOptions,
    client: Arc<Client>,
    joined: Joined,
    folder: PathBuf,
    messages: mpsc::Sender<Message>,
}

impl Link<'_> {
    /// Follows the session, and those that it moves to.
    async fn follow(
        &mut self,
        incoming: &mut IncomingEvents,
        requests: &mut mpsc::Receiver<LinkRequest>,
    ) -> LinkEnd {
        loop {
            let line = match self.joined.early.pop_front() {
                Some(line) => line,
                None => tokio::select! {
                    line = incoming.events.recv() => match line {
                        Some(line) => line,
                        None => return LinkEnd::Lost("agentd closed the connection".to_owned()),
                    },
                    request = requests.recv() => {
                        let end = match request {
                            None => return LinkEnd::Gone,
                            Some(LinkRequest::Reconnect) => return LinkEnd::Rejoin,
                            Some(LinkRequest::Call(call)) => {
                                self.call(*call);
                                None
                            }
                            Some(LinkRequest::Switch(to)) => self.switch(incoming, to).await,
                        };
                        match end {
                            Some(end) => return end,
                            None => continue,
                        }
                    }
                },
            };
            let message = match self.joined.take(&line) {
                Followed::Event(event) => Message::Event(event),
                Followed::Lagged => return LinkEnd::Rejoin,
                Followed::Closed => return LinkEnd::Closed,
                Followed::Other => continue,
            };
            if self.messages.send(message).await.is_err() {
                return LinkEnd::Gone;
            }
        }
    }

    /// Makes a call; its answer comes as a message.
    fn call(&self, call: Call) {
        let (client, messages) = (Arc::clone(&self.client), self.messages.clone());
        let (session, folder) = (self.joined.id.clone(), self.folder.clone());
        tokio::spawn(async move {
            let reply = perform(&client, &session, folder, call).await;
            // The program may have ended.
            let _ = messages.send(Message::Reply(Box::new(reply))).await;
        });
    }

    /// Moves to another session; the one before goes on without us.
    async fn switch(&mut self, incoming: &mut IncomingEvents, to: SwitchTo) -> Option<LinkEnd> {
        let before = self.joined.id.clone();
        let moved = self.moved(incoming, to).await;
        let (opened, text) = match moved {
            Ok(moved) => moved,
            Err(CallError::Ended { .. }) => {
                return Some(LinkEnd::Lost("agentd closed the connection".to_owned()));
            }
            Err(error) => {
                let reply = Reply::NotSwitched(error.into());
                return self
                    .messages
                    .send(Message::Reply(Box::new(reply)))
                    .await
                    .is_err()
                    .then_some(LinkEnd::Gone);
            }
        };
        if before != self.joined.id {
            let params = SessionParams { session_id: before };
            // A session that is gone needs no leaving.
            let _ = self.client.tell::<rpc::DetachSession>(None, &params).await;
        }
        self.folder = opened.state.cwd.clone().map_or_else(|| self.folder.clone(), PathBuf::from);
        let mut all = vec![Message::Opened(Box::new(opened))];
        all.extend(text.map(|text| Message::Reply(Box::new(Reply::ForkText(text)))));
        for message in all {
            if self.messages.send(message).await.is_err() {
                return Some(LinkEnd::Gone);
            }
        }
        None
    }

    async fn moved(
        &mut self,
        incoming: &mut IncomingEvents,
        to: SwitchTo,
    ) -> Result<(crate::app::Opened, Option<String>), CallError> {
        let (target, text) = match to {
            SwitchTo::New => (ChatTarget::Open(Box::new(self.options.open.clone())), None),
            SwitchTo::Session(id) => (ChatTarget::Listed(id), None),
            SwitchTo::Fork(entry_id) => {
                let forked =
                    self.client.call_in::<rpc::Fork>(&self.joined.id, &ForkParams { entry_id }).await?;
                // The connection's current session is the copy now.
                let state = self.client.call::<rpc::GetState>(&NoParams {}).await?;
                (ChatTarget::Listed(state.session_id), Some(forked.text))
            }
        };
        let (joined, opened) = join(&self.client, &mut incoming.events, &target).await?;
        self.joined = joined;
        Ok((opened, text))
    }
}
