//! `agentctl attach`: follows a session of the daemon, and sends what is typed.

mod history;

use std::{
    collections::VecDeque,
    io::{self, IsTerminal},
    time::Instant,
};

use agentd_protocol::{
    command::{NoParams, PromptParams, StreamingBehavior},
    daemon::{AttachSessionParams, AttachedSession, Role, SessionInfo},
    event::Event,
    message::{ContentBlock, Message},
};
use tokio::{sync::mpsc, time::sleep_until};

use super::{
    chat, daemon_call,
    dialogs::{PendingDialogs, TypedOutcome},
    last_session,
    typed_lines::{TypedLine, typed_lines},
};
use crate::{
    cli::AttachOptions,
    exit::{Exit, Fault, conclude, print_stderr},
    output::{Output, OutputChunk},
    render::{StreamStyle, TextRenderer, counted, one_line},
    rpc::{AttachSession, Client, GetMessages, GetState, Prompt},
    shared_daemon::DaemonConnection,
};

/// Follows a session until its end, the end of stdin, or Ctrl-C. None of these stops the session.
pub(crate) fn run(options: &AttachOptions) -> Exit {
    let is_whole_screen = !options.plain && !options.observe && chat::is_at_terminal() && !chat::is_dumb();
    if is_whole_screen {
        return conclude(
            daemon_call::block_on(find(options)).and_then(|session| chat::attach(session.id, session.cwd)),
        );
    }
    conclude(daemon_call::block_on(attach(options)))
}

/// The session that is meant.
async fn find(options: &AttachOptions) -> Result<SessionInfo, Fault> {
    let connection = daemon_call::require(Role::Control).await?;
    last_session::given_or_last_on(&connection.client, options.id.as_deref()).await
}

async fn attach(options: &AttachOptions) -> Result<Exit, Fault> {
    let role = if options.observe { Role::Observe } else { Role::Control };
    let mut connection = daemon_call::require_answering(role).await?;
    let client = &connection.client;
    let session = last_session::given_or_last_on(client, options.id.as_deref()).await?;
    let params = AttachSessionParams { session_id: session.id.clone(), since: None };
    let attached = client.call::<AttachSession>(&params).await?;
    let style = StreamStyle { show_thinking: options.show_thinking, ..StreamStyle::detect() };
    let mut before = if options.no_history { Vec::new() } else { history(client, &attached, style).await? };
    let mut renderer = TextRenderer::new(style);
    before.extend(renderer.piece(&so_far(&attached)));
    let output = Output::start()
        .map_err(|error| Fault::new(Exit::Failed, format!("agentctl: cannot start: {error}")))?;
    let chunks = output.sender();
    if io::stderr().is_terminal() {
        print_stderr(&about(&attached, options.observe));
    }
    for chunk in before {
        // The writer ends early only when stdout is closed.
        if chunks.send(chunk).await.is_err() {
            return Ok(Exit::OutputClosed);
        }
    }
    let mut questions = PendingDialogs::of(&session.id, style.colour);
    for request in attached.pending_ui.into_iter().filter(|_| !options.observe) {
        let shown = questions.take(request);
        if chunks.send(OutputChunk::Err(shown.into_bytes())).await.is_err() {
            return Ok(Exit::OutputClosed);
        }
    }
    let typing = if options.observe { TypedMessages::none() } else { TypedMessages::start(session.id) };
    let exit = follow(&mut connection, &mut renderer, &chunks, (typing, questions)).await?;
    drop(chunks);
    match output.finish().await {
        Ok(()) => Ok(exit),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::OutputClosed),
        Err(error) => Err(Fault::new(Exit::Failed, format!("agentctl: cannot write to stdout: {error}"))),
    }
}

/// The last exchange. Messages that came after we attached are left out: they come again as events.
async fn history(
    client: &Client,
    attached: &AttachedSession,
    style: StreamStyle,
) -> Result<Vec<OutputChunk>, Fault> {
    let all = client.call_in::<GetMessages>(&attached.state.session_id, &NoParams {}).await;
    let all = all?.messages;
    let known = usize::try_from(attached.state.message_count).unwrap_or(usize::MAX).min(all.len());
    Ok(history::last_exchange(&all[..known], style))
}

fn about(attached: &AttachedSession, observe: bool) -> String {
    let state = &attached.state;
    let mut what = if state.is_streaming { "at work" } else { "idle" }.to_owned();
    if state.pending_message_count > 0 {
        let count = usize::try_from(state.pending_message_count).unwrap_or(usize::MAX);
        what.push_str(&format!(" with {} waiting", counted(count, "message")));
    }
    let how = if observe { "Ctrl-C leaves it" } else { "type to talk to it; Ctrl-D leaves it" };
    let name = state.session_name.as_ref().map(|name| format!(" \"{name}\"")).unwrap_or_default();
    let model = format!("{}/{}", state.model.provider, state.model.id);
    one_line(&format!("Session {}{name} ({model}), {what}; {how}.", state.session_id))
}

/// The text of the answer that is being written, up to now.
fn so_far(attached: &AttachedSession) -> String {
    let in_flight = attached.in_flight.as_ref().and_then(|in_flight| in_flight.message.as_ref());
    let Some(Message::Assistant(answer)) = in_flight.and_then(|message| message.get()) else {
        return String::new();
    };
    answer.content.iter().filter_map(ContentBlock::as_text).collect()
}

async fn follow(
    connection: &mut DaemonConnection,
    renderer: &mut TextRenderer,
    chunks: &mpsc::Sender<OutputChunk>,
    (mut typing, mut questions): (TypedMessages, PendingDialogs),
) -> Result<Exit, Fault> {
    loop {
        let draw_at = renderer.draw_at();
        tokio::select! {
            () = sleep_until(draw_at.unwrap_or_else(Instant::now).into()), if draw_at.is_some() => {
                if let Some(chunk) = renderer.draw()
                    && chunks.send(chunk).await.is_err()
                {
                    return Ok(Exit::OutputClosed);
                }
            }
            event = connection.incoming.events.recv() => {
                let Some(line) = event else {
                    return Err(Fault::new(Exit::NoDaemon, "agentctl: agentd closed the connection."));
                };
                let Some(event) = line.event() else { continue };
                let mut shown = renderer.event(&event);
                match &event {
                    Event::SessionClosed(_) => {
                        print_stderr("The session was closed. Its file is there: `agentctl prompt --session ID` goes on with it.");
                        return Ok(Exit::Answered);
                    }
                    Event::Lagged(_) => {
                        let text = "agentctl: stdout was read too slowly, and events were lost; attach again.";
                        return Err(Fault::new(Exit::Failed, text));
                    }
                    // An observer is not asked.
                    Event::ExtensionUiRequest(request) if typing.is_there() => {
                        shown.push(OutputChunk::Err(questions.take(request.clone()).into_bytes()));
                    }
                    Event::UiRequestResolved(resolved) => {
                        shown.push(OutputChunk::Err(questions.resolved(resolved).into_bytes()));
                    }
                    Event::MessageEnd(end) => {
                        // Shows messages of other clients; our own are on the screen already.
                        if let Some(Message::User(user)) = end.message.get()
                            && !typing.is_ours(&user.content.text())
                        {
                            shown.extend(renderer.prompt(&user.content.text()));
                        }
                    }
                    _ => {}
                }
                for chunk in shown {
                    if chunks.send(chunk).await.is_err() {
                        return Ok(Exit::OutputClosed);
                    }
                }
            }
            line = typing.next() => match line {
                Some(line) if questions.is_asking() => {
                    let shown = match questions.typed(&line) {
                        TypedOutcome::Answer(answer, next) => {
                            answer.send(&connection.client).await?;
                            next
                        }
                        TypedOutcome::More => String::new(),
                        TypedOutcome::Unclear(how) => how,
                    };
                    if chunks.send(OutputChunk::Err(shown.into_bytes())).await.is_err() {
                        return Ok(Exit::OutputClosed);
                    }
                }
                Some(line) if line.text.trim().is_empty() => {}
                Some(line) => {
                    if chunks.send(OutputChunk::Typed(line.text.clone())).await.is_err() {
                        return Ok(Exit::OutputClosed);
                    }
                    typing.say(&connection.client, line.text).await?;
                }
                // Ctrl-D.
                None => return Ok(Exit::Answered),
            },
        }
    }
}

/// How many own messages are remembered until their events come.
const REMEMBERED: usize = 64;

/// The lines of stdin, and which of the session's messages were typed here.
struct TypedMessages {
    session: String,
    /// `None` when stdin is not read.
    lines: Option<mpsc::Receiver<TypedLine>>,
    sent: VecDeque<String>,
}

impl TypedMessages {
    fn none() -> Self {
        Self { session: String::new(), lines: None, sent: VecDeque::new() }
    }

    /// Reads stdin line by line, until its end.
    fn start(session: String) -> Self {
        Self { session, lines: Some(typed_lines()), sent: VecDeque::new() }
    }

    fn is_there(&self) -> bool {
        self.lines.is_some()
    }

    /// The next line; `None` at the end. Pending forever when stdin is not read.
    ///
    /// *Cancel safety*: no line is lost.
    async fn next(&mut self) -> Option<TypedLine> {
        match &mut self.lines {
            Some(lines) => lines.recv().await,
            None => std::future::pending().await,
        }
    }

    /// Sends a line: as a prompt, or as steering while a run goes on. Prints a refusal.
    ///
    /// # Errors
    /// When the connection ends.
    async fn say(&mut self, client: &Client, message: String) -> Result<(), Fault> {
        let state = client.call_in::<GetState>(&self.session, &NoParams {}).await?;
        let streaming_behavior = state.is_streaming.then_some(StreamingBehavior::Steer);
        if self.sent.len() == REMEMBERED {
            self.sent.pop_front();
        }
        self.sent.push_back(message.clone());
        let params = PromptParams { message, streaming_behavior, ..PromptParams::default() };
        if let Err(error) = client.call_in::<Prompt>(&self.session, &params).await {
            self.sent.pop_back();
            print_stderr(&Fault::from(&error).message);
        }
        Ok(())
    }

    /// Whether a message of the session was typed here. Each counts once.
    fn is_ours(&mut self, message: &str) -> bool {
        let place = self.sent.iter().position(|sent| sent == message);
        place.is_some_and(|place| self.sent.remove(place).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_messages_count_once() {
        let mut typing = TypedMessages::none();
        typing.sent.extend(["a".to_owned(), "b".to_owned()]);
        assert!(!typing.is_ours("c"));
        assert!(typing.is_ours("b") && !typing.is_ours("b") && typing.is_ours("a"));
    }
}
