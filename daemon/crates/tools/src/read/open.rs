//! Opens the file of a path argument, if it can be read to its end.

use std::{
    io,
    path::{Path, PathBuf},
};

use agentd_agent::ToolError;
use rustix::io::Errno;
use unicode_normalization::UnicodeNormalization;

use crate::{
    errno, kernel,
    operations::{FileKind, FileSystem, OpenFile},
};

/// Opens the regular file at `path`; `given` is the path as the model wrote it, for messages.
pub(super) fn open(files: &dyn FileSystem, path: &Path, given: &str) -> Result<OpenFile, ToolError> {
    let mut found = files.open(path);
    if matches!(&found, Err(error) if error.kind() == io::ErrorKind::NotFound) {
        let other = variants(path).into_iter().map(|variant| files.open(&variant)).find(Result::is_ok);
        found = other.unwrap_or(found);
    }
    let file = match found {
        Ok(file) => file,
        // The error of opening a socket, or a device without a driver.
        Err(error) if Errno::from_io_error(&error) == Some(Errno::NXIO) => {
            return Err(not_regular(given, "a socket or a device"));
        }
        Err(error) => return Err(ToolError(errno::describe(&error, "access", path))),
    };
    match file.about.kind {
        FileKind::File => Ok(file),
        FileKind::Folder => Err(ToolError(format!("{}, read", errno::sentence(&Errno::ISDIR.into())))),
        FileKind::Pipe => Err(not_regular(given, "a named pipe")),
        FileKind::Socket => Err(not_regular(given, "a socket or a device")),
        FileKind::OfProcesses => Err(kernel::of_processes("read", given)),
        FileKind::Device | FileKind::Link => Err(not_regular(given, "a device")),
    }
}

fn not_regular(given: &str, what: &str) -> ToolError {
    ToolError(format!("Cannot read {given}: it is {what}, not a regular file. Use bash to read from it."))
}

/// Names that macOS gives to files and that models write in a plain form: with a narrow no-break space before AM and PM
/// in screenshot names, decomposed accents, curly apostrophes.
fn variants(path: &Path) -> Vec<PathBuf> {
    let Some(text) = path.to_str() else { return Vec::new() };
    let decomposed: String = text.nfd().collect();
    let curly = |text: &str| text.replace('\'', "\u{2019}");
    let mut variants = vec![narrow_before_am_pm(text), curly(text), curly(&decomposed), decomposed];
    variants.retain(|variant| variant != text);
    // Both accents and apostrophes are the rarest case.
    variants.dedup();
    variants.into_iter().map(PathBuf::from).collect()
}

fn narrow_before_am_pm(text: &str) -> String {
    let mut narrowed = String::with_capacity(text.len());
    for (index, c) in text.char_indices() {
        let follows = |word: &str| {
            text.as_bytes()
                .get(index + 1..index + 4)
                .is_some_and(|next| next.eq_ignore_ascii_case(word.as_bytes()))
        };
        narrowed.push(if c == ' ' && (follows("AM.") || follows("PM.")) { '\u{202f}' } else { c });
    }
    narrowed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::LocalFiles;

    fn open(path: &Path, given: &str) -> Result<OpenFile, ToolError> {
        super::open(&LocalFiles, path, given)
    }

    #[test]
    fn names_of_macos_are_found_by_their_plain_form() {
        let dir = tempfile::tempdir().unwrap();
        for (given, real) in [
            ("Shot at 9.41.00 AM.png", "Shot at 9.41.00\u{202f}AM.png"),
            ("caf\u{e9}.txt", "cafe\u{301}.txt"),
            ("it's.txt", "it\u{2019}s.txt"),
            ("l'\u{e9}t\u{e9}.txt", "l\u{2019}e\u{301}te\u{301}.txt"),
        ] {
            std::fs::write(dir.path().join(real), "x").unwrap();
            assert!(open(&dir.path().join(given), given).is_ok(), "{given}");
        }
        let missing = dir.path().join("missing's.txt");
        let error = open(&missing, "missing's.txt").err().unwrap();
        assert_eq!(error.0, format!("ENOENT: no such file or directory, access '{}'", missing.display()));
    }

    #[test]
    fn what_cannot_be_read_to_its_end_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let refused = |path: &Path| open(path, "x").err().unwrap().0;
        assert_eq!(refused(dir.path()), "EISDIR: illegal operation on a directory, read");
        let pipe = dir.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).unwrap();
        assert_eq!(
            refused(&pipe),
            "Cannot read x: it is a named pipe, not a regular file. Use bash to read from it."
        );
        assert_eq!(
            refused(Path::new("/dev/zero")),
            "Cannot read x: it is a device, not a regular file. Use bash to read from it."
        );
        for path in ["/proc/self/environ", "/proc/self/cmdline", "/proc/meminfo"] {
            if Path::new(path).exists() {
                let error = refused(Path::new(path));
                assert!(error.starts_with("Cannot read x: it is a file of /proc, which shows"), "{error}");
            }
        }
        let socket = dir.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert_eq!(
            refused(&socket),
            "Cannot read x: it is a socket or a device, not a regular file. Use bash to read from it."
        );
        let below = dir.path().join("socket/below");
        assert_eq!(refused(&below), format!("ENOTDIR: not a directory, access '{}'", below.display()));
    }
}
