//! `AGENTS.md` and the like: instructions for agents that work in a folder.

use std::{
    fs,
    path::{Path, PathBuf},
};

use agentd_protocol::resources::{Diagnostic, DiagnosticKind};

use super::resource_file;
use crate::{AgentDir, paths::canonical, text_file::read_text};

/// Of these, the first that a directory has counts.
const NAMES: [&str; 5] = ["AGENTS.override.md", "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD"];

/// A file with instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextFile {
    /// Its absolute path.
    pub path: PathBuf,
    /// What it says, without a byte order mark.
    pub content: String,
}

/// The files that apply to a working directory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ContextFiles {
    /// The most general first: that of the agent directory, then from the root down to the working directory.
    pub files: Vec<ContextFile>,
    /// What is wrong with them.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads the context files of a working directory (absolute). In a git worktree inside of its main repository, the file
/// of the main repository's root gives way to the worktree's own of the same name, since it is the same file on another
/// branch.
#[must_use]
pub fn context_files(agent_dir: &AgentDir, cwd: &Path) -> ContextFiles {
    let shadowed = shadowed_file(cwd);
    let mut directories: Vec<&Path> = cwd.ancestors().collect();
    directories.push(agent_dir.path());
    let mut found = ContextFiles::default();
    let mut seen: Vec<PathBuf> = Vec::new();
    for path in directories.into_iter().rev().filter_map(context_file_of) {
        let real = canonical(&path);
        // The agent directory can be above the working directory.
        if shadowed.as_ref() == Some(&real) || seen.contains(&real) {
            continue;
        }
        seen.push(real);
        let content = resource_file::read(&path, DiagnosticKind::ContextFile, &mut found.diagnostics);
        found.files.extend(content.map(|content| ContextFile { path, content }));
    }
    found
}

fn context_file_of(directory: &Path) -> Option<PathBuf> {
    NAMES.into_iter().map(|name| directory.join(name)).find(|path| path.is_file())
}

/// The file of the main repository that the worktree around `cwd` has itself.
fn shadowed_file(cwd: &Path) -> Option<PathBuf> {
    let worktree = cwd.ancestors().find(|folder| folder.join(".git").exists())?;
    let main = main_repository(worktree)?;
    let worktree = canonical(worktree);
    if worktree == main || !worktree.starts_with(&main) {
        return None;
    }
    let (outer, own) = (context_file_of(&main)?, context_file_of(&worktree)?);
    (outer.file_name() == own.file_name()).then(|| canonical(&outer))
}

/// The main repository of a worktree: its `.git` is a file that points into the main one's `.git/worktrees/`.
fn main_repository(worktree: &Path) -> Option<PathBuf> {
    let pointer = worktree.join(".git");
    if !pointer.is_file() {
        return None;
    }
    let text = read_text(&pointer).ok()??;
    let target = text.lines().find_map(|line| line.strip_prefix("gitdir:"))?.trim();
    let git_dir = fs::canonicalize(worktree.join(target)).ok()?;
    let worktrees = git_dir.parent().filter(|folder| folder.ends_with(".git/worktrees"))?;
    Some(worktrees.parent()?.parent()?.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Place(tempfile::TempDir);

    impl Place {
        fn new(files: &[(&str, &str)]) -> Self {
            let place = Self(tempfile::tempdir().unwrap());
            for (name, text) in files {
                let path = place.path(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            place
        }

        fn path(&self, below: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(below)
        }

        /// Paths below the place, and contents.
        fn check(&self, cwd: &str, expected: &[(&str, &str)]) {
            let found = context_files(&AgentDir::at(self.path("agent")), &self.path(cwd));
            let expected: Vec<ContextFile> = expected
                .iter()
                .map(|(path, content)| ContextFile { path: self.path(path), content: (*content).into() })
                .collect();
            assert_eq!(found, ContextFiles { files: expected, diagnostics: Vec::new() });
        }
    }

    #[test]
    fn one_file_for_each_directory_from_the_agent_directory_down() {
        let place = Place::new(&[
            ("agent/AGENTS.md", "user"),
            ("p/CLAUDE.md", "hidden"),
            ("p/AGENTS.md", "\u{FEFF}project"),
            ("p/q/CLAUDE.MD", "q"),
            ("p/q/r/AGENTS.override.md", "r"),
            ("p/q/r/AGENTS.md", "hidden"),
            ("p/q/r/below/AGENTS.md", "hidden"),
        ]);
        place.check(
            "p/q/r",
            &[
                ("agent/AGENTS.md", "user"),
                ("p/AGENTS.md", "project"),
                ("p/q/CLAUDE.MD", "q"),
                ("p/q/r/AGENTS.override.md", "r"),
            ],
        );
        place.check("agent", &[("agent/AGENTS.md", "user")]);
    }

    #[test]
    fn a_directory_of_that_name_is_no_file() {
        let place = Place::new(&[("p/AGENTS.md/x", ""), ("p/CLAUDE.md", "c")]);
        place.check("p", &[("p/CLAUDE.md", "c")]);
    }

    #[test]
    fn a_huge_file_is_left_out_with_a_warning() {
        let place = Place::new(&[("p/AGENTS.md", "")]);
        let file = fs::File::options().write(true).open(place.path("p/AGENTS.md")).unwrap();
        file.set_len(crate::MAX_TEXT_BYTES + 1).unwrap();
        let found = context_files(&AgentDir::at(place.path("agent")), &place.path("p"));
        assert!(found.files.is_empty());
        let said = found.diagnostics[0].to_string();
        assert!(said.contains("p/AGENTS.md: the file is 1048577 bytes long"), "{said}");
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_bytes_that_are_no_text_are_told() {
        let place = Place::new(&[("real/rules.md", "linked"), ("p/q/x", "")]);
        std::os::unix::fs::symlink(place.path("real/rules.md"), place.path("p/AGENTS.md")).unwrap();
        std::os::unix::fs::symlink(place.path("nowhere"), place.path("p/q/AGENTS.md")).unwrap();
        place.check("p/q", &[("p/AGENTS.md", "linked")]);
        fs::write(place.path("p/q/CLAUDE.md"), b"one\n\xFF\n").unwrap();
        let found = context_files(&AgentDir::at(place.path("agent")), &place.path("p/q"));
        assert_eq!(found.files[1].content, "one\n\u{FFFD}\n");
        assert_eq!((found.diagnostics.len(), found.diagnostics[0].line), (1, Some(2)));
    }

    #[test]
    fn a_worktree_inside_of_its_repository_hides_the_same_file() {
        let files = [
            ("main/.git/worktrees/w/HEAD", ""),
            ("main/AGENTS.md", "main"),
            ("main/trees/w/.git", "gitdir: ../../.git/worktrees/w\n"),
            ("main/trees/w/AGENTS.md", "worktree"),
            ("main/trees/w/src/AGENTS.md", "src"),
        ];
        let place = Place::new(&files);
        place.check(
            "main/trees/w/src",
            &[("main/trees/w/AGENTS.md", "worktree"), ("main/trees/w/src/AGENTS.md", "src")],
        );
        fs::rename(place.path("main/trees/w/AGENTS.md"), place.path("main/trees/w/CLAUDE.md")).unwrap();
        place.check("main/trees/w", &[("main/AGENTS.md", "main"), ("main/trees/w/CLAUDE.md", "worktree")]);
    }

    #[test]
    fn a_submodule_hides_nothing() {
        let place = Place::new(&[
            ("main/.git/modules/s/HEAD", ""),
            ("main/AGENTS.md", "main"),
            ("main/s/.git", "gitdir: ../.git/modules/s"),
            ("main/s/AGENTS.md", "sub"),
        ]);
        place.check("main/s", &[("main/AGENTS.md", "main"), ("main/s/AGENTS.md", "sub")]);
    }
}
