//! A home of its own for each test, isolated from the files, variables and settings of the machine.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::mock_server::MockServer;

/// A temporary folder with a home, an agent directory, a project folder and a folder for temporary files.
pub struct Home {
    root: PathBuf,
    // Dropping it removes the folder.
    _folder: TempDir,
}

/// A daemon that a test has started in the background, on purpose or by a client that came late, ends with its home.
impl Drop for Home {
    fn drop(&mut self) {
        let lock = fs::read_to_string(self.agent_dir().join("run/agentd.sock.lock"));
        let Some(id): Option<i32> = lock.ok().and_then(|id| id.trim().parse().ok()) else { return };
        // The number may belong to another process by now.
        let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        let is_ours = format!("AGENTD_DIR={}", self.agent_dir().display());
        if environment.split(|byte| *byte == 0).any(|variable| variable == is_ours.as_bytes()) {
            // Fails only for a process that has ended.
            let _ = Pid::from_raw(id).map(|id| kill_process(id, Signal::KILL));
        }
    }
}

impl Default for Home {
    fn default() -> Self {
        Self::new()
    }
}

impl Home {
    /// A home without any configuration.
    #[must_use]
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("agentd-e2e-").tempdir().expect("a temporary folder");
        let root = folder.path().canonicalize().expect("the path of the temporary folder");
        for name in ["home", "agent", "project", "tmp"] {
            fs::create_dir(root.join(name)).expect("a folder in the temporary folder");
        }
        Self { root, _folder: folder }
    }

    /// A home in which `fake/fake` is a model behind `server`, and the only one.
    #[must_use]
    pub fn with_model(server: &MockServer) -> Self {
        let home = Self::new();
        home.configure(&models(&server.base_url()));
        home
    }

    /// The root of the temporary folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The agent directory.
    #[must_use]
    pub fn agent_dir(&self) -> PathBuf {
        self.root.join("agent")
    }

    /// The working directory of the programs.
    #[must_use]
    pub fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    /// Writes `models.json`.
    pub fn configure(&self, models: &Value) {
        self.write_agent("models.json", &models.to_string());
    }

    /// Writes `settings.json`.
    pub fn settings(&self, settings: &Value) {
        self.write_agent("settings.json", &settings.to_string());
    }

    /// Writes a file of the agent directory.
    pub fn write_agent(&self, name: &str, content: &str) {
        write(&self.agent_dir().join(name), content);
    }

    /// Writes a file of the user's home.
    pub fn write_home(&self, name: &str, content: &str) {
        write(&self.root.join("home").join(name), content);
    }

    /// Writes a file of the project.
    pub fn write(&self, name: &str, content: &str) {
        write(&self.project().join(name), content);
    }

    /// Reads a file of the project.
    #[must_use]
    pub fn read(&self, name: &str) -> String {
        let path = self.project().join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Every session file in the agent directory. A file that is removed meanwhile may be missing.
    #[must_use]
    pub fn session_files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let mut folders = vec![self.agent_dir().join("sessions")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "jsonl") {
                    // A folder with the session's artifacts may stand beside it.
                    files.push(path);
                }
            }
        }
        files.sort();
        files
    }

    /// A command that runs in the project, and sees only this home.
    #[must_use]
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command
            .env_clear()
            .env("PATH", env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.root.join("home"))
            .env("AGENTD_DIR", self.agent_dir())
            .env("TMPDIR", self.root.join("tmp"))
            .env("LANG", "C.UTF-8")
            .current_dir(self.project());
        if !rustix::process::getuid().is_root() {
            // Tests read the daemon's memory use, which is closed to other programs of its user.
            command.env("AGENTD_DUMPABLE", "1");
        }
        command
    }
}

/// A `models.json` with the model `fake/fake` at `base_url`.
#[must_use]
pub fn models(base_url: &str) -> Value {
    json!({"providers": {"fake": {
        "baseUrl": base_url, "api": "openai-completions", "apiKey": "test-key-1234", "models": [{"id": "fake"}],
    }}})
}

fn write(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().expect("a file has a folder")).expect("the folder of a file");
    fs::write(path, content).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
