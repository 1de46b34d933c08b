//! A session as a page. `agentd` makes it: it reads session files whatever their age and state.

use std::{
    io::{self, Read, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

use agentd_connect::{ConnectError, find_agentd};
use agentd_protocol::{
    daemon::SessionInfo,
    entry::{SESSION_VERSION, SessionHeader, SessionTag},
};

use super::target;
use crate::{
    cli::ExportOptions,
    exit::{Exit, Fault, tell},
};

/// Writes the page of a session file.
///
/// # Errors
/// When `agentd` is not there, or cannot read the file; when the page cannot be written.
pub(super) fn of_file(options: &ExportOptions, path: &Path) -> Result<Exit, Fault> {
    // What begins with a dash or is one would be read as something else.
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    write(options, &path.display().to_string(), "")
}

/// Writes the page of a session without a file, given its entries as lines.
///
/// # Errors
/// As [`of_file`].
pub(super) fn of_memory(options: &ExportOptions, session: &SessionInfo, lines: &str) -> Result<Exit, Fault> {
    let header = SessionHeader {
        kind: SessionTag::Session,
        version: Some(SESSION_VERSION),
        id: session.id.clone(),
        timestamp: session.created.clone(),
        cwd: session.cwd.clone(),
        parent_session: None,
    };
    let header = serde_json::to_string(&header).map_err(|error| {
        Fault::new(Exit::Failed, format!("agentctl: the session cannot be read: {error}"))
    })?;
    write(options, "-", &format!("{header}\n{lines}"))
}

/// Has `agentd` make the page of `source`, with `input` on its stdin, and passes it on as it comes.
fn write(options: &ExportOptions, source: &str, input: &str) -> Result<Exit, Fault> {
    let program = find_agentd()?;
    let mut command = Command::new(&program);
    command.args(["--export", source, "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // What went wrong with the program, and not with the place that the page goes to.
    let mut failed = None;
    let written = target::write(options, |out| {
        let outcome = pass(&mut command, input, out)?;
        match outcome {
            Outcome::Made { remarks } => {
                if !remarks.is_empty() {
                    tell(remarks.trim_end());
                }
                Ok(())
            }
            Outcome::Failed { why } => {
                failed = Some(why);
                Err(io::Error::other("no page was made"))
            }
        }
    });
    match failed {
        Some(why) => Err(why),
        None => written,
    }
}

enum Outcome {
    Made { remarks: String },
    Failed { why: Fault },
}

/// Runs the program to its end. An error is one of `out`.
fn pass(command: &mut Command, input: &str, out: &mut dyn Write) -> io::Result<Outcome> {
    let program = PathBuf::from(command.get_program());
    let not_run = |source: io::Error| Outcome::Failed { why: ConnectError::Spawn { program, source }.into() };
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Ok(not_run(error)),
    };
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (copied, remarks) = thread::scope(|scope| {
        // One that reads no further has said why.
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input.as_bytes())));
        let remarks = scope.spawn(move || {
            let mut text = Vec::new();
            let read = stderr.map(|mut stderr| stderr.read_to_end(&mut text));
            read.transpose().map(|_| String::from_utf8_lossy(&text).into_owned())
        });
        // Dropping our end makes the program stop when the page cannot be written.
        let copied = stdout.map_or(Ok(0), |mut stdout| io::copy(&mut stdout, out));
        (copied, remarks.join())
    });
    let ended = child.wait();
    copied?;
    let remarks = remarks.unwrap_or_else(|_| Ok(String::new())).unwrap_or_default();
    match ended {
        Ok(status) if status.success() => Ok(Outcome::Made { remarks }),
        Ok(status) => {
            let why = remarks.trim_end();
            let text = if why.is_empty() {
                format!("agentctl: agentd --export ended with {status}")
            } else {
                why.to_owned()
            };
            Ok(Outcome::Failed { why: Fault::new(Exit::Failed, text) })
        }
        Err(error) => Ok(not_run(error)),
    }
}
