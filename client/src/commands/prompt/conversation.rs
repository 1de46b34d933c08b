//! The conversation with the daemon about one prompt: a loop that feeds signals, answers and events to the prompt's
//! state, and events to its view.

use std::{future::Future, io, time::Duration};

use agentd_protocol::{
    command::{NoParams, PromptParams},
    daemon::{ClientCapabilities, HelloParams, PROTOCOL, Role},
    event::Event,
    exit_code::{PromptExit, PromptProgram},
    session::PermissionState,
    ui::UiResponse,
};
use tokio::{
    sync::mpsc,
    time::{Instant, MissedTickBehavior, sleep_until},
};

use super::{
    link::{FollowedLine, FollowedSession, Reattached, SessionLink},
    output_schema::{self, OutputSchema},
    request::PromptRequest,
    state::{PromptInput, PromptState, Transition},
    totals::PromptTotals,
    view::PromptView,
};
use crate::{
    exit::{Exit, Fault, Signals},
    output::{Output, OutputChunk},
    rpc::{
        Abort, CallError, Client, EventLine, GetState, Hello, Prompt, RegisterTools, SetPermissions,
        ToolResponse,
    },
    shared_daemon::client_info,
};

/// How often the times of the status line are brought up to date.
const STATUS_INTERVAL: Duration = Duration::from_secs(1);

/// A conversation with one agentd: the signals and the output that it shares with the rest of the program, and what it has done so far.
pub(super) struct Conversation {
    pub(super) signals: Signals,
    pub(super) output: Output,
    pub(super) chunks: mpsc::Sender<OutputChunk>,
    pub(super) totals: PromptTotals,
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
                let code = code.and_then(|code| serde_json::from_value(code.into()).ok());
                Self::Finished(PromptProgram::Agentctl.after_refused_prompt(&error, hint.as_deref(), code))
            }
            CallError::TurnedAway { .. } | CallError::Unreadable { .. } => {
                Fault::new(Exit::NoDaemon, format!("agentctl: {error}")).into()
            }
        }
    }
}

impl From<Fault> for ConversationEnd {
    fn from(fault: Fault) -> Self {
        Self::Finished(fault.into())
    }
}

/// The id of the dialog that an event opens.
fn dialog_of(line: &EventLine) -> Option<String> {
    match line.event()? {
        Event::ExtensionUiRequest(request) if request.method.is_dialog() => Some(request.id),
        _ => None,
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
    /// With somebody at the terminal, it asks them about calls.
    pub(super) async fn introduce(
        &mut self,
        client: &Client,
        can_answer: bool,
    ) -> Result<(), ConversationEnd> {
        let hello = HelloParams {
            protocol: PROTOCOL,
            client: Some(client_info()),
            capabilities: ClientCapabilities { permissions: can_answer, ..ClientCapabilities::default() },
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

    /// Writes something before the prompt is sent.
    pub(super) async fn print(&mut self, chunk: OutputChunk) -> Result<(), ConversationEnd> {
        let chunks = self.chunks.clone();
        // The writer ends early only when stdout is closed.
        let closed = |_| ConversationEnd::Abandoned(Exit::OutputClosed);
        self.unless_stopped(chunks.send(chunk)).await?.map_err(closed)
    }

    /// Sends the prompt and shows what comes of it, to the end of its run.
    pub(super) async fn run_prompt(
        &mut self,
        link: &mut SessionLink,
        request: &PromptRequest,
        prompt: &PromptParams,
    ) -> ConversationEnd {
        let pending_ui = link.take_pending_ui();
        let (client, incoming, mut followed) = link.parts();
        let accepted = client.call::<Prompt>(prompt);
        let abort = client.call::<Abort>(&NoParams {});
        let stop_timer = tokio::time::sleep(Duration::MAX);
        let at_work = client.call::<GetState>(&NoParams {});
        tokio::pin!(accepted, abort, at_work, stop_timer);
        let chunks = self.chunks.clone();
        let mut state = PromptState::SUBMITTED;
        let mut view = PromptView::new(request, followed.as_deref(), &self.totals);
        view.show_pending(pending_ui);
        let mut ticks = tokio::time::interval(STATUS_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            if state.is_over(!incoming.events.is_empty()) && view.unwritten.is_empty() {
                return ConversationEnd::Finished(view.exit(state, self.totals.last_answer()));
            }
            let draw_at = view.draw_at().map(Instant::from_std);
            let input = tokio::select! {
                biased;
                exit = self.signals.next() => Ok(Some(PromptInput::Signal(exit))),
                () = &mut stop_timer => Ok(Some(PromptInput::StopTimeout)),
                error = self.output.broken() => Err(broken(&error)),
                answer = &mut accepted, if state.awaits_acceptance() => {
                    answer.map(|accepted| Some(PromptInput::of(&accepted))).map_err(Into::into)
                }
                answer = &mut at_work, if state.asks_for_work() => {
                    answer.map(|state| Some(PromptInput::AtWork(state.is_streaming))).map_err(Into::into)
                }
                answer = &mut abort, if state.awaits_abort() => {
                    answer.map(|_| Some(PromptInput::AbortAnswered)).map_err(Into::into)
                }
                permit = chunks.reserve(), if !view.unwritten.is_empty() => {
                    view.unwritten.send_next(permit);
                    Ok(None)
                }
                () = sleep_until(draw_at.unwrap_or_else(Instant::now)), if draw_at.is_some() => {
                    view.draw();
                    Ok(None)
                }
                line = view.dialogs.next_line(), if view.dialogs.questions.is_asking() => {
                    view.typed(line, client).await.map(|()| None).map_err(Into::into)
                }
                _ = ticks.tick(), if view.has_status() && view.unwritten.is_empty() => {
                    view.show_status(&self.totals);
                    Ok(None)
                }
                event = incoming.events.recv(), if view.unwritten.has_room() => {
                    match event.ok_or(ConversationEnd::DaemonDied) {
                        Ok(line) if line.kind == "tool_request" => {
                            self.take_answer(&line, client, request.schema.as_ref()).await.map(|()| None)
                        }
                        Ok(line) => {
                            let unanswered = (!request.can_answer && followed.is_none())
                                .then(|| dialog_of(&line))
                                .flatten();
                            if let Some(id) = unanswered {
                                self.close_dialog(client, id).await.map(|()| None)
                            } else {
                                self.on_event(line, client, followed.as_deref_mut(), &mut view).await
                            }
                        }
                        Err(end) => Err(end),
                    }
                }
            };
            let input = match input {
                Ok(Some(input)) => input,
                Ok(None) => continue,
                Err(end) => {
                    view.draw();
                    view.unwritten.send_all(&chunks);
                    return end;
                }
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

    /// Registers the tool that takes an answer of the schema, and lets the model call it.
    pub(super) async fn offer_tool(
        &mut self,
        client: &Client,
        schema: &OutputSchema,
        session: Option<String>,
        permissions: Option<&PermissionState>,
    ) -> Result<(), ConversationEnd> {
        let allowed = output_schema::permission(permissions);
        let registration = schema.registration(session.clone());
        match self.unless_stopped(client.call::<RegisterTools>(&registration)).await? {
            Ok(_) => {}
            Err(CallError::Refused { error, .. }) => return Err(schema.refused(&error).into()),
            Err(error) => return Err(error.into()),
        }
        if let Some(allowed) = allowed {
            let call = async {
                match &session {
                    Some(session) => client.call_in::<SetPermissions>(session, &allowed).await,
                    None => client.call::<SetPermissions>(&allowed).await,
                }
            };
            self.unless_stopped(call).await??;
        }
        Ok(())
    }

    /// Gives up a dialog that nobody at a terminal can answer: an agentd of our own has no other clients, and would wait.
    async fn close_dialog(&mut self, client: &Client, id: String) -> Result<(), ConversationEnd> {
        let response = UiResponse { id, cancelled: Some(true.into()), ..UiResponse::default() };
        self.unless_stopped(client.answer_question(&response)).await?.map_err(Into::into)
    }

    /// Takes a call of the tool for answers.
    async fn take_answer(
        &mut self,
        line: &EventLine,
        client: &Client,
        schema: Option<&OutputSchema>,
    ) -> Result<(), ConversationEnd> {
        let (Some(schema), Some(Event::ToolRequest(request))) = (schema, line.event()) else { return Ok(()) };
        self.totals.give(schema.answer(&request));
        let session = Some(request.session_id.as_str()).filter(|session| !session.is_empty());
        Ok(client.tell::<ToolResponse>(session, &output_schema::taken(&request)).await?)
    }

    /// Shows an event; gives its meaning for the prompt.
    async fn on_event(
        &mut self,
        line: EventLine,
        client: &Client,
        followed: Option<&mut FollowedSession>,
        view: &mut PromptView,
    ) -> Result<Option<PromptInput>, ConversationEnd> {
        // An agentd of our own has one session, whose events have no name.
        let Some(followed) = followed else { return Ok(view.event(line, &mut self.totals)) };
        match followed.take(line) {
            FollowedLine::Event(line) => Ok(view.event(line, &mut self.totals)),
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
        let input = ended.is_some().then_some(PromptInput::Settled);
        self.totals.missed(events, ended.map(|last| last.map(|answer| *answer)));
        Ok(input)
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

#[cfg(test)]
mod tests {
    use super::*;

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
