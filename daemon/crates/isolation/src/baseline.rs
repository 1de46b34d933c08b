//! The state that a copy begins with: its limits, and the tree of all its files that later changes are compared with.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use crate::{
    error::{IsolationError, blocking},
    git::{Git, GitPlace, args},
    record::CopiedUnit,
    repository::{Contents, Repository},
    tree_paths,
};

/// The most bytes of changed files, and of untracked files, of one repository: 1 GiB.
const MOST_BYTES: u64 = 1 << 30;

/// Refuses repositories whose changed or untracked files are too large to be copied and compared.
///
/// # Errors
/// [`IsolationError::TooLarge`], and those of git.
pub(crate) async fn check_size(git: &Git, contents: &Contents) -> Result<(), IsolationError> {
    let diff =
        args!["diff", "--name-only", "-z", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all"];
    let changed = contents.repository.place(git).run(diff).await?;
    let untracked = contents.untracked.clone();
    let root = contents.repository.root.clone();
    blocking(move || {
        let changed: Vec<_> = tree_paths::split(&changed).map(tree_paths::path_of).collect();
        for (what, files) in [("changed", changed), ("untracked", untracked)] {
            let lengths = files.iter().filter_map(|file| fs::symlink_metadata(root.join(file)).ok());
            let bytes: u64 = lengths.filter(fs::Metadata::is_file).map(|about| about.len()).sum();
            if bytes > MOST_BYTES {
                return Err(IsolationError::TooLarge { root, what, bytes, limit: MOST_BYTES });
            }
        }
        Ok(())
    })
    .await
}

/// Gives the copy the original's index, so that the child sees what is staged, and brings its times up to date.
///
/// # Errors
/// [`IsolationError`].
pub(crate) async fn copy_index(
    git: &Git,
    repository: &Repository,
    unit: &CopiedUnit,
) -> Result<(), IsolationError> {
    let (from, to) = (repository.git_dir.clone(), unit.worktree_dir.clone());
    let has_index = blocking(move || {
        let entries = fs::read_dir(&from).map_err(IsolationError::io(&from))?;
        // A split index has its other part in a file of its own.
        let shared = entries.flatten().map(|entry| entry.file_name());
        for name in shared.filter(|name| name.as_bytes().starts_with(b"sharedindex.")) {
            copy_with_time(&from.join(&name), &to.join(&name))?;
        }
        copy_with_time(&from.join("index"), &to.join("index"))
    })
    .await?;
    if has_index {
        let refresh = args!["update-index", "-q", "--refresh"];
        // Its exit code says that files differ, which is no failure.
        unit.place(git).attempt(refresh, Vec::new()).await?;
    }
    Ok(())
}

/// Copies an index with its time, by which git knows which of its entries to look at again. False if there is none. Blocks.
///
/// # Errors
/// The system's.
pub(crate) fn copy_with_time(from: &Path, to: &Path) -> Result<bool, IsolationError> {
    let copy = || {
        let modified = fs::metadata(from)?.modified()?;
        fs::copy(from, to)?;
        fs::File::options().write(true).open(to)?.set_modified(modified)
    };
    match copy() {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(IsolationError::io(from)(error)),
    }
}

impl CopiedUnit {
    /// git in the copy. It is told where everything is: what the child may have done to the copy's `.git` is not looked at.
    pub(crate) fn place(&self, git: &Git) -> GitPlace {
        git.at(&self.work).with_repository(&self.worktree_dir)
    }
}

/// The files of a unit's own beside the copy.
#[derive(Debug, Clone)]
pub(crate) struct UnitFiles(pub(crate) PathBuf);

impl UnitFiles {
    pub(crate) fn objects(&self) -> PathBuf {
        self.0.join("objects")
    }

    fn baseline_index(&self) -> PathBuf {
        self.0.join("baseline.index")
    }

    pub(crate) fn index(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.index"))
    }
}

/// Makes the tree of all files of the copy. Only what differs from its index is read.
///
/// # Errors
/// [`IsolationError`].
pub(crate) async fn take(git: &Git, unit: &CopiedUnit, files: &UnitFiles) -> Result<String, IsolationError> {
    let index = files.baseline_index();
    let (from, to) = (unit.worktree_dir.join("index"), index.clone());
    blocking(move || copy_with_time(&from, &to).map(drop)).await?;
    let place = unit.place(git).with_index(&index).with_objects(&files.objects());
    clear_marks(&place).await?;
    add_all(&place, &unit.excluded).await?;
    place.object(args!["write-tree"]).await
}

/// The tree of all files of the copy as they are now.
///
/// # Errors
/// [`IsolationError`].
pub(crate) async fn take_again(
    git: &Git,
    unit: &CopiedUnit,
    files: &UnitFiles,
) -> Result<(String, Vec<PathBuf>), IsolationError> {
    let index = files.index("captured");
    let (from, to) = (files.baseline_index(), index.clone());
    blocking(move || copy_with_time(&from, &to).map(drop)).await?;
    let place = unit.place(git).with_index(&index).with_objects(&files.objects());
    let others = place.run(args!["ls-files", "--others", "--exclude-standard", "-z"]).await?;
    let folders = tree_paths::split(&others).filter_map(|path| path.strip_suffix(b"/"));
    let new: Vec<PathBuf> =
        folders.map(tree_paths::path_of).filter(|path| !unit.excluded.contains(path)).collect();
    let excluded: Vec<PathBuf> = unit.excluded.iter().chain(&new).cloned().collect();
    add_all(&place, &excluded).await?;
    Ok((place.object(args!["write-tree"]).await?, new))
}

/// Takes the marks away from an index by which git would not look at files.
///
/// # Errors
/// [`IsolationError`].
pub(crate) async fn clear_marks(place: &GitPlace) -> Result<(), IsolationError> {
    let list = place.run(args!["ls-files", "-s", "-v", "-z"]).await?;
    let marked = |wanted: fn(u8) -> bool| {
        let entries = tree_paths::index_entries(&list).filter(|entry| wanted(entry.mark));
        tree_paths::joined(entries.map(|entry| entry.path))
    };
    let assumed = marked(|mark| mark.is_ascii_lowercase());
    let skipped = marked(|mark| mark.eq_ignore_ascii_case(&b'S'));
    for (option, paths) in [("--no-assume-unchanged", assumed), ("--no-skip-worktree", skipped)] {
        if !paths.is_empty() {
            place.run_with(args!["update-index", option, "-z", "--stdin"], paths).await?;
        }
    }
    Ok(())
}

async fn add_all(place: &GitPlace, excluded: &[PathBuf]) -> Result<(), IsolationError> {
    let mut words = args!["add", "--all", "--", "."];
    words.extend(excluded.iter().map(|path| {
        let mut word = OsString::from(":(exclude,literal)");
        word.push(path.as_os_str());
        word
    }));
    place.run(words).await.map(drop)
}

/// The names of `links` that are ignored or unknown folders of the original: nothing that git tracks is replaced by a link.
pub(crate) fn usable_links(contents: &Contents, links: &[String]) -> Vec<PathBuf> {
    let is_plain = |path: &Path| {
        path.components()
            .all(|part| matches!(part, std::path::Component::Normal(name) if name != OsStr::new(".git")))
    };
    let candidates =
        links.iter().map(PathBuf::from).filter(|path| !path.as_os_str().is_empty() && is_plain(path));
    let root = &contents.repository.root;
    let present =
        candidates.filter(|path| fs::symlink_metadata(root.join(path)).is_ok_and(|about| about.is_dir()));
    let unknown = present.filter(|path| !contents.files.iter().any(|file| file.starts_with(path)));
    unknown.filter(|path| !contents.gitlinks.contains(path) && !contents.nested.contains(path)).collect()
}
