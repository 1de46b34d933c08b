//! The state of a connection's reading half, and the services that all commands share: replies, background work, permissions.

use std::sync::Arc;

use agentd_auth::scrub_failure;
use agentd_protocol::{
    command::Command,
    error::{ErrorCode, Failure},
    frame::Response,
};
use agentd_session::{SessionOptions, Target};
use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    attachments::Attachments,
    client::Client,
    command_peer::{BY_THE_USER, CommandPeer, OWN_SESSIONS},
    moves::Moves,
    open_requests::OpenRequests,
    options::Connection,
    provided_tools::ProvidedTools,
    writer::WriterCommand,
};
use crate::{
    cli::OnEof,
    hub::{Opener, SessionLookup, SessionRegistry, SessionSlot},
};

/// An answer of at least this many bytes waits until the writer has taken those before it, so that few long answers are in memory.
const LONG_ANSWER_BYTES: usize = 64 << 10;

/// The reading half of a connection. Each file above this one adds the commands of one family.
pub(super) struct Dispatcher {
    pub(super) connection: Connection,
    pub(super) registry: Arc<SessionRegistry>,
    pub(super) client: Client,
    /// Set for a client that is a command of a session, and so not the user.
    pub(super) command_peer: Option<CommandPeer>,
    pub(super) sessions: Attachments,
    /// Whether the end of a socket's input waits for the current session's work, which continues either way.
    pub(super) on_eof: OnEof,
    pub(super) outbox: mpsc::Sender<WriterCommand>,
    /// The options that the client gave when it opened sessions.
    pub(super) open_requests: OpenRequests,
    pub(super) provided_tools: ProvidedTools,
    /// Set while the client watches all sessions; dropping it ends the watch.
    pub(super) watching: Option<DropGuard>,
    /// Fires when the client cannot receive answers any more. Work that only reads is then given up.
    pub(super) gone: CancellationToken,
    /// Slow commands, each a task of its own.
    pub(super) background: JoinSet<()>,
    /// What leads the connection to other sessions.
    pub(super) moves: Moves,
    /// Shared with each background command until its answer is handed to the writer: the strong count minus one counts them.
    unanswered: Arc<()>,
    /// Set when a client in a reserved slot sent a command that such a client may not send: the connection ends.
    pub(super) is_refused: bool,
}

impl Dispatcher {
    pub(super) fn new(
        connection: Connection,
        number: u64,
        command_peer: Option<CommandPeer>,
        outbox: mpsc::Sender<WriterCommand>,
        gone: CancellationToken,
    ) -> Self {
        let registry = Arc::clone(&connection.daemon.sessions);
        let (client, sessions) = (Client::new(number, command_peer.is_some()), Attachments::default());
        let (on_eof, background) = (OnEof::default(), JoinSet::new());
        let (provided_tools, unanswered) = (ProvidedTools::default(), Arc::default());
        let open_requests = OpenRequests::default();
        Self {
            connection,
            registry,
            client,
            command_peer,
            sessions,
            on_eof,
            outbox,
            open_requests,
            provided_tools,
            watching: None,
            gone,
            background,
            moves: Moves::default(),
            unanswered,
            is_refused: false,
        }
    }

    /// Answers when `work` is done, and reads on meanwhile. Refuses a client that has as many such commands as it may.
    pub(super) async fn in_background<T: Serialize + Send + Sync + 'static>(
        &mut self,
        id: Option<Value>,
        name: &'static str,
        work: impl Future<Output = Result<Option<T>, Failure>> + Send + 'static,
    ) {
        while self.background.try_join_next().is_some() {}
        let (count, limit) = (Arc::strong_count(&self.unanswered) - 1, self.connection.limits.pending);
        if count >= limit {
            let text = format!("{count} commands of this client are under way, as many as may.");
            let instead = "Wait for their answers, and take them.";
            let failure = Failure::limit(text, "daemon.maxPendingCommands", instead);
            return self.fail(id, Some(name), failure).await;
        }
        let (outbox, unanswered) = (self.outbox.clone(), Arc::clone(&self.unanswered));
        self.background.spawn(async move {
            // Freed before the client can read the answer, since it may then send the next command.
            let before_sending = move || drop(unanswered);
            match work.await {
                Ok(data) => send_after(&outbox, &Response::done(id, name, data), before_sending).await,
                Err(failure) => {
                    let failed = Response::<()>::failed(id, Some(name), scrub_failure(failure));
                    send_after(&outbox, &failed, before_sending).await;
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

    pub(super) async fn tell_writer(&self, command: WriterCommand) {
        // The writer ends early only when the client is gone; then the command has no effect.
        let _ = self.outbox.send(command).await;
    }

    /// Waits until the writer has applied all commands so far.
    pub(super) async fn settle(&self) {
        let (settled, applied) = oneshot::channel();
        self.tell_writer(WriterCommand::Settle(settled)).await;
        // Fails only when the client is gone.
        let _ = applied.await;
    }

    /// Whether the client may send the command for the session `named`, or for the current one: by its role, and as a command of
    /// a session.
    pub(super) fn may(&mut self, command: &Command, named: Option<&str>) -> Result<(), Failure> {
        self.client.may(command)?;
        let Some(peer) = &mut self.command_peer else { return Ok(()) };
        peer.find_session(&self.registry);
        let target = match named {
            Some(id) => self.registry.get(id),
            None => self.sessions.current.clone(),
        };
        peer.may(command, named, target.as_deref())
    }

    /// Whether the client may open a session with these options. `has_environment`: the client sent an environment, so the session
    /// does not get the daemon's.
    pub(super) async fn may_open(
        &self,
        options: &SessionOptions,
        has_environment: bool,
    ) -> Result<(), Failure> {
        let Some(peer) = &self.command_peer else { return Ok(()) };
        if !has_environment {
            let what = "open a session with the environment of the daemon.";
            return Err(peer.refusal(what, "Send the command's own environment as \"env\"."));
        }
        if options.approve == Some(true) {
            let what = "open a session with --approve: whether a project is trusted is for the user to say.";
            return Err(peer.refusal(what, BY_THE_USER));
        }
        if !options.mcp_servers.is_empty() {
            let what = "give a session MCP servers: they run outside of what a command may do.";
            return Err(peer.refusal(what, "Leave \"mcpServers\" out; those of mcp.json are there."));
        }
        if let Target::Fork { .. } = options.target {
            return Err(peer.refusal("open a copy of a session (--fork).", OWN_SESSIONS));
        }
        match self.registry.look_up(options).await? {
            SessionLookup::New => Ok(()),
            SessionLookup::Open(session) => self.may_join(&session),
            SessionLookup::File => Err(peer.refusal(
                "open a session that it has not opened since the daemon started.",
                "Leave --continue, --session and --session-id of other sessions out: the command gets a new session.",
            )),
        }
    }

    /// Whether the client may join a session that is open.
    pub(super) fn may_join(&self, session: &SessionSlot) -> Result<(), Failure> {
        match &self.command_peer {
            Some(peer) if !peer.has_opened(session) => {
                let what = format!("open the session {}, which is not its own.", session.id());
                Err(peer.refusal(&what, OWN_SESSIONS))
            }
            _ => Ok(()),
        }
    }

    /// Records that the client has opened a session.
    pub(super) fn has_opened(&self, session: &SessionSlot) {
        if let Some(peer) = &self.command_peer {
            session.opened_by(Opener { session: peer.session.clone(), connection: peer.connection });
        }
    }

    /// Whether the client may provide tools for a session.
    pub(super) fn may_provide_for(&self, session: &SessionSlot) -> bool {
        self.command_peer.as_ref().is_none_or(|peer| peer.has_opened(session))
    }

    /// The sessions that the client may see.
    pub(super) fn visible(&self) -> Vec<Arc<SessionSlot>> {
        let mut sessions = self.registry.known();
        if let Some(peer) = &self.command_peer {
            sessions.retain(|session| peer.sees(session));
        }
        sessions
    }

    /// Why a client that is a command may not answer questions to the user.
    pub(super) fn refusal_to_answer(&self) -> Option<Failure> {
        let peer = self.command_peer.as_ref()?;
        Some(peer.refusal("answer questions to the user.", BY_THE_USER))
    }
}

pub(super) fn ended() -> Failure {
    Failure::new(ErrorCode::NoSession, "The session has ended.")
}

pub(super) async fn send<T: Serialize>(outbox: &mpsc::Sender<WriterCommand>, response: &Response<T>) {
    send_after(outbox, response, || ()).await;
}

/// Sends an answer. Calls `before` once there is room for it, before the client can have read it.
async fn send_after<T: Serialize>(
    outbox: &mpsc::Sender<WriterCommand>,
    response: &Response<T>,
    before: impl FnOnce(),
) {
    match serde_json::to_vec(response) {
        // Sending fails only when the client is gone.
        Ok(line) => {
            let count = if line.len() < LONG_ANSWER_BYTES { 1 } else { outbox.max_capacity() };
            if let Ok(mut permits) = outbox.reserve_many(count).await
                && let Some(permit) = permits.next()
            {
                before();
                permit.send(WriterCommand::Line(Bytes::from(line)));
            }
        }
        Err(error) => tracing::error!(%error, "cannot write an answer"),
    }
}
