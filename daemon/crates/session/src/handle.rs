//! What others hold of a session: cheap to clone, and the only way in.

use std::{
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use agentd_process::ProcessView;
use agentd_protocol::{
    client_tools::ClientTool,
    command::{AbortParams, AbortScope, SessionCommand},
    error::{ErrorCode, Failure},
    ui::UiResponse,
};
use tokio::sync::{Notify, futures::Notified, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{
    Attached, BranchCopy, CopyPoint, RegisterOutcome, ReopenError, SessionOptions, ToolProvider,
    context::IntakeLimits,
    feed::Feed,
    reply::Reply,
    summary::{Summary, SummaryReader},
    tools::ToolsMessage,
    ui::{Ui, UiAbilities},
    unload::{Unloaded, Unloading},
};

/// How many commands wait for a busy session before their senders wait.
pub(crate) const INBOX: usize = 64;

/// A live session.
#[derive(Clone)]
pub struct SessionHandle {
    pub(crate) id: Arc<str>,
    pub(crate) file: Option<Arc<Path>>,
    pub(crate) feed: Feed,
    pub(crate) inbox: mpsc::Sender<Message>,
    pub(crate) abort: AbortSwitch,
    pub(crate) summary: SummaryReader,
    pub(crate) processes: ProcessView,
    pub(crate) ui: Ui,
    /// Fires when the session is to end, whatever its subscribers do.
    pub(crate) closing: CancellationToken,
    /// Fires when nothing of the session is left, be it by a bug; also when it left memory.
    pub(crate) gone: CancellationToken,
    pub(crate) intake: IntakeLimits,
}

/// What somebody asks for who opens a session that is open.
pub(crate) struct Reopening {
    pub(crate) asked: SessionOptions,
    /// Whether that is refused while the session is at work.
    pub(crate) if_idle: bool,
}

/// What the inbox takes.
pub(crate) enum Message {
    /// A command of a client.
    Command(Box<(SessionCommand, Reply)>),
    /// Adds a subscriber: after that event if what followed it is still there, else from now on.
    Attach { since_seq: Option<u64>, joined: oneshot::Sender<Attached> },
    /// Somebody opens the session who asks for this.
    Reopen(Box<Reopening>, oneshot::Sender<Result<Vec<String>, ReopenError>>),
    /// An answer to a question to the user, who gave it, and whose questions that client answers.
    UiResponse(Box<(UiResponse, String, UiAbilities)>),
    /// A client provides tools, or does not any more.
    Tools(Box<ToolsMessage>),
    /// Somebody is there who can be asked whether the project is trusted.
    AskTrust,
    /// Answers when the session is idle.
    WhenIdle(oneshot::Sender<()>),
    /// Answers with the first line of the session file, which need not be there yet.
    Header(oneshot::Sender<Box<str>>),
    /// Answers with a copy of a branch.
    Copy { point: CopyPoint, copied: oneshot::Sender<Result<BranchCopy, Failure>> },
    /// Leaves memory if nothing works for the session and nothing waits; else it stays.
    Unload(Unloading),
    /// Ends the session: aborts its run, waits, flushes.
    Close,
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

    /// Whether the session takes nothing any more.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.inbox.is_closed()
    }

    /// What the session says.
    #[must_use]
    pub fn feed(&self) -> &Feed {
        &self.feed
    }

    /// What its tool calls and the user's commands started.
    #[must_use]
    pub fn processes(&self) -> &ProcessView {
        &self.processes
    }

    /// Hands over a command; its answer comes through the feed. An abort takes effect at once, before the session has
    /// looked at what is queued in front of it. False when the session has ended.
    ///
    /// Cancel safety: dropped early, the command was either handed over or not.
    pub async fn send(&self, command: SessionCommand, reply: Reply) -> bool {
        match &command {
            SessionCommand::Abort(AbortParams { scope: Some(AbortScope::Tools) }) => {
                self.abort.fire_tools();
            }
            SessionCommand::Abort(_) => self.abort.fire(),
            // One that may be a repetition stops nothing before the session has seen that it is none, and one that is refused
            // for its size stops nothing at all.
            SessionCommand::AbortAndPrompt(params)
                if params.request_key.is_none() && self.intake.takes(&params.message, &params.images) =>
            {
                self.abort.fire();
            }
            _ => {}
        }
        let coming = matches!(command, SessionCommand::Abort(_)).then(|| self.abort.announce());
        // Answers are never dropped: a client that takes none of them must not ask for more without end.
        self.feed.reply_room(reply.subscriber).await;
        let sent = self.inbox.send(Message::Command(Box::new((command, reply)))).await.is_ok();
        if sent && let Some(coming) = coming {
            coming.sent();
        }
        sent
    }

    /// Joins the session: what it is at one point of its events, and a subscriber of all events from there. With `since_seq`,
    /// the number of the last event that the subscriber has, that point is there if everything after it is still kept.
    ///
    /// Answered promptly at any time, also while a model or a tool is silent. `None` when the session has ended.
    /// Cancel safety: dropped early, nothing is left attached.
    pub async fn attach(&self, since_seq: Option<u64>) -> Option<Attached> {
        // A subscriber that takes nothing must not keep others from joining.
        let _announced = self.feed.announce();
        let (joined, attached) = oneshot::channel();
        self.inbox.send(Message::Attach { since_seq, joined }).await.ok()?;
        attached.await.ok()
    }

    /// Sees to it that the session is as somebody asks who opens it, though it is open: what differs and can be changed is changed,
    /// as if the commands for that had been sent; with `if_idle` only while nothing is at work. Gives what to tell him. `None` when
    /// the session has ended.
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
        // A subscriber that takes nothing must not keep others from joining.
        let _announced = self.feed.announce();
        let (done, outcome) = oneshot::channel();
        let reopening = Reopening { asked, if_idle };
        self.inbox.send(Message::Reopen(Box::new(reopening), done)).await.ok()?;
        outcome.await.ok()
    }

    /// A copy of the session's branch up to a point, as it is when the session takes the wish: also while it is at work.
    ///
    /// # Errors
    /// When there is no such entry, when the session has no file yet that it will have, and when it has ended.
    pub async fn copy(&self, point: CopyPoint) -> Result<BranchCopy, Failure> {
        let ended = || Failure::new(ErrorCode::NoSession, "The session has ended.");
        // A subscriber that takes nothing must not keep others from their copy.
        let _announced = self.feed.announce();
        let (copied, waiting) = oneshot::channel();
        self.inbox.send(Message::Copy { point, copied }).await.map_err(|_| ended())?;
        waiting.await.unwrap_or_else(|_| Err(ended()))
    }

    /// What lists say of the session, as of its last event.
    #[must_use]
    pub fn summary(&self) -> Summary {
        self.summary.get()
    }

    /// Answers a question to the user, in the name of the client `by`. One that this session does not ask, or not any more, is
    /// ignored, and so is an answer to a question that a client of these `abilities` is not asked.
    pub async fn answer_ui(&self, response: UiResponse, by: String, abilities: UiAbilities) {
        // A session that has ended asks nothing.
        let _ = self.inbox.send(Message::UiResponse(Box::new((response, by, abilities)))).await;
    }

    /// Asks the user whether the project's own settings and prompts are to be used, where that is open and was not asked before.
    /// To be called when somebody is there who answers. Does not wait for the answer.
    pub async fn ask_trust(&self) {
        // A session that has ended needs no trust.
        let _ = self.inbox.send(Message::AskTrust).await;
    }

    /// Gives the session tools of a client, whose place in it is `provider`; `tools` have passed [`check_client_tools`](crate::check_client_tools). Those that the
    /// provider has there already are replaced. `reply` is answered unless the session has ended.
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
        if self.inbox.send(Message::Tools(Box::new(message))).await.is_err() {
            return RegisterOutcome::Ended;
        }
        match waiting.await {
            Ok(Ok(())) => RegisterOutcome::Done,
            Ok(Err(failure)) => RegisterOutcome::Refused(failure),
            Err(_) => RegisterOutcome::Ended,
        }
    }

    /// Tells the subscribers now that tools are gone, and then answers `reply`, if there is one, with the names `tools`. False when
    /// the session has ended.
    pub async fn tools_left(&self, tools: Vec<String>, reply: Option<Reply>) -> bool {
        let message = ToolsMessage::Left { tools, reply };
        self.inbox.send(Message::Tools(Box::new(message))).await.is_ok()
    }

    /// What reaches the session's user through its clients.
    #[must_use]
    pub fn ui(&self) -> &Ui {
        &self.ui
    }

    /// Waits until the session has nothing to do.
    pub async fn idle(&self) {
        let (done, waiting) = oneshot::channel();
        if self.inbox.send(Message::WhenIdle(done)).await.is_ok() {
            // An error means that the session has ended, which is idle enough.
            let _ = waiting.await;
        }
    }

    /// The header of the session: the first line of its file, without LF, also where there is no file yet. `None` when the
    /// session has ended.
    pub async fn header(&self) -> Option<Box<str>> {
        let (header, waiting) = oneshot::channel();
        self.inbox.send(Message::Header(header)).await.ok()?;
        waiting.await.ok()
    }

    /// Takes the session out of memory, unless something works for it or waits in it. Its feed stays open, and with
    /// [`reload`](crate::reload) it goes on. `None`: it stays, or has ended. Commands must not be sent meanwhile: they
    /// would be lost.
    pub async fn unload(&self) -> Option<Unloaded> {
        let (unloading, unloaded) = oneshot::channel();
        self.inbox.send(Message::Unload(unloading)).await.ok()?;
        unloaded.await.ok().flatten()
    }

    /// Ends the session: commands that were sent before are taken, the run is aborted and its end stored, processes are
    /// ended. Returns when nothing of it is left, its lock on the file included.
    pub async fn close(&self) {
        self.closing.cancel();
        // One that has ended may still be letting go.
        let _ = self.inbox.send(Message::Close).await;
        self.gone.cancelled().await;
    }
}

/// Stops the current run from outside of the inbox.
#[derive(Clone, Default)]
pub(crate) struct AbortSwitch(Arc<Switch>);

#[derive(Default)]
struct Switch {
    armed: Mutex<Armed>,
    /// Fires when something is to stop.
    pressed: Notify,
}

#[derive(Default)]
struct Armed {
    run: Option<CancellationToken>,
    /// The calls of the current answer; a child of the run's.
    tools: Option<CancellationToken>,
    /// Commands to abort that are on their way to the session.
    coming: usize,
}

/// A command to abort on its way to the session. One that is dropped unsent does not come.
struct Coming(Option<AbortSwitch>);

impl Coming {
    /// It is the session's now, which says [`AbortSwitch::arrived`].
    fn sent(mut self) {
        self.0 = None;
    }
}

impl Drop for Coming {
    fn drop(&mut self) {
        if let Some(switch) = &self.0 {
            switch.arrived();
        }
    }
}

impl AbortSwitch {
    /// Makes `run` what [`Self::fire`] stops.
    pub(crate) fn arm(&self, run: CancellationToken) {
        let mut armed = self.lock();
        (armed.run, armed.tools) = (Some(run), None);
    }

    /// There is no run to stop any more.
    pub(crate) fn disarm(&self) {
        let mut armed = self.lock();
        (armed.run, armed.tools) = (None, None);
    }

    /// Stops the current run, if there is one.
    pub(crate) fn fire(&self) {
        if let Some(run) = &self.lock().run {
            run.cancel();
        }
        self.0.pressed.notify_waiters();
    }

    /// Makes `tools` what [`Self::fire_tools`] stops.
    pub(crate) fn arm_tools(&self, tools: CancellationToken) {
        self.lock().tools = Some(tools);
    }

    /// There are no calls to stop any more. Whether they were stopped: no later call of [`Self::fire_tools`] will say so.
    pub(crate) fn disarm_tools(&self) -> bool {
        self.lock().tools.take().is_some_and(|tools| tools.is_cancelled())
    }

    /// Stops the calls of the current answer; false when there are none.
    pub(crate) fn fire_tools(&self) -> bool {
        let armed = self.lock();
        armed.tools.as_ref().inspect(|tools| tools.cancel()).is_some()
    }

    /// A command to abort is on its way.
    fn announce(&self) -> Coming {
        self.lock().coming += 1;
        self.0.pressed.notify_waiters();
        Coming(Some(self.clone()))
    }

    /// A command to abort is there.
    pub(crate) fn arrived(&self) {
        let mut armed = self.lock();
        armed.coming = armed.coming.saturating_sub(1);
    }

    /// Whether something is being stopped, or a command to do so is on its way.
    pub(crate) fn is_stopping(&self) -> bool {
        let armed = self.lock();
        let fired =
            |token: &Option<CancellationToken>| token.as_ref().is_some_and(CancellationToken::is_cancelled);
        armed.coming > 0 || fired(&armed.run) || fired(&armed.tools)
    }

    /// Waits for the next time that something is to stop, counted from this call on.
    pub(crate) fn pressed(&self) -> Notified<'_> {
        self.0.pressed.notified()
    }

    fn lock(&self) -> MutexGuard<'_, Armed> {
        self.0.armed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
