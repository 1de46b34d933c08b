//! Messages from the run, and from other tasks of a session, to its actor.

use std::sync::Arc;

use agentd_agent::{
    HostError, StoppedCall, Tool, ToolSet,
    queue::{QueueKind, QueuedMessage, Ticket},
};
use agentd_protocol::{
    Json,
    budget::BudgetReached,
    checkpoints::Checkpoint,
    command::Work,
    compaction::CompactionResult,
    daemon::InFlight,
    error::Failure,
    message::{CustomMessage, Message},
};
use bytes::Bytes;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::{
    cell_calls::CellCall,
    client_tools::ClientToolRequest,
    compaction::{CompactionError, CompactionMessage},
    context::SessionContext,
    extension_start::LoadedAgain,
    extensions::SeenInput,
    jobs::JobMessage,
    models::{Choice, Substitute},
    navigation::Departure,
    open::NewSettings,
    permissions::RecordDecision,
    plan::PlanApproval,
    replacement::AskedMove,
    reply::Reply,
    server_prompts::ExpandedMessage,
    shell_hooks::JudgedPrompt,
    subagents::SubagentMessage,
    template_commands::FilledTemplate,
    transcript::{FailedAnswer, Intents},
    ui::UiMessage,
    user_bash::BashEnd,
};

/// Run messages that wait for the actor. Small, so that a model's stream is no faster than the slowest subscriber.
pub(crate) const RUN_MESSAGES: usize = 64;

/// Run messages that the actor takes at once.
pub(crate) const RUN_MESSAGES_AT_ONCE: usize = 64;

/// A message from a task that works for the session. Small: a session's channel keeps room for [`RUN_MESSAGES`] as long as it is in
/// memory.
pub(crate) enum RunMessage {
    /// An event, as its finished line.
    Publish(Bytes),
    /// An event for clients that said hello.
    Tell(Bytes),
    /// A message to store, with the intents of what the run does next, and the event to publish after it. Answered
    /// with the id of the entry.
    Store {
        message: Json<Message>,
        event: Bytes,
        intents: Box<Intents>,
        stored: oneshot::Sender<Result<String, HostError>>,
    },
    /// Asks for the next messages of a queue.
    Next { kind: QueueKind, reply: oneshot::Sender<Vec<QueuedMessage>> },
    /// A queued message is about to be delivered. Answered with whether it still waits.
    Deliver { ticket: Ticket, reply: oneshot::Sender<bool> },
    /// The context as it stands, and the model that it is for.
    Context { reply: oneshot::Sender<ModelInputs> },
    /// What the router of a virtual model keeps is to be stored.
    KeepRoute { data: Box<Value>, kept: oneshot::Sender<Result<(), HostError>> },
    /// Asks for the active tools.
    Tools { reply: oneshot::Sender<Arc<ToolSet>> },
    /// What extensions have made of a boundary of the run.
    Boundary(Box<BoundaryMessage>),
    /// Extensions have chosen other active tools for the run. Answered with these.
    UseTools { names: Vec<String>, done: oneshot::Sender<Arc<ToolSet>> },
    /// A client is asked for a call of its tool.
    ToolRequest(Box<ClientToolRequest>),
    /// The prompt passed its checks.
    Accepted,
    /// The prompt did not pass its checks: there is no run.
    Refused(Failure),
    /// The first event of a run.
    Started(Bytes),
    /// The last event of a run.
    Ended(Bytes),
    /// The model is told of rules on the stream, which is to be on record; with a message that follows its answer.
    RulesTold {
        rules: Vec<String>,
        follow_up: Option<Box<CustomMessage>>,
        done: oneshot::Sender<Result<(), HostError>>,
    },
    /// The failed answer at the end of the context is to be left out of it.
    OmitFailed { which: FailedAnswer, omitted: oneshot::Sender<Result<(), HostError>> },
    /// Another model takes the place of one that failed, until the run settles.
    FallBack { substitute: Box<Substitute>, done: oneshot::Sender<Result<(), HostError>> },
    /// A budget ended the run.
    BudgetReached { reached: BudgetReached, done: oneshot::Sender<()> },
    /// A pause before a retry began, which the token ends, or is over.
    Pause(Option<CancellationToken>),
    /// Asks how full the context is, and for the last answer.
    Fullness { reply: oneshot::Sender<ContextFill> },
    /// A task that compacts, or summarises a branch, asks or tells something.
    Compaction(CompactionMessage),
    /// A compaction of the run begins; the event that says so.
    CompactionStarted(Bytes),
    /// A compaction of the run is over; the event that says so.
    CompactionEnded(Bytes),
    /// A branch can be left for another entry, or cannot.
    BranchLeft(Box<Result<Departure, CompactionError>>),
    /// The compaction of a command ended.
    Compacted(Box<Result<CompactionResult, CompactionError>>),
    /// What is in flight, for clients that join: exactly what the messages before it add up to.
    InFlight(InFlight),
    /// The calls of an answer were stopped; these were running.
    ToolsStopped(Vec<StoppedCall>),
    /// An abort of everything is over, or has waited long enough (`is_late`).
    AllAborted { reply: Box<Reply>, ended: Vec<Work>, is_late: bool },
    /// A cell calls a tool.
    CellCall(Box<CellCall>),
    /// Something is asked of the user, or shown to them.
    Ui(Box<UiMessage>),
    /// A decision about a call is to be stored and told.
    Decided(Box<RecordDecision>),
    /// The user has approved a plan of the model.
    PlanApproved(Box<PlanApproval>),
    /// Whether the turn that a crash interrupted goes on.
    GoOn(bool),
    /// Whether the messages that were held back are to be delivered.
    Deliverable(bool),
    /// The user trusts the project: its settings, read.
    Trusted(Box<NewSettings>),
    /// An MCP server has given the prompt that a message calls, or not.
    Expanded(Box<ExpandedMessage>),
    /// The shell commands of a slash command that a message calls have ended.
    TemplateFilled(Box<FilledTemplate>),
    /// What extensions sent up to now comes before what the run sends next.
    ExtensionsAsked,
    /// The shell hooks for the beginning of the session have ended; what they tell the model.
    HooksBegan(Option<Box<CustomMessage>>),
    /// The shell hooks have seen a message of the user.
    PromptJudged(Box<JudgedPrompt>),
    /// The extensions have seen a message of the user.
    InputSeen(Box<SeenInput>),
    /// Extensions of a session that is open are loaded; `None` where that was given up.
    ExtensionsLoaded(Option<Box<LoadedAgain>>),
    /// An extension leads a client to another session, which no other prevents.
    Move(Box<AskedMove>),
    /// The extensions were started again by a command, which is to be answered.
    ExtensionsRenewed(Box<Reply>),
    /// The command of an extension of this number has ended.
    CommandRan(u64),
    /// A low-level run begins, which the handlers of `agent_start` know.
    Beginning { told: oneshot::Sender<()> },
    /// The run is over but for what extensions are told: the session counts as idle for them.
    Settling { told: oneshot::Sender<()> },
    /// The run is over.
    Settled,
    /// The run ends because the disk did not take a message.
    NotStored,
    /// The run panicked, without any event that says so.
    Broken,
    /// A task that runs subagents asks or tells something.
    Subagent(Box<SubagentMessage>),
    /// A tool call tells of a background process.
    Job(Box<JobMessage>),
    /// A tool call changed something, or changes were undone.
    Checkpoint(Box<Checkpoint>),
    /// Answered once the checkpoints sent before it have their entries.
    CheckpointsHandled(oneshot::Sender<()>),
    /// A command of the user's printed something.
    BashOutput { event: Bytes },
    /// A command of the user's ended.
    BashEnded(Box<BashEnd>),
}

/// What extensions have made of a boundary of the run.
pub(crate) enum BoundaryMessage {
    /// Checks drafts of entries.
    Check { drafts: Vec<Value>, reply: oneshot::Sender<Result<(), String>> },
    /// Adds the entries of drafts, all or none.
    Append { drafts: Vec<Value>, reply: oneshot::Sender<Result<(), String>> },
    /// Asks whether the model can be asked once more.
    CanContinue { is_last: bool, reply: oneshot::Sender<bool> },
}

/// The fill of the context.
pub(crate) struct ContextFill {
    /// Its tokens.
    pub(crate) tokens: u64,
    /// The last answer in it.
    pub(crate) last: Option<Json<Message>>,
    /// Whether that answer was there before the context was last compacted.
    pub(crate) precedes_compaction: bool,
    pub(crate) choice: Choice,
}

/// The inputs of a model call.
pub(crate) struct ModelInputs {
    pub(crate) messages: Vec<Json<Message>>,
    pub(crate) choice: Choice,
    /// The entry that the next one follows.
    pub(crate) leaf: Option<String>,
    /// The tools that the model can call.
    pub(crate) tools: Arc<ToolSet>,
    /// All tools that it may have, where extensions see what a run begins with; else none.
    pub(crate) declarable: Vec<Arc<dyn Tool>>,
    /// The session's context as it is now.
    pub(crate) context: Arc<SessionContext>,
    /// What the router of a virtual model has kept.
    pub(crate) route_state: Option<Value>,
}
