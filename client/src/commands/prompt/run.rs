//! The conversation with the daemon: choose the model, send the prompt, show events until the session has settled.

use std::{collections::VecDeque, future::Future, io, time::Duration};

use agentd_protocol::{
    command::{NoParams, SetModelParams},
    daemon::{ClientCapabilities, HelloParams, PROTOCOL, Role},
    error::ErrorCode,
    event::Event,
    message::{AssistantMessage, Message, StopReason},
    model::Model,
};
use tokio::{sync::mpsc, time::Instant};

use super::{
    Request,
    link::Link,
    shared::{Followed, Resumed, Seen},
};
use crate::{
    commands::{
        attach::typed_lines,
        questions::{Questions, Typed},
    },
    connect::socket::client_info,
    exit::{Exit, Fault},
    output::{Chunk, Output},
    render::{DEMO_NOTE, Style, TextRenderer, harmless},
    rpc::{
        Abort, CallError, Client, EventLine, GetAvailableModels, GetDiagnostics, GetState, Hello, Prompt,
        SetModel,
    },
    signals::Signals,
};

/// The provider of the built-in demo model, and its id.
const DEMO: &str = "demo";

/// How long a run may take to stop after SIGTERM or SIGHUP.
const ABORT_PATIENCE: Duration = Duration::from_secs(3);

/// How much waits for a slow stdout in a session that others may follow too: it does not wait for us, and what we do not take
/// in time we lose.
const AHEAD_BYTES: usize = 64 << 20;

/// What a conversation needs of the outside.
pub(crate) struct Conversation {
    pub(crate) signals: Signals,
    pub(crate) output: Output,
    pub(crate) chunks: mpsc::Sender<Chunk>,
}

/// How a conversation ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The daemon has nothing more to do for us.
    Settled {
        /// How to exit.
        exit: Exit,
        /// What is left to say on stderr.
        message: Option<String>,
    },
    /// Nobody waits for the rest.
    Abandoned(Exit),
    /// The daemon closed its output before it answered anything.
    NotStarted,
    /// The daemon closed its output.
    DaemonDied,
}

impl From<CallError> for End {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Ended { .. } => Self::DaemonDied,
            CallError::Refused { error, code, hint } => {
                let message =
                    [Some(format!("Error: {error}")), hint].into_iter().flatten().collect::<Vec<_>>();
                let is_ending = code.as_deref() == Some("shutting_down");
                let exit = if is_ending { Exit::Ending } else { Exit::Failed };
                Self::Settled { exit, message: Some(message.join("\n")) }
            }
            CallError::TurnedAway { .. } | CallError::Unreadable { .. } => {
                Self::Settled { exit: Exit::NoDaemon, message: Some(format!("agentctl: {error}")) }
            }
        }
    }
}

/// What a failed write to stdout means.
pub(crate) fn output_failed(error: &io::Error) -> Result<Exit, Fault> {
    match error.kind() {
        // As every filter does when `head` has enough: no word about it.
        io::ErrorKind::BrokenPipe => Ok(Exit::OutputClosed),
        _ => Err(Fault::new(Exit::Failed, format!("agentctl: cannot write to stdout: {error}"))),
    }
}

impl Conversation {
    /// Holds the conversation to its end.
    pub(crate) async fn hold(&mut self, link: &mut Link, request: &Request) -> End {
        let (client, _, followed) = link.parts();
        if followed.is_none()
            && let Err(end) = self.introduce(client).await
        {
            return end;
        }
        if let Err(end) = self.choose_model(link.parts().0, request).await {
            return end;
        }
        self.prompt(link, request).await
    }

    /// Says hello to an agentd of our own, which then tells of what clients of the reference do not know.
    async fn introduce(&mut self, client: &Client) -> Result<(), End> {
        let hello = HelloParams {
            protocol: PROTOCOL,
            client: Some(client_info()),
            capabilities: ClientCapabilities::default(),
            role: Role::Control,
        };
        match self.or_stopped(client.call::<Hello>(&hello)).await? {
            Ok(_) => Ok(()),
            Err(CallError::Ended { .. }) => Err(End::NotStarted),
            Err(error) => Err(error.into()),
        }
    }

    /// The demo model answers unasked only at a terminal where nothing at all is configured, and the user is told how to
    /// change that. Everywhere else a script would take its words for an answer.
    async fn choose_model(&mut self, client: &Client, request: &Request) -> Result<(), End> {
        let state = self.or_stopped(client.call::<GetState>(&NoParams {})).await?;
        let state = match state {
            Err(CallError::Ended { .. }) => return Err(End::NotStarted),
            state => state?,
        };
        if let Some(terminal) = &request.terminal
            && !request.ephemeral
        {
            terminal.remember(&request.folder, &state.session_id);
        }
        let model = state.model;
        if request.model_named || !(model.is_placeholder() || is_demo(&model)) {
            return Ok(());
        }
        if request.at_terminal
            && self.or_stopped(client.call::<GetDiagnostics>(&NoParams {})).await??.unconfigured
        {
            if model.is_placeholder() {
                let demo = SetModelParams { provider: Some(DEMO.into()), model_id: Some(DEMO.into()) };
                self.or_stopped(client.call::<SetModel>(&demo)).await??;
            }
            let note = Chunk::Err(DEMO_NOTE.as_bytes().to_vec());
            return self.or_stopped(self.chunks.clone().send(note)).await?.map_err(|_| {
                // The writer ends early only when stdout is closed, which is noticed while the answer is awaited.
                End::Abandoned(Exit::OutputClosed)
            });
        }
        if is_demo(&model) {
            let configured = self.or_stopped(client.call::<GetAvailableModels>(&NoParams {})).await??.models;
            return Err(End::Settled { exit: Exit::Failed, message: Some(of_demo_session(&configured)) });
        }
        // The daemon refuses the prompt, and says what is missing.
        Ok(())
    }

    /// Waits for `work`, unless a signal or a closed stdout ends the waiting.
    async fn or_stopped<T>(&mut self, work: impl Future<Output = T>) -> Result<T, End> {
        tokio::select! {
            biased;
            exit = self.signals.next() => Err(End::Abandoned(exit)),
            error = self.output.broken() => Err(self.broken(&error)),
            done = work => Ok(done),
        }
    }

    fn broken(&self, error: &io::Error) -> End {
        match output_failed(error) {
            Ok(exit) => End::Abandoned(exit),
            Err(fault) => End::Settled { exit: fault.exit, message: Some(fault.message) },
        }
    }

    async fn prompt(&mut self, link: &mut Link, request: &Request) -> End {
        let (client, incoming, mut followed) = link.parts();
        let accepted = client.call::<Prompt>(&request.prompt);
        let abort = client.call::<Abort>(&NoParams {});
        let patience = tokio::time::sleep(Duration::MAX);
        tokio::pin!(accepted, abort, patience);
        let mut view = View::new(request.json);
        let mut unwritten =
            Unwritten { ahead: if followed.is_some() { AHEAD_BYTES } else { 1 }, ..Unwritten::default() };
        let (mut waiting, mut aborted, mut stopped) = (true, false, None);
        let mut lagged = false;
        let mut questions = Questions::of(followed.as_ref().map_or("", |followed| followed.id()));
        let mut typed = None;
        loop {
            if std::mem::take(&mut lagged) {
                match self.resume(client, followed.as_deref_mut(), &mut view).await {
                    Ok(notice) => unwritten.add(notice),
                    Err(end) => return end,
                }
            }
            // The answer to `abort` comes after the last event, and the events before it are in the channel by then.
            let over = view.settled || (aborted && incoming.events.is_empty());
            if over && unwritten.chunks.is_empty() {
                return view.end(stopped);
            }
            tokio::select! {
                biased;
                exit = self.signals.next() => match stopped {
                    None => {
                        stopped = Some(exit);
                        if exit != Exit::Interrupted {
                            // Nobody sits there to ask a second time.
                            patience.as_mut().reset(Instant::now() + ABORT_PATIENCE);
                        }
                    }
                    Some(_) => return End::Abandoned(exit),
                },
                () = &mut patience => return End::Abandoned(stopped.unwrap_or(Exit::Terminated)),
                error = self.output.broken() => return self.broken(&error),
                answer = &mut accepted, if waiting => match answer {
                    Ok(_) => waiting = false,
                    Err(error) => return error.into(),
                },
                answer = &mut abort, if stopped.is_some() && !waiting && !aborted => match answer {
                    Ok(_) => aborted = true,
                    Err(error) => return error.into(),
                },
                permit = self.chunks.reserve(), if !unwritten.chunks.is_empty() => match (permit, unwritten.next()) {
                    (Ok(permit), Some(chunk)) => permit.send(chunk),
                    // The writer has ended, and `broken` says why.
                    _ => unwritten.chunks.clear(),
                },
                line = next_line(&mut typed), if questions.is_asking() => {
                    // Without anybody who types, it is as if nobody was asked: the other clients may answer.
                    let Some(line) = line else { questions = Questions::default(); continue };
                    match questions.typed(&line) {
                        Typed::Answer(answer, next) => {
                            if let Err(error) = client.answer_question(&answer).await {
                                return error.into();
                            }
                            unwritten.add([Chunk::Err(next.into_bytes())]);
                        }
                        Typed::More => {}
                        Typed::Unclear(how) => unwritten.add([Chunk::Err(how.into_bytes())]),
                    }
                }
                event = incoming.events.recv(), if unwritten.bytes < unwritten.ahead => match event {
                    None => return End::DaemonDied,
                    Some(line) => match followed.as_mut().map_or(Seen::Event(line.clone()), |it| it.take(line)) {
                        Seen::Event(line) => {
                            if request.can_answer
                                && let Some(shown) = question(&mut questions, &line)
                            {
                                unwritten.add([Chunk::Err(shown.into_bytes())]);
                            }
                            unwritten.add(view.event(line));
                        }
                        Seen::Lagged => lagged = true,
                        Seen::Closed => return closed(),
                        Seen::Other => {}
                    },
                },
            }
        }
    }

    /// Goes on after events were not sent to us; gives what is to be said about it.
    async fn resume(
        &mut self,
        client: &Client,
        followed: Option<&mut Followed>,
        view: &mut View,
    ) -> Result<Option<Chunk>, End> {
        let Some(followed) = followed else { return Ok(None) };
        match self.or_stopped(followed.resume(client)).await?? {
            Resumed::Whole => Ok(None),
            Resumed::Missed { events, ended } => {
                if let Some(last) = ended {
                    view.last = last.map(|answer| *answer);
                    view.settled = true;
                }
                let text = format!(
                    "agentctl: {events} events are not shown: stdout was read too slowly, and others follow the session \
                     too. The session has all of it: `agentctl attach {}`.\n",
                    followed.id()
                );
                Ok(Some(Chunk::Err(text.into_bytes())))
            }
        }
    }
}

/// What stdout has not taken yet.
#[derive(Default)]
struct Unwritten {
    chunks: VecDeque<Chunk>,
    bytes: usize,
    /// How many bytes may wait before no more events are taken.
    ahead: usize,
}

impl Unwritten {
    fn add(&mut self, chunks: impl IntoIterator<Item = Chunk>) {
        for chunk in chunks {
            self.bytes += chunk.len();
            self.chunks.push_back(chunk);
        }
    }

    fn next(&mut self) -> Option<Chunk> {
        let chunk = self.chunks.pop_front()?;
        self.bytes -= chunk.len();
        Some(chunk)
    }
}

/// What is to be shown of an event that asks the user something, or ends that.
fn question(questions: &mut Questions, line: &EventLine) -> Option<String> {
    if !matches!(line.kind.as_str(), "extension_ui_request" | "ui_request_resolved") {
        return None;
    }
    match line.event()? {
        Event::ExtensionUiRequest(request) => Some(questions.take(request)),
        Event::UiRequestResolved(resolved) => Some(questions.resolved(&resolved)),
        _ => None,
    }
}

/// What is typed next; reading begins with the first call. Cancel safe.
async fn next_line(typed: &mut Option<mpsc::Receiver<String>>) -> Option<String> {
    typed.get_or_insert_with(typed_lines).recv().await
}

/// The session ended under us.
fn closed() -> End {
    let text = "agentctl: another client closed the session before the answer was complete. What was finished is saved: \
                `agentctl prompt --continue` goes on from there.";
    End::Settled { exit: Exit::Failed, message: Some(text.into()) }
}

/// What is shown of the events, and what they say about the outcome.
struct View {
    /// `None` prints the events as they are.
    text: Option<TextRenderer>,
    last: Option<AssistantMessage>,
    settled: bool,
}

impl View {
    fn new(json: bool) -> Self {
        let text = (!json).then(|| TextRenderer::new(Style::detect()));
        Self { text, last: None, settled: false }
    }

    fn event(&mut self, line: EventLine) -> Vec<Chunk> {
        let event = match (&self.text, line.kind.as_str()) {
            // For these two the outcome is read from; the others are only passed on.
            (None, "message_end" | "agent_settled") | (Some(_), _) => line.event(),
            (None, _) => None,
        };
        match &event {
            Some(Event::MessageEnd(end)) => {
                if let Some(Message::Assistant(answer)) = end.message.get() {
                    self.last = Some(answer.clone());
                }
            }
            Some(Event::AgentSettled(_)) => self.settled = true,
            _ => {}
        }
        match (&mut self.text, event) {
            (None, _) => vec![Chunk::Out((line.text + "\n").into_bytes())],
            (Some(text), Some(event)) => text.event(&event),
            (Some(_), None) => Vec::new(),
        }
    }

    /// The exit code, and what is to be said of an answer that is none.
    fn end(&self, stopped: Option<Exit>) -> End {
        if let Some(exit) = stopped {
            return End::Settled { exit, message: Some("agentctl: stopped.".into()) };
        }
        let failed = |message: String| End::Settled { exit: Exit::Failed, message: Some(message) };
        let Some(answer) = &self.last else {
            return failed("agentctl: the run ended without an answer.".into());
        };
        match answer.stop_reason {
            StopReason::Error | StopReason::Aborted => {
                let reason = answer.error_message.as_deref().unwrap_or("Request error");
                let refused = answer.code == Some(ErrorCode::ModelRefused);
                let exit = if refused { Exit::Refused } else { Exit::Failed };
                End::Settled { exit, message: Some(format!("Error: {}", harmless(reason))) }
            }
            StopReason::Length => {
                failed("Response was truncated: the model reached its output token limit.".into())
            }
            StopReason::Stop | StopReason::ToolUse | StopReason::Pending | StopReason::Deferred => {
                End::Settled { exit: Exit::Answered, message: None }
            }
        }
    }
}

/// Whether it is the built-in demo model, and not one of a provider of the user's by that name, which has an address.
fn is_demo(model: &Model) -> bool {
    model.provider == DEMO && model.id == DEMO && model.base_url.is_empty()
}

/// For a session that was begun with the demo model.
fn of_demo_session(configured: &[Model]) -> String {
    let names: Vec<String> =
        configured.iter().take(5).map(|model| format!("{}/{}", model.provider, model.id)).collect();
    let others = if names.is_empty() {
        "`agentctl doctor` says what a real one needs.".to_owned()
    } else {
        format!("--model chooses another: {}.", names.join(", "))
    };
    format!(
        "Error: the model of this session is the built-in demo model, which answers only when asked for. --demo goes on with \
         it. {others}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(lines: &[&str], stopped: Option<Exit>) -> (Exit, String) {
        let mut view = View::new(true);
        for line in lines {
            let kind: serde_json::Value = serde_json::from_str(line).unwrap();
            let kind = kind["type"].as_str().unwrap().to_owned();
            let chunks = view.event(EventLine { kind, text: (*line).to_owned() });
            assert_eq!(chunks, [Chunk::Out(format!("{line}\n").into_bytes())]);
        }
        let End::Settled { exit, message } = view.end(stopped) else { panic!("not settled") };
        (exit, message.unwrap_or_default())
    }

    fn answer(stop: &str, more: &str) -> String {
        format!(
            r#"{{"type":"message_end","message":{{"role":"assistant","content":[],"stopReason":"{stop}"{more}}}}}"#
        )
    }

    #[test]
    fn the_last_answer_decides_the_exit_code() {
        let (failed, good) = (answer("error", r#","errorMessage":"503: busy""#), answer("stop", ""));
        assert_eq!(end(&[&failed, &good], None), (Exit::Answered, String::new()));
        assert_eq!(end(&[&good, &failed], None), (Exit::Failed, "Error: 503: busy".into()));
        assert_eq!(end(&[&answer("aborted", "")], None).0, Exit::Failed);
        let refused = answer("error", r#","errorMessage":"No.","code":"model_refused""#);
        assert_eq!(end(&[&refused], None), (Exit::Refused, "Error: No.".into()));
        assert_eq!(end(&[&refused, &good], None).0, Exit::Answered);
        assert_eq!(end(&[&answer("error", r#","code":"of_tomorrow""#)], None).0, Exit::Failed);
        assert!(end(&[&answer("length", "")], None).1.contains("truncated"));
        assert_eq!(end(&[r#"{"type":"agent_settled","aborted":false}"#], None).0, Exit::Failed);
        assert_eq!(end(&[&answer("aborted", "")], Some(Exit::Interrupted)).0, Exit::Interrupted);
    }

    #[test]
    fn refusals_keep_their_hint() {
        let hint = Some("Do this.".into());
        let refused = CallError::Refused { error: "No model".into(), code: None, hint };
        let message = Some("Error: No model\nDo this.".into());
        assert_eq!(End::from(refused), End::Settled { exit: Exit::Failed, message });
        assert_eq!(End::from(CallError::Ended { command: "prompt" }), End::DaemonDied);
    }
}
