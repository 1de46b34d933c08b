//! The context files of a folder, and whether one needs trust.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use agentd_files::{AbsentNames, exists, is_file};
use agentd_safe_open::{AcceptedOwner, owner_of};

use crate::{AgentDir, Environment, paths::has_git, real_folders::real_path, text_file::read_text};

/// Of these, the first that a directory has counts.
const NAMES: [&str; 5] = ["AGENTS.override.md", "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD"];

/// A context file, and what it takes to use it.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    /// Its absolute path.
    pub(crate) path: PathBuf,
    /// The path with links resolved.
    pub(crate) real: PathBuf,
    pub(super) standing: Standing,
    /// It is a link.
    is_link: bool,
}

/// Whose a context file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// The agent directory's.
    User,
    /// The project's: it lies below this root, and is of this owner.
    Project { root: PathBuf, owner: AcceptedOwner },
    /// It lies outside the project.
    Outside,
    /// It is a link in the project that leads out of it.
    LeadsOut,
    /// It, or the link that it is, belongs to this other user.
    Foreign(u32),
    /// It is a link that leads into the agent directory, where keys are.
    Forbidden,
}

impl Candidate {
    /// Why it counts only when the project is trusted, as the end of a sentence that begins with the file; `None` when it does
    /// not need that.
    pub(crate) fn needs_trust(&self) -> Option<String> {
        let leads =
            if self.is_link { format!(" (a link to {})", self.real.display()) } else { String::new() };
        match &self.standing {
            Standing::User | Standing::Project { .. } | Standing::Forbidden => None,
            Standing::Outside => Some(format!("outside of the project{leads}")),
            Standing::LeadsOut => {
                Some(format!("a link that leads out of the project, to {}", self.real.display()))
            }
            Standing::Foreign(uid) => Some(format!("another user's (uid {uid}){leads}")),
        }
    }

    /// Returns whether another user may have put the file there, so that trust is bound to its target. A file of the user's own
    /// in a folder above the project is not foreign.
    pub(crate) fn is_foreign(&self) -> bool {
        match self.standing {
            Standing::LeadsOut | Standing::Foreign(_) => true,
            Standing::Outside => self.is_link,
            Standing::User | Standing::Project { .. } | Standing::Forbidden => false,
        }
    }
}

/// The context files of a working directory (absolute), in the order in which they count, each once. Looks at files; blocks.
pub(crate) fn context_candidates(
    agent_dir: &AgentDir,
    cwd: &Path,
    environment: &Environment,
) -> Vec<Candidate> {
    let shadowed = shadowed_file(cwd);
    // Only a directory that has such a file is looked at more closely.
    let mut directories: Vec<&Path> = cwd.ancestors().collect();
    directories.push(agent_dir.path());
    let paths: Vec<PathBuf> = directories.into_iter().rev().filter_map(context_file_of).collect();
    if paths.is_empty() {
        return Vec::new();
    }
    let place = CandidateContext::of(agent_dir, cwd, environment);
    let mut found: Vec<Candidate> = Vec::new();
    for path in paths {
        let real = real_path(&path);
        // The agent directory can be above the working directory.
        if shadowed.as_ref() == Some(&real) || found.iter().any(|candidate| candidate.real == real) {
            continue;
        }
        let is_link = path.is_symlink();
        let standing = match path.parent() {
            Some(folder) if folder == agent_dir.path() => Standing::User,
            folder => place.standing(&path, &real, folder.unwrap_or(&path)),
        };
        found.push(Candidate { path, real, standing, is_link });
    }
    found
}

/// The project around a working directory: what lies in it, and whose files count in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectBounds {
    /// The repository around the working directory, else the working directory; without symbolic links.
    pub root: PathBuf,
    /// Whose files count without trust.
    pub owner: AcceptedOwner,
}

impl ProjectBounds {
    /// The project around a working directory. Looks at folders; blocks.
    #[must_use]
    pub fn around(cwd: &Path, environment: &Environment) -> Self {
        let home = environment.non_empty("HOME").map(|home| real_path(Path::new(home)));
        Self::around_real(&real_path(cwd), home.as_deref())
    }

    /// The same for a working directory and a home directory without symbolic links.
    #[must_use]
    pub fn around_real(cwd: &Path, home: Option<&Path>) -> Self {
        let repository = cwd.ancestors().find(|folder| has_git(folder));
        // The home directory is no project, though it may be a repository: a link that stays in it can lead to any secret.
        let is_project = |root: &&Path| home.is_none_or(|home| !home.starts_with(root));
        let root = repository.filter(is_project).unwrap_or(cwd).to_path_buf();
        Self { owner: owner(&root, cwd), root }
    }
}

/// A project, and the folder that none of its links may lead into.
struct CandidateContext {
    bounds: ProjectBounds,
    agent_dir: PathBuf,
}

impl CandidateContext {
    fn of(agent_dir: &AgentDir, cwd: &Path, environment: &Environment) -> Self {
        Self { bounds: ProjectBounds::around(cwd, environment), agent_dir: real_path(agent_dir.path()) }
    }

    /// Of a file that is in this folder, where it is not the agent directory's.
    fn standing(&self, path: &Path, real: &Path, folder: &Path) -> Standing {
        let folder = real_path(folder);
        if real.starts_with(&self.agent_dir) && !folder.starts_with(&self.agent_dir) {
            return Standing::Forbidden;
        }
        // The owner of a link decides where it leads.
        let owners = [fs::symlink_metadata(path), fs::symlink_metadata(real)];
        let other = owners
            .into_iter()
            .flatten()
            .map(|about| about.uid())
            .find(|uid| !self.bounds.owner.accepts(*uid));
        match other {
            Some(uid) => Standing::Foreign(uid),
            None if !folder.starts_with(&self.bounds.root) => Standing::Outside,
            None if !real.starts_with(&self.bounds.root) => Standing::LeadsOut,
            None => Standing::Project { root: self.bounds.root.clone(), owner: self.bounds.owner },
        }
    }
}

/// Whose files count without trust. Where root works in the project of a user, as in containers, that user's do.
fn owner(root: &Path, cwd: &Path) -> AcceptedOwner {
    match (owner_of(root), owner_of(cwd)) {
        (Ok(root), Ok(cwd)) if root == cwd && rustix::process::geteuid().is_root() => {
            AcceptedOwner::OwnOr(root)
        }
        _ => AcceptedOwner::Own,
    }
}

fn context_file_of(directory: &Path) -> Option<PathBuf> {
    static CONTEXT_FILES: AbsentNames = AbsentNames::new(&NAMES);
    if !CONTEXT_FILES.may_be_in(directory) {
        return None;
    }
    NAMES.into_iter().map(|name| directory.join(name)).find(|path| is_file(path))
}

/// The file of the main repository that the worktree around `cwd` has itself.
fn shadowed_file(cwd: &Path) -> Option<PathBuf> {
    let worktree = cwd.ancestors().find(|folder| has_git(folder) && exists(&folder.join(".git")))?;
    let main = main_repository(worktree)?;
    let worktree = real_path(worktree);
    if worktree == main || !worktree.starts_with(&main) {
        return None;
    }
    let (outer, own) = (context_file_of(&main)?, context_file_of(&worktree)?);
    (outer.file_name() == own.file_name()).then(|| real_path(&outer))
}

/// The main repository of a worktree: its `.git` is a file that points into the main one's `.git/worktrees/`.
fn main_repository(worktree: &Path) -> Option<PathBuf> {
    let pointer = worktree.join(".git");
    if !is_file(&pointer) {
        return None;
    }
    let text = read_text(&pointer).ok()??;
    let target = text.lines().find_map(|line| line.strip_prefix("gitdir:"))?.trim();
    let git_dir = fs::canonicalize(worktree.join(target)).ok()?;
    let worktrees = git_dir.parent().filter(|folder| folder.ends_with(".git/worktrees"))?;
    Some(worktrees.parent()?.parent()?.to_path_buf())
}
