//! Commands that leave a session for another one: a new one, the session of a file, a copy.
//!
//! `fork`, `clone`, `switch_session` and `new_session` belong to the connection, since a session cannot replace itself. The actor of the
//! original, which alone knows its entries, makes the copy, which becomes a session of its own; its file, if it has one, is written before
//! any client hears of it. The old session is ended only after the new one is open, and only if this connection was its only client; its
//! last lines are owed to the client and are written before the response.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use agentd_auth::scrub_failure;
use agentd_config::resolve_path;
use agentd_protocol::{
    command::{Cancelled, ForkParams, Forked, SwitchCommand},
    error::{ErrorCode, Failure},
    frame::{Head, Response},
};
use agentd_session::{
    AskedBefore, Attached, CopyPoint, ExtensionStart, Feed, KeptHosts, Leaving, LeavingAnswer, MoveRequest,
    MovedCommand, SessionBeginning, SessionEnd, SessionOptions, SubscriberId, Target,
};
use agentd_store::read_header;
use serde::Serialize;
use tokio::sync::{mpsc, oneshot};

use super::{
    dispatcher::{Dispatcher, send},
    moves::{AskedSwitch, Move},
    writer::WriterCommand,
};
use crate::hub::{AcquiredSession, JoinIntent, SessionRegistry, SessionSlot};

/// How often a destination is opened again that other clients end at the moment this connection goes there.
const MAX_ATTEMPTS: usize = 10;

/// The session that a connection goes to.
struct Destination {
    session: Arc<SessionSlot>,
    /// Keeps other clients from closing the session as the last to leave it. Without it, two clients that change places would each
    /// end the other's destination and wait for each other.
    expected: JoinIntent,
    /// Opens the session again when another client ends it meanwhile; `None` for a session that no other client knows.
    reopen_with: Option<SessionOptions>,
    /// For `fork`: the text of the message that the copy ends before.
    text: Option<String>,
    /// Whether its extensions wait for the connection.
    waits: bool,
}

impl Destination {
    fn new(opened: AcquiredSession, text: Option<String>) -> Self {
        Self {
            session: opened.session,
            expected: opened.expected,
            reopen_with: None,
            text,
            waits: opened.waits,
        }
    }

    /// Opens the session again; false when it cannot be.
    async fn reopen(&mut self, registry: &Arc<SessionRegistry>) -> Result<bool, Failure> {
        let Some(options) = &self.reopen_with else { return Ok(false) };
        let opened =
            registry.open_with(options.clone(), ExtensionStart::Later(AskedBefore::default())).await?;
        (self.session, self.expected, self.waits) = (opened.session, opened.expected, opened.waits);
        Ok(true)
    }
}

/// Proof that a destination could be loaded. It holds no guard: leaving the current session waits, and the client that comes from
/// the destination may wait for this one.
struct Loadable<'a>(&'a Arc<SessionSlot>);

/// Proof that the connection has left its current session. Only a [`Loadable`] destination gives one, and attaching takes one, so
/// nothing is left for a session that cannot be opened, and the old session's last lines are written before those of the new one.
struct LeftCurrent {
    /// The hosts of its extensions; `None` where they stay with it.
    hosts: Option<KeptHosts>,
}

/// How the connection leaves a session.
struct Departure {
    old: Option<Arc<SessionSlot>>,
    reason: &'static str,
    /// Whether the hosts go along even where the session lives on.
    takes_hosts: bool,
}

/// The place of an answer in a feed.
struct FeedReply {
    feed: Feed,
    subscriber: SubscriberId,
}

/// A session that the connection has come to.
struct Arrival {
    session: Arc<SessionSlot>,
    text: Option<String>,
    /// Answered once its extensions have begun; `None` where there is nothing to wait for.
    begun: Option<oneshot::Receiver<Result<(), Failure>>>,
}

impl Dispatcher {
    /// Executes a command that leaves the session for another one. Where extensions are asked about it, other commands are executed until
    /// they have answered.
    pub(super) async fn switch(&mut self, command: SwitchCommand, head: Head) {
        let (name, id) = (command.name(), head.id);
        let from = match self.named_or_current(head.session_id.as_deref()).await {
            Ok(session) => session,
            Err(failure) => return self.fail(id, Some(name), failure).await,
        };
        let leaving = match command {
            SwitchCommand::SwitchSession(params) if params.session_path.is_empty() => {
                let text = "Invalid field \"sessionPath\": expected the path of a session file, got \"\"";
                return self.fail(id, Some(name), Failure::new(ErrorCode::InvalidField, text)).await;
            }
            SwitchCommand::SwitchSession(params) => Leaving::Resume { path: params.session_path },
            SwitchCommand::NewSession(params) => Leaving::New { parent: params.parent_session },
            SwitchCommand::Fork(ForkParams { entry_id }) | SwitchCommand::Branch(ForkParams { entry_id }) => {
                Leaving::ForkBefore { entry_id }
            }
            SwitchCommand::CloneSession(_) => Leaving::Clone,
        };
        // Extensions keep their session in memory.
        let said = match from.loaded_guard().await {
            Some(guard) => guard.handle.ask_leaving(leaving.clone()).await,
            None => LeavingAnswer::default(),
        };
        // A session may begin with a model of its extensions, which are loaded first then.
        let extensions =
            if said.has_models { ExtensionStart::AtOnce } else { ExtensionStart::Later(said.asked) };
        let mut asked = Box::new(AskedSwitch { name, id, from, leaving, extensions, is_prevented: false });
        let Some(question) = said.question else { return self.switch_asked(*asked).await };
        let moves = self.moves.asked.0.clone();
        self.background.spawn(async move {
            asked.is_prevented = question.await.unwrap_or(false);
            // Without the connection nobody goes anywhere.
            let _ = moves.send(asked);
        });
    }

    /// Makes a move.
    pub(super) async fn take_move(&mut self, next: Move) {
        match next {
            Move::Asked(asked) => self.switch_asked(*asked).await,
            Move::OfExtension(request) => self.switch_for_extension(*request).await,
            // The registry ends the session, and its clients are told.
            Move::Quit => {}
        }
    }

    /// Leaves the session by a command. When it fails before that, nothing has changed.
    async fn switch_asked(&mut self, asked: AskedSwitch) {
        let AskedSwitch { name, id, from, leaving, extensions, is_prevented } = asked;
        if is_prevented {
            return self
                .answer_after(&from, &Response::done(id, name, Some(Cancelled { cancelled: true })))
                .await;
        }
        let departure =
            Departure { old: self.sessions.current.clone(), reason: leaving.reason(), takes_hosts: false };
        let arrived = match self.destination(&from, leaving, extensions).await {
            Ok(destination) => self.go_to(destination, departure, None).await,
            Err(failure) => Err(failure),
        };
        let Arrival { session, text, begun } = match arrived {
            Ok(arrival) => arrival,
            Err(failure) => return self.fail(id, Some(name), failure).await,
        };
        let data = match text {
            Some(text) => serde_json::to_value(Forked { text, cancelled: false }),
            None => serde_json::to_value(Cancelled { cancelled: false }),
        };
        let data = data.unwrap_or_default();
        let Some(begun) = begun else { return self.done(id, name, data).await };
        // As in pi: the handlers of `session_start` come before the answer, and may ask the client meanwhile.
        let (reply, outbox) = (self.reply_after(&session), self.outbox.clone());
        self.background.spawn(async move {
            let response = match began(begun).await {
                Ok(()) => Response::done(id, name, Some(data)),
                Err(failure) => Response::failed(id, Some(name), scrub_failure(failure)),
            };
            send_in_order(reply, &outbox, &response).await;
        });
    }

    /// Answers after what a session has told the client so far.
    async fn answer_after(&self, session: &Arc<SessionSlot>, response: &Response<impl Serialize>) {
        send_in_order(self.reply_after(session), &self.outbox, response).await;
    }

    /// The place of an answer among what a session tells the client; `None` where the client does not follow it.
    fn reply_after(&self, session: &Arc<SessionSlot>) -> Option<FeedReply> {
        let followed = self.sessions.get(session)?;
        followed.owed.add();
        Some(FeedReply { feed: session.feed().clone(), subscriber: followed.subscriber })
    }

    /// Leaves the session for a command of one of its extensions, which goes on in the other.
    async fn switch_for_extension(&mut self, request: MoveRequest) {
        let MoveRequest { session, leaving, asked, command } = request;
        let Some(from) = self.registry.get(&session).filter(|from| self.sessions.get(from).is_some()) else {
            let failure = Failure::new(ErrorCode::NoSession, "The client of this command has left.");
            return self.give_up(command, failure).await;
        };
        let departure =
            Departure { old: Some(Arc::clone(&from)), reason: leaving.reason(), takes_hosts: true };
        match self.destination(&from, leaving, ExtensionStart::Later(asked)).await {
            Ok(destination) => {
                // Its prompt is answered in the other session.
                if let Some(followed) = self.sessions.get(&from).filter(|_| command.is_awaited()) {
                    followed.owed.take_back();
                }
                if let Err(failure) = self.go_to(destination, departure, Some(command)).await {
                    tracing::warn!(error = failure.error, "an extension could not lead a client elsewhere");
                }
            }
            Err(failure) => match from.loaded_guard().await {
                Some(guard) => guard.handle.stay(command, failure).await,
                None => self.give_up(command, failure).await,
            },
        }
    }

    /// A command of an extension goes on nowhere.
    async fn give_up(&self, command: MovedCommand, failure: Failure) {
        if let Some(id) = command.give_up(&failure) {
            self.fail(id, Some("prompt"), failure).await;
        }
    }

    /// The session that is left for.
    async fn destination(
        &mut self,
        from: &Arc<SessionSlot>,
        leaving: Leaving,
        extensions: ExtensionStart,
    ) -> Result<Destination, Failure> {
        match leaving {
            Leaving::New { parent } => self.new_session(from, parent, extensions).await,
            Leaving::Resume { path } => self.session_of_file(from, &path, extensions).await,
            Leaving::ForkBefore { entry_id } => {
                self.copy(from, CopyPoint::Before(entry_id), extensions).await
            }
            Leaving::ForkAt { entry_id } => self.copy(from, CopyPoint::At(entry_id), extensions).await,
            Leaving::Clone => self.copy(from, CopyPoint::Leaf, extensions).await,
        }
    }

    async fn done(&self, id: Option<serde_json::Value>, name: &str, data: impl Serialize) {
        self.answer(&Response::done(id, name, Some(data))).await;
    }

    async fn new_session(
        &self,
        from: &SessionSlot,
        parent: Option<String>,
        extensions: ExtensionStart,
    ) -> Result<Destination, Failure> {
        let target = match parent {
            _ if from.is_ephemeral() => Target::Ephemeral(None),
            Some(parent) => Target::Child(parent),
            None => Target::New,
        };
        let mut options = SessionOptions { target, ..self.successor(from) };
        // The file goes beside the file that the old session was opened by, unless `--session-dir` names a folder.
        if options.session_dir.is_none()
            && let Target::Existing(_) = from.options().target
            && let Some(folder) = from.file().as_deref().and_then(Path::parent)
        {
            options.session_dir = Some(folder.to_owned());
        }
        let opened = self.registry.open_with(options, extensions).await?;
        self.has_opened(&opened.session);
        Ok(Destination::new(opened, None))
    }

    /// Asks the session for a copy, whatever it does at the moment; an unloaded one is loaded first.
    async fn copy(
        &self,
        from: &Arc<SessionSlot>,
        point: CopyPoint,
        extensions: ExtensionStart,
    ) -> Result<Destination, Failure> {
        let copied = self.registry.ensure_loaded(from).await?.handle.copy(point).await?;
        let text = copied.text.clone();
        let target = if from.is_ephemeral() { Target::Ephemeral(None) } else { Target::New };
        let adopted =
            self.registry.adopt(SessionOptions { target, ..self.successor(from) }, copied, extensions).await;
        let opened = adopted.map_err(|error| {
            let failure = Failure::from(error);
            // pi's words, which clients may look for, and then the reason.
            Failure { error: format!("Failed to create forked session: {}", failure.error), ..failure }
        })?;
        self.has_opened(&opened.session);
        Ok(Destination::new(opened, text))
    }

    /// The options that the session after `from` is opened with.
    pub(super) fn successor(&self, from: &SessionSlot) -> SessionOptions {
        let request = self.open_requests.of(from.id()).cloned().unwrap_or_default();
        request.successor(from.options())
    }

    /// Opens the session of a file. If the connection follows it already, it is closed first where no other client is in it.
    async fn session_of_file(
        &mut self,
        from: &Arc<SessionSlot>,
        path: &str,
        extensions: ExtensionStart,
    ) -> Result<Destination, Failure> {
        let base = self.successor(from);
        let path = resolve_path(path, &base.cwd, &base.environment);
        let options = options_of_file(base, path).await?;
        let AcquiredSession { mut session, mut expected, mut waits, .. } =
            self.registry.open_with(options.clone(), extensions.clone()).await?;
        if self.sessions.get(&session).is_some() {
            drop(expected);
            self.end_if_alone(&session, None).await;
            AcquiredSession { session, expected, waits, .. } =
                self.registry.open_with(options.clone(), extensions).await?;
        }
        let request = self.open_requests.of(from.id()).cloned().unwrap_or_default();
        self.keep_request(session.id(), request)?;
        Ok(Destination { session, expected, reopen_with: Some(options), text: None, waits })
    }

    /// Leaves a session for another one, which the connection follows from its newest event on. The old session is ended where no other
    /// client is in it, and its last lines are written first. The hosts of its extensions go along, with `command` if an extension does this.
    async fn go_to(
        &mut self,
        mut to: Destination,
        departure: Departure,
        command: Option<MovedCommand>,
    ) -> Result<Arrival, Failure> {
        let previous_file = departure.old.as_ref().and_then(|old| old.file());
        let mut left = None;
        for _ in 0..MAX_ATTEMPTS {
            match self.leave_for(&to.session, &departure, &mut left).await {
                Ok(Attached { subscriber, in_flight, .. }) => {
                    let so_far = in_flight.and_then(|in_flight| in_flight.message);
                    self.move_to(Arc::clone(&to.session), subscriber, so_far).await;
                    let begun = self.begin_extensions(&to, (departure, previous_file), left, command).await;
                    return Ok(Arrival { session: to.session, text: to.text, begun });
                }
                Err(failure) if failure.code != ErrorCode::NoSession => {
                    return Err(self.stopped(&to, failure, command).await);
                }
                // Another client has ended it before it saw the join intent.
                Err(_) => {}
            }
            match to.reopen(&self.registry).await {
                Ok(true) => {}
                Ok(false) => break,
                Err(failure) => return Err(self.stopped(&to, failure, command).await),
            }
        }
        let failure = ended_meanwhile(&to.session);
        Err(self.stopped(&to, failure, command).await)
    }

    /// The other session was not reached. Its extensions wait for nobody any more.
    async fn stopped(&self, to: &Destination, failure: Failure, command: Option<MovedCommand>) -> Failure {
        if let Some(command) = command {
            self.give_up(command, failure.clone()).await;
        }
        if to.waits
            && let Some(guard) = to.session.loaded_guard().await
        {
            let (started, _) = oneshot::channel();
            let (previous_file, hosts) = (None, KeptHosts::default());
            guard
                .handle
                .begin(SessionBeginning { reason: "startup", previous_file, hosts, command: None, started })
                .await;
        }
        failure
    }

    /// Starts the extensions of the session that the connection has come to, in the hosts of the one that it has left.
    async fn begin_extensions(
        &self,
        to: &Destination,
        (departure, previous_file): (Departure, Option<PathBuf>),
        left: Option<LeftCurrent>,
        command: Option<MovedCommand>,
    ) -> Option<oneshot::Receiver<Result<(), Failure>>> {
        if !to.waits && command.is_none() {
            return None;
        }
        let hosts = left.and_then(|left| left.hosts);
        let command = command.map(|mut command| {
            if let Some(followed) = self.sessions.get(&to.session) {
                if command.is_awaited() {
                    followed.owed.add();
                }
                command.answer_through(followed.subscriber);
            }
            match &hosts {
                Some(_) => command,
                None => {
                    let text = "The session that was left is at work for other clients, so that the command cannot go on.";
                    command.without_hosts(Failure::new(ErrorCode::Busy, text))
                }
            }
        });
        let (started, begun) = oneshot::channel();
        let beginning = SessionBeginning {
            reason: departure.reason,
            previous_file: previous_file.map(|file| file.display().to_string()),
            hosts: hosts.unwrap_or_default(),
            command,
            started,
        };
        match to.session.loaded_guard().await {
            Some(guard) if guard.handle.begin(beginning).await => Some(begun),
            _ => None,
        }
    }

    /// One attempt to reach a session: checks that it can be loaded, leaves the old one unless an attempt before has, and
    /// attaches.
    async fn leave_for(
        &self,
        session: &Arc<SessionSlot>,
        departure: &Departure,
        left: &mut Option<LeftCurrent>,
    ) -> Result<Attached, Failure> {
        let loadable = self.check_loadable(session).await?;
        let left = match left {
            Some(left) => left,
            None => left.insert(self.leave_old(loadable, departure).await),
        };
        self.attach_to(session, left).await
    }

    async fn check_loadable<'a>(&self, session: &'a Arc<SessionSlot>) -> Result<Loadable<'a>, Failure> {
        self.registry.ensure_loaded(session).await.map(|_guard| Loadable(session))
    }

    /// Ends the session that the connection leaves, where no other client is in it.
    async fn leave_old(&self, Loadable(next): Loadable<'_>, departure: &Departure) -> LeftCurrent {
        let Some(old) = departure.old.as_ref().filter(|old| !Arc::ptr_eq(old, next)) else {
            return LeftCurrent { hosts: None };
        };
        let target = next.file().map(|file| file.display().to_string());
        let (hosts, kept) = oneshot::channel();
        let end = SessionEnd { reason: departure.reason, target: target.clone(), hosts: Some(hosts) };
        if self.end_if_alone(old, Some(end)).await {
            return LeftCurrent { hosts: kept.await.ok() };
        }
        if !departure.takes_hosts {
            return LeftCurrent { hosts: None };
        }
        let (hosts, kept) = oneshot::channel();
        let end = SessionEnd { reason: departure.reason, target, hosts: Some(hosts) };
        if let Some(guard) = old.loaded_guard().await {
            guard.handle.give_hosts(end).await;
        }
        LeftCurrent { hosts: kept.await.ok() }
    }

    /// Adds a subscriber, which the caller reads from at once.
    async fn attach_to(&self, session: &Arc<SessionSlot>, _: &LeftCurrent) -> Result<Attached, Failure> {
        let loaded = self.registry.ensure_loaded(session).await?;
        loaded.handle.attach(None).await.ok_or_else(|| ended_meanwhile(session))
    }

    /// Ends a session that the connection follows, unless another client follows it or is about to, or it could not be opened
    /// again. Its last lines are written before anything else. Returns whether it was ended.
    pub(super) async fn end_if_alone(&self, session: &Arc<SessionSlot>, end: Option<SessionEnd>) -> bool {
        if self.client.names_sessions()
            || self.sessions.get(session).is_none()
            || !self.registry.close_if_unshared(session, end).await
        {
            return false;
        }
        if let Some(followed) = self.sessions.get(session) {
            // Owed even when the connection has left before the writer reaches it.
            followed.owed.add_events_through(session.feed().last_seq());
        }
        self.tell_writer(WriterCommand::AwaitEnd(Arc::clone(session.id()))).await;
        true
    }
}

/// Sends an answer through a feed, or where there is none to the writer.
async fn send_in_order(
    reply: Option<FeedReply>,
    outbox: &mpsc::Sender<WriterCommand>,
    response: &Response<impl Serialize>,
) {
    let Some(FeedReply { feed, subscriber }) = reply else { return send(outbox, response).await };
    match serde_json::to_vec(response) {
        Ok(line) => feed.reply(subscriber, line.into()),
        Err(error) => tracing::error!(%error, "cannot write an answer"),
    }
}

/// Waits until extensions have begun. A session that ended meanwhile had none.
async fn began(begun: oneshot::Receiver<Result<(), Failure>>) -> Result<(), Failure> {
    begun.await.unwrap_or(Ok(()))
}

fn ended_meanwhile(session: &SessionSlot) -> Failure {
    let text = format!("The session \"{}\" ended meanwhile.", session.id());
    Failure::new(ErrorCode::NoSession, text).hint("open_session opens one.")
}

/// The options for the session of a file, in the folder that the file names if that exists.
async fn options_of_file(mut options: SessionOptions, path: PathBuf) -> Result<SessionOptions, Failure> {
    let file = path.clone();
    let header = tokio::task::spawn_blocking(move || {
        // Opening the session reports a file that is no session.
        let header = read_header(&file).ok().flatten()?;
        Some(PathBuf::from(header.cwd())).filter(|cwd| cwd.is_absolute() && cwd.is_dir())
    });
    let cwd = header.await.map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))?;
    options.target = Target::Existing(path.display().to_string());
    options.cwd = cwd.unwrap_or(options.cwd);
    Ok(options)
}
