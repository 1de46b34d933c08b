//! An `agentd --stdio` of our own: its start and its end.

use std::{
    borrow::Cow,
    io,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use agentd_connect::find_agentd;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, ChildStderr, Command},
    sync::mpsc,
    task::JoinSet,
    time::error::Elapsed,
};

use crate::{
    exit::{Exit, Fault},
    output::OutputChunk,
    rpc::{Client, IncomingEvents, with_our_verbs},
};

/// How long reading the stderr of an agentd that has ended may take.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// An agentd of our own. Dropping it kills it.
pub(crate) struct PrivateDaemon {
    pub(crate) client: Client,
    pub(crate) incoming: IncomingEvents,
    process: DaemonProcess,
}

/// The process behind a [`PrivateDaemon`].
struct DaemonProcess {
    child: Child,
    notices: JoinSet<()>,
    path: PathBuf,
}

/// The flags and the folder of an agentd of our own.
pub(crate) struct StartOptions {
    /// Flags after `--stdio`.
    pub(crate) args: Vec<String>,
    /// The working folder; `None` for ours.
    pub(crate) cwd: Option<PathBuf>,
}

impl PrivateDaemon {
    /// Starts `agentd --stdio`. Each line of its stderr goes to `notices`.
    ///
    /// # Errors
    /// When there is no `agentd`, or the system cannot start it.
    pub(crate) fn start(start: StartOptions, notices: mpsc::Sender<OutputChunk>) -> Result<Self, Fault> {
        let path = find_agentd()?;
        let failed = |error: io::Error| {
            Fault::new(Exit::NoDaemon, format!("agentctl: cannot start {}: {error}", path.display()))
        };
        let mut command = Command::new(&path);
        command.arg("--stdio").args(start.args);
        if let Some(cwd) = start.cwd {
            command.current_dir(cwd);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C in a terminal goes to the whole foreground group. The agentd gets an `abort` from us instead.
        command.process_group(0).kill_on_drop(true);
        let mut child = command.spawn().map_err(failed)?;
        let missing = || failed(io::Error::other("its pipes are missing"));
        let (Some(input), Some(output), Some(errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(missing());
        };
        let (client, incoming) = Client::start(input, output);
        let mut tasks = JoinSet::new();
        tasks.spawn(forward(errors, notices));
        Ok(Self { client, incoming, process: DaemonProcess { child, notices: tasks, path } })
    }

    /// Ends the agentd by the end of its input, and kills it after `grace`.
    pub(crate) async fn close(self, grace: Duration) {
        let Self { client, incoming, mut process } = self;
        drop(client);
        let tasks = incoming.discard();
        let ended = tokio::time::timeout(grace, process.wait()).await;
        if ended.is_err() {
            // Fails only for a process that has ended.
            let _ = process.child.kill().await;
        }
        drop(tasks);
    }

    /// The fault of an agentd that closed its output before its first answer.
    ///
    /// An agentd that refuses to start, for an unknown model or session, says why and exits with code 1. Every other
    /// end is a breakdown.
    pub(crate) async fn not_started(mut self, grace: Duration) -> Fault {
        let path = self.process.path.display().to_string();
        match tokio::time::timeout(grace, self.process.wait()).await {
            Ok(Ok(status)) if status.code() == Some(1) => {
                Fault::new(Exit::Failed, "agentctl: agentd refused to start; the lines above say why.")
            }
            end => {
                Fault::new(Exit::NoDaemon, format!("agentctl: {path} could not start ({}).", describe(end)))
            }
        }
    }

    /// The text about an agentd that closed its output before the run was over.
    pub(crate) async fn died(mut self, grace: Duration) -> String {
        let how = describe(tokio::time::timeout(grace, self.process.wait()).await);
        let path = self.process.path.display();
        format!(
            "agentctl: {path} ended before the answer was complete ({how}). What was finished is saved: \
             `agentctl prompt --continue` goes on from there."
        )
    }
}

/// The end of a process as text.
fn describe(end: Result<io::Result<ExitStatus>, Elapsed>) -> String {
    match end {
        Ok(Ok(status)) => status.to_string(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "it closed its output but still runs".to_owned(),
    }
}

impl DaemonProcess {
    /// Waits until the process has ended and its stderr is passed on.
    async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        let passed_on = async { while self.notices.join_next().await.is_some() {} };
        // Another process may keep the stderr open.
        let _ = tokio::time::timeout(LAST_WORDS, passed_on).await;
        Ok(status)
    }
}

/// Passes on the stderr of agentd line by line.
async fn forward(errors: ChildStderr, notices: mpsc::Sender<OutputChunk>) {
    let mut reader = BufReader::new(errors);
    let mut line = Vec::new();
    // A read error on a pipe counts as its end.
    while let Ok(1..) = reader.read_until(b'\n', &mut line).await {
        let mut said = std::mem::take(&mut line);
        if let Ok(text) = std::str::from_utf8(&said)
            && let Cow::Owned(text) = with_our_verbs(text)
        {
            said = text.into_bytes();
        }
        if notices.send(OutputChunk::Err(said)).await.is_err() {
            return;
        }
    }
}
