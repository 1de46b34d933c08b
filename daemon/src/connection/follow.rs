//! Following and leaving sessions, and finding the session that a command names.

use std::sync::Arc;

use agentd_protocol::{
    Json,
    daemon::{AttachSessionParams, AttachedSession, EndMode, SessionParams},
    error::{ErrorCode, Failure},
    frame::Response,
    message::Message,
    ui::ExtensionUiRequest,
};
use agentd_session::{Attached, Subscriber, Target};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    attachments::Attachment,
    dispatcher::Dispatcher,
    feeds::{FollowedFeed, OwedReplies},
    writer::WriterCommand,
};
use crate::hub::{self, LoadedGuard, SessionSlot};

/// What becomes of a subscription after [`Dispatcher::join`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterJoining {
    /// The connection follows the session by it, in the place of a subscription that it has.
    Follow,
    /// It is dropped: only the state was wanted.
    Leave,
}

impl Dispatcher {
    pub(super) async fn attach_session(&mut self, params: AttachSessionParams, id: Option<Value>) {
        const NAME: &str = "attach_session";
        // Replayed updates alone do not give the answer so far.
        let replays = !self.client.view.is_cumulative;
        let of_this_epoch = params.since.filter(|since| replays && since.epoch == self.registry.epoch());
        let since = of_this_epoch.map(|since| since.seq);
        let admitted = self.may_follow(&params.session_id);
        let opened = match admitted {
            Ok(()) => self.open_by_id(&params.session_id).await,
            Err(failure) => Err(failure),
        };
        let joined = match opened {
            Ok(session) => self.join(session, since, AfterJoining::Follow).await,
            Err(failure) => Err(failure),
        };
        let (session, Attached { subscriber, seq, replayed, state, mut in_flight, message, pending_ui }) =
            match joined {
                Ok(joined) => joined,
                Err(failure) => return self.fail(id, Some(NAME), failure).await,
            };
        let epoch = self.registry.epoch().to_owned();
        let so_far = in_flight.as_ref().and_then(|in_flight| in_flight.message.clone());
        let pending_ui = self.shown_to_client(pending_ui);
        if self.client.view.has_message_ids
            && let Some(in_flight) = in_flight.as_mut().filter(|it| it.message.is_some())
        {
            in_flight.message_id = message.map(|id| id.to_string());
        }
        let data = AttachedSession { state, epoch, seq, replayed, in_flight, pending_ui };
        self.answer(&Response::done(id, NAME, Some(data))).await;
        self.move_to(session, subscriber, so_far).await;
    }

    /// Open questions as the client understands them.
    pub(super) fn shown_to_client(&self, pending: Vec<ExtensionUiRequest>) -> Vec<ExtensionUiRequest> {
        if self.client.view.answers_permissions {
            return pending;
        }
        pending.into_iter().map(ExtensionUiRequest::plain).collect()
    }

    pub(super) async fn detach_session(&mut self, params: SessionParams, id: Option<Value>) {
        const NAME: &str = "detach_session";
        if !self.sessions.leave(&params.session_id) {
            let text = format!("This connection does not follow a session \"{}\".", params.session_id);
            return self.fail(id, Some(NAME), Failure::new(ErrorCode::SessionNotFound, text)).await;
        }
        if self.sessions.current.as_ref().is_some_and(|current| **current.id() == *params.session_id) {
            self.sessions.current = None;
        }
        self.answer(&Response::<()>::done(id, NAME, None)).await;
    }

    /// Attaches to a session, from the event after `since` if that is kept. An unloaded session is loaded first.
    pub(super) async fn join(
        &self,
        session: Arc<SessionSlot>,
        since: Option<u64>,
        then: AfterJoining,
    ) -> Result<(Arc<SessionSlot>, Attached), Failure> {
        let (session, guard) = self.load(session).await?;
        let before = match then {
            AfterJoining::Follow if self.client.view.hears_prompt_results => {
                self.sessions.get(&session).map(|followed| followed.subscriber)
            }
            AfterJoining::Follow | AfterJoining::Leave => None,
        };
        let attached = guard.handle.attach_instead_of(before, since).await;
        let attached = attached.ok_or_else(|| gone(session.id()))?;
        drop(guard);
        Ok((session, attached))
    }

    /// Follows a session as the current one, in the middle of the answer `so_far` if there is one. A client that does not name
    /// sessions follows no other beside it.
    pub(super) async fn move_to(
        &mut self,
        session: Arc<SessionSlot>,
        feed: Subscriber,
        so_far: Option<Json<Message>>,
    ) {
        if !self.client.names_sessions() {
            self.sessions.leave_others(session.id());
        }
        self.follow(session, feed, so_far).await;
    }

    /// Follows a session from the position of `feed`, in the middle of the answer `so_far` if there is one, and makes it the
    /// current one.
    pub(super) async fn follow(
        &mut self,
        session: Arc<SessionSlot>,
        feed: Subscriber,
        so_far: Option<Json<Message>>,
    ) {
        let id = Arc::clone(session.id());
        let (owed, leaving) = (OwedReplies::default(), CancellationToken::new());
        let before = self.sessions.take(&id);
        let tools = before.and_then(|before| {
            if !before.is_to(&session) {
                // A session that had this id before: it has ended, and its tools with it.
                before.leave();
                return None;
            }
            // Before the old subscription is muted: tool calls from here on go to the new one.
            before.tools.as_ref().inspect(|tools| tools.listen_as(feed.id()));
            before.leaving.cancel();
            before.tools
        });
        let attachment = Attachment {
            subscriber: feed.id(),
            owed: owed.clone(),
            leaving: leaving.clone(),
            session: Arc::clone(&session),
            _count: session.client(),
            _mover: session.session_clients().may_be_moved(feed.id(), self.moves.of_extensions.0.clone()),
            present: self.client.abilities().map(|abilities| session.session_clients().enter(abilities)),
            subagent_events: self
                .client
                .hears_subagent_events
                .then(|| session.session_clients().follow_subagents(feed.id())),
            tools,
        };
        self.sessions.insert(Arc::clone(&id), attachment);
        self.sessions.current = Some(Arc::clone(&session));
        let following = FollowedFeed { session: id, feed, owed, leaving, so_far };
        self.tell_writer(WriterCommand::Follow(Box::new(following))).await;
        self.register_kept_tools(&session).await;
        self.serve_kept_urls(&session).await;
        self.execute_kept_languages(&session).await;
        self.ask_trust(&session).await;
    }

    /// Whether the client may follow one more session.
    pub(super) fn may_follow(&mut self, id: &str) -> Result<(), Failure> {
        let limit = self.connection.limits.followed;
        if !self.client.names_sessions() || self.sessions.has(id) || !self.sessions.are_full(limit) {
            return Ok(());
        }
        let text = format!("This client follows {limit} sessions, as many as it may.");
        Err(Failure::limit(text, "daemon.maxFollowedSessions", "Leave some by detach_session."))
    }

    /// The session of that id; without an id, the current one.
    pub(super) async fn named_or_current(&self, id: Option<&str>) -> Result<Arc<SessionSlot>, Failure> {
        match (id, &self.sessions.current) {
            // A session that has ended may have been opened again.
            (Some(id), Some(current)) if **current.id() == *id && !current.has_ended() => {
                Ok(Arc::clone(current))
            }
            (Some(id), _) => self.find_session(id).await,
            (None, Some(current)) => Ok(Arc::clone(current)),
            (None, None) => Err(Failure::new(ErrorCode::NoSession, "No session is open on this connection.")
                .hint("Use open_session or attach_session first, or name one with sessionId.")),
        }
    }

    /// The open session of that id. An evicted one is opened again.
    pub(super) async fn find_session(&self, id: &str) -> Result<Arc<SessionSlot>, Failure> {
        match self.registry.get(id) {
            Some(session) => Ok(session),
            None if self.registry.was_evicted(id) => Box::pin(self.open_by_id(id)).await,
            None => Err(Failure::new(ErrorCode::SessionNotFound, format!("No session \"{id}\" is open."))
                .hint("open_session or attach_session opens one; list_sessions lists all that there are.")),
        }
    }

    /// The session of that id: the open one, else the one of its file.
    pub(super) async fn open_by_id(&self, id: &str) -> Result<Arc<SessionSlot>, Failure> {
        if let Some(session) = self.registry.get(id) {
            return Ok(session);
        }
        // The session would get the daemon's environment.
        if self.command_peer.is_some() {
            return Err(hub::session_list::unknown(id));
        }
        let (agent_dir, wanted) = (self.agent_dir()?, id.to_owned());
        let elsewhere = self.registry.evicted_file(id);
        let found = tokio::task::spawn_blocking(move || match elsewhere {
            Some(file) => hub::session_list::header_of(file, &wanted),
            None => hub::session_list::file_of(&agent_dir, &wanted),
        })
        .await;
        let (path, header) =
            found.map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))??;
        let mut options = self.connection.options.clone();
        options.target = Target::Existing(path.display().to_string());
        if !header.cwd().is_empty() {
            options.cwd = header.cwd().into();
        }
        let session = self.registry.open(options).await?.session;
        if **session.id() != *id {
            // The file was deleted meanwhile, so this is a new session that nobody has asked for.
            if session.is_unattended() {
                self.registry.close(&session, EndMode::Abort).await;
            }
            return Err(hub::session_list::unknown(id));
        }
        Ok(session)
    }

    /// Loads a session if it is unloaded, and keeps it loaded while the guard is held. One that has just been evicted is opened
    /// again.
    pub(super) async fn load(
        &self,
        session: Arc<SessionSlot>,
    ) -> Result<(Arc<SessionSlot>, LoadedGuard), Failure> {
        match self.registry.ensure_loaded(&session).await {
            Ok(guard) => Ok((session, guard)),
            Err(failure)
                if failure.code == ErrorCode::NoSession && self.registry.was_evicted(session.id()) =>
            {
                let session = Box::pin(self.open_by_id(session.id())).await?;
                let guard = self.registry.ensure_loaded(&session).await?;
                Ok((session, guard))
            }
            Err(failure) => Err(failure),
        }
    }
}

pub(super) fn gone(session: &str) -> Failure {
    let text = format!("The session \"{session}\" ended meanwhile.");
    Failure::new(ErrorCode::NoSession, text).hint("Attach or open it again.")
}
