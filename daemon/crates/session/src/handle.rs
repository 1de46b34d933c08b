//! The handle of a session: cheap to clone, and the only way in.

use std::{path::Path, sync::Arc};

use agentd_process::ProcessView;
use agentd_protocol::{
    client_tools::ClientTool,
    command::{AbortParams, AbortScope, SessionCommand},
    daemon::SessionActivity,
    error::{ErrorCode, Failure},
    ui::UiResponse,
};
use agentd_tools::ProposedPlan;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{
    abort::AbortSwitch,
    client_tools::ToolProvider,
    clients::SessionClients,
    event_log::{Feed, SubscriberId},
    login_request::{LogIn, LogInAnswer},
    messages::{
        Attached, BranchCopy, CopyPoint, InboxMessage, RegisterOutcome, ReopenError, Reopening, ToolsMessage,
    },
    options::SessionOptions,
    replacement::{Leaving, LeavingAnswer, MovedCommand, SessionBeginning, SessionEnd},
    reply::Reply,
    services::IntakeLimits,
    summary::{Summary, SummaryReader},
    ui::{Ui, UiAbilities},
    unload::Unloaded,
};

/// A live session.
#[derive(Clone)]
pub struct SessionHandle {
    pub(crate) id: Arc<str>,
    pub(crate) file: Option<Arc<Path>>,
    pub(crate) clients: SessionClients,
    pub(crate) inbox: mpsc::Sender<InboxMessage>,
    pub(crate) abort: AbortSwitch,
    pub(crate) summary: SummaryReader,
    pub(crate) processes: ProcessView,
    pub(crate) has_sandbox: bool,
    pub(crate) ui: Ui,
    /// Fires when the session is to end, however slow its subscribers are.
    pub(crate) closing: CancellationToken,
    /// Fires when the session's task is gone: closed, unloaded, or ended by a bug.
    pub(crate) gone: CancellationToken,
    pub(crate) intake: IntakeLimits,
}

impl SessionHandle {
    /// The session's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The session's file, which need not be there yet; `None` for a session in memory.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Whether the session has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.inbox.is_closed()
    }

    /// The session's events and answers.
    #[must_use]
    pub fn feed(&self) -> &Feed {
        self.clients.feed()
    }

    /// Its clients, which outlive its stay in memory.
    #[must_use]
    pub fn clients(&self) -> &SessionClients {
        &self.clients
    }

    /// The processes that tool calls and the user's commands have started.
    #[must_use]
    pub fn processes(&self) -> &ProcessView {
        &self.processes
    }

    /// Whether commands of the session run in a sandbox.
    #[must_use]
    pub fn has_sandbox(&self) -> bool {
        self.has_sandbox
    }

    /// Sends a command; its answer comes through the feed. An abort takes effect at once, before earlier messages in
    /// the inbox are taken. False when the session has ended.
    ///
    /// Cancel safety: dropped early, the command was either handed over or not.
    pub async fn send(&self, command: SessionCommand, reply: Reply) -> bool {
        match &command {
            SessionCommand::Abort(AbortParams { scope: Some(AbortScope::Tools) }) => {
                self.abort.fire_tools();
            }
            SessionCommand::Abort(_) => self.abort.fire(),
            // A command with a request key may be a repetition, which stops nothing; nor does a command that is
            // refused for its size.
            SessionCommand::AbortAndPrompt(params)
                if params.request_key.is_none() && self.intake.takes(&params.message, &params.images) =>
            {
                self.abort.fire();
            }
            _ => {}
        }
        let coming = matches!(command, SessionCommand::Abort(_)).then(|| self.abort.announce());
        // Answers are never dropped: a client that does not read them must not ask for more without end.
        self.clients.feed().reply_room(reply.subscriber).await;
        let sent = self.inbox.send(InboxMessage::Command(Box::new((command, reply)))).await.is_ok();
        if sent && let Some(coming) = coming {
            coming.sent();
        }
        sent
    }

    /// Joins the session: gives its state at one point of its events, and a subscriber for all events from there. With
    /// `since_seq`, the number of the last event that the client has, that is the point if everything after it is
    /// still kept.
    ///
    /// Answered promptly at any time, also while a model or a tool is silent. `None` when the session has ended.
    /// Cancel safety: dropped early, nothing is left attached.
    pub async fn attach(&self, since_seq: Option<u64>) -> Option<Attached> {
        self.attach_instead_of(None, since_seq).await
    }

    /// The same for a connection that follows the session already, as the subscriber `before`: it hears of the ends of its prompts by
    /// the new subscription.
    ///
    /// Cancel safety: dropped early, nothing is left attached, but the ends of earlier prompts may not be heard of.
    pub async fn attach_instead_of(
        &self,
        before: Option<SubscriberId>,
        since_seq: Option<u64>,
    ) -> Option<Attached> {
        // A subscriber that reads nothing must not keep others from joining.
        let _announced = self.clients.feed().announce();
        let (joined, attached) = oneshot::channel();
        self.inbox.send(InboxMessage::Attach { since_seq, before, joined }).await.ok()?;
        attached.await.ok()
    }

    /// Makes an open session match the options of a client that opens it again. Differences that commands can change
    /// are changed, as if the commands had been sent; with `if_idle` only while nothing is at work. Returns warnings
    /// for that client; `None` when the session has ended.
    ///
    /// # Errors
    /// [`ReopenError`]: nothing was changed.
    ///
    /// Cancel safety: dropped early, it was done or not.
    pub async fn reopen(
        &self,
        asked: SessionOptions,
        if_idle: bool,
    ) -> Option<Result<Vec<String>, ReopenError>> {
        // A subscriber that reads nothing must not keep others from joining.
        let _announced = self.clients.feed().announce();
        let (done, outcome) = oneshot::channel();
        let reopening = Reopening { asked, if_idle };
        self.inbox.send(InboxMessage::Reopen(Box::new(reopening), done)).await.ok()?;
        outcome.await.ok()
    }

    /// Copies the session's branch up to a point, also while the session is at work.
    ///
    /// # Errors
    /// When there is no such entry, when the session has no file yet that it will have, and when it has ended.
    pub async fn copy(&self, point: CopyPoint) -> Result<BranchCopy, Failure> {
        let ended = || Failure::new(ErrorCode::NoSession, "The session has ended.");
        // A subscriber that reads nothing must not keep others from their copy.
        let _announced = self.clients.feed().announce();
        let (copied, waiting) = oneshot::channel();
        self.inbox.send(InboxMessage::Copy { point, copied }).await.map_err(|_| ended())?;
        waiting.await.unwrap_or_else(|_| Err(ended()))
    }

    /// The summary for lists of sessions, as of the session's last event.
    #[must_use]
    pub fn summary(&self) -> Summary {
        self.summary.get()
    }

    /// What the session is doing, from its task. It costs a run in the middle of an answer as much as a client that attaches
    /// does; a session is not kept in memory by it. `None` when the session has ended. Waits while slow subscribers hold the
    /// session up.
    ///
    /// Cancel safety: can be dropped and called again.
    pub async fn activity(&self) -> Option<SessionActivity> {
        let (done, waiting) = oneshot::channel();
        self.inbox.send(InboxMessage::Activity(done)).await.ok()?;
        waiting.await.ok()
    }

    /// Answers a dialog in the name of the client `by`. Ignored where the dialog is over, belongs to another session,
    /// or is not for clients of these `abilities`.
    pub async fn answer_ui(&self, response: UiResponse, by: String, abilities: UiAbilities) {
        // A session that has ended asks nothing.
        let _ = self.inbox.send(InboxMessage::UiResponse(Box::new((response, by, abilities)))).await;
    }

    /// Asks the user whether the project's settings and prompts are trusted, where that is open and was not asked
    /// before. Call it when a client is there that answers. Does not wait for the answer.
    pub async fn ask_trust(&self) {
        // A session that has ended needs no trust.
        let _ = self.inbox.send(InboxMessage::AskTrust).await;
    }

    /// Registers tools of `provider`, which have passed [`check_client_tools`](crate::check_client_tools). A tool of
    /// the same name and provider is replaced. `reply` is answered unless the session has ended.
    ///
    /// Cancel safety: dropped early, the tools may be there or not.
    pub async fn register_tools(
        &self,
        provider: &ToolProvider,
        tools: Vec<ClientTool>,
        reply: Option<Reply>,
    ) -> RegisterOutcome {
        let (done, waiting) = oneshot::channel();
        let message =
            ToolsMessage::Register { provider: Arc::clone(provider.provider()), tools, reply, done };
        if self.inbox.send(InboxMessage::Tools(Box::new(message))).await.is_err() {
            return RegisterOutcome::Ended;
        }
        match waiting.await {
            Ok(Ok(())) => RegisterOutcome::Done,
            Ok(Err(failure)) => RegisterOutcome::Refused(failure),
            Err(_) => RegisterOutcome::Ended,
        }
    }

    /// Publishes that tools are gone, then answers `reply`, if there is one, with the names `tools`. False when the
    /// session has ended.
    pub async fn tools_left(&self, tools: Vec<String>, reply: Option<Reply>) -> bool {
        let message = ToolsMessage::Left { tools, reply };
        self.inbox.send(InboxMessage::Tools(Box::new(message))).await.is_ok()
    }

    /// Logs in to a provider that an extension of the session logs in to. Waits until the extensions are there, and the login has something for
    /// the user; the rest is for [`Logins`](agentd_auth::Logins). A session that has ended logs in to nothing.
    ///
    /// Cancel safety: dropped early, the login may have begun; it is given up when nobody waits for it.
    pub async fn log_in(&self, provider: String, force: bool) -> LogInAnswer {
        let (answer, waiting) = oneshot::channel();
        let login = LogIn { provider, force, answer };
        if self.inbox.send(InboxMessage::LogIn(Box::new(login))).await.is_err() {
            return LogInAnswer::default();
        }
        waiting.await.unwrap_or_default()
    }

    /// Reaches the session's user through its clients.
    #[must_use]
    pub fn ui(&self) -> &Ui {
        &self.ui
    }

    /// Waits until the session is idle.
    pub async fn idle(&self) {
        let (done, waiting) = oneshot::channel();
        if self.inbox.send(InboxMessage::WhenIdle(done)).await.is_ok() {
            // An error means that the session has ended, which is idle enough.
            let _ = waiting.await;
        }
    }

    /// The header of the session: the first line of its file, without LF, also where there is no file yet. `None` when the
    /// session has ended.
    pub async fn header(&self) -> Option<Box<str>> {
        let (header, waiting) = oneshot::channel();
        self.inbox.send(InboxMessage::Header(header)).await.ok()?;
        waiting.await.ok()
    }

    /// Unloads the session, unless something works for it or waits in it. Its clients stay, and
    /// [`reload`](crate::reload) continues it. `None`: it stays in memory, or has ended. Commands must not be sent
    /// meanwhile: they would be lost.
    pub async fn unload(&self) -> Option<Unloaded> {
        let (unloading, unloaded) = oneshot::channel();
        self.inbox.send(InboxMessage::Unload(unloading)).await.ok()?;
        unloaded.await.ok().flatten()
    }

    /// Asks the extensions of the session whether it may be left.
    pub async fn ask_leaving(&self, leaving: Leaving) -> LeavingAnswer {
        let (asked, waiting) = oneshot::channel();
        // A session that has ended has no extensions.
        if self.inbox.send(InboxMessage::AskLeaving(leaving, asked)).await.is_err() {
            return LeavingAnswer::default();
        }
        waiting.await.unwrap_or_default()
    }

    /// Starts the extensions of a session that was opened without them, or puts them into other hosts. False when the session has ended.
    pub async fn begin(&self, beginning: SessionBeginning) -> bool {
        self.inbox.send(InboxMessage::Begin(Box::new(beginning))).await.is_ok()
    }

    /// Begins with a plan that was approved in another session: it becomes a file of this one, and a run carries it out.
    ///
    /// # Errors
    /// The file cannot be written, the session is at work, or has ended.
    pub async fn carry_out(&self, plan: ProposedPlan) -> Result<(), Failure> {
        let ended = || Failure::new(ErrorCode::NoSession, "The session has ended.");
        let (begun, waiting) = oneshot::channel();
        self.inbox.send(InboxMessage::CarryOut(Box::new(plan), begun)).await.map_err(|_| ended())?;
        waiting.await.unwrap_or_else(|_| Err(ended()))
    }

    /// A command of an extension led nowhere, and goes on in this session. A session that has ended needs it no more.
    pub async fn stay(&self, command: MovedCommand, failure: Failure) {
        let _ = self.inbox.send(InboxMessage::Stay(Box::new((command, failure)))).await;
    }

    /// Gives the hosts of the extensions away: the session goes on, with others. Nothing is given where it is at work.
    pub async fn give_hosts(&self, end: SessionEnd) {
        let _ = self.inbox.send(InboxMessage::GiveHosts(Box::new(end))).await;
    }

    /// Ends the session: earlier commands are taken, the run is aborted and its end stored, processes are ended.
    /// Returns when its task and its lock on the file are gone.
    pub async fn close(&self) {
        self.close_for(None).await;
    }

    /// The same; extensions are told of the end.
    pub async fn close_for(&self, end: Option<SessionEnd>) {
        self.closing.cancel();
        // A session that has ended may still hold its file for a moment.
        let _ = self.inbox.send(InboxMessage::Close(end.map(Box::new))).await;
        self.gone.cancelled().await;
    }
}
