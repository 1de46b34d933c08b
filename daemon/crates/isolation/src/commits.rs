//! Makes trees and commits without touching any working file: diffs, three-way merges in an index, commits with another tree.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use crate::{
    error::{IsolationError, blocking},
    git::{GitPlace, args},
    tree_paths::{self, TreeChanges},
};

/// The committer of last resort, where git knows nobody.
const NAME: &str = "agentd";
const EMAIL: &str = "agentd@localhost";

/// The files that stand in the way of a merge, as git names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Conflict {
    pub(crate) files: Vec<PathBuf>,
    /// What git said.
    pub(crate) said: String,
}

/// Writes the difference of two trees or commits to a file for `git apply`.
///
/// # Errors
/// [`IsolationError`].
pub(crate) async fn diff_to_file(
    place: &GitPlace,
    (from, to): (&str, &str),
    file: &Path,
) -> Result<(), IsolationError> {
    let mut output = std::ffi::OsString::from("--output=");
    output.push(file);
    let mut words =
        args!["diff-tree", "-r", "-p", "--binary", "--full-index", "--no-renames", "--no-color", "-U3"];
    words.extend(args![
        "--no-ext-diff",
        "--no-textconv",
        "--src-prefix=a/",
        "--dst-prefix=b/",
        output,
        from,
        to
    ]);
    place.run(words).await.map(drop)
}

/// What differs between two trees or commits.
///
/// # Errors
/// [`IsolationError`].
pub(crate) async fn changes(place: &GitPlace, from: &str, to: &str) -> Result<TreeChanges, IsolationError> {
    let raw = place.run(args!["diff-tree", "-r", "-z", "--raw", "--no-renames", from, to]).await?;
    Ok(tree_paths::tree_changes(&raw))
}

/// How a patch is applied to an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Apply {
    /// Where its lines are found.
    Plainly,
    /// By a three-way merge with the contents that it was made from.
    ThreeWay,
}

/// Applies a patch to the index of `place`. After a conflict the index is of no use.
///
/// # Errors
/// [`IsolationError`]; a patch that does not fit is none.
pub(crate) async fn apply(
    place: &GitPlace,
    patch: &Path,
    how: Apply,
) -> Result<Option<Conflict>, IsolationError> {
    let mut words = args!["apply", "--cached", "--binary", "--whitespace=nowarn"];
    if how == Apply::ThreeWay {
        words.extend(args!["--3way"]);
    }
    words.extend(args!["--", patch]);
    let ended = place.attempt(words, Vec::new()).await?;
    let unmerged = match how {
        Apply::Plainly => Vec::new(),
        Apply::ThreeWay => place.run(args!["ls-files", "--unmerged", "-z"]).await?,
    };
    if ended.exit.success() && unmerged.is_empty() {
        return Ok(None);
    }
    let mut files: Vec<_> = tree_paths::split(&unmerged)
        .filter_map(|entry| entry.iter().position(|byte| *byte == b'\t').map(|tab| &entry[tab + 1..]))
        .map(tree_paths::path_of)
        .collect();
    files.dedup();
    Ok(Some(Conflict { files, said: ended.errors }))
}

/// A commit like another one, with author, date and message, but with another tree and parent. A signature would no longer be
/// right, and is left out.
///
/// # Errors
/// [`IsolationError`].
pub(crate) async fn recommit(
    place: &GitPlace,
    commit: &str,
    tree: &str,
    parent: &str,
) -> Result<String, IsolationError> {
    let raw = place.run(args!["cat-file", "commit", commit]).await?;
    let new = with_tree_and_parent(&raw, tree, parent);
    let written = place.run_with(args!["hash-object", "-t", "commit", "-w", "--stdin"], new).await?;
    Ok(String::from_utf8_lossy(&written).trim().to_owned())
}

fn with_tree_and_parent(raw: &[u8], tree: &str, parent: &str) -> Vec<u8> {
    const DROPPED: [&[u8]; 5] = [b"tree", b"parent", b"gpgsig", b"gpgsig-sha256", b"mergetag"];
    let mut new = format!("tree {tree}\nparent {parent}\n").into_bytes();
    let mut rest = raw;
    let mut drops = false;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let line = &rest[..end];
        if line.is_empty() {
            break;
        }
        // A line that begins with a blank belongs to the one before.
        if line[0] != b' ' {
            let name = line.split(|byte| *byte == b' ').next().unwrap_or_default();
            drops = DROPPED.contains(&name);
        }
        if !drops {
            new.extend_from_slice(&rest[..=end]);
        }
        rest = &rest[end + 1..];
    }
    new.extend_from_slice(rest);
    new
}

/// A new commit by the user.
///
/// # Errors
/// [`IsolationError`].
pub(crate) async fn commit(
    place: &GitPlace,
    tree: &str,
    parent: &str,
    message: &str,
) -> Result<String, IsolationError> {
    let words = args!["commit-tree", tree, "-p", parent, "-F", "-"];
    let ended = place.attempt(words.clone(), message.as_bytes().to_vec()).await?;
    let output = if ended.exit.success() {
        ended.output
    } else {
        let known = place
            .clone()
            .with("GIT_AUTHOR_NAME", OsStr::new(NAME))
            .with("GIT_AUTHOR_EMAIL", OsStr::new(EMAIL))
            .with("GIT_COMMITTER_NAME", OsStr::new(NAME))
            .with("GIT_COMMITTER_EMAIL", OsStr::new(EMAIL));
        known.run_with(words, message.as_bytes().to_vec()).await?
    };
    Ok(String::from_utf8_lossy(&output).trim().to_owned())
}

/// The tree of a commit.
///
/// # Errors
/// [`IsolationError`].
pub(crate) async fn tree_of(place: &GitPlace, commit: &str) -> Result<String, IsolationError> {
    place.object(args!["rev-parse", "--verify", format!("{commit}^{{tree}}")]).await
}

/// The commits from `base`, left out, to `tip`, oldest first; of a merge only the line of its first parents.
///
/// # Errors
/// [`IsolationError`].
pub(crate) async fn between(place: &GitPlace, base: &str, tip: &str) -> Result<Vec<String>, IsolationError> {
    let list = place.run(args!["rev-list", "--reverse", "--first-parent", format!("{base}..{tip}")]).await?;
    Ok(String::from_utf8_lossy(&list).lines().map(str::to_owned).collect())
}

/// Fills an index with a tree.
///
/// # Errors
/// [`IsolationError`].
pub(crate) async fn read_tree(
    place: &GitPlace,
    index: &Path,
    tree: &str,
) -> Result<GitPlace, IsolationError> {
    let old = index.to_owned();
    blocking(move || match std::fs::remove_file(&old) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(IsolationError::io(&old)(error)),
        _ => Ok(()),
    })
    .await?;
    let place = place.clone().with_index(index);
    place.run(args!["read-tree", tree]).await?;
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_keeps_all_but_its_place_and_its_signature() {
        let raw = b"tree a\nparent b\nparent c\nauthor A <a> 1 +0000\ncommitter C <c> 2 +0000\n\
            gpgsig -----BEGIN\n line\n -----END\nencoding latin1\n\nsubject \xff\n\ntree not\n";
        let expected = b"tree T\nparent P\nauthor A <a> 1 +0000\ncommitter C <c> 2 +0000\nencoding latin1\n\nsubject \xff\n\ntree not\n";
        assert_eq!(with_tree_and_parent(raw, "T", "P"), expected);
    }
}
