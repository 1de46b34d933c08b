//! Replaces working files of the user, all or none of them.
//!
//! A new file takes the place of the old one by an exchange of their names, so that there is no moment without the file, and the
//! old one is there until all is done. When what comes out by the exchange is not the file that the merge was computed with, because
//! somebody has saved it meanwhile, everything is put back. A journal, written before the first step, lets a later process do the
//! same for one that was killed.

use std::{
    collections::BTreeSet,
    fs::{self, Permissions},
    io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Component, Path, PathBuf},
};

use agentd_files::fail_point::{self, Point};
use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    io::Errno,
};
use serde::{Deserialize, Serialize};

use crate::{error::IsolationError, objects::JOURNAL};

/// What tells whether a file is still the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    inode: u64,
    len: u64,
    seconds: i64,
    nanoseconds: i64,
    mode: u32,
}

impl Stamp {
    /// The stamp of a file or link; `None` if nothing is there.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn of(path: &Path) -> io::Result<Option<Self>> {
        match fs::symlink_metadata(path) {
            Ok(about) => Ok(Some(Self {
                inode: about.ino(),
                len: about.len(),
                seconds: about.mtime(),
                nanoseconds: about.mtime_nsec(),
                mode: about.mode(),
            })),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// [`Self::of`] for a place where a folder counts as nothing.
    fn of_file(path: &Path) -> io::Result<Option<Self>> {
        Ok(Self::of(path)?.filter(|stamp| !stamp.is_folder()))
    }

    pub(crate) fn is_folder(self) -> bool {
        self.mode & 0o170_000 == 0o040_000
    }

    fn is_file(self) -> bool {
        self.mode & 0o170_000 == 0o100_000
    }
}

/// The replacement of one file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Step {
    /// Below the root.
    #[serde(with = "crate::record::path_bytes")]
    pub(crate) path: PathBuf,
    /// The file that is there.
    pub(crate) old: Option<Stamp>,
    /// The file that is to be there. It waits in the scratch folder, in `new`, under the same path.
    pub(crate) new: Option<Stamp>,
}

/// The move of a branch that belongs to the replacement.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct BranchMove {
    /// The commit after it.
    pub(crate) new_head: String,
    /// Our lock of the index, which has the new index in it.
    pub(crate) index_lock: Stamp,
}

/// All replacements of a merge in one repository.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Replacements {
    #[serde(with = "crate::record::path_bytes")]
    root: PathBuf,
    #[serde(with = "crate::record::path_bytes")]
    scratch: PathBuf,
    steps: Vec<Step>,
    pub(crate) branch: Option<BranchMove>,
}

/// Why nothing was replaced.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// A file is no longer what it was, or something is in the way.
    Changed(PathBuf),
    /// The system's error.
    Failed(PathBuf, io::Error),
}

/// What could not be put back, because it was changed once more: the user's new file stays in its place, and the old one is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeptFile {
    pub(crate) path: PathBuf,
    pub(crate) old_content: PathBuf,
}

impl Replacements {
    /// Replacements in `root`, with the new files in `scratch/new`. Deletions come first. Blocks.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn new(
        root: PathBuf,
        scratch: PathBuf,
        files: Vec<(PathBuf, Option<Stamp>)>,
    ) -> Result<Self, IsolationError> {
        let mut steps = Vec::with_capacity(files.len());
        for (path, old) in files {
            // A folder in the place of a file goes with the last file in it, or is in the way.
            let old = old.filter(|old| !old.is_folder());
            let place = scratch.join("new").join(&path);
            let new = Stamp::of_file(&place).map_err(IsolationError::io(&place))?;
            let new = match (old, new) {
                (Some(old), Some(new)) if old.is_file() && new.is_file() => {
                    let permissions = Permissions::from_mode(mode_like(old.mode, new.mode));
                    fs::set_permissions(&place, permissions).map_err(IsolationError::io(&place))?;
                    Stamp::of(&place).map_err(IsolationError::io(&place))?
                }
                (_, new) => new,
            };
            steps.push(Step { path, old, new });
        }
        steps.sort_by(|a, b| (a.new.is_some(), &a.path).cmp(&(b.new.is_some(), &b.path)));
        let old = scratch.join("old");
        fs::create_dir_all(&old).map_err(IsolationError::io(&old))?;
        Ok(Self { root, scratch, steps, branch: None })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn scratch(&self) -> &Path {
        &self.scratch
    }

    /// Writes the journal: from now on a process that finds it undoes what was done.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn write_journal(&self) -> Result<(), IsolationError> {
        let path = self.scratch.join(JOURNAL);
        let temporary = self.scratch.join("journal.new");
        let text = serde_json::to_vec(self).map_err(|error| IsolationError::io(&path)(error.into()))?;
        fs::write(&temporary, text).map_err(IsolationError::io(&temporary))?;
        fs::rename(&temporary, &path).map_err(IsolationError::io(&path))
    }

    /// The journal that a killed process left in a scratch folder.
    pub(crate) fn read_journal(scratch: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(scratch.join(JOURNAL)).ok()?).ok()
    }

    /// Removes the journal: what was done stays.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn remove_journal(&self) -> Result<(), IsolationError> {
        fail_point::hit(Point::MergeDone);
        let path = self.scratch.join(JOURNAL);
        fs::remove_file(&path).map_err(IsolationError::io(&path))
    }

    /// Whether every step was carried out.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn is_done(&self) -> Result<bool, IsolationError> {
        for (number, step) in self.steps.iter().enumerate() {
            let waits = |path: &Path| Stamp::of_file(path).map_err(IsolationError::io(path));
            let done = waits(&self.old_place(number))?.is_some()
                || match (step.old, step.new) {
                    (_, Some(_)) => waits(&self.new_place(step))? != step.new,
                    (Some(_), None) => false,
                    (None, None) => true,
                };
            if !done {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Carries all steps out. On a refusal nothing is undone yet: see [`Self::undo`]. Blocks.
    ///
    /// # Errors
    /// [`Refusal`].
    pub(crate) fn carry_out(&self) -> Result<(), Refusal> {
        for (number, step) in self.steps.iter().enumerate() {
            self.carry_out_step(number, step)?;
            fail_point::hit(Point::MergeStep);
        }
        Ok(())
    }

    fn new_place(&self, step: &Step) -> PathBuf {
        self.scratch.join("new").join(&step.path)
    }

    fn old_place(&self, number: usize) -> PathBuf {
        self.scratch.join("old").join(number.to_string())
    }

    fn carry_out_step(&self, number: usize, step: &Step) -> Result<(), Refusal> {
        let target = self.root.join(&step.path);
        let changed = || Refusal::Changed(step.path.clone());
        let failed = |error: Errno| match error {
            Errno::NOENT | Errno::EXIST | Errno::NOTDIR | Errno::ISDIR | Errno::NOTEMPTY => changed(),
            other => Refusal::Failed(target.clone(), other.into()),
        };
        match (step.old, step.new) {
            (Some(old), Some(_)) => {
                let new = self.new_place(step);
                match renameat_with(CWD, &new, CWD, &target, RenameFlags::EXCHANGE) {
                    Ok(()) if is_now(&new, old) => Ok(()),
                    // It is undone with the others.
                    Ok(()) => Err(changed()),
                    Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                        self.move_out(number, &target, old)
                            .map_err(failed)?
                            .then_some(())
                            .ok_or_else(changed)?;
                        move_in(&new, &target).map_err(failed)
                    }
                    Err(error) => Err(failed(error)),
                }
            }
            (None, Some(_)) => {
                self.make_folders(&step.path).map_err(|error| Refusal::Failed(target.clone(), error))?;
                move_in(&self.new_place(step), &target).map_err(failed)
            }
            (Some(old), None) => {
                self.move_out(number, &target, old).map_err(failed)?.then_some(()).ok_or_else(changed)?;
                self.remove_empty_folders(&step.path);
                Ok(())
            }
            (None, None) => Ok(()),
        }
    }

    /// Moves a file of the user's to the scratch folder; false if it is not the one that was looked at.
    fn move_out(&self, number: usize, target: &Path, old: Stamp) -> Result<bool, Errno> {
        let place = self.old_place(number);
        renameat_with(CWD, target, CWD, &place, RenameFlags::empty())?;
        Ok(is_now(&place, old))
    }

    /// Makes the folders of a new file, which was checked to lead through no link.
    fn make_folders(&self, path: &Path) -> io::Result<()> {
        path.parent().map_or(Ok(()), |folder| fs::create_dir_all(self.root.join(folder)))
    }

    /// As git does after a deletion.
    fn remove_empty_folders(&self, path: &Path) {
        for folder in path.ancestors().skip(1).take_while(|folder| !folder.as_os_str().is_empty()) {
            if fs::remove_dir(self.root.join(folder)).is_err() {
                break;
            }
        }
    }

    /// Puts everything back that was replaced, by this process or by one that was killed: looks at each file for what has happened to it. Returns the files
    /// that somebody has changed since, and so stay. Blocks.
    ///
    /// # Errors
    /// The system's; it can be called again.
    pub(crate) fn undo(&self) -> Result<Vec<KeptFile>, IsolationError> {
        let mut kept = Vec::new();
        for (number, step) in self.steps.iter().enumerate().rev() {
            let target = self.root.join(&step.path);
            self.undo_step(number, step, &target, &mut kept).map_err(IsolationError::io(&target))?;
        }
        Ok(kept)
    }

    fn undo_step(
        &self,
        number: usize,
        step: &Step,
        target: &Path,
        kept: &mut Vec<KeptFile>,
    ) -> io::Result<()> {
        let (new, old) = (self.new_place(step), self.old_place(number));
        let is_ours = |stamp: Option<Stamp>| stamp.is_some() && stamp == step.new;
        let now = Stamp::of(target)?;
        if Stamp::of(&old)?.is_some() {
            // It was moved out: by a deletion, or where names cannot be exchanged.
            if is_ours(now) {
                fs::rename(target, &new)?;
            }
            self.make_folders(&step.path)?;
            return match move_in(&old, target) {
                Err(Errno::EXIST) => {
                    kept.push(KeptFile { path: step.path.clone(), old_content: old });
                    Ok(())
                }
                other => Ok(other?),
            };
        }
        match (step.old, Stamp::of_file(&new)?) {
            // The old file is where the new one was: they were exchanged.
            (Some(_), Some(waiting)) if Some(waiting) != step.new => {
                if is_ours(now) {
                    Ok(renameat_with(CWD, &new, CWD, target, RenameFlags::EXCHANGE)?)
                } else {
                    kept.push(KeptFile { path: step.path.clone(), old_content: new });
                    Ok(())
                }
            }
            (None, None) if is_ours(now) => {
                fs::rename(target, &new)?;
                self.remove_empty_folders(&step.path);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// The mode of a new file that replaces one: the old one's, executable as the new one is.
fn mode_like(old: u32, new: u32) -> u32 {
    let old = old & 0o777;
    if new & 0o100 == 0 { old & !0o111 } else { old | ((old & 0o444) >> 2) }
}

/// Whether a file that was moved is the one of the stamp.
fn is_now(path: &Path, stamp: Stamp) -> bool {
    Stamp::of(path).is_ok_and(|now| now == Some(stamp))
}

/// Moves a file to a place where nothing is.
fn move_in(from: &Path, to: &Path) -> Result<(), Errno> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            let errno = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
            fs::hard_link(from, to).map_err(errno)?;
            fs::remove_file(from).map_err(errno)
        }
        other => other,
    }
}

/// Looks whether the files of a merge can be where they are to be: no folder of theirs is a link or a file, unless the merge removes it. Returns
/// the stamps of what is there, or the file that is in the way. Blocks.
///
/// # Errors
/// The system's.
pub(crate) fn look(
    root: &Path,
    paths: &[PathBuf],
) -> Result<Result<Vec<Option<Stamp>>, PathBuf>, IsolationError> {
    let all: BTreeSet<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let mut stamps = Vec::with_capacity(paths.len());
    for path in paths {
        let is_plain =
            path.components().all(|part| matches!(part, Component::Normal(name) if name != ".git"));
        if !is_plain {
            return Ok(Err(path.clone()));
        }
        for folder in path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()) {
            let place = root.join(folder);
            let stamp = Stamp::of(&place).map_err(IsolationError::io(&place))?;
            if stamp.is_some_and(|stamp| !stamp.is_folder()) && !all.contains(folder) {
                return Ok(Err(folder.to_owned()));
            }
        }
        let place = root.join(path);
        stamps.push(Stamp::of(&place).map_err(IsolationError::io(&place))?);
    }
    Ok(Ok(stamps))
}

#[cfg(test)]
mod tests;
