//! Runs and sessions that end by a bug, and writes that a failing disk did not take: what is open is closed as after a crash,
//! and told.

use agentd_protocol::{
    Json,
    error::{ErrorCode, Failure},
    event::{AgentEnd, AgentSettled, Event, MessageEnd, MessageStart, ToolExecutionEnd, TurnEnd, TurnStart},
    message::{AssistantMessage, ContentBlock, Message, StopReason, ToolResultMessage},
    tool::ToolResult,
};
use agentd_store::{
    EntryKind, NewEntry, Role, StoreError,
    intent_log::{IntentRecord, MadeCalls, NamedCall, RunRecord, UnfinishedWork},
};
use tokio::sync::mpsc;

use super::session_actor::Actor;
use crate::{
    clock::now_ms,
    event_log::Feed,
    messages::InboxMessage,
    recovery::{
        InterruptionCause, RecoveryPlan, Unflushed, plan_recovery, plan_recovery_after, waiting_messages,
        write_refused,
    },
    reply::encode,
    run::{OpenEvents, OpenParts},
};

/// The error of an answer that stands for what a bug kept from being said.
const BROKE_DOWN: &str = "agentd broke down in the middle of this turn, which is a bug: its log says where. The session is as it was before; go on with a prompt.";

/// The error for clients of a session that broke down.
const SESSION_BROKE_DOWN: &str =
    "The session broke down, which is a bug: the daemon's log says where. Open it again to go on.";

impl Actor {
    /// The run ended without a word. Everything that it began is ended: by what the intent log knows, and with an error that says
    /// what happened. Then the session has settled.
    pub(super) async fn on_broken(&mut self) {
        if !self.run.is_active() {
            return;
        }
        let open = self.open_events.snapshot();
        if let Err(error) = self.close_broken(&open).await {
            tracing::error!(%error, "a run broke down, and what was open could not be closed");
            self.on_not_stored().await;
            self.end_events(&open, Vec::new());
        }
        self.on_settled().await;
    }

    async fn close_broken(&mut self, open: &OpenParts) -> Result<(), StoreError> {
        let left = match self.journal.intent_log().left().await? {
            Some(left) => left,
            None => self.known_without_intent_log(open),
        };
        // Commands of the user's go on.
        let left = UnfinishedWork { commands: Vec::new(), ..left };
        let plan = plan_recovery(self.journal.tree(), &left, now_ms())?;
        let mut added = Vec::new();
        for entry in plan.entries {
            added.push(self.add_recovered(entry).await?);
        }
        let has_answer = |added: &[Json<Message>]| {
            added.iter().any(|message| matches!(message.get(), Some(Message::Assistant(_))))
        };
        // A turn that was over has its end already.
        if (plan.goes_on || open.answer) && !has_answer(&added) {
            let error = Json::new(Message::Assistant(self.error_answer()))?;
            added.push(self.add_recovered(NewEntry::message(error)).await?);
        }
        self.end_events(open, added);
        Ok(())
    }

    async fn add_recovered(&mut self, entry: NewEntry) -> Result<Json<Message>, StoreError> {
        let message = self.journal.append_recovered(entry).await?;
        self.show_summary();
        Ok(message)
    }

    /// The unfinished work of a session without an intent log, which has no file.
    fn known_without_intent_log(&self, open: &OpenParts) -> UnfinishedWork {
        let Some(first) = &open.first else { return UnfinishedWork::default() };
        let run = RunRecord { at: now_ms(), entry: Some(first.clone()), resumes: 0 };
        let calls = self.last_answer_entry().map(|entry| MadeCalls {
            entry,
            begun: open
                .calls
                .iter()
                .map(|call| NamedCall { id: call.id().to_owned(), name: String::new() })
                .collect(),
            ..MadeCalls::default()
        });
        UnfinishedWork { run: Some(run), calls, ..UnfinishedWork::default() }
    }

    /// The entry of the branch's last answer.
    fn last_answer_entry(&self) -> Option<String> {
        let branch = self.journal.tree().branch();
        let answer = branch.iter().rev().find(|entry| entry.kind() == EntryKind::Message(Role::Assistant));
        answer.map(|entry| entry.id().to_owned())
    }

    fn error_answer(&self) -> AssistantMessage {
        let model = self.chooser.in_use().model;
        error_answer((&model.api, &model.provider, &model.id), BROKE_DOWN)
    }

    /// Tells what was `added`, and the end of all that was told to have begun.
    fn end_events(&mut self, open: &OpenParts, added: Vec<Json<Message>>) {
        let mut turn = open.turn;
        let (mut answers, mut results) = (Vec::new(), Vec::new());
        for message in added {
            match message.get() {
                Some(Message::ToolResult(result)) => {
                    if open.has_call(&result.tool_call_id) {
                        self.publish(&ended(result).into());
                    }
                    results.push(message);
                }
                _ => answers.push(message),
            }
        }
        for message in &results {
            self.publish(&MessageStart { message: message.clone() }.into());
            self.publish(&MessageEnd { message: message.clone() }.into());
        }
        if turn
            && !open.answer
            && let Some((message, tool_results)) = self.last_turn(&answers)
        {
            turn = false;
            self.publish(&TurnEnd { message, tool_results }.into());
        }
        for (at, message) in answers.into_iter().enumerate() {
            if !std::mem::replace(&mut turn, false) {
                self.publish(&TurnStart {}.into());
            }
            if at > 0 || !open.answer {
                self.publish(&MessageStart { message: message.clone() }.into());
            }
            self.publish(&MessageEnd { message: message.clone() }.into());
            self.publish(&TurnEnd { message, tool_results: Vec::new() }.into());
        }
        if open.run {
            let messages = self.messages_of_run(open);
            self.run.end();
            self.publish(&AgentEnd { messages, will_retry: false }.into());
        }
    }

    /// The turn that the run was in, if it had an answer: that, and its results. `beyond` are answers that are none of it.
    fn last_turn(&self, beyond: &[Json<Message>]) -> Option<(Json<Message>, Vec<Json<Message>>)> {
        let messages = self.journal.messages();
        let messages = &messages[..messages.len().saturating_sub(beyond.len())];
        let mut results = Vec::new();
        for message in messages.iter().rev() {
            match message.get() {
                Some(Message::ToolResult(_)) => results.push(message.clone()),
                Some(Message::Assistant(_)) => {
                    results.reverse();
                    return Some((message.clone(), results));
                }
                _ => return None,
            }
        }
        None
    }

    /// The messages that the run added.
    fn messages_of_run(&self, open: &OpenParts) -> Vec<Json<Message>> {
        let Some(first) = &open.first else { return Vec::new() };
        let branch = self.journal.tree().branch();
        let run = branch.iter().skip_while(|entry| entry.id() != first);
        run.filter_map(|entry| entry.message().cloned()).collect()
    }

    /// The run ends because the disk did not take a message. Calls that are open get their results, if not now, then later.
    pub(super) async fn on_not_stored(&mut self) {
        if self.unflushed.is_due() {
            return;
        }
        let open = self.open_events.snapshot();
        let known = match self.journal.intent_log().left().await {
            Ok(known) => known.filter(|left| left.run.is_some()),
            Err(error) => {
                tracing::warn!(%error, "what a run had begun is not known exactly");
                None
            }
        };
        let mut left = known.unwrap_or_else(|| self.known_without_intent_log(&open));
        // Streamed text of a failed answer is not stored, and commands of the user go on.
        (left.answer, left.commands) = (None, Vec::new());
        let results = std::mem::take(&mut self.unflushed.results);
        if let Some(answer) = self.last_answer_entry() {
            let made = left.calls.get_or_insert_default();
            if made.entry != answer {
                *made = MadeCalls { entry: answer, ..MadeCalls::default() };
            }
            for message in results {
                if let Some(Message::ToolResult(result)) = message.get() {
                    made.done.insert(result.tool_call_id.clone(), Some(message));
                }
            }
        }
        self.unflushed.due = Unflushed::OfARun(Box::new(left));
        self.retry_failed_writes().await;
    }

    /// Adds what could not be stored before, because the disk failed: before anything else is said to be under way, which would
    /// take the place of what the intent log says. While the disk still fails, the session can be read, and must not work
    /// ([`UnflushedWrites::failure`]).
    pub(super) async fn retry_failed_writes(&mut self) {
        if !self.unflushed.is_due() {
            return;
        }
        if let Err(error) = self.write_unflushed().await {
            // The client that asks for work gets the error.
            tracing::debug!(%error, "what the disk did not take before could not be stored once more");
            self.unflushed.failure = Some(write_refused(&error));
            return;
        }
        (self.unflushed.due, self.unflushed.failure) = (Unflushed::Nothing, None);
        if !self.run.is_active() {
            self.store_bash_messages().await;
            self.settle_intent_log();
        }
    }

    /// The intent log need not know of the run any more, unless something of it is to be stored yet.
    pub(super) fn settle_intent_log(&self) {
        if !self.unflushed.is_due() {
            self.journal.intent_log().settle();
        }
    }

    async fn write_unflushed(&mut self) -> Result<(), StoreError> {
        match &self.unflushed.due {
            Unflushed::Nothing | Unflushed::OfCommands => {}
            Unflushed::OfACrash => {
                if let Some(left) = self.journal.intent_log().left().await? {
                    let plan = plan_recovery(self.journal.tree(), &left, now_ms())?;
                    self.add_late(plan).await?;
                    let waiting = waiting_messages(&left, self.journal.tree());
                    let records = waiting.iter().cloned().map(IntentRecord::Queued).collect();
                    self.journal.intent_log().replace(records).await?;
                    let waiting = self.held_back.take_in(waiting);
                    self.queues.reserve(self.held_back.messages());
                    if !waiting.is_empty() {
                        self.let_wait(waiting);
                        self.queues.publish(&self.feed);
                    }
                }
            }
            Unflushed::OfARun(left) => {
                let plan = plan_recovery_after(InterruptionCause::Disk, self.journal.tree(), left, now_ms())?;
                self.add_late(plan).await?;
            }
        }
        Ok(())
    }

    async fn add_late(&mut self, plan: RecoveryPlan) -> Result<(), StoreError> {
        let open = self.open_events.snapshot();
        for entry in plan.entries {
            let message = self.add_recovered(entry).await?;
            if let Some(Message::ToolResult(result)) = message.get()
                && open.has_call(&result.tool_call_id)
            {
                let end = ended(result).into();
                self.open_events.event(&end);
                self.publish(&end);
            }
            self.publish(&MessageStart { message: message.clone() }.into());
            self.publish(&MessageEnd { message }.into());
        }
        Ok(())
    }
}

/// Tells the subscribers of a session whose own task panicked that nothing more will come, and answers what it left in its inbox.
pub(super) async fn broke_down(
    feed: &Feed,
    open_events: &OpenEvents,
    inbox: &mut mpsc::Receiver<InboxMessage>,
) {
    let tell = |event: Event| match encode(&event) {
        Ok(line) => feed.publish([line]),
        Err(error) => tracing::error!(%error, "cannot write an event"),
    };
    let open = open_events.snapshot();
    if open.run {
        // Not stored: crash recovery completes the file when it is opened next.
        let answer = error_answer(("", "", ""), SESSION_BROKE_DOWN);
        let message = Json::new(Message::Assistant(answer)).ok();
        if let Some(message) = message.clone() {
            if !open.answer {
                tell(MessageStart { message: message.clone() }.into());
            }
            tell(MessageEnd { message: message.clone() }.into());
            if open.turn {
                tell(TurnEnd { message, tool_results: Vec::new() }.into());
            }
        }
        tell(AgentEnd { messages: message.into_iter().collect(), will_retry: false }.into());
    }
    if open.active {
        tell(AgentSettled { aborted: false }.into());
    }
    inbox.close();
    while let Some(message) = inbox.recv().await {
        message.refuse(feed, || Failure::new(ErrorCode::Internal, SESSION_BROKE_DOWN));
    }
}

fn error_answer((api, provider, model): (&str, &str, &str), error: &str) -> AssistantMessage {
    AssistantMessage {
        content: vec![ContentBlock::text("")],
        stop_reason: StopReason::Error,
        error_message: Some(error.to_owned()),
        ..AssistantMessage::pending(api, provider, model, now_ms())
    }
}

pub(super) fn ended(result: &ToolResultMessage) -> ToolExecutionEnd {
    ToolExecutionEnd {
        tool_call_id: result.tool_call_id.clone(),
        tool_name: result.tool_name.clone(),
        result: ToolResult {
            content: result.content.clone(),
            details: result.details.clone(),
            ..ToolResult::default()
        },
        is_error: result.is_error,
        duration_ms: None,
        parent_tool_call_id: None,
    }
}
