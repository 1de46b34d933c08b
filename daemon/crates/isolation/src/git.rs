//! Runs git: without a shell, prompts, hooks or signing, and in an environment of our own.

use std::{
    ffi::{OsStr, OsString},
    io::ErrorKind,
    os::unix::ffi::OsStringExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use agentd_process::{CommandSpec, CommandStreams, ExitStatus, ProcessGroup, SpawnError};
use agentd_protocol::text_bounds;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    time::timeout,
};

use crate::error::IsolationError;

/// The variables of the session's environment that git gets: where programs and the user's configuration are, and who commits.
const PASSED_ON: [&str; 17] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "GIT_EXEC_PATH",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "EMAIL",
    "GIT_CEILING_DIRECTORIES",
];

/// Settings of git that would run programs of the user's, ask, or change what the commands here rely on.
const CONFIGURATION: [&str; 13] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.splitIndex=false",
    "core.safecrlf=false",
    "commit.gpgsign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "apply.whitespace=nowarn",
    "apply.ignoreWhitespace=no",
    "advice.addEmbeddedRepo=false",
    "add.ignoreErrors=false",
    "diff.autoRefreshIndex=true",
];

/// The time limit of one command. Filters of git-lfs may fetch large files.
const TIME: Duration = Duration::from_secs(30 * 60);

/// Bytes of output that are read: the names of some two million files.
const MOST_OUTPUT: usize = 256 << 20;

/// Bytes of error text that are kept.
const MOST_ERRORS: usize = 256 << 10;

/// Bytes of what git said that an error quotes.
const QUOTED: usize = 2000;

/// Starts git. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Git {
    group: ProcessGroup,
    environment: Arc<[(OsString, OsString)]>,
}

impl Git {
    /// git as processes of `group`, with what it needs of `environment`, the session's.
    #[must_use]
    pub fn new(group: ProcessGroup, environment: &[(OsString, OsString)]) -> Self {
        let passed_on =
            environment.iter().filter(|(name, _)| PASSED_ON.iter().any(|passed| *name == **passed));
        Self { group, environment: passed_on.cloned().collect() }
    }

    /// git in a folder, which finds the repository itself.
    pub(crate) fn at(&self, cwd: &Path) -> GitPlace {
        GitPlace { git: self.clone(), cwd: cwd.to_owned(), variables: Vec::new() }
    }
}

/// The arguments of a command, of any types that are texts of the system.
macro_rules! args {
    ($($arg:expr),* $(,)?) => { vec![$(::std::ffi::OsString::from(AsRef::<::std::ffi::OsStr>::as_ref(&$arg))),*] };
}
pub(crate) use args;

/// How a command ended, and what it wrote.
#[derive(Debug)]
pub(crate) struct GitOutput {
    pub(crate) exit: ExitStatus,
    pub(crate) output: Vec<u8>,
    pub(crate) errors: String,
}

/// Where git works: a folder, and if they are not to be found from there, its repository, index and object store.
#[derive(Debug, Clone)]
pub(crate) struct GitPlace {
    git: Git,
    cwd: PathBuf,
    variables: Vec<(&'static str, OsString)>,
}

impl GitPlace {
    /// With a variable of git's.
    pub(crate) fn with(mut self, name: &'static str, value: impl AsRef<OsStr>) -> Self {
        self.variables.retain(|(known, _)| *known != name);
        self.variables.push((name, value.as_ref().to_owned()));
        self
    }

    /// With this folder as the repository's own, and the current folder as that of its working files.
    pub(crate) fn with_repository(self, git_dir: &Path) -> Self {
        let cwd = self.cwd.clone();
        self.with("GIT_DIR", git_dir).with("GIT_WORK_TREE", &cwd)
    }

    pub(crate) fn with_index(self, index: &Path) -> Self {
        self.with("GIT_INDEX_FILE", index)
    }

    /// Writes new objects to this folder, which names the repository's as its alternate.
    pub(crate) fn with_objects(self, objects: &Path) -> Self {
        self.with("GIT_OBJECT_DIRECTORY", objects)
    }

    /// Runs a command that has to succeed. Returns its output.
    ///
    /// # Errors
    /// [`IsolationError`]. Cancel safety: if dropped, the command is killed.
    pub(crate) async fn run(&self, args: Vec<OsString>) -> Result<Vec<u8>, IsolationError> {
        self.run_with(args, Vec::new()).await
    }

    /// [`Self::run`] with an input.
    pub(crate) async fn run_with(
        &self,
        args: Vec<OsString>,
        input: Vec<u8>,
    ) -> Result<Vec<u8>, IsolationError> {
        let command = args.first().cloned().unwrap_or_default();
        let ended = self.attempt(args, input).await?;
        if ended.exit.success() { Ok(ended.output) } else { Err(self.failed(&command, &ended)) }
    }

    /// The one line that a command writes, without its end.
    pub(crate) async fn line(&self, args: Vec<OsString>) -> Result<OsString, IsolationError> {
        let mut output = self.run(args).await?;
        if output.last() == Some(&b'\n') {
            output.pop();
        }
        Ok(OsString::from_vec(output))
    }

    /// [`Self::line`] for the name of an object.
    pub(crate) async fn object(&self, args: Vec<OsString>) -> Result<String, IsolationError> {
        Ok(self.line(args).await?.to_string_lossy().into_owned())
    }

    /// The error of a command that failed.
    pub(crate) fn failed(&self, command: &OsStr, ended: &GitOutput) -> IsolationError {
        IsolationError::Git {
            command: command.to_string_lossy().into_owned(),
            cwd: self.cwd.clone(),
            end: match ended.exit.signal {
                Some(signal) => format!("signal {signal}"),
                None => format!("code {}", ended.exit.code),
            },
            said: text_bounds::tail(ended.errors.trim(), QUOTED).to_owned(),
        }
    }

    /// Runs a command that may fail.
    ///
    /// # Errors
    /// When it cannot be started or passes a limit. Cancel safety: if dropped, the command is killed.
    pub(crate) async fn attempt(
        &self,
        args: Vec<OsString>,
        input: Vec<u8>,
    ) -> Result<GitOutput, IsolationError> {
        let command = args.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
        let mut process = self.git.group.spawn(self.spec(args)).await.map_err(|error| match error {
            SpawnError::Program { source, .. } if source.kind() == ErrorKind::NotFound => {
                IsolationError::NoGit
            }
            other => IsolationError::Spawn(other),
        })?;
        let (stdin, stdout, stderr) = (process.take_input(), process.take_output(), process.errors.take());
        let write = async {
            if let Some(mut stdin) = stdin {
                // A command that ends before it has read everything says why by its exit code.
                let _ = stdin.write_all(&input).await;
                let _ = stdin.shutdown().await;
            }
        };
        let work = async {
            let ((), output, errors) = tokio::join!(write, read(stdout, MOST_OUTPUT), read_end(stderr));
            (process.wait().await, output, errors)
        };
        let stopped = |why| IsolationError::GitStopped { command, cwd: self.cwd.clone(), why };
        match timeout(TIME, work).await {
            Ok((exit, Some(output), errors)) => Ok(GitOutput { exit, output, errors }),
            Ok((_, None, _)) => Err(stopped("it wrote more than 256 MiB")),
            Err(_) => {
                process.kill().await;
                Err(stopped("it ran for 30 minutes"))
            }
        }
    }

    fn spec(&self, args: Vec<OsString>) -> CommandSpec {
        let mut env = self.git.environment.to_vec();
        let fixed = [
            ("LC_ALL", "C"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_ASKPASS", "true"),
            ("SSH_ASKPASS", "true"),
            ("GIT_EDITOR", "true"),
            ("GIT_PAGER", "cat"),
            // Looking at the user's repository does not write to it.
            ("GIT_OPTIONAL_LOCKS", "0"),
        ];
        env.extend(fixed.map(|(name, value)| (name.into(), value.into())));
        env.extend(self.variables.iter().map(|(name, value)| ((*name).into(), value.clone())));
        let settings = CONFIGURATION.iter().flat_map(|setting| ["-c".into(), OsString::from(*setting)]);
        CommandSpec {
            program: "git".into(),
            args: settings.chain(args).collect(),
            cwd: self.cwd.clone(),
            env,
            streams: CommandStreams::Separate,
            sandbox: None,
        }
    }
}

/// Reads to the end; `None` when there is more than `most`. Then the pipe is closed, which ends its writer.
async fn read(pipe: Option<impl AsyncRead + Unpin>, most: usize) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    if let Some(pipe) = pipe {
        // A pipe that breaks is at its end.
        let _ = pipe.take(most as u64 + 1).read_to_end(&mut all).await;
    }
    (all.len() <= most).then_some(all)
}

/// Reads to the end, and keeps the last 256 KiB.
async fn read_end(pipe: Option<impl AsyncRead + Unpin>) -> String {
    let mut kept = Vec::new();
    if let Some(mut pipe) = pipe {
        let mut buffer = vec![0; 16 << 10];
        while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
            kept.extend_from_slice(&buffer[..count]);
            if kept.len() > 2 * MOST_ERRORS {
                kept.drain(..kept.len() - MOST_ERRORS);
            }
        }
    }
    String::from_utf8_lossy(&kept).into_owned()
}
