//! Whether a project's own settings and prompts are used: they come with the code and could have been written by anyone.

mod starting;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use agentd_protocol::{
    resources::{Diagnostic, DiagnosticKind, DiagnosticLevel},
    settings::ProjectTrust,
};
use serde_json::Value;

use crate::{
    AgentDir, Environment, MemberChange, PrivateObject, PrivateObjectError, ProjectFolders,
    json_file::{read_json, read_project_json},
    paths::canonical,
    settings::is_told,
};

use starting::noted;
pub use starting::{StartingFiles, note_trusted_files};

const KIND: DiagnosticKind = DiagnosticKind::Trust;

/// How long saving waits for another program that changes `trust.json`.
const PATIENCE: Duration = Duration::from_secs(5);

/// What in a project folder configures us, and so needs trust.
const CONFIGURING: [&str; 8] = [
    "settings.json",
    "mcp.json",
    "extensions",
    "skills",
    "prompts",
    "themes",
    "SYSTEM.md",
    "APPEND_SYSTEM.md",
];

/// What the decision depends on.
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
}

/// The decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trust {
    /// Whether the project's own settings and prompts are used.
    pub trusted: bool,
    /// Why.
    pub basis: TrustBasis,
    /// What is wrong with `trust.json`, for the user.
    pub warning: Option<Diagnostic>,
    /// The files that it is about, as they were looked at.
    pub files: StartingFiles,
    /// Whether `trust.json` says yes, and nobody noted the files that this is about: the reference or an older version wrote
    /// it, or it is about a folder above. These files are the ones that it is about, from now on.
    pub is_first_sight: bool,
}

/// What decided.
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
    /// The setting `defaultProjectTrust`.
    Setting,
    /// Someone would have to be asked, and nobody was.
    Unasked,
}

/// Decides in the order flag, `trust.json` (the nearest ancestor with an entry), setting. A `trust.json` that cannot be
/// read trusts nothing. Trust that was given before is for the files as they were then ([`StartingFiles`]).
#[must_use]
pub fn decide_trust(question: TrustQuestion<'_>) -> Trust {
    let TrustQuestion { cwd, folders, agent_dir, environment, approve, given, default } = question;
    let files = StartingFiles::of(cwd, folders, environment);
    let decided =
        |trusted, basis| Trust { trusted, basis, warning: None, files: files.clone(), is_first_sight: false };
    let unless_changed = |then: &StartingFiles, basis| match files.differing(then, cwd) {
        changed if changed.is_empty() => decided(true, basis),
        changed => decided(false, TrustBasis::Changed(changed)),
    };
    if let Some(approve) = approve {
        return match given.filter(|_| approve) {
            Some(given) => unless_changed(given, TrustBasis::Flag),
            None => decided(approve, TrustBasis::Flag),
        };
    }
    if !needs_trust(&question) {
        return decided(true, TrustBasis::NothingToTrust);
    }
    let unreadable = |problem: Diagnostic| {
        let hint = format!("until it is repaired, the project in {} is not trusted", cwd.display());
        Trust { warning: Some(problem.hint(hint)), ..decided(false, TrustBasis::Unasked) }
    };
    match saved(&agent_dir.trust_file(), cwd) {
        Ok(Some((directory, true))) => {
            let basis = TrustBasis::Saved(directory);
            return match noted(agent_dir, cwd) {
                Ok(Some(then)) => unless_changed(&then, basis),
                Ok(None) => Trust { is_first_sight: true, ..decided(true, basis) },
                Err(problem) => unreadable(problem),
            };
        }
        Ok(Some((directory, false))) => return decided(false, TrustBasis::Saved(directory)),
        Ok(None) => {}
        Err(problem) => return unreadable(problem),
    }
    match default {
        ProjectTrust::Always => decided(true, TrustBasis::Setting),
        ProjectTrust::Never => decided(false, TrustBasis::Setting),
        ProjectTrust::Ask => decided(false, TrustBasis::Unasked),
    }
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
    note_trusted_files(agent_dir, directory, trusted)?;
    let (path, lock) = (agent_dir.trust_file(), agent_dir.run_dir().join("trust.lock"));
    let object = PrivateObject { path: &path, lock: &lock, patience: PATIENCE };
    let key = canonical(directory).display().to_string();
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
}

/// What in a project configures us, and so needs trust. Reads its settings; blocks.
#[must_use]
pub fn trust_subjects(cwd: &Path, folders: &ProjectFolders, environment: &Environment) -> Vec<TrustSubject> {
    let found = CONFIGURING.into_iter().filter_map(|name| folders.find(name));
    let subject = |path: PathBuf| TrustSubject { settings: told_settings(&path), path };
    found.chain(project_skills(cwd, environment)).map(subject).collect()
}

/// The settings of a file that start something or say where things go.
fn told_settings(path: &Path) -> Vec<String> {
    if path.file_name().is_none_or(|name| name != "settings.json") {
        return Vec::new();
    }
    // What cannot be read is not used either, and is told once it is trusted.
    let Some(Value::Object(settings)) = read_project_json(path).ok().flatten().map(|document| document.value)
    else {
        return Vec::new();
    };
    settings.into_iter().map(|(key, _)| key).filter(|key| is_told(key)).collect()
}

fn needs_trust(question: &TrustQuestion<'_>) -> bool {
    CONFIGURING.into_iter().any(|name| question.folders.find(name).is_some())
        || project_skills(question.cwd, question.environment).is_some()
}

/// `.agents/skills` of the working directory or of an ancestor up to the root of its repository.
fn project_skills(cwd: &Path, environment: &Environment) -> Option<PathBuf> {
    project_skill_folders(cwd, environment).map(|folder| folder.join("skills")).find(|skills| skills.exists())
}

/// The folders `.agents` that can hold skills of the project: that of the working directory, then those of its ancestors up
/// to the root of its repository. They need not exist. The one of the home directory is the user's own and none of them.
pub(crate) fn project_skill_folders(cwd: &Path, environment: &Environment) -> impl Iterator<Item = PathBuf> {
    let skills = |folder: &Path| canonical(&folder.join("skills"));
    let own = environment.non_empty("HOME").map(|home| skills(&Path::new(home).join(".agents")));
    let mut in_repository = true;
    let folders = cwd.ancestors().take_while(move |folder| {
        let is_in = in_repository;
        in_repository = !folder.join(".git").exists();
        is_in
    });
    folders.map(|folder| folder.join(".agents")).filter(move |folder| Some(skills(folder)) != own)
}

/// The saved decision for the nearest ancestor of `cwd`, itself included.
fn saved(file: &Path, cwd: &Path) -> Result<Option<(PathBuf, bool)>, Diagnostic> {
    let Some(document) = read_json(file).map_err(|error| error.diagnostic(KIND))? else { return Ok(None) };
    let Value::Object(decisions) = document.value else {
        let problem = Diagnostic::warning(KIND, "expected an object of directories and true or false");
        return Err(problem.level(DiagnosticLevel::Error).at(file));
    };
    let decision = |folder: &Path| decisions.get(folder.to_str()?)?.as_bool();
    let cwd = canonical(cwd);
    Ok(cwd.ancestors().find_map(|folder| decision(folder).map(|trusted| (folder.to_path_buf(), trusted))))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Place {
        root: tempfile::TempDir,
    }

    impl Place {
        fn new() -> Self {
            let place = Self { root: tempfile::tempdir().unwrap() };
            fs::create_dir_all(place.path("home/agent")).unwrap();
            fs::create_dir_all(place.path("home/code/project/.pi")).unwrap();
            place
        }

        fn path(&self, below: &str) -> PathBuf {
            self.root.path().canonicalize().unwrap().join(below)
        }

        fn write(&self, below: &str, text: &str) {
            let path = self.path(below);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn decide(&self, approve: Option<bool>, default: ProjectTrust) -> Trust {
            let agent_dir = AgentDir::at(self.path("home/agent"));
            let cwd = self.path("home/code/project");
            let environment: Environment = [("HOME", self.path("home"))].into_iter().collect();
            decide_trust(TrustQuestion {
                cwd: &cwd,
                folders: &ProjectFolders::of(&cwd, &agent_dir),
                agent_dir: &agent_dir,
                environment: &environment,
                approve,
                given: None,
                default,
            })
        }

        fn files(&self) -> StartingFiles {
            let (cwd, agent_dir) = (self.path("home/code/project"), AgentDir::at(self.path("home/agent")));
            StartingFiles::of(&cwd, &ProjectFolders::of(&cwd, &agent_dir), &Environment::default())
        }

        fn check(&self, default: ProjectTrust, trusted: bool, basis: TrustBasis) {
            let decided = self.decide(None, default);
            assert_eq!((decided.trusted, decided.basis, decided.warning), (trusted, basis, None));
        }
    }

    #[test]
    fn a_project_without_configuration_needs_no_trust() {
        let place = Place::new();
        place.write("home/.agents/skills/mine/SKILL.md", "");
        place.check(ProjectTrust::Never, true, TrustBasis::NothingToTrust);
        for entry in CONFIGURING {
            let place = Place::new();
            place.write(&format!("home/code/project/.pi/{entry}"), "{}");
            place.check(ProjectTrust::Ask, false, TrustBasis::Unasked);
        }
        place.write("home/code/.agents/skills/theirs/SKILL.md", "");
        place.check(ProjectTrust::Ask, false, TrustBasis::Unasked);
        fs::create_dir(place.path("home/code/project/.git")).unwrap();
        place.check(ProjectTrust::Ask, true, TrustBasis::NothingToTrust);
        place.write("home/code/project/.agentd/SYSTEM.md", "");
        place.check(ProjectTrust::Ask, false, TrustBasis::Unasked);
    }

    #[test]
    fn flag_then_file_then_setting() {
        let place = Place::new();
        place.write("home/code/project/.pi/settings.json", "{}");
        place.check(ProjectTrust::Always, true, TrustBasis::Setting);
        place.check(ProjectTrust::Never, false, TrustBasis::Setting);
        let (code, project) = (place.path("home/code"), place.path("home/code/project"));
        let save = |text: String| place.write("home/agent/trust.json", &text);
        save(format!("{{\"{}\": true}}", code.display()));
        place.check(ProjectTrust::Never, true, TrustBasis::Saved(code.clone()));
        save(format!("{{\"{}\": true, \"{}\": false}}", code.display(), project.display()));
        place.check(ProjectTrust::Always, false, TrustBasis::Saved(project));
        let flag = place.decide(Some(true), ProjectTrust::Never);
        assert_eq!((flag.trusted, flag.basis), (true, TrustBasis::Flag));
        assert!(!place.decide(Some(false), ProjectTrust::Always).trusted);
    }

    #[test]
    fn a_saved_decision_decides() {
        let place = Place::new();
        place.write("home/code/project/.pi/settings.json", "{}");
        place.write("home/agent/trust.json", "{\"/elsewhere\": false}");
        let (agent_dir, project) = (AgentDir::at(place.path("home/agent")), place.path("home/code/project"));
        for trusted in [true, false] {
            save_trust(&agent_dir, &project, trusted.then(|| place.files()).as_ref()).unwrap();
            place.check(ProjectTrust::Ask, trusted, TrustBasis::Saved(project.clone()));
        }
        let saved = read_json(&agent_dir.trust_file()).unwrap().unwrap().value;
        assert_eq!(saved.as_object().unwrap().len(), 2);
        place.write("home/agent/trust.json", "{");
        assert!(save_trust(&agent_dir, &project, None).unwrap_err().to_string().contains("trust.json"));
    }

    #[test]
    fn what_needs_trust_is_named() {
        let place = Place::new();
        place.write(
            "home/code/project/.pi/settings.json",
            r#"{"shellPath":"x","theme":"y","sessionDir":"z"}"#,
        );
        place.write("home/code/.agents/skills/theirs/SKILL.md", "");
        let (cwd, agent_dir) = (place.path("home/code/project"), AgentDir::at(place.path("home/agent")));
        let folders = ProjectFolders::of(&cwd, &agent_dir);
        let subject = |path: PathBuf, settings: &[&str]| TrustSubject {
            path,
            settings: settings.iter().map(|it| (*it).to_owned()).collect(),
        };
        let expected = [
            subject(cwd.join(".pi/settings.json"), &["shellPath", "sessionDir"]),
            subject(place.path("home/code/.agents/skills"), &[]),
        ];
        assert_eq!(trust_subjects(&cwd, &folders, &Environment::default()), expected);
    }

    #[test]
    fn a_broken_file_trusts_nothing() {
        let place = Place::new();
        place.write("home/code/project/.pi/settings.json", "{}");
        for broken in ["{", "[]"] {
            place.write("home/agent/trust.json", broken);
            let trust = place.decide(None, ProjectTrust::Always);
            assert!(!trust.trusted);
            assert!(trust.warning.unwrap().to_string().contains("trust.json"));
        }
    }
    #[test]
    fn trust_is_for_the_files_as_they_were() {
        let place = Place::new();
        let agent_dir = AgentDir::at(place.path("home/agent"));
        let project = place.path("home/code/project");
        place.write("home/code/project/.pi/settings.json", r#"{"shellPath":"./sh"}"#);
        place.write("home/code/project/sh", "one");
        let saved = TrustBasis::Saved(project.clone());
        let trust = || save_trust(&agent_dir, &project, Some(&place.files())).unwrap();
        trust();
        for (name, text) in [
            (".pi/settings.json", r#"{"shellPath":"./sh", "shellCommandPrefix":"x"}"#),
            // Beside it, and read before it.
            (".agentd/settings.json", r#"{"shellPath":"./sh"}"#),
            (".pi/mcp.json", "{}"),
            // The program that is started.
            ("sh", "two"),
        ] {
            place.check(ProjectTrust::Always, true, saved.clone());
            let before = fs::read_to_string(project.join(name)).ok();
            place.write(&format!("home/code/project/{name}"), text);
            place.check(ProjectTrust::Always, false, TrustBasis::Changed(vec![project.join(name)]));
            // A flag is for the files as they are.
            assert!(place.decide(Some(true), ProjectTrust::Ask).trusted);
            match before {
                Some(before) => place.write(&format!("home/code/project/{name}"), &before),
                None => trust(),
            }
        }
        fs::remove_file(project.join(".pi/mcp.json")).unwrap();
        place.check(ProjectTrust::Ask, false, TrustBasis::Changed(vec![project.join(".pi/mcp.json")]));
        // What starts nothing is not asked about.
        trust();
        place.write("home/code/project/.pi/SYSTEM.md", "Be good.");
        place.check(ProjectTrust::Ask, true, saved);
    }

    #[test]
    fn trust_without_files_is_for_those_that_are_seen_first() {
        let place = Place::new();
        let (agent_dir, project) = (AgentDir::at(place.path("home/agent")), place.path("home/code/project"));
        place.write("home/code/project/.pi/settings.json", "{}");
        let code = place.path("home/code");
        place.write("home/agent/trust.json", &format!("{{\"{}\": true}}", code.display()));
        let first = place.decide(None, ProjectTrust::Ask);
        assert!(first.trusted && first.is_first_sight);
        note_trusted_files(&agent_dir, &project, Some(&first.files)).unwrap();
        assert!(!place.decide(None, ProjectTrust::Ask).is_first_sight);
        place.check(ProjectTrust::Ask, true, TrustBasis::Saved(code));
        place.write("home/code/project/.pi/settings.json", "{ }");
        assert!(!place.decide(None, ProjectTrust::Ask).trusted);
        // What cannot be read trusts nothing.
        for broken in ["{", "[]", &format!("{{\"{}\": 5}}", project.display())] {
            place.write("home/agent/trusted-files.json", broken);
            let trust = place.decide(None, ProjectTrust::Always);
            assert!(!trust.trusted && trust.warning.unwrap().to_string().contains("trusted-files.json"));
        }
    }

    #[test]
    fn trust_that_was_given_for_a_time_is_for_the_files_as_they_were_too() {
        let place = Place::new();
        place.write("home/code/project/.pi/settings.json", "{}");
        let given = place.files();
        let decide = || {
            let (cwd, agent_dir) = (place.path("home/code/project"), AgentDir::at(place.path("home/agent")));
            decide_trust(TrustQuestion {
                cwd: &cwd,
                folders: &ProjectFolders::of(&cwd, &agent_dir),
                agent_dir: &agent_dir,
                environment: &Environment::default(),
                approve: Some(true),
                given: Some(&given),
                default: ProjectTrust::Ask,
            })
        };
        assert!(decide().trusted);
        place.write("home/code/project/.pi/settings.json", "{ }");
        assert!(!decide().trusted);
    }
}
