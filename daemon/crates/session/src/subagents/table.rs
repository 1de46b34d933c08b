//! The subagents of one session: who they are, and how those who run them reach the session's actor.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
};

use agentd_protocol::{
    isolation::IsolationMerge,
    message::CustomMessage,
    subagent::{SubagentProgressed, SubagentSnapshot, SubagentStatus},
};
use futures::future::BoxFuture;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::{
    agent_request::AgentRequest, facts::ParentFacts, files::subagent_folder, inbox::Inbox,
    progress_event::progress_event, refusal::refusal,
};
use crate::{
    message_sender::MessageSender,
    options::SessionOptions,
    subagent_events::SubagentRelayLink,
    subagent_host::{Slots, SubagentSlots},
    subagent_place::{ChildState, SubagentOptions},
};

/// The subagents of a session. Cheap to clone; all clones are the same.
#[derive(Clone)]
pub(crate) struct Subagents(Arc<Inner>);

struct Inner {
    /// The options of the session itself.
    options: Arc<SessionOptions>,
    /// The folder of the sessions of its subagents; `None` where it has no file.
    folder: Option<PathBuf>,
    slots: Slots,
    of_daemon: SubagentSlots,
    children: Mutex<Children>,
    /// Fires when the session ends.
    closed: CancellationToken,
    /// The agents that extensions run, by their ids.
    agents: Mutex<HashMap<String, mpsc::UnboundedSender<AgentRequest>>>,
    actor: OnceLock<MessageSender<SubagentMessage>>,
    /// Counts changes of all of them.
    news: watch::Sender<u64>,
    relay: SubagentRelayLink,
}

#[derive(Default)]
struct Children {
    /// Whether those of earlier entries are in the list.
    are_restored: bool,
    list: Vec<Child>,
}

/// A subagent.
struct Child {
    snapshot: SubagentSnapshot,
    /// Its state; `None` for one of before the session was opened.
    state: Option<Arc<ChildState>>,
    /// Its result as text, where no file keeps it.
    output: Option<Arc<str>>,
    /// Stops it.
    cancel: CancellationToken,
    /// Whether its call does not wait for it.
    in_background: bool,
    /// The messages of other agents.
    inbox: Arc<Inbox>,
}

/// The subagents of a session that may have left memory.
#[derive(Clone)]
pub(super) struct WeakSubagents(Weak<Inner>);

impl WeakSubagents {
    pub(super) fn upgrade(&self) -> Option<Subagents> {
        self.0.upgrade().map(Subagents)
    }
}

/// A subagent that is about to go on.
pub(super) struct Claimed {
    /// Its status before.
    pub(super) before: SubagentStatus,
    pub(super) snapshot: SubagentSnapshot,
    /// Its state; `None` for one of before the session was opened.
    pub(super) state: Option<Arc<ChildState>>,
    pub(super) inbox: Arc<Inbox>,
}

/// A message from a task that runs subagents to the session's actor.
pub(crate) enum SubagentMessage {
    /// Asks what subagents are made of.
    Facts(oneshot::Sender<Box<ParentFacts>>),
    /// Subagents are to be on record; those who listen are told then.
    Record { subagents: Vec<SubagentSnapshot>, done: oneshot::Sender<Result<(), String>> },
    /// What became of changes in a copy.
    Merged(Box<IsolationMerge>),
    /// A subagent has got on.
    Progressed(Box<SubagentProgressed>),
    /// Work that outlasts its call; the session waits for its end before it ends.
    Spawn(BoxFuture<'static, ()>),
    /// Work that outlasted its call has ended: what the model is to know.
    Ended(Box<CustomMessage>),
    /// Another agent says something.
    Told { message: Box<CustomMessage>, done: oneshot::Sender<()> },
    /// Those of earlier entries are to be in the list.
    Restore(oneshot::Sender<()>),
}

impl Subagents {
    /// Those of a session with these options and this file.
    pub(crate) fn new(options: Arc<SessionOptions>, of_daemon: SubagentSlots, file: Option<&Path>) -> Self {
        Self(Arc::new(Inner {
            options,
            folder: file.map(subagent_folder),
            slots: Slots::default(),
            of_daemon,
            children: Mutex::default(),
            closed: CancellationToken::new(),
            agents: Mutex::default(),
            actor: OnceLock::new(),
            news: watch::Sender::new(0),
            relay: SubagentRelayLink::default(),
        }))
    }

    /// Says how the session's actor is reached. Only the first time counts.
    pub(crate) fn lead_to(&self, actor: MessageSender<SubagentMessage>) {
        let _ = self.0.actor.set(actor);
    }

    /// Takes the events of subagents to clients of the session.
    pub(crate) fn relay(&self) -> &SubagentRelayLink {
        &self.0.relay
    }

    pub(super) fn options(&self) -> &SessionOptions {
        &self.0.options
    }

    /// The session's own place, where it is a subagent itself.
    pub(crate) fn own(&self) -> Option<&SubagentOptions> {
        self.0.options.subagent.as_deref()
    }

    /// The turns of the session's subagents.
    pub(super) fn slots(&self) -> &Slots {
        &self.0.slots
    }

    /// The turns of subagents of that depth, over all sessions.
    pub(super) fn daemon_slots(&self, depth: usize) -> Slots {
        self.0.of_daemon.at(depth)
    }

    /// The folder of the sessions of subagents; `None` where the session has no file.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.0.folder.as_deref()
    }

    /// Tells what became of changes in a copy.
    pub(super) async fn tell_merge(&self, merged: IsolationMerge) {
        if let Some(actor) = self.0.actor.get() {
            actor.send(SubagentMessage::Merged(Box::new(merged))).await;
        }
    }

    /// The file that keeps the result of a subagent; `None` where the session has no file.
    pub(super) fn output_file(&self, id: &str) -> Option<PathBuf> {
        self.0.folder.as_deref().map(|folder| folder.join(format!("{id}.md")))
    }

    fn children(&self) -> MutexGuard<'_, Children> {
        // Each change is one assignment or one push.
        self.0.children.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts those of earlier entries in the list, once.
    pub(crate) fn restore(&self, found: impl FnOnce() -> Vec<SubagentSnapshot>) {
        let mut children = self.children();
        if children.are_restored {
            return;
        }
        children.are_restored = true;
        let of_before = found().into_iter().map(|snapshot| Child {
            snapshot,
            state: None,
            output: None,
            cancel: CancellationToken::new(),
            in_background: false,
            inbox: Arc::new(Inbox::new(false)),
        });
        let mut list: Vec<Child> = of_before.collect();
        list.retain(|child| !children.list.iter().any(|known| known.snapshot.id == child.snapshot.id));
        list.append(&mut children.list);
        children.list = list;
    }

    /// The list as it is now.
    pub(crate) fn list(&self) -> Vec<SubagentSnapshot> {
        self.children().list.iter().map(Child::now).collect()
    }

    /// The subagent with this id, or with a session of this id.
    pub(crate) fn find(&self, id: &str) -> Option<SubagentSnapshot> {
        let children = self.children();
        let is_it =
            |child: &&Child| child.snapshot.id == id || child.snapshot.session_id.as_deref() == Some(id);
        children.list.iter().find(is_it).map(Child::now)
    }

    /// Whether one is at work or about to be.
    pub(crate) fn has_active(&self) -> bool {
        self.children().list.iter().any(|child| child.snapshot.status.is_active())
    }

    pub(super) fn count(&self) -> u64 {
        self.children().list.len() as u64
    }

    pub(super) fn is_known(&self, id: &str) -> bool {
        self.children().list.iter().any(|child| child.snapshot.id == id)
    }

    pub(super) fn add(
        &self,
        snapshot: SubagentSnapshot,
        state: Arc<ChildState>,
        cancel: CancellationToken,
        in_background: bool,
        inbox: Arc<Inbox>,
    ) {
        self.children().list.push(Child {
            snapshot,
            state: Some(state),
            output: None,
            cancel,
            in_background,
            inbox,
        });
    }

    /// An agent that an extension runs is asked by this from here on.
    pub(super) fn lead_to_agent(&self, id: &str, requests: mpsc::UnboundedSender<AgentRequest>) {
        self.agents().insert(id.to_owned(), requests);
    }

    /// Nobody serves that agent any more.
    pub(super) fn forget_agent(&self, id: &str) {
        self.agents().remove(id);
    }

    /// Asks an agent that an extension runs. Gives the request back where there is none of that id.
    pub(crate) fn ask_agent(&self, id: &str, request: AgentRequest) -> Option<AgentRequest> {
        let agents = self.agents();
        let Some(requests) = agents.get(id) else { return Some(request) };
        requests.send(request).err().map(|unsent| unsent.0)
    }

    /// Ends the agents that extensions run.
    pub(crate) fn end_agents(&self) {
        let ids: Vec<String> = self.agents().keys().cloned().collect();
        for id in ids {
            self.stop(&id);
        }
    }

    fn agents(&self) -> MutexGuard<'_, HashMap<String, mpsc::UnboundedSender<AgentRequest>>> {
        // Each change is one insertion or removal.
        self.0.agents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn downgrade(&self) -> WeakSubagents {
        WeakSubagents(Arc::downgrade(&self.0))
    }

    /// The messages for a subagent.
    pub(super) fn inbox(&self, id: &str) -> Option<Arc<Inbox>> {
        let children = self.children();
        children.list.iter().find(|child| child.snapshot.id == id).map(|child| Arc::clone(&child.inbox))
    }

    /// Has a subagent that has ended wait for its turn again; `cancel` stops it.
    ///
    /// # Errors
    /// A sentence for the model: why it cannot go on.
    pub(super) fn claim(&self, id: &str, cancel: &CancellationToken) -> Result<Claimed, String> {
        let mut children = self.children();
        let child = children.list.iter_mut().find(|child| child.snapshot.id == id);
        let child = child.ok_or_else(|| format!("Not found: {id}."))?;
        if let Some(why) = refusal(&child.snapshot) {
            return Err(why);
        }
        let before = std::mem::replace(&mut child.snapshot.status, SubagentStatus::Pending);
        child.snapshot.error = None;
        child.snapshot.progress = None;
        child.cancel = cancel.clone();
        child.in_background = true;
        child.inbox = Arc::new(Inbox::new(true));
        Ok(Claimed {
            before,
            snapshot: child.snapshot.clone(),
            state: child.state.clone(),
            inbox: Arc::clone(&child.inbox),
        })
    }

    /// It could not go on after all: it is as it was.
    pub(super) fn unclaim(&self, id: &str, before: SubagentStatus) {
        if let Some(child) = self.children().list.iter_mut().find(|child| child.snapshot.id == id) {
            child.snapshot.status = before;
            child.inbox.close();
        }
    }

    /// Gives a subagent a state.
    pub(super) fn set_state(&self, id: &str, state: &Arc<ChildState>) {
        if let Some(child) = self.children().list.iter_mut().find(|child| child.snapshot.id == id) {
            child.state = Some(Arc::clone(state));
        }
    }

    /// Tells the session's model what another agent says; false when the session has ended.
    pub(super) async fn tell_message(&self, message: CustomMessage) -> bool {
        let Some(actor) = self.0.actor.get() else { return false };
        let (done, told) = oneshot::channel();
        actor.send(SubagentMessage::Told { message: Box::new(message), done }).await;
        told.await.is_ok()
    }

    /// Waits until those of earlier entries are in the list.
    pub(super) async fn restored(&self) {
        if self.children().are_restored {
            return;
        }
        if let Some(actor) = self.0.actor.get() {
            let (done, restored) = oneshot::channel();
            actor.send(SubagentMessage::Restore(done)).await;
            // A session that has ended has none.
            let _ = restored.await;
        }
    }

    /// Stops a subagent; false when there is none of that id.
    pub(crate) fn stop(&self, id: &str) -> bool {
        let children = self.children();
        let found = children.list.iter().find(|child| child.snapshot.id == id);
        found.inspect(|child| child.cancel.cancel()).is_some()
    }

    /// Stops those whose calls do not wait for them.
    pub(crate) fn stop_background(&self) {
        let children = self.children();
        children.list.iter().filter(|child| child.in_background).for_each(|child| child.cancel.cancel());
    }

    /// The session ends: the same, and those that are about to be started are stopped, too.
    pub(crate) fn close(&self) {
        self.0.closed.cancel();
        self.stop_background();
    }

    /// Fires when the session ends, or by itself.
    pub(super) fn until_closed(&self) -> CancellationToken {
        self.0.closed.child_token()
    }

    /// Runs work that outlasts its call.
    pub(super) async fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Some(actor) = self.0.actor.get() {
            actor.send(SubagentMessage::Spawn(Box::pin(work))).await;
        }
    }

    /// Tells the session's model that work which outlasted its call has ended.
    pub(super) async fn tell_end(&self, message: CustomMessage) {
        if let Some(actor) = self.0.actor.get() {
            actor.send(SubagentMessage::Ended(Box::new(message))).await;
        }
    }

    /// The whole result of a subagent that has ended, if it left one.
    pub(crate) async fn result_text(&self, id: &str) -> Option<String> {
        if let Some(output) = self.output(id) {
            return Some(output.to_string());
        }
        let file = self.output_file(id)?;
        tokio::task::spawn_blocking(move || std::fs::read_to_string(file)).await.ok()?.ok()
    }

    /// A receiver of the number of changes.
    pub(super) fn news(&self) -> watch::Receiver<u64> {
        self.0.news.subscribe()
    }

    fn is_news(&self) {
        self.0.news.send_modify(|count| *count += 1);
    }

    /// Changes one.
    pub(super) fn change(
        &self,
        id: &str,
        change: impl FnOnce(&mut SubagentSnapshot),
    ) -> Option<SubagentSnapshot> {
        let mut children = self.children();
        let child = children.list.iter_mut().find(|child| child.snapshot.id == id)?;
        change(&mut child.snapshot);
        child.snapshot.progress = child.state.as_ref().map(|state| state.progress());
        let changed = child.snapshot.clone();
        drop(children);
        self.is_news();
        Some(changed)
    }

    /// Keeps a result that no file keeps.
    pub(super) fn keep_output(&self, id: &str, output: Arc<str>) {
        if let Some(child) = self.children().list.iter_mut().find(|child| child.snapshot.id == id) {
            child.output = Some(output);
        }
    }

    /// A result that no file keeps.
    pub(super) fn output(&self, id: &str) -> Option<Arc<str>> {
        self.children().list.iter().find(|child| child.snapshot.id == id)?.output.clone()
    }

    /// What subagents are made of; `None` when the session has ended.
    pub(super) async fn facts(&self) -> Option<Box<ParentFacts>> {
        let (asked, facts) = oneshot::channel();
        self.0.actor.get()?.send(SubagentMessage::Facts(asked)).await;
        facts.await.ok()
    }

    /// Puts subagents on record and tells of them.
    ///
    /// # Errors
    /// A sentence: the disk did not take it, or the session has ended.
    pub(super) async fn record(&self, subagents: Vec<SubagentSnapshot>) -> Result<(), String> {
        let ended = || "The session has ended.".to_owned();
        let (done, recorded) = oneshot::channel();
        let actor = self.0.actor.get().ok_or_else(ended)?;
        actor.send(SubagentMessage::Record { subagents, done }).await;
        recorded.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Whether the call of a subagent does not wait for it.
    pub(crate) fn is_detached(&self, id: &str) -> bool {
        self.children().list.iter().any(|child| child.snapshot.id == id && child.in_background)
    }

    pub(super) async fn tell_progress(&self, id: &str, state: &ChildState) {
        self.is_news();
        if let Some(actor) = self.0.actor.get() {
            let (detached, snapshot) = {
                let children = self.children();
                let Some(child) = children.list.iter().find(|child| child.snapshot.id == id) else { return };
                (child.in_background, child.snapshot.clone())
            };
            let progressed = progress_event(snapshot, detached, state);
            actor.send(SubagentMessage::Progressed(Box::new(progressed))).await;
        }
    }
}

impl Child {
    fn now(&self) -> SubagentSnapshot {
        let mut snapshot = self.snapshot.clone();
        if let Some(state) = self.state.as_ref().filter(|_| snapshot.status != SubagentStatus::Pending) {
            snapshot.progress = Some(state.progress());
        }
        snapshot
    }
}
