//! `agentctl name`: gives a session a name.

use agentd_protocol::{
    command::SetSessionNameParams,
    daemon::{AttachSessionParams, Role, SessionInfo},
};

use super::{daemon_call, last_session};
use crate::{
    cli::NameOptions,
    exit::{Exit, Fault, conclude, print_stderr},
    private_daemon::StartOptions,
    render::{one_line, short_id},
    rpc::{AttachSession, Client, SetSessionName},
};

/// The shortest word that may be the beginning of an id.
const ID_LENGTH: usize = 8;

pub(crate) fn run(options: &NameOptions) -> Exit {
    conclude(name(options))
}

fn name(options: &NameOptions) -> Result<Exit, Fault> {
    let (given, text) = match options.words.as_slice() {
        [text] => (None, text),
        [id, text] => (Some(id.as_str()), text),
        _ => {
            return Err(Fault::usage(
                "agentctl name: put the name in quotes: agentctl name \"Parser for dates\"",
            ));
        }
    };
    if given.is_none() && looks_like_id(text) {
        let text = format!(
            "agentctl name: \"{text}\" looks like the id of a session, and the name is missing:\n  agentctl name {text} \"Parser for dates\""
        );
        return Err(Fault::usage(text));
    }
    let params = SetSessionNameParams { name: text.trim().to_owned() };
    if params.name.is_empty() {
        return Err(Fault::usage(
            "agentctl name: the name is empty: give the session one, or leave it as it is.",
        ));
    }
    let session = last_session::given_or_last(given)?;
    set(&session, &params)?;
    print_stderr(&format!("{}: its name is \"{}\".", short_id(&session.id), one_line(&params.name)));
    Ok(Exit::Answered)
}

/// Whether the only argument was meant as an id, whose name is missing.
fn looks_like_id(text: &str) -> bool {
    let is_of_id = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c) || c == '-';
    text.len() >= ID_LENGTH && text.chars().all(is_of_id) && text.contains(|c: char| c.is_ascii_digit())
}

/// Asks the daemon, which opens the session if necessary; without a daemon, an agentd of our own.
fn set(session: &SessionInfo, params: &SetSessionNameParams) -> Result<(), Fault> {
    let by_daemon = daemon_call::block_on(async {
        let Some(connection) = daemon_call::connect(Role::Control).await? else { return Ok(None) };
        let attach = AttachSessionParams { session_id: session.id.clone(), since: None };
        let asked = async {
            connection.client.call::<AttachSession>(&attach).await?;
            connection.client.call::<SetSessionName>(params).await
        };
        asked.await.map(Some).map_err(Fault::from)
    })?;
    match (by_daemon, &session.path) {
        (Some(()), _) => Ok(()),
        (None, Some(path)) => {
            let start = StartOptions { args: vec!["--session".into(), path.clone()], cwd: None };
            daemon_call::with_private(start, async |client: &Client| {
                client.call::<SetSessionName>(params).await
            })
        }
        (None, None) => {
            let text = format!("Error: session {} has no file and is in no daemon's memory.", session.id);
            Err(Fault::new(Exit::Failed, text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_alone_is_no_name() {
        for id in ["0198c0de", "0198c0de-7a51-7000", "20261121"] {
            assert!(looks_like_id(id), "{id}");
        }
        for name in ["0198c0d", "deadbeef", "Fix 2026", "0198c0de!", ""] {
            assert!(!looks_like_id(name), "{name}");
        }
    }
}
