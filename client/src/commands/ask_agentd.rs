//! Has an `agentd` of its own answer one request, without a session: checks that need the daemon's knowledge and no daemon.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    process::{Command, Stdio},
    thread,
};

use agentd_connect::{ConnectError, find_agentd};
use serde::{Serialize, de::DeserializeOwned};

use crate::exit::{Exit, Fault};

/// Runs `agentd FLAG` with a request on its stdin, and passes on each line of its answer as it comes. The inner error is one of `take`.
/// `refused` is the exit code where agentd says why it cannot answer, rather than breaking down.
pub(super) fn lines<Line: DeserializeOwned>(
    flag: &str,
    request: &impl Serialize,
    refused: Exit,
    mut take: impl FnMut(Line) -> io::Result<()>,
) -> Result<io::Result<()>, Fault> {
    let program = find_agentd()?;
    let not_run =
        |source: io::Error| -> Fault { ConnectError::Spawn { program: program.clone(), source }.into() };
    let mut command = Command::new(&program);
    command.arg(flag).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(not_run)?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let mut line = serde_json::to_string(request)
        .map_err(|error| Fault::new(Exit::Failed, format!("agentctl: cannot ask agentd: {error}")))?;
    line.push('\n');
    let (taken, words) = thread::scope(|scope| {
        // Fails only when the program is gone, which then says why.
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(line.as_bytes())));
        let words = scope.spawn(move || {
            let mut text = Vec::new();
            // Fails only when the program is gone.
            let _ = stderr.map(|mut stderr| stderr.read_to_end(&mut text));
            String::from_utf8_lossy(&text).trim_end().to_owned()
        });
        // Dropping our end of stdout stops the program when printing failed.
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
        let words_are_empty = words.is_empty();
        let text =
            if words_are_empty { format!("agentctl: agentd {flag} ended with {ended}") } else { words };
        let says_why = ended.code() == Some(1) && !words_are_empty;
        return Err(Fault::new(if says_why { refused } else { Exit::NoDaemon }, text));
    }
    Ok(Ok(()))
}
