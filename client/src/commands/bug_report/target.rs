//! The file of a report: private, new, and there whole or not at all.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, ErrorKind, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    process::{Command, Stdio},
    thread,
};

use agentd_connect::{ConnectError, find_agentd};

use super::content::Counts;
use crate::exit::{Exit, Fault};

/// How much of the lines waits for agentd.
const BUFFER_BYTES: usize = 64 << 10;

/// Refuses a file that is there.
///
/// # Errors
/// When it is.
pub(super) fn check(path: &Path) -> Result<(), Fault> {
    if path.symlink_metadata().is_ok() { Err(there_already(path)) } else { Ok(()) }
}

fn there_already(path: &Path) -> Fault {
    Fault::usage(format!("Error: {} is there already: give another name with -o.", path.display()))
}

/// Has `agentd` take the secrets out of what `content` writes, as it is set up in `cwd`, and writes the rest to a new file.
///
/// # Errors
/// When `agentd` is not there or fails, or when the file cannot be written: then there is none.
pub(super) fn write(
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
        // What is left of it says the error as well.
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
            // What could not be read is not told.
            let _ = stderr.map(|mut stderr| stderr.read_to_end(&mut text));
            String::from_utf8_lossy(&text).trim_end().to_owned()
        });
        // Dropping our end of its stdout makes the program stop when the file cannot be written.
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
    let counts = counts.unwrap_or_else(|_| Err(io::Error::other("gathering it broke down")));
    counts
        .map(Ok)
        .map_err(|error| Fault::new(Exit::Failed, format!("agentctl: the report is incomplete: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

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
