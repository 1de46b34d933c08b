//! `agentctl prompt`: sends one message to a session of the daemon, or of an agentd of our own.

mod conversation;
mod ending;
mod link;
mod model_choice;
mod output_schema;
mod refused_key;
mod request;
mod run_status;
mod state;
mod totals;
mod view;

use std::time::Duration;

use agentd_protocol::{
    command::{NoParams, PromptParams},
    exit_code::PromptExit,
    prompt_records::{PromptRecord, PromptSession},
};

use self::{
    conversation::{Conversation, ConversationEnd},
    link::SessionLink,
    model_choice::choose_model,
    request::{PromptRequest, StdoutContent},
    totals::PromptTotals,
};
use crate::{
    cli::PromptOptions,
    exit::{Exit, Fault, Signals, conclude},
    output::{Output, OutputChunk},
    render::{one_line, short_id},
    rpc::{CallError, GetState},
};

/// What is said where nobody can be asked whether the project is trusted.
const UNTRUSTED: &str = "agentctl: the project is not trusted: its own settings, prompts and skills, its hooks, extensions and servers are not \
                         used (--approve trusts it for this session).\n";

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
    let totals = PromptTotals::begin(request.schema.is_some());
    let opened = tokio::select! {
        biased;
        exit = signals.next() => return Ok(exit),
        opened = SessionLink::open(&request, &chunks) => opened,
    };
    let mut conversation = Conversation { signals, output, chunks, totals };
    let end = match opened {
        Ok(link) => work(&mut conversation, link, &request).await,
        Err(fault) => Ok(fault.into()),
    };
    match end {
        Ok(end) => ending::finish(conversation, &request, end).await,
        // The user or the reader of stdout is gone: nothing more is written.
        Err(abandoned) => Ok(abandoned),
    }
}

/// Holds the conversation to its end, and leaves the agentd. An error is the exit of an abandoned prompt.
async fn work(
    conversation: &mut Conversation,
    mut link: SessionLink,
    request: &PromptRequest,
) -> Result<PromptExit, Exit> {
    let mut end = hold(conversation, &mut link, request).await;
    if let ConversationEnd::Finished(finished) = &mut end {
        let (client, _, followed) = link.parts();
        match refused_key::hint(conversation, client, request, followed.is_none()).await {
            Ok(Some(hint)) => {
                finished.message = finished.message.take().map(|message| format!("{message}\n{hint}"));
            }
            Ok(None) => {}
            Err(other) => end = other,
        }
    }
    match end {
        ConversationEnd::Finished(end) => {
            close(link, CLOSE_GRACE, &mut conversation.signals).await;
            Ok(end)
        }
        ConversationEnd::Abandoned(exit) => {
            link.abandon(HURRIED_GRACE).await;
            Err(exit)
        }
        ConversationEnd::NotStarted => Ok(link.not_started(HURRIED_GRACE).await.into()),
        ConversationEnd::DaemonDied => {
            let fault = Fault::new(Exit::NoDaemon, link.died(HURRIED_GRACE).await);
            Ok(fault.into())
        }
    }
}

/// Holds the conversation to its end.
async fn hold(
    conversation: &mut Conversation,
    link: &mut SessionLink,
    request: &PromptRequest,
) -> ConversationEnd {
    match prepare(conversation, link, request).await {
        Ok(()) => converse_until_answered(conversation, link, request).await,
        Err(end) => end,
    }
}

/// What comes before the prompt: the greeting, the choice of the model, the tool for an answer of a schema.
async fn prepare(
    conversation: &mut Conversation,
    link: &mut SessionLink,
    request: &PromptRequest,
) -> Result<(), ConversationEnd> {
    let (client, _, followed) = link.parts();
    if followed.is_none() {
        conversation.introduce(client, request.can_answer).await?;
    }
    let state = match conversation.unless_stopped(client.call::<GetState>(&NoParams {})).await? {
        Err(CallError::Ended { .. }) => return Err(ConversationEnd::NotStarted),
        state => state?,
    };
    if let Some(terminal) = &request.terminal
        && !request.ephemeral
    {
        terminal.remember(&request.folder, &state.session_id);
    }
    if state.project_untrusted == Some(true) && !request.can_answer && !request.trust_given {
        conversation.print(OutputChunk::Err(UNTRUSTED.as_bytes().to_vec())).await?;
    }
    let model = choose_model(conversation, client, request, &state.model).await?;
    if let Some(schema) = &request.schema {
        let session = followed.map(|followed| followed.id().to_owned());
        conversation.offer_tool(client, schema, session, state.permissions.as_ref()).await?;
    }
    let session = PromptSession {
        id: state.session_id,
        file: state.session_file,
        cwd: state.cwd.unwrap_or_else(|| request.folder.display().to_string()),
        model,
        thinking_level: state.thinking_level,
    };
    if request.stdout == StdoutContent::Records {
        let record = PromptRecord::Session(session.clone());
        conversation.print(ending::line(&record)?).await?;
    }
    if request.style.live {
        let line = request.style.dim(&beginning(&session));
        conversation.print(OutputChunk::Err(format!("{line}\n").into_bytes())).await?;
    }
    conversation.totals.work_in(session);
    Ok(())
}

/// The line at the start: the model, the session, the folder.
fn beginning(session: &PromptSession) -> String {
    let model = session.model.as_ref().map(|model| format!("{} · ", one_line(&model.id))).unwrap_or_default();
    format!("{model}session {} · {}", short_id(&session.id), one_line(&session.cwd))
}

/// Sends the prompt, and asks again where the answer was to fit a schema and none came.
async fn converse_until_answered(
    conversation: &mut Conversation,
    link: &mut SessionLink,
    request: &PromptRequest,
) -> ConversationEnd {
    let mut prompt = request.prompt.clone();
    let mut attempts = 0;
    loop {
        let end = conversation.run_prompt(link, request, &prompt).await;
        let Some(schema) = &request.schema else { return end };
        let missing = conversation.totals.output().is_none();
        if !missing || !matches!(end, ConversationEnd::Finished(PromptExit { exit: Exit::Answered, .. })) {
            return end;
        }
        if attempts == output_schema::MORE_ATTEMPTS {
            return ConversationEnd::Finished(schema.not_met(attempts + 1));
        }
        attempts += 1;
        prompt = PromptParams {
            message: output_schema::ASK_AGAIN.to_owned(),
            budget: prompt.budget.map(|budget| conversation.totals.left_of(&budget)),
            traceparent: prompt.traceparent,
            ..PromptParams::default()
        };
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
