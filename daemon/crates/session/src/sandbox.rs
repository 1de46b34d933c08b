//! The sandbox of a session: resolved from its settings when it opens, kept until it is closed.

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex, PoisonError},
};

use agentd_config::{AgentDir, Environment, resolve_path, temp_dir};
use agentd_protocol::{
    sandbox::{SandboxState, SandboxSupport},
    settings::{NamespaceMaker, NetworkAccess, SandboxMode, SandboxSettings},
    socket_path::Surroundings,
};
use agentd_sandbox::{ReservedPaths, SandboxPolicy};

use crate::{options::SandboxOptions, temporary_folder::TemporaryFolder};

/// The first argument that makes the daemon's program try what the system offers; see [`SupportCache`].
pub const PROBE_ARGUMENT: &str = "sandbox-probe";

/// A sandbox that cannot be had. A session does not run without the one that was asked for.
#[derive(Debug, thiserror::Error)]
pub enum SandboxFault {
    /// A path of the settings or flags cannot be used.
    #[error("The sandbox cannot be set up: {path} ({from}) {problem}")]
    Path {
        /// The path.
        path: PathBuf,
        /// Where it comes from.
        from: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The system does not offer all of it.
    #[error(
        "The sandbox cannot be enforced here: {}. Set sandbox.required to false to go on with what can be enforced, or use --sandbox \
         off",
        gaps.join("; ")
    )]
    Support {
        /// What would not be stopped.
        gaps: Vec<String>,
    },
    /// What the system offers could not be found out, or the temporary folder could not be made.
    #[error("The sandbox cannot be set up: {what}: {source}")]
    System {
        /// What failed.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

/// What the system offers, found out once.
#[derive(Debug, Default)]
pub struct SupportCache(Mutex<HashMap<Option<PathBuf>, SandboxSupport>>);

impl SupportCache {
    /// What the system offers, with mounts by `bwrap` if it is given. The first call runs this program once more, which tries it, and takes some milliseconds. Blocks.
    ///
    /// # Errors
    /// The system's, when that program cannot be run.
    pub fn get(&self, bwrap: Option<&Path>) -> io::Result<SandboxSupport> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = bwrap.map(Path::to_owned);
        if let Some(support) = known.get(&key) {
            return Ok(support.clone());
        }
        // A process of its own: what it tries cannot be undone.
        let output = Command::new("/proc/self/exe")
            .arg(PROBE_ARGUMENT)
            .args(bwrap)
            .env_clear()
            .current_dir("/")
            .output()?;
        let support: SandboxSupport = serde_json::from_slice(&output.stdout).map_err(|error| {
            io::Error::other(format!("the trial ended with {} and said no result ({error})", output.status))
        })?;
        known.insert(key, support.clone());
        Ok(support)
    }
}

/// The sandbox of one session.
#[derive(Debug)]
pub(crate) struct SessionSandbox {
    policy: Arc<SandboxPolicy>,
    state: SandboxState,
    /// Removed with the session.
    temporary: TemporaryFolder,
    _reserved: ReservedPaths,
}

/// What a sandbox is made of.
pub(crate) struct SandboxSources<'a> {
    /// The setting `sandbox`.
    pub(crate) settings: Option<&'a SandboxSettings>,
    /// `--sandbox` and its like.
    pub(crate) options: &'a SandboxOptions,
    /// The session's folder.
    pub(crate) cwd: &'a Path,
    /// Further folders of the workspace.
    pub(crate) folders: &'a [PathBuf],
    /// Whether tools and commands work on another host.
    pub(crate) is_elsewhere: bool,
    pub(crate) environment: &'a Environment,
    pub(crate) agent_dir: &'a AgentDir,
    pub(crate) support: &'a SupportCache,
}

impl SandboxSources<'_> {
    /// The sandbox of the session; `None` where none is asked for. Blocks.
    ///
    /// # Errors
    /// [`SandboxFault`].
    pub(crate) fn open(self) -> Result<Option<SessionSandbox>, SandboxFault> {
        let settings = self.settings.cloned().unwrap_or_default();
        let mode = self.options.mode.or(settings.mode).unwrap_or_default();
        if mode == SandboxMode::Off {
            return Ok(None);
        }
        let system = |what| move |source| SandboxFault::System { what, source };
        let namespaces = settings.namespaces.unwrap_or_default();
        let bwrap = match namespaces {
            NamespaceMaker::Own => None,
            NamespaceMaker::Bwrap => Some(self.bwrap()?),
        };
        let (support, mut gaps) = if self.is_elsewhere {
            let gap = "commands and files are on another host (--ssh), where nothing is confined".to_owned();
            (SandboxSupport::default(), vec![gap])
        } else {
            let support = self.support.get(bwrap.as_deref()).map_err(system("what this system offers"))?;
            let gaps = support.gaps();
            (support, gaps)
        };
        let temporary =
            TemporaryFolder::make(&temp_dir(self.environment)).map_err(system("the temporary folder"))?;
        let temporary_folder = temporary.path().canonicalize().map_err(system("the temporary folder"))?;
        let network = self.options.network.or(settings.network).unwrap_or(NetworkAccess::On);
        let unix_sockets = settings.unix_sockets.unwrap_or(NetworkAccess::Off);
        let writable = self.writable(mode, &settings, temporary_folder.clone())?;
        let policy = SandboxPolicy {
            read_only: self.read_only(&settings, &writable),
            writable,
            denied: self.denied(&settings),
            network: network.is_on(),
            unix_sockets: unix_sockets.is_on(),
            layers: support.layers,
            bwrap,
        };
        gaps.extend(links_to_protect(&policy));
        if let Some(denied) = policy.denied.iter().find(|denied| Path::new("/dev").starts_with(denied)) {
            let problem = "is where commands find their devices: deny what is in it".to_owned();
            return Err(SandboxFault::Path { path: denied.clone(), from: "sandbox.deniedPaths", problem });
        }
        if let Some((denied, root)) = denied_root(&policy) {
            let problem =
                format!("is denied by sandbox.deniedPaths ({}): take one of them away", denied.display());
            return Err(SandboxFault::Path { path: root, from: "a writable folder", problem });
        }
        if settings.required.unwrap_or(true) && !gaps.is_empty() {
            return Err(SandboxFault::Support { gaps });
        }
        let texts = |paths: &[PathBuf]| paths.iter().map(|path| path.display().to_string()).collect();
        let state = SandboxState {
            mode,
            enforced: policy.layers.clone(),
            namespaces,
            landlock_abi: support.landlock_abi,
            writable_roots: texts(&policy.writable),
            temporary_folder: Some(temporary_folder.display().to_string()),
            read_only_paths: texts(&policy.protected().collect::<Vec<_>>()),
            denied_paths: texts(&policy.denied),
            network,
            unix_sockets,
            gaps,
        };
        let reserved = ReservedPaths::make(&policy);
        Ok(Some(SessionSandbox { policy: Arc::new(policy), state, temporary, _reserved: reserved }))
    }

    fn writable(
        &self,
        mode: SandboxMode,
        settings: &SandboxSettings,
        temporary: PathBuf,
    ) -> Result<Vec<PathBuf>, SandboxFault> {
        const FLAG: &str = "--writable-root";
        const SETTING: &str = "sandbox.writableRoots";
        let mut roots = Vec::new();
        if mode == SandboxMode::WorkspaceWrite {
            roots.push(existing_folder(self.cwd.to_owned(), "the session's folder")?);
            for folder in self.folders {
                roots.push(existing_folder(folder.clone(), "an additional folder")?);
            }
        } else if self.cwd.starts_with("/dev") {
            let problem = "cannot be seen by commands, which have a /dev of their own".to_owned();
            return Err(SandboxFault::Path {
                path: self.cwd.to_owned(),
                from: "the session's folder",
                problem,
            });
        }
        let of_settings = settings.writable_roots.iter().flatten().map(|text| (text, SETTING));
        for (text, from) in of_settings.chain(self.options.writable_roots.iter().map(|text| (text, FLAG))) {
            roots.push(existing_folder(resolve_path(text, self.cwd, self.environment), from)?);
        }
        roots.push(temporary);
        let mut seen = std::collections::HashSet::new();
        roots.retain(|root| seen.insert(root.clone()));
        Ok(roots)
    }

    /// The program `bwrap`, found on the search path.
    fn bwrap(&self) -> Result<PathBuf, SandboxFault> {
        let path = self.environment.get_os("PATH").unwrap_or_default();
        let found =
            std::env::split_paths(path).map(|folder| folder.join("bwrap")).find(|program| program.is_file());
        found.and_then(|program| program.canonicalize().ok()).ok_or_else(|| SandboxFault::Path {
            path: "bwrap".into(),
            from: "sandbox.namespaces",
            problem: "is not on the search path: install bubblewrap, or set sandbox.namespaces to own"
                .to_owned(),
        })
    }

    /// The agent directory says what runs in later sessions, so it stays as it is even inside of a writable folder.
    fn read_only(&self, settings: &SandboxSettings, writable: &[PathBuf]) -> Vec<PathBuf> {
        let own = self.agent_dir.path().to_owned();
        let of_settings = settings.read_only_paths.iter().flatten().map(|text| self.resolved(text));
        [real(own)]
            .into_iter()
            .chain(of_settings)
            .chain(writable.iter().flat_map(|root| of_git(root)))
            .collect()
    }

    /// What the settings deny, the keys of the agent directory, the daemon's own socket, and the contents that undo keeps, which can be of
    /// denied files.
    fn denied(&self, settings: &SandboxSettings) -> Vec<PathBuf> {
        let agent_dir = self.agent_dir.path();
        let surroundings = Surroundings {
            variable: &|name| self.environment.get_os(name).map(ToOwned::to_owned),
            cwd: self.cwd,
            uid: rustix::process::geteuid().as_raw(),
        };
        let own = [
            self.agent_dir.auth_file(),
            self.agent_dir.run_dir(),
            self.agent_dir.undo_dir(),
            surroundings.socket(agent_dir),
        ];
        let of_settings = settings.denied_paths.iter().flatten().map(|text| self.resolved(text));
        let mut denied: Vec<PathBuf> = of_settings.chain(own.into_iter().map(real)).collect();
        denied.sort_unstable();
        denied.dedup();
        denied
    }

    fn resolved(&self, text: &str) -> PathBuf {
        real(resolve_path(text, self.cwd, self.environment))
    }
}

/// The real path of a folder that commands may write.
fn existing_folder(path: PathBuf, from: &'static str) -> Result<PathBuf, SandboxFault> {
    let fault = |problem: String| SandboxFault::Path { path: path.clone(), from, problem };
    let real = path.canonicalize().map_err(|error| fault(format!("cannot be used: {error}")))?;
    if !real.is_dir() {
        return Err(fault("is not a folder".to_owned()));
    }
    if real.parent().is_none() {
        return Err(fault("is the whole file system: name the folders that may be written".to_owned()));
    }
    let is_inside = |folder: &str| real.starts_with(folder);
    if ["/proc", "/sys", "/dev"].into_iter().any(is_inside) && !is_inside("/dev/shm") {
        return Err(fault("belongs to the system: no sandbox lets commands write there".to_owned()));
    }
    Ok(real)
}

/// The real path; of a missing one, the part that exists is resolved.
fn real(path: PathBuf) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real(parent.to_owned()).join(name),
        _ => path,
    }
}

/// What else says which hooks and which configuration git has: a file `.git`, as in worktrees and submodules, and the parts of a writable
/// folder that is a git folder itself.
fn of_git(root: &Path) -> Vec<PathBuf> {
    let has_file = |name: &str| root.join(name).symlink_metadata().is_ok_and(|about| about.is_file());
    let mut names = Vec::new();
    if has_file(".git") {
        names.push(".git");
    }
    if has_file("HEAD") && root.join("objects").is_dir() && root.join("refs").is_dir() {
        names.push("hooks");
        names.extend(has_file("config").then_some("config"));
    }
    names.into_iter().map(|name| root.join(name)).collect()
}

/// Protected paths that are links, or behind a link in a writable folder: a command can replace a link, whatever it leads to.
fn links_to_protect(policy: &SandboxPolicy) -> Vec<String> {
    let is_inside = |path: &&Path| policy.writable.iter().any(|root| *path != root && path.starts_with(root));
    let mut links: Vec<PathBuf> = policy
        .protected()
        .flat_map(|path| path.ancestors().take_while(is_inside).map(Path::to_owned).collect::<Vec<_>>())
        .filter(|path| path.is_symlink())
        .collect();
    links.sort_unstable();
    links.dedup();
    links
        .into_iter()
        .map(|path| {
            format!(
                "{} is a symbolic link, which commands could replace by a file of their own",
                path.display()
            )
        })
        .collect()
}

/// A writable folder that is denied, with the denied path.
fn denied_root(policy: &SandboxPolicy) -> Option<(PathBuf, PathBuf)> {
    policy.writable.iter().find_map(|root| {
        let denied = policy.denied.iter().find(|denied| root.starts_with(denied))?;
        Some((denied.clone(), root.clone()))
    })
}

impl SessionSandbox {
    /// What commands and file tools may touch.
    pub(crate) fn policy(&self) -> &Arc<SandboxPolicy> {
        &self.policy
    }

    /// What is enforced, for clients.
    pub(crate) fn state(&self) -> &SandboxState {
        &self.state
    }

    /// The environment of commands: with the temporary folder of the sandbox.
    pub(crate) fn environment(
        &self,
        base: &[(std::ffi::OsString, std::ffi::OsString)],
    ) -> crate::child_environment::ChildEnvironment {
        let names = ["TMPDIR", "TMP", "TEMP"];
        let folder = || self.temporary.path().as_os_str().to_owned();
        let others = base.iter().filter(|(name, _)| names.iter().all(|other| name != other)).cloned();
        others.chain(names.map(|name| (name.into(), folder()))).collect()
    }
}
