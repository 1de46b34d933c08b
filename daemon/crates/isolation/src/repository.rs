//! Finds the repository of a folder, and the repositories inside it.

use std::{
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    error::{IsolationError, blocking},
    git::{Git, GitPlace, args},
    tree_paths::{self, GITLINK, IndexEntry},
};

/// The most nested repositories of one copy.
const MOST_NESTED: usize = 100;

/// The oldest version of git with all options that are used: `apply --cached --3way`.
const OLDEST_GIT: (u32, u32) = (2, 32);

/// A repository: that of the session's folder, or one inside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Repository {
    /// Below the outermost repository; empty for that one.
    #[serde(with = "crate::record::path_bytes")]
    pub(crate) below: PathBuf,
    /// The folder of its working files.
    #[serde(with = "crate::record::path_bytes")]
    pub(crate) root: PathBuf,
    /// The folder of its own files; for a linked worktree that of the worktree.
    #[serde(with = "crate::record::path_bytes")]
    pub(crate) git_dir: PathBuf,
    /// The folder that all its worktrees share.
    #[serde(with = "crate::record::path_bytes")]
    pub(crate) common_dir: PathBuf,
}

/// A repository, and what it holds.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) repository: Repository,
    /// Its commit.
    pub(crate) head: String,
    /// Files that git tracks, and files that it neither tracks nor ignores, below the root.
    pub(crate) files: Vec<PathBuf>,
    /// The untracked ones of them.
    pub(crate) untracked: Vec<PathBuf>,
    /// Folders of nested repositories that git tracks (submodules), also of those that are not checked out.
    pub(crate) gitlinks: Vec<PathBuf>,
    /// The nested repositories directly in it, below its root.
    pub(crate) nested: Vec<PathBuf>,
}

impl Repository {
    /// The repository that a folder is in, and the folder below its root.
    ///
    /// # Errors
    /// [`IsolationError::NoRepository`], and those of git.
    pub(crate) async fn find(git: &Git, cwd: &Path) -> Result<(Self, PathBuf), IsolationError> {
        let place = git.at(cwd);
        let found = place.line(args!["rev-parse", "--show-toplevel"]).await;
        let root = match found {
            Ok(root) => PathBuf::from(root),
            Err(error @ IsolationError::Git { .. }) => {
                return Err(IsolationError::NoRepository { cwd: cwd.to_owned(), said: error.said() });
            }
            Err(other) => return Err(other),
        };
        let below = PathBuf::from(place.line(args!["rev-parse", "--show-prefix"]).await?);
        Ok((Self::at(git, root, PathBuf::new()).await?, below))
    }

    /// The repository whose working files are in `root`.
    ///
    /// # Errors
    /// Those of git.
    pub(crate) async fn at(git: &Git, root: PathBuf, below: PathBuf) -> Result<Self, IsolationError> {
        let place = git.at(&root);
        let git_dir = PathBuf::from(place.line(args!["rev-parse", "--absolute-git-dir"]).await?);
        let common = place.line(args!["rev-parse", "--path-format=absolute", "--git-common-dir"]).await?;
        Ok(Self { below, root, git_dir, common_dir: PathBuf::from(common) })
    }

    /// git in this repository.
    pub(crate) fn place(&self, git: &Git) -> GitPlace {
        git.at(&self.root).with_repository(&self.git_dir)
    }

    /// The repository's index, which need not exist.
    pub(crate) fn index(&self) -> PathBuf {
        self.git_dir.join("index")
    }

    /// The repository and all that are inside it, outermost first.
    ///
    /// # Errors
    /// [`IsolationError`]: a repository without a commit, a broken one, too many.
    pub(crate) async fn all(self, git: &Git) -> Result<Vec<Contents>, IsolationError> {
        let outermost = self.root.clone();
        let mut open = vec![self];
        let mut all = Vec::new();
        while let Some(repository) = open.pop() {
            let contents = repository.contents(git).await?;
            for nested in contents.nested.iter().rev() {
                let root = contents.repository.root.join(nested);
                let below = contents.repository.below.join(nested);
                open.push(nested_at(git, root, below).await?);
            }
            all.push(contents);
            if all.len() + open.len() > MOST_NESTED + 1 {
                return Err(IsolationError::TooManyRepositories { root: outermost, limit: MOST_NESTED });
            }
        }
        Ok(all)
    }

    async fn contents(self, git: &Git) -> Result<Contents, IsolationError> {
        let place = self.place(git);
        let head =
            place.attempt(args!["rev-parse", "--verify", "--quiet", "HEAD^{commit}"], Vec::new()).await?;
        if !head.exit.success() {
            return Err(IsolationError::NoCommit { root: self.root });
        }
        let head = String::from_utf8_lossy(&head.output).trim().to_owned();
        let index = place.run(args!["ls-files", "-s", "-v", "-z"]).await?;
        let others = place.run(args!["ls-files", "--others", "--exclude-standard", "-z"]).await?;
        blocking(move || Ok(Contents::read(self, head, &index, &others))).await
    }
}

impl Contents {
    /// Sorts what git lists. Blocks for a look at each tracked nested repository.
    fn read(repository: Repository, head: String, index: &[u8], others: &[u8]) -> Self {
        let (mut files, mut untracked, mut gitlinks, mut nested) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut last: &[u8] = &[];
        for IndexEntry { mode, path, .. } in tree_paths::index_entries(index) {
            // An unmerged file has several entries, one after the other.
            if path == last {
                continue;
            }
            last = path;
            let file = tree_paths::path_of(path);
            if mode != GITLINK {
                files.push(file);
                continue;
            }
            if fs::symlink_metadata(repository.root.join(&file).join(".git")).is_ok() {
                nested.push(file.clone());
            }
            gitlinks.push(file);
        }
        for path in tree_paths::split(others) {
            match path {
                // git does not look into a repository, and lists it as a folder.
                [folder @ .., b'/'] => nested.push(PathBuf::from(OsStr::from_bytes(folder))),
                file => untracked.push(tree_paths::path_of(file)),
            }
        }
        files.extend(untracked.iter().cloned());
        Self { repository, head, files, untracked, gitlinks, nested }
    }
}

/// A nested repository; an error if git finds another one there.
async fn nested_at(git: &Git, root: PathBuf, below: PathBuf) -> Result<Repository, IsolationError> {
    let broken = |said| IsolationError::BrokenRepository { path: root.clone(), said };
    let found = match git.at(&root).line(args!["rev-parse", "--show-toplevel"]).await {
        Ok(found) => PathBuf::from(found),
        Err(error) => return Err(broken(error.said())),
    };
    if found != root {
        return Err(broken(format!("git takes it for a part of {}", found.display())));
    }
    Repository::at(git, root, below).await
}

/// Checks that git is there and new enough.
///
/// # Errors
/// [`IsolationError::NoGit`], [`IsolationError::OldGit`].
pub(crate) async fn check_version(git: &Git, cwd: &Path) -> Result<(), IsolationError> {
    let said = git.at(cwd).line(args!["version"]).await?.to_string_lossy().into_owned();
    // A text that cannot be read is no reason to refuse: a command that is missing fails by itself.
    match version(&said) {
        Some(found) if found < OLDEST_GIT => Err(IsolationError::OldGit { found: said }),
        _ => Ok(()),
    }
}

fn version(said: &str) -> Option<(u32, u32)> {
    let number = said.split_whitespace().nth(2)?;
    let mut parts = number.split('.').map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        assert_eq!(version("git version 2.47.3"), Some((2, 47)));
        assert_eq!(version("git version 2.32.0 (Apple Git-132)"), Some((2, 32)));
        assert_eq!(version("git version three"), None);
        assert!(version("git version 2.9.1").unwrap() < OLDEST_GIT && (2, 40) > OLDEST_GIT);
    }
}
