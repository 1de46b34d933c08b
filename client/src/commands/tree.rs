//! `agentctl tree`: the branches of a conversation.

mod entries;
mod outline;

use std::path::{Path, PathBuf};

use agentd_protocol::{
    command::GetEntriesParams,
    daemon::{Role, SessionInfo},
};

use self::entries::Entries;
use super::{daemon, live, one_call, which};
use crate::{
    cli::TreeOptions,
    exit::{Exit, Fault, tell},
    render::Screen,
    rpc::{CallError, GetEntries},
    session_file::ReadError,
};

/// Prints the outline.
pub(crate) fn run(options: &TreeOptions) -> Exit {
    one_call::conclude(show(options))
}

fn show(options: &TreeOptions) -> Result<Exit, Fault> {
    let given = &options.session;
    let entries = if given.contains('/') || given.ends_with(".jsonl") {
        of_file(&PathBuf::from(given))?
    } else {
        of_session(&which::session_of_anyone(given)?)?
    };
    let text = outline::outline(&entries, Screen::of_stdout());
    if text.is_empty() {
        tell("Nothing was said in this session yet.");
        return Ok(Exit::Answered);
    }
    one_call::print(&text)
}

/// As the daemon has it, which alone knows where a session goes on that went back; from its file where no daemon has it.
fn of_session(session: &SessionInfo) -> Result<Entries, Fault> {
    let asked = daemon::block_on(async {
        let Some(connection) = live::connect(Role::Observe).await? else { return Ok(None) };
        let params = GetEntriesParams::default();
        match connection.client.call_in::<GetEntries>(&session.id, &params).await {
            Ok(entries) => Ok(Some(entries)),
            // A session that nobody has opened is no trouble, as long as it has a file.
            Err(CallError::Refused { .. }) if session.path.is_some() => Ok(None),
            Err(error) => Err(one_call::fault(&error)),
        }
    })?;
    match (asked, &session.path) {
        (Some(answer), _) => {
            let lines = answer.entries.iter().map(|entry| entry.text());
            Ok(Entries::of_lines(lines, answer.leaf_id.as_deref()))
        }
        (None, Some(path)) => of_file(Path::new(path)),
        (None, None) => {
            let text = format!("Error: session {} is in no file, and no daemon has it.", session.id);
            Err(Fault::new(Exit::Failed, text))
        }
    }
}

fn of_file(path: &Path) -> Result<Entries, Fault> {
    let unreadable = |error: ReadError| {
        Fault::new(Exit::Failed, format!("Error: cannot read {}: {error}", path.display()))
    };
    Entries::read(path).map_err(unreadable)
}
