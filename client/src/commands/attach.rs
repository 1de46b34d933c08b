//! `agentctl attach`: a live view of a session of the daemon, which can also type.

use std::io::{self, BufRead, IsTerminal};

use agentd_protocol::{
    command::{NoParams, PromptParams, StreamingBehavior},
    daemon::{
        AttachSessionParams, AttachedSession, ClientCapabilities, ClientInfo, HelloParams,
        ListSessionsParams, PROTOCOL, Role,
    },
    event::Event,
    message::{ContentBlock, Message},
};
use tokio::sync::mpsc;

use super::{daemon, one_call};
use crate::{
    cli::AttachOptions,
    connect::socket::{Connection, Endpoint},
    exit::{Exit, Fault, tell},
    output::{Chunk, Output},
    render::{Style, TextRenderer},
    rpc::{AttachSession, Client, GetState, Hello, ListSessions, Prompt},
};

/// Lines that wait to be sent.
const TYPED: usize = 16;

/// Follows a session until its end, the end of what is typed, or Ctrl-C. None of these stops the session.
pub(crate) fn run(options: &AttachOptions) -> Exit {
    one_call::conclude(daemon::block_on(attach(options)))
}

async fn attach(options: &AttachOptions) -> Result<Exit, Fault> {
    let Some(mut connection) = Endpoint::find()?.connect().await? else {
        let text = "agentctl: agentd is not running, so there is no live session. `agentctl up` starts it.";
        return Err(Fault::new(Exit::Failed, text));
    };
    let refused = |error| one_call::fault(&error);
    let hello = HelloParams {
        protocol: PROTOCOL,
        client: Some(ClientInfo { name: "agentctl".into(), version: Some(env!("CARGO_PKG_VERSION").into()) }),
        capabilities: ClientCapabilities { sessions: true, ui: false },
        role: if options.observe { Role::Observe } else { Role::Control },
    };
    connection.client.call::<Hello>(&hello).await.map_err(refused)?;
    let id = find(&connection.client, &options.id).await?;
    let params = AttachSessionParams { session_id: id.clone(), since: None };
    let attached = connection.client.call::<AttachSession>(&params).await.map_err(refused)?;
    let output = Output::start()
        .map_err(|error| Fault::new(Exit::Failed, format!("agentctl: cannot start: {error}")))?;
    let chunks = output.sender();
    let mut renderer = TextRenderer::new(Style::detect());
    if io::stderr().is_terminal() {
        tell(&about(&attached, options.observe));
    }
    for chunk in so_far(&attached) {
        // The writer ends early only when stdout is closed.
        if chunks.send(chunk).await.is_err() {
            return Ok(Exit::OutputClosed);
        }
    }
    let exit = follow(&mut connection, &mut renderer, &chunks, (!options.observe).then(type_lines)).await?;
    drop(chunks);
    match output.finish().await {
        Ok(()) => Ok(exit),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::OutputClosed),
        Err(error) => Err(Fault::new(Exit::Failed, format!("agentctl: cannot write to stdout: {error}"))),
    }
}

/// The whole id that this is, or the beginning of.
async fn find(client: &Client, id: &str) -> Result<String, Fault> {
    let params = ListSessionsParams { live: Some(true), limit: Some(1000), ..ListSessionsParams::default() };
    let live = client.call::<ListSessions>(&params).await.map_err(|error| one_call::fault(&error))?.sessions;
    let mut fits = live.iter().filter(|session| session.id.starts_with(id));
    match (fits.next(), fits.next()) {
        (Some(one), None) => Ok(one.id.clone()),
        (Some(_), Some(_)) => {
            Err(Fault::new(Exit::Failed, format!("Error: several live sessions begin with \"{id}\".")))
        }
        (None, _) => Err(Fault::new(
            Exit::Failed,
            format!("Error: no live session begins with \"{id}\". `agentctl sessions --live` lists them."),
        )),
    }
}

fn about(attached: &AttachedSession, observe: bool) -> String {
    let state = &attached.state;
    let what = if state.is_streaming { "at work" } else { "idle" };
    let how = if observe { "Ctrl-C leaves it" } else { "type to talk to it; Ctrl-D leaves it" };
    format!("Session {} ({}/{}), {what}; {how}.", state.session_id, state.model.provider, state.model.id)
}

/// The part of an answer that came before us.
fn so_far(attached: &AttachedSession) -> Vec<Chunk> {
    let in_flight = attached.in_flight.as_ref().and_then(|in_flight| in_flight.message.as_ref());
    let Some(Message::Assistant(answer)) = in_flight.and_then(|message| message.get()) else {
        return Vec::new();
    };
    let text: String = answer.content.iter().filter_map(ContentBlock::as_text).collect();
    if text.is_empty() { Vec::new() } else { vec![Chunk::Out(text.into_bytes())] }
}

/// What is typed, line by line, until its end. The thread that reads may wait there for ever.
fn type_lines() -> mpsc::Receiver<String> {
    let (lines, receiver) = mpsc::channel(TYPED);
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if lines.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

async fn follow(
    connection: &mut Connection,
    renderer: &mut TextRenderer,
    chunks: &mpsc::Sender<Chunk>,
    mut typed: Option<mpsc::Receiver<String>>,
) -> Result<Exit, Fault> {
    loop {
        tokio::select! {
            event = connection.incoming.events.recv() => {
                let Some(line) = event else {
                    return Err(Fault::new(Exit::NoDaemon, "agentctl: agentd closed the connection."));
                };
                match line.event() {
                    Some(Event::SessionClosed(_)) => {
                        tell("The session was closed. Its file is there: `agentctl prompt --session ID` goes on with it.");
                        return Ok(Exit::Answered);
                    }
                    Some(Event::Lagged(_)) => {
                        let text = "agentctl: what was to be shown came faster than it was read; attach again.";
                        return Err(Fault::new(Exit::Failed, text));
                    }
                    Some(event) => {
                        for chunk in renderer.event(&event) {
                            if chunks.send(chunk).await.is_err() {
                                return Ok(Exit::OutputClosed);
                            }
                        }
                    }
                    None => {}
                }
            }
            line = next(&mut typed), if typed.is_some() => match line {
                Some(line) if line.trim().is_empty() => {}
                Some(line) => say(&connection.client, line).await?,
                // Ctrl-D.
                None => return Ok(Exit::Answered),
            },
        }
    }
}

async fn next(typed: &mut Option<mpsc::Receiver<String>>) -> Option<String> {
    match typed {
        Some(typed) => typed.recv().await,
        None => std::future::pending().await,
    }
}

/// Sends a line: a prompt, or a word for the work that is under way.
async fn say(client: &Client, message: String) -> Result<(), Fault> {
    let fault = |error| one_call::fault(&error);
    let busy = client.call::<GetState>(&NoParams {}).await.map_err(fault)?.is_streaming;
    let streaming_behavior = busy.then_some(StreamingBehavior::Steer);
    let params = PromptParams { message, streaming_behavior, ..PromptParams::default() };
    if let Err(error) = client.call::<Prompt>(&params).await {
        tell(&one_call::fault(&error).message);
    }
    Ok(())
}
