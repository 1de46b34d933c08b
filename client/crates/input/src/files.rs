//! `@file` arguments: text goes into the prompt, images beside it.

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

use agentd_image_kind::ImageKind;
use agentd_protocol::command::Image;
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
    let meta = fs::metadata(path).map_err(unreadable)?;
    if meta.is_dir() {
        return Err(InputError::Folder(path.to_owned()));
    }
    if meta.len() > MAX_BYTES {
        let (size_mib, max_mib) = (meta.len() >> 20, MAX_BYTES >> 20);
        return Err(InputError::TooLarge { path: path.to_owned(), size_mib, max_mib });
    }
    let bytes = fs::read(path).map_err(unreadable)?;
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
