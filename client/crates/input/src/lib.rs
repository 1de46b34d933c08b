//! The parts of a prompt besides its words: `@file` arguments and stdin. `agentctl prompt` and `agentd -p` share these
//! rules, and no other crate.
//!
//! All parts are read and checked before a session is opened, so that a mistake costs nothing.

use std::{
    fs::{self, File},
    io::{self, IsTerminal, Read},
    os::unix::fs::FileTypeExt as _,
    path::{Path, PathBuf},
    sync::mpsc,
    thread,
    time::Duration,
};

use agentd_protocol::{command::Image, image_kind::ImageKind, plain_path::without_dots};
use agentd_safe_open::{AcceptedOwner, FileKind, LinkPolicy, OpenError, OpenProblem, OpenRules};
use base64::{Engine, engine::general_purpose::STANDARD};

/// The most that a file or stdin may hold: 40 MiB. In base64, or escaped as JSON, that fits into one line of the
/// protocol.
const MAX_BYTES: u64 = 40 << 20;

/// The files of a prompt.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Attachments {
    /// The text that comes before the message.
    pub text: String,
    /// The images beside it.
    pub images: Vec<Image>,
}

/// Reads the files in order. `base` is the folder of relative paths; `home` replaces a leading `~`.
///
/// # Errors
/// For a file that is missing, unreadable, too large, or neither text nor an image.
pub fn read_files(paths: &[&str], base: &Path, home: Option<&Path>) -> Result<Attachments, InputError> {
    let mut all = Attachments::default();
    for path in paths {
        read_file(&absolute(path, base, home), &mut all)?;
    }
    Ok(all)
}

fn read_file(path: &Path, all: &mut Attachments) -> Result<(), InputError> {
    let shown = path.display();
    let unreadable = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => InputError::NotFound(path.to_owned()),
        _ => InputError::Unreadable { path: path.to_owned(), source },
    };
    let read = if is_handed_over(path) { read_handed_over(path) } else { read_regular(path) };
    let bytes = read.map_err(|problem| match problem {
        OpenProblem::NotAFile(FileKind::Folder) => InputError::Folder(path.to_owned()),
        OpenProblem::TooLong { length, limit } => {
            InputError::TooLarge { path: path.to_owned(), size_mib: length >> 20, max_mib: limit >> 20 }
        }
        OpenProblem::NotAFile(_) | OpenProblem::OfProcesses => {
            InputError::Unusable { path: path.to_owned(), problem: problem.to_string() }
        }
        problem => unreadable(problem.into()),
    })?;
    if bytes.is_empty() {
        return Ok(());
    }
    if let Some(kind) = ImageKind::sniff(&bytes) {
        all.text.push_str(&format!("<file name=\"{shown}\"></file>\n"));
        let image =
            Image { kind: "image".into(), data: STANDARD.encode(&bytes), mime_type: kind.mime_type().into() };
        all.images.push(image);
        return Ok(());
    }
    if bytes.contains(&0) {
        return Err(InputError::NoText(path.to_owned()));
    }
    let text = String::from_utf8_lossy(&bytes);
    all.text.push_str(&format!("<file name=\"{shown}\">\n{text}\n</file>\n"));
    Ok(())
}

/// Opens a file that the user named: it may be a symbolic link, and anybody's.
fn read_regular(path: &Path) -> Result<Vec<u8>, OpenProblem> {
    let rules = OpenRules::new(LinkPolicy::Followed).owner(AcceptedOwner::Anybody).max_bytes(MAX_BYTES);
    rules.read_present(path).map_err(OpenError::into_problem)
}

/// Whether the path is a pipe that the shell opened for us: `<(command)`, or stdin.
fn is_handed_over(path: &Path) -> bool {
    let number =
        |name: &Path| name.to_str().is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    let is_of_us = path == Path::new("/dev/stdin")
        || path.strip_prefix("/dev/fd").is_ok_and(number)
        || path.strip_prefix("/proc/self/fd").is_ok_and(number);
    is_of_us && fs::metadata(path).is_ok_and(|about| about.file_type().is_fifo())
}

fn read_handed_over(path: &Path) -> Result<Vec<u8>, OpenProblem> {
    let mut bytes = Vec::new();
    let pipe = File::open(path).map_err(OpenProblem::System)?;
    pipe.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(OpenProblem::System)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(OpenProblem::TooLong { length: bytes.len() as u64, limit: MAX_BYTES });
    }
    Ok(bytes)
}

/// The absolute path, with `.` and `..` resolved in the text alone, as pi does.
fn absolute(path: &str, base: &Path, home: Option<&Path>) -> PathBuf {
    let path = match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ if path == "~" => home.map_or_else(|| PathBuf::from(path), Path::to_owned),
        _ => PathBuf::from(path),
    };
    without_dots(&base.join(path))
}

/// How long stdin may be silent before the user is told that we read it.
const SILENCE: Duration = Duration::from_secs(2);

/// The rule for a stdin that is a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalInput {
    /// It is not read: the user did not ask for it.
    Ignored,
    /// It is read to its end (Ctrl-D): the user asked for it.
    Read,
}

/// Reads stdin to its end and trims it, as pi does; empty when stdin is a terminal. Blocks; calls `waiting` when
/// nothing has come for two seconds.
///
/// # Errors
/// When it cannot be read or holds too much.
pub fn read_stdin(waiting: impl FnOnce()) -> Result<String, InputError> {
    Ok(read_all(TerminalInput::Ignored, waiting)?.trim().to_owned())
}

/// Reads stdin to its end, without blank lines around the text. The first of several lines keeps its indentation.
///
/// # Errors
/// As [`read_stdin`].
pub fn read_piped(terminal: TerminalInput, waiting: impl FnOnce()) -> Result<String, InputError> {
    read_all(terminal, waiting).map(|text| without_blank_lines(&text).to_owned())
}

fn read_all(terminal: TerminalInput, waiting: impl FnOnce()) -> Result<String, InputError> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        if terminal == TerminalInput::Ignored {
            return Ok(String::new());
        }
        waiting();
        return read_bounded(stdin.lock()).map_err(InputError::Stdin);
    }
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new()
        .name("stdin".into())
        // Never fails: the receiver waits for the result.
        .spawn(move || drop(sender.send(read_bounded(stdin.lock()))))
        .map_err(InputError::Stdin)?;
    let text = receiver.recv_timeout(SILENCE).or_else(|_| {
        waiting();
        receiver.recv()
    });
    text.unwrap_or_else(|_| Err(io::Error::other("the reading thread ended"))).map_err(InputError::Stdin)
}

fn read_bounded(input: impl Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    input.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!(
            "it holds more than {} MiB: put it into a file and ask about the file",
            MAX_BYTES >> 20
        )));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn without_blank_lines(text: &str) -> &str {
    let trimmed = text.trim();
    if !trimmed.contains('\n') {
        return trimmed;
    }
    // Indentation has a meaning only beside other lines.
    let text = text.trim_end();
    let begin = text.len() - text.trim_start().len();
    let line = text[..begin].rfind('\n').map_or(0, |end| end + 1);
    &text[line..]
}

/// The reason why a part of a prompt cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// There is no such file.
    #[error("File not found: {}", .0.display())]
    NotFound(PathBuf),
    /// The file cannot be opened or read.
    #[error("Cannot read {}: {}", path.display(), unreadable_reason(source))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The path is a device, a pipe or the like.
    #[error("{} {problem}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// The problem, as the end of a sentence that begins with the path.
        problem: String,
    },
    /// It is a folder.
    #[error("{} is a folder: name a file in it, or ask about the folder in the message", .0.display())]
    Folder(PathBuf),
    /// The file is larger than the limit.
    #[error(
        "{} is too large to send along ({size_mib} MiB, at most {max_mib}): ask about it in the message instead, and the \
         model reads the parts that it needs",
        path.display()
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The file's size.
        size_mib: u64,
        /// The limit.
        max_mib: u64,
    },
    /// The file holds bytes that are neither text nor a known image.
    #[error("{} is neither text nor a PNG, JPEG, GIF, WebP or BMP image, so it cannot be sent along", .0.display())]
    NoText(PathBuf),
    /// `-` is given twice.
    #[error("- stands for stdin, which is read once: give it once")]
    StdinTwice,
    /// Stdin cannot be read, or holds too much.
    #[error("Cannot read stdin: {0}")]
    Stdin(#[source] io::Error),
}

fn unreadable_reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0";

    fn check(
        files: &[(&str, &[u8])],
        paths: &[&str],
    ) -> (PathBuf, Result<Attachments, InputError>, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            fs::write(dir.path().join(name), bytes).unwrap();
        }
        let read = read_files(paths, dir.path(), None);
        (dir.path().to_owned(), read, dir)
    }

    #[test]
    fn text_files_are_wrapped_and_empty_ones_skipped() {
        let (dir, read, _dir) =
            check(&[("a.txt", b"one\n"), ("b", b"two"), ("e", b"")], &["./x/../a.txt", "e", "b"]);
        let dir = dir.display();
        let expected =
            format!("<file name=\"{dir}/a.txt\">\none\n\n</file>\n<file name=\"{dir}/b\">\ntwo\n</file>\n");
        assert_eq!(read.unwrap(), Attachments { text: expected, images: Vec::new() });
    }

    #[test]
    fn images_go_beside_the_text() {
        let (dir, read, _dir) = check(&[("i", PNG)], &["i"]);
        let read = read.unwrap();
        assert_eq!(read.text, format!("<file name=\"{}/i\"></file>\n", dir.display()));
        assert_eq!(read.images[0].mime_type, "image/png");
        assert_eq!(STANDARD.decode(&read.images[0].data).unwrap(), PNG);
    }

    #[test]
    fn unusable_files_are_named() {
        let missing = check(&[], &["nope"]);
        let error = missing.1.unwrap_err();
        assert_eq!(error.to_string(), format!("File not found: {}/nope", missing.0.display()));
        for (file, path, says) in [
            (("b", &b"a\0b"[..]), "b", "neither text nor"),
            (("x", b""), ".", "is a folder"),
            (("f", b"x"), "f/g", "Cannot read"),
        ] {
            let error = check(&[file], &[path]).1.unwrap_err();
            assert!(error.to_string().contains(says), "{error}");
        }
    }

    #[test]
    fn home_is_expanded() {
        let home = Path::new("/h");
        assert_eq!(absolute("~/a", Path::new("/b"), Some(home)), Path::new("/h/a"));
        assert_eq!(absolute("~a", Path::new("/b"), Some(home)), Path::new("/b/~a"));
    }

    #[test]
    fn input_is_bounded() {
        assert_eq!(read_bounded(&b" \n a \xFFb\n\n"[..]).unwrap(), " \n a \u{FFFD}b\n\n");
        assert!(read_bounded(io::repeat(b'x')).unwrap_err().to_string().contains("more than 40 MiB"));
    }

    #[test]
    fn indentation_is_kept_beside_other_lines() {
        for (text, expected) in [
            ("\n piped \n", "piped"),
            ("\n \n  if x:\n    y\n\n", "  if x:\n    y"),
            ("  a\r\nb\r\n", "  a\r\nb"),
            ("a\n", "a"),
            (" \n\n", ""),
            ("", ""),
        ] {
            assert_eq!(without_blank_lines(text), expected, "{text:?}");
        }
    }
}
