//! `agentctl bug-report`: one file with all that a maintainer needs.
//!
//! The file is private and new, and is either complete or missing.

mod content;

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, ErrorKind, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

use agentd_connect::{ConnectError, find_agentd};
use agentd_protocol::command::NoParams;
use jiff::Timestamp;

use self::content::{Content, Counts, Recordings, ReportedSession};
use super::daemon_call;
use crate::{
    cli::BugReportOptions,
    exit::{Exit, Fault, conclude},
    output,
    private_daemon::StartOptions,
    render::{counted, one_line, short_id},
    rpc::{Diagnose, GetDiagnostics},
    shared_daemon::Endpoint,
};

/// How many bytes are buffered before they go to agentd.
const BUFFER_BYTES: usize = 64 << 10;

/// The variable that makes agentd record.
const RECORD: &str = "AGENTD_RECORD";

pub(crate) fn run(options: &BugReportOptions) -> Exit {
    conclude(report(options))
}

fn report(options: &BugReportOptions) -> Result<Exit, Fault> {
    if let Some(path) = &options.output {
        refuse_existing(path)?;
    }
    let session = ReportedSession::find(options.session.as_deref())?;
    let path = options.output.clone().unwrap_or_else(|| default_name(&session.id, Timestamp::now()));
    refuse_existing(&path)?;
    let recordings =
        if options.no_transcript { Recordings::default() } else { recordings(options, &session.id)? };
    let folder = Path::new(&session.cwd).is_dir().then(|| PathBuf::from(&session.cwd));
    let checks = checks(folder.clone());
    let log = Endpoint::find().ok().map(|endpoint| endpoint.log_file());
    let content = Content {
        session: &session,
        has_transcript: !options.no_transcript,
        checks: checks.map_err(|fault| fault.message),
        recordings,
        log: log.as_deref(),
    };
    let counts = write_without_secrets(&path, folder.as_deref(), |out| content.write(out))?;
    let transcript = match counts.entries {
        None => "no transcript".to_owned(),
        Some(count) => format!("the session ({})", counted(count, "line")),
    };
    let text = format!(
        "{}: versions, doctor and diagnostics, settings and models without secrets, {transcript}, {} of exchanges, {} of the daemon's \
         log.\nKnown secrets are [redacted]. Read the file before you pass it on: other private data is still in it.\n",
        one_line(&path.display().to_string()),
        counted(counts.recordings, "recording"),
        counted(counts.log_lines, "line"),
    );
    output::print(&text)
}

/// The answers of doctor and diagnostics, as JSON.
fn checks(cwd: Option<PathBuf>) -> Result<(serde_json::Value, serde_json::Value), Fault> {
    let start = StartOptions {
        args: ["--no-session", "--mcp-on-demand", "--no-extensions"].map(str::to_owned).to_vec(),
        cwd,
    };
    let (doctor, diagnostics) = daemon_call::with_private_quietly(start, async |client| {
        Ok((client.call::<Diagnose>(&NoParams {}).await?, client.call::<GetDiagnostics>(&NoParams {}).await?))
    })?;
    let json = |error: serde_json::Error| {
        Fault::new(Exit::Failed, format!("agentctl: an answer cannot be written as JSON: {error}"))
    };
    Ok((
        serde_json::to_value(doctor).map_err(json)?,
        serde_json::to_value(diagnostics.diagnostics).map_err(json)?,
    ))
}

/// The recordings of the session. A path that the user named has to hold some; the folder of the variable may hold
/// only others.
fn recordings(options: &BugReportOptions, id: &str) -> Result<Recordings, Fault> {
    let (path, is_named) = match (&options.recordings, std::env::var_os(RECORD)) {
        (Some(path), _) => (path.clone(), true),
        (None, Some(path)) if !path.is_empty() => (PathBuf::from(path), false),
        (None, _) => return Ok(Recordings::default()),
    };
    match Recordings::find(&path, id) {
        Ok(found) if found.is_empty() && is_named => {
            let text = format!(
                "Error: {} has no recording of session {}. `agentctl prompt --record DIR` makes them.",
                path.display(),
                one_line(id)
            );
            Err(Fault::new(Exit::Failed, text))
        }
        Err(error) if is_named => {
            Err(Fault::new(Exit::Failed, format!("Error: cannot read {}: {error}", path.display())))
        }
        Err(_) => Ok(Recordings::default()),
        Ok(found) => Ok(found),
    }
}

fn default_name(id: &str, now: Timestamp) -> PathBuf {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let id: String = short_id(id).chars().map(allowed).collect();
    PathBuf::from(format!("agentd-bug-report-{id}-{}.jsonl", now.strftime("%Y%m%dT%H%M%SZ")))
}

/// Refuses a file that exists.
///
/// # Errors
/// When it is.
fn refuse_existing(path: &Path) -> Result<(), Fault> {
    if path.symlink_metadata().is_ok() { Err(there_already(path)) } else { Ok(()) }
}

fn there_already(path: &Path) -> Fault {
    Fault::usage(format!("Error: {} is there already: give another name with -o.", path.display()))
}

/// Has `agentd`, running in `cwd`, remove the secrets from what `content` writes, and writes the result to a new file.
///
/// # Errors
/// When `agentd` is missing or fails, or when the file cannot be written; no file is left then.
fn write_without_secrets(
    path: &Path,
    cwd: Option<&Path>,
    content: impl FnOnce(&mut dyn Write) -> io::Result<Counts> + Send,
) -> Result<Counts, Fault> {
    let program = find_agentd()?;
    let cannot = |error: io::Error| match error.kind() {
        ErrorKind::AlreadyExists => there_already(path),
        _ => Fault::new(Exit::Failed, format!("Error: cannot write {}: {error}", path.display())),
    };
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(cannot)?;
    let mut command = Command::new(&program);
    command.arg("--bug-report").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(cwd) = cwd {
        command.current_dir(cwd);
    }
    let written = through(command, file, content).and_then(|passed| passed.map_err(cannot));
    if written.is_err() {
        // A failure to remove it would only repeat the error.
        let _ = fs::remove_file(path);
    }
    written
}

/// Passes the content through the program. The inner error is one of the file.
fn through(
    mut command: Command,
    file: File,
    content: impl FnOnce(&mut dyn Write) -> io::Result<Counts> + Send,
) -> Result<io::Result<Counts>, Fault> {
    let not_run = |program: &std::ffi::OsStr, source| -> Fault {
        ConnectError::Spawn { program: program.into(), source }.into()
    };
    let mut child = command.spawn().map_err(|error| not_run(command.get_program(), error))?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (passed, counts, words) = thread::scope(|scope| {
        let given = scope.spawn(move || {
            let Some(stdin) = stdin else { return Err(io::Error::from(ErrorKind::BrokenPipe)) };
            let mut out = BufWriter::with_capacity(BUFFER_BYTES, stdin);
            let counts = content(&mut out)?;
            out.flush().map(|()| counts)
        });
        let words = scope.spawn(move || {
            let mut text = Vec::new();
            // Fails only when the program is gone.
            let _ = stderr.map(|mut stderr| stderr.read_to_end(&mut text));
            String::from_utf8_lossy(&text).trim_end().to_owned()
        });
        // Dropping our end of stdout stops the program when the file cannot be written.
        let passed = stdout.map_or(Ok(()), |mut stdout| {
            let mut out = BufWriter::with_capacity(BUFFER_BYTES, file);
            io::copy(&mut stdout, &mut out).and_then(|_| out.flush())
        });
        (passed, given.join(), words.join().unwrap_or_default())
    });
    let ended = child.wait().map_err(|error| not_run(command.get_program(), error))?;
    if let Err(error) = passed {
        return Ok(Err(error));
    }
    if !ended.success() {
        let text = if words.is_empty() {
            format!("agentctl: agentd --bug-report ended with {ended}")
        } else {
            words
        };
        return Err(Fault::new(Exit::NoDaemon, text));
    }
    let counts = counts.unwrap_or_else(|_| Err(io::Error::other("gathering its content broke down")));
    counts
        .map(Ok)
        .map_err(|error| Fault::new(Exit::Failed, format!("agentctl: the report is incomplete: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_named_after_session_and_time() {
        let now = "2026-11-22T03:04:05Z".parse().unwrap();
        assert_eq!(
            default_name("0198c0de-1234", now),
            Path::new("agentd-bug-report-0198c0de-1234-20261122T030405Z.jsonl")
        );
        assert_eq!(default_name("../x", now), Path::new("agentd-bug-report-___x-20261122T030405Z.jsonl"));
    }

    fn sh(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    #[test]
    fn content_passes_through_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r");
        let content = |out: &mut dyn Write| out.write_all(b"a hush b").map(|()| Counts::default());
        let file = || File::create(&path).unwrap();
        assert!(through(sh("sed s/hush/x/"), file(), content).unwrap().is_ok());
        assert_eq!(fs::read_to_string(&path).unwrap(), "a x b");
        let fault = through(sh("cat > /dev/null; echo why >&2; exit 1"), file(), content).unwrap_err();
        assert_eq!((fault.exit, fault.message.as_str()), (Exit::NoDaemon, "why"));
    }

    #[test]
    fn a_full_disk_is_an_error_of_the_file() {
        let content = |out: &mut dyn Write| out.write_all(&[b'x'; 1 << 20]).map(|()| Counts::default());
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let error = through(sh("cat"), full, content).unwrap().unwrap_err();
        assert_eq!(error.raw_os_error(), Some(28), "{error}");
    }
}
