//! Finds sessions without opening them.

mod folder;
mod gathered;
mod summary;

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use crate::{
    Header, SessionDir,
    io::open_named,
    lines::{LinePosition, each_line},
    load::clean,
};

pub use self::{
    folder::is_own_file,
    summary::{ListText, SessionSummary},
};
use self::{
    folder::{SessionFile, files, modified_ms, subfolders},
    gathered::Gathered,
};

/// The part of a file that is searched for its header, in bytes.
const HEADER_BYTES: u64 = 1 << 20;

/// Longer lines are skipped when a session is summarised.
const SUMMARY_LINE_BYTES: usize = 64 << 20;

/// The header of a session file; `None` when it is no session. Reads at most the first MiB.
///
/// # Errors
/// When the file cannot be read.
pub fn read_header(path: &Path) -> io::Result<Option<Header>> {
    let mut file = open_named(path)?.take(HEADER_BYTES);
    // Headers are short: a small first read, and more only without a complete line in it.
    let (mut bytes, mut bite) = (Vec::new(), 4096);
    let mut done = 0;
    loop {
        let count = (&mut file).take(bite).read_to_end(&mut bytes)?;
        let is_all = count == 0;
        while let Some(end) =
            memchr::memchr(b'\n', &bytes[done..]).map(|at| done + at).or(is_all.then_some(bytes.len()))
        {
            let line = String::from_utf8_lossy(&bytes[done..end]);
            let place = LinePosition { byte: done as u64, ..LinePosition::default() };
            // Zeros replace lines that a power loss took.
            let (line, _) = clean(&line, &place);
            match line.trim_matches('\0').trim_ascii() {
                "" => {}
                line => match Header::parse(line) {
                    Some(header) => return Ok(Some(header)),
                    None if serde_json::from_str::<serde::de::IgnoredAny>(line).is_ok() => return Ok(None),
                    None => {}
                },
            }
            if end >= bytes.len() {
                return Ok(None);
            }
            done = end + 1;
        }
        bite *= 4;
    }
}

/// A session file that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundSession {
    /// A session of the working directory.
    Local(PathBuf),
    /// One that works elsewhere.
    Elsewhere {
        /// The file.
        path: PathBuf,
        /// The working directory of the session.
        cwd: String,
    },
}

/// Returns whether the argument of `--session` is a path, and not an id or the beginning of one.
#[must_use]
pub fn looks_like_path(text: &str) -> bool {
    text.contains(['/', '\\']) || text.ends_with(".jsonl")
}

/// The session of `cwd` in `dir` with the last write, for `--continue`.
///
/// # Errors
/// When the folder cannot be read; a missing one is empty.
pub fn newest(dir: &SessionDir, cwd: &str) -> io::Result<Option<PathBuf>> {
    let found = files(&dir.path)?
        .into_iter()
        .find(|file| header_of(file).is_some_and(|header| is_local(&header, dir, cwd)));
    Ok(found.map(|file| file.path))
}

/// The session with exactly this id in `cwd`, for `--session-id`.
///
/// # Errors
/// When the folder cannot be read; a missing one is empty.
pub fn find_by_id(id: &str, dir: &SessionDir, cwd: &str) -> io::Result<Option<PathBuf>> {
    let mut files = files(&dir.path)?;
    // Files with our own form of name come first; a file of any name may hold it.
    let end = format!("_{id}.jsonl");
    files.sort_by_key(|file| !file.path.to_string_lossy().ends_with(&end));
    let matches = |file: &SessionFile| {
        header_of(file).is_some_and(|header| header.id() == id && is_local(&header, dir, cwd))
    };
    Ok(files.into_iter().find(matches).map(|file| file.path))
}

/// The session of an id or the beginning of one: with exactly this id in `cwd`, with such a beginning in `cwd`, then the same
/// among all others, below `root` and in `dir`. Of several, the one with the last write.
///
/// # Errors
/// When a folder cannot be read; a missing one is empty.
pub fn find(id: &str, dir: &SessionDir, root: &Path, cwd: &str) -> io::Result<Option<FoundSession>> {
    if let Some(path) = find_by_id(id, dir, cwd)? {
        return Ok(Some(FoundSession::Local(path)));
    }
    // An empty text is the beginning of every id, and no user means that.
    if id.is_empty() {
        return Ok(None);
    }
    let mut all = files(&dir.path)?;
    for folder in subfolders(root)? {
        if folder != dir.path {
            all.extend(files(&folder)?);
        }
    }
    // The best of each rank, in the order of the ranks; `files` has the latest first.
    let mut ranks: [Option<FoundSession>; 3] = [None, None, None];
    let mut latest = [i64::MIN; 3];
    for file in all {
        let Some(header) = header_of(&file).filter(|header| header.id().starts_with(id)) else { continue };
        let in_dir = file.path.parent() == Some(&*dir.path);
        let local = in_dir && is_local(&header, dir, cwd);
        let rank = if local {
            0
        } else if header.id() == id {
            1
        } else {
            2
        };
        if ranks[rank].is_none() || file.modified_ms > latest[rank] {
            latest[rank] = file.modified_ms;
            let cwd = header.cwd().to_owned();
            ranks[rank] = Some(if local {
                FoundSession::Local(file.path)
            } else {
                FoundSession::Elsewhere { path: file.path, cwd }
            });
        }
    }
    Ok(ranks.into_iter().flatten().next())
}

/// The sessions of a folder.
#[derive(Debug, Default)]
pub struct SessionList {
    /// The sessions, the last modified first.
    pub sessions: Vec<SessionSummary>,
    /// The files that cannot be read, and why not.
    pub unreadable: Vec<(PathBuf, io::Error)>,
}

/// Lists the sessions of a folder, last modified first; in a shared folder only those of `cwd`, unless `cwd` is `None`.
///
/// # Errors
/// When the folder cannot be read (a missing one is empty), and once `is_wanted` returns false because no client waits for the
/// list any more.
pub fn list(
    dir: &SessionDir,
    cwd: Option<&str>,
    text: ListText,
    is_wanted: &dyn Fn() -> bool,
) -> io::Result<SessionList> {
    let is_of_cwd = |file: &SessionFile| match cwd {
        Some(cwd) if dir.is_shared => header_of(file).is_some_and(|header| is_local(&header, dir, cwd)),
        _ => true,
    };
    let (mut sessions, mut unreadable) = (Vec::new(), Vec::new());
    for file in files(&dir.path)?.into_iter().filter(is_of_cwd) {
        match summarize(&file.path, text, is_wanted) {
            _ if !is_wanted() => return Err(unwanted()),
            Ok(summary) => sessions.extend(summary),
            Err(error) => unreadable.push((file.path, error)),
        }
    }
    sessions.sort_by_key(|session| std::cmp::Reverse(session.modified_ms));
    Ok(SessionList { sessions, unreadable })
}

/// Reads a session file for a list; `None` when it is no session. Locks nothing and keeps nothing but the result.
///
/// # Errors
/// When the file cannot be read, and once `is_wanted` returns false.
pub fn summarize(
    path: &Path,
    text: ListText,
    is_wanted: &dyn Fn() -> bool,
) -> io::Result<Option<SessionSummary>> {
    let file = open_named(path)?;
    let file_ms = modified_ms(&file.metadata()?);
    let mut file = WhileWanted { file, is_wanted };
    let mut gathered = Gathered::new(text);
    each_line(&mut file, SUMMARY_LINE_BYTES, &mut |line| {
        if let Some(bytes) = line.content.bytes() {
            gathered.line(clean(&String::from_utf8_lossy(bytes), &line.place).0);
        }
    })?;
    Ok(gathered.finish(path, file_ms))
}

/// A file that is read only while its content is wanted.
struct WhileWanted<'a> {
    file: File,
    is_wanted: &'a dyn Fn() -> bool,
}

impl Read for WhileWanted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if (self.is_wanted)() { self.file.read(buffer) } else { Err(unwanted()) }
    }
}

fn unwanted() -> io::Error {
    io::Error::other("nobody waits for it any more")
}

fn header_of(file: &SessionFile) -> Option<Header> {
    match read_header(&file.path) {
        Ok(header) => header,
        Err(error) => {
            tracing::debug!(%error, path = %file.path.display(), "cannot read a session file");
            None
        }
    }
}

fn is_local(header: &Header, dir: &SessionDir, cwd: &str) -> bool {
    !dir.is_shared || header.cwd() == cwd
}

#[cfg(test)]
mod tests;
