//! Brings a patch into the user's working files.

use std::path::{Path, PathBuf};

use crate::{
    baseline,
    commits::{self, Apply, Conflict},
    error::{IsolationError, blocking},
    git::{GitPlace, args},
    merge_lock,
    objects::Scratch,
    repository::Repository,
    tree_paths,
    working_files::{self, Refusal, Replacements},
};

/// What becomes of a patch in the working files.
#[derive(Debug)]
pub(crate) enum Plan {
    /// It fits: these files are to be replaced.
    Fits(Replacements),
    /// Its changes are there already.
    AlreadyThere,
    /// It does not fit.
    Conflict(Conflict),
}

/// How a merge in one repository ended.
#[derive(Debug)]
pub(crate) enum Merged {
    /// The changes are there.
    Applied,
    /// They were there before.
    AlreadyThere,
    /// Nothing was touched.
    Conflict(Conflict),
}

/// Merges a patch: all of it, or nothing. The caller has the repository's lock.
///
/// # Errors
/// [`IsolationError`]; nothing was touched.
pub(crate) async fn merge(
    place: &GitPlace,
    repository: &Repository,
    patch: &Path,
) -> Result<Merged, IsolationError> {
    let scratch = scratch(repository).await?;
    let place = place.clone().with_objects(&scratch.objects());
    match plan(&place, repository, &scratch, patch, Apply::Plainly).await? {
        Plan::AlreadyThere => Ok(Merged::AlreadyThere),
        Plan::Conflict(conflict) => Ok(Merged::Conflict(conflict)),
        Plan::Fits(replacements) => {
            blocking(move || {
                replacements.write_journal()?;
                let merged = settle(&replacements, replacements.carry_out())?;
                if matches!(merged, Merged::Applied) {
                    replacements.remove_journal()?;
                }
                Ok(merged)
            })
            .await
        }
    }
}

/// An empty scratch folder for a merge.
///
/// # Errors
/// The system's.
pub(crate) async fn scratch(repository: &Repository) -> Result<Scratch, IsolationError> {
    let (path, common_dir) = (merge_lock::scratch(repository)?, repository.common_dir.clone());
    blocking(move || Scratch::create(path, &common_dir)).await
}

/// Puts everything back after a refusal. Blocks.
///
/// # Errors
/// The system's.
pub(crate) fn settle(
    replacements: &Replacements,
    result: Result<(), Refusal>,
) -> Result<Merged, IsolationError> {
    let refusal = match result {
        Ok(()) => return Ok(Merged::Applied),
        Err(refusal) => refusal,
    };
    let kept = replacements.undo()?;
    merge_lock::discard_scratch(replacements.scratch(), &kept)?;
    match refusal {
        Refusal::Changed(path) => Ok(Merged::Conflict(Conflict {
            said: format!("{} was changed during the merge, or something is in its place", path.display()),
            files: vec![path],
        })),
        Refusal::Failed(path, source) => Err(IsolationError::Io { path, source }),
    }
}

/// Computes what the working files become by a patch, without touching them.
///
/// # Errors
/// [`IsolationError`].
pub(crate) async fn plan(
    place: &GitPlace,
    repository: &Repository,
    scratch: &Scratch,
    patch: &Path,
    how: Apply,
) -> Result<Plan, IsolationError> {
    let paths = paths_of(place, patch).await?;
    let (root, looked_at) = (repository.root.clone(), paths.clone());
    let stamps = match blocking(move || working_files::look(&root, &looked_at)).await? {
        Ok(stamps) => stamps,
        Err(path) => {
            let said = format!("{} is in the way", path.display());
            return Ok(Plan::Conflict(Conflict { files: vec![path], said }));
        }
    };
    // The index of the files as they are now: git merges there, by its own rules for line ends and filters.
    let (before, after) = (scratch.path().join("before.index"), scratch.path().join("after.index"));
    let (from, to) = (repository.index(), before.clone());
    blocking(move || baseline::copy_with_time(&from, &to).map(drop)).await?;
    let now = place.clone().with_index(&before);
    baseline::clear_marks(&now).await?;
    let is_file =
        |(_, stamp): &(_, &Option<working_files::Stamp>)| !stamp.is_some_and(|stamp| stamp.is_folder());
    let files = paths.iter().zip(&stamps).filter(is_file).map(|(path, _)| bytes_of(path));
    let update = args!["update-index", "--add", "--remove", "-z", "--stdin"];
    now.run_with(update, tree_paths::joined(files)).await?;
    let (from, to) = (before.clone(), after.clone());
    blocking(move || baseline::copy_with_time(&from, &to).map(drop)).await?;
    let then = place.clone().with_index(&after);
    if let Some(mut conflict) = commits::apply(&then, patch, how).await? {
        let reverse = args!["apply", "--cached", "--check", "--reverse", "--whitespace=nowarn", "--", patch];
        if now.attempt(reverse, Vec::new()).await?.exit.success() {
            return Ok(Plan::AlreadyThere);
        }
        if conflict.files.is_empty() {
            conflict.files = named_in(&conflict.said, &paths);
        }
        return Ok(Plan::Conflict(conflict));
    }
    check_out(&then, scratch, &paths).await?;
    let files = paths.into_iter().zip(stamps).collect();
    let (root, scratch) = (repository.root.clone(), scratch.path().to_owned());
    blocking(move || Replacements::new(root, scratch, files)).await.map(Plan::Fits)
}

fn bytes_of(path: &Path) -> &[u8] {
    use std::os::unix::ffi::OsStrExt as _;
    path.as_os_str().as_bytes()
}

/// The files that a patch touches.
async fn paths_of(place: &GitPlace, patch: &Path) -> Result<Vec<PathBuf>, IsolationError> {
    let list = place.run(args!["apply", "--numstat", "-z", "--", patch]).await?;
    // `added`, a tabulator, `removed`, a tabulator, the path.
    let paths = tree_paths::split(&list).filter_map(|entry| entry.splitn(3, |byte| *byte == b'\t').nth(2));
    let mut paths: Vec<_> = paths.map(tree_paths::path_of).collect();
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// Writes the files of an index that are of interest to `new` in the scratch folder, as git would check them out.
async fn check_out(place: &GitPlace, scratch: &Scratch, paths: &[PathBuf]) -> Result<(), IsolationError> {
    let list = place.run(args!["ls-files", "-s", "-v", "-z"]).await?;
    let wanted: std::collections::BTreeSet<&[u8]> = paths.iter().map(|path| bytes_of(path)).collect();
    let there = tree_paths::index_entries(&list).map(|entry| entry.path).filter(|path| wanted.contains(path));
    let there = tree_paths::joined(there);
    let mut prefix = std::ffi::OsString::from("--prefix=");
    prefix.push(scratch.path().join("new"));
    prefix.push("/");
    if there.is_empty() {
        return Ok(());
    }
    place
        .run_with(args!["checkout-index", "--force", "--quiet", prefix, "-z", "--stdin"], there)
        .await
        .map(drop)
}

/// The files of a patch that `git apply` complains of.
fn named_in(said: &str, paths: &[PathBuf]) -> Vec<PathBuf> {
    let is_named = |path: &&PathBuf| {
        let name = path.display();
        let (failed, other) = (format!("error: patch failed: {name}:"), format!("error: {name}: "));
        said.lines().any(|line| line.starts_with(&failed) || line.starts_with(&other))
    };
    paths.iter().filter(is_named).cloned().collect()
}
