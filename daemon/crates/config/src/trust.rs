//! Decides whether a project's own settings and prompts are used: they come with the code and could have been written by
//! anyone.

mod command_files;
mod foreign_files;
mod hook_files;
mod program_files;
mod records;
mod starting;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use agentd_files::exists;
use agentd_protocol::{resources::Diagnostic, settings::ProjectTrust};
use serde_json::Value;

use crate::{
    AgentDir, Environment, MemberChange, PrivateObject, PrivateObjectError, ProjectFolders,
    json_file::read_project_json,
    real_folders::real_path,
    resources::{Candidate, context_candidates},
    settings::is_told,
};

use command_files::running_commands;
use foreign_files::foreign_starting;
use hook_files::{claude_hooks, hook_and_tool_folders};
pub use records::note_trusted_files;
use records::{SAVE_TIMEOUT, SavedDecision, TrustedFiles, saved_decision};
use starting::FolderIdentity;
pub use starting::StartingFiles;

/// The entries of a project folder that configure agentd, and so need trust.
const CONFIGURING: [&str; 11] = [
    "settings.json",
    "mcp.json",
    "lsp.json",
    "policy.json",
    "ssh.json",
    "extensions",
    "skills",
    "prompts",
    "themes",
    "SYSTEM.md",
    "APPEND_SYSTEM.md",
];

/// The inputs of the decision.
#[derive(Debug, Clone, Copy)]
pub struct TrustQuestion<'a> {
    /// The working directory.
    pub cwd: &'a Path,
    /// Its project folders.
    pub folders: &'a ProjectFolders,
    /// Holds `trust.json`.
    pub agent_dir: &'a AgentDir,
    /// Names the home directory, whose own `.agents/skills` belong to the user.
    pub environment: &'a Environment,
    /// `--approve` (true) or `--no-approve` (false).
    pub approve: Option<bool>,
    /// The files that `approve` was given for, where that was before.
    pub given: Option<&'a StartingFiles>,
    /// The user's setting `defaultProjectTrust`.
    pub default: ProjectTrust,
    /// The user's setting `discovery.foreign`: whether files of other tools count.
    pub foreign: bool,
}

/// The decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustDecision {
    /// True if the project's own settings and prompts are used.
    pub trusted: bool,
    /// Why.
    pub basis: TrustBasis,
    /// The fault in `trust.json`, for the user.
    pub warning: Option<Diagnostic>,
    /// The files that it is about, as they were looked at.
    pub files: StartingFiles,
    /// Folders of `trust.json` without a record of their files: pi or an older version wrote the decision, or it is for a
    /// folder above. From now on the decision is for the files as they are here.
    pub first_sight: Vec<(PathBuf, StartingFiles)>,
}

/// The basis of a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustBasis {
    /// A flag of the command line.
    Flag,
    /// The project has nothing that needs trust.
    NothingToTrust,
    /// `trust.json` has an entry for this directory.
    Saved(PathBuf),
    /// It was trusted, and these files have changed since.
    Changed(Vec<PathBuf>),
    /// This folder was trusted, and there is another one in its place.
    Replaced(PathBuf),
    /// The setting `defaultProjectTrust`.
    Setting,
    /// A question was due, and none was asked.
    Unasked,
}

/// Decides in the order flag, `trust.json` (the nearest ancestor with an entry), setting. A `trust.json` that cannot be
/// read trusts nothing. Trust that was given before is for the folder and its files as they were then ([`StartingFiles`]), and a
/// yes for a folder above does not reach into a repository below that.
#[must_use]
pub fn decide_trust(question: TrustQuestion<'_>) -> TrustDecision {
    let TrustQuestion { cwd, folders, agent_dir, environment, approve, given, default, .. } = question;
    let instructions = context_candidates(agent_dir, cwd, environment);
    let files = StartingFiles::with(&instructions, cwd, folders, environment);
    let decided = |trusted, basis| TrustDecision {
        trusted,
        basis,
        warning: None,
        files: files.clone(),
        first_sight: Vec::new(),
    };
    if let Some(approve) = approve {
        let differs = given.filter(|_| approve).and_then(|given| difference(&files, given, cwd));
        return match differs {
            Some(differs) => decided(false, differs),
            None => decided(approve, TrustBasis::Flag),
        };
    }
    if !needs_trust(&question, &instructions) {
        return decided(true, TrustBasis::NothingToTrust);
    }
    let unreadable = |problem: Diagnostic| {
        let hint = format!("until it is repaired, the project in {} is not trusted", cwd.display());
        TrustDecision { warning: Some(problem.hint(hint)), ..decided(false, TrustBasis::Unasked) }
    };
    match saved_decision(&agent_dir.trust_file(), cwd) {
        Ok(SavedDecision::Yes(folder)) => {
            return match since(&question, &folder, &files) {
                Ok(Since::Same(first_sight)) => {
                    TrustDecision { first_sight, ..decided(true, TrustBasis::Saved(folder)) }
                }
                Ok(Since::Other(basis)) => decided(false, basis),
                Err(problem) => unreadable(problem),
            };
        }
        Ok(SavedDecision::No(folder)) => return decided(false, TrustBasis::Saved(folder)),
        Ok(SavedDecision::Nothing) => {}
        Err(problem) => return unreadable(problem),
    }
    match default {
        ProjectTrust::Always => decided(true, TrustBasis::Setting),
        ProjectTrust::Never => decided(false, TrustBasis::Setting),
        ProjectTrust::Ask => decided(false, TrustBasis::Unasked),
    }
}

/// The changes to a project since it was trusted.
enum Since {
    /// It is as it was; these folders are seen for the first time.
    Same(Vec<(PathBuf, StartingFiles)>),
    /// It is not.
    Other(TrustBasis),
}

/// Compares a project with what was noted of it and of the folder that `trust.json` names.
fn since(question: &TrustQuestion<'_>, folder: &Path, files: &StartingFiles) -> Result<Since, Diagnostic> {
    let TrustQuestion { cwd, agent_dir, environment, .. } = *question;
    let notes = TrustedFiles::read(agent_dir)?;
    let mut first_sight = Vec::new();
    if folder != real_path(cwd) {
        let identity = FolderIdentity::of(folder);
        match notes.of(folder)? {
            Some(then) if then.identity.is_some() => {
                let now = StartingFiles { identity, ..StartingFiles::default() };
                if now.is_elsewhere(&then) {
                    return Ok(Since::Other(TrustBasis::Replaced(folder.to_path_buf())));
                }
            }
            Some(then) => first_sight.push((folder.to_path_buf(), StartingFiles { identity, ..then })),
            None => {
                let folders = ProjectFolders::of(folder, agent_dir);
                let files = StartingFiles::of(folder, &folders, agent_dir, environment);
                first_sight.push((folder.to_path_buf(), files));
            }
        }
    }
    let then = notes.of(cwd)?;
    if let Some(differs) = then.as_ref().and_then(|then| difference(files, then, cwd)) {
        return Ok(Since::Other(differs));
    }
    if then.is_none_or(|then| then.identity.is_none()) {
        first_sight.push((cwd.to_path_buf(), files.clone()));
    }
    Ok(Since::Same(first_sight))
}

/// The difference between a project and its record.
fn difference(files: &StartingFiles, then: &StartingFiles, cwd: &Path) -> Option<TrustBasis> {
    if files.is_elsewhere(then) {
        return Some(TrustBasis::Replaced(cwd.to_path_buf()));
    }
    let changed = files.differing(then, cwd);
    (!changed.is_empty()).then_some(TrustBasis::Changed(changed))
}

/// Saves a decision for a directory and everything below it in `trust.json`; decisions for others stay. A yes is for these
/// files, and a no is `None`. Blocks on the file system, and on another program that changes the file.
///
/// # Errors
/// [`PrivateObjectError`]; then `trust.json` is unchanged.
pub fn save_trust(
    agent_dir: &AgentDir,
    directory: &Path,
    trusted: Option<&StartingFiles>,
) -> Result<(), PrivateObjectError> {
    // First: a yes without them would be for whatever is found next.
    note_trusted_files(agent_dir, [(directory, trusted)])?;
    let (path, lock) = (agent_dir.trust_file(), agent_dir.run_dir().join("trust.lock"));
    let object = PrivateObject { path: &path, lock: &lock, timeout: SAVE_TIMEOUT };
    let key = real_path(directory).display().to_string();
    let change = vec![MemberChange::Set(vec![key], Value::Bool(trusted.is_some()))];
    object.edit(|_| Ok::<_, PrivateObjectError>((change, ()))).map(|_| ())
}

/// Something in a project that configures us, and so needs trust.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustSubject {
    /// The file or folder.
    pub path: PathBuf,
    /// Of a settings file, the settings in it that start something or say where things go.
    pub settings: Vec<String>,
    /// Of instructions that are not simply the project's: what is special about them.
    pub note: Option<String>,
}

/// The entries of a project that configure agentd and so need trust, with `foreign` those of other tools, too, and instructions that do.
/// Reads its settings; blocks.
#[must_use]
pub fn trust_subjects(
    cwd: &Path,
    folders: &ProjectFolders,
    agent_dir: &AgentDir,
    environment: &Environment,
    foreign: bool,
) -> Vec<TrustSubject> {
    let found = CONFIGURING.into_iter().filter_map(|name| folders.find(name));
    let subject = |path: PathBuf| TrustSubject { settings: told_settings(&path), path, note: None };
    let of_others = foreign.then(|| foreign_starting(cwd, environment)).into_iter().flatten();
    let own = found.chain(project_skills(cwd, environment)).chain(hook_and_tool_folders(folders));
    let commands = running_commands(cwd, environment, foreign);
    let configuring = own.chain(of_others).chain(commands).map(subject);
    let of_claude = foreign.then(|| claude_hooks(cwd)).into_iter().flatten();
    let of_claude =
        of_claude.map(|(path, _)| TrustSubject { path, settings: vec!["hooks".to_owned()], note: None });
    let candidates = context_candidates(agent_dir, cwd, environment).into_iter();
    let instructions = candidates.filter_map(|it| {
        let note = it.needs_trust()?;
        Some(TrustSubject { path: it.path, settings: Vec::new(), note: Some(note) })
    });
    configuring.chain(of_claude).chain(instructions).collect()
}

/// The settings of a file that start something or say where things go.
fn told_settings(path: &Path) -> Vec<String> {
    let is_own = |folder: &Path| folder.file_name().is_some_and(|name| name == ".agentd" || name == ".pi");
    if path.file_name().is_none_or(|name| name != "settings.json") || !path.parent().is_some_and(is_own) {
        return Vec::new();
    }
    // An unreadable file is not used either, and is reported once the project is trusted.
    let Some(Value::Object(settings)) = read_project_json(path).ok().flatten().map(|document| document.value)
    else {
        return Vec::new();
    };
    settings.into_iter().map(|(key, _)| key).filter(|key| is_told(key)).collect()
}

fn needs_trust(question: &TrustQuestion<'_>, instructions: &[Candidate]) -> bool {
    instructions.iter().any(|it| it.needs_trust().is_some())
        || CONFIGURING.into_iter().any(|name| question.folders.find(name).is_some())
        || project_skills(question.cwd, question.environment).is_some()
        || (question.foreign && !foreign_starting(question.cwd, question.environment).is_empty())
        || hook_and_tool_folders(question.folders).next().is_some()
        || (question.foreign && !claude_hooks(question.cwd).is_empty())
        || !running_commands(question.cwd, question.environment, question.foreign).is_empty()
}

/// `.agents/skills` of the working directory or of an ancestor up to the root of its repository.
fn project_skills(cwd: &Path, environment: &Environment) -> Option<PathBuf> {
    project_skill_folders(cwd, environment).map(|folder| folder.join("skills")).find(|skills| exists(skills))
}

/// The folders `.agents` that can hold skills of the project: that of the working directory, then those of its ancestors up
/// to the root of its repository. They need not exist. The one of the home directory is the user's own and none of them.
pub(crate) fn project_skill_folders(cwd: &Path, environment: &Environment) -> impl Iterator<Item = PathBuf> {
    let skills = |folder: &Path| real_path(&folder.join("skills"));
    let own = environment.non_empty("HOME").map(|home| skills(&Path::new(home).join(".agents")));
    let mut in_repository = true;
    let folders = cwd.ancestors().take_while(move |folder| {
        let is_in = in_repository;
        in_repository = !exists(&folder.join(".git"));
        is_in
    });
    folders.map(|folder| folder.join(".agents")).filter(move |folder| Some(skills(folder)) != own)
}
