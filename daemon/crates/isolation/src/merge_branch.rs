//! Brings the commits of a branch onto the user's branch, and into the working files.
//!
//! All is computed beforehand: the commits on top of the user's, the user's index with their changes, and the working files with
//! them, each by a three-way merge. Only when everything fits are the files replaced, then the branch moved, then the index replaced.

use std::{
    fs::{self, OpenOptions, Permissions},
    io::{self, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use agentd_files::fail_point::{self, Point};

use crate::{
    baseline,
    commits::{self, Apply, Conflict},
    error::{IsolationError, blocking},
    git::{GitPlace, args},
    merge_lock,
    merge_patch::{self, Merged, Plan},
    objects::{self, Scratch},
    repository::Repository,
    working_files::{BranchMove, Replacements, Stamp},
};

/// The most commits that are brought over one by one.
const MOST_COMMITS: usize = 1000;

/// What git leaves in a repository while an operation of the user's waits to be continued.
const OPERATIONS: [(&str, &str); 6] = [
    ("MERGE_HEAD", "a merge"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
    ("BISECT_LOG", "a bisection"),
];

/// The branch of a task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TaskBranch<'a> {
    pub(crate) name: &'a str,
    pub(crate) base: &'a str,
    pub(crate) tip: &'a str,
}

/// Merges a branch: all of it, or nothing. Then the branch is deleted. The caller has the repository's lock, and does not drop the future.
///
/// # Errors
/// [`IsolationError`]; nothing was touched.
pub(crate) async fn merge(
    place: &GitPlace,
    repository: &Repository,
    branch: TaskBranch<'_>,
) -> Result<Merged, IsolationError> {
    for (file, operation) in OPERATIONS {
        if repository.git_dir.join(file).exists() {
            let said = format!("{operation} of yours is under way in {}", repository.root.display());
            return Ok(Merged::Conflict(Conflict { files: Vec::new(), said }));
        }
    }
    let scratch = merge_patch::scratch(repository).await?;
    let place = place.clone().with_objects(&scratch.objects());
    let head = place.object(args!["rev-parse", "--verify", "HEAD"]).await?;
    let work = Work { place: &place, repository, scratch: &scratch, head: &head };
    let new_head = match work.pick(branch).await? {
        Ok(new_head) => new_head,
        Err(conflict) => return Ok(Merged::Conflict(conflict)),
    };
    let merged =
        if new_head == head { Merged::AlreadyThere } else { work.move_to(&new_head, branch).await? };
    if !matches!(merged, Merged::Conflict(_)) {
        delete(&place, branch).await?;
    }
    Ok(merged)
}

/// Deletes a task's branch, if it is still what it was.
///
/// # Errors
/// [`IsolationError`].
pub(crate) async fn delete(place: &GitPlace, branch: TaskBranch<'_>) -> Result<(), IsolationError> {
    let name = format!("refs/heads/{}", branch.name);
    place.run(args!["update-ref", "-d", name, branch.tip]).await.map(drop)
}

struct Work<'a> {
    place: &'a GitPlace,
    repository: &'a Repository,
    scratch: &'a Scratch,
    head: &'a str,
}

/// The user's index as it is to be.
struct NewIndex {
    path: PathBuf,
    /// The stamp of the index that it was made from.
    old: Option<Stamp>,
    tree: String,
}

impl Work<'_> {
    /// The branch's commits on top of the user's. Returns the last one; that of the user if there is nothing new.
    async fn pick(&self, branch: TaskBranch<'_>) -> Result<Result<String, Conflict>, IsolationError> {
        if self.head == branch.base {
            return Ok(Ok(branch.tip.to_owned()));
        }
        let ancestor = args!["merge-base", "--is-ancestor", branch.tip, self.head];
        if self.place.attempt(ancestor, Vec::new()).await?.exit.success() {
            return Ok(Ok(self.head.to_owned()));
        }
        let list = commits::between(self.place, branch.base, branch.tip).await?;
        if list.len() > MOST_COMMITS {
            let said = format!("the branch has {} commits, and you have made others meanwhile", list.len());
            return Ok(Err(Conflict { files: Vec::new(), said }));
        }
        let mut last = (self.head.to_owned(), commits::tree_of(self.place, self.head).await?);
        let mut before = branch.base.to_owned();
        let patch = self.scratch.path().join("commit.patch");
        for commit in list {
            let index =
                commits::read_tree(self.place, &self.scratch.path().join("pick.index"), &last.1).await?;
            commits::diff_to_file(self.place, (&before, &commit), &patch).await?;
            if is_empty(&patch).await? {
                before = commit;
                continue;
            }
            if let Some(conflict) = commits::apply(&index, &patch, Apply::ThreeWay).await? {
                return Ok(Err(self.name_files(conflict, &before, &commit).await?));
            }
            let tree = index.object(args!["write-tree"]).await?;
            if tree != last.1 {
                last = (commits::recommit(self.place, &commit, &tree, &last.0).await?, tree);
            }
            before = commit;
        }
        Ok(Ok(last.0))
    }

    /// A conflict for which git named no file is in one that the commit changes.
    async fn name_files(
        &self,
        mut conflict: Conflict,
        from: &str,
        to: &str,
    ) -> Result<Conflict, IsolationError> {
        if conflict.files.is_empty() {
            let changed = commits::changes(self.place, from, to).await?;
            conflict.files = changed.keys().map(|path| crate::tree_paths::path_of(path)).collect();
        }
        Ok(conflict)
    }

    /// Moves the user's branch to a commit, with index and working files, whose uncommitted changes stay.
    async fn move_to(&self, new_head: &str, branch: TaskBranch<'_>) -> Result<Merged, IsolationError> {
        let patch = self.scratch.path().join("merge.patch");
        commits::diff_to_file(self.place, (self.head, new_head), &patch).await?;
        let index = if is_empty(&patch).await? {
            // Commits that undo each other: neither index nor files change.
            None
        } else {
            match self.new_index(&patch, new_head).await? {
                Ok(index) => Some(index),
                Err(conflict) => return Ok(Merged::Conflict(conflict)),
            }
        };
        let plan = match &index {
            None => None,
            Some(_) => {
                match merge_patch::plan(self.place, self.repository, self.scratch, &patch, Apply::ThreeWay)
                    .await?
                {
                    Plan::Fits(replacements) => Some(replacements),
                    Plan::AlreadyThere => None,
                    Plan::Conflict(conflict) => {
                        return self.name_files(conflict, self.head, new_head).await.map(Merged::Conflict);
                    }
                }
            }
        };
        let mut wanted = vec![new_head];
        wanted.extend(index.iter().map(|index| index.tree.as_str()));
        let known = (wanted.as_slice(), self.head);
        objects::publish(self.place, known, self.scratch.path(), &self.repository.common_dir).await?;
        let plan = match plan {
            Some(plan) => plan,
            None => {
                let (root, scratch) = (self.repository.root.clone(), self.scratch.path().to_owned());
                blocking(move || Replacements::new(root, scratch, Vec::new())).await?
            }
        };
        self.carry_out(plan, index, new_head, branch).await
    }

    /// The user's index with the changes merged into what is staged.
    async fn new_index(
        &self,
        patch: &Path,
        new_head: &str,
    ) -> Result<Result<NewIndex, Conflict>, IsolationError> {
        let (from, to) = (self.repository.index(), self.scratch.path().join("new.index"));
        let path = to.clone();
        let old = blocking(move || {
            let old = Stamp::of(&from).map_err(IsolationError::io(&from))?;
            baseline::copy_with_time(&from, &to)?;
            Ok(old)
        })
        .await?;
        let place = self.place.clone().with_index(&path);
        if let Some(conflict) = commits::apply(&place, patch, Apply::ThreeWay).await? {
            return self.name_files(conflict, self.head, new_head).await.map(Err);
        }
        let tree = place.object(args!["write-tree"]).await?;
        Ok(Ok(NewIndex { path, old, tree }))
    }

    /// Replaces files, moves the branch, replaces the index. A failure before the branch has moved undoes everything.
    async fn carry_out(
        &self,
        mut plan: Replacements,
        index: Option<NewIndex>,
        new_head: &str,
        branch: TaskBranch<'_>,
    ) -> Result<Merged, IsolationError> {
        let user_index = self.repository.index();
        let new_head_owned = new_head.to_owned();
        let target = user_index.clone();
        let replaced = blocking(move || {
            let lock = merge_lock::index_lock(&target);
            let Some(stamp) = lock_index(&target, &lock, index.as_ref())? else { return Ok(Err(lock)) };
            plan.branch = Some(BranchMove { new_head: new_head_owned, index_lock: stamp });
            let result = plan.write_journal().map(|()| plan.carry_out());
            let merged = match result {
                Ok(result) => merge_patch::settle(&plan, result),
                Err(error) => Err(error),
            };
            if !matches!(merged, Ok(Merged::Applied)) {
                fs::remove_file(&lock).map_err(IsolationError::io(&lock))?;
            }
            merged.map(|merged| Ok((merged, plan)))
        });
        let plan = match replaced.await? {
            Ok((Merged::Applied, plan)) => plan,
            Ok((other, _)) => return Ok(other),
            Err(lock) => {
                let said = format!(
                    "the index was changed during the merge, or another git works in the repository ({} is there)",
                    lock.display()
                );
                return Ok(Merged::Conflict(Conflict { files: Vec::new(), said }));
            }
        };
        let message = format!("agentd: merged {}", branch.name);
        let moved = self.place.run(args!["update-ref", "-m", message, "HEAD", new_head, self.head]).await;
        blocking(move || {
            let lock = merge_lock::index_lock(&user_index);
            match moved {
                Ok(_) => {
                    fail_point::hit(Point::MergeHead);
                    fs::rename(&lock, &user_index).map_err(IsolationError::io(&user_index))?;
                    plan.remove_journal()
                }
                Err(error) => {
                    let kept = plan.undo()?;
                    fs::remove_file(&lock).map_err(IsolationError::io(&lock))?;
                    merge_lock::discard_scratch(plan.scratch(), &kept)?;
                    Err(error)
                }
            }
        })
        .await?;
        // Without it, the next `git status` reads the new files. Its exit code says that some are changed.
        let refresh = args!["update-index", "-q", "--refresh"];
        self.place.attempt(refresh, Vec::new()).await?;
        Ok(Merged::Applied)
    }
}

/// Takes git's lock of the index and writes the new index there. `None` when it is taken, or the index is another one by now.
fn lock_index(index: &Path, lock: &Path, new: Option<&NewIndex>) -> Result<Option<Stamp>, IsolationError> {
    let mut file = match OpenOptions::new().write(true).create_new(true).open(lock) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
        Err(error) => return Err(IsolationError::io(lock)(error)),
    };
    let mut write = || {
        let from = new.map_or(index, |new| &new.path);
        let now = Stamp::of(index)?;
        if new.is_some_and(|new| new.old != now) {
            return io::Result::Ok(None);
        }
        let content = fs::read(from)?;
        file.write_all(&content)?;
        if let Ok(about) = fs::metadata(index) {
            file.set_permissions(Permissions::from_mode(about.permissions().mode() & 0o777))?;
        }
        file.sync_all()?;
        Stamp::of(lock)
    };
    let written = write();
    if !matches!(written, Ok(Some(_))) {
        fs::remove_file(lock).map_err(IsolationError::io(lock))?;
    }
    written.map_err(IsolationError::io(lock))
}

async fn is_empty(file: &Path) -> Result<bool, IsolationError> {
    let file = file.to_owned();
    blocking(move || fs::metadata(&file).map(|about| about.len() == 0).map_err(IsolationError::io(&file)))
        .await
}
