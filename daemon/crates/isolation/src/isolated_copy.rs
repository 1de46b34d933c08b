//! Makes isolated copies and removes them.

use std::{
    collections::BTreeSet,
    fmt, fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use agentd_protocol::isolation::IsolationBackend;

use crate::{
    baseline::{self, UnitFiles},
    capture::{self, CaptureOptions},
    changes::Captured,
    error::{IsolationError, blocking},
    git::{Git, args},
    leftovers::{self, Leftover},
    merge_lock, objects,
    populate::{self, Population},
    record::{CopiedUnit, CopyFolder, CopyRecord},
    removal::remove,
    repository::{self, Contents, Repository},
};

/// Makes isolated copies.
#[derive(Debug)]
pub struct Isolation;

/// What a copy is made of.
#[derive(Debug, Clone)]
pub struct IsolationOptions {
    /// Runs git.
    pub git: Git,
    /// The session's folder, absolute, in the repository to copy.
    pub cwd: PathBuf,
    /// The id of the task: 1 to 100 letters, digits, `_`, `-`, `.`.
    pub id: String,
    /// How the copy is made.
    pub backend: IsolationBackend,
    /// Folders of the repository that the copy has as symbolic links to the original, such as `node_modules`. Those that git tracks, or that are not there, are
    /// passed over.
    pub links: Vec<String>,
    /// The folder that copies are made in, private to the user and outside of the repository. It is created.
    pub base_dir: PathBuf,
}

/// How a copy was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// All files, also ignored ones, as clones that share their blocks with the originals.
    Reflink,
    /// Copies of the files that git tracks or would add.
    Worktree,
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reflink => "reflink",
            Self::Worktree => "worktree",
        })
    }
}

/// A copy of a repository, and of those inside it.
///
/// It is removed when it is dropped, with all changes that were not captured; [`Self::remove`] does the same and tells of errors.
#[derive(Debug)]
pub struct IsolatedCopy {
    pub(crate) git: Git,
    pub(crate) record: CopyRecord,
    pub(crate) folder: Arc<CopyFolder>,
    /// The child's folder below the copy's root.
    below: PathBuf,
    backend: Backend,
    backend_reason: Option<String>,
    notices: Vec<String>,
    leftovers: Vec<Leftover>,
    /// Whether the copy stays when this is dropped.
    pub(crate) keeps: bool,
    removed: bool,
}

impl Isolation {
    /// Copies the repository that a folder is in, as it is: its commit, what is staged, changed and untracked, and the
    /// repositories inside it. Before that, what killed daemons left behind in `base_dir` and in this repository is cleared away.
    ///
    /// # Errors
    /// [`IsolationError`]; nothing of the copy is left then.
    ///
    /// Cancel safety: if dropped, what has been made is removed.
    pub async fn begin(options: IsolationOptions) -> Result<IsolatedCopy, IsolationError> {
        check_id(&options.id)?;
        repository::check_version(&options.git, &options.cwd).await?;
        let (root, below) = Repository::find(&options.git, &options.cwd).await?;
        merge_lock::recover(&options.git, &root).await?;
        let left = leftovers::clear(&options.git, &options.base_dir).await?;
        let contents = root.all(&options.git).await?;
        for unit in &contents {
            baseline::check_size(&options.git, unit).await?;
        }
        let mut copy = IsolatedCopy::create(&options, &contents, below, left).await?;
        for (number, unit) in contents.iter().enumerate() {
            copy.add(&options, unit, number).await?;
        }
        copy.complete().await?;
        Ok(copy)
    }
}

/// Ids name files and branches.
pub(crate) fn check_id(id: &str) -> Result<(), IsolationError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let is_good = (1..=100).contains(&id.len())
        && id.bytes().all(is_plain)
        && !id.starts_with(['.', '-'])
        && !id.ends_with('.')
        && !id.contains("..")
        && !Path::new(id).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("lock"));
    if is_good { Ok(()) } else { Err(IsolationError::BadId { id: id.to_owned() }) }
}

impl IsolatedCopy {
    /// The child's working folder: the copy of the session's.
    #[must_use]
    pub fn cwd(&self) -> PathBuf {
        self.record.work.join(&self.below)
    }

    /// The copy of the repository's folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.record.work
    }

    /// The id of the task.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.record.id
    }

    /// How it was made.
    #[must_use]
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// Why it is no copy that shares its blocks with the original; `None` if it is, or was not to be.
    #[must_use]
    pub fn backend_reason(&self) -> Option<&str> {
        self.backend_reason.as_deref()
    }

    /// What is not in the copy, in sentences without a full stop.
    #[must_use]
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Copies of killed daemons that were found, and what became of them.
    #[must_use]
    pub fn leftovers(&self) -> &[Leftover] {
        &self.leftovers
    }

    /// Captures what was changed since the copy was made. Everything that git ignores is left out. The copy stays as it is; call
    /// [`Self::remove`] next.
    ///
    /// # Errors
    /// [`IsolationError::NotCaptured`]: then the copy stays also when this is dropped, so that nothing is lost.
    ///
    /// Cancel safety: if dropped, it may be called again; a patch file or a branch may be there already.
    pub async fn capture(&mut self, options: &CaptureOptions) -> Result<Captured, IsolationError> {
        match capture::capture(&self.git, &self.record, &self.folder, options).await {
            Ok(captured) => Ok(captured),
            Err(source) => {
                self.keeps = true;
                Err(IsolationError::NotCaptured { copy: self.record.work.clone(), source: Box::new(source) })
            }
        }
    }

    /// Removes the copy, with all changes that were not captured.
    ///
    /// # Errors
    /// The system's; what is left is removed at a later [`Isolation::begin`].
    ///
    /// Cancel safety: if dropped, it continues.
    pub async fn remove(mut self) -> Result<(), IsolationError> {
        self.removed = true;
        let (folder, record) = (Arc::clone(&self.folder), self.record.clone());
        blocking(move || remove(&folder, &record)).await
    }

    async fn create(
        options: &IsolationOptions,
        all: &[Contents],
        below: PathBuf,
        leftovers: Vec<Leftover>,
    ) -> Result<Self, IsolationError> {
        let (base, id) = (options.base_dir.clone(), options.id.clone());
        let folder = blocking(move || CopyFolder::create(&base, &id)).await?;
        let outermost = &all[0];
        // Programs see the folder's name, some name what they build after it.
        let name = outermost.repository.root.file_name().unwrap_or("repository".as_ref());
        let work = folder.path.join("work").join(name);
        let common_dirs = all.iter().map(|unit| unit.repository.common_dir.clone()).collect();
        let record = CopyRecord { id: options.id.clone(), work, common_dirs, units: Vec::new() };
        let mut copy = Self {
            git: options.git.clone(),
            record,
            folder: Arc::new(folder),
            below,
            backend: Backend::Worktree,
            backend_reason: None,
            notices: Vec::new(),
            leftovers,
            keeps: false,
            removed: false,
        };
        copy.folder.write(&copy.record)?;
        if options.backend != IsolationBackend::Worktree {
            let (root, files) = (outermost.repository.root.clone(), outermost.files.clone());
            let target = copy.folder.path.clone();
            let probed = blocking(move || Ok(populate::probe_clone(&root, &files, &target))).await?;
            match probed {
                Ok(()) => copy.backend = Backend::Reflink,
                Err(reason) if options.backend == IsolationBackend::Reflink => {
                    return Err(IsolationError::NoReflink { reason });
                }
                Err(reason) => copy.backend_reason = Some(reason),
            }
        }
        Ok(copy)
    }

    /// Copies one repository.
    async fn add(
        &mut self,
        options: &IsolationOptions,
        contents: &Contents,
        number: usize,
    ) -> Result<(), IsolationError> {
        let repository = &contents.repository;
        let work = self.record.work.join(&repository.below);
        let add = args!["worktree", "add", "--quiet", "--detach", "--no-checkout", "--", work, contents.head];
        repository.place(&options.git).run(add).await?;
        let mut unit = CopiedUnit {
            repository: repository.clone(),
            worktree_dir: worktree_dir(&work)?,
            work,
            head: contents.head.clone(),
            baseline: String::new(),
            excluded: contents.nested.clone(),
            number,
        };
        let links = if number == 0 { baseline::usable_links(contents, &options.links) } else { Vec::new() };
        let mut excluded: BTreeSet<PathBuf> = contents.nested.iter().chain(&links).cloned().collect();
        if let Ok(inside) = options.base_dir.strip_prefix(&repository.root) {
            excluded.insert(inside.to_owned());
        }
        let mut folders: Vec<_> =
            contents.gitlinks.iter().filter(|path| !contents.nested.contains(path)).cloned().collect();
        if number == 0 && !self.below.as_os_str().is_empty() {
            folders.push(self.below.clone());
        }
        let population = Population {
            from: repository.root.clone(),
            to: unit.work.clone(),
            files: contents.files.clone(),
            folders,
            clones_all: self.backend == Backend::Reflink,
            excluded,
        };
        let (objects, common) = (self.files(&unit).objects(), repository.common_dir.clone());
        unit.excluded.extend(links.iter().cloned());
        let notices = blocking(move || {
            objects::create(&objects, &common)?;
            let notices = populate::populate(&population)?;
            populate::link(&population.from, &population.to, &links)?;
            Ok(notices)
        })
        .await?;
        self.notices.extend(notices);
        baseline::copy_index(&options.git, repository, &unit).await?;
        unit.baseline = baseline::take(&options.git, &unit, &self.files(&unit)).await?;
        self.record.units.push(unit);
        Ok(())
    }

    /// Notes that the copy is complete: from now on somebody may work in it.
    async fn complete(&mut self) -> Result<(), IsolationError> {
        self.folder.write(&self.record)
    }

    pub(crate) fn files(&self, unit: &CopiedUnit) -> UnitFiles {
        UnitFiles(self.folder.unit(unit.number))
    }
}

impl Drop for IsolatedCopy {
    fn drop(&mut self) {
        if self.removed || self.keeps {
            return;
        }
        let (folder, record) = (Arc::clone(&self.folder), self.record.clone());
        let remove = move || {
            if let Err(error) = remove(&folder, &record) {
                tracing::warn!(%error, folder = %folder.path.display(), "an isolated copy could not be removed");
            }
        };
        // A copy can have many files.
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(remove)),
            Err(_) => remove(),
        }
    }
}

/// The folder that git keeps about a worktree, by the file that git has just written there.
fn worktree_dir(work: &Path) -> Result<PathBuf, IsolationError> {
    let path = work.join(".git");
    let text = fs::read(&path).map_err(IsolationError::io(&path))?;
    let line = text.strip_prefix(b"gitdir: ").unwrap_or(&text);
    Ok(crate::tree_paths::path_of(line.strip_suffix(b"\n").unwrap_or(line)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_names_of_files_and_branches() {
        for good in ["a", "Parent.Child-2", "x_1", &"a".repeat(100)] {
            assert!(check_id(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "..", "a..b", "-x", ".x", "x.", "a/b", "ä", "x.lock", "a b", &"a".repeat(101)] {
            assert!(matches!(check_id(bad), Err(IsolationError::BadId { .. })), "{bad}");
        }
    }
}
