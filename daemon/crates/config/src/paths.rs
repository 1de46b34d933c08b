//! Every directory that agentd uses.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use agentd_files::{AbsentNames, exists};
use agentd_protocol::{plain_path::without_dots, socket_path::Surroundings};

use crate::{Environment, real_folders::real_path};

/// The directory that holds a user's settings, models, credentials and sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentDir(PathBuf);

/// There is no telling where the agent directory is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the agent directory is not known, since HOME is not set: set HOME, or AGENTD_DIR to a directory")]
pub struct NoAgentDir;

impl AgentDir {
    /// Finds the agent directory: `AGENTD_DIR`, else `PI_CODING_AGENT_DIR`, else `~/.agentd`. With `compat` (started as
    /// `pi`) `PI_CODING_AGENT_DIR` comes first and the default is `~/.pi/agent`. A relative path is taken from `cwd`.
    /// Nothing is created.
    ///
    /// # Errors
    /// [`NoAgentDir`] when neither variable nor `HOME` is set.
    pub fn find(environment: &Environment, compat: bool, cwd: &Path) -> Result<Self, NoAgentDir> {
        let variable = |name: &str| environment.get_os(name).map(OsStr::to_owned);
        // Whose directory it is does not matter here.
        let here = Surroundings { variable: &variable, cwd, uid: 0 };
        here.agent_dir(compat).map(Self).ok_or(NoAgentDir)
    }

    /// Uses this directory.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The directory itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The user's settings.
    #[must_use]
    pub fn settings_file(&self) -> PathBuf {
        self.0.join("settings.json")
    }

    /// The user's models and endpoints.
    #[must_use]
    pub fn models_file(&self) -> PathBuf {
        self.0.join("models.json")
    }

    /// The model catalogue that an update stored.
    #[must_use]
    pub fn catalogue_file(&self) -> PathBuf {
        self.0.join("models-catalogue.bin")
    }

    /// Stored credentials.
    #[must_use]
    pub fn auth_file(&self) -> PathBuf {
        self.0.join("auth.json")
    }

    /// Tokens of MCP servers.
    #[must_use]
    pub fn mcp_auth_file(&self) -> PathBuf {
        self.0.join("mcp-auth.json")
    }

    /// The file with the trusted projects.
    #[must_use]
    pub fn trust_file(&self) -> PathBuf {
        self.0.join("trust.json")
    }

    /// The files of trusted projects as they were when they were trusted.
    #[must_use]
    pub fn trusted_files_file(&self) -> PathBuf {
        self.0.join("trusted-files.json")
    }

    /// The root of session files, a folder for each working directory.
    #[must_use]
    pub fn sessions_dir(&self) -> PathBuf {
        self.0.join("sessions")
    }

    /// The folder for running daemons: sockets, locks, notes on who holds what.
    #[must_use]
    pub fn run_dir(&self) -> PathBuf {
        self.0.join("run")
    }

    /// What undo keeps.
    #[must_use]
    pub fn undo_dir(&self) -> PathBuf {
        self.0.join("undo")
    }

    /// Notes on which daemons live, so that what a killed one left running can be ended.
    #[must_use]
    pub fn owners_dir(&self) -> PathBuf {
        self.run_dir().join("owners")
    }
}

/// The folder for the sessions of a working directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionDir {
    /// Under this root, in a folder for each working directory.
    PerCwd(PathBuf),
    /// In exactly this folder, whatever the working directory.
    Exact(PathBuf),
}

/// Applies the order `--session-dir`, `PI_CODING_AGENT_SESSION_DIR`, setting `sessionDir`, default.
#[must_use]
pub fn session_dir(
    flag: Option<&Path>,
    environment: &Environment,
    setting: Option<&str>,
    agent_dir: &AgentDir,
    cwd: &Path,
) -> SessionDir {
    let configured = flag
        .and_then(Path::to_str)
        .or_else(|| environment.non_empty("PI_CODING_AGENT_SESSION_DIR"))
        .or_else(|| setting.filter(|text| !text.is_empty()));
    match (configured, flag) {
        (Some(text), _) => SessionDir::Exact(resolve_path(text, cwd, environment)),
        // A path that is not UTF-8 has no tilde to expand that anyone typed.
        (None, Some(flag)) => SessionDir::Exact(cwd.join(flag)),
        (None, None) => SessionDir::PerCwd(agent_dir.sessions_dir()),
    }
}

/// The folder for temporary files: `TMPDIR`, `TMP`, `TEMP`, else `/tmp`.
#[must_use]
pub fn temp_dir(environment: &Environment) -> PathBuf {
    ["TMPDIR", "TMP", "TEMP"]
        .into_iter()
        .find_map(|name| environment.non_empty(name))
        .map_or_else(|| PathBuf::from("/tmp"), PathBuf::from)
}

/// Replaces a leading `~` or `~/` by the home directory, if there is one; `~name` stays as it is.
#[must_use]
pub fn expand_tilde(text: &str, environment: &Environment) -> PathBuf {
    let below = if text == "~" { Some("") } else { text.strip_prefix("~/") };
    match (below, environment.non_empty("HOME")) {
        (Some(""), Some(home)) => PathBuf::from(home),
        (Some(rest), Some(home)) => Path::new(home).join(rest.trim_start_matches('/')),
        _ => PathBuf::from(text),
    }
}

/// [`expand_tilde`], and what is then still relative is taken from `cwd`.
#[must_use]
pub fn resolve_path(text: &str, cwd: &Path, environment: &Environment) -> PathBuf {
    cwd.join(expand_tilde(text, environment))
}

/// The folders of a working directory that hold the project's own configuration: `.agentd`, then `.pi`. A folder that is
/// the agent directory itself (a session in the home directory) is none.
#[derive(Debug, Clone)]
pub struct ProjectFolders(Vec<PathBuf>);

impl ProjectFolders {
    /// The folders of `cwd`, whether they exist or not.
    #[must_use]
    pub fn of(cwd: &Path, agent_dir: &AgentDir) -> Self {
        let own = real_path(agent_dir.path());
        let folders = [".agentd", ".pi"].map(|name| cwd.join(name));
        Self(folders.into_iter().filter(|folder| real_path(folder) != own).collect())
    }

    /// The folders, agentd's before pi's, whether they exist or not.
    pub fn each(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(PathBuf::as_path)
    }

    /// An existing entry of agentd's own folder.
    #[must_use]
    pub fn own(&self, name: &str) -> Option<PathBuf> {
        let own = self.0.iter().find(|folder| folder.ends_with(".agentd"))?;
        Some(own.join(name)).filter(|path| exists(path))
    }

    /// Where this entry is, as [`Self::find`] has it, or else would be made: in agentd's own folder. `None` where the project has none.
    #[must_use]
    pub fn place_of(&self, name: &str) -> Option<PathBuf> {
        let own = || self.0.iter().find(|folder| folder.ends_with(".agentd")).map(|folder| folder.join(name));
        self.find(name).or_else(own)
    }

    /// The first existing one of these entries, agentd's before pi's.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        self.0.iter().map(|folder| folder.join(name)).find(|path| exists(path))
    }
}

/// Returns whether a file is one of the project in `cwd`, so that the project's maker may have written it: it lies below the
/// outermost repository around `cwd`, or below `cwd` where there is none, by its path or behind symbolic links. The agent
/// directory is always the user's, and so is the home directory, though it may be a repository.
#[must_use]
pub fn is_of_project(file: &Path, cwd: &Path, agent_dir: &AgentDir, environment: &Environment) -> bool {
    let home = environment.non_empty("HOME").map(|home| real_path(Path::new(home)));
    let of_user = |folder: &Path| home.as_deref().is_some_and(|home| home.starts_with(folder));
    let holds = |cwd: &Path, agent_dir: &Path, file: &Path| {
        let around = cwd.ancestors().filter(|folder| has_git(folder) && exists(&folder.join(".git")));
        let root = [cwd].into_iter().chain(around).filter(|folder| !of_user(&real_path(folder))).last();
        root.is_some_and(|root| file.starts_with(root)) && !file.starts_with(agent_dir)
    };
    holds(&without_dots(cwd), &without_dots(agent_dir.path()), &without_dots(file))
        || holds(&real_path(cwd), &real_path(agent_dir.path()), &real_path(file))
}

/// Whether something is at `.git` of a folder, be it a link that leads nowhere. Blocks.
pub(crate) fn has_git(folder: &Path) -> bool {
    static GIT: AbsentNames = AbsentNames::new(&[".git"]);
    GIT.may_be_in(folder) && folder.join(".git").symlink_metadata().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        variables.iter().copied().collect()
    }

    fn check_agent_dir(variables: &[(&str, &str)], compat: bool, expected: &str) {
        let found = AgentDir::find(&environment(variables), compat, Path::new("/cwd")).unwrap();
        assert_eq!(found.path(), Path::new(expected), "{variables:?} {compat}");
    }

    #[test]
    fn the_agent_directory_follows_the_name_we_were_started_under() {
        let both = [("AGENTD_DIR", "/ours"), ("PI_CODING_AGENT_DIR", "/theirs"), ("HOME", "/h")];
        check_agent_dir(&both, false, "/ours");
        check_agent_dir(&both, true, "/theirs");
        check_agent_dir(&both[1..], false, "/theirs");
        check_agent_dir(&both[..1], true, "/ours");
        check_agent_dir(&[("HOME", "/h")], false, "/h/.agentd");
        check_agent_dir(&[("HOME", "/h")], true, "/h/.pi/agent");
        check_agent_dir(&[("HOME", "/h"), ("AGENTD_DIR", "~/a")], false, "/h/a");
        check_agent_dir(&[("HOME", "/h"), ("AGENTD_DIR", "")], false, "/h/.agentd");
        check_agent_dir(&[("AGENTD_DIR", "a")], false, "/cwd/a");
        assert_eq!(AgentDir::find(&environment(&[]), false, Path::new("/cwd")), Err(NoAgentDir));
    }

    #[test]
    fn tildes() {
        let home = environment(&[("HOME", "/h")]);
        for (text, expected) in
            [("~", "/h"), ("~/a/b", "/h/a/b"), ("~//a", "/h/a"), ("~x/a", "~x/a"), ("a~", "a~"), ("/a", "/a")]
        {
            assert_eq!(expand_tilde(text, &home), Path::new(expected), "{text}");
        }
        assert_eq!(expand_tilde("~/a", &environment(&[])), Path::new("~/a"));
        assert_eq!(resolve_path("a/b", Path::new("/c"), &home), Path::new("/c/a/b"));
    }

    #[test]
    fn session_directories() {
        let agent = AgentDir::at("/agent");
        let set = environment(&[("PI_CODING_AGENT_SESSION_DIR", "/env"), ("HOME", "/h")]);
        let unset = environment(&[("HOME", "/h")]);
        let check = |flag: Option<&str>, environment: &Environment, setting, expected| {
            let cwd = Path::new("/cwd");
            assert_eq!(session_dir(flag.map(Path::new), environment, setting, &agent, cwd), expected);
        };
        check(Some("f"), &set, Some("/setting"), SessionDir::Exact("/cwd/f".into()));
        check(None, &set, Some("/setting"), SessionDir::Exact("/env".into()));
        check(None, &unset, Some("~/s"), SessionDir::Exact("/h/s".into()));
        check(None, &unset, None, SessionDir::PerCwd("/agent/sessions".into()));
        check(None, &unset, Some(""), SessionDir::PerCwd("/agent/sessions".into()));
    }

    #[test]
    fn files_of_the_project_are_known() {
        use std::{fs, os::unix::fs::symlink};

        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().canonicalize().unwrap().join(path);
        for folder in [
            "home/code/project/sub",
            "home/agent/sessions",
            "home/mine",
            "home/code/project/.git",
            "home/.git",
        ] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        for file in ["home/code/project/s.jsonl", "home/agent/sessions/s.jsonl", "home/mine/s.jsonl"] {
            fs::write(at(file), "").unwrap();
        }
        symlink(at("home/mine"), at("home/code/project/link")).unwrap();
        symlink(at("home/code/project"), at("home/way")).unwrap();
        let environment: Environment = [("HOME", at("home"))].into_iter().collect();
        let agent_dir = AgentDir::at(at("home/agent"));
        let check = |file: &str, cwd: &str, expected: bool| {
            let is = is_of_project(&at(file), &at(cwd), &agent_dir, &environment);
            assert_eq!(is, expected, "{file} in {cwd}");
        };
        for cwd in ["home/code/project", "home/code/project/sub", "home/way/sub"] {
            check("home/code/project/s.jsonl", cwd, true);
            check("home/way/s.jsonl", cwd, true);
            check("home/mine/s.jsonl", cwd, false);
            check("home/agent/sessions/s.jsonl", cwd, false);
        }
        // A link of the project's leads out of it, and dots lead into it.
        check("home/code/project/link/s.jsonl", "home/code/project", true);
        check("home/mine/../code/project/s.jsonl", "home/code/project/sub", true);
        // The home directory is the user's, though it is a repository.
        check("home/mine/s.jsonl", "home/agent", false);
        check("home/mine/s.jsonl", "home", false);
        check("home/agent/sessions/s.jsonl", "home", false);
    }

    #[test]
    fn temporary_directory() {
        assert_eq!(temp_dir(&environment(&[("TMPDIR", "/t"), ("TMP", "/u")])), Path::new("/t"));
        assert_eq!(temp_dir(&environment(&[("TMPDIR", "")])), Path::new("/tmp"));
    }

    #[test]
    fn our_project_folder_comes_first_and_the_agent_directory_is_none() {
        let home = tempfile::tempdir().unwrap();
        let (ours, theirs) = (home.path().join(".agentd"), home.path().join(".pi"));
        for folder in [&ours, &theirs] {
            std::fs::create_dir(folder).unwrap();
        }
        std::fs::write(theirs.join("settings.json"), "{}").unwrap();
        let elsewhere = ProjectFolders::of(home.path(), &AgentDir::at("/elsewhere"));
        assert_eq!(elsewhere.find("settings.json"), Some(theirs.join("settings.json")));
        std::fs::write(ours.join("settings.json"), "{}").unwrap();
        assert_eq!(elsewhere.find("settings.json"), Some(ours.join("settings.json")));
        let at_home = ProjectFolders::of(home.path(), &AgentDir::at(&ours));
        assert_eq!(at_home.find("settings.json"), Some(theirs.join("settings.json")));
        assert_eq!(at_home.find("SYSTEM.md"), None);
    }
}
