//! Answering the prompts of the command line: a client of our own talks to a session over the same connection that hosts
//! have, and shows what comes.

mod conversation;
mod prompts;

use std::{io::IsTerminal, process::ExitCode, sync::Arc, time::Duration};

use agentd_config::models::{DEMO_MODEL, DEMO_PROVIDER};
use agentd_process::OutputCleaner;
use agentd_protocol::{exit_code::PromptExit, terminal_text::steers};
use agentd_session::{Attached, Limits, SessionHandle};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::conversation::Conversation;
use super::{FAILED, fail, limits::DaemonLimits, once_free::once_free, run, signals::Signals, tell_of};
use crate::{
    cli::{OnEof, OneShotFormat, OneShotOptions},
    complain, compose,
    connection::{self, Connection, Origin},
    hub::{DaemonContext, SessionRegistry, ShutdownSwitch},
    transport::{Output, in_process},
};

/// How long the session has to store the end of its run after a signal, and its background processes to end.
const SIGNAL_GRACE: Duration = Duration::from_secs(5);

/// For a session that was begun with the demo model: a script would take its words for an answer.
const DEMO_UNASKED: &str = "Error: the model of this session is the built-in demo model, which answers only when asked for. \
                            --demo goes on with it; --model chooses another.";

/// Answers the prompts one after the other in one session, and gives the exit code.
#[must_use]
pub fn one_shot(options: OneShotOptions) -> ExitCode {
    for warning in &options.warnings {
        complain(warning);
    }
    // Before there is a runtime: reading stdin may take as long as whoever writes there likes.
    match prompts::read(&options) {
        Ok(prompts) => run(serve(options, prompts)),
        Err(message) => fail(&message, FAILED),
    }
}

async fn serve(options: OneShotOptions, prompts: prompts::Prompts) -> Result<ExitCode, String> {
    super::check_file_limit()?;
    let mut signals =
        Signals::of_a_daemon().map_err(|error| format!("Error: cannot watch signals: {error}"))?;
    let daemon_limits = {
        let session = &options.session;
        DaemonLimits::load(&session.environment, session.compat, &session.cwd).private()
    };
    // Nobody is there who could answer a question: it takes its default at once.
    let limits = Limits { ui_timeout: Duration::ZERO, ..daemon_limits.session };
    let services = {
        let session = &options.session;
        compose::services(
            &session.environment,
            session.compat,
            &session.cwd,
            daemon_limits.max_commands,
            &daemon_limits.memory(),
        )?
    };
    let daemon = DaemonContext::new(SessionRegistry::new(limits, daemon_limits.resources, services));
    let registry = &daemon.sessions;
    let opened = tokio::select! {
        opened = once_free(|| registry.open(options.session.clone())) => {
            opened.map_err(|error| super::not_opened(&error))?
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
    let stdout =
        Output::start(std::io::stdout()).map_err(|error| format!("Error: cannot start a thread: {error}"))?;
    let (client, lines, output) = in_process::pair();
    let connection = Connection {
        daemon: Arc::clone(&daemon),
        origin: Origin::Host {
            session: opened.session,
            on_eof: OnEof::Abort,
            cumulative: options.cumulative,
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
    // Nobody else can end it; from now on it is this connection's alone.
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
                // Our own client left early, and says why itself.
                tracing::debug!(%error, "the connection ended before it had given everything");
            }
            registry.close_all().await;
            Ok(conclude(outcome))
        }
        code = signals.next() => {
            ending.cancel();
            // What was said until the end is still shown.
            let closing = async { tokio::join!(registry.close_all(), &mut both) };
            tokio::select! {
                _ = timeout(SIGNAL_GRACE, closing) => {}
                // A second signal means now.
                _ = signals.next() => {}
            }
            Ok(ExitCode::from(code))
        }
    }
}

/// Whether a session's model is the built-in demo model, and not one of a provider of the user's by that name.
async fn has_demo_model(session: &SessionHandle) -> bool {
    // A session that has ended already says so when it is prompted.
    session.attach(None).await.is_some_and(|Attached { state, .. }| {
        let model = &state.model;
        (model.provider.as_str(), model.id.as_str()) == (DEMO_PROVIDER, DEMO_MODEL)
            && model.base_url.is_empty()
    })
}

/// What a terminal is shown of a text that a model wrote: nothing that steers it. A file or a pipe gets it as it is.
fn shown_at(output: &impl IsTerminal, text: String) -> String {
    if output.is_terminal() { plain(&text) } else { text }
}

/// The text without escape sequences, and without what turns the direction of writing.
fn plain(text: &str) -> String {
    let mut text = OutputCleaner::new().clean(text);
    text.retain(|c| !steers(c));
    text
}

fn conclude(PromptExit { exit, message }: PromptExit) -> ExitCode {
    match message {
        // Stderr is clean in any case; here no more of a sequence is to be left than of the text.
        Some(message) => fail(&plain(&message), exit.code()),
        None => exit.into(),
    }
}
