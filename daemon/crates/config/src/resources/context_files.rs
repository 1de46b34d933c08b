//! `AGENTS.md` and the like: instructions for agents that work in a folder.

mod candidates;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use agentd_protocol::resources::{Diagnostic, DiagnosticKind};
use agentd_safe_open::{AcceptedOwner, LinkPolicy, OpenRules};

use super::resource_file;
use crate::{AgentDir, Environment, StartingFiles};

pub use candidates::ProjectBounds;
use candidates::Standing;
pub(crate) use candidates::{Candidate, context_candidates};

const KIND: DiagnosticKind = DiagnosticKind::ContextFile;

/// A file with instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextFile {
    /// Its absolute path.
    pub path: PathBuf,
    /// The content without a byte order mark.
    pub content: String,
}

/// The files that apply to a working directory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ContextFiles {
    /// The most general first: that of the agent directory, then from the root down to the working directory.
    pub files: Vec<ContextFile>,
    /// The faults of the files.
    pub diagnostics: Vec<Diagnostic>,
}

/// Whose context files are meant.
#[derive(Debug, Clone, Copy)]
pub struct ContextQuery<'a> {
    /// Its own file always counts.
    pub agent_dir: &'a AgentDir,
    /// The working directory, absolute.
    pub cwd: &'a Path,
    /// Names the home directory, which is no project though it may be a repository.
    pub environment: &'a Environment,
    /// The trusted files of the project in `cwd`; `None` when it is not trusted.
    pub trusted: Option<&'a StartingFiles>,
}

/// A context file as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextPath {
    /// Its absolute path.
    pub path: PathBuf,
    /// Whether it counts only when the project is trusted, which it is not.
    pub waits_for_trust: bool,
    /// Why it does not count, as a diagnostic says it.
    pub problem: Option<String>,
}

/// The context files of a working directory in the order of [`context_files`], without their contents, and those that do not count. Looks at
/// files; blocks.
#[must_use]
pub fn context_paths(query: ContextQuery<'_>) -> Vec<ContextPath> {
    let candidates = context_candidates(query.agent_dir, query.cwd, query.environment);
    let paths = candidates.into_iter().map(|candidate| {
        let problem = unusable(&candidate, &query).map(|problem| problem.message);
        let waits_for_trust = query.trusted.is_none() && candidate.needs_trust().is_some();
        ContextPath { path: candidate.path, waits_for_trust, problem }
    });
    paths.collect()
}

/// Reads the context files of a working directory. In a git worktree inside of its main repository, the file
/// of the main repository's root gives way to the worktree's own of the same name, since it is the same file on another
/// branch.
///
/// The files of the project count without trust: those below the repository around the working directory (below the working
/// directory itself without one), of this user or root, links included that stay there. Others count when the project is
/// trusted. Nothing leads into the agent directory or to `/proc`. Reads files; blocks.
#[must_use]
pub fn context_files(query: ContextQuery<'_>) -> ContextFiles {
    let mut found = ContextFiles::default();
    for candidate in context_candidates(query.agent_dir, query.cwd, query.environment) {
        let content = match unusable(&candidate, &query) {
            None => read(&candidate, &mut found.diagnostics),
            Some(why) => {
                found.diagnostics.push(why);
                None
            }
        };
        found.files.extend(content.map(|content| ContextFile { path: candidate.path, content }));
    }
    found
}

/// Why a file is not to be used.
fn unusable(candidate: &Candidate, query: &ContextQuery<'_>) -> Option<Diagnostic> {
    const TRUST: &str = "look at it; --approve trusts the project for a session, and `agentctl prompt` on a terminal and \
                         `agentctl attach` ask whether to trust it";
    let Candidate { path, real, .. } = candidate;
    let told = |message: String, hint: &str| Some(Diagnostic::warning(KIND, message).at(path).hint(hint));
    if candidate.standing == Standing::Forbidden {
        let message = "this link leads into the agent directory, so that it is not used, whether the project is trusted or not";
        return told(message.to_owned(), "put a file in its place");
    }
    let why = candidate.needs_trust()?;
    match query.trusted {
        None => {
            told(format!("this file is {why}, so that it is used only when the project is trusted"), TRUST)
        }
        Some(trusted) if candidate.is_foreign() && !trusted.covers(query.cwd, path, real) => told(
            format!("this file is {why}, and was not so when the project was trusted: it is not used"),
            TRUST,
        ),
        Some(_) => None,
    }
}

fn read(candidate: &Candidate, diagnostics: &mut Vec<Diagnostic>) -> Option<String> {
    let Candidate { path, real, standing, .. } = candidate;
    let (rules, from) = match standing {
        Standing::User => (OpenRules::new(LinkPolicy::Followed).owner(AcceptedOwner::Anybody), path),
        Standing::Project { root, owner } => (OpenRules::new(LinkPolicy::Beneath(root)).owner(*owner), real),
        // Its target was checked: no other file may be in its place by now.
        _ => (OpenRules::new(LinkPolicy::Refused).owner(AcceptedOwner::Anybody), real),
    };
    resource_file::read_by(rules, from, path, KIND, diagnostics)
}
