//! The target of an export: a new file, a file that is replaced in one step, or stdout.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, ErrorKind, IsTerminal, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use agentd_files::replace::Replacement;
use rustix::{
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    io::Errno,
};

use crate::{
    cli::ExportOptions,
    exit::{Exit, Fault, print_stderr},
    render::steers,
};

/// The mode of a new file: a conversation is private until the user shares it.
const PRIVATE: u32 = 0o600;

/// Refuses a file that exists, without `--force`.
///
/// # Errors
/// When it is, and `--force` is not said.
pub(super) fn check(options: &ExportOptions) -> Result<(), Fault> {
    match &options.output {
        Some(path) if !options.force && path.symlink_metadata().is_ok() => Err(there_already(path)),
        _ => Ok(()),
    }
}

fn there_already(path: &Path) -> Fault {
    Fault::usage(format!("Error: {} is there already: --force overwrites it.", path.display()))
}

/// Writes the content. A file is complete or missing; a replaced file stays until then.
///
/// # Errors
/// When reading or writing fails. A closed stdout is an exit, not an error.
pub(super) fn write(
    options: &ExportOptions,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<Exit, Fault> {
    match &options.output {
        Some(path) => {
            let cannot = |error: io::Error| {
                Fault::new(Exit::Failed, format!("Error: cannot write {}: {error}", path.display()))
            };
            match to_file(path, options.force, content) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists && !options.force => {
                    return Err(there_already(path));
                }
                written => written.map_err(cannot)?,
            }
            print_stderr(&format!("Written to {}.", path.display()));
            Ok(Exit::Answered)
        }
        None => match to_stdout(content) {
            Ok(()) => Ok(Exit::Answered),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Exit::OutputClosed),
            Err(error) => Err(Fault::new(
                Exit::Failed,
                format!("agentctl: the conversation cannot be written: {error}"),
            )),
        },
    }
}

fn to_file(
    path: &Path,
    replace: bool,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    // Devices and pipes cannot be replaced.
    if replace && fs::metadata(path).is_ok_and(|meta| !meta.is_file()) {
        return filled(open_device(path)?, content);
    }
    if !replace {
        let file = OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(path)?;
        return filled(file, content).or_else(|error| fs::remove_file(path).and(Err(error)));
    }
    // A symbolic link stays; the file behind it is replaced.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let name = path.file_name().ok_or_else(|| io::Error::other("it is no name of a file"))?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let prefix = format!(".{}.", name.to_string_lossy());
    let mut new = Replacement::create(folder, &prefix, ".tmp", PRIVATE)?;
    if let Ok(old) = fs::metadata(&path) {
        new.file_mut().set_permissions(old.permissions())?;
    }
    filled(new.file_mut(), content)?;
    new.commit(&path).map(drop)
}

/// Opens a device or a named pipe for writing, without waiting for a reader of the pipe.
fn open_device(path: &Path) -> io::Result<File> {
    let waits_for_nobody = OFlags::NONBLOCK.bits().cast_signed();
    let opened = OpenOptions::new().write(true).custom_flags(waits_for_nobody).open(path);
    let file = opened.map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::NXIO) => io::Error::other(
            "nobody reads from this named pipe: start the reader first, or name a file that is not there yet",
        ),
        _ => error,
    })?;
    // From here on writing waits for a slow reader.
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

fn filled(file: impl Write, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::new(file);
    content(&mut out)?;
    out.flush()
}

fn to_stdout(content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let stdout = io::stdout().lock();
    if stdout.is_terminal() {
        let mut out = EscapingWriter { out: BufWriter::new(stdout), torn: Vec::new() };
        content(&mut out)?;
        out.flush()
    } else {
        let mut out = BufWriter::new(stdout);
        content(&mut out)?;
        out.flush()
    }
}

/// Writes text to a terminal with control characters as `\u001b`, which JSON reads as the same.
struct EscapingWriter<W> {
    out: W,
    /// The first bytes of a character that is not complete.
    torn: Vec<u8>,
}

impl<W: Write> EscapingWriter<W> {
    fn text(&mut self, text: &str) -> io::Result<()> {
        for part in text.split_inclusive(steers) {
            match part.chars().next_back().filter(|last| steers(*last)) {
                Some(last) => {
                    self.out.write_all(&part.as_bytes()[..part.len() - last.len_utf8()])?;
                    write!(self.out, "\\u{:04x}", u32::from(last))?;
                }
                None => self.out.write_all(part.as_bytes())?,
            }
        }
        Ok(())
    }
}

impl<W: Write> Write for EscapingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = std::mem::take(&mut self.torn);
        all.extend_from_slice(bytes);
        let mut rest = all.as_slice();
        loop {
            match std::str::from_utf8(rest) {
                Ok(text) => {
                    self.text(text)?;
                    return Ok(bytes.len());
                }
                Err(error) => {
                    let (good, bad) = rest.split_at(error.valid_up_to());
                    self.text(&String::from_utf8_lossy(good))?;
                    match error.error_len() {
                        Some(length) => {
                            self.out.write_all("\u{fffd}".as_bytes())?;
                            rest = &bad[length..];
                        }
                        None => {
                            self.torn = bad.to_vec();
                            return Ok(bytes.len());
                        }
                    }
                }
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.torn).is_empty() {
            self.out.write_all("\u{fffd}".as_bytes())?;
        }
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn escaped(pieces: &[&[u8]]) -> String {
        let mut out = EscapingWriter { out: Vec::new(), torn: Vec::new() };
        for piece in pieces {
            out.write_all(piece).unwrap();
        }
        out.flush().unwrap();
        String::from_utf8(out.out).unwrap()
    }

    #[test]
    fn nothing_steers_a_terminal() {
        assert_eq!(escaped(&["a\x1b[2J\tb\u{9b}\r\n".as_bytes()]), "a\\u001b[2J\tb\\u009b\\u000d\n");
        assert_eq!(escaped(&[b"a\xffb\xc3"]), "a\u{fffd}b\u{fffd}");
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(text: String, cut in 0..64usize) {
            let cut = cut.min(text.len());
            let (first, second) = text.as_bytes().split_at(cut);
            prop_assert_eq!(escaped(&[first, second]), escaped(&[text.as_bytes()]));
        }
    }

    #[test]
    fn a_file_is_there_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.md");
        let names = || fs::read_dir(folder.path()).unwrap().count();
        let torn = |out: &mut dyn Write| out.write_all(b"half").and(Err(io::Error::other("torn")));
        assert_eq!(to_file(&path, false, torn).unwrap_err().to_string(), "torn");
        assert_eq!(names(), 0);
        to_file(&path, false, |out| out.write_all(b"one")).unwrap();
        assert_eq!(to_file(&path, false, |_| Ok(())).unwrap_err().kind(), ErrorKind::AlreadyExists);
        to_file(&path, true, torn).unwrap_err();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names()), ("one", 1));
        let link = folder.path().join("link.md");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        to_file(&link, true, |out| out.write_all(b"two")).unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names()), ("two", 2));
        assert!(link.is_symlink());
        to_file(Path::new("/dev/null"), true, |out| out.write_all(b"x")).unwrap();
    }
}
