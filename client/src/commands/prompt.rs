//! `agentctl prompt`: sends one message to a session of the daemon, or of an agentd of our own.

mod conversation;
mod last_session;
mod link;
mod model_choice;
mod request;
mod state;
mod view;

use std::time::Duration;

use agentd_protocol::exit_code::PromptExit;
use tokio::sync::mpsc;

use self::{
    conversation::{Conversation, ConversationEnd, output_failed},
    link::SessionLink,
    model_choice::choose_model,
    request::PromptRequest,
};
use crate::{
    cli::PromptOptions,
    exit::{Exit, Fault, Signals, conclude},
    output::{Output, OutputChunk},
};

/// How long an agentd may take to store its work after its input ended.
const CLOSE_GRACE: Duration = Duration::from_secs(5);

/// How long it may take when the user leaves at once.
const HURRIED_GRACE: Duration = Duration::from_millis(300);

/// Sends the prompt and shows the run.
pub(crate) fn run(options: PromptOptions) -> Exit {
    conclude(PromptRequest::read(options).and_then(serve))
}

fn serve(request: PromptRequest) -> Result<Exit, Fault> {
    let broken = |error: std::io::Error| Fault::new(Exit::Failed, format!("agentctl: cannot start: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(broken)?;
    let exit = runtime.block_on(async {
        let signals = Signals::listen().map_err(broken)?;
        let output = Output::start().map_err(broken)?;
        converse(request, signals, output).await
    });
    // The writing thread may hang on a stdout that nobody reads.
    runtime.shutdown_background();
    exit
}

async fn converse(request: PromptRequest, mut signals: Signals, output: Output) -> Result<Exit, Fault> {
    let chunks = output.sender();
    let mut link = tokio::select! {
        biased;
        exit = signals.next() => return Ok(exit),
        link = SessionLink::open(&request, &chunks) => link?,
    };
    let mut conversation = Conversation { signals, output, chunks };
    let end = hold(&mut conversation, &mut link, &request).await;
    let Conversation { mut signals, output, chunks } = conversation;
    let (exit, last_words) = match end {
        ConversationEnd::Finished(PromptExit { exit, message }) => {
            close(link, CLOSE_GRACE, &mut signals).await;
            (exit, message)
        }
        ConversationEnd::Abandoned(exit) => {
            link.abandon(HURRIED_GRACE).await;
            // The user or the reader of stdout is gone: nothing more is written.
            return Ok(exit);
        }
        ConversationEnd::NotStarted => {
            let fault = link.not_started(HURRIED_GRACE).await;
            (fault.exit, Some(fault.message))
        }
        ConversationEnd::DaemonDied => (Exit::NoDaemon, Some(link.died(HURRIED_GRACE).await)),
    };
    finish(output, chunks, last_words, &mut signals).await.map(|stopped| stopped.unwrap_or(exit))
}

/// Holds the conversation to its end.
async fn hold(
    conversation: &mut Conversation,
    link: &mut SessionLink,
    request: &PromptRequest,
) -> ConversationEnd {
    let (client, _, followed) = link.parts();
    let prepared = async {
        if followed.is_none() {
            conversation.introduce(client, request.can_answer).await?;
        }
        choose_model(conversation, client, request).await
    };
    match prepared.await {
        Ok(()) => conversation.run_prompt(link, request).await,
        Err(end) => end,
    }
}

/// Lets an agentd of our own end. A signal hurries it.
async fn close(link: SessionLink, grace: Duration, signals: &mut Signals) {
    let closing = link.close(grace);
    tokio::select! {
        () = closing => {}
        // Dropping an agentd of our own kills it.
        _ = signals.next() => {}
    }
}

/// Writes the rest; `Some` when a signal or a closed stdout came first.
async fn finish(
    output: Output,
    chunks: mpsc::Sender<OutputChunk>,
    message: Option<String>,
    signals: &mut Signals,
) -> Result<Option<Exit>, Fault> {
    let writing = async {
        if let Some(message) = message {
            // Fails when the writer is gone, which `finish` reports.
            let _ = chunks.send(OutputChunk::Err(format!("{message}\n").into_bytes())).await;
        }
        drop(chunks);
        output.finish().await
    };
    tokio::select! {
        written = writing => match written {
            Ok(()) => Ok(None),
            Err(error) => output_failed(&error).map(Some),
        },
        exit = signals.next() => Ok(Some(exit)),
    }
}
