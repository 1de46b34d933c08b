//! `agentctl fork`: copies a conversation into a new session.

use std::path::Path;

use agentd_connect::environment;
use agentd_protocol::{
    command::{ForkParams, NoParams},
    daemon::{AttachSessionParams, CloseSessionParams, EndMode, OpenSessionParams, Role, SessionInfo},
    session::SessionState,
};

use super::{daemon_call, last_session};
use crate::{
    cli::ForkOptions,
    exit::{Exit, Fault, conclude, print_stderr},
    output,
    private_daemon::StartOptions,
    render::{cut, one_line},
    rpc::{AttachSession, CallError, Client, CloneSession, CloseSession, Fork, GetState, OpenSession},
};

/// The length of the prompt that the fork ends before, in characters.
const SHOWN: usize = 60;

pub(crate) fn run(options: &ForkOptions) -> Exit {
    conclude(fork(options))
}

fn fork(options: &ForkOptions) -> Result<Exit, Fault> {
    let session = last_session::given_or_last(options.id.as_deref())?;
    if let Some(folder) = &options.cwd {
        return fork_into(folder, &session);
    }
    let entry = options.entry.as_deref();
    let in_the_daemon = daemon_call::block_on(async {
        let Some(connection) = daemon_call::connect(Role::Control).await? else { return Ok(None) };
        in_daemon(&connection.client, &session, entry).await.map(Some).map_err(Fault::from)
    })?;
    let made = match in_the_daemon {
        Some(made) => made,
        None => alone(&session, entry)?,
    };
    // A fork without a file is gone together with its daemon.
    if made.state.session_file.as_deref().is_some_and(|file| !Path::new(file).exists()) {
        let text = "Error: nothing was said before that prompt, so that there is nothing to copy.\n`agentctl prompt \
                    \"...\"` begins a conversation.";
        return Err(Fault::new(Exit::Failed, text));
    }
    if let Some(text) = &made.text {
        print_stderr(&format!("It ends before: {}", cut(&one_line(text), SHOWN)));
    }
    output::print(&format!("{}\n", made.state.session_id))
}

/// Copies a whole session file into a session of another folder. The original is not opened: its folder may be gone.
fn fork_into(folder: &Path, session: &SessionInfo) -> Result<Exit, Fault> {
    let unusable = |why: &dyn std::fmt::Display| {
        Fault::usage(format!("Error: --cwd {} cannot be used: {why}", folder.display()))
    };
    let folder = std::path::absolute(folder).map_err(|error| unusable(&error))?;
    if !folder.is_dir() {
        return Err(unusable(&"it is not a folder"));
    }
    let args = vec!["--fork".to_owned(), file_of(session)?.to_owned()];
    let made = daemon_call::block_on(async {
        let Some(connection) = daemon_call::connect(Role::Control).await? else { return Ok(None) };
        let params = OpenSessionParams {
            cwd: folder.display().to_string(),
            args: args.clone(),
            env: Some(environment()),
            ..OpenSessionParams::default()
        };
        let opened = connection.client.call::<OpenSession>(&params).await;
        opened.map(|opened| Some(opened.state)).map_err(Fault::from)
    })?;
    let made = match made {
        Some(made) => made,
        None => {
            let start = StartOptions { args, cwd: Some(folder) };
            daemon_call::with_private(start, async |client: &Client| {
                client.call::<GetState>(&NoParams {}).await
            })?
        }
    };
    output::print(&format!("{}\n", made.session_id))
}

fn file_of(session: &SessionInfo) -> Result<&str, Fault> {
    session.path.as_deref().ok_or_else(|| {
        let text = format!("Error: session {} has no file and is in no daemon's memory.", session.id);
        Fault::new(Exit::Failed, text)
    })
}

/// A fork.
struct ForkedSession {
    state: SessionState,
    text: Option<String>,
}

/// Forks a session in the daemon, which opens it if necessary. Its other clients are not disturbed.
async fn in_daemon(
    client: &Client,
    session: &SessionInfo,
    entry: Option<&str>,
) -> Result<ForkedSession, CallError> {
    client
        .call::<AttachSession>(&AttachSessionParams { session_id: session.id.clone(), since: None })
        .await?;
    let made = here(client, entry).await?;
    if made.state.session_file.as_deref().is_some_and(|file| !Path::new(file).exists()) {
        let params = CloseSessionParams { session_id: made.state.session_id.clone(), mode: EndMode::Abort };
        client.call::<CloseSession>(&params).await?;
    }
    Ok(made)
}

/// Forks in an agentd of our own.
fn alone(session: &SessionInfo, entry: Option<&str>) -> Result<ForkedSession, Fault> {
    let path = file_of(session)?.to_owned();
    let start = StartOptions { args: vec!["--session".into(), path], cwd: None };
    daemon_call::with_private(start, async |client: &Client| here(client, entry).await)
}

/// Forks the connection's current session. The connection goes on with the fork.
async fn here(client: &Client, entry: Option<&str>) -> Result<ForkedSession, CallError> {
    let text = match entry {
        Some(entry) => {
            let forked = client.call::<Fork>(&ForkParams { entry_id: entry.to_owned() }).await;
            Some(forked.map_err(|error| in_our_words(error, entry))?.text)
        }
        None => {
            client.call::<CloneSession>(&NoParams {}).await?;
            None
        }
    };
    Ok(ForkedSession { state: client.call::<GetState>(&NoParams {}).await?, text })
}

/// Rewords the refusal of an entry that is no prompt.
fn in_our_words(error: CallError, entry: &str) -> CallError {
    match error {
        CallError::Refused { error, .. } if error == "Invalid entry ID for forking" => CallError::Refused {
            error: format!("{} is the id of no prompt in this session.", one_line(entry)),
            code: None,
            hint: Some("`agentctl tree ID` shows its prompts (user) with their ids.".into()),
        },
        error => error,
    }
}
