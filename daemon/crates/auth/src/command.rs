//! Commands whose output is a key, such as one that asks a password manager.

use std::{
    collections::HashMap,
    fmt,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use agentd_config::Environment;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::AsyncReadExt,
    process::{Child, ChildStdout, Command},
    sync::OnceCell,
    time::timeout,
};

use crate::Secret;

/// The timeout of a command, as in pi.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// The longest output: no key or header is nearly as long.
const MAX_OUTPUT_BYTES: u64 = 64 * 1024;

/// Why a command gave no value. The command itself is not quoted: it can hold a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// The shell could not be started.
    #[error("its command could not be started: {0}")]
    Start(String),
    /// It ended with another status than 0.
    #[error("its command failed with {0}: run it in a shell to see why")]
    Failed(String),
    /// It did not end in time.
    #[error("its command did not end within {} seconds and was killed", TIME_LIMIT.as_secs())]
    TimedOut,
    /// It printed nothing.
    #[error("its command printed nothing to stdout")]
    NoOutput,
    /// It printed too much.
    #[error("its command printed more than {MAX_OUTPUT_BYTES} bytes")]
    TooMuchOutput,
    /// It printed something else than text.
    #[error("its command printed something that is not UTF-8 text")]
    NotText,
}

/// Outputs by command. Each command runs once for the lifetime of the cache (of the daemon), apart from failures, which
/// are tried again. Environments do not share outputs: a variable of one session must not give its key to another.
#[derive(Clone, Default)]
pub struct CommandCache(Arc<Mutex<Outputs>>);

type Outputs = HashMap<(String, Environment), Arc<OnceCell<Secret>>>;

impl CommandCache {
    /// The trimmed output of `sh -c command`. Callers that ask at the same time wait for the same run.
    ///
    /// # Errors
    /// [`CommandError`]. Cancel safety: the command is killed with all that it started when the call that runs it is
    /// dropped; another caller that waits then runs it again.
    pub(crate) async fn run(&self, command: &str, environment: &Environment) -> Result<Secret, CommandError> {
        let cell = {
            let mut outputs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(outputs.entry((command.to_owned(), environment.clone())).or_default())
        };
        cell.get_or_try_init(|| run(command, environment)).await.cloned()
    }

    /// Forgets the outputs that are of no use any more: their commands run again when they are asked for.
    pub(crate) fn forget(&self, is_refused: impl Fn(&Secret) -> bool) {
        let mut outputs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        outputs.retain(|_, output| !output.get().is_some_and(&is_refused));
    }
}

impl fmt::Debug for CommandCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CommandCache")
    }
}

/// The trimmed output of `sh -c command`, which is run for this call alone.
///
/// # Errors
/// [`CommandError`]. Cancel safety: the command is killed with all that it started when this is dropped.
pub async fn run(command: &str, environment: &Environment) -> Result<Secret, CommandError> {
    let start = |error: std::io::Error| CommandError::Start(error.to_string());
    let mut child = Command::new("/bin/sh")
        .arg("-c")
        .arg(command)
        .env_clear()
        .envs(environment.iter())
        // Of all directories the one that is always there: no session's, since sessions share the output.
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(start)?;
    let mut group = Group::of(&child);
    let stdout = child.stdout.take();
    let (output, status) = timeout(TIME_LIMIT, async {
        let output = read(stdout).await?;
        let status = child.wait().await.map_err(start)?;
        Ok((output, status))
    })
    .await
    .map_err(|_| CommandError::TimedOut)??;
    // Processes that the command left running on purpose, such as an agent that keeps keys, stay.
    group.release();
    if !status.success() {
        return Err(CommandError::Failed(status.to_string()));
    }
    let text = String::from_utf8(output).map_err(|_| CommandError::NotText)?;
    let text = text.trim();
    if text.is_empty() { Err(CommandError::NoOutput) } else { Ok(Secret::new(text)) }
}

async fn read(stdout: Option<ChildStdout>) -> Result<Vec<u8>, CommandError> {
    let mut output = Vec::new();
    if let Some(stdout) = stdout {
        let read = stdout.take(MAX_OUTPUT_BYTES + 1).read_to_end(&mut output).await;
        read.map_err(|error| CommandError::Start(error.to_string()))?;
    }
    if output.len() as u64 > MAX_OUTPUT_BYTES { Err(CommandError::TooMuchOutput) } else { Ok(output) }
}

/// Kills the command with what it started, unless released. It is dropped before its `Child`, so that the group's id
/// still belongs to the group.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }

    fn release(&mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // It fails only when all of it has ended already.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, io::BufRead, path::Path, sync::mpsc};

    use tokio::task::JoinHandle;

    use super::*;

    async fn run_once(command: &str) -> Result<Secret, CommandError> {
        let environment: Environment = [("PATH", "/usr/bin:/bin")].into_iter().collect();
        CommandCache::default().run(command, &environment).await
    }

    async fn check(command: &str, expected: Result<&str, CommandError>) {
        let got = run_once(command).await;
        assert_eq!(got.as_ref().map(Secret::expose), expected.as_ref().map(|text| *text), "{command}");
    }

    #[tokio::test]
    async fn outputs_and_failures() {
        check("echo '  key '; echo other >&2", Ok("key")).await;
        check("cat", Err(CommandError::NoOutput)).await;
        check("", Err(CommandError::NoOutput)).await;
        check("echo hush; exit 3", Err(CommandError::Failed("exit status: 3".into()))).await;
        check("printf '\\377'", Err(CommandError::NotText)).await;
        check("head -c 70000 /dev/zero", Err(CommandError::TooMuchOutput)).await;
    }

    #[tokio::test]
    async fn the_environment_is_the_given_one() {
        let environment: Environment = [("KEY", "mine")].into_iter().collect();
        let cache = CommandCache::default();
        assert_eq!(cache.run("echo $KEY$HOME", &environment).await, Ok(Secret::new("mine")));
        let other: Environment = [("KEY", "other")].into_iter().collect();
        assert_eq!(cache.run("echo $KEY$HOME", &other).await, Ok(Secret::new("other")));
    }

    fn lines(path: &Path) -> usize {
        fs::read_to_string(path).unwrap().lines().count()
    }

    #[tokio::test]
    async fn a_command_runs_once_and_a_failed_one_again() {
        let folder = tempfile::tempdir().unwrap();
        let (runs, ready) = (folder.path().join("runs"), folder.path().join("ready"));
        let cache = CommandCache::default();
        let environment: Environment = [("PATH", "/usr/bin:/bin")].into_iter().collect();
        let command = format!("echo run >> {}; test -e {} && echo key", runs.display(), ready.display());
        assert!(cache.run(&command, &environment).await.is_err());
        fs::write(&ready, "").unwrap();
        let (a, b) = tokio::join!(cache.run(&command, &environment), cache.run(&command, &environment));
        assert_eq!((a, b), (Ok(Secret::new("key")), Ok(Secret::new("key"))));
        assert_eq!(cache.run(&command, &environment).await, Ok(Secret::new("key")));
        assert_eq!(lines(&runs), 2);
    }

    /// A command that says in a FIFO that it runs, and leaves a process that would keep the FIFO open.
    struct Hanging {
        folder: tempfile::TempDir,
    }

    impl Hanging {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let status =
                std::process::Command::new("mkfifo").arg(folder.path().join("fifo")).status().unwrap();
            assert!(status.success());
            Self { folder }
        }

        fn command(&self) -> String {
            format!("exec 3>{}; sleep 60 & echo up >&3; sleep 60", self.folder.path().join("fifo").display())
        }

        /// Reads the FIFO on a thread: a message when the command is up, and one when every process that holds the FIFO
        /// is gone.
        fn watch(&self) -> mpsc::Receiver<&'static str> {
            let path = self.folder.path().join("fifo");
            let (sender, news) = mpsc::channel();
            std::thread::spawn(move || {
                let mut lines = std::io::BufReader::new(fs::File::open(path).unwrap()).lines();
                assert_eq!(lines.next().unwrap().unwrap(), "up");
                sender.send("up").unwrap();
                assert!(lines.next().is_none());
                sender.send("gone").unwrap();
            });
            news
        }
    }

    /// The next message, or a failure long before anyone would give up on the tests.
    fn next(news: &mpsc::Receiver<&'static str>) -> &'static str {
        news.recv_timeout(Duration::from_secs(20)).expect("the command's processes are still there")
    }

    /// Starts a hanging command and returns when it runs.
    async fn start_hanging(
        hanging: &Hanging,
    ) -> (JoinHandle<Result<Secret, CommandError>>, mpsc::Receiver<&'static str>) {
        let news = hanging.watch();
        let command = hanging.command();
        let running = tokio::spawn(async move { run_once(&command).await });
        let news = tokio::task::spawn_blocking(move || {
            assert_eq!(next(&news), "up");
            news
        });
        (running, news.await.unwrap())
    }

    #[tokio::test]
    async fn a_command_that_hangs_is_killed_with_all_it_started() {
        let hanging = Hanging::new();
        let (running, news) = start_hanging(&hanging).await;
        // Real time stands still from here: only the limit can end the call.
        tokio::time::pause();
        assert_eq!(running.await.unwrap(), Err(CommandError::TimedOut));
        assert_eq!(next(&news), "gone");
    }

    #[tokio::test]
    async fn a_dropped_call_kills_its_command() {
        let hanging = Hanging::new();
        let (running, news) = start_hanging(&hanging).await;
        running.abort();
        assert!(running.await.unwrap_err().is_cancelled());
        assert_eq!(next(&news), "gone");
    }
}
