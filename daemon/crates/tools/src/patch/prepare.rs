//! Reads the files of a diff, and finds what becomes of them.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use agentd_agent::ToolError;

use super::{
    parse::{DiffTarget, FileDiff, Hunk},
    place::place,
};
use crate::{
    edit::{Change, TextFile, apply, normalized_text, unreachable_file, with_line_endings},
    file_changes::FileChange,
    operations::{FileKind, FileSystem},
    truncate::format_size,
};

/// The most files of one diff.
pub(super) const MAX_FILES: usize = 500;

/// The most bytes of their texts, before and after: 64 MiB.
const MAX_BYTES: usize = 64 << 20;

/// The byte order mark, which a diff repeats in the first line.
const BOM: char = '\u{feff}';

/// A file of a diff, and where it is.
#[derive(Debug, Clone)]
pub(super) struct PatchedFile {
    pub(super) diff: FileDiff,
    /// As the session resolves its name.
    pub(super) path: PathBuf,
    /// Where it goes, for one that is renamed.
    pub(super) to: Option<PathBuf>,
}

/// A file that is ready to be changed.
#[derive(Debug)]
pub(super) struct PreparedFile {
    /// Its name in results.
    pub(super) shown: String,
    pub(super) target: DiffTarget,
    pub(super) path: PathBuf,
    /// Where it was, of one that is renamed.
    pub(super) from: Option<PathBuf>,
    pub(super) hunks: usize,
    pub(super) sets_mode: bool,
    /// The texts before and after, with line feeds only; both empty for one that is only renamed.
    pub(super) old: String,
    pub(super) new: String,
    pub(super) changes: Vec<Change>,
    /// The files that are to be judged, with what they would contain.
    pub(super) judged: Vec<(PathBuf, String)>,
    /// In their order.
    pub(super) steps: Vec<FileChange>,
}

/// Prepares all files of a diff. Blocks.
///
/// # Errors
/// The first file that cannot be changed so, and why.
pub(super) fn prepare(
    files: &dyn FileSystem,
    patched: &[PatchedFile],
    cwd: &Path,
    is_aborted: &dyn Fn() -> bool,
) -> Result<Vec<PreparedFile>, ToolError> {
    let cwd = files.real_path(cwd).unwrap_or_else(|_| cwd.to_owned());
    let mut place = FilePlace { files, cwd, seen: BTreeSet::new() };
    let (mut prepared, mut bytes) = (Vec::with_capacity(patched.len()), 0);
    for file in patched {
        if is_aborted() {
            return Err(crate::blocking::aborted());
        }
        let one = place.prepare(file)?;
        bytes += one.old.len() + one.new.len();
        if bytes > MAX_BYTES {
            let limit = format_size(MAX_BYTES as u64);
            return Err(ToolError(format!(
                "The texts of the files are longer than {limit} together; make several diffs"
            )));
        }
        prepared.push(one);
    }
    Ok(prepared)
}

/// The files, and those of them that the diff has named so far.
struct FilePlace<'a> {
    files: &'a dyn FileSystem,
    /// The session's folder, without links.
    cwd: PathBuf,
    seen: BTreeSet<PathBuf>,
}

impl FilePlace<'_> {
    fn prepare(&mut self, file: &PatchedFile) -> Result<PreparedFile, ToolError> {
        let PatchedFile { diff, path, to } = file;
        let name = diff.target.name();
        let real = self.real(path, name)?;
        let mut prepared = PreparedFile {
            shown: name.to_owned(),
            target: diff.target.clone(),
            path: path.clone(),
            from: None,
            hunks: diff.hunks.len(),
            sets_mode: diff.sets_mode,
            old: String::new(),
            new: String::new(),
            changes: Vec::new(),
            judged: Vec::new(),
            steps: Vec::new(),
        };
        match (&diff.target, to) {
            (DiffTarget::Create(_), _) => {
                self.check_free(&real, name)?;
                let content = new_content(&diff.hunks);
                prepared.judged.push((path.clone(), content.clone()));
                prepared.new = normalized_text(&content).into_owned();
                prepared.changes.push(Change { range: 0..0, text: prepared.new.clone() });
                prepared.steps.push(FileChange::Write {
                    path: real,
                    content: content.into_bytes(),
                    before: None,
                });
            }
            (DiffTarget::Change(_), _) => {
                let (file, content) = self.changed(&real, &mut prepared, &diff.hunks)?;
                prepared.judged.push((path.clone(), content.clone()));
                prepared.steps.push(FileChange::Write {
                    path: real,
                    content: content.into_bytes(),
                    before: Some(file.into_read()),
                });
            }
            (DiffTarget::Remove(_), _) => {
                self.check_no_link(path, &real, name)?;
                let (file, content) = self.changed(&real, &mut prepared, &diff.hunks)?;
                if !content.is_empty() {
                    return Err(ToolError(format!(
                        "{name} has lines that are not in the diff, which removes the file: read it, and make the diff of all of its lines"
                    )));
                }
                prepared.judged.push((path.clone(), content));
                prepared.steps.push(FileChange::Remove { path: real, before: file.into_read() });
            }
            (DiffTarget::Rename { to: new_name, .. }, Some(to)) => {
                self.check_no_link(path, &real, name)?;
                let real_to = self.real(to, new_name)?;
                self.check_free(&real_to, new_name)?;
                let mut content = String::new();
                if diff.hunks.is_empty() {
                    self.check_file(&real, name)?;
                } else {
                    let (file, changed) = self.changed(&real, &mut prepared, &diff.hunks)?;
                    content = changed;
                    prepared.steps.push(FileChange::Write {
                        path: real.clone(),
                        content: content.clone().into_bytes(),
                        before: Some(file.into_read()),
                    });
                }
                prepared.judged.extend([(path.clone(), String::new()), (to.clone(), content)]);
                prepared.steps.push(FileChange::Move { from: real, to: real_to });
                prepared.shown = format!("{name} → {new_name}");
                prepared.from = Some(std::mem::replace(&mut prepared.path, to.clone()));
            }
            (DiffTarget::Rename { .. }, None) => {
                return Err(ToolError(format!("{name} is renamed without a new name")));
            }
        }
        Ok(prepared)
    }

    /// The file without links, once.
    fn real(&mut self, path: &Path, name: &str) -> Result<PathBuf, ToolError> {
        let real = self.files.real_path(path).map_err(|error| unreachable_file(name, &error))?;
        self.files.may_write(&real).map_err(|error| ToolError(error.to_string()))?;
        if !self.seen.insert(real.clone()) {
            return Err(ToolError(format!(
                "{name} is in the diff more than once: put all hunks of a file below one pair of names"
            )));
        }
        Ok(real)
    }

    /// A file with its hunks applied, and the content that it gets.
    fn changed(
        &self,
        real: &Path,
        prepared: &mut PreparedFile,
        hunks: &[Hunk],
    ) -> Result<(TextFile, String), ToolError> {
        let name = prepared.target.name();
        let file = TextFile::read(self.files, real, name)?;
        let old = normalized_text(file.text()).into_owned();
        let hunks: Vec<Hunk> = hunks.iter().map(|hunk| without_mark(hunk, &file)).collect();
        // What a file outside of the session's folder holds is not told: reading it may not be allowed.
        let is_quoted = real.starts_with(&self.cwd);
        let changes = place(&old, &hunks).map_err(|misfit| ToolError(misfit.message(name, is_quoted)))?;
        if changes.is_empty() && matches!(prepared.target, DiffTarget::Change(_)) {
            return Err(ToolError(format!(
                "No changes made to {name}: the new lines of the diff are the old ones"
            )));
        }
        let content = file.with_text(with_line_endings(file.text(), &changes));
        prepared.new = apply(&old, &changes);
        prepared.old = old;
        prepared.changes = changes;
        // A file that becomes empty has no mark either.
        let content = if prepared.new.is_empty() { String::new() } else { content };
        Ok((file, content))
    }

    fn check_free(&self, real: &Path, name: &str) -> Result<(), ToolError> {
        if self.files.about(real).is_err() {
            return Ok(());
        }
        Err(ToolError(format!(
            "{name} is there already, and the diff makes it: make a diff of what it has now, or use write"
        )))
    }

    fn check_file(&self, real: &Path, name: &str) -> Result<(), ToolError> {
        match self.files.about(real) {
            Ok(about) if about.kind == FileKind::File => Ok(()),
            Ok(_) => Err(ToolError(format!("{name} is not a regular file"))),
            Err(error) => Err(unreachable_file(name, &error)),
        }
    }

    /// A link is not what a diff removes or renames: it would be the file that it leads to.
    fn check_no_link(&self, path: &Path, real: &Path, name: &str) -> Result<(), ToolError> {
        let in_folder = path
            .parent()
            .zip(path.file_name())
            .and_then(|(folder, name)| Some(self.files.real_path(folder).ok()?.join(name)));
        match in_folder {
            Some(itself) if itself != real => {
                Err(ToolError(format!("{name} is a symbolic link: use bash to remove or rename it")))
            }
            _ => Ok(()),
        }
    }
}

/// The hunk without the byte order mark, where the file has one.
fn without_mark(hunk: &Hunk, file: &TextFile) -> Hunk {
    let mut hunk = hunk.clone();
    for line in &mut hunk.lines {
        if line.text.starts_with(BOM) {
            line.text = file.without_mark(&line.text).to_owned();
        }
    }
    hunk
}

/// The content of a new file, with the line endings that the diff has.
fn new_content(hunks: &[Hunk]) -> String {
    let mut content = String::new();
    for hunk in hunks {
        for line in &hunk.lines {
            content.push_str(&line.text);
            content.push('\n');
        }
        if hunk.new_is_open {
            content.pop();
        }
    }
    content
}
