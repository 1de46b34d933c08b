//! The program `agentd`: its path, and its start as a daemon that outlives us.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use agentd_safe_open::{LinkPolicy, OpenRules};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, ChildStdout, Command},
    time::timeout,
};

use crate::ConnectError;

const PROGRAM: &str = "agentd";

/// Finds the `agentd` beside our own executable, else the first one on the search path.
///
/// # Errors
/// When there is none.
pub fn find_agentd() -> Result<PathBuf, ConnectError> {
    let own = env::current_exe().ok();
    find(own.as_deref(), env::var_os("PATH").as_deref())
}

fn find(own: Option<&Path>, search_path: Option<&OsStr>) -> Result<PathBuf, ConnectError> {
    let beside = own.and_then(Path::parent);
    let on_path = search_path.map(|path| env::split_paths(path).collect::<Vec<_>>()).unwrap_or_default();
    beside
        .map(Path::to_owned)
        .into_iter()
        // An empty element of the search path means the current folder, which programs are not run from unasked.
        .chain(on_path.into_iter().filter(|folder| folder.is_absolute()))
        .map(|folder| folder.join(PROGRAM))
        .find(|path| is_executable(path))
        .ok_or_else(|| ConnectError::NoProgram {
            beside: beside.map_or_else(|| "beside this program".to_owned(), |dir| dir.display().to_string()),
        })
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The command that starts a daemon where none runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchOptions {
    /// The program `agentd`.
    pub program: PathBuf,
    /// More flags for `agentd serve`.
    pub args: Vec<OsString>,
}

/// How long a daemon may take to listen.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// The size of a log that is renamed when a daemon starts; the one renamed before is lost then.
const LOG_BYTES: u64 = 8 << 20;

/// The log may be a symbolic link, but to a file of this user.
const LOG: OpenRules<'_> = OpenRules::new(LinkPolicy::Followed);

/// How much of the log is shown when a daemon did not start.
const SHOWN_BYTES: u64 = 4 << 10;

/// A daemon that is starting. Dropping it lets it go on.
pub(crate) struct StartingDaemon {
    child: Child,
    announced: BufReader<ChildStdout>,
    program: PathBuf,
    log: PathBuf,
    /// The log's size before the start.
    begin: u64,
}

/// The outcome of a start.
#[derive(Debug)]
pub(crate) enum StartOutcome {
    /// The daemon listens.
    Listens,
    /// The daemon has ended instead, with this status, after writing this to its log.
    Ended(ExitStatus, String),
}

impl StartingDaemon {
    /// Starts `agentd serve` away from our terminal. Its stderr goes to the log of the agent directory.
    ///
    /// # Errors
    /// When the system cannot start it, or the log cannot be written.
    pub(crate) fn start(socket: &Path, log: PathBuf, launch: &LaunchOptions) -> Result<Self, ConnectError> {
        let unwritable = |source| ConnectError::Log { log: log.clone(), source };
        let file = open_log(&log).map_err(unwritable)?;
        let begin = file.metadata().map_err(unwritable)?.len();
        let program = launch.program.clone();
        let failed = |source| ConnectError::Spawn { program: program.clone(), source };
        let mut command = Command::new(&program);
        command.args(["serve", "--detached", "--socket"]).arg(socket).args(&launch.args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(file);
        let mut child = command.spawn().map_err(failed)?;
        let stdout = child.stdout.take().ok_or_else(|| failed(io::Error::other("its pipe is missing")))?;
        Ok(Self { child, announced: BufReader::new(stdout), program, log, begin })
    }

    /// Waits until the daemon listens or has ended.
    ///
    /// # Errors
    /// When neither happens in time.
    pub(crate) async fn started(mut self) -> Result<StartOutcome, ConnectError> {
        let mut line = String::new();
        let waiting = async {
            // The daemon prints one line when it listens; if it ends first, the pipe closes.
            if self.announced.read_line(&mut line).await? > 0 {
                return Ok(None);
            }
            self.child.wait().await.map(Some)
        };
        match timeout(START_TIMEOUT, waiting).await {
            Ok(Ok(None)) => Ok(StartOutcome::Listens),
            Ok(Ok(Some(status))) => Ok(StartOutcome::Ended(status, said(&self.log, self.begin))),
            Ok(Err(source)) => Err(ConnectError::Spawn { program: self.program, source }),
            Err(_) => Err(ConnectError::NotListening { seconds: START_TIMEOUT.as_secs(), log: self.log }),
        }
    }
}

/// Opens the log at its end, for the user alone; renames one that has grown long.
fn open_log(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    if fs::metadata(path).is_ok_and(|about| about.len() > LOG_BYTES) {
        fs::rename(path, path.with_extension("log.1"))?;
    }
    LOG.open_to_append(path).map_err(|error| error.into_problem().into())
}

/// The end of what was written to the log since `begin`, as text.
fn said(path: &Path, begin: u64) -> String {
    let read = || {
        let mut file = LOG.open(path)?;
        let end = file.metadata()?.len();
        file.seek(SeekFrom::Start(begin.max(end.saturating_sub(SHOWN_BYTES))))?;
        let mut bytes = Vec::new();
        file.take(SHOWN_BYTES).read_to_end(&mut bytes)?;
        io::Result::Ok(bytes)
    };
    // The text only explains an error: without it the error is shorter.
    String::from_utf8_lossy(&read().unwrap_or_default()).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_log_is_private_goes_on_and_is_put_aside_when_long() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logs/agentd.log");
        open_log(&path).unwrap().write_all(b"one\n").unwrap();
        open_log(&path).unwrap().write_all(b"two\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\n");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        assert_eq!((said(&path, 0), said(&path, 4)), ("one\ntwo".into(), "two".into()));
        open_log(&path).unwrap().set_len(LOG_BYTES + 1).unwrap();
        assert_eq!(open_log(&path).unwrap().metadata().unwrap().len(), 0);
        assert_eq!(fs::metadata(folder.path().join("logs/agentd.log.1")).unwrap().len(), LOG_BYTES + 1);
        assert_eq!(said(&folder.path().join("none"), 0), "");
    }

    fn program(folder: &Path, mode: u32) -> PathBuf {
        let path = folder.join(PROGRAM);
        fs::create_dir_all(folder).unwrap();
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn the_one_beside_us_wins_over_the_search_path() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("bin/agentctl");
        let plain = dir.path().join("plain");
        program(&plain, 0o644);
        let search = env::join_paths([plain, dir.path().join("path")]).unwrap();
        let error = find(Some(&own), Some(&search)).unwrap_err();
        assert!(error.to_string().contains("cargo build"), "{error}");
        let on_path = program(&dir.path().join("path"), 0o755);
        assert_eq!(find(Some(&own), Some(&search)).unwrap(), on_path);
        let beside = program(&dir.path().join("bin"), 0o755);
        assert_eq!(find(Some(&own), Some(&search)).unwrap(), beside);
    }
}
