//! `@file` arguments: text goes into the prompt, images beside it.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    os::unix::fs::FileTypeExt as _,
    path::{Component, Path, PathBuf},
};

use agentd_protocol::{command::Image, image_kind::ImageKind};
use agentd_safe_open::{AcceptedOwner, FileKind, LinkPolicy, OpenError, OpenProblem, OpenRules};
use base64::{Engine, engine::general_purpose::STANDARD};

use crate::InputError;

/// The most that a file may hold: 40 MiB. In base64 that still fits a line of the wire.
const MAX_BYTES: u64 = 40 << 20;

/// What the files add to a prompt.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Attachments {
    /// The text before the message.
    pub text: String,
    /// The images beside it.
    pub images: Vec<Image>,
}

/// Reads the files in order. `base` is the folder of relative paths, `home` stands for a leading `~`.
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

/// The user names the file: it may be a link, and anybody's.
fn read_regular(path: &Path) -> Result<Vec<u8>, OpenProblem> {
    let rules = OpenRules::new(LinkPolicy::Followed).owner(AcceptedOwner::Anybody).max_bytes(MAX_BYTES);
    rules.read_present(path).map_err(OpenError::into_problem)
}

/// Whether a path means what the shell hands over open: `<(command)`, or stdin. Somebody writes to such a pipe.
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

/// The absolute path, with `.` and `..` taken away in the text alone, as the reference does.
fn absolute(path: &str, base: &Path, home: Option<&Path>) -> PathBuf {
    let path = match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ if path == "~" => home.map_or_else(|| PathBuf::from(path), Path::to_owned),
        _ => PathBuf::from(path),
    };
    let mut plain = PathBuf::new();
    for part in base.join(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
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
}
