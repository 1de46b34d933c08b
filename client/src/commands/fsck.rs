//! `agentctl fsck`: whether session files are whole. `agentd` looks; this asks it and tells.

mod report;

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    path::PathBuf,
    process::{Command, Stdio},
    thread,
};

use agentd_connect::{ConnectError, find_agentd};
use agentd_protocol::fsck::{FsckFile, FsckRequest};

use self::report::Report;
use super::{one_call, which};
use crate::{
    cli::FsckOptions,
    exit::{Exit, Fault},
};

/// Looks, and repairs where that is asked for.
pub(crate) fn run(options: &FsckOptions) -> Exit {
    one_call::conclude(fsck(options))
}

fn fsck(options: &FsckOptions) -> Result<Exit, Fault> {
    let paths = options.sessions.iter().map(|given| path_of(given)).collect::<Result<Vec<_>, _>>()?;
    let request = FsckRequest { paths, all: options.all, repair: options.repair };
    let mut report = Report::new(options);
    let mut stdout = io::stdout().lock();
    match ask(&request, |line| report.take(line, &mut stdout))? {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(Exit::OutputClosed),
        Err(error) => {
            return Err(Fault::new(
                Exit::Failed,
                format!("agentctl: what was found cannot be printed: {error}"),
            ));
        }
    }
    match report.finish(&mut stdout) {
        Ok(exit) => Ok(exit),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::OutputClosed),
        Err(error) => {
            Err(Fault::new(Exit::Failed, format!("agentctl: what was found cannot be printed: {error}")))
        }
    }
}

/// The session file that is meant, absolute.
fn path_of(given: &str) -> Result<String, Fault> {
    if given.contains('/') || given.ends_with(".jsonl") || given.ends_with(".ledger") {
        let path = PathBuf::from(given);
        let path = std::path::absolute(&path).unwrap_or(path);
        return Ok(path.display().to_string());
    }
    let session = which::session_of_anyone(given)?;
    session.path.ok_or_else(|| {
        Fault::new(Exit::Failed, format!("Error: session {given} has no file, since it is only in memory."))
    })
}

/// Has `agentd` look, and hands out each line as it comes. The inner error is one of `take`.
fn ask(
    request: &FsckRequest,
    mut take: impl FnMut(FsckFile) -> io::Result<()>,
) -> Result<io::Result<()>, Fault> {
    let program = find_agentd()?;
    let not_run =
        |source: io::Error| -> Fault { ConnectError::Spawn { program: program.clone(), source }.into() };
    let mut command = Command::new(&program);
    command.arg("--fsck").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(not_run)?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let mut line = serde_json::to_string(request)
        .map_err(|error| Fault::new(Exit::Failed, format!("agentctl: cannot ask agentd: {error}")))?;
    line.push('\n');
    let (taken, words) = thread::scope(|scope| {
        // One that reads no further has said why.
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(line.as_bytes())));
        let words = scope.spawn(move || {
            let mut text = Vec::new();
            // What could not be read is not told.
            let _ = stderr.map(|mut stderr| stderr.read_to_end(&mut text));
            String::from_utf8_lossy(&text).trim_end().to_owned()
        });
        // Dropping our end of its stdout makes the program stop when nobody wants more.
        let taken = stdout.map_or(Ok(()), |stdout| {
            BufReader::new(stdout).lines().try_for_each(|line| {
                let found = serde_json::from_str(&line?).map_err(io::Error::other)?;
                take(found)
            })
        });
        (taken, words.join().unwrap_or_default())
    });
    let ended = child.wait().map_err(not_run)?;
    if taken.is_err() {
        return Ok(taken);
    }
    if !ended.success() {
        let text =
            if words.is_empty() { format!("agentctl: agentd --fsck ended with {ended}") } else { words };
        return Err(Fault::new(Exit::NoDaemon, text));
    }
    Ok(Ok(()))
}
