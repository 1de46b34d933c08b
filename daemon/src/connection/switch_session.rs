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

use agentd_config::resolve_path;
use agentd_protocol::{
    command::{Cancelled, ForkParams, Forked, NewSessionParams, SwitchCommand, SwitchSessionParams},
    error::{ErrorCode, Failure},
    frame::{Head, Response},
};
use agentd_session::{Attached, CopyPoint, SessionOptions, Target};
use agentd_store::read_header;
use serde::Serialize;

use super::{dispatcher::Dispatcher, writer::WriterCommand};
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
}

impl Destination {
    fn new(opened: AcquiredSession, text: Option<String>) -> Self {
        Self { session: opened.session, expected: opened.expected, reopen_with: None, text }
    }

    /// Opens the session again; false when it cannot be.
    async fn reopen(&mut self, registry: &Arc<SessionRegistry>) -> Result<bool, Failure> {
        let Some(options) = &self.reopen_with else { return Ok(false) };
        let opened = registry.open(options.clone()).await?;
        (self.session, self.expected) = (opened.session, opened.expected);
        Ok(true)
    }
}

/// Proof that a destination could be loaded. It holds no guard: leaving the current session waits, and the client that comes from
/// the destination may wait for this one.
struct Loadable<'a>(&'a Arc<SessionSlot>);

/// Proof that the connection has left its current session. Only a [`Loadable`] destination gives one, and attaching takes one, so
/// nothing is left for a session that cannot be opened, and the old session's last lines are written before those of the new one.
struct LeftCurrent;

impl Dispatcher {
    /// Executes a command that leaves the session for another one. When it fails before that, nothing has changed.
    pub(super) async fn switch(&mut self, command: SwitchCommand, head: Head) {
        let (name, id) = (command.name(), head.id);
        let from = match self.named_or_current(head.session_id.as_deref()).await {
            Ok(session) => session,
            Err(failure) => return self.fail(id, Some(name), failure).await,
        };
        let destination = match command {
            SwitchCommand::SwitchSession(params) => self.session_of_file(&from, params).await,
            SwitchCommand::NewSession(params) => self.new_session(&from, params).await,
            SwitchCommand::Fork(ForkParams { entry_id }) | SwitchCommand::Branch(ForkParams { entry_id }) => {
                self.copy(&from, CopyPoint::Before(entry_id)).await
            }
            SwitchCommand::CloneSession(_) => self.copy(&from, CopyPoint::Leaf).await,
        };
        let done = match destination {
            Ok(destination) => self.go_to(destination).await,
            Err(failure) => Err(failure),
        };
        match done {
            Ok(Some(text)) => self.done(id, name, Forked { text, cancelled: false }).await,
            Ok(None) => self.done(id, name, Cancelled { cancelled: false }).await,
            Err(failure) => self.fail(id, Some(name), failure).await,
        }
    }

    async fn done(&self, id: Option<serde_json::Value>, name: &str, data: impl Serialize) {
        self.answer(&Response::done(id, name, Some(data))).await;
    }

    async fn new_session(
        &self,
        from: &SessionSlot,
        params: NewSessionParams,
    ) -> Result<Destination, Failure> {
        let target = match params.parent_session {
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
        let opened = self.registry.open(options).await?;
        self.has_opened(&opened.session);
        Ok(Destination::new(opened, None))
    }

    /// Asks the session for a copy, whatever it does at the moment; an unloaded one is loaded first.
    async fn copy(&self, from: &Arc<SessionSlot>, point: CopyPoint) -> Result<Destination, Failure> {
        let copied = self.registry.ensure_loaded(from).await?.handle.copy(point).await?;
        let text = copied.text.clone();
        let target = if from.is_ephemeral() { Target::Ephemeral(None) } else { Target::New };
        let adopted = self.registry.adopt(SessionOptions { target, ..self.successor(from) }, copied).await;
        let opened = adopted.map_err(|error| {
            let failure = Failure::from(error);
            // pi's words, which clients may look for, and then the reason.
            Failure { error: format!("Failed to create forked session: {}", failure.error), ..failure }
        })?;
        self.has_opened(&opened.session);
        Ok(Destination::new(opened, text))
    }

    /// The options that the session after `from` is opened with.
    fn successor(&self, from: &SessionSlot) -> SessionOptions {
        let request = self.open_requests.of(from.id()).cloned().unwrap_or_default();
        request.successor(from.options())
    }

    /// Opens the session of a file. If the connection follows it already, it is closed first where no other client is in it.
    async fn session_of_file(
        &mut self,
        from: &Arc<SessionSlot>,
        params: SwitchSessionParams,
    ) -> Result<Destination, Failure> {
        if params.session_path.is_empty() {
            let text = "Invalid field \"sessionPath\": expected the path of a session file, got \"\"";
            return Err(Failure::new(ErrorCode::InvalidField, text));
        }
        let base = self.successor(from);
        let path = resolve_path(&params.session_path, &base.cwd, &base.environment);
        let options = options_of_file(base, path).await?;
        let AcquiredSession { mut session, mut expected, .. } = self.registry.open(options.clone()).await?;
        if self.sessions.get(&session).is_some() {
            drop(expected);
            self.end_if_alone(&session).await;
            AcquiredSession { session, expected, .. } = self.registry.open(options.clone()).await?;
        }
        let request = self.open_requests.of(from.id()).cloned().unwrap_or_default();
        self.keep_request(session.id(), request)?;
        Ok(Destination { session, expected, reopen_with: Some(options), text: None })
    }

    /// Leaves the current session for another one, which the connection follows from its newest event on. The old session is
    /// ended where no other client is in it, and its last lines are written first.
    async fn go_to(&mut self, mut to: Destination) -> Result<Option<String>, Failure> {
        let mut left = None;
        for _ in 0..MAX_ATTEMPTS {
            match self.leave_for(&to.session, &mut left).await {
                Ok(Attached { subscriber, in_flight, .. }) => {
                    let so_far = in_flight.and_then(|in_flight| in_flight.message);
                    self.move_to(Arc::clone(&to.session), subscriber, so_far).await;
                    return Ok(to.text);
                }
                Err(failure) if failure.code != ErrorCode::NoSession => return Err(failure),
                // Another client has ended it before it saw the join intent.
                Err(_) => {}
            }
            if !to.reopen(&self.registry).await? {
                break;
            }
        }
        Err(ended_meanwhile(&to.session))
    }

    /// One attempt to reach a session: checks that it can be loaded, leaves the current one unless an attempt before has, and
    /// attaches.
    async fn leave_for(
        &self,
        session: &Arc<SessionSlot>,
        left: &mut Option<LeftCurrent>,
    ) -> Result<Attached, Failure> {
        let loadable = self.check_loadable(session).await?;
        let left = match left {
            Some(left) => left,
            None => left.insert(self.leave_current(loadable).await),
        };
        self.attach_to(session, left).await
    }

    async fn check_loadable<'a>(&self, session: &'a Arc<SessionSlot>) -> Result<Loadable<'a>, Failure> {
        self.registry.ensure_loaded(session).await.map(|_guard| Loadable(session))
    }

    /// Ends the session that the connection leaves, where no other client is in it.
    async fn leave_current(&self, Loadable(next): Loadable<'_>) -> LeftCurrent {
        if let Some(old) = self.sessions.current.clone()
            && !Arc::ptr_eq(&old, next)
        {
            self.end_if_alone(&old).await;
        }
        LeftCurrent
    }

    /// Adds a subscriber, which the caller reads from at once.
    async fn attach_to(&self, session: &Arc<SessionSlot>, _: &LeftCurrent) -> Result<Attached, Failure> {
        let loaded = self.registry.ensure_loaded(session).await?;
        loaded.handle.attach(None).await.ok_or_else(|| ended_meanwhile(session))
    }

    /// Ends a session that the connection follows, unless another client follows it or is about to, or it could not be opened
    /// again. Its last lines are written before anything else.
    async fn end_if_alone(&self, session: &Arc<SessionSlot>) {
        if self.client.names_sessions()
            || self.sessions.get(session).is_none()
            || !self.registry.close_if_unshared(session).await
        {
            return;
        }
        if let Some(followed) = self.sessions.get(session) {
            // Owed even when the connection has left before the writer reaches it.
            followed.owed.add_events_through(session.feed().last_seq());
        }
        self.tell_writer(WriterCommand::AwaitEnd(Arc::clone(session.id()))).await;
    }
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
