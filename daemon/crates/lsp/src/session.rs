//! The language servers of one session: which of them are for a file, with its rights.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use agentd_memory::MemoryAccount;
use agentd_process::Launcher;
use agentd_program_log::ProgramLog;
use agentd_sandbox::SandboxPolicy;
use agentd_tools::{ChangePlace, operations::FileHost};
use futures::future::BoxFuture;
use serde_json::Value;
use tokio::time::timeout;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    client::{Client, LaunchPlan},
    config::{LspConfig, ServerConfig},
    diagnostics::Diagnostic,
    find::{ProgramSearch, is_for, root_of, variable},
    slot::{ServerSlot, SharedLanguageServers},
};

/// How far a project is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectTrust {
    /// The user trusts it: programs that it brings count, too.
    Trusted,
    /// It has nothing that needs trust, and nobody was asked.
    NothingToTrust,
    /// The user does not trust it, or has not answered.
    Untrusted,
}

/// Which diagnostics the results of edits have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiagnosticsOnEdit {
    /// None.
    Off,
    /// Those of servers that run already.
    Warm,
    /// The same, and the first file of a language that is read or changed starts its server in the background.
    Start,
}

/// The settings of language servers.
#[derive(Debug, Clone, Copy)]
pub struct LspOptions {
    /// `lsp.diagnosticsOnEdit`.
    pub on_edit: DiagnosticsOnEdit,
    /// `lsp.diagnosticsWaitMs`: how long the result of an edit waits for them.
    pub wait: Duration,
    /// `lsp.maxMemoryBytes`: memory of one server with all that it starts.
    pub max_memory: u64,
    /// `lsp.startTimeoutMs`: time for a server to begin.
    pub start_limit: Duration,
    /// `lsp.editsOutside`: whether edits of servers may change files outside of the workspace.
    pub edits_outside: bool,
}

/// A change of a file that a server proposes, before it is made.
pub struct ProposedChange<'a> {
    /// The file.
    pub path: &'a Path,
    /// Its text; `None` for a file that is new, or for one that is no text.
    pub old: Option<&'a str>,
    /// Its text afterwards; `None` for a file that goes, or for one that is no text.
    pub new: Option<&'a str>,
}

/// Asks the permissions and the hooks of a session.
pub trait LspPermissions: Send + Sync {
    /// Whether a change may be made: judged as a call of `edit`, or of `write` for a new file.
    ///
    /// # Errors
    /// Why not, for the model.
    fn may_change<'a>(
        &'a self,
        call_id: &'a str,
        change: ProposedChange<'a>,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), String>>;

    /// Whether a server that runs code of the project may be started: judged like a program.
    ///
    /// # Errors
    /// Why not, for the model.
    fn may_start<'a>(
        &'a self,
        call_id: &'a str,
        server: &'a str,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), String>>;

    /// Whether such a server may be started without a question.
    fn may_start_unasked<'a>(&'a self, server: &'a str) -> BoxFuture<'a, bool>;
}

/// What a session gives its language servers.
pub struct LspParts {
    /// Which there are.
    pub config: LspConfig,
    /// Those of the daemon.
    pub shared: Arc<SharedLanguageServers>,
    /// Starts child processes.
    pub launcher: Launcher,
    /// Owns the tasks of servers.
    pub tasks: TaskTracker,
    /// What servers send is charged to it.
    pub memory: MemoryAccount,
    /// What servers say.
    pub log: ProgramLog,
    /// Whether the project is trusted.
    pub trust: ProjectTrust,
    /// The settings.
    pub options: LspOptions,
    /// Asked before files are changed.
    pub permissions: Arc<dyn LspPermissions>,
}

/// Where a session works.
pub struct LspPlace {
    /// Its working directory, absolute.
    pub cwd: PathBuf,
    /// Further folders of its workspace.
    pub folders: Vec<PathBuf>,
    /// The folder for `~`.
    pub home: PathBuf,
    /// The environment of child processes.
    pub environment: Arc<[(OsString, OsString)]>,
    /// What child processes may touch.
    pub sandbox: Option<Arc<SandboxPolicy>>,
    /// The files as servers see them.
    pub host: Arc<dyn FileHost>,
    /// Where files are changed: as the tools change them.
    pub changes: ChangePlace,
}

/// The language servers of one session.
pub struct SessionServers {
    pub(crate) parts: LspParts,
    pub(crate) place: LspPlace,
    /// The session's folder and the further ones, without links.
    pub(crate) workspace: Vec<PathBuf>,
    /// What servers had said when an edit stopped waiting for them, by process: what comes later is told with the next edit.
    unsettled: Mutex<BTreeMap<i32, Snapshot>>,
}

/// What a server said of all files at a time.
pub(crate) type Snapshot = BTreeMap<PathBuf, Vec<Diagnostic>>;

/// Snapshots that are kept: servers of a session that were still at work.
const MAX_UNSETTLED: usize = 16;

/// A server for a file.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) server: ServerConfig,
    pub(crate) root: PathBuf,
    pub(crate) program: PathBuf,
}

/// The servers for a file.
#[derive(Default)]
pub(crate) struct Targets {
    /// The one for the language first, then those that only say what is wrong.
    pub(crate) found: Vec<Target>,
    /// Commands of servers that would be for the file, and whose programs are not there.
    pub(crate) missing: Vec<String>,
    /// Servers that would be for the file, and that found no project.
    pub(crate) without_root: Vec<String>,
}

impl SessionServers {
    /// The servers of a session. Starts and searches nothing.
    #[must_use]
    pub fn new(parts: LspParts, place: LspPlace) -> Arc<Self> {
        let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        let workspace = std::iter::once(&place.cwd).chain(&place.folders).map(real).collect();
        Arc::new(Self { parts, place, workspace, unsettled: Mutex::default() })
    }

    /// The servers for a file. A real path.
    pub(crate) async fn targets(self: &Arc<Self>, path: &Path) -> Targets {
        if !self.parts.config.servers.iter().any(|server| is_for(server, path)) {
            return Targets::default();
        }
        let (me, path) = (Arc::clone(self), path.to_owned());
        let looking = tokio::task::spawn_blocking(move || me.find_targets(&path));
        looking.await.unwrap_or_else(|error| {
            tracing::error!(%error, "looking for language servers broke off");
            Targets::default()
        })
    }

    fn find_targets(&self, path: &Path) -> Targets {
        let mut targets = Targets::default();
        let search = self.search();
        let mut has_main = false;
        for server in self.parts.config.servers.iter().filter(|server| is_for(server, path)) {
            if has_main && !server.is_linter {
                continue;
            }
            let Some(root) = root_of(server, path, &self.workspace) else {
                targets.without_root.push(server.name.clone());
                continue;
            };
            match search.find(&server.command, &root) {
                Some(program) => {
                    let target = Target { server: server.clone(), root, program };
                    match server.is_linter {
                        true => targets.found.push(target),
                        false => targets.found.insert(0, target),
                    }
                    has_main |= !server.is_linter;
                }
                None if server.is_linter && server.path.is_none() => {}
                None => targets.missing.push(server.command.clone()),
            }
        }
        targets
    }

    pub(crate) fn search(&self) -> ProgramSearch<'_> {
        ProgramSearch {
            path: variable(&self.place.environment, "PATH"),
            cwd: &self.place.cwd,
            home: &self.place.home,
            trusted: (self.parts.trust == ProjectTrust::Trusted).then_some(&self.workspace[..]),
        }
    }

    pub(crate) fn slot(&self, target: &Target) -> Arc<ServerSlot> {
        let LspParts { launcher, tasks, memory, log, options, config, shared, .. } = &self.parts;
        let plan = LaunchPlan {
            name: target.server.name.clone(),
            program: target.program.clone(),
            args: target.server.args.iter().map(OsString::from).collect(),
            root: target.root.clone(),
            env: self.place.environment.to_vec(),
            sandbox: self.place.sandbox.clone(),
            tells_status: target.server.tells_status,
            log_when_read: target.server.log_when_read,
            init_options: target.server.init_options.clone(),
            settings: match &target.server.settings {
                Value::Object(settings) => Value::Object(settings.clone()),
                _ => Value::Null,
            },
            host: Arc::clone(&self.place.host),
            launcher: launcher.clone(),
            tasks: tasks.clone(),
            memory: memory.clone(),
            log: log.clone(),
            max_memory: options.max_memory,
            start_limit: options.start_limit,
        };
        shared.slot(plan, config.idle)
    }

    /// The server of a call, which is started if it does not run.
    ///
    /// # Errors
    /// Why it does not run, for the model.
    pub(crate) async fn client(
        &self,
        target: &Target,
        call_id: &str,
        limit: Duration,
        cancel: &CancellationToken,
    ) -> Result<Arc<Client>, String> {
        let slot = self.slot(target);
        if let Some(client) = slot.running() {
            return Ok(client);
        }
        let name = &target.server.name;
        if target.server.runs_code {
            self.check_trust(name)?;
            self.parts.permissions.may_start(call_id, name, cancel).await?;
        }
        let starting = slot.start()?;
        match cancel.run_until_cancelled(timeout(limit, starting)).await {
            Some(Ok(started)) => started,
            Some(Err(_)) => Err(format!(
                "{name} is still starting after {} s: try again, or give a longer timeout",
                limit.as_secs()
            )),
            None => Err("Operation aborted".to_owned()),
        }
    }

    fn check_trust(&self, name: &str) -> Result<(), String> {
        if self.parts.trust == ProjectTrust::Untrusted {
            return Err(format!(
                "{name} runs code of the project (build scripts, plugins, its own compiler), and the user does not trust \
                 this project: the user can start the session with --approve"
            ));
        }
        Ok(())
    }

    /// Starts a server, unless it runs already or somebody would have to be asked. Nobody waits for it.
    async fn start_in_background(&self, target: &Target) {
        let slot = self.slot(target);
        if slot.running().is_some() {
            return;
        }
        let name = &target.server.name;
        if target.server.runs_code
            && (self.check_trust(name).is_err() || !self.parts.permissions.may_start_unasked(name).await)
        {
            return;
        }
        if let Err(why) = slot.start() {
            tracing::debug!(why, "a language server is not started");
        }
    }

    /// Prepares for diagnostics of a file that was read or is changed: starts its servers in the background where the settings say so,
    /// and gives the file to those that run. Does not wait for servers.
    pub(crate) async fn prepare(self: &Arc<Self>, path: &Path, language: &str) {
        for target in self.targets(path).await.found {
            match self.slot(&target).running() {
                Some(client) => {
                    if let Err(why) = client.sync(path, language).await {
                        tracing::debug!(why, "a file is not given to a language server");
                    }
                }
                None if self.parts.options.on_edit == DiagnosticsOnEdit::Start => {
                    self.start_in_background(&target).await;
                    self.give_when_started(&target, path, language);
                }
                None => {}
            }
        }
    }

    /// Gives a file to a server once it has started, so that its diagnostics are known before the first change.
    fn give_when_started(&self, target: &Target, path: &Path, language: &str) {
        let slot = self.slot(target);
        let (path, language) = (path.to_owned(), language.to_owned());
        self.parts.tasks.spawn(async move {
            if slot.phase() != crate::slot::SlotPhase::Starting {
                return;
            }
            let Ok(starting) = slot.start() else { return };
            if let Ok(client) = starting.await
                && let Err(why) = client.sync(&path, &language).await
            {
                tracing::debug!(why, "a file is not given to a language server");
            }
        });
    }

    /// What the server had said when an edit stopped waiting for it.
    pub(crate) fn take_unsettled(&self, client: &Client) -> Option<Snapshot> {
        self.unsettled.lock().unwrap_or_else(PoisonError::into_inner).remove(&client.pid?)
    }

    /// Keeps what a server has said, while it is still at work.
    pub(crate) fn keep_unsettled(&self, client: &Client, snapshot: Snapshot) {
        let Some(pid) = client.pid else { return };
        let mut kept = self.unsettled.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MAX_UNSETTLED && !kept.contains_key(&pid) {
            kept.clear();
        }
        kept.insert(pid, snapshot);
    }

    /// The path without links.
    ///
    /// # Errors
    /// The system's reason, for the model.
    pub(crate) async fn real_path(&self, path: PathBuf) -> Result<PathBuf, String> {
        let files = self.place.host.files(&CancellationToken::new());
        let resolving = tokio::task::spawn_blocking(move || {
            files.real_path(&path).map_err(|error| format!("{}: {error}", path.display()))
        });
        resolving.await.unwrap_or_else(|error| Err(error.to_string()))
    }

    /// A path as results show it: relative to the working directory where it is below it.
    pub(crate) fn shown(&self, path: &Path) -> String {
        let cwd = self.workspace.first().unwrap_or(&self.place.cwd);
        path.strip_prefix(cwd)
            .or_else(|_| path.strip_prefix(&self.place.cwd))
            .unwrap_or(path)
            .display()
            .to_string()
    }

    /// Whether a real path is in the workspace.
    pub(crate) fn is_inside(&self, path: &Path) -> bool {
        self.workspace.iter().any(|folder| path.starts_with(folder))
    }
}
