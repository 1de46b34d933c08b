//! `agentctl attach`: a live view of a session of the daemon, which can also type.

mod history;
mod typing;

use std::io::{self, IsTerminal};

use agentd_protocol::{
    command::NoParams,
    daemon::{AttachSessionParams, AttachedSession, Role},
    event::Event,
    message::{ContentBlock, Message},
};
use tokio::sync::mpsc;

use self::typing::Typing;
pub(super) use self::typing::typed_lines;
use super::{
    daemon, live, one_call,
    questions::{Questions, Typed},
    which::{self, Among},
};
use crate::{
    cli::AttachOptions,
    connect::socket::Connection,
    exit::{Exit, Fault, tell},
    output::{Chunk, Output},
    render::{Style, TextRenderer, counted, one_line},
    rpc::{AttachSession, Client, GetMessages},
};

/// Follows a session until its end, the end of what is typed, or Ctrl-C. None of these stops the session.
pub(crate) fn run(options: &AttachOptions) -> Exit {
    one_call::conclude(daemon::block_on(attach(options)))
}

async fn attach(options: &AttachOptions) -> Result<Exit, Fault> {
    let role = if options.observe { Role::Observe } else { Role::Control };
    let mut connection = live::require_answering(role).await?;
    let client = &connection.client;
    let session = which::session(client, &options.id, Among::All).await?;
    let params = AttachSessionParams { session_id: session.id.clone(), since: None };
    let attached = client.call::<AttachSession>(&params).await.map_err(|error| one_call::fault(&error))?;
    let style = Style::detect();
    let mut before = if options.no_history { Vec::new() } else { history(client, &attached, style).await? };
    let mut renderer = TextRenderer::new(style);
    before.extend(renderer.piece(&so_far(&attached)));
    let output = Output::start()
        .map_err(|error| Fault::new(Exit::Failed, format!("agentctl: cannot start: {error}")))?;
    let chunks = output.sender();
    if io::stderr().is_terminal() {
        tell(&about(&attached, options.observe));
    }
    for chunk in before {
        // The writer ends early only when stdout is closed.
        if chunks.send(chunk).await.is_err() {
            return Ok(Exit::OutputClosed);
        }
    }
    let mut questions = Questions::of(&session.id);
    for request in attached.pending_ui.into_iter().filter(|_| !options.observe) {
        let shown = questions.take(request);
        if chunks.send(Chunk::Err(shown.into_bytes())).await.is_err() {
            return Ok(Exit::OutputClosed);
        }
    }
    let typing = if options.observe { Typing::none() } else { Typing::start(session.id) };
    let exit = follow(&mut connection, &mut renderer, &chunks, (typing, questions)).await?;
    drop(chunks);
    match output.finish().await {
        Ok(()) => Ok(exit),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::OutputClosed),
        Err(error) => Err(Fault::new(Exit::Failed, format!("agentctl: cannot write to stdout: {error}"))),
    }
}

/// The last exchange. What is said between the attachment and this answer comes again as events, so it is left out here.
async fn history(client: &Client, attached: &AttachedSession, style: Style) -> Result<Vec<Chunk>, Fault> {
    let all = client.call_in::<GetMessages>(&attached.state.session_id, &NoParams {}).await;
    let all = all.map_err(|error| one_call::fault(&error))?.messages;
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

/// The part of an answer that came before us.
fn so_far(attached: &AttachedSession) -> String {
    let in_flight = attached.in_flight.as_ref().and_then(|in_flight| in_flight.message.as_ref());
    let Some(Message::Assistant(answer)) = in_flight.and_then(|message| message.get()) else {
        return String::new();
    };
    answer.content.iter().filter_map(ContentBlock::as_text).collect()
}

async fn follow(
    connection: &mut Connection,
    renderer: &mut TextRenderer,
    chunks: &mpsc::Sender<Chunk>,
    (mut typing, mut questions): (Typing, Questions),
) -> Result<Exit, Fault> {
    loop {
        tokio::select! {
            event = connection.incoming.events.recv() => {
                let Some(line) = event else {
                    return Err(Fault::new(Exit::NoDaemon, "agentctl: agentd closed the connection."));
                };
                let Some(event) = line.event() else { continue };
                let mut shown = renderer.event(&event);
                match &event {
                    Event::SessionClosed(_) => {
                        tell("The session was closed. Its file is there: `agentctl prompt --session ID` goes on with it.");
                        return Ok(Exit::Answered);
                    }
                    Event::Lagged(_) => {
                        let text = "agentctl: what was to be shown came faster than it was read; attach again.";
                        return Err(Fault::new(Exit::Failed, text));
                    }
                    // Who only looks is not asked.
                    Event::ExtensionUiRequest(request) if typing.is_there() => {
                        shown.push(Chunk::Err(questions.take(request.clone()).into_bytes()));
                    }
                    Event::UiRequestResolved(resolved) => {
                        shown.push(Chunk::Err(questions.resolved(resolved).into_bytes()));
                    }
                    Event::MessageEnd(end) => {
                        // What others say to the session; our own words stand there already.
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
                        Typed::Answer(answer, next) => {
                            let sent = connection.client.answer_question(&answer).await;
                            sent.map_err(|error| one_call::fault(&error))?;
                            next
                        }
                        Typed::More => String::new(),
                        Typed::Unclear(how) => how,
                    };
                    if chunks.send(Chunk::Err(shown.into_bytes())).await.is_err() {
                        return Ok(Exit::OutputClosed);
                    }
                }
                Some(line) if line.trim().is_empty() => {}
                Some(line) => typing.say(&connection.client, line).await?,
                // Ctrl-D.
                None => return Ok(Exit::Answered),
            },
        }
    }
}
