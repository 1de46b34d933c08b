//! Paths as URIs, and back. Pure.

use std::{
    ffi::OsString,
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::{Path, PathBuf},
};

use agentd_protocol::plain_path::without_dots;

/// The `file:` URI of an absolute path. Bytes with a meaning in URIs are percent-encoded.
pub(crate) fn file_uri(path: &Path) -> String {
    let mut uri = "file://".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                uri.push(char::from(*byte));
            }
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

/// The path of a `file:` URI, without `.` and `..`; `None` for any other URI, and for one that names another machine. A percent sign that
/// encodes nothing stands for itself.
pub(crate) fn path_of(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file:")?;
    let path = match rest.strip_prefix("//") {
        Some(rest) => {
            let (host, path) = rest.split_at(rest.find('/')?);
            if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
                return None;
            }
            path
        }
        None => rest,
    };
    let mut bytes = Vec::with_capacity(path.len());
    let mut left = path.as_bytes();
    while let Some((&byte, tail)) = left.split_first() {
        let hex = |at: usize| tail.get(at).and_then(|digit| char::from(*digit).to_digit(16));
        match (byte, hex(0), hex(1)) {
            (b'%', Some(high), Some(low)) => {
                // Two digits are a byte.
                bytes.push((high * 16 + low) as u8);
                left = &tail[2..];
            }
            _ => {
                bytes.push(byte);
                left = tail;
            }
        }
    }
    let path = PathBuf::from(OsString::from_vec(bytes));
    let is_usable = path.is_absolute() && !path.as_os_str().as_bytes().contains(&0);
    is_usable.then(|| without_dots(&path))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn uris() {
        let check = |uri: &str, path: Option<&str>| {
            assert_eq!(path_of(uri).as_deref(), path.map(Path::new), "{uri}");
        };
        check("file:///a%20b/c%3A", Some("/a b/c:"));
        check("file:/a", Some("/a"));
        check("file://localhost/a/../b", Some("/b"));
        check("file://elsewhere/a", None);
        check("untitled:a", None);
        check("file:///a%zz", Some("/a%zz"));
        check("file:///a%00", None);
        assert_eq!(file_uri(Path::new("/a b/é#")), "file:///a%20b/%C3%A9%23");
    }

    proptest! {
        #[test]
        fn a_path_leads_back(names in prop::collection::vec("[^/\0.]{1,8}", 0..4)) {
            let path = PathBuf::from(format!("/{}", names.join("/")));
            prop_assert_eq!(path_of(&file_uri(&path)), Some(path));
        }

        #[test]
        fn any_text_is_read(text in "file:[/%a-f0-9.]{0,12}") {
            let _ = path_of(&text);
        }
    }
}
