//! `agentctl rm`: deletes conversations.

use agentd_protocol::daemon::{SessionInfo, SessionParams};
use jiff::Timestamp;

use crate::{
    cli::RemoveOptions,
    commands::{
        anyone,
        ask::{self, Enter},
        one_call, which,
    },
    exit::{Exit, Fault, tell},
    render::counted,
    rpc::DeleteSession,
};

/// Deletes sessions.
pub(crate) fn remove(options: &RemoveOptions) -> Exit {
    one_call::conclude(delete(options))
}

fn delete(options: &RemoveOptions) -> Result<Exit, Fault> {
    // All of them are known before the first is gone: a typing error deletes nothing.
    let mut sessions: Vec<SessionInfo> = Vec::new();
    for given in &options.ids {
        let session = which::session_of_anyone(given)?;
        if !sessions.iter().any(|other| other.id == session.id) {
            sessions.push(session);
        }
    }
    if !options.yes {
        if ask::possible() {
            tell(&which::listed(&sessions, usize::MAX, Timestamp::now()));
            let question = format!("Delete {} for good?", counted(sessions.len(), "session"));
            if !ask::agreed(&question, Enter::No)? {
                return Err(Fault::new(Exit::Failed, "Nothing was deleted."));
            }
        } else {
            whole_ids(&options.ids, &sessions)?;
        }
    }
    for session in sessions {
        anyone::call::<DeleteSession>(&SessionParams { session_id: session.id })?;
    }
    Ok(Exit::Answered)
}

/// Where nobody can be asked, the beginning of an id is too little to delete by.
fn whole_ids(given: &[String], sessions: &[SessionInfo]) -> Result<(), Fault> {
    let whole = |given: &&String| sessions.iter().any(|session| session.id == given.trim());
    match given.iter().find(|given| !whole(given)) {
        None => Ok(()),
        Some(short) => Err(Fault::usage(format!(
            "Error: \"{short}\" is the beginning of an id, and nobody can be asked here. Give the whole id, or --yes."
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::sessions::example;

    #[test]
    fn a_script_gives_whole_ids() {
        let sessions = [example("0198-1"), example("0199-2")];
        assert_eq!(whole_ids(&["0199-2".into(), "0198-1".into()], &sessions), Ok(()));
        let fault = whole_ids(&["0199-2".into(), "0198".into()], &sessions).unwrap_err();
        assert!(fault.exit == Exit::Usage && fault.message.contains("\"0198\" is the beginning"), "{fault}");
    }
}
