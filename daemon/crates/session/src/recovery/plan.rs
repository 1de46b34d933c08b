//! The entries that a session file lacks after a crash, and the texts for them. Pure.

use std::collections::HashMap;

use agentd_protocol::{
    Json,
    message::{
        AssistantMessage, BashExecutionMessage, ContentBlock, Message, StopReason, ToolCall,
        ToolResultMessage,
    },
};
use agentd_store::{
    Entry, EntryKind, NewEntry, Role, SessionTree, StoreError,
    intent_log::{MadeCalls, StreamedAnswer, UnfinishedWork, UserCommand},
};
use agentd_tools::TakenBack;
use serde::Deserialize;

use crate::requests::KEY_FIELD;

/// The field of entries that recovery adds: what became of what they are about.
pub(crate) const FIELD: &str = "recovered";

/// The result of planning a recovery.
#[derive(Default)]
pub(crate) struct RecoveryPlan {
    /// The entries to be added, in order.
    pub(crate) entries: Vec<NewEntry>,
    /// Whether a turn was interrupted that could go on.
    pub(crate) goes_on: bool,
    /// The diagnostic for the user; `None` when nothing was interrupted.
    pub(crate) story: Option<String>,
}

/// Plans the entries that `tree` lacks after a crash, by the intent log. The tree's leaf is where the session was.
pub(crate) fn plan_recovery(
    tree: &SessionTree,
    left: &UnfinishedWork,
    now_ms: i64,
) -> Result<RecoveryPlan, StoreError> {
    plan_recovery_after(InterruptionCause::Crash, tree, left, now_ms)
}

/// As [`plan_recovery`], where the changes of some calls were taken back.
pub(crate) fn plan_recovery_with(
    tree: &SessionTree,
    left: &UnfinishedWork,
    taken_back: &[TakenBack],
    now_ms: i64,
) -> Result<RecoveryPlan, StoreError> {
    plan_entries(InterruptionCause::Crash, tree, (left, taken_back), now_ms)
}

/// As [`plan_recovery`], after something else, perhaps.
pub(crate) fn plan_recovery_after(
    cause: InterruptionCause,
    tree: &SessionTree,
    left: &UnfinishedWork,
    now_ms: i64,
) -> Result<RecoveryPlan, StoreError> {
    plan_entries(cause, tree, (left, &[]), now_ms)
}

fn plan_entries(
    cause: InterruptionCause,
    tree: &SessionTree,
    (left, taken_back): (&UnfinishedWork, &[TakenBack]),
    now_ms: i64,
) -> Result<RecoveryPlan, StoreError> {
    let branch = tree.branch();
    let mut plan = RecoveryPlan::default();
    let mut stories = Vec::new();
    // A intent log of another time says nothing: the run that it knows is not where the session is.
    let run = left
        .run
        .as_ref()
        .filter(|run| run.entry.as_ref().is_none_or(|id| branch.iter().rev().any(|entry| entry.id() == id)));
    if let Some(run) = run {
        let turn = Turn::of(&branch, run.entry.as_deref());
        match &turn {
            Turn::Calls { entry, open } => {
                let made = left.calls.as_ref().filter(|calls| calls.entry == entry.id());
                for call in open {
                    let fate = fate(call, made);
                    stories.push(fate.story(&call.name));
                    let taken_back = taken_back.iter().find(|taken| taken.call_id == call.id);
                    plan.entries.push(result(call, (fate, taken_back), cause, made, now_ms)?);
                }
            }
            Turn::Asks => {
                let answer = left.answer.as_ref().filter(|answer| is_open(answer, &branch));
                if let Some(answer) = answer {
                    stories.push(cut_off(answer));
                    plan.entries.push(aborted(answer)?);
                } else {
                    stories.push("the model was not asked".to_owned());
                }
            }
            Turn::Recovered => {
                // It went on, and was cut off once more; an answer that said nothing is there already.
                let answer = left.answer.as_ref().filter(|answer| is_open(answer, &branch));
                if let Some(answer) = answer.filter(|answer| !answer.content.is_empty()) {
                    plan.entries.push(aborted(answer)?);
                }
                stories.push("the answer was cut off".to_owned());
            }
            Turn::Over => {}
        }
        plan.goes_on = !matches!(turn, Turn::Over);
    }
    let stored = stored_commands(tree, &left.commands);
    for (command, is_stored) in left.commands.iter().zip(stored) {
        if !is_stored {
            let fate = if command.is_done { CallFate::Done } else { CallFate::Unknown };
            stories.push(fate.story("the command of the user"));
            plan.entries.push(bash(command, now_ms)?);
        }
    }
    if !stories.is_empty() {
        let what = if plan.goes_on { "the last turn" } else { "a command" };
        plan.story = Some(format!("{what} was interrupted by a crash of the daemon: {}", stories.join("; ")));
    }
    Ok(plan)
}

/// Where a branch stands.
enum Turn<'a> {
    /// The model waits for the results of these calls.
    Calls { entry: &'a Entry, open: Vec<&'a ToolCall> },
    /// The model has yet to answer.
    Asks,
    /// It has not answered; an earlier recovery says so.
    Recovered,
    /// Nothing is open.
    Over,
}

impl<'a> Turn<'a> {
    /// `begin` is the entry that the run began with, or after.
    fn of(branch: &[&'a Entry], begin: Option<&str>) -> Self {
        let mut answered = Vec::new();
        let begin = begin.and_then(|id| branch.iter().position(|entry| entry.id() == id)).unwrap_or_default();
        for (at, entry) in branch.iter().enumerate().rev() {
            let (EntryKind::Message(role), Some(message)) = (entry.kind(), entry.message()) else {
                continue;
            };
            match (role, message.get()) {
                (Role::ToolResult, Some(Message::ToolResult(result))) => answered.push(&*result.tool_call_id),
                (Role::User, _) => return Self::Asks,
                (Role::Assistant, Some(Message::Assistant(answer))) => {
                    return match Self::after(entry, answer, &answered, is_left_out(branch, entry.id())) {
                        // Of an earlier run, whose results are on the branch that was left.
                        Self::Calls { .. } if at < begin => Self::Asks,
                        turn => turn,
                    };
                }
                _ => {}
            }
        }
        if answered.is_empty() { Self::Over } else { Self::Asks }
    }

    fn after(entry: &'a Entry, answer: &'a AssistantMessage, answered: &[&str], left_out: bool) -> Self {
        if matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted) {
            // One that is asked for again was left out of the context first.
            return match (recovered(entry), left_out) {
                (true, _) => Self::Recovered,
                (false, true) => Self::Asks,
                (false, false) => Self::Over,
            };
        }
        let mut answered = answered.to_vec();
        let open: Vec<&ToolCall> = answer
            .tool_calls()
            .filter(|call| match answered.iter().position(|id| *id == call.id) {
                // Each result answers one call.
                Some(at) => {
                    answered.swap_remove(at);
                    false
                }
                None => true,
            })
            .collect();
        if !open.is_empty() {
            return Self::Calls { entry, open };
        }
        if left_out || answer.tool_calls().next().is_some() { Self::Asks } else { Self::Over }
    }
}

/// Whether an edit leaves an entry out of the context.
fn is_left_out(branch: &[&Entry], id: &str) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Edit {
        target_id: String,
    }
    let after = branch.iter().rev().take_while(|entry| entry.id() != id);
    after
        .filter(|entry| entry.kind() == EntryKind::ContextEdit)
        .filter_map(|entry| entry.read::<Edit>())
        .any(|edit| edit.target_id == id)
}

fn recovered(entry: &Entry) -> bool {
    entry.extra(FIELD).is_some()
}

/// Whether a question has no answer yet: nothing but asides follows what it was about.
fn is_open(answer: &StreamedAnswer, branch: &[&Entry]) -> bool {
    let Some(after) = &answer.ask.after else { return true };
    for entry in branch.iter().rev() {
        if entry.id() == after {
            return true;
        }
        if let EntryKind::Message(Role::User | Role::Assistant | Role::ToolResult) = entry.kind() {
            return false;
        }
    }
    false
}

fn fate(call: &ToolCall, made: Option<&MadeCalls>) -> CallFate {
    let Some(made) = made else { return CallFate::NotStarted };
    match made.done.get(&call.id) {
        Some(Some(_)) => CallFate::Done,
        Some(None) => CallFate::Lost,
        None if made.begun.iter().any(|begun| begun.id == call.id) => CallFate::Unknown,
        None => CallFate::NotStarted,
    }
}

fn result(
    call: &ToolCall,
    (fate, taken_back): (CallFate, Option<&TakenBack>),
    cause: InterruptionCause,
    made: Option<&MadeCalls>,
    now_ms: i64,
) -> Result<NewEntry, StoreError> {
    let known = made.and_then(|made| made.done.get(&call.id)?.clone());
    let message = match (fate.text(cause), known) {
        (None, Some(message)) => message,
        (text, _) => {
            let text = match taken_back.filter(|_| fate == CallFate::Unknown) {
                Some(taken) => taken_back_text(taken),
                None => text.unwrap_or(MAY_HAVE_RUN).to_owned(),
            };
            Json::new(Message::ToolResult(ToolResultMessage {
                tool_call_id: call.id.clone(),
                tool_name: call.name.clone(),
                content: vec![ContentBlock::text(text)],
                details: None,
                usage: None,
                nested_calls: None,
                is_error: true,
                duration_ms: None,
                timestamp: now_ms,
            }))?
        }
    };
    NewEntry::message(message).with(FIELD, &fate.name())
}

/// The result of a call whose changes of files were taken back.
fn taken_back_text(taken: &TakenBack) -> String {
    if taken.left.is_empty() {
        return "interrupted by a crash; no file is changed: what it had changed is as before".to_owned();
    }
    format!("interrupted by a crash; what it had changed is as before, but for: {}", taken.left.join("; "))
}

/// The answer as far as it is known.
fn aborted(answer: &StreamedAnswer) -> Result<NewEntry, StoreError> {
    let ask = &answer.ask;
    let message = AssistantMessage {
        content: answer.content.clone(),
        stop_reason: StopReason::Aborted,
        error_message: Some(ANSWER.to_owned()),
        thinking_level: Some(ask.level.clone()).filter(|level| !level.is_empty()),
        ..AssistantMessage::pending(&ask.api, &ask.provider, &ask.model, ask.at)
    };
    NewEntry::message(Json::new(Message::Assistant(message))?).with(FIELD, &CallFate::Unknown.name())
}

fn cut_off(answer: &StreamedAnswer) -> String {
    let text: usize =
        answer.content.iter().filter_map(ContentBlock::as_text).map(|text| text.chars().count()).sum();
    if answer.content.is_empty() {
        return "the answer was cut off, nothing of it is known".to_owned();
    }
    format!("the answer was cut off, {text} characters of its text are kept")
}

/// Which of these commands of the user have their entries: one of the same command line and key that ended since each began.
fn stored_commands(tree: &SessionTree, commands: &[UserCommand]) -> Vec<bool> {
    let mut times: HashMap<(&str, Option<String>), Vec<i64>> = HashMap::new();
    if !commands.is_empty() {
        for entry in tree.entries() {
            if entry.kind() == EntryKind::Message(Role::BashExecution)
                && let Some(Message::BashExecution(message)) = entry.message().and_then(Json::get)
            {
                times.entry((&message.command, entry.extra(KEY_FIELD))).or_default().push(message.timestamp);
            }
        }
    }
    let mut stored = vec![false; commands.len()];
    let end_of = |command: &UserCommand| match command.message.as_ref().and_then(Json::get) {
        Some(Message::BashExecution(message)) => Some(message.timestamp),
        _ => None,
    };
    // Commands with known ends come first, so that no other command takes their entries.
    let mut order: Vec<usize> = (0..commands.len()).collect();
    order.sort_by_key(|at| (end_of(&commands[*at]).is_none(), !commands[*at].is_done));
    for at in order {
        let (command, end) = (&commands[at], end_of(&commands[at]));
        let asked = (&*command.begun.command, command.begun.request_key.clone());
        let Some(times) = times.get_mut(&asked) else { continue };
        let is_its = |time: &i64| end.map_or(*time >= command.begun.at, |end| *time == end);
        if let Some(found) = times.iter().position(is_its) {
            times.swap_remove(found);
            stored[at] = true;
        }
    }
    stored
}

fn bash(command: &UserCommand, now_ms: i64) -> Result<NewEntry, StoreError> {
    let begun = &command.begun;
    let message = match &command.message {
        Some(message) => message.clone(),
        None => Json::new(Message::BashExecution(BashExecutionMessage {
            command: begun.command.clone(),
            output: if command.is_done { RESULT_IS_LOST } else { MAY_HAVE_RUN }.to_owned(),
            exit_code: None,
            cancelled: true,
            truncated: false,
            full_output_path: None,
            timestamp: now_ms,
            exclude_from_context: begun.exclude_from_context.then_some(true),
        }))?,
    };
    let fate = if command.is_done { CallFate::Done } else { CallFate::Unknown };
    let mut entry = NewEntry::message(message);
    if let Some(key) = &begun.request_key {
        entry = entry.with(KEY_FIELD, key)?;
    }
    entry.with(FIELD, &fate.name())
}

/// The result of a call that was about to run, or ran.
pub(crate) const MAY_HAVE_RUN: &str = "interrupted by a crash; it may have run";

/// The result of a call that never began.
pub(crate) const DID_NOT_RUN: &str = "interrupted by a crash; it did not run";

/// The result of a call that came to its end with a result that is lost.
pub(crate) const RESULT_IS_LOST: &str =
    "interrupted by a crash; it ran to its end, but its result was too large to be kept";

/// The same three of a turn that a failing disk ended while the daemon lived on.
const DISK_MAY_HAVE_RUN: &str = "interrupted by a disk that failed; it may have run";

const DISK_DID_NOT_RUN: &str = "interrupted by a disk that failed; it did not run";

const DISK_RESULT_IS_LOST: &str =
    "interrupted by a disk that failed; it ran to its end, but its result was too large to be kept";

/// The error of an answer that was cut off.
pub(crate) const ANSWER: &str = "Interrupted by a crash";

/// The cause of an interruption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InterruptionCause {
    /// The end of the daemon, or of the session's task.
    Crash,
    /// The disk: the daemon lived on.
    Disk,
}

/// The outcome of a call or command that was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallFate {
    /// It never began.
    NotStarted,
    /// It began, and may have had any effect.
    Unknown,
    /// It came to its end, and what came of it is known.
    Done,
    /// It came to its end, and what came of it is not known.
    Lost,
}

impl CallFate {
    /// The value of the entry's field.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NotStarted => "notStarted",
            Self::Unknown => "unknown",
            Self::Done | Self::Lost => "done",
        }
    }

    /// The text that stands for the result; `None` where there is one.
    pub(crate) fn text(self, cause: InterruptionCause) -> Option<&'static str> {
        match (self, cause) {
            (Self::NotStarted, InterruptionCause::Crash) => Some(DID_NOT_RUN),
            (Self::NotStarted, InterruptionCause::Disk) => Some(DISK_DID_NOT_RUN),
            (Self::Unknown, InterruptionCause::Crash) => Some(MAY_HAVE_RUN),
            (Self::Unknown, InterruptionCause::Disk) => Some(DISK_MAY_HAVE_RUN),
            (Self::Lost, InterruptionCause::Crash) => Some(RESULT_IS_LOST),
            (Self::Lost, InterruptionCause::Disk) => Some(DISK_RESULT_IS_LOST),
            (Self::Done, _) => None,
        }
    }

    /// The text for the user.
    pub(crate) fn story(self, name: &str) -> String {
        match self {
            Self::NotStarted => format!("{name} did not run"),
            Self::Unknown => format!("{name} may have run"),
            Self::Done => format!("{name} ran to its end"),
            Self::Lost => format!("{name} ran to its end, its result is lost"),
        }
    }
}
