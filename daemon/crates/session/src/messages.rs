//! Messages to the actor of a session from outside: commands, clients that join, questions of the registry.

use std::{path::PathBuf, sync::Arc};

use agentd_process::ArtifactFolder;
use agentd_protocol::{
    agent_mode::AgentMode,
    client_tools::{ClientTool, UnregisteredTools},
    command::SessionCommand,
    daemon::{InFlight, SessionActivity},
    error::Failure,
    session::SessionState,
    ui::{ExtensionUiRequest, UiResponse},
};
use agentd_store::SessionTree;
use agentd_tools::ProposedPlan;
use tokio::sync::oneshot;

use crate::{
    client_tools::ProvidingClient,
    event_log::{Feed, MessageId, Subscriber, SubscriberId},
    login_request::LogIn,
    options::SessionOptions,
    replacement::{Leaving, LeavingAnswer, MovedCommand, SessionBeginning, SessionEnd},
    reply::Reply,
    session_tools::ToolChoice,
    ui::UiAbilities,
    unload::Unloading,
};

/// Messages that wait for a busy session before their senders wait.
pub(crate) const INBOX: usize = 64;

/// A message to the actor of a session.
pub(crate) enum InboxMessage {
    /// A command of a client.
    Command(Box<(SessionCommand, Reply)>),
    /// Adds a subscriber: after event `since_seq` if all later events are still kept, else from now on.
    /// In the place of the subscriber `before`, if that is of the same connection.
    Attach { since_seq: Option<u64>, before: Option<SubscriberId>, joined: oneshot::Sender<Attached> },
    /// A client opens the open session with these options.
    Reopen(Box<Reopening>, oneshot::Sender<Result<Vec<String>, ReopenError>>),
    /// The answer to a dialog, the client that gave it, and which dialogs that client answers.
    UiResponse(Box<(UiResponse, String, UiAbilities)>),
    /// A client registers or has unregistered tools.
    Tools(Box<ToolsMessage>),
    /// A client is there that can be asked whether the project is trusted.
    AskTrust,
    /// A client logs in to a provider that may be one of the extensions.
    LogIn(Box<LogIn>),
    /// Answers with what the session is doing.
    Activity(oneshot::Sender<SessionActivity>),
    /// Answers when the session is idle.
    WhenIdle(oneshot::Sender<()>),
    /// Answers with the first line of the session file, which need not be there yet.
    Header(oneshot::Sender<Box<str>>),
    /// Answers with a copy of a branch.
    Copy { point: CopyPoint, copied: oneshot::Sender<Result<BranchCopy, Failure>> },
    /// Unloads the session if nothing works for it and nothing waits.
    Unload(Unloading),
    /// Asks the extensions whether the session may be left.
    AskLeaving(Leaving, oneshot::Sender<LeavingAnswer>),
    /// Starts the extensions of a session that a client came to.
    Begin(Box<SessionBeginning>),
    /// Begins with a plan that was approved in another session.
    CarryOut(Box<ProposedPlan>, oneshot::Sender<Result<(), Failure>>),
    /// A command of an extension that led nowhere goes on.
    Stay(Box<(MovedCommand, Failure)>),
    /// Gives the hosts of the extensions away, and starts others for the session.
    GiveHosts(Box<SessionEnd>),
    /// Ends the session: aborts its run, waits, flushes.
    Close(Option<Box<SessionEnd>>),
}

/// The options of a client that opens a session that is open.
pub(crate) struct Reopening {
    pub(crate) asked: SessionOptions,
    /// Whether that is refused while the session is at work.
    pub(crate) if_idle: bool,
}

/// Why a session that is open is not as somebody asked who opened it. Nothing was changed.
#[derive(Debug, Clone, PartialEq)]
pub enum ReopenError {
    /// It is open with other values of these flags, which count for as long as it is open.
    Differs(Vec<&'static str>),
    /// A model or tool that was asked for cannot be used, or the change could not be stored.
    Failed(Failure),
}

impl From<Failure> for ReopenError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// The answer to a client that joins.
pub struct Attached {
    /// Gives every event after `seq`, none twice, none missing.
    pub subscriber: Subscriber,
    /// The number of the last event before those; 0 before the first.
    pub seq: u64,
    /// Whether `seq` is what was asked for, so that nothing was missed.
    pub replayed: bool,
    /// The state: at `seq`, or, where missed events follow, at the last event of all.
    pub state: SessionState,
    /// The answer and calls in flight at `seq`; `None` when there are none, and where missed events follow.
    pub in_flight: Option<InFlight>,
    /// The message that streams at `seq`.
    pub message: Option<MessageId>,
    /// Questions to the user that nobody has answered yet: at `seq`, or, where missed events follow, as of now, so that they
    /// may be among those, too.
    pub pending_ui: Vec<ExtensionUiRequest>,
}

/// Clients that wait until the run has said what is in flight, or is over.
#[derive(Default)]
pub(crate) struct AttachQueue {
    /// To be attached.
    pub(crate) subscribers: Vec<(Option<SubscriberId>, oneshot::Sender<Attached>)>,
    /// To be told the messages, with the answer so far.
    pub(crate) messages: Vec<Reply>,
    /// To be told what the session is doing. They keep nothing in memory.
    pub(crate) activities: Vec<oneshot::Sender<SessionActivity>>,
}

impl AttachQueue {
    pub(crate) fn is_empty(&self) -> bool {
        self.subscribers.is_empty() && self.messages.is_empty()
    }
}

/// Up to where a session is copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyPoint {
    /// Up to the entry before this one, which has to be a message of the user.
    Before(String),
    /// Up to this entry.
    At(String),
    /// Up to the entry that the next one will follow.
    Leaf,
}

/// A branch of a session under a new id: what [`open_copy`](crate::open_copy) makes a session of.
#[derive(Debug)]
pub struct BranchCopy {
    pub(crate) tree: Box<SessionTree>,
    /// The tools that somebody chose in the original.
    pub(crate) tools: ToolChoice,
    /// The mode of the original.
    pub(crate) mode: AgentMode,
    /// Where the file of the original is; `None`: in memory only, as the copy will be.
    pub(crate) folder: Option<PathBuf>,
    /// The long outputs of the original.
    pub(crate) artifacts: Option<ArtifactFolder>,
    /// The text of the message that the copy ends before.
    pub text: Option<String>,
}

/// A message of a connection that provides tools.
pub(crate) enum ToolsMessage {
    /// Adds tools, or replaces those of the same provider. `reply` is answered if there is one; `done` says what came of it.
    Register {
        provider: Arc<ProvidingClient>,
        tools: Vec<ClientTool>,
        reply: Option<Reply>,
        done: oneshot::Sender<Result<(), Failure>>,
    },
    /// Tools were taken away: those of these names, `reply` says.
    Left { tools: Vec<String>, reply: Option<Reply> },
}

impl ToolsMessage {
    /// Answers a message that the session ended before it took. Tools that were unregistered are gone all the same; a
    /// sender that registers tools sees the end when this is dropped, and answers by itself.
    pub(crate) fn too_late(self, feed: &Feed) {
        if let Self::Left { tools, reply: Some(reply) } = self {
            reply.data(feed, UnregisteredTools { tools });
        }
    }
}

/// The outcome of registering tools.
#[derive(Debug)]
pub enum RegisterOutcome {
    /// The session has them.
    Done,
    /// It does not take them.
    Refused(Failure),
    /// It has ended, and answers nothing.
    Ended,
}

impl InboxMessage {
    /// Answers a message that came too late. Senders of the other messages learn of the end when the message is
    /// dropped.
    pub(crate) fn refuse(self, feed: &Feed, why: impl FnOnce() -> Failure) {
        match self {
            Self::Command(asked) => asked.1.fail(feed, why()),
            Self::Tools(message) => message.too_late(feed),
            Self::Attach { .. }
            | Self::UiResponse(_)
            | Self::AskTrust
            | Self::LogIn(_)
            | Self::Activity(_)
            | Self::WhenIdle(_)
            | Self::Header(_)
            | Self::Copy { .. }
            | Self::Reopen(..)
            | Self::Unload(_)
            | Self::AskLeaving(..)
            | Self::Begin(_)
            | Self::CarryOut(..)
            | Self::Stay(_)
            | Self::GiveHosts(_)
            | Self::Close(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use agentd_protocol::{
        command::{LookParams, SessionCommand},
        error::ErrorCode,
    };
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        event_log::{FeedItem, FeedLimits},
        reply::Reply,
    };

    #[tokio::test]
    async fn what_comes_too_late_is_answered() {
        let feed = Feed::new(FeedLimits::default());
        let subscriber = feed.attach();
        let reply = |id: &str, command| Reply {
            is_of_user: true,
            subscriber: subscriber.id(),
            id: Some(json!(id)),
            command,
            environment: None,
            hears_results: false,
            memory: None,
        };
        let asked = SessionCommand::GetState(LookParams::default());
        let too_late = [
            InboxMessage::Command(Box::new((asked, reply("1", "get_state")))),
            InboxMessage::Tools(Box::new(ToolsMessage::Left {
                tools: vec!["look_up".into()],
                reply: Some(reply("2", "unregister_tools")),
            })),
            InboxMessage::Tools(Box::new(ToolsMessage::Left { tools: Vec::new(), reply: None })),
        ];
        for message in too_late {
            message.refuse(&feed, || Failure::new(ErrorCode::NoSession, "Over."));
        }
        let mut items = Vec::new();
        assert!(subscriber.next_items(&mut items).await);
        let answers: Vec<Value> = items
            .iter()
            .map(|item| match item {
                FeedItem::Reply { line } => serde_json::from_slice(line).unwrap(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(answers.len(), 2, "{answers:?}");
        assert_eq!((&answers[0]["id"], &answers[0]["code"]), (&json!("1"), &json!("no_session")));
        assert_eq!((&answers[1]["id"], &answers[1]["data"]["tools"]), (&json!("2"), &json!(["look_up"])));
    }
}
