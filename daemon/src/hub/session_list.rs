//! Lists, finds and deletes session files, whichever program wrote them.

use std::{
    collections::HashSet,
    fs::{self, TryLockError},
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::Arc,
};

use agentd_config::AgentDir;
use agentd_files::fail_point::{self, Point};
use agentd_process::ArtifactFolder;
use agentd_protocol::{
    daemon::{ListSessionsParams, SessionInfo, SessionList, UnreadableSession},
    error::{ErrorCode, Failure},
};
use agentd_safe_open::{LinkPolicy, OpenRules};
use agentd_session::subagent_folder;
use agentd_store::{
    Header, ListText, SessionDir, SessionSummary, intent_log::intent_log_path, is_own_file, iso_timestamp,
    kept_originals, list, read_header, summarize,
};

use super::SessionSlot;
use crate::limits::{DEFAULT_PAGE_SESSIONS, MAX_PAGE_SESSIONS, MAX_UNREADABLE_FILES};

/// Which sessions without a file are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithoutFile {
    /// All: other clients can join them.
    All,
    /// Those that get a file with their first message. A host's ephemeral session is private to the host.
    Promised,
}

/// A page of sessions, of all or only of some ids, the last modified first. `known` are the sessions of the registry. Reads
/// files; blocks.
///
/// # Errors
/// When the sessions folder cannot be read, when the cursor is invalid, and once `is_wanted` says that nobody waits any more.
pub fn sessions(
    known: &[Arc<SessionSlot>],
    agent_dir: &AgentDir,
    params: &ListSessionsParams,
    (without_file, only): (WithoutFile, Option<&HashSet<Arc<str>>>),
    is_wanted: &dyn Fn() -> bool,
) -> Result<SessionList, Failure> {
    let after = params.cursor.as_deref().map(cursor).transpose()?;
    let search =
        params.search.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(str::to_lowercase);
    let text = if search.is_some() { ListText::All } else { ListText::First };
    let (mut found, mut unreadable) = (Vec::new(), Vec::new());
    // The files of sessions in memory are known. All other sessions have to be searched for in the folders.
    let folders = if params.live == Some(true) { Vec::new() } else { folders(agent_dir)? };
    for file in known
        .iter()
        .filter(|_| params.live == Some(true))
        .filter_map(|known| known.loaded()?.file().map(Path::to_owned))
    {
        // A session without a file yet is listed below.
        if let Ok(Some(summary)) = summarize(&file, text, is_wanted) {
            let by_id = known.iter().find(|known| **known.id() == *summary.id);
            found.push((summary.modified_ms, info(summary, by_id, search.as_deref())));
        }
    }
    for folder in folders {
        let dir = SessionDir { path: folder, is_shared: false };
        let listed = list(&dir, None, text, is_wanted).map_err(unlistable(agent_dir))?;
        unreadable.extend(listed.unreadable);
        for summary in listed.sessions {
            let by_id = known.iter().find(|known| **known.id() == *summary.id);
            found.push((summary.modified_ms, info(summary, by_id, search.as_deref())));
        }
    }
    for known in known.iter().filter(|known| without_file == WithoutFile::All || !known.is_ephemeral()) {
        let is_it =
            |found: &(_, Option<SessionInfo>)| found.1.as_ref().is_some_and(|it| *it.id == **known.id());
        if !found.iter().any(is_it) {
            let info = SessionInfo { path: None, ..known.info() };
            let texts =
                [&*info.id, info.name.as_deref().unwrap_or_default(), &*info.cwd, &*info.first_message];
            let fits = search.as_deref().is_none_or(|search| has(&texts, search));
            found.push((known.summary().modified_ms, fits.then_some(info)));
        }
    }
    let mut found: Vec<(i64, SessionInfo)> = found
        .into_iter()
        .filter_map(|(time, info)| Some((time, info?)))
        .filter(|(_, info)| params.cwd.as_ref().is_none_or(|cwd| *cwd == info.cwd))
        .filter(|(_, info)| params.live.is_none_or(|live| live == info.live))
        .filter(|(_, info)| only.is_none_or(|only| only.contains(&*info.id)))
        .collect();
    // Sessions with equal times are ordered by id, so that pages neither repeat nor miss one.
    found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| b.1.id.cmp(&a.1.id)));
    if let Some(after) = after {
        found.retain(|(time, info)| (*time, info.id.as_str()) < (after.0, after.1));
    }
    let limit =
        params.limit.map_or(DEFAULT_PAGE_SESSIONS, |limit| limit as usize).clamp(1, MAX_PAGE_SESSIONS);
    let cursor = (found.len() > limit).then(|| {
        let (time, last) = &found[limit - 1];
        format!("{time}-{}", last.id)
    });
    found.truncate(limit);
    // An unreadable file fits no filter: such files are named on the first page of an unfiltered list.
    let is_of_all = after.is_none() && params.cwd.is_none() && search.is_none();
    let unreadable = unreadable.into_iter().filter(|_| is_of_all).take(MAX_UNREADABLE_FILES);
    let unreadable = unreadable.map(|(path, error)| UnreadableSession {
        path: path.display().to_string(),
        problem: match error.kind() {
            // Already a sentence.
            ErrorKind::InvalidInput => error.to_string(),
            _ => format!("cannot be read: {error}"),
        },
    });
    Ok(SessionList {
        sessions: found.into_iter().map(|(_, info)| info).collect(),
        cursor,
        unreadable: unreadable.collect(),
    })
}

/// The file of a session, and its header. Reads files; blocks.
///
/// # Errors
/// When no file is of that session.
pub fn file_of(agent_dir: &AgentDir, id: &str) -> Result<(PathBuf, Header), Failure> {
    let end = format!("_{id}.jsonl");
    let mut named = Vec::new();
    for folder in folders(agent_dir)? {
        for entry in fs::read_dir(folder).map_err(unlistable(agent_dir))?.flatten() {
            let path = entry.path();
            if path.to_string_lossy().ends_with(&end) && is_own_file(&path) {
                named.push(path);
            }
        }
    }
    named.into_iter().find_map(|path| header_of(path, id).ok()).ok_or_else(|| unknown(id))
}

/// The given file and its header, where it is the session's. Reads the file; blocks.
///
/// # Errors
/// When it is another session's, or none.
pub fn header_of(path: PathBuf, id: &str) -> Result<(PathBuf, Header), Failure> {
    let header = read_header(&path).ok().flatten().filter(|header| header.id() == id);
    header.map(|header| (path, header)).ok_or_else(|| unknown(id))
}

/// The failure of a command for an id that no session has, open or not.
pub fn unknown(id: &str) -> Failure {
    Failure::new(ErrorCode::SessionNotFound, format!("No session has the id \"{id}\"."))
        .hint("list_sessions lists them.")
}

/// Deletes a session's file and long outputs, unless another process writes to it. Blocks.
///
/// # Errors
/// When it is locked, or cannot be deleted.
pub fn delete(path: &Path) -> Result<(), Failure> {
    let io = |error: std::io::Error| {
        Failure::new(ErrorCode::Io, format!("cannot delete {}: {error}", path.display()))
    };
    let opened = OpenRules::new(LinkPolicy::Followed).open(path);
    let file = opened.map_err(|error| io(error.into_problem().into()))?;
    match file.try_lock() {
        // The session file goes last: if this fails in between, the session can be deleted again. Outputs alone could not.
        Ok(()) => {
            fail_point::call(Point::DeleteArtifacts).map_err(io)?;
            ArtifactFolder::beside(path).remove().map_err(io)?;
            match fs::remove_dir_all(subagent_folder(path)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(io(error)),
                _ => {}
            }
            for original in kept_originals(path) {
                fs::remove_file(original).map_err(io)?;
            }
            match fs::remove_file(intent_log_path(path)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(io(error)),
                _ => {}
            }
            fail_point::call(Point::DeleteFile).map_err(io)?;
            fs::remove_file(path).map_err(io)
        }
        Err(TryLockError::WouldBlock) => {
            let text = format!("Another process writes to {}.", path.display());
            Err(Failure::new(ErrorCode::SessionLocked, text)
                .hint("End that process, or close the session there."))
        }
        Err(TryLockError::Error(error)) => Err(io(error)),
    }
}

fn cursor(text: &str) -> Result<(i64, &str), Failure> {
    let parts = text.split_once('-').filter(|(time, _)| !time.is_empty());
    parts.and_then(|(time, id)| Some((time.parse().ok()?, id))).ok_or_else(|| {
        Failure::new(ErrorCode::InvalidField, "Invalid field \"cursor\": it is none that list_sessions gave")
    })
}

/// The folders of sessions: one for each working directory.
fn folders(agent_dir: &AgentDir) -> Result<Vec<PathBuf>, Failure> {
    let root = agent_dir.sessions_dir();
    let entries = match fs::read_dir(&root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unlistable(agent_dir)(error)),
    };
    Ok(entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect())
}

fn unlistable(agent_dir: &AgentDir) -> impl Fn(std::io::Error) -> Failure {
    let root = agent_dir.sessions_dir();
    move |error| {
        Failure::new(ErrorCode::Io, format!("cannot look for sessions in {}: {error}", root.display()))
    }
}

/// Whether one of the texts contains the lowercase search text, in any case.
fn has(texts: &[&str], search: &str) -> bool {
    texts.iter().any(|text| text.to_lowercase().contains(search))
}

/// The row of a session with a file; `None` where it does not contain the search text.
fn info(
    summary: SessionSummary,
    known: Option<&Arc<SessionSlot>>,
    search: Option<&str>,
) -> Option<SessionInfo> {
    if let Some(search) = search {
        let name = summary.name.as_deref().unwrap_or_default();
        let texts = [&*summary.id, name, &*summary.cwd, &*summary.all_messages_text];
        if !has(&texts, search) {
            return None;
        }
    }
    let parent = summary.parent_session_path.as_deref().map(PathBuf::from);
    let parent = parent.and_then(|path| read_header(&path).ok().flatten());
    Some(SessionInfo {
        path: Some(summary.path.display().to_string()),
        cwd: summary.cwd,
        name: summary.name,
        created: iso_timestamp(summary.created_ms),
        modified: iso_timestamp(summary.modified_ms),
        message_count: summary.message_count,
        first_message: if summary.message_count == 0 { String::new() } else { summary.first_message },
        turns: summary.turns,
        cost: summary.cost,
        model: summary.model.map(|model| format!("{}/{}", model.provider, model.id)),
        parent_id: parent.map(|header| header.id().to_owned()),
        agent: known.and_then(|known| Some(known.options().subagent.as_ref()?.agent().to_owned())),
        agent_id: known.and_then(|known| Some(known.options().subagent.as_ref()?.id().to_owned())),
        live: known.is_some_and(|known| known.loaded().is_some()),
        is_streaming: known.is_some_and(|known| known.summary().is_streaming),
        clients: known.map_or(0, |known| known.clients()),
        id: summary.id,
    })
}
