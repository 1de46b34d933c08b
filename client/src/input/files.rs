//! `@file` arguments: text goes into the prompt, images beside it.

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

use agentd_protocol::command::Image;
use base64::{Engine, engine::general_purpose::STANDARD};

use super::image;
use crate::exit::Fault;

/// The most that a file may hold: 40 MiB. In base64 that still fits a line of the wire.
const MAX_BYTES: u64 = 40 << 20;

/// What the files add to a prompt.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Attachments {
    /// The text before the message.
    pub(crate) text: String,
    /// The images beside it.
    pub(crate) images: Vec<Image>,
}

/// Reads the files in order. `base` is the folder of relative paths, `home` stands for a leading `~`.
///
/// # Errors
/// For a file that is missing, unreadable, too large, or neither text nor an image.
pub(crate) fn read_files(paths: &[&str], base: &Path, home: Option<&Path>) -> Result<Attachments, Fault> {
    let mut all = Attachments::default();
    for path in paths {
        read_file(&absolute(path, base, home), &mut all)?;
    }
    Ok(all)
}

fn read_file(path: &Path, all: &mut Attachments) -> Result<(), Fault> {
    let shown = path.display();
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Fault::usage(format!(
            "Error: File not found: {shown}\nText that begins with @ goes after `--`: agentctl prompt -- \"@...\""
        )),
        io::ErrorKind::PermissionDenied => {
            Fault::usage(format!("Error: Cannot read {shown}: permission denied"))
        }
        _ => Fault::usage(format!("Error: Cannot read {shown}: {error}")),
    };
    let meta = fs::metadata(path).map_err(unreadable)?;
    if meta.is_dir() {
        return Err(Fault::usage(format!(
            "Error: {shown} is a folder: name a file in it, or ask about the folder in the message"
        )));
    }
    if meta.len() > MAX_BYTES {
        let (size, most) = (meta.len() >> 20, MAX_BYTES >> 20);
        return Err(Fault::usage(format!(
            "Error: {shown} is too large to send along ({size} MiB, at most {most}): ask about it in the message \
             instead, and the model reads the parts that it needs"
        )));
    }
    let bytes = fs::read(path).map_err(unreadable)?;
    if bytes.is_empty() {
        return Ok(());
    }
    if let Some(mime_type) = image::sniff(&bytes) {
        all.text.push_str(&format!("<file name=\"{shown}\"></file>\n"));
        let image =
            Image { kind: "image".into(), data: STANDARD.encode(&bytes), mime_type: mime_type.into() };
        all.images.push(image);
        return Ok(());
    }
    if bytes.contains(&0) {
        return Err(Fault::usage(format!(
            "Error: {shown} is neither text nor a PNG, JPEG, GIF or WebP image, so it cannot be sent along"
        )));
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
    ) -> (PathBuf, Result<Attachments, Fault>, tempfile::TempDir) {
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
        assert_eq!(read, Ok(Attachments { text: expected, images: Vec::new() }));
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
        let text = missing.1.unwrap_err().message;
        assert!(
            text.starts_with(&format!("Error: File not found: {}/nope\n", missing.0.display())),
            "{text}"
        );
        for (file, path, says) in [
            (("b", &b"a\0b"[..]), "b", "neither text nor"),
            (("x", b""), ".", "is a folder"),
            (("f", b"x"), "f/g", "Cannot read"),
        ] {
            let fault = check(&[file], &[path]).1.unwrap_err();
            assert_eq!(fault.exit, crate::exit::Exit::Usage);
            assert!(fault.message.contains(says), "{fault}");
        }
    }

    #[test]
    fn home_is_expanded() {
        let home = Path::new("/h");
        assert_eq!(absolute("~/a", Path::new("/b"), Some(home)), Path::new("/h/a"));
        assert_eq!(absolute("~a", Path::new("/b"), Some(home)), Path::new("/b/~a"));
    }
}
