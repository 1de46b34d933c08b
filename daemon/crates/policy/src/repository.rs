//! Repositories that somebody may have put into the workspace: their configuration names programs that git runs.

use std::path::{Path, PathBuf};

use crate::{
    paths::real,
    shell::{Folders, Word},
};

/// Whether a git command may find a repository that is no `.git`, but files in a folder of the workspace: a bare one, which a project can
/// bring along like any other files. What is in a `.git` is git's own, and never written without a question.
pub(crate) fn may_be_planted(words: &[Word], folders: &Folders, workspace: &[PathBuf]) -> bool {
    let Folders::Known(folders) = folders else { return true };
    let mut below = PathBuf::new();
    let mut words = words.iter().skip(1).map(Word::text);
    while let Some(Some(option)) = words.next().filter(|word| word.is_some_and(|text| text.starts_with('-')))
    {
        if option == "-C" {
            let Some(Some(folder)) = words.next() else { return true };
            below.push(folder);
        }
    }
    folders.iter().any(|folder| {
        let Some(folder) = real(&folder.join(&below)) else { return true };
        let is_inside = |folder: &&Path| workspace.iter().any(|root| folder.starts_with(root));
        let inside = folder.ancestors().take_while(is_inside);
        inside
            .take_while(|folder| folder.join(".git").symlink_metadata().is_err())
            .any(|folder| folder.join("HEAD").symlink_metadata().is_ok())
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn bare_repositories_in_the_sessions_folder() {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path().canonicalize().unwrap();
        for folder in ["own/.git", "own/sub", "own/bare", "plain/sub"] {
            fs::create_dir_all(cwd.join(folder)).unwrap();
        }
        fs::write(cwd.join("own/bare/HEAD"), "ref: x").unwrap();
        let is = |words: &[&str], folder: &str| {
            let words: Vec<Word> = words.iter().map(|word| Word::of(word)).collect();
            may_be_planted(&words, &Folders::one(cwd.join(folder)), std::slice::from_ref(&cwd))
        };
        assert!(!is(&["git", "status"], "own") && !is(&["git", "status"], "own/sub"));
        assert!(!is(&["git", "status"], "plain/sub") && !is(&["git", "status"], ""));
        assert!(is(&["git", "status"], "own/bare"));
        assert!(is(&["git", "-C", "bare", "status"], "own"));
        assert!(is(&["git", "--no-pager", "-C", "own", "-C", "bare", "log"], ""));
        assert!(is(&["git", "-C", "plain/../own/bare/x", "log"], ""));
        assert!(!is(&["git", "-C", "/", "log"], ""));
        assert!(may_be_planted(
            &[Word::of("git"), Word::of("log")],
            &Folders::Unknown,
            std::slice::from_ref(&cwd)
        ));
    }
}
