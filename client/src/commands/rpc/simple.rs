//! `agentctl rpc --simple`: a conversation of messages and interrupts, for scripts that want no ids and no responses.

mod input;

use std::{collections::VecDeque, io, time::Duration};

use agentd_protocol::{
    command::{NoParams, PromptParams},
    event::Event,
    prompt_result::PromptStatus,
};
use serde::Serialize;

use self::input::{Input, InputLines, ReadLine};
use super::super::headless_session::{HeadlessSession, Lost};
use crate::{
    cli::RpcOptions,
    exit::{Exit, Fault, Signals},
    output::{Output, OutputChunk},
    rpc::{Abort, CallError, Client, EventLine, IncomingEvents, Prompt},
};

/// How many messages wait for their turn. After that, stdin is not read.
const WAITING_MESSAGES: usize = 64;

/// How long an agentd of our own may take to store its work after its input ended.
const CLOSE_GRACE: Duration = Duration::from_secs(5);

/// How long it may take when a signal ends us.
const HURRIED_GRACE: Duration = Duration::from_millis(300);

/// The lines on stdout that are no events of the session.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Notice {
    /// What an `interrupt` was to stop has stopped.
    Interrupted,
    /// A line was of no use, or a message was refused.
    Error { error: String },
}

/// Holds the conversation to the end of stdin.
///
/// # Errors
/// When the session cannot be opened, or its daemon ends.
pub(super) fn run(options: &RpcOptions) -> Result<Exit, Fault> {
    let broken = |error: io::Error| Fault::new(Exit::Failed, format!("agentctl: cannot start: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(broken)?;
    let exit = runtime.block_on(async {
        let mut signals = Signals::listen().map_err(broken)?;
        let output = Output::start().map_err(broken)?;
        let chunks = output.sender();
        let args = options.args.iter().cloned();
        let opened = tokio::select! {
            biased;
            exit = signals.next() => return Ok(exit),
            opened = HeadlessSession::open(options.choice, None, args, &chunks) => opened,
        };
        let mut session = match opened {
            Ok(session) => session,
            Err(fault) => {
                drop(chunks);
                // What an agentd of our own said stands above the fault. A stdout that cannot be written has no reader.
                let _ = output.finish().await;
                return Err(fault);
            }
        };
        let (client, incoming) = session.parts();
        let mut conversation = Conversation::new(client, InputLines::start().map_err(broken)?, output);
        let end = conversation.hold(incoming, &mut signals).await;
        let output = conversation.output;
        let end = match end {
            Ok(exit) => {
                let is_hurried = exit != Exit::Answered && exit != Exit::Failed;
                session.leave(if is_hurried { HURRIED_GRACE } else { CLOSE_GRACE }).await;
                Ok(exit)
            }
            Err(Lost) => Err(session.lost(HURRIED_GRACE).await),
        };
        drop(chunks);
        match output.finish().await {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::OutputClosed),
            Err(error) => Err(Fault::new(Exit::Failed, format!("agentctl: cannot write to stdout: {error}"))),
            Ok(()) => end,
        }
    });
    // The threads of stdin and stdout may wait for others.
    runtime.shutdown_background();
    exit
}

/// The messages of stdin, one after the other, and what comes of them.
struct Conversation<'a> {
    client: &'a Client,
    input: InputLines,
    output: Output,
    waiting: VecDeque<PromptParams>,
    /// Whether a message is at work.
    is_at_work: bool,
    /// How many interrupts wait for the end of it.
    interrupts: usize,
    exit: Exit,
}

impl<'a> Conversation<'a> {
    fn new(client: &'a Client, input: InputLines, output: Output) -> Self {
        Self {
            client,
            input,
            output,
            waiting: VecDeque::new(),
            is_at_work: false,
            interrupts: 0,
            exit: Exit::Answered,
        }
    }

    async fn hold(&mut self, incoming: &mut IncomingEvents, signals: &mut Signals) -> Result<Exit, Lost> {
        let client = self.client;
        let call = async |message: Option<PromptParams>| match message {
            Some(message) => client.call::<Prompt>(&message).await,
            None => std::future::pending().await,
        };
        let accepted = call(None);
        tokio::pin!(accepted);
        loop {
            if !self.is_at_work {
                match self.waiting.pop_front() {
                    Some(message) => {
                        self.is_at_work = true;
                        accepted.set(call(Some(message)));
                    }
                    None if self.input.has_ended() => return Ok(self.exit),
                    None => {}
                }
            }
            tokio::select! {
                biased;
                exit = signals.next() => {
                    // Nobody waits for the rest. A daemon that is gone has stopped already.
                    let _ = client.tell::<Abort>(None, &NoParams {}).await;
                    return Ok(exit);
                }
                error = self.output.broken() => {
                    let _ = client.tell::<Abort>(None, &NoParams {}).await;
                    // The end of the output says why.
                    drop(error);
                    return Ok(Exit::OutputClosed);
                }
                event = incoming.events.recv() => self.on_event(event.ok_or(Lost)?).await?,
                answer = &mut accepted, if self.is_at_work => {
                    accepted.set(call(None));
                    match answer {
                        Ok(accepted) if accepted.agent_invoked == Some(false) => self.finished().await,
                        Ok(_) => {}
                        Err(CallError::Refused { error, .. }) => {
                            // One that was stopped before it began is told as interrupted.
                            if self.interrupts == 0 {
                                self.failed(error).await;
                            }
                            self.finished().await;
                        }
                        Err(_) => return Err(Lost),
                    }
                }
                // Polled after the call above, whose line is so before that of an abort.
                input = self.input.next(), if !self.input.has_ended() && self.waiting.len() < WAITING_MESSAGES => {
                    self.on_input(input).await?;
                }
            }
        }
    }

    async fn on_event(&mut self, line: EventLine) -> Result<(), Lost> {
        match line.kind.as_str() {
            "prompt_result" => {
                let Some(Event::PromptResult(result)) = line.event() else { return Err(Lost) };
                if result.status == PromptStatus::Error {
                    // The events have told it.
                    self.exit = Exit::Failed;
                }
                self.finished().await;
            }
            "session_settled" => {}
            _ => self.print(line.text).await,
        }
        Ok(())
    }

    async fn on_input(&mut self, input: Option<ReadLine>) -> Result<(), Lost> {
        match input {
            None => {}
            Some(Ok(Input::Message(message))) => self.waiting.push_back(*message),
            Some(Ok(Input::Interrupt)) => {
                self.waiting.clear();
                self.interrupts += 1;
                if self.is_at_work {
                    self.client.tell::<Abort>(None, &NoParams {}).await.map_err(|_| Lost)?;
                } else {
                    self.tell_interrupts().await;
                }
            }
            Some(Err(error)) => self.failed(error).await,
        }
        Ok(())
    }

    /// The message at work has its end.
    async fn finished(&mut self) {
        self.is_at_work = false;
        self.tell_interrupts().await;
    }

    async fn tell_interrupts(&mut self) {
        for _ in 0..std::mem::take(&mut self.interrupts) {
            self.notice(&Notice::Interrupted).await;
        }
    }

    async fn failed(&mut self, error: String) {
        self.exit = Exit::Failed;
        self.notice(&Notice::Error { error }).await;
    }

    async fn notice(&mut self, notice: &Notice) {
        // Texts alone: nothing in it can fail.
        self.print(serde_json::to_string(notice).unwrap_or_default()).await;
    }

    async fn print(&mut self, mut line: String) {
        line.push('\n');
        // The writer ends early only when stdout is closed, which ends the conversation.
        let _ = self.output.sender().send(OutputChunk::Out(line.into_bytes())).await;
    }
}
