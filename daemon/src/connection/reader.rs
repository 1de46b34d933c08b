//! The reading half of a connection: takes lines, finds the command, hands it on.

use std::sync::Arc;

use agentd_auth::scrub_failure;
use agentd_memory::{MemoryPurpose, MemoryReservation};
use agentd_protocol::{
    Json,
    command::{AdminCommand, Command, SessionCommand},
    error::{ErrorCode, Failure},
    frame::{Head, Response, unknown_command},
    lines::{Line, SMALL_LINE_BYTES},
    message::Message,
    ui::UiResponse,
};
use agentd_session::{Reply, SubscriberId};
use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    Connection, Origin,
    attachment::Attachments,
    caller::Caller,
    client::Client,
    following::{Following, Pending},
    providing::{self, Providing},
    reserved::Reserved,
    wishes::Wishes,
    writer::Out,
};
use crate::{
    admin,
    cli::OnEof,
    hub::{SessionRegistry, SessionSlot},
    limits::LINES_A_TURN,
};

/// An answer of that length waits until those before it have been taken, so that long ones are never many.
const LONG_ANSWER_BYTES: usize = 64 << 10;

pub(super) struct Reader {
    pub(super) connection: Connection,
    pub(super) registry: Arc<SessionRegistry>,
    pub(super) client: Client,
    /// Set where the client is a command of ours.
    pub(super) caller: Option<Caller>,
    pub(super) sessions: Attachments,
    /// What the end of the input means for work of the current session, on a socket: it goes on in any case, and is
    /// waited for or not.
    pub(super) on_eof: OnEof,
    outbox: mpsc::Sender<Out>,
    /// What it asked for when it opened sessions.
    pub(super) wishes: Wishes,
    /// The tools that it provides.
    pub(super) providing: Providing,
    /// While all sessions are watched; ends that when it is dropped.
    pub(super) watching: Option<DropGuard>,
    /// Fires when the client cannot take an answer any more: what changes nothing need not go on.
    pub(super) gone: CancellationToken,
    /// Commands that take their time and are done beside all others.
    beside: JoinSet<()>,
    /// Shared by those of them whose answers are not on their way yet.
    under_way: Arc<()>,
    /// Whether it is to end: it wanted what its place is not for.
    is_left: bool,
}

impl Reader {
    pub(super) fn new(
        connection: Connection,
        number: u64,
        caller: Option<Caller>,
        outbox: mpsc::Sender<Out>,
        gone: CancellationToken,
    ) -> Self {
        let registry = Arc::clone(&connection.daemon.sessions);
        let (client, sessions) = (Client::new(number, caller.is_some()), Attachments::default());
        let (on_eof, beside) = (OnEof::default(), JoinSet::new());
        let (providing, under_way) = (Providing::default(), Arc::default());
        let wishes = Wishes::default();
        Self {
            connection,
            registry,
            client,
            caller,
            sessions,
            on_eof,
            outbox,
            wishes,
            providing,
            watching: None,
            gone,
            beside,
            under_way,
            is_left: false,
        }
    }

    /// Follows the session that is there from the start, if one is.
    pub(super) async fn begin(&mut self) {
        if let Origin::Host { session, cumulative, answers, .. } = &self.connection.origin {
            self.client.is_alone = !answers;
            if *cumulative {
                self.client.view.is_cumulative = true;
                self.tell(Out::View(self.client.view)).await;
            }
            let (session, feed) = (Arc::clone(session), session.feed().attach());
            self.follow(session, feed, None).await;
        }
    }

    /// Takes lines until the input ends; then leaves the sessions, or ends them, as the connection's origin has it. When
    /// `ending` fires, someone else ends the sessions, and no more is read.
    pub(super) async fn run(mut self, mut lines: mpsc::Receiver<Line>, ending: CancellationToken) {
        loop {
            let line = tokio::select! {
                line = lines.recv() => line,
                failure = silence(self.connection.reserved.as_ref()), if !self.connection.shutdown.is_requested() => {
                    self.fail(None, None, failure).await;
                    None
                }
                () = ending.cancelled() => return,
            };
            match line {
                Some(line) => self.turn(line, &mut lines).await,
                None => break,
            }
            if self.is_left {
                break;
            }
        }
        // Nobody answers calls any more; what waits for them must not wait on.
        self.sessions.disconnect_tools();
        // Whoever asked before the end of the input is answered.
        while self.beside.join_next().await.is_some() {}
        match self.connection.origin {
            Origin::Socket { .. } => {
                if self.on_eof == OnEof::Drain {
                    tokio::select! {
                        () = self.drain() => {}
                        () = ending.cancelled() => return,
                    }
                }
                self.sessions.leave_all();
            }
            Origin::Host { on_eof, .. } => {
                match on_eof {
                    OnEof::Abort => self.sessions.leave_all(),
                    OnEof::Drain => self.registry.idle().await,
                }
                // What the host does not want any more nobody else can.
                self.registry.close_sessions().await;
            }
        }
    }

    /// Waits until the current session has nothing to do; all that it says until then is written, too.
    async fn drain(&self) {
        let Some(current) = &self.sessions.current else { return };
        // One that left memory has nothing to do.
        if let Some(handle) = current.loaded() {
            handle.idle().await;
        }
        if let Some(followed) = self.sessions.get(current) {
            followed.pending.add_events_through(current.feed().last_seq());
        }
    }

    /// Takes a line when it is the connection's turn, and with it those behind it, unless others wait for theirs.
    async fn turn(&mut self, line: Line, lines: &mut mpsc::Receiver<Line>) {
        let daemon = Arc::clone(&self.connection.daemon);
        let scheduler = &daemon.scheduler;
        let taking = async {
            self.line(line).await;
            for _ in 1..LINES_A_TURN {
                if scheduler.has_waiters() {
                    break;
                }
                let Ok(line) = lines.try_recv() else { break };
                self.line(line).await;
                if self.is_left {
                    break;
                }
            }
        };
        scheduler.run_in_turn(taking).await;
    }

    async fn line(&mut self, line: Line) {
        match line {
            Line::Text(text) => self.text(&text).await,
            Line::TooLong => {
                let limit = self.connection.max_line_bytes;
                let text =
                    format!("Failed to parse command: the line is longer than the limit of {limit} bytes");
                let failure = Failure::new(ErrorCode::TooLarge, text)
                    .hint("The line was skipped; send large content through files.");
                self.fail(None, Some("parse"), failure).await;
            }
            Line::Refused(failure) => self.fail(None, Some("parse"), *failure).await,
        }
    }

    async fn text(&mut self, line: &str) {
        let mut head = match Head::parse(line) {
            Ok(head) => head,
            Err(failure) => return self.fail(None, Some("parse"), failure).await,
        };
        let kind = head.kind.as_deref();
        if let Some(fault) = head.fault.take() {
            return self.fail(head.id, kind, fault.into()).await;
        }
        if kind == Some(UiResponse::TYPE) {
            return self.answer_question(head, line).await;
        }
        let command = match kind.and_then(|name| Command::parse(name, line)) {
            None => return self.fail(head.id, kind, unknown_command(kind)).await,
            Some(Err(field)) => {
                if kind == Some(providing::RESPONSE) {
                    self.providing.unreadable(line, &field);
                }
                return self.fail(head.id, kind, field.into()).await;
            }
            Some(Ok(command)) => command,
        };
        if let Some(Err(failure)) = self.connection.reserved.as_ref().map(|reserved| reserved.may(&command)) {
            self.is_left = true;
            return self.fail(head.id, kind, failure).await;
        }
        if let Err(failure) = self.may(&command, head.session_id.as_deref()) {
            return self.fail(head.id, kind, failure).await;
        }
        if command.spec().begins_work && self.connection.shutdown.is_requested() {
            let failure =
                Failure::new(ErrorCode::ShuttingDown, "The daemon is ending and takes no new work.");
            return self
                .fail(head.id, kind, failure.hint("`agentctl up` waits for its end and starts it again."))
                .await;
        }
        match command {
            Command::Session(command) => self.for_session(command, head, line.len()).await,
            Command::Switch(command) => self.replace(command, head).await,
            Command::ClientTool(command) => self.provide(command, head, line.len()).await,
            Command::Admin(command) => self.administer(command, head.id).await,
            Command::Daemon(command) => self.manage(command, head.id).await,
        }
    }

    /// Hands a command to the session that it names, or to the current one. One that left memory is loaded first.
    /// `bytes` is the length of its line.
    async fn for_session(&mut self, mut command: SessionCommand, head: Head, bytes: usize) {
        if let SessionCommand::GetState(params) | SessionCommand::GetMessages(params) = &mut command {
            params.introduced = self.client.is_introduced();
            params.names_sessions = self.client.names_sessions();
        }
        let spec = command.spec();
        let name = spec.name;
        let session = match self.session_of(head.session_id.as_deref()).await {
            Ok(session) => session,
            Err(failure) => return self.fail(head.id, Some(name), failure).await,
        };
        if spec.begins_work
            && let Err(failure) = self.registry.evict_for_memory(Some(&**session.id())).await
        {
            return self.fail(head.id, Some(name), failure).await;
        }
        let memory = match self.memory_for(bytes) {
            Ok(memory) => memory,
            Err(failure) => return self.fail(head.id, Some(name), failure).await,
        };
        let (session, awake) = match self.awaken(session).await {
            Ok(awake) => awake,
            Err(failure) => return self.fail(head.id, Some(name), failure).await,
        };
        let (reader, pending) = match self.sessions.get(&session) {
            Some(followed) => {
                followed.pending.add();
                (followed.reader, followed.pending.clone())
            }
            None => self.follow_for_an_answer(&session, spec.is_read_only()).await,
        };
        let id = head.id.clone();
        let environment = self.wishes.environment(session.id());
        let reply = Reply { subscriber: reader, id: head.id, command: name, environment, memory };
        if !awake.handle.send(command, reply).await {
            pending.take_back();
            self.fail(id, Some(name), ended()).await;
        }
    }

    /// Memory for a command of so many bytes, until its session has answered it; nothing for a small one.
    fn memory_for(&self, bytes: usize) -> Result<Option<MemoryReservation>, Failure> {
        if bytes < SMALL_LINE_BYTES {
            return Ok(None);
        }
        let mut memory = self.registry.memory().open(MemoryPurpose::Commands);
        memory.grow_to(bytes as u64).map_err(|refused| {
            let text = format!("The command cannot wait for its session: {refused}.");
            Failure::new(ErrorCode::LimitReached, text).hint(refused.hint())
        })?;
        Ok(Some(memory))
    }

    /// Takes one answer, and nothing else, of a session that the connection does not follow. It is counted as pending. For a
    /// command that only looks, nobody who follows the session is cut off.
    async fn follow_for_an_answer(&self, session: &SessionSlot, only_looks: bool) -> (SubscriberId, Pending) {
        let feed = session.feed().attach_aside(only_looks);
        let (reader, pending, leaving) = (feed.id(), Pending::default(), CancellationToken::new());
        pending.add();
        leaving.cancel();
        let session = Arc::clone(session.id());
        let following = Following { session, feed, pending: pending.clone(), leaving, so_far: None };
        self.tell(Out::Follow(Box::new(following))).await;
        (reader, pending)
    }

    /// The session of that id; without one, the current.
    pub(super) async fn session_of(&self, id: Option<&str>) -> Result<Arc<SessionSlot>, Failure> {
        match (id, &self.sessions.current) {
            // One that has ended may have been opened again.
            (Some(id), Some(current)) if **current.id() == *id && !current.has_ended() => {
                Ok(Arc::clone(current))
            }
            (Some(id), _) => self.known(id).await,
            (None, Some(current)) => Ok(Arc::clone(current)),
            (None, None) => Err(Failure::new(ErrorCode::NoSession, "No session is open on this connection.")
                .hint("Use open_session or attach_session first, or name one with sessionId.")),
        }
    }

    /// A session that is open. One that had to make place for others is opened again.
    pub(super) async fn known(&self, id: &str) -> Result<Arc<SessionSlot>, Failure> {
        match self.registry.get(id) {
            Some(known) => Ok(known),
            None if self.registry.was_evicted(id) => self.open_by_id(id).await,
            None => Err(Failure::new(ErrorCode::SessionNotFound, format!("No session \"{id}\" is open."))
                .hint("open_session or attach_session opens one; list_sessions lists all that there are.")),
        }
    }

    /// Whether the client may follow another session beside those that it does.
    pub(super) fn may_follow(&mut self, id: &str) -> Result<(), Failure> {
        let limit = self.connection.limits.followed;
        if !self.client.names_sessions() || self.sessions.has(id) || !self.sessions.are_full(limit) {
            return Ok(());
        }
        let text = format!("This client follows {limit} sessions, as many as it may.");
        Err(Failure::limit(text, "daemon.maxFollowedSessions", "Leave some by detach_session."))
    }

    /// Follows a session from where its feed stands, in the middle of the answer `so_far` if there is one, and makes it the
    /// current one.
    pub(super) async fn follow(
        &mut self,
        session: Arc<SessionSlot>,
        feed: agentd_session::Subscriber,
        so_far: Option<Json<Message>>,
    ) {
        let id = Arc::clone(session.id());
        let (pending, leaving) = (Pending::default(), CancellationToken::new());
        let before = self.sessions.take(&id);
        let tools = before.and_then(|before| {
            if !before.is_to(&session) {
                // That one has ended, and its tools with it.
                before.leave();
                return None;
            }
            // Before the other end falls silent: what is said to its tools from here on is said to this one.
            before.tools.as_ref().inspect(|tools| tools.listen_as(feed.id()));
            before.leaving.cancel();
            before.tools
        });
        let attachment = super::attachment::Attachment {
            reader: feed.id(),
            pending: pending.clone(),
            leaving: leaving.clone(),
            session: Arc::clone(&session),
            _count: session.client(),
            present: self.client.abilities().map(|abilities| session.session_clients().enter(abilities)),
            tools,
        };
        self.sessions.insert(Arc::clone(&id), attachment);
        self.sessions.current = Some(Arc::clone(&session));
        let following = Following { session: id, feed, pending, leaving, so_far };
        self.tell(Out::Follow(Box::new(following))).await;
        self.bring_tools(&session).await;
        self.ask_trust(&session).await;
    }

    /// Does a command about the set-up, beside everything else: it may take its time.
    async fn administer(&mut self, command: AdminCommand, id: Option<Value>) {
        let context = admin::Context::of(&self.connection.options, self.registry.auth_services());
        let name = command.name();
        self.beside(id, name, async move { admin::answer(context, command).await.map(Some) }).await;
    }

    /// Answers when `work` is done, and goes on reading meanwhile. A client that has too much of that under way is refused.
    pub(super) async fn beside<T: Serialize + Send + Sync + 'static>(
        &mut self,
        id: Option<Value>,
        name: &'static str,
        work: impl Future<Output = Result<Option<T>, Failure>> + Send + 'static,
    ) {
        while self.beside.try_join_next().is_some() {}
        let (count, limit) = (Arc::strong_count(&self.under_way) - 1, self.connection.limits.pending);
        if count >= limit {
            let text = format!("{count} commands of this client are under way, as many as may.");
            let instead = "Wait for their answers, and take them.";
            let failure = Failure::limit(text, "daemon.maxPendingCommands", instead);
            return self.fail(id, Some(name), failure).await;
        }
        let (outbox, under_way) = (self.outbox.clone(), Arc::clone(&self.under_way));
        self.beside.spawn(async move {
            // Whoever has an answer may ask again at once.
            let before = move || drop(under_way);
            match work.await {
                Ok(data) => send_after(&outbox, &Response::done(id, name, data), before).await,
                Err(failure) => {
                    let failed = Response::<()>::failed(id, Some(name), scrub_failure(failure));
                    send_after(&outbox, &failed, before).await;
                }
            }
        });
    }

    pub(super) async fn fail(&self, id: Option<Value>, command: Option<&str>, failure: Failure) {
        self.answer(&Response::<()>::failed(id, command, scrub_failure(failure))).await;
    }

    pub(super) async fn answer<T: Serialize>(&self, response: &Response<T>) {
        send(&self.outbox, response).await;
    }

    pub(super) async fn tell(&self, out: Out) {
        // A writer that is gone means a client that is gone: nobody misses the answer.
        let _ = self.outbox.send(out).await;
    }

    /// Waits until what the writer was told counts.
    pub(super) async fn settle(&self) {
        let (settled, counts) = oneshot::channel();
        self.tell(Out::Settle(settled)).await;
        // As above.
        let _ = counts.await;
    }
}

/// Waits until a connection that there is no place for has said nothing for too long; for ever where it has one.
async fn silence(reserved: Option<&Reserved>) -> Failure {
    match reserved {
        Some(reserved) => reserved.is_silent().await,
        None => std::future::pending().await,
    }
}

pub(super) fn ended() -> Failure {
    Failure::new(ErrorCode::NoSession, "The session has ended.")
}

async fn send<T: Serialize>(outbox: &mpsc::Sender<Out>, response: &Response<T>) {
    send_after(outbox, response, || ()).await;
}

/// Sends an answer, and calls `before` when there is room for it: before anybody can have read it.
async fn send_after<T: Serialize>(outbox: &mpsc::Sender<Out>, response: &Response<T>, before: impl FnOnce()) {
    match serde_json::to_vec(response) {
        // As above: a writer that is gone means a client that is gone.
        Ok(line) => {
            let places = if line.len() < LONG_ANSWER_BYTES { 1 } else { outbox.max_capacity() };
            if let Ok(mut places) = outbox.reserve_many(places).await
                && let Some(place) = places.next()
            {
                before();
                place.send(Out::Line(Bytes::from(line)));
            }
        }
        Err(error) => tracing::error!(%error, "cannot write an answer"),
    }
}
