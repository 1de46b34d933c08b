//! Whose a session file is.

use std::{
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use agentd_config::{AgentDir, SessionDir as SessionDirRule, is_of_project, settings::load_user};
use agentd_safe_open::AcceptedOwner;
use agentd_store::intent_log::{OwnershipNotes, intent_log_path};

use super::target::folder_rule;
use crate::{SessionOptions, recovery::Origin};

/// Whose a session file is that was opened for one of these working directories, and where its intent logs are noted when it lies
/// outside of the agent directory. Reads files; blocks.
pub(super) fn origin(
    file: &Path,
    cwds: [&PathBuf; 2],
    agent_dir: &AgentDir,
    options: &SessionOptions,
) -> (Origin, Option<OwnershipNotes>) {
    if cwds.iter().any(|cwd| is_of_project(file, cwd, agent_dir, &options.environment)) {
        return (Origin::Project, None);
    }
    let real = real(file);
    let own = [agent_dir.path().to_path_buf(), agent_dir.sessions_dir()];
    if own.iter().filter_map(|folder| folder.canonicalize().ok()).any(|folder| real.starts_with(folder)) {
        return (Origin::User, None);
    }
    let (claims, intent_log) = (OwnershipNotes::below(&agent_dir.run_dir()), intent_log_path(file));
    let is_users =
        claims.covers(&intent_log) || (is_in_session_dir(&real, agent_dir, options) && is_own(&intent_log));
    (if is_users { Origin::User } else { Origin::Outside }, Some(claims))
}

/// Whether the file is in the folder that the user named for sessions, by a flag, a variable or the user's own settings.
fn is_in_session_dir(real: &Path, agent_dir: &AgentDir, options: &SessionOptions) -> bool {
    match folder_rule(options, agent_dir, &load_user(agent_dir)) {
        SessionDirRule::Exact(folder) => {
            folder.canonicalize().is_ok_and(|folder| real.parent() == Some(folder.as_path()))
        }
        SessionDirRule::PerCwd(_) => false,
    }
}

/// Whether an intent log, if there is one, is a file of this user's or root's.
fn is_own(intent_log: &Path) -> bool {
    intent_log
        .symlink_metadata()
        .map_or(true, |about| about.is_file() && AcceptedOwner::Own.accepts(about.uid()))
}

/// The path without links, also of a file that is not there yet.
fn real(file: &Path) -> PathBuf {
    let in_folder = || Some(file.parent()?.canonicalize().ok()?.join(file.file_name()?));
    file.canonicalize().ok().or_else(in_folder).unwrap_or_else(|| file.to_path_buf())
}
