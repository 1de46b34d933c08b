//! The output of a prompt: texts of events, dialogs, the chunks that are not written yet, and the exit.

use std::{collections::VecDeque, time::Instant};

use agentd_protocol::{
    event::{DecisionMaker, Event, PermissionDecision},
    exit_code::{DeniedCalls, PromptExit, PromptProgram},
    message::AssistantMessage,
    ui::{ExtensionUiRequest, UiMethod},
};
use tokio::sync::mpsc;

use super::{
    link::FollowedSession,
    request::{PromptRequest, StdoutContent},
    run_status::RunStatus,
    state::{PromptInput, PromptState},
    totals::PromptTotals,
};
use crate::{
    commands::{
        dialogs::{PendingDialogs, TypedOutcome},
        typed_lines::{TypedLine, drop_typed_ahead, typed_lines},
    },
    exit::Exit,
    output::OutputChunk,
    render::{TextRenderer, harmless},
    rpc::{CallError, Client, EventLine},
    shared_daemon::client_info,
};

/// How many bytes may wait for a slow stdout in a shared session. Such a session does not wait for us: it drops events
/// that we do not take in time. An agentd of our own waits for every chunk.
const MAX_UNWRITTEN_BYTES: usize = 64 << 20;

/// The chunks that stdout and stderr have not taken yet.
pub(super) struct Unwritten {
    chunks: VecDeque<OutputChunk>,
    bytes: usize,
    /// How many bytes may wait before no more events are taken.
    max_bytes: usize,
}

impl Unwritten {
    pub(super) fn add(&mut self, chunks: impl IntoIterator<Item = OutputChunk>) {
        for chunk in chunks {
            self.bytes += chunk.len();
            self.chunks.push_back(chunk);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    pub(super) fn has_room(&self) -> bool {
        self.bytes < self.max_bytes
    }

    /// Sends the oldest chunk. Without a writer none is of use: [`crate::output::Output::broken`] says why it ended.
    pub(super) fn send_next(
        &mut self,
        permit: Result<mpsc::Permit<'_, OutputChunk>, mpsc::error::SendError<()>>,
    ) {
        match (permit, self.chunks.pop_front()) {
            (Ok(permit), Some(chunk)) => {
                self.bytes -= chunk.len();
                permit.send(chunk);
            }
            (Ok(_), None) => {}
            (Err(_), _) => {
                self.chunks.clear();
                self.bytes = 0;
            }
        }
    }

    /// Sends what the writer takes without waiting, where no more is waited for.
    pub(super) fn send_all(&mut self, writer: &mpsc::Sender<OutputChunk>) {
        while !self.chunks.is_empty()
            && let Ok(permit) = writer.try_reserve()
        {
            self.send_next(Ok(permit));
        }
    }
}

/// The questions of the session, and the lines of stdin that answer them.
#[derive(Default)]
pub(super) struct TypedAnswers {
    pub(super) questions: PendingDialogs,
    /// Reading begins with the first question.
    lines: Option<mpsc::Receiver<TypedLine>>,
    /// Whether we said no since nothing can be typed any more.
    has_said_no: bool,
}

impl TypedAnswers {
    /// Takes a request; gives the text to show now.
    fn take(&mut self, request: ExtensionUiRequest) -> String {
        self.lines.get_or_insert_with(|| {
            drop_typed_ahead();
            typed_lines()
        });
        self.questions.take(request)
    }

    /// The next line of stdin; `None` at its end.
    ///
    /// *Cancel safety*: no line is lost.
    pub(super) async fn next_line(&mut self) -> Option<TypedLine> {
        self.lines.as_mut()?.recv().await
    }
}

/// The state of the output: texts, dialogs, and denied calls, which count for the exit code.
pub(super) struct PromptView {
    /// `None` prints the events as they are.
    text: Option<TextRenderer>,
    /// The line below everything, on a terminal.
    status: Option<RunStatus>,
    /// Whether somebody is there to answer questions.
    can_answer: bool,
    pub(super) dialogs: TypedAnswers,
    pub(super) unwritten: Unwritten,
    denied: DeniedCalls,
    /// Whether a command of an extension failed.
    command_failed: bool,
}

impl PromptView {
    pub(super) fn new(
        request: &PromptRequest,
        followed: Option<&FollowedSession>,
        totals: &PromptTotals,
    ) -> Self {
        let style = request.style;
        let model = totals.session().and_then(|session| session.model.as_ref());
        let model = model.map_or("the model", |model| &model.id);
        let max_bytes = if followed.is_some() { MAX_UNWRITTEN_BYTES } else { 1 };
        Self {
            text: match request.stdout {
                StdoutContent::Records => None,
                StdoutContent::AllAnswers => Some(TextRenderer::new(style)),
                StdoutContent::LastAnswer => Some(TextRenderer::of_notices(style)),
            },
            status: style.live.then(|| RunStatus::begin(model, Instant::now())),
            can_answer: request.can_answer,
            dialogs: TypedAnswers {
                questions: PendingDialogs::of(followed.map_or("", FollowedSession::id), style.colour),
                ..TypedAnswers::default()
            },
            unwritten: Unwritten { chunks: VecDeque::new(), bytes: 0, max_bytes },
            denied: DeniedCalls::default(),
            command_failed: false,
        }
    }

    /// Shows questions that were open when we came.
    pub(super) fn show_pending(&mut self, pending: Vec<ExtensionUiRequest>) {
        for request in pending.into_iter().filter(|_| self.can_answer) {
            let shown = self.dialogs.take(request);
            self.unwritten.add([OutputChunk::Err(shown.into_bytes())]);
        }
    }

    /// Shows and counts an event; gives its meaning for the prompt.
    pub(super) fn event(&mut self, line: EventLine, totals: &mut PromptTotals) -> Option<PromptInput> {
        if let Some(shown) = self.question(&line) {
            self.unwritten.add([OutputChunk::Err(shown.into_bytes())]);
        }
        let event = match (&self.text, line.kind.as_str()) {
            (Some(_), _) | (None, "agent_settled" | "permission_decision" | "extension_error") => {
                line.event()
            }
            (None, kind) if PromptTotals::counts(kind) => line.event(),
            // The others are only passed on.
            (None, _) => None,
        };
        if let Some(event) = &event {
            totals.take(event);
        }
        if let Some(Event::PermissionDecision(decision)) = &event {
            self.denied.take(&self.decided_by_whom(decision));
        }
        if let Some(Event::ExtensionError(failed)) = &event {
            self.command_failed |= failed.event == "command";
        }
        let input = matches!(event, Some(Event::AgentSettled(_))).then_some(PromptInput::Settled);
        match (&mut self.text, event) {
            (None, _) => self.unwritten.add([OutputChunk::Out((line.text + "\n").into_bytes())]),
            (Some(text), Some(event)) => {
                self.unwritten.add(text.event(&event));
                let status = self.status.as_mut();
                if status.is_some_and(|status| status.take(&event, Instant::now())) {
                    self.show_status(totals);
                }
            }
            (Some(_), None) => {}
        }
        input
    }

    /// When to call [`PromptView::draw`] if no event comes before; `None` while everything is drawn.
    pub(super) fn draw_at(&self) -> Option<Instant> {
        self.text.as_ref()?.draw_at()
    }

    /// Draws what came of the answer since the last time.
    pub(super) fn draw(&mut self) {
        self.unwritten.add(self.text.as_mut().and_then(TextRenderer::draw));
    }

    /// Whether a line tells what is going on.
    pub(super) fn has_status(&self) -> bool {
        self.status.is_some()
    }

    /// Shows what is going on now. Nothing where a question waits or an answer's line has not ended.
    pub(super) fn show_status(&mut self, totals: &PromptTotals) {
        let Some(status) = &self.status else { return };
        let is_in_line = self.text.as_ref().is_some_and(TextRenderer::is_in_line);
        if !is_in_line && !self.dialogs.questions.is_asking() {
            let line = status.line(totals.tokens(), Instant::now());
            self.unwritten.add([OutputChunk::Status(line)]);
        }
    }

    /// The text of an event that tells or asks the user something, or ends that.
    fn question(&mut self, line: &EventLine) -> Option<String> {
        if !matches!(line.kind.as_str(), "extension_ui_request" | "ui_request_resolved") {
            return None;
        }
        match line.event()? {
            Event::ExtensionUiRequest(request) if !self.can_answer => {
                let is_notice = matches!(request.method, UiMethod::Notify { .. });
                (self.text.is_some() && is_notice).then(|| self.dialogs.questions.take(request))
            }
            Event::ExtensionUiRequest(request) => Some(self.dialogs.take(request)),
            Event::UiRequestResolved(resolved) => Some(self.dialogs.questions.resolved(&resolved)),
            _ => None,
        }
    }

    /// The decision, and nobody's where our no only said that nothing can be typed any more.
    fn decided_by_whom(&self, decision: &PermissionDecision) -> PermissionDecision {
        let is_ours = decision.client.as_deref() == Some(&*client_info().name);
        let by = if self.dialogs.has_said_no && is_ours { DecisionMaker::Nobody } else { decision.by };
        PermissionDecision { by, ..decision.clone() }
    }

    /// Takes a line of stdin while a question is asked.
    pub(super) async fn typed(&mut self, line: Option<TypedLine>, client: &Client) -> Result<(), CallError> {
        let Some(line) = line else {
            let (noes, text) = self.dialogs.questions.input_ended();
            self.dialogs.has_said_no |= !noes.is_empty();
            self.unwritten.add([OutputChunk::Err(text.into())]);
            for no in noes {
                no.send(client).await?;
            }
            return Ok(());
        };
        let shown = match self.dialogs.questions.typed(&line) {
            TypedOutcome::Answer(answer, next) => {
                answer.send(client).await?;
                next
            }
            TypedOutcome::More => return Ok(()),
            TypedOutcome::Unclear(how) => how,
        };
        self.unwritten.add([OutputChunk::Err(shown.into_bytes())]);
        Ok(())
    }

    /// The exit code and the last words.
    pub(super) fn exit(&self, state: PromptState, last_answer: Option<&AssistantMessage>) -> PromptExit {
        match state.stopped_by() {
            Some(exit) => PromptExit { exit, message: Some("agentctl: stopped.".into()) },
            // The error was told of when it came.
            None if state.is_done() && self.command_failed => {
                PromptExit { exit: Exit::Failed, message: None }
            }
            None if state.is_done() && last_answer.is_none() => PromptExit::answered(),
            None => {
                let PromptExit { exit, message } =
                    PromptProgram::Agentctl.after_run(last_answer).unless_denied(&self.denied);
                PromptExit { exit, message: message.map(|message| harmless(&message).into_owned()) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::prompt::state::Transition;

    fn view() -> PromptView {
        PromptView {
            text: None,
            status: None,
            can_answer: false,
            dialogs: TypedAnswers::default(),
            unwritten: Unwritten { chunks: VecDeque::new(), bytes: 0, max_bytes: 1 },
            denied: DeniedCalls::default(),
            command_failed: false,
        }
    }

    #[test]
    fn events_are_passed_on_and_the_last_answer_counts() {
        let (mut view, mut totals) = (view(), PromptTotals::begin(false));
        let answer = |stop: &str| {
            format!(
                r#"{{"type":"message_end","message":{{"role":"assistant","content":[],"stopReason":"{stop}","errorMessage":"e"}}}}"#
            )
        };
        let settled = r#"{"type":"agent_settled","aborted":false}"#;
        for (line, input) in [
            (answer("stop").as_str(), None),
            (r#"{"type":"of_tomorrow"}"#, None),
            (answer("error").as_str(), None),
            (settled, Some(PromptInput::Settled)),
        ] {
            let kind: serde_json::Value = serde_json::from_str(line).unwrap();
            let kind = kind["type"].as_str().unwrap().to_owned();
            assert_eq!(view.event(EventLine { kind, text: line.to_owned() }, &mut totals), input, "{line}");
            assert_eq!(
                view.unwritten.chunks.pop_back(),
                Some(OutputChunk::Out(format!("{line}\n").into_bytes()))
            );
        }
        let failed = PromptExit::failed("Error: e");
        assert_eq!(view.exit(PromptState::SUBMITTED, totals.last_answer()), failed);
        let Transition::To(stopped) = PromptState::SUBMITTED.next(PromptInput::Signal(Exit::Interrupted))
        else {
            panic!("abandoned")
        };
        let exit = PromptExit { exit: Exit::Interrupted, message: Some("agentctl: stopped.".into()) };
        assert_eq!(view.exit(stopped, totals.last_answer()), exit);
    }
}
