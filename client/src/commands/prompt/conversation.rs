//! The conversation with the daemon about one prompt: a loop that feeds signals, answers and events to the prompt's state, and shows
//! what comes.

use std::{collections::VecDeque, future::Future, io, time::Duration};

use agentd_protocol::{
    command::NoParams,
    daemon::{ClientCapabilities, HelloParams, PROTOCOL, Role},
    event::Event,
    exit_code::{PromptExit, PromptProgram},
    message::{AssistantMessage, Message},
};
use tokio::{sync::mpsc, time::Instant};

use super::{
    link::{FollowedLine, FollowedSession, Reattached, SessionLink},
    request::PromptRequest,
    state::{PromptInput, PromptState, Transition},
};
use crate::{
    commands::dialogs::{PendingDialogs, TypedOutcome, typed_lines},
    exit::{Exit, Fault, Signals},
    output::{Output, OutputChunk},
    render::{StreamStyle, TextRenderer, harmless},
    rpc::{Abort, CallError, Client, EventLine, Hello, Prompt},
    shared_daemon::client_info,
};

/// How many bytes may wait for a slow stdout in a session that others may follow too: such a session does not wait for us, and
/// drops the events that we do not take in time. An agentd of our own waits for every chunk.
const MAX_UNWRITTEN_BYTES: usize = 64 << 20;

/// A conversation with one agentd: the signals and the output that it shares with the rest of the program.
pub(super) struct Conversation {
    pub(super) signals: Signals,
    pub(super) output: Output,
    pub(super) chunks: mpsc::Sender<OutputChunk>,
}

/// The end of a conversation.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ConversationEnd {
    /// The daemon has nothing more to do for us.
    Finished(PromptExit),
    /// Nobody waits for the rest.
    Abandoned(Exit),
    /// The daemon closed its output before it answered anything.
    NotStarted,
    /// The daemon closed its output.
    DaemonDied,
}

impl From<CallError> for ConversationEnd {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Ended { .. } => Self::DaemonDied,
            CallError::Refused { error, code, hint } => {
                let is_ending = code.as_deref() == Some("shutting_down");
                Self::Finished(PromptProgram::Agentctl.after_refused_prompt(
                    &error,
                    hint.as_deref(),
                    is_ending,
                ))
            }
            CallError::TurnedAway { .. } | CallError::Unreadable { .. } => {
                Fault::new(Exit::NoDaemon, format!("agentctl: {error}")).into()
            }
        }
    }
}

impl From<Fault> for ConversationEnd {
    fn from(fault: Fault) -> Self {
        Self::Finished(PromptExit { exit: fault.exit, message: Some(fault.message) })
    }
}

/// The meaning of a failed write to stdout.
pub(super) fn output_failed(error: &io::Error) -> Result<Exit, Fault> {
    match error.kind() {
        // As every filter does when `head` has enough: no word about it.
        io::ErrorKind::BrokenPipe => Ok(Exit::OutputClosed),
        _ => Err(Fault::new(Exit::Failed, format!("agentctl: cannot write to stdout: {error}"))),
    }
}

impl Conversation {
    /// Says hello to an agentd of our own, which then also sends the events that clients of pi do not know.
    pub(super) async fn introduce(&mut self, client: &Client) -> Result<(), ConversationEnd> {
        let hello = HelloParams {
            protocol: PROTOCOL,
            client: Some(client_info()),
            capabilities: ClientCapabilities::default(),
            role: Role::Control,
        };
        match self.unless_stopped(client.call::<Hello>(&hello)).await? {
            Ok(_) => Ok(()),
            Err(CallError::Ended { .. }) => Err(ConversationEnd::NotStarted),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for `work`, unless a signal or a closed stdout ends the waiting.
    pub(super) async fn unless_stopped<T>(
        &mut self,
        work: impl Future<Output = T>,
    ) -> Result<T, ConversationEnd> {
        tokio::select! {
            biased;
            exit = self.signals.next() => Err(ConversationEnd::Abandoned(exit)),
            error = self.output.broken() => Err(broken(&error)),
            done = work => Ok(done),
        }
    }

    /// Sends the prompt and shows what comes of it, to the end of its run.
    pub(super) async fn run_prompt(
        &mut self,
        link: &mut SessionLink,
        request: &PromptRequest,
    ) -> ConversationEnd {
        let (client, incoming, mut followed) = link.parts();
        let accepted = client.call::<Prompt>(&request.prompt);
        let abort = client.call::<Abort>(&NoParams {});
        let stop_timer = tokio::time::sleep(Duration::MAX);
        tokio::pin!(accepted, abort, stop_timer);
        let chunks = self.chunks.clone();
        let mut state = PromptState::SUBMITTED;
        let mut view = PromptView::new(request, followed.as_deref());
        loop {
            if state.is_over(!incoming.events.is_empty()) && view.unwritten.is_empty() {
                return view.end(state);
            }
            let input = tokio::select! {
                biased;
                exit = self.signals.next() => Ok(Some(PromptInput::Signal(exit))),
                () = &mut stop_timer => Ok(Some(PromptInput::StopTimeout)),
                error = self.output.broken() => Err(broken(&error)),
                answer = &mut accepted, if state.awaits_acceptance() => {
                    answer.map(|_| Some(PromptInput::Accepted)).map_err(Into::into)
                }
                answer = &mut abort, if state.awaits_abort() => {
                    answer.map(|_| Some(PromptInput::AbortAnswered)).map_err(Into::into)
                }
                permit = chunks.reserve(), if !view.unwritten.is_empty() => {
                    view.unwritten.send_next(permit);
                    Ok(None)
                }
                line = view.dialogs.next_line(), if view.dialogs.questions.is_asking() => {
                    view.typed(line, client).await.map(|()| None).map_err(Into::into)
                }
                event = incoming.events.recv(), if view.unwritten.has_room() => {
                    self.on_event(event, client, followed.as_deref_mut(), &mut view).await
                }
            };
            let input = match input {
                Ok(Some(input)) => input,
                Ok(None) => continue,
                Err(end) => return end,
            };
            let had_timeout = state.stop_timeout().is_some();
            match state.next(input) {
                Transition::To(next) => state = next,
                Transition::Abandon(exit) => return ConversationEnd::Abandoned(exit),
            }
            if let Some(timeout) = state.stop_timeout().filter(|_| !had_timeout) {
                stop_timer.as_mut().reset(Instant::now() + timeout);
            }
        }
    }

    /// Shows an event; gives its meaning for the prompt. `None` is the end of the connection.
    async fn on_event(
        &mut self,
        event: Option<EventLine>,
        client: &Client,
        followed: Option<&mut FollowedSession>,
        view: &mut PromptView,
    ) -> Result<Option<PromptInput>, ConversationEnd> {
        let line = event.ok_or(ConversationEnd::DaemonDied)?;
        // An agentd of our own has one session, whose events have no name.
        let Some(followed) = followed else { return Ok(view.event(line)) };
        match followed.take(line) {
            FollowedLine::Event(line) => Ok(view.event(line)),
            FollowedLine::Lagged => self.catch_up(client, followed, view).await,
            FollowedLine::Closed => Err(closed_by_another()),
            FollowedLine::Other => Ok(None),
        }
    }

    /// Attaches again after events were not sent to us, and says which are missing.
    async fn catch_up(
        &mut self,
        client: &Client,
        followed: &mut FollowedSession,
        view: &mut PromptView,
    ) -> Result<Option<PromptInput>, ConversationEnd> {
        let Reattached::Missed { events, ended } = self.unless_stopped(followed.resume(client)).await??
        else {
            return Ok(None);
        };
        let text = format!(
            "agentctl: {events} events are not shown: stdout was read too slowly, and others follow the session too. The \
             session has all of it: `agentctl attach {}`.\n",
            followed.id()
        );
        view.unwritten.add([OutputChunk::Err(text.into_bytes())]);
        Ok(ended.map(|last| {
            view.last_answer = last.map(|answer| *answer);
            PromptInput::Settled
        }))
    }
}

/// The end after a failed write to stdout.
fn broken(error: &io::Error) -> ConversationEnd {
    match output_failed(error) {
        Ok(exit) => ConversationEnd::Abandoned(exit),
        Err(fault) => fault.into(),
    }
}

/// The end after the session ended under us.
fn closed_by_another() -> ConversationEnd {
    ConversationEnd::Finished(PromptExit::failed(
        "agentctl: another client closed the session before the answer was complete. What was finished is saved: `agentctl \
         prompt --continue` goes on from there.",
    ))
}

/// The chunks that stdout and stderr have not taken yet.
struct Unwritten {
    chunks: VecDeque<OutputChunk>,
    bytes: usize,
    /// How many bytes may wait before no more events are taken.
    max_bytes: usize,
}

impl Unwritten {
    fn add(&mut self, chunks: impl IntoIterator<Item = OutputChunk>) {
        for chunk in chunks {
            self.bytes += chunk.len();
            self.chunks.push_back(chunk);
        }
    }

    fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    fn has_room(&self) -> bool {
        self.bytes < self.max_bytes
    }

    /// Sends the oldest chunk. Without a writer none is of use: [`Output::broken`] says why it ended.
    fn send_next(&mut self, permit: Result<mpsc::Permit<'_, OutputChunk>, mpsc::error::SendError<()>>) {
        match (permit, self.chunks.pop_front()) {
            (Ok(permit), Some(chunk)) => {
                self.bytes -= chunk.len();
                permit.send(chunk);
            }
            (Ok(_), None) => {}
            (Err(_), _) => self.chunks.clear(),
        }
    }
}

/// The questions of the session, and the lines of stdin that answer them.
#[derive(Default)]
struct TypedAnswers {
    questions: PendingDialogs,
    /// Reading begins with the first question.
    lines: Option<mpsc::Receiver<String>>,
}

impl TypedAnswers {
    /// The next line of stdin; `None` at its end.
    ///
    /// *Cancel safety*: no line is lost.
    async fn next_line(&mut self) -> Option<String> {
        self.lines.get_or_insert_with(typed_lines).recv().await
    }
}

/// The state of the output: texts, dialogs, and the last answer, which decides the exit code.
struct PromptView {
    /// `None` prints the events as they are.
    text: Option<TextRenderer>,
    /// Whether somebody is there to answer questions.
    can_answer: bool,
    dialogs: TypedAnswers,
    unwritten: Unwritten,
    last_answer: Option<AssistantMessage>,
}

impl PromptView {
    fn new(request: &PromptRequest, followed: Option<&FollowedSession>) -> Self {
        let max_bytes = if followed.is_some() { MAX_UNWRITTEN_BYTES } else { 1 };
        Self {
            text: (!request.json).then(|| TextRenderer::new(StreamStyle::detect())),
            can_answer: request.can_answer,
            dialogs: TypedAnswers {
                questions: PendingDialogs::of(followed.map_or("", FollowedSession::id)),
                lines: None,
            },
            unwritten: Unwritten { chunks: VecDeque::new(), bytes: 0, max_bytes },
            last_answer: None,
        }
    }

    /// Shows an event; gives what it means for the prompt.
    fn event(&mut self, line: EventLine) -> Option<PromptInput> {
        if self.can_answer
            && let Some(shown) = self.question(&line)
        {
            self.unwritten.add([OutputChunk::Err(shown.into_bytes())]);
        }
        let event = match (&self.text, line.kind.as_str()) {
            // These two decide the outcome; the others are only passed on.
            (None, "message_end" | "agent_settled") | (Some(_), _) => line.event(),
            (None, _) => None,
        };
        if let Some(Event::MessageEnd(end)) = &event
            && let Some(Message::Assistant(answer)) = end.message.get()
        {
            self.last_answer = Some(answer.clone());
        }
        let input = matches!(event, Some(Event::AgentSettled(_))).then_some(PromptInput::Settled);
        match (&mut self.text, event) {
            (None, _) => self.unwritten.add([OutputChunk::Out((line.text + "\n").into_bytes())]),
            (Some(text), Some(event)) => self.unwritten.add(text.event(&event)),
            (Some(_), None) => {}
        }
        input
    }

    /// The text of an event that asks the user something, or ends that.
    fn question(&mut self, line: &EventLine) -> Option<String> {
        if !matches!(line.kind.as_str(), "extension_ui_request" | "ui_request_resolved") {
            return None;
        }
        match line.event()? {
            Event::ExtensionUiRequest(request) => Some(self.dialogs.questions.take(request)),
            Event::UiRequestResolved(resolved) => Some(self.dialogs.questions.resolved(&resolved)),
            _ => None,
        }
    }

    /// Takes a line of stdin while a question is asked. At its end nobody can answer any more, but other clients may.
    async fn typed(&mut self, line: Option<String>, client: &Client) -> Result<(), CallError> {
        let Some(line) = line else {
            self.dialogs.questions = PendingDialogs::default();
            return Ok(());
        };
        let shown = match self.dialogs.questions.typed(&line) {
            TypedOutcome::Answer(answer, next) => {
                client.answer_question(&answer).await?;
                next
            }
            TypedOutcome::More => return Ok(()),
            TypedOutcome::Unclear(how) => how,
        };
        self.unwritten.add([OutputChunk::Err(shown.into_bytes())]);
        Ok(())
    }

    /// The exit code and the last words.
    fn end(&self, state: PromptState) -> ConversationEnd {
        ConversationEnd::Finished(match state.stopped_by() {
            Some(exit) => PromptExit { exit, message: Some("agentctl: stopped.".into()) },
            None => {
                let PromptExit { exit, message } =
                    PromptProgram::Agentctl.after_run(self.last_answer.as_ref());
                PromptExit { exit, message: message.map(|message| harmless(&message).into_owned()) }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> PromptView {
        PromptView {
            text: None,
            can_answer: false,
            dialogs: TypedAnswers::default(),
            unwritten: Unwritten { chunks: VecDeque::new(), bytes: 0, max_bytes: 1 },
            last_answer: None,
        }
    }

    #[test]
    fn events_are_passed_on_and_the_last_answer_counts() {
        let mut view = view();
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
            assert_eq!(view.event(EventLine { kind, text: line.to_owned() }), input, "{line}");
            assert_eq!(
                view.unwritten.chunks.pop_back(),
                Some(OutputChunk::Out(format!("{line}\n").into_bytes()))
            );
        }
        let failed = PromptExit::failed("Error: e");
        assert_eq!(view.end(PromptState::SUBMITTED), ConversationEnd::Finished(failed));
        let Transition::To(stopped) = PromptState::SUBMITTED.next(PromptInput::Signal(Exit::Interrupted))
        else {
            panic!("abandoned")
        };
        let exit = PromptExit { exit: Exit::Interrupted, message: Some("agentctl: stopped.".into()) };
        assert_eq!(view.end(stopped), ConversationEnd::Finished(exit));
    }

    #[test]
    fn refusals_keep_their_hint_and_a_lost_daemon_is_one() {
        let hint = Some("Do this.".into());
        let refused = CallError::Refused { error: "No model".into(), code: None, hint };
        let exit = PromptExit::failed("Error: No model\nDo this.");
        assert_eq!(ConversationEnd::from(refused), ConversationEnd::Finished(exit));
        assert_eq!(
            ConversationEnd::from(CallError::Ended { command: "prompt" }),
            ConversationEnd::DaemonDied
        );
    }
}
