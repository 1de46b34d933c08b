//! The one connection to a machine.

use std::{
    ffi::OsString,
    fs::Permissions,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use agentd_process::{CommandSpec, CommandStreams, Process, ProcessGroup, SpawnError};
use tempfile::TempDir;
use tokio::{
    io::AsyncReadExt,
    sync::{OnceCell, OwnedSemaphorePermit, Semaphore},
};
use tokio_util::task::TaskTracker;

use super::{problem, request::Script, target::SshTarget};
use crate::operations::Unreachable;

/// The longest path of a socket, less the suffix that `ssh` appends while creating it.
const MAX_SOCKET_PATH: usize = 107 - 20;

/// Exchanges at a time, leaving some of the sessions that servers allow per connection (10 by default) to commands,
/// which each need one.
const MAX_EXCHANGES: usize = 7;

/// The most bytes kept of `ssh -G`'s output.
const MAX_SAID: u64 = 256 * 1024;

/// A machine, and the connection to it once it is open.
pub(super) struct Connection {
    target: SshTarget,
    arguments: Vec<OsString>,
    group: ProcessGroup,
    env: Arc<[(OsString, OsString)]>,
    temp_dir: PathBuf,
    master: OnceCell<Master>,
    /// Filled by the first exchange.
    pub(super) folders: OnceCell<RemoteFolders>,
    background: TaskTracker,
    exchanges: Arc<Semaphore>,
}

/// The folders of the user on the other machine.
#[derive(Debug)]
pub(super) struct RemoteFolders {
    /// The working directory, absolute.
    pub(super) directory: PathBuf,
    /// The home directory.
    pub(super) home: PathBuf,
}

/// The process that holds the connection open for the others.
struct Master {
    /// Its socket, in a private folder; `None` when the user's configuration shares connections.
    socket: Option<(PathBuf, TempDir)>,
    /// Kept until this is dropped.
    _process: Option<Process>,
}

impl Connection {
    pub(super) fn new(
        (target, arguments): (SshTarget, Vec<OsString>),
        group: ProcessGroup,
        env: Arc<[(OsString, OsString)]>,
        temp_dir: PathBuf,
    ) -> Self {
        Self {
            target,
            arguments,
            group,
            env,
            temp_dir,
            master: OnceCell::new(),
            folders: OnceCell::new(),
            background: TaskTracker::new(),
            exchanges: Arc::new(Semaphore::new(MAX_EXCHANGES)),
        }
    }

    pub(super) fn target(&self) -> &SshTarget {
        &self.target
    }

    pub(super) fn known_home(&self) -> Option<PathBuf> {
        self.folders.get().map(|folders| folders.home.clone())
    }

    /// Starts `ssh` with a script, in `group`, with pipes as its standard streams.
    pub(super) async fn spawn(&self, group: &ProcessGroup, script: Script) -> Result<Process, Unreachable> {
        let mut args = self.shared_args().await?;
        args.extend([
            "-T".into(),
            "--".into(),
            self.target.host.clone().into(),
            script.command_line().into(),
        ]);
        self.ssh(group, args).await
    }

    /// Waits for the permit of one exchange.
    pub(super) async fn may_ask(&self) -> Result<OwnedSemaphorePermit, Unreachable> {
        let permit = Arc::clone(&self.exchanges).acquire_owned().await;
        // The semaphore is never closed.
        permit.map_err(|error| Unreachable(error.to_string()))
    }

    /// Owns the tasks that drain commands' background processes.
    pub(super) fn background(&self) -> &TaskTracker {
        &self.background
    }

    pub(super) fn group(&self) -> &ProcessGroup {
        &self.group
    }

    async fn ssh(&self, group: &ProcessGroup, own: Vec<OsString>) -> Result<Process, Unreachable> {
        let args = self.arguments.iter().cloned().chain(own).collect();
        let command = CommandSpec {
            program: "ssh".into(),
            args,
            cwd: "/".into(),
            env: self.env.to_vec(),
            streams: CommandStreams::Separate,
            sandbox: None,
        };
        group.spawn(command).await.map_err(|error| match error {
            SpawnError::Program { source, .. } if source.kind() == std::io::ErrorKind::NotFound => Unreachable(
                "The program ssh is not on the search path: install an OpenSSH client to work on another host.".into(),
            ),
            error => Unreachable(format!("Cannot start ssh: {error}")),
        })
    }

    /// The arguments with which a process uses the connection.
    async fn shared_args(&self) -> Result<Vec<OsString>, Unreachable> {
        let master = self.master.get_or_try_init(|| self.connect()).await?;
        let mut args: Vec<OsString> = vec!["-o".into(), "BatchMode=yes".into()];
        if let Some((socket, _)) = &master.socket {
            args.extend(["-o".into(), "ControlMaster=no".into(), "-o".into(), control_path(socket)]);
        }
        Ok(args)
    }

    async fn connect(&self) -> Result<Master, Unreachable> {
        if self.user_shares_connections().await? {
            return Ok(Master { socket: None, _process: None });
        }
        let (folder, socket) = self.socket()?;
        // `-f` puts ssh into the background once connected; it stays in the group until the process is dropped.
        let mut args: Vec<OsString> = Vec::new();
        for option in ["BatchMode=yes", "ControlMaster=yes", "ControlPersist=no"] {
            args.extend(["-o".into(), option.into()]);
        }
        args.extend(["-o".into(), control_path(&socket), "-f".into(), "-N".into(), "-T".into(), "--".into()]);
        args.push(self.target.host.clone().into());
        let mut process = self.ssh(&self.group, args).await?;
        drop(process.take_input());
        // The background process may keep the errors open, so read them only after a failure.
        let exit = process.wait().await;
        if !exit.success() {
            let said = collect(process.errors.take()).await;
            return Err(problem::of_ssh(&self.target.host, &said, Some(exit.code)));
        }
        Ok(Master { socket: Some((socket, folder)), _process: Some(process) })
    }

    /// Whether the user's configuration already shares connections to this machine.
    async fn user_shares_connections(&self) -> Result<bool, Unreachable> {
        let args = vec!["-G".into(), "--".into(), self.target.host.clone().into()];
        let mut process = self.ssh(&self.group, args).await?;
        drop(process.take_input());
        let errors = process.errors.take();
        let mut settings = Vec::new();
        let read = async {
            // An unreadable output counts as empty.
            let _ = (&mut process.output).take(MAX_SAID).read_to_end(&mut settings).await;
        };
        let ((), said) = tokio::join!(read, collect(errors));
        let exit = process.wait().await;
        if !exit.success() {
            return Err(problem::of_ssh(&self.target.host, &said, Some(exit.code)));
        }
        let settings = String::from_utf8_lossy(&settings);
        let is = |name: &str, off: &[&str]| {
            let value = settings.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            value.is_some_and(|value| !off.contains(&value))
        };
        Ok(is("controlmaster", &["false", "no"]) || is("controlpath", &["none"]))
    }

    /// Creates a private folder (mode 0700), and names a socket in it.
    fn socket(&self) -> Result<(TempDir, PathBuf), Unreachable> {
        let mut last = None;
        for folder in [self.temp_dir.as_path(), Path::new("/tmp")] {
            let private = Permissions::from_mode(0o700);
            match tempfile::Builder::new().prefix("agentd-ssh-").permissions(private).tempdir_in(folder) {
                Ok(made) => {
                    let socket = made.path().join("socket");
                    if socket.as_os_str().len() <= MAX_SOCKET_PATH {
                        return Ok((made, socket));
                    }
                }
                Err(error) => last = Some(error),
            }
        }
        let reason = last.map_or_else(|| "its path would be too long".to_owned(), |error| error.to_string());
        Err(Unreachable(format!("Cannot make a folder for the connection to {}: {reason}", self.target.host)))
    }
}

/// The option for a socket's path, in which percent signs and spaces are special.
fn control_path(socket: &Path) -> OsString {
    let text = String::from_utf8_lossy(socket.as_os_str().as_bytes()).replace('%', "%%");
    format!("ControlPath=\"{text}\"").into()
}

/// Reads a pipe to its end; returns the last 8 KiB.
pub(super) async fn collect(pipe: Option<agentd_process::OutputPipe>) -> String {
    const KEPT: usize = 8 * 1024;
    let Some(mut pipe) = pipe else { return String::new() };
    let (mut kept, mut buffer) = (Vec::new(), vec![0; KEPT]);
    // A pipe that cannot be read is at its end.
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        kept.extend_from_slice(&buffer[..count]);
        let surplus = kept.len().saturating_sub(KEPT);
        kept.drain(..surplus);
    }
    String::from_utf8_lossy(&kept).into_owned()
}
