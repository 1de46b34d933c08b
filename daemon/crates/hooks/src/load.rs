//! Reads the hooks of a session from the user's files, and from those of a trusted project.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use agentd_config::{AgentDir, JsonDocument, JsonFileError, ProjectFolders, read_json, read_project_json};
use agentd_protocol::{
    resources::{Diagnostic, DiagnosticKind},
    settings::Settings,
};
use serde_json::Value;

use crate::{
    config::ConfigReader,
    dialect::Dialect,
    executables::add_executables,
    hook::{Hook, HookOrigin},
    set::HookSet,
};

/// The time after which a hook is killed, if nothing says otherwise: as in Claude Code.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// The files of Claude Code in a project.
const CLAUDE_FILES: [&str; 2] = ["settings.json", "settings.local.json"];

/// Which hooks count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookOptions {
    /// Whether there are any.
    pub enabled: bool,
    /// Whether those of a trusted project's `.claude` folder count.
    pub of_claude_project: bool,
    /// Whether those of the user's `~/.claude` count.
    pub of_claude_user: bool,
    /// The time of hooks that name none.
    pub timeout: Duration,
}

impl HookOptions {
    /// The setting `shellHooks`; and `discovery.foreign`, without which no files of other tools count.
    #[must_use]
    pub fn of(settings: &Settings) -> Self {
        let foreign = settings.discovery.as_ref().and_then(|discovery| discovery.foreign).unwrap_or(true);
        let settings = settings.shell_hooks.clone().unwrap_or_default();
        Self {
            enabled: settings.enabled.unwrap_or(true),
            of_claude_project: foreign && settings.claude_project.unwrap_or(true),
            of_claude_user: settings.claude_user.unwrap_or(false),
            timeout: settings.timeout_seconds.map_or(DEFAULT_TIMEOUT, |seconds| {
                Duration::try_from_secs_f64(seconds)
                    .ok()
                    .filter(|time| !time.is_zero())
                    .unwrap_or(DEFAULT_TIMEOUT)
            }),
        }
    }
}

/// Where hooks are looked for.
#[derive(Debug, Clone, Copy)]
pub struct HookSources<'a> {
    /// The user's own folder.
    pub agent_dir: &'a AgentDir,
    /// The project's working directory.
    pub cwd: &'a Path,
    /// Its folders, where it is trusted.
    pub project: Option<&'a ProjectFolders>,
    /// The user's home directory.
    pub home: Option<&'a Path>,
    /// Whether one of the settings files has the key `hooks`: they are read again only then.
    pub is_in_settings: bool,
    /// Which count.
    pub options: HookOptions,
}

/// Reads the hooks. What cannot be used is told in `found`. Blocks.
#[must_use]
pub fn load(sources: &HookSources<'_>, found: &mut Vec<Diagnostic>) -> HookSet {
    if !sources.options.enabled {
        return HookSet::default();
    }
    let mut hooks = Vec::new();
    let mut loading = Loading { options: sources.options, hooks: &mut hooks, found };
    loading.user(sources);
    if let Some(project) = sources.project {
        loading.project(sources, project);
    }
    HookSet::new(hooks)
}

struct Loading<'a> {
    options: HookOptions,
    hooks: &'a mut Vec<Hook>,
    found: &'a mut Vec<Diagnostic>,
}

impl Loading<'_> {
    fn user(&mut self, sources: &HookSources<'_>) {
        if sources.is_in_settings {
            // What is wrong with the whole file is told with the settings.
            self.settings(sources.agent_dir.settings_file(), &Place::User, Dialect::Own);
        }
        let folder = sources.agent_dir.path().join("hooks");
        add_executables(&folder, None, self.options.timeout, self.hooks, self.found);
        if let Some(home) = sources.home.filter(|_| self.options.of_claude_user) {
            self.claude(&home.join(".claude"), &CLAUDE_FILES[..1], &Place::User);
        }
    }

    fn project(&mut self, sources: &HookSources<'_>, project: &ProjectFolders) {
        let root = root_of(sources.cwd);
        if sources.is_in_settings
            && let Some(file) = project.find("settings.json")
        {
            self.settings(file, &Place::Project, Dialect::Own);
        }
        for folder in project.each() {
            add_executables(&folder.join("hooks"), Some(root), self.options.timeout, self.hooks, self.found);
        }
        if self.options.of_claude_project {
            self.claude(&sources.cwd.join(".claude"), &CLAUDE_FILES, &Place::Project);
        }
    }

    /// The hooks of files of Claude Code, unless one of them says that there are none.
    fn claude(&mut self, folder: &Path, files: &[&str], place: &Place) {
        let mut read = Vec::new();
        for file in files {
            let path = folder.join(file);
            match place.read(&path) {
                Ok(Some(document)) => read.push((path, document.value)),
                Ok(None) => {}
                Err(error) => {
                    self.found.push(error.diagnostic(DiagnosticKind::Hook).hint("its hooks are not run"))
                }
            }
        }
        if read.iter().any(|(_, value)| value.get("disableAllHooks") == Some(&Value::Bool(true))) {
            return;
        }
        for (path, value) in read {
            self.value(path, &value, place, Dialect::Claude);
        }
    }

    fn settings(&mut self, path: PathBuf, place: &Place, dialect: Dialect) {
        if let Ok(Some(document)) = place.read(&path) {
            self.value(path, &document.value, place, dialect);
        }
    }

    fn value(&mut self, path: PathBuf, value: &Value, place: &Place, dialect: Dialect) {
        let Some(named) = value.get("hooks").filter(|hooks| !hooks.is_null()) else { return };
        let origin = HookOrigin { path, is_of_project: matches!(place, Place::Project) };
        ConfigReader::new(&origin, dialect, self.options.timeout, self.hooks, self.found).read(named);
    }
}

enum Place {
    User,
    Project,
}

impl Place {
    fn read(&self, path: &Path) -> Result<Option<JsonDocument>, JsonFileError> {
        match self {
            Self::User => read_json(path),
            Self::Project => read_project_json(path),
        }
    }
}

/// The repository around a folder, or the folder itself.
fn root_of(cwd: &Path) -> &Path {
    cwd.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(cwd)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;
    use crate::event::HookEvent;

    struct Files(tempfile::TempDir);

    impl Files {
        fn new(files: &[(&str, &str)]) -> Self {
            let files_at = Self(tempfile::tempdir().unwrap());
            fs::create_dir_all(files_at.at("p")).unwrap();
            for (name, text) in files {
                fs::create_dir_all(files_at.at(name).parent().unwrap()).unwrap();
                fs::write(files_at.at(name), text).unwrap();
                fs::set_permissions(files_at.at(name), fs::Permissions::from_mode(0o755)).unwrap();
            }
            files_at
        }

        fn at(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn load(
            &self,
            is_trusted: bool,
            change: impl FnOnce(&mut HookOptions),
        ) -> (Vec<String>, Vec<String>) {
            let (agent_dir, cwd) = (AgentDir::at(self.at("agent")), self.at("p"));
            let project = ProjectFolders::of(&cwd, &agent_dir);
            let mut options = HookOptions::of(&Settings::default());
            change(&mut options);
            let sources = HookSources {
                agent_dir: &agent_dir,
                cwd: &cwd,
                project: is_trusted.then_some(&project),
                home: Some(&self.at("home")),
                is_in_settings: true,
                options,
            };
            let mut found = Vec::new();
            let set = load(&sources, &mut found);
            let place = format!("{}/", self.0.path().display());
            let shown = set.all().map(|hook| hook.to_string().replace(&place, ""));
            (shown.collect(), found.iter().map(|it| it.to_string().replace(&place, "")).collect())
        }
    }

    fn stop(command: &str) -> String {
        format!(
            "{{\"hooks\":{{\"Stop\":[{{\"hooks\":[{{\"type\":\"command\",\"command\":\"{command}\"}}]}}]}}}}"
        )
    }

    #[test]
    fn the_users_come_first_and_the_projects_only_with_trust() {
        let files = Files::new(&[
            ("agent/settings.json", &stop("user")),
            ("agent/hooks/pre/bash.sh", ""),
            ("home/.claude/settings.json", &stop("claude user")),
            ("p/.agentd/settings.json", &stop("project")),
            ("p/.agentd/hooks/post/*.sh", ""),
            ("p/.claude/settings.json", &stop("claude")),
            ("p/.claude/settings.local.json", &stop("claude local")),
        ]);
        let user = ["agent/hooks/pre/bash.sh".to_owned(), "\"user\"".to_owned()];
        assert_eq!(files.load(false, |_| ()).0, user);
        assert_eq!(
            files.load(true, |_| ()).0,
            [
                "agent/hooks/pre/bash.sh",
                "p/.agentd/hooks/post/*.sh",
                "\"user\"",
                "\"project\"",
                "\"claude\"",
                "\"claude local\""
            ]
        );
        assert_eq!(files.load(true, |options| options.of_claude_project = false).0.len(), 4);
        let with_user = files.load(false, |options| options.of_claude_user = true).0;
        assert_eq!(with_user, [user.as_slice(), &["\"claude user\"".to_owned()]].concat());
        assert_eq!(files.load(true, |options| options.enabled = false).0, [""; 0]);
    }

    #[test]
    fn a_file_of_claude_code_can_say_that_there_are_none() {
        let off = r#"{"disableAllHooks":true,"hooks":{}}"#;
        let files = Files::new(&[
            ("agent/settings.json", &stop("user")),
            ("p/.claude/settings.json", &stop("claude")),
            ("p/.claude/settings.local.json", off),
        ]);
        assert_eq!(files.load(true, |_| ()).0, ["\"user\""]);
    }

    #[test]
    fn a_broken_file_is_named() {
        let files = Files::new(&[
            ("p/.claude/settings.json", "{x"),
            ("p/.claude/settings.local.json", "{\"hooks\":3}"),
        ]);
        let (hooks, found) = files.load(true, |_| ());
        assert_eq!(hooks, [""; 0]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("p/.claude/settings.json:1: not JSON"), "{found:?}");
        assert!(found[1].contains("\"hooks\" is ignored: expected an object of events"), "{found:?}");
        assert_eq!(Files::new(&[]).load(true, |_| ()), (Vec::new(), Vec::new()));
    }

    #[test]
    fn a_settings_file_as_a_repository_has_it() {
        let files =
            Files::new(&[("p/.claude/settings.json", include_str!("../tests/data/claude-settings.json"))]);
        let agent_dir = AgentDir::at(files.at("agent"));
        let project = ProjectFolders::of(&files.at("p"), &agent_dir);
        let sources = HookSources {
            agent_dir: &agent_dir,
            cwd: &files.at("p"),
            project: Some(&project),
            home: None,
            is_in_settings: false,
            options: HookOptions::of(&Settings::default()),
        };
        let mut found = Vec::new();
        let set = load(&sources, &mut found);
        assert_eq!(found, []);
        let count = |event, about: &[&str]| set.matching(event, about).len();
        assert_eq!(count(HookEvent::PreToolUse, &["bash", "Bash"]), 2);
        assert_eq!(count(HookEvent::PreToolUse, &["read", "Read"]), 1);
        assert_eq!(count(HookEvent::PostToolUse, &["edit", "Edit", "MultiEdit"]), 1);
        assert_eq!(count(HookEvent::SessionStart, &["startup"]), 1);
        assert_eq!(count(HookEvent::SessionStart, &["compact"]), 0);
        assert_eq!(count(HookEvent::Stop, &[]), 1);
    }
}
