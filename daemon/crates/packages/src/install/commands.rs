//! Runs npm and git under the process guard.

use std::{ffi::OsString, io::ErrorKind, path::PathBuf, time::Duration};

use agentd_process::{CommandSpec, CommandStreams, ExitStatus, Launcher, OutputPipe, Process, SpawnError};
use agentd_protocol::text_bounds;
use tokio::{
    io::AsyncReadExt as _,
    time::{Instant, timeout, timeout_at},
};

use super::error::InstallError;
use crate::source::without_password;

/// Bytes of the end of each output that are kept.
const KEPT: usize = 256 << 10;

/// Time to read what a program has written before its end.
const LAST_OUTPUT_WAIT: Duration = Duration::from_millis(500);

/// Bytes of what a program said that an error quotes.
const QUOTED: usize = 2000;

/// A program and its arguments.
#[derive(Debug, Clone)]
pub(crate) struct Invocation {
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
    /// `None`: the folder that the installer works in.
    pub(crate) cwd: Option<PathBuf>,
    /// What to do when the program is not there.
    pub(crate) advice: &'static str,
}

impl Invocation {
    /// The program and its arguments, to be shown.
    fn shown(&self) -> String {
        let words = std::iter::once(&self.program).chain(&self.args);
        words.map(|word| without_password(word)).collect::<Vec<_>>().join(" ")
    }
}

/// Starts programs for packages. Dropping a call kills what it started.
#[derive(Debug)]
pub(crate) struct Commands {
    pub(crate) launcher: Launcher,
    /// The complete environment of the programs.
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) cwd: PathBuf,
    /// The end of all work.
    pub(crate) deadline: Option<(Instant, Duration)>,
}

impl Commands {
    /// Runs a program to its end. Returns what it wrote to its output: the last 256 KiB.
    ///
    /// # Errors
    /// [`InstallError`] when it cannot be started, fails, or takes longer than the deadline or the limit.
    pub(crate) async fn run(
        &self,
        invocation: &Invocation,
        limit: Option<Duration>,
    ) -> Result<String, InstallError> {
        let mut env = self.environment.clone();
        // Nobody is there to answer; the question would wait for ever.
        env.push(("GIT_TERMINAL_PROMPT".into(), "0".into()));
        let spec = CommandSpec {
            program: invocation.program.clone().into(),
            args: invocation.args.iter().map(OsString::from).collect(),
            cwd: invocation.cwd.clone().unwrap_or_else(|| self.cwd.clone()),
            env,
            streams: CommandStreams::Separate,
            sandbox: None,
        };
        let mut process = self.launcher.group().spawn(spec).await.map_err(|error| match error {
            SpawnError::Program { source, .. } if source.kind() == ErrorKind::NotFound => {
                InstallError::NoProgram { program: invocation.program.clone(), advice: invocation.advice }
            }
            source => InstallError::NotStarted { program: invocation.program.clone(), source },
        })?;
        let (mut output, mut errors) = (Tail::of(process.take_output()), Tail::of(process.errors.take()));
        let by_limit = limit.map(|limit| (Instant::now() + limit, limit));
        let deadline = [self.deadline, by_limit].into_iter().flatten().min();
        let exit = match deadline {
            None => ended(&process, &mut output, &mut errors).await,
            Some((at, limit)) => match timeout_at(at, ended(&process, &mut output, &mut errors)).await {
                Ok(exit) => exit,
                Err(_) => {
                    process.kill().await;
                    return Err(InstallError::TooLong { command: invocation.shown(), limit });
                }
            },
        };
        if exit.success() {
            return Ok(output.text());
        }
        let said = if errors.text().trim().is_empty() { output.text() } else { errors.text() };
        Err(InstallError::Failed {
            command: invocation.shown(),
            end: match exit.signal {
                Some(signal) => format!("signal {signal}"),
                None => format!("code {}", exit.code),
            },
            said: quoted(&said, invocation),
        })
    }
}

/// Waits for the end of a program. What it left running is killed with the group.
async fn ended(process: &Process, output: &mut Tail, errors: &mut Tail) -> ExitStatus {
    let reading = async { tokio::join!(output.read(), errors.read()) };
    tokio::pin!(reading);
    let exit = tokio::select! {
        exit = process.wait() => exit,
        _ = &mut reading => return process.wait().await,
    };
    // A program in the background may keep a pipe open for ever.
    let _ = timeout(LAST_OUTPUT_WAIT, reading).await;
    exit
}

/// The end of what is written to a pipe.
struct Tail {
    pipe: Option<OutputPipe>,
    kept: Vec<u8>,
}

impl Tail {
    fn of(pipe: Option<OutputPipe>) -> Self {
        Self { pipe, kept: Vec::new() }
    }

    /// Reads to the end of the pipe. Cancel safe.
    async fn read(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        let mut buffer = vec![0; 16 << 10];
        // A pipe that breaks is at its end.
        while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
            self.kept.extend_from_slice(&buffer[..count]);
            if self.kept.len() > 2 * KEPT {
                self.kept.drain(..self.kept.len() - KEPT);
            }
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.kept).into_owned()
    }
}

/// The end of what a program said, without passwords of its arguments.
fn quoted(said: &str, invocation: &Invocation) -> String {
    let mut said = text_bounds::tail(said.trim(), QUOTED).to_owned();
    for arg in &invocation.args {
        let harmless = without_password(arg);
        if harmless != *arg {
            said = said.replace(arg.as_str(), &harmless);
        }
    }
    if said.is_empty() { said } else { format!(": {said}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_shown() {
        let url = "https://me:hush@host/a/b";
        let invocation = Invocation {
            program: "git".to_owned(),
            args: vec!["clone".to_owned(), url.to_owned()],
            cwd: None,
            advice: "",
        };
        assert_eq!(invocation.shown(), "git clone https://…@host/a/b");
        let said = format!("fatal: unable to access '{url}/': x\n");
        assert_eq!(quoted(&said, &invocation), ": fatal: unable to access 'https://…@host/a/b/': x");
        assert_eq!(quoted(" \n", &invocation), "");
        assert!(quoted(&"x".repeat(5000), &invocation).len() < 2100);
    }
}
