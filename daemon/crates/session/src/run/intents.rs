//! The records that a run writes into the intent log, and when.
//!
//! Most records are written with an entry: the request to the model with the message before it, the calls with the
//! answer that contains them. The others are written alone.

use std::{pin::Pin, time::Duration};

use agentd_agent::{ExecutionMode, HostError, ToolSet};
use agentd_ai::{AnswerPiece, AnswerPieceKind};
use agentd_protocol::{
    Json,
    message::{AssistantMessage, Message, StopReason, ToolCall, ToolResultMessage},
};
use agentd_store::intent_log::{
    CallsRecord, DoneRecord, IntentRecord, NamedCall, RunRecord, SaidRecord, Streamed,
};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::{
    clock::now_ms,
    models::Choice,
    transcript::{Intents, MAX_RESULT, SessionIntentLog, ask_record},
};

/// After how many deltas the clock is looked at, while they come so fast that no timer is heard.
const DELTAS_PER_LOOK: u32 = 64;

/// The state of the intent log for one run.
pub(super) struct RunIntents {
    intent_log: SessionIntentLog,
    /// Time that streamed text may be missing from it.
    flush: Duration,
    /// Whether it knows of the run at all.
    begun: bool,
    /// The model and level at the last question.
    choice: Option<Choice>,
    /// The question that it knows of, and that has no answer yet.
    asked: Option<Choice>,
    /// The entry of the last answer.
    answer: String,
    /// The calls of it that are known.
    intended: Vec<String>,
    /// The calls of it that have no results yet.
    open: usize,
    /// When what streamed is to be kept.
    due: Option<Pin<Box<Sleep>>>,
    deltas: u32,
}

impl RunIntents {
    /// `begun`: the intent log says already that there is a run.
    pub(super) fn new(intent_log: SessionIntentLog, flush: Duration, begun: bool) -> Self {
        Self {
            intent_log,
            flush,
            begun,
            choice: None,
            asked: None,
            answer: String::new(),
            intended: Vec::new(),
            open: 0,
            due: None,
            deltas: 0,
        }
    }

    /// Notes the model and level of the next question.
    pub(super) fn choose(&mut self, choice: &Choice) {
        self.choice = Some(choice.clone());
    }

    /// The intents that are written with a message.
    pub(super) fn with(&mut self, message: &Json<Message>, tools: Option<&ToolSet>) -> Intents {
        let mut intents = Intents { run: !std::mem::replace(&mut self.begun, true), ..Intents::default() };
        match message.get() {
            Some(Message::User(_)) => intents.ask = self.ask(),
            Some(Message::Assistant(answer)) => {
                (self.asked, self.due) = (None, None);
                intents.calls = first_calls(answer, tools);
                self.intended = intents.calls.iter().map(|call| call.id.clone()).collect();
                self.open = answer.tool_calls().count();
            }
            Some(Message::ToolResult(_)) => {
                self.open = self.open.saturating_sub(1);
                if self.open == 0 {
                    intents.ask = self.ask();
                }
            }
            _ => {}
        }
        intents
    }

    fn ask(&mut self) -> Option<Choice> {
        self.asked.clone_from(&self.choice);
        self.choice.clone()
    }

    /// The message was stored as this entry.
    pub(super) fn stored(&mut self, is_answer: bool, entry: &str) {
        if is_answer {
            entry.clone_into(&mut self.answer);
        }
    }

    /// The model is asked, with what stands before this entry and with it.
    pub(super) async fn asking(&mut self, choice: &Choice, leaf: Option<&str>) -> Result<(), HostError> {
        self.choose(choice);
        if self.begun && self.asked.as_ref() == Some(choice) {
            return Ok(());
        }
        let run = (!std::mem::replace(&mut self.begun, true)).then(|| {
            IntentRecord::Run(RunRecord { at: now_ms(), entry: leaf.map(str::to_owned), resumes: 0 })
        });
        let records = run.into_iter().chain([ask_record(choice, leaf)]).collect();
        self.asked = Some(choice.clone());
        self.intend(records).await
    }

    /// The calls are made.
    pub(super) async fn calling(&mut self, calls: &[&ToolCall]) -> Result<(), HostError> {
        let new = calls.iter().filter(|call| !self.intended.contains(&call.id));
        let new: Vec<NamedCall> = new.map(|call| named(call)).collect();
        if new.is_empty() {
            return Ok(());
        }
        self.intended.extend(new.iter().map(|call| call.id.clone()));
        self.intend(vec![IntentRecord::Calls(CallsRecord { entry: self.answer.clone(), calls: new })]).await
    }

    async fn intend(&self, records: Vec<IntentRecord>) -> Result<(), HostError> {
        let written = self.intent_log.intend(records).await;
        written.map_err(|error| HostError::NotStored(error.to_string()))
    }

    /// A call came to its end, and others go on.
    pub(super) async fn ended(&self, result: ToolResultMessage) {
        let call = result.tool_call_id.clone();
        let message = Json::new(Message::ToolResult(result)).ok();
        let message = message.filter(|message| message.text_len() <= MAX_RESULT);
        self.intent_log
            .note(IntentRecord::Done(DoneRecord { entry: self.answer.clone(), call, message }))
            .await;
    }

    /// The model said something.
    pub(super) fn delta(&mut self) {
        self.deltas = self.deltas.wrapping_add(1);
        if self.due.is_none() {
            self.due = Some(Box::pin(sleep_until(Instant::now() + self.flush)));
        }
    }

    /// Whether streamed text is to be saved, for a loop that never waits.
    pub(super) fn is_due(&self) -> bool {
        self.deltas.is_multiple_of(DELTAS_PER_LOOK)
            && self.due.as_ref().is_some_and(|due| due.deadline() <= Instant::now())
    }

    /// Waits until it is. Cancel safe.
    pub(super) async fn due(&mut self) {
        match &mut self.due {
            Some(due) => due.await,
            None => std::future::pending().await,
        }
    }

    /// Keeps what streamed.
    pub(super) async fn keep(&mut self, pieces: Vec<AnswerPiece>) {
        // Set again with the next delta, so that a silent model costs nothing.
        self.due = None;
        if !pieces.is_empty() {
            let parts = pieces.into_iter().map(streamed).collect();
            self.intent_log.note(IntentRecord::Said(SaidRecord { parts })).await;
        }
    }
}

/// The calls of an answer that begin together, before all others.
fn first_calls(answer: &AssistantMessage, tools: Option<&ToolSet>) -> Vec<NamedCall> {
    if matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted | StopReason::Length) {
        return Vec::new();
    }
    let Some(tools) = tools else { return Vec::new() };
    let known = |call: &&ToolCall| tools.get(&call.name).is_some();
    let is_alone = |call: &ToolCall| {
        tools.get(&call.name).is_some_and(|found| found.tool.execution() == ExecutionMode::Sequential)
    };
    let one_by_one = answer.tool_calls().any(is_alone);
    let together = if one_by_one { 1 } else { usize::MAX };
    answer.tool_calls().take(together).filter(known).map(named).collect()
}

fn named(call: &ToolCall) -> NamedCall {
    NamedCall { id: call.id.clone(), name: call.name.clone() }
}

fn streamed(piece: AnswerPiece) -> Streamed {
    let AnswerPiece { block, kind, text, signature, redacted } = piece;
    let (text, thinking) = match kind {
        AnswerPieceKind::Text => (Some(text), None),
        AnswerPieceKind::Thinking => (None, Some(text)),
    };
    Streamed { block, text, thinking, signature, redacted: redacted.then_some(true) }
}
