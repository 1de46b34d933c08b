//! `agentctl logs`: prints the log of a daemon in the background.

use std::{
    borrow::Cow,
    fs::File,
    io::{self, ErrorKind, IsTerminal, Read, Seek, SeekFrom, Write},
    mem::MaybeUninit,
    os::{fd::OwnedFd, unix::fs::MetadataExt},
    path::Path,
};

use agentd_safe_open::{LinkPolicy, OpenRules};
use rustix::fs::inotify;

use crate::{
    cli::{ExtensionsLogsOptions, LogsOptions},
    exit::{Exit, Fault, conclude},
    render::harmless,
    shared_daemon::Endpoint,
};

/// How far back the last lines are searched, in bytes.
const TAIL_BYTES: u64 = 1 << 20;

/// How much is copied at once, in bytes.
const COPY_BYTES: usize = 64 << 10;

/// Prints the end of the log; with `--follow`, goes on with what is added until it is stopped.
pub(crate) fn logs(options: &LogsOptions) -> Exit {
    const NONE: &str = "no daemon was started by `agentctl up` yet";
    conclude(Endpoint::find().and_then(|endpoint| show(&endpoint.log_file(), options, NONE)))
}

/// The same for the log of extensions.
pub(crate) fn of_extensions(options: &ExtensionsLogsOptions) -> Exit {
    const NONE: &str = "no extension has said anything yet";
    let path = Endpoint::find().map(|endpoint| endpoint.agent_dir.join("extensions.log"));
    conclude(path.and_then(|path| show(&path, &options.log, NONE)))
}

/// `why` says why there may be no log.
fn show(path: &Path, options: &LogsOptions, why: &str) -> Result<Exit, Fault> {
    let fault = |error: io::Error| match error.kind() {
        ErrorKind::NotFound => {
            Fault::new(Exit::Failed, format!("agentctl: there is no log at {}: {why}.", path.display()))
        }
        _ => Fault::new(Exit::Failed, format!("agentctl: cannot show {}: {error}", path.display())),
    };
    let shown = if options.follow { follow(path, options.lines) } else { print_tail(path, options.lines) };
    match shown {
        Ok(()) => Ok(Exit::Answered),
        Err(CopyError::Log(error)) => Err(fault(error)),
        Err(CopyError::Stdout(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(Exit::OutputClosed),
        Err(CopyError::Stdout(error)) => {
            Err(Fault::new(Exit::Failed, format!("agentctl: cannot write to stdout: {error}")))
        }
    }
}

/// The last lines of a log, without characters that steer a terminal; `None` where there is no log.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn tail(path: &Path, lines: usize) -> io::Result<Option<Vec<String>>> {
    let mut bytes = Vec::new();
    match open_at_tail(path, lines) {
        Ok(file) => file.take(TAIL_BYTES).read_to_end(&mut bytes)?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(Some(String::from_utf8_lossy(&cleaned(&bytes)).lines().map(str::to_owned).collect()))
}

/// The side that failed.
#[derive(Debug)]
enum CopyError {
    Log(io::Error),
    Stdout(io::Error),
}

fn print_tail(path: &Path, lines: usize) -> Result<(), CopyError> {
    let mut file = open_at_tail(path, lines).map_err(CopyError::Log)?;
    copy(&mut file, &mut io::stdout().lock())
}

fn follow(path: &Path, lines: usize) -> Result<(), CopyError> {
    // Watching begins before the first read, so that no change is missed.
    let changes = FolderChanges::of(path.parent().unwrap_or(Path::new("/"))).map_err(CopyError::Log)?;
    let mut file = open_at_tail(path, lines).map_err(CopyError::Log)?;
    let mut out = io::stdout().lock();
    loop {
        copy(&mut file, &mut out)?;
        if let Some(next) = replaced(&file, path).map_err(CopyError::Log)? {
            // The daemon may have written to the renamed file.
            copy(&mut file, &mut out)?;
            file = next;
            continue;
        }
        changes.wait().map_err(CopyError::Log)?;
    }
}

/// Opens the log, which may be a symbolic link.
fn open(path: &Path) -> io::Result<File> {
    OpenRules::new(LinkPolicy::Followed).open(path).map_err(|error| error.into_problem().into())
}

/// The file that has the name now; `None` when it is ours.
fn replaced(file: &File, path: &Path) -> io::Result<Option<File>> {
    let next = match open(path) {
        Ok(next) => next,
        // Our file was renamed, and the next one does not exist yet.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let (ours, named) = (file.metadata()?, next.metadata()?);
    Ok(((ours.dev(), ours.ino()) != (named.dev(), named.ino())).then_some(next))
}

/// Opens the file where its last lines begin.
fn open_at_tail(path: &Path, lines: usize) -> io::Result<File> {
    let mut file = open(path)?;
    let end = file.metadata()?.len();
    let begin = file.seek(SeekFrom::Start(end.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    (&file).take(TAIL_BYTES).read_to_end(&mut bytes)?;
    file.seek(SeekFrom::Start(begin + last_lines(&bytes, lines) as u64))?;
    Ok(file)
}

/// The offset of the last lines. A first line that is cut off counts as one.
fn last_lines(bytes: &[u8], lines: usize) -> usize {
    let text = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let Some(before) = lines.checked_sub(1) else { return bytes.len() };
    let ends = text.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    ends.map(|(at, _)| at + 1).nth(before).unwrap_or(0)
}

/// Copies to the end of the file.
fn copy(file: &mut File, out: &mut (impl Write + IsTerminal)) -> Result<(), CopyError> {
    let on_terminal = out.is_terminal();
    let mut buffer = vec![0; COPY_BYTES];
    loop {
        let count = match file.read(&mut buffer) {
            Ok(0) => return out.flush().map_err(CopyError::Stdout),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(CopyError::Log(error)),
        };
        let shown = if on_terminal { cleaned(&buffer[..count]) } else { Cow::Borrowed(&buffer[..count]) };
        out.write_all(&shown).map_err(CopyError::Stdout)?;
    }
}

/// The bytes without characters that steer a terminal.
fn cleaned(bytes: &[u8]) -> Cow<'_, [u8]> {
    match String::from_utf8_lossy(bytes) {
        Cow::Borrowed(text) => match harmless(text) {
            Cow::Borrowed(_) => Cow::Borrowed(bytes),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        },
        Cow::Owned(text) => Cow::Owned(harmless(&text).into_owned().into_bytes()),
    }
}

/// Changes in a folder.
struct FolderChanges(OwnedFd);

impl FolderChanges {
    fn of(folder: &Path) -> io::Result<Self> {
        use inotify::WatchFlags;
        let inotify = inotify::init(inotify::CreateFlags::CLOEXEC)?;
        let what = WatchFlags::MODIFY | WatchFlags::CREATE | WatchFlags::MOVED_TO;
        inotify::add_watch(&inotify, folder, what)?;
        Ok(Self(inotify))
    }

    /// Waits for a change, and takes all that have come.
    fn wait(&self) -> io::Result<()> {
        let mut buffer = [MaybeUninit::uninit(); 4 << 10];
        let mut reader = inotify::Reader::new(&self.0, &mut buffer);
        loop {
            match reader.next().map(drop) {
                Ok(()) if reader.is_buffer_empty() => return Ok(()),
                Ok(()) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines() {
        let check = |text: &str, lines, expected: &str| {
            assert_eq!(&text[last_lines(text.as_bytes(), lines)..], expected, "{text:?} {lines}");
        };
        check("a\nb\nc\n", 2, "b\nc\n");
        check("a\nb\nc", 2, "b\nc");
        check("a\nb\n", 9, "a\nb\n");
        check("a\n\n\n", 2, "\n\n");
        check("a\nb\n", 0, "");
        check("", 3, "");
    }

    #[test]
    fn a_log_that_was_put_aside_is_left_for_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agentd.log");
        std::fs::write(&path, "old\n").unwrap();
        let file = File::open(&path).unwrap();
        let changes = FolderChanges::of(folder.path()).unwrap();
        assert!(replaced(&file, &path).unwrap().is_none());
        std::fs::rename(&path, folder.path().join("agentd.log.1")).unwrap();
        assert!(replaced(&file, &path).unwrap().is_none());
        std::fs::write(&path, "new\n").unwrap();
        changes.wait().unwrap();
        let next = replaced(&file, &path).unwrap().expect("another file");
        assert_eq!(io::read_to_string(next).unwrap(), "new\n");
    }

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(&*cleaned("a\x1b[2J\u{9b}b\tc\n".as_bytes()), b"a [2J b\tc\n");
        assert!(matches!(cleaned(b"plain\n"), Cow::Borrowed(_)));
    }
}
