//! `-p` and `--mode json`: a client in this process sends the prompts of the command line to a session, over the same connection
//! that hosts have, and shows the answers.

mod conversation;

use std::{path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use agentd_config::models::{DEMO_MODEL, DEMO_PROVIDER};
use agentd_input::{Attachments, InputError, read_files, read_stdin};
use agentd_protocol::{command::PromptParams, exit_code::PromptExit};
use agentd_session::{Attached, Limits, SessionHandle, SessionMode};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::conversation::{Conversation, plain};
use super::{
    retry_locked_open::retry_locked_open,
    runtime::{FAILED, Signals, Workers, check_file_limit, fail, not_opened, run, tell_of},
};
use crate::{
    cli::{OnEof, OneShotFormat, OneShotOptions},
    compose,
    connection::{self, Connection, ConnectionFlags, Origin},
    daemon_limits::DaemonLimits,
    hub::{DaemonContext, SessionRegistry, ShutdownSwitch, hosting_subagents},
    limits::{ONE_SHOT_SIGNAL_GRACE, TELEMETRY_FLUSH},
    logging::complain,
    telemetry::DaemonTelemetry,
    transport::{Output, in_process_pair},
};

/// The error for a session of the demo model: a script would take its text for an answer of a real model.
const DEMO_UNASKED: &str = "Error: the model of this session is the built-in demo model, which answers only when asked for. \
                            --demo goes on with it; --model chooses another.";

/// The variable that names the span that the prompts belong to, as the W3C header `traceparent` has it.
const TRACEPARENT: &str = "TRACEPARENT";

/// Sends the prompts one after the other to one session, and gives the exit code.
#[must_use]
pub fn one_shot(options: OneShotOptions) -> ExitCode {
    for warning in &options.warnings {
        complain(warning);
    }
    // Before the runtime starts: reading stdin may take any time.
    match read_prompts(&options) {
        Ok(prompts) => run(Workers::CallingThread, observe(options, prompts)),
        Err(message) => fail(&message, FAILED),
    }
}

/// Serves, with telemetry until the end where it is on.
async fn observe(options: OneShotOptions, prompts: Vec<PromptParams>) -> Result<ExitCode, String> {
    let session = &options.session;
    let telemetry = DaemonTelemetry::start(&session.environment, session.compat, &session.cwd);
    let ended = serve(options, prompts, &telemetry).await;
    telemetry.shut_down(TELEMETRY_FLUSH).await;
    ended
}

async fn serve(
    options: OneShotOptions,
    prompts: Vec<PromptParams>,
    telemetry: &DaemonTelemetry,
) -> Result<ExitCode, String> {
    let mut options = options;
    options.session.mode = match options.format {
        OneShotFormat::Json => SessionMode::Json,
        OneShotFormat::Text => SessionMode::Print,
    };
    check_file_limit()?;
    let mut signals =
        Signals::of_a_daemon().map_err(|error| format!("Error: cannot watch signals: {error}"))?;
    let daemon_limits = {
        let session = &options.session;
        DaemonLimits::load(&session.environment, session.compat, &session.cwd).private()
    };
    // No user can answer a dialog: it takes its default at once.
    let limits = Limits { ui_timeout: Duration::ZERO, ..daemon_limits.session };
    let services = {
        let session = &options.session;
        compose::services(
            &session.environment,
            session.compat,
            &session.cwd,
            daemon_limits.max_commands,
            &daemon_limits.memory(),
            telemetry.observers(),
            None,
        )?
    };
    let daemon = DaemonContext::new(hosting_subagents(SessionRegistry::new(
        limits,
        daemon_limits.resources,
        services,
    )));
    telemetry.watch(&daemon);
    let registry = &daemon.sessions;
    let opened = tokio::select! {
        opened = retry_locked_open(|| registry.open(options.session.clone())) => {
            opened.map_err(|error| not_opened(&error))?
        }
        code = signals.next() => return Ok(ExitCode::from(code)),
    };
    tell_of(&opened.diagnostics);
    let names_none = options.session.model.is_none() && options.session.models.is_none();
    if names_none
        && let Some(handle) = opened.session.loaded()
        && has_demo_model(&handle).await
    {
        registry.close_all().await;
        return Err(DEMO_UNASKED.to_owned());
    }
    let header = match (options.format, opened.session.loaded()) {
        (OneShotFormat::Json, Some(handle)) => handle.header().await,
        _ => None,
    };
    let stdout = Output::to_stdout().map_err(|error| format!("Error: cannot start a thread: {error}"))?;
    let (client, lines, output) = in_process_pair();
    let connection = Connection {
        daemon: Arc::clone(&daemon),
        origin: Origin::Host {
            session: Some(opened.session),
            on_eof: OnEof::Abort,
            flags: ConnectionFlags { cumulative: options.cumulative, ready: false },
            answers: false,
            hears_the_end: true,
        },
        options: options.session,
        shutdown: ShutdownSwitch::default(),
        shutdown_deadline: daemon_limits.shutdown_deadline,
        max_line_bytes: daemon_limits.max_line_bytes,
        limits: daemon_limits.client,
        reserved: None,
    };
    // From now on the connection alone keeps the session open.
    drop(opened.expected);
    let ending = CancellationToken::new();
    let serving =
        connection::serve(connection, daemon.connections.count_connection(), lines, output, ending.clone());
    let talking = Conversation::new(client, stdout, options.format).hold(header, prompts);
    let both = async { tokio::join!(serving, talking) };
    tokio::pin!(both);
    tokio::select! {
        (served, outcome) = &mut both => {
            if let Err(error) = served {
                // The client in this process left early, and reports the reason itself.
                tracing::debug!(%error, "the connection ended before it had given everything");
            }
            registry.close_all().await;
            Ok(conclude(outcome))
        }
        code = signals.next() => {
            ending.cancel();
            // Events until the end are still shown.
            let closing = async { tokio::join!(registry.close_all(), &mut both) };
            tokio::select! {
                _ = timeout(ONE_SHOT_SIGNAL_GRACE, closing) => {}
                // A second signal ends the process at once.
                _ = signals.next() => {}
            }
            Ok(ExitCode::from(code))
        }
    }
}

/// Whether a session's model is the built-in demo model, and not a model of the user's with that name.
async fn has_demo_model(session: &SessionHandle) -> bool {
    // A session that has ended reports that when it is prompted.
    session.attach(None).await.is_some_and(|Attached { state, .. }| {
        let model = &state.model;
        (model.provider.as_str(), model.id.as_str()) == (DEMO_PROVIDER, DEMO_MODEL)
            && model.base_url.is_empty()
    })
}

fn conclude(PromptExit { exit, message }: PromptExit) -> ExitCode {
    match message {
        // `complain` removes control characters; `plain` removes whole sequences.
        Some(message) => fail(&plain(&message), exit.code()),
        None => exit.into(),
    }
}

const NO_MESSAGE: &str = "\
Error: there is no message. Give one or more, name a file, or pipe something in:
  agentd -p \"What is in this folder?\"
  agentd -p @src/main.rs \"Explain this code.\"
  git diff | agentd -p \"Review this change.\"
For a program that sends prompts itself there is --mode rpc; `agentd serve` is the daemon.";

/// Reads the files and stdin. Blocks until stdin has ended, unless it is a terminal.
///
/// # Errors
/// A sentence: no message, or a file that cannot be sent.
fn read_prompts(options: &OneShotOptions) -> Result<Vec<PromptParams>, String> {
    let paths: Vec<&str> = options.files.iter().map(String::as_str).collect();
    let home = options.session.environment.non_empty("HOME").map(PathBuf::from);
    let files =
        read_files(&paths, &options.session.cwd, home.as_deref()).map_err(|error| describe(&error))?;
    let waiting = || {
        complain("agentd: reading the start of the prompt from stdin; if nothing is to come, add </dev/null")
    };
    let stdin = read_stdin(waiting).map_err(|error| describe(&error))?;
    let mut messages = options.messages.iter().map(String::as_str);
    let mut prompts = vec![assemble(&stdin, files, messages.next().unwrap_or_default())];
    prompts
        .extend(messages.map(|message| PromptParams { message: message.into(), ..PromptParams::default() }));
    let traceparent = options.session.environment.non_empty(TRACEPARENT);
    prompts.iter_mut().for_each(|prompt| prompt.traceparent = traceparent.map(str::to_owned));
    prompts.retain(|prompt| !prompt.message.trim().is_empty() || !prompt.images.is_empty());
    if prompts.is_empty() {
        return Err(NO_MESSAGE.into());
    }
    Ok(prompts)
}

/// One message of what is piped in, the files and the words, with nothing in between, as in pi.
fn assemble(stdin: &str, files: Attachments, words: &str) -> PromptParams {
    let message = [stdin, &files.text, words].concat();
    let adds = message.len() > words.len() && !words.trim().is_empty();
    let typed = adds.then(|| words.to_owned());
    PromptParams { message, typed, images: files.images, ..PromptParams::default() }
}

fn describe(error: &InputError) -> String {
    match error {
        InputError::NotFound(_) => {
            format!("Error: {error}\nText that begins with @ goes after `--`: agentd -p -- \"@...\"")
        }
        _ => format!("Error: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_joined_without_separator() {
        let files = Attachments { text: "<file>\n".into(), images: Vec::new() };
        assert_eq!(assemble("in", files, "words").message, "in<file>\nwords");
    }
}
