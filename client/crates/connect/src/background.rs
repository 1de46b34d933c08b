//! Starting a daemon that stays when we leave.

use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::DirBuilderExt,
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

use crate::{ConnectError, Endpoint, Launch};

/// How long a daemon may take to listen.
const START_PATIENCE: Duration = Duration::from_secs(20);

/// A log longer than this is put aside when a daemon starts; the one put aside before is gone then.
const LOG_BYTES: u64 = 8 << 20;

/// The log may be a link of the user's, but is a file of theirs.
const LOG: OpenRules<'_> = OpenRules::new(LinkPolicy::Followed);

/// What of the log is shown when a daemon did not start.
const SHOWN_BYTES: u64 = 4 << 10;

/// A daemon that is starting. Dropping it lets it go on.
pub(crate) struct Background {
    child: Child,
    announced: BufReader<ChildStdout>,
    program: PathBuf,
    log: PathBuf,
    /// Where in the log it begins.
    begin: u64,
}

/// What became of a start.
#[derive(Debug)]
pub(crate) enum Started {
    /// It listens.
    Listens,
    /// It has ended instead, this way, after saying this.
    Ended(ExitStatus, String),
}

impl Background {
    /// Starts `agentd serve` away from our terminal. What it says goes to the log of the agent directory.
    ///
    /// # Errors
    /// When the system cannot start it, or the log cannot be written.
    pub(crate) fn start(endpoint: &Endpoint, launch: &Launch) -> Result<Self, ConnectError> {
        let log = endpoint.log_file();
        let unwritable = |source| ConnectError::Log { log: log.clone(), source };
        let file = open_log(&log).map_err(unwritable)?;
        let begin = file.metadata().map_err(unwritable)?.len();
        let program = launch.program.clone();
        let failed = |source| ConnectError::Spawn { program: program.clone(), source };
        let mut command = Command::new(&program);
        command.args(["serve", "--detached", "--socket"]).arg(&endpoint.socket).args(&launch.args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(file);
        let mut child = command.spawn().map_err(failed)?;
        let stdout = child.stdout.take().ok_or_else(|| failed(io::Error::other("its pipe is missing")))?;
        Ok(Self { child, announced: BufReader::new(stdout), program, log, begin })
    }

    /// Waits until it listens, or has ended.
    ///
    /// # Errors
    /// When neither happens in time.
    pub(crate) async fn started(mut self) -> Result<Started, ConnectError> {
        let mut line = String::new();
        let waiting = async {
            // It says one line when it listens; without one, its end closes the pipe.
            if self.announced.read_line(&mut line).await? > 0 {
                return Ok(None);
            }
            self.child.wait().await.map(Some)
        };
        match timeout(START_PATIENCE, waiting).await {
            Ok(Ok(None)) => Ok(Started::Listens),
            Ok(Ok(Some(status))) => Ok(Started::Ended(status, said(&self.log, self.begin))),
            Ok(Err(source)) => Err(ConnectError::Spawn { program: self.program, source }),
            Err(_) => Err(ConnectError::NotListening { seconds: START_PATIENCE.as_secs(), log: self.log }),
        }
    }
}

/// Opens the log at its end, for the user alone; one that has grown long is put aside first.
fn open_log(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    if fs::metadata(path).is_ok_and(|about| about.len() > LOG_BYTES) {
        fs::rename(path, path.with_extension("log.1"))?;
    }
    LOG.open_to_append(path).map_err(|error| error.into_problem().into())
}

/// What was written to the log since `begin`: the last of it, as text.
fn said(path: &Path, begin: u64) -> String {
    let read = || {
        let mut file = LOG.open(path)?;
        let end = file.metadata()?.len();
        file.seek(SeekFrom::Start(begin.max(end.saturating_sub(SHOWN_BYTES))))?;
        let mut bytes = Vec::new();
        file.take(SHOWN_BYTES).read_to_end(&mut bytes)?;
        io::Result::Ok(bytes)
    };
    // Without it there is less to say, that is all.
    String::from_utf8_lossy(&read().unwrap_or_default()).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use std::{io::Write, os::unix::fs::PermissionsExt};

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
}
