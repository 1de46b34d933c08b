//! Commands that leave a session for another one: a new one, that of a file, a copy.

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
use agentd_session::{CopyPoint, SessionOptions, Target};
use agentd_store::read_header;
use serde::Serialize;

use super::{reader::Reader, writer::Out};
use crate::hub::{AcquiredSession, JoinIntent, SessionSlot};

/// How often a session is opened that others end in the moment that somebody goes there.
const MOST_TRIES: usize = 10;

/// Where a connection goes.
struct Destination {
    session: Arc<SessionSlot>,
    /// While this is there nobody ends it as his own. Two clients that change places would else each end what the other goes
    /// to, and wait for each other.
    expected: JoinIntent,
    /// What opens it again if somebody ends it in this moment; nothing where nobody else knows it.
    again: Option<SessionOptions>,
    /// For `fork`: the text of the message that it begins before.
    text: Option<String>,
}

impl Reader {
    /// Does a command that replaces the session. Where that fails, everything is as it was.
    pub(super) async fn replace(&mut self, command: SwitchCommand, head: Head) {
        let (name, id) = (command.name(), head.id);
        let from = match self.session_of(head.session_id.as_deref()).await {
            Ok(session) => session,
            Err(failure) => return self.fail(id, Some(name), failure).await,
        };
        let done = match command {
            SwitchCommand::SwitchSession(params) => self.switch_session(&from, params).await,
            SwitchCommand::NewSession(params) => {
                let to = self.new_session(&from, params).await;
                self.go_to_new(to).await
            }
            SwitchCommand::Fork(ForkParams { entry_id }) | SwitchCommand::Branch(ForkParams { entry_id }) => {
                let to = self.copy(&from, CopyPoint::Before(entry_id)).await;
                self.go_to_new(to).await
            }
            SwitchCommand::CloneSession(_) => {
                let to = self.copy(&from, CopyPoint::Leaf).await;
                self.go_to_new(to).await
            }
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

    /// Continues with a session that was made for that.
    async fn go_to_new(&mut self, to: Result<Destination, Failure>) -> Result<Option<String>, Failure> {
        let to = to?;
        self.has_opened(&to.session);
        self.go_to(to).await
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
        // A session that was opened by its file, wherever that is, is followed by one beside it; `--session-dir` comes first.
        if options.session_dir.is_none()
            && let Target::Existing(_) = from.options().target
            && let Some(folder) = from.file().as_deref().and_then(Path::parent)
        {
            options.session_dir = Some(folder.to_owned());
        }
        let AcquiredSession { session, expected, .. } = self.registry.open(options).await?;
        Ok(Destination { session, expected, again: None, text: None })
    }

    /// Asks the session for a copy, whatever it does at the moment; one that left memory is loaded for that.
    async fn copy(&self, from: &Arc<SessionSlot>, point: CopyPoint) -> Result<Destination, Failure> {
        let copied = self.registry.ensure_loaded(from).await?.handle.copy(point).await?;
        let text = copied.text.clone();
        let target = if from.is_ephemeral() { Target::Ephemeral(None) } else { Target::New };
        let adopted = self.registry.adopt(SessionOptions { target, ..self.successor(from) }, copied).await;
        let AcquiredSession { session, expected, .. } = adopted.map_err(|error| {
            let failure = Failure::from(error);
            // The reference's words, which clients may look for, and then the reason.
            Failure { error: format!("Failed to create forked session: {}", failure.error), ..failure }
        })?;
        Ok(Destination { session, expected, again: None, text })
    }

    /// What the session that follows on `from` is opened with.
    fn successor(&self, from: &SessionSlot) -> SessionOptions {
        let wish = self.wishes.of(from.id()).cloned().unwrap_or_default();
        wish.successor(from.options())
    }

    /// Goes on with the session of a file. The one that the connection is in already is left and opened again where
    /// nobody else is in it.
    async fn switch_session(
        &mut self,
        from: &Arc<SessionSlot>,
        params: SwitchSessionParams,
    ) -> Result<Option<String>, Failure> {
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
        let wish = self.wishes.of(from.id()).cloned().unwrap_or_default();
        self.keep_wish(session.id(), wish)?;
        self.go_to(Destination { session, expected, again: Some(options), text: None }).await
    }

    /// Leaves the current session for another one, from whose newest event on this connection follows it. The old one
    /// is ended where nobody else is in it, and says its last words first.
    async fn go_to(&mut self, to: Destination) -> Result<Option<String>, Failure> {
        let Destination { mut session, mut expected, again, text } = to;
        let mut has_left = false;
        for _ in 0..MOST_TRIES {
            // Nothing is left for what cannot be opened. Not held while the old one ends: the one who comes from there may hold
            // that, and wait for this.
            let opens = self.registry.ensure_loaded(&session).await.map(drop);
            if opens.is_ok() && !std::mem::replace(&mut has_left, true) {
                self.leave_current(&session).await;
            }
            // A listener is only added once it is about to be listened to.
            let attached = match opens {
                Ok(()) => match self.registry.ensure_loaded(&session).await {
                    Ok(awake) => Ok(awake.handle.attach(None).await),
                    Err(failure) => Err(failure),
                },
                Err(failure) => Err(failure),
            };
            match attached {
                Ok(Some(attached)) => {
                    let so_far = attached.in_flight.and_then(|in_flight| in_flight.message);
                    self.move_to(session, attached.subscriber, so_far).await;
                    return Ok(text);
                }
                Err(failure) if failure.code != ErrorCode::NoSession => return Err(failure),
                Ok(None) | Err(_) => {}
            }
            // Somebody has ended it before he saw that we come.
            let Some(options) = &again else { break };
            AcquiredSession { session, expected, .. } = self.registry.open(options.clone()).await?;
        }
        drop(expected);
        let text = format!("The session \"{}\" ended meanwhile.", session.id());
        Err(Failure::new(ErrorCode::NoSession, text).hint("open_session opens one."))
    }

    /// Ends the session that the connection leaves for another one, where nobody else is in it.
    async fn leave_current(&self, next: &Arc<SessionSlot>) {
        if let Some(old) = self.sessions.current.clone()
            && !Arc::ptr_eq(&old, next)
        {
            self.end_if_alone(&old).await;
        }
    }

    /// Ends a session that the connection follows, unless somebody else does or is about to, or it may come back itself. What
    /// the session has to say to that is written before anything else.
    async fn end_if_alone(&self, session: &Arc<SessionSlot>) {
        if self.client.names_sessions()
            || self.sessions.get(session).is_none()
            || !self.registry.close_if_unshared(session).await
        {
            return;
        }
        if let Some(followed) = self.sessions.get(session) {
            // Owed also when the connection has left before the writer comes to it.
            followed.pending.add_events_through(session.feed().last_seq());
        }
        self.tell(Out::AwaitEnd(Arc::clone(session.id()))).await;
    }
}

/// The options for the session of a file, in the folder that the file names, if that is there.
async fn options_of_file(mut options: SessionOptions, path: PathBuf) -> Result<SessionOptions, Failure> {
    let file = path.clone();
    let header = tokio::task::spawn_blocking(move || {
        // What is no session is told when it is opened.
        let header = read_header(&file).ok().flatten()?;
        Some(PathBuf::from(header.cwd())).filter(|cwd| cwd.is_absolute() && cwd.is_dir())
    });
    let cwd = header.await.map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))?;
    options.target = Target::Existing(path.display().to_string());
    options.cwd = cwd.unwrap_or(options.cwd);
    Ok(options)
}
