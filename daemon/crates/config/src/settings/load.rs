//! The settings of a session: the user's, and over them the project's where it is trusted.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use agentd_protocol::{
    resources::{Diagnostic, DiagnosticKind, DiagnosticLevel},
    settings::Settings,
};
use serde_json::{Map, Value};

use super::{layer::Layer, merge::merge};
use crate::{
    AgentDir, Environment, ProjectFolders, StartingFiles, TrustBasis, TrustDecision, TrustQuestion,
    decide_trust,
    resources::{ListedPaths, ResourceLists},
};

/// The settings for a working directory.
#[derive(Debug, Clone)]
pub struct LoadedSettings {
    /// The keys that we know.
    pub settings: Settings,
    /// The project folders of the working directory.
    pub folders: ProjectFolders,
    /// True if the project's own settings and prompts are used.
    pub trust: TrustDecision,
    /// The resources that they name, each list with the folder that it counts from.
    pub resources: ResourceLists,
    /// The faults of the files.
    pub diagnostics: Vec<Diagnostic>,
    /// Why the user's `permissions`, `budgets` or `sandbox`, which are there, cannot be read. To go on without them would allow everything.
    pub guard_rails_fault: Option<String>,
}

/// Loads `settings.json` of the agent directory and, for a trusted project, that of the project folder. Of a project
/// that is not trusted no setting counts. Nothing fails; what cannot be used is in [`LoadedSettings::diagnostics`].
///
/// `approve` is `--approve` (true) or `--no-approve` (false).
#[must_use]
pub fn load(
    agent_dir: &AgentDir,
    cwd: &Path,
    environment: &Environment,
    approve: Option<bool>,
) -> LoadedSettings {
    load_as_given(agent_dir, cwd, environment, approve, None)
}

/// [`load`] with an earlier `approve`: for the project's files as they were then.
#[must_use]
pub fn load_as_given(
    agent_dir: &AgentDir,
    cwd: &Path,
    environment: &Environment,
    approve: Option<bool>,
    given: Option<&StartingFiles>,
) -> LoadedSettings {
    let Layer { values: user, mut diagnostics, guard_rails_fault } = Layer::read(&agent_dir.settings_file());
    let folders = ProjectFolders::of(cwd, agent_dir);
    let of_user = typed(user.clone(), &mut diagnostics);
    let default = of_user.default_project_trust.unwrap_or_default();
    let foreign = of_user.discovery.and_then(|discovery| discovery.foreign).unwrap_or(true);
    let trust = decide_trust(TrustQuestion {
        cwd,
        folders: &folders,
        agent_dir,
        environment,
        approve,
        given,
        default,
        foreign,
    });
    diagnostics.extend(trust.warning.clone());
    let project_file = folders.find("settings.json");
    let read = project_file.as_deref().filter(|_| trust.trusted).map(Layer::read_of_project);
    let mut project = read.unwrap_or_default();
    diagnostics.append(&mut project.diagnostics);
    if !trust.trusted && trust.warning.is_none() {
        diagnostics.extend(not_used(cwd, &trust.basis));
    }
    let resources = ResourceLists {
        user: listed(&agent_dir.settings_file(), &user),
        project: project_file.map(|file| listed(&file, &project.values)).unwrap_or_default(),
    };
    let settings = typed(merge(user, project.values), &mut diagnostics);
    LoadedSettings { settings, folders, trust, resources, diagnostics, guard_rails_fault }
}

/// The diagnostic that the project's own settings, prompts and skills are not used.
fn not_used(cwd: &Path, basis: &TrustBasis) -> Vec<Diagnostic> {
    if let TrustBasis::Replaced(folder) = basis {
        let message = "is another folder than the one that was trusted, so that the project's own settings, prompts and skills \
                       are not used";
        let hint = "look at what is in it; then trust the project again: `agentctl prompt` on a terminal and `agentctl attach` \
                    ask, --approve trusts it for a session";
        return vec![Diagnostic::warning(DiagnosticKind::Trust, message).at(folder).hint(hint)];
    }
    let TrustBasis::Changed(files) = basis else {
        let message = "the project is not trusted, so that its own settings, prompts and skills, its hooks, extensions and servers are \
                       not used";
        let told = Diagnostic::warning(DiagnosticKind::Trust, message).level(DiagnosticLevel::Info).at(cwd);
        return vec![told.hint("--approve trusts it for a session")];
    };
    let told = |file: &PathBuf| {
        let message = format!(
            "was changed since the project in {} was trusted, so that the project's own settings, prompts and skills are not \
             used",
            cwd.display()
        );
        Diagnostic::warning(DiagnosticKind::Trust, message).at(file).hint(
            "look at it; then trust the project again: `agentctl prompt` on a terminal and `agentctl attach` ask, --approve \
             trusts it for a session",
        )
    };
    files.iter().map(told).collect()
}

/// The resources that one file names. Merged with those of another one they would lose what they are relative to.
fn listed(file: &Path, values: &Map<String, Value>) -> ListedPaths {
    let list = |key: &str| {
        let items = values.get(key).and_then(Value::as_array).into_iter().flatten();
        items.filter_map(Value::as_str).filter(|item| !item.is_empty()).map(str::to_owned).collect()
    };
    let base = file.parent().unwrap_or(file).to_path_buf();
    // Each entry was found good with its file.
    let packages = values.get("packages").and_then(|value| serde_json::from_value(value.clone()).ok());
    ListedPaths {
        base,
        skills: list("skills"),
        prompts: list("prompts"),
        extensions: list("extensions"),
        packages: packages.unwrap_or_default(),
    }
}

/// The user's own settings, for work outside of sessions. Unusable values are left out.
#[must_use]
pub fn load_user(agent_dir: &AgentDir) -> Settings {
    let Layer { values, .. } = Layer::read(&agent_dir.settings_file());
    typed(values, &mut Vec::new())
}

/// The typed view of keys that were each found good.
fn typed(values: Map<String, Value>, diagnostics: &mut Vec<Diagnostic>) -> Settings {
    serde_json::from_value(Value::Object(values)).unwrap_or_else(|error| {
        let message = format!("the files together cannot be used ({error}); defaults are used instead");
        diagnostics.push(Diagnostic::warning(DiagnosticKind::Settings, message));
        Settings::default()
    })
}

/// The time for which a provider may be silent (`httpIdleTimeoutMs`, default 5 minutes); `None` for no limit.
#[must_use]
pub fn http_idle_timeout(settings: &Settings) -> Option<Duration> {
    const DEFAULT: Duration = Duration::from_secs(300);
    match &settings.http_idle_timeout_ms {
        None | Some(Value::Null) => Some(DEFAULT),
        Some(Value::Number(millis)) => {
            let millis = millis.as_f64().unwrap_or_default();
            (millis > 0.0).then(|| Duration::try_from_secs_f64(millis / 1000.0).unwrap_or(Duration::MAX))
        }
        Some(value) if value == "disabled" => None,
        Some(_) => Some(DEFAULT),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    struct TestFolder(tempfile::TempDir);

    impl TestFolder {
        fn new(files: &[(&str, &str)]) -> Self {
            let place = Self(tempfile::tempdir().unwrap());
            fs::create_dir(place.path("cwd")).unwrap();
            for (name, text) in files {
                fs::create_dir_all(place.path(name).parent().unwrap()).unwrap();
                fs::write(place.path(name), text).unwrap();
            }
            place
        }

        fn path(&self, below: &str) -> PathBuf {
            self.0.path().join(below)
        }

        fn load(&self, approve: Option<bool>) -> LoadedSettings {
            load(&AgentDir::at(self.path("agent")), &self.path("cwd"), &Environment::default(), approve)
        }

        fn model(&self, approve: Option<bool>) -> Option<String> {
            self.load(approve).settings.default_model
        }
    }

    #[test]
    fn the_project_counts_when_trusted() {
        let place = TestFolder::new(&[
            ("agent/settings.json", r#"{"defaultModel":"user","compaction":{"enabled":false}}"#),
            ("cwd/.pi/settings.json", r#"{"defaultModel":"project","sessionDir":"s","shellPath":5}"#),
        ]);
        let untrusted = place.load(None);
        assert_eq!(untrusted.settings.default_model.as_deref(), Some("user"));
        assert_eq!(untrusted.settings.session_dir, None);
        let told: Vec<_> = untrusted.diagnostics.iter().map(|it| (it.level, it.kind)).collect();
        assert_eq!(told, [(DiagnosticLevel::Info, DiagnosticKind::Trust)]);
        let trusted = place.load(Some(true));
        assert_eq!(trusted.settings.default_model.as_deref(), Some("project"));
        assert_eq!(trusted.settings.compaction.unwrap().enabled, Some(false));
        assert_eq!(trusted.diagnostics.len(), 1);
        fs::write(place.path("agent/settings.json"), r#"{"defaultProjectTrust":"always"}"#).unwrap();
        assert_eq!(place.model(None).as_deref(), Some("project"));
        assert_eq!(place.model(Some(false)), None);
    }

    #[test]
    fn lists_of_resources_keep_the_folder_that_they_count_from() {
        let place = TestFolder::new(&[
            ("agent/settings.json", r#"{"skills":["a"],"prompts":["b", ""]}"#),
            ("cwd/.pi/settings.json", r#"{"skills":["c"],"prompts":5}"#),
        ]);
        let listed = |base: &str, skills: &[&str], prompts: &[&str]| ListedPaths {
            base: place.path(base),
            skills: skills.iter().map(|it| (*it).to_owned()).collect(),
            prompts: prompts.iter().map(|it| (*it).to_owned()).collect(),
            ..ListedPaths::default()
        };
        let loaded = place.load(Some(true));
        let (user, project) = (listed("agent", &["a"], &["b"]), listed("cwd/.pi", &["c"], &[]));
        assert_eq!(loaded.resources, ResourceLists { user, project });
        assert_eq!(loaded.diagnostics.len(), 1);
        assert_eq!(place.load(Some(false)).resources.project, listed("cwd/.pi", &[], &[]));
    }

    #[test]
    fn extensions_and_packages_are_listed_by_their_file() {
        let place = TestFolder::new(&[
            (
                "agent/settings.json",
                r#"{"extensions":["e"],"packages":["npm:a",{"source":"./b","skills":[]}]}"#,
            ),
            ("cwd/.pi/settings.json", r#"{"extensions":["-x"],"packages":[5]}"#),
        ]);
        let loaded = place.load(Some(true));
        let user = &loaded.resources.user;
        assert_eq!(user.extensions, ["e"]);
        let sources: Vec<_> = user.packages.iter().map(|it| (it.source(), it.filter().is_some())).collect();
        assert_eq!(sources, [("npm:a", false), ("./b", true)]);
        let project = &loaded.resources.project;
        assert_eq!((project.extensions.as_slice(), project.packages.len()), (&["-x".to_owned()][..], 0));
        let said = loaded.diagnostics.last().unwrap().to_string();
        assert!(said.contains("\"packages\" is ignored: expected the source of a package"), "{said}");
        assert_eq!(loaded.settings.packages.unwrap().len(), 2);
    }

    #[test]
    fn the_folder_of_agentd_hides_that_of_pi() {
        let place = TestFolder::new(&[
            ("cwd/.agentd/settings.json", r#"{"defaultModel":"ours"}"#),
            ("cwd/.pi/settings.json", r#"{"defaultModel":"theirs","defaultProvider":"p"}"#),
        ]);
        let settings = place.load(Some(true)).settings;
        assert_eq!((settings.default_model.as_deref(), settings.default_provider), (Some("ours"), None));
    }

    #[test]
    fn a_project_cannot_trust_itself() {
        let place = TestFolder::new(&[(
            "cwd/.pi/settings.json",
            r#"{"defaultProjectTrust":"always","defaultModel":"p"}"#,
        )]);
        assert_eq!(place.model(None), None);
    }

    #[test]
    fn broken_files_are_named_and_the_rest_counts() {
        let place = TestFolder::new(&[
            ("agent/settings.json", "{x"),
            ("cwd/.pi/settings.json", r#"{"defaultModel":"p"}"#),
        ]);
        let loaded = place.load(Some(true));
        assert_eq!(loaded.settings.default_model.as_deref(), Some("p"));
        assert!(
            loaded.diagnostics[0].to_string().contains("agent/settings.json:1: not JSON at column 2"),
            "{:?}",
            loaded.diagnostics
        );
    }

    #[test]
    fn idle_timeouts() {
        let check = |value: Value, expected: Option<u64>| {
            let settings = Settings { http_idle_timeout_ms: Some(value), ..Settings::default() };
            assert_eq!(http_idle_timeout(&settings), expected.map(Duration::from_millis));
        };
        assert_eq!(http_idle_timeout(&Settings::default()), Some(Duration::from_secs(300)));
        check(json!(250), Some(250));
        check(json!(0), None);
        check(json!("disabled"), None);
        check(Value::Null, Some(300_000));
        assert!(
            http_idle_timeout(&Settings { http_idle_timeout_ms: Some(json!(1e300)), ..Settings::default() })
                .is_some()
        );
    }
}
