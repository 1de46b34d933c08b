//! What a change of several files is about to replace, on the disk before its first step. A daemon that is killed in the middle leaves it,
//! and the next one that opens the session takes the change back.
//!
//! Each change has a folder of its own: the old contents by their numbers, and the list of steps, which is written last and goes first.
//! The process that makes a change holds the lock of its list, so that no other one takes back what is not over. Nothing is forced to the disk: the
//! journal survives a kill, not a power failure.

use std::{
    collections::BTreeSet,
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use agentd_checkpoints::{ObjectId, StoredPath};
use agentd_files::{
    fail_point::{self, Point},
    lock,
};
use agentd_safe_open::{LinkPolicy, OpenRules};
use serde::{Deserialize, Serialize};

use super::change::FileChange;
use crate::operations::{FileSystem as _, LocalFiles, WriteError};

/// The list of steps, in the folder of a change.
const LIST: &str = "steps.json";

/// The longest list that is read: 8 MiB, room for thousands of paths.
const MAX_LIST: u64 = 8 << 20;

/// The journals of one session.
#[derive(Debug, Clone)]
pub struct ChangeJournals(PathBuf);

/// A change that a killed daemon left half made, or made without anybody hearing of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenBack {
    /// The call of the model.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// Files that were as the change left them, and are as before again.
    pub files: usize,
    /// Files that are not as before, each with the reason and where its old content is.
    pub left: Vec<String>,
}

/// One step, with what tells whether it was made.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Step {
    Write { path: StoredPath, old: Option<OldFile>, new: ObjectId },
    Move { from: StoredPath, to: StoredPath, moved: Moved },
    Remove { path: StoredPath, old: OldFile },
}

/// A file before the change.
#[derive(Debug, Serialize, Deserialize)]
struct OldFile {
    /// Its content's name in the folder of the change.
    number: usize,
    content: ObjectId,
    /// Its permission bits.
    mode: u32,
}

/// What tells a moved file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Moved {
    /// The content that a step before gave it.
    Content(ObjectId),
    /// Its inode.
    Inode { dev: u64, ino: u64 },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct List {
    call_id: String,
    tool: String,
    steps: Vec<Step>,
    /// Folders that are not there yet.
    new_folders: Vec<StoredPath>,
}

/// The journal of a change that is being made.
pub(super) struct OpenJournal {
    folder: PathBuf,
    /// Holds the lock.
    _list: File,
}

impl ChangeJournals {
    /// The journals of a session, below the folder for running daemons of an agent directory. Nothing is made yet.
    #[must_use]
    pub fn of_session(run_dir: &Path, session_id: &str) -> Self {
        let name = ObjectId::of(session_id.as_bytes()).to_hex();
        Self(run_dir.join("changes").join(&name[..32]))
    }

    /// Writes what the changes replace, before the first of them.
    pub(super) fn begin(
        &self,
        changes: &[FileChange],
        (call_id, tool): (&str, &str),
    ) -> io::Result<OpenJournal> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
        let folder = tempfile::Builder::new().prefix("change-").tempdir_in(&self.0)?.keep();
        let begun = begin_in(&folder, changes, (call_id, tool));
        if begun.is_err() {
            // The first error says what is wrong.
            let _ = fs::remove_dir_all(&folder);
        }
        Ok(OpenJournal { _list: begun?, folder })
    }

    /// Takes back the changes that a killed daemon left. Blocks. To be called while the session's file is locked, before anybody works
    /// with the session.
    ///
    /// # Errors
    /// The folder of the journals cannot be read; it is tried again when the session is opened next.
    pub fn take_back(&self) -> io::Result<Vec<TakenBack>> {
        let mut folders: Vec<PathBuf> = match fs::read_dir(&self.0) {
            Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        folders.sort();
        let mut all = Vec::new();
        for folder in folders {
            all.extend(take_back_one(&folder)?);
        }
        // It stays where a change of another process is under way, or old contents are kept.
        let _ = fs::remove_dir(&self.0);
        Ok(all)
    }
}

impl OpenJournal {
    /// The change is over, made or taken back: the journal goes.
    pub(super) fn end(self) {
        fail_point::hit(Point::ChangeDone);
        let removed = fs::remove_file(self.folder.join(LIST)).and_then(|()| fs::remove_dir_all(&self.folder));
        if let Err(error) = removed {
            tracing::error!(folder = %self.folder.display(), %error, "the journal of a change cannot be removed");
        }
        if let Some(of_session) = self.folder.parent() {
            // It has others, or goes.
            let _ = fs::remove_dir(of_session);
        }
    }
}

fn begin_in(folder: &Path, changes: &[FileChange], (call_id, tool): (&str, &str)) -> io::Result<File> {
    let mut steps = Vec::with_capacity(changes.len());
    let mut new_folders: BTreeSet<PathBuf> = BTreeSet::new();
    for (number, change) in changes.iter().enumerate() {
        let stored = |path: &Path| StoredPath(path.to_owned());
        let old_file = |path: &Path, content: &[u8]| -> io::Result<OldFile> {
            let place = folder.join(number.to_string());
            private_file(&place)?.write_all(content)?;
            let mode = fs::metadata(path)?.mode() & 0o7777;
            Ok(OldFile { number, content: ObjectId::of(content), mode })
        };
        let made_at = match change {
            FileChange::Write { path, content, before } => {
                let old = before.as_ref().map(|before| old_file(path, &before.content)).transpose()?;
                steps.push(Step::Write { path: stored(path), old, new: ObjectId::of(content) });
                path
            }
            FileChange::Move { from, to } => {
                let written = steps.iter().rev().find_map(|step| match step {
                    Step::Write { path, new, .. } if path.0 == *from => Some(*new),
                    _ => None,
                });
                let moved = match written {
                    Some(new) => Moved::Content(new),
                    None => {
                        let about = fs::symlink_metadata(from)?;
                        Moved::Inode { dev: about.dev(), ino: about.ino() }
                    }
                };
                steps.push(Step::Move { from: stored(from), to: stored(to), moved });
                to
            }
            FileChange::Remove { path, before } => {
                steps.push(Step::Remove { path: stored(path), old: old_file(path, &before.content)? });
                continue;
            }
        };
        let missing = made_at.ancestors().skip(1).take_while(|folder| !folder.exists());
        new_folders.extend(missing.map(Path::to_owned));
    }
    let list = List {
        call_id: call_id.to_owned(),
        tool: tool.to_owned(),
        steps,
        new_folders: new_folders.into_iter().map(StoredPath).collect(),
    };
    // Under its name it is whole and locked.
    let unfinished = folder.join("steps.new");
    let mut file = private_file(&unfinished)?;
    if !lock::try_lock(&file)? {
        return Err(io::Error::other("the journal of a change is locked by another process"));
    }
    let mut text = format!("{}\n", std::process::id()).into_bytes();
    serde_json::to_writer(&mut text, &list)?;
    file.write_all(&text)?;
    fs::rename(&unfinished, folder.join(LIST))?;
    Ok(file)
}

fn private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Takes back the change of a journal, unless somebody is making it.
fn take_back_one(folder: &Path) -> io::Result<Option<TakenBack>> {
    let opened = OpenRules::new(LinkPolicy::Refused).open(&folder.join(LIST));
    let file = match opened {
        Ok(file) => file,
        // It was killed before its first step, or after its last.
        Err(error) if error.is_missing() => {
            return match fs::remove_dir_all(folder) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(None),
            };
        }
        Err(error) => return Err(error.into()),
    };
    if !lock::try_lock(&file)? {
        return Ok(None);
    }
    let mut text = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(&file, MAX_LIST), &mut text)?;
    // The first line is the process that made it, for those who wait for its lock.
    let list = text.splitn(2, |byte| *byte == b'\n').nth(1).unwrap_or_default();
    let List { call_id, tool, steps, new_folders } = serde_json::from_slice(list)?;
    let mut taken = TakenBack { call_id, tool, files: 0, left: Vec::new() };
    for step in steps.iter().rev() {
        match undo(step, folder) {
            Ok(true) => taken.files += 1,
            Ok(false) => {}
            Err(why) => taken.left.push(why),
        }
        fail_point::hit(Point::ChangeTakenBack);
    }
    for made in new_folders.iter().rev() {
        // One that has something in it by now stays.
        let _ = fs::remove_dir(&made.0);
    }
    if taken.left.is_empty() {
        fs::remove_dir_all(folder)?;
    } else {
        // It is told once; the old contents are the user's to use or to remove.
        fs::remove_file(folder.join(LIST))?;
        fs::rename(folder, kept_place(folder))?;
    }
    Ok(Some(taken))
}

/// Where the old contents of a change are that could not be taken back as a whole.
fn kept_place(folder: &Path) -> PathBuf {
    let of_session = folder.parent().unwrap_or(folder);
    let changes = of_session.parent().unwrap_or(of_session);
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    changes.join(format!("kept-{}-{}", name(of_session), name(folder)))
}

/// Undoes a step if it was made: true if so. An error says what is not as before.
fn undo(step: &Step, folder: &Path) -> Result<bool, String> {
    let changed = |path: &Path, old: &OldFile| {
        let kept = kept_place(folder).join(old.number.to_string());
        format!("{} was changed since; its old content is {}", path.display(), kept.display())
    };
    match step {
        Step::Write { path, old, new } => {
            let path = &path.0;
            match (content_of(path).map_err(|error| format!("{}: {error}", path.display()))?, old) {
                (Some(now), None) if now == *new => done(path, LocalFiles.remove_file(path)),
                (None, None) => Ok(false),
                (_, None) => Err(format!("{} was changed since", path.display())),
                (Some(now), Some(old)) if now == *new && *new != old.content => put(path, old, folder),
                (Some(now), Some(old)) if now == old.content => Ok(false),
                (_, Some(old)) => Err(changed(path, old)),
            }
        }
        Step::Move { from, to, moved } => {
            let (from, to) = (&from.0, &to.0);
            let is_it = match moved {
                Moved::Content(content) => content_of(to).is_ok_and(|now| now == Some(*content)),
                Moved::Inode { dev, ino } => {
                    fs::symlink_metadata(to).is_ok_and(|about| (about.dev(), about.ino()) == (*dev, *ino))
                }
            };
            match (from.symlink_metadata().is_ok(), is_it) {
                (false, true) => done(to, LocalFiles.move_file(to, from)),
                (true, _) => Ok(false),
                (false, false) => {
                    Err(format!("{} is not at its old path, nor at {}", from.display(), to.display()))
                }
            }
        }
        Step::Remove { path, old } => {
            let path = &path.0;
            match content_of(path).map_err(|error| format!("{}: {error}", path.display()))? {
                None => put(path, old, folder),
                Some(now) if now == old.content => Ok(false),
                Some(_) => Err(changed(path, old)),
            }
        }
    }
}

fn put(path: &Path, old: &OldFile, folder: &Path) -> Result<bool, String> {
    let failed = |error: &io::Error| format!("{}: {error}", path.display());
    let content = fs::read(folder.join(old.number.to_string())).map_err(|error| failed(&error))?;
    if ObjectId::of(&content) != old.content {
        return Err(format!("{}: its old content is damaged", path.display()));
    }
    done(path, LocalFiles.replace(path, &content, None))?;
    fs::set_permissions(path, Permissions::from_mode(old.mode)).map_err(|error| failed(&error))?;
    Ok(true)
}

fn done(path: &Path, done: Result<(), WriteError>) -> Result<bool, String> {
    done.map(|()| true).map_err(|error| format!("{}: {error}", path.display()))
}

/// The content of what is at a path; `None` for nothing. What is no regular file is an error.
fn content_of(path: &Path) -> io::Result<Option<ObjectId>> {
    match OpenRules::new(LinkPolicy::Refused).owner(agentd_safe_open::AcceptedOwner::Anybody).open(path) {
        Ok(mut file) => {
            let mut content = Vec::new();
            io::Read::read_to_end(&mut file, &mut content)?;
            Ok(Some(ObjectId::of(&content)))
        }
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests;
