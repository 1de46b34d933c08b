//! Resolves path arguments as models write them.

use std::{
    ffi::OsString,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

use agentd_protocol::plain_path::without_dots;

/// A path argument that is not a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PathError {
    /// It contains a NUL character, which no path can.
    #[error("Invalid path: {0:?} contains a NUL character")]
    Nul(String),
    /// A `file:` URL without a path on this machine.
    #[error("Invalid path: {url}: {reason}")]
    Url {
        /// The URL as given.
        url: String,
        /// What is wrong with it.
        reason: &'static str,
    },
}

/// What relative paths of a session are relative to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Base<'a> {
    /// The session's working directory, absolute.
    pub(crate) cwd: &'a Path,
    /// The folder that `~` means; `None` leaves `~` as it is.
    pub(crate) home: Option<&'a Path>,
}

/// The absolute path of `argument`, without `.` and `..`.
///
/// A leading `@` (the mark of file mentions) is dropped, Unicode spaces become plain ones, `~` and `~/` are the home
/// directory, `file://` URLs are converted, and other paths are relative to the working directory. The result may be
/// outside it.
///
/// # Errors
/// [`PathError`] for arguments that cannot be a path.
pub(crate) fn resolve(argument: &str, base: Base<'_>) -> Result<PathBuf, PathError> {
    if argument.contains('\0') {
        return Err(PathError::Nul(argument.to_owned()));
    }
    let text: String = argument
        .strip_prefix('@')
        .unwrap_or(argument)
        .chars()
        .map(|c| if is_space(c) { ' ' } else { c })
        .collect();
    let path = match (base.home, text.strip_prefix('~')) {
        (Some(home), Some("")) => home.to_owned(),
        (Some(home), Some(rest)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ if text.starts_with("file://") => from_url(&text)?,
        _ => PathBuf::from(text),
    };
    Ok(without_dots(&base.cwd.join(path)))
}

/// The absolute path of a tool's path argument, as the tools of a session resolve it.
///
/// # Errors
/// A sentence for an argument that cannot be a path.
pub fn resolve_path_argument(argument: &str, cwd: &Path, home: &Path) -> Result<PathBuf, String> {
    resolve(argument, Base { cwd, home: Some(home) }).map_err(|error| error.to_string())
}

/// Unicode spaces that look like the plain one.
fn is_space(c: char) -> bool {
    matches!(c, '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}')
}

fn from_url(url: &str) -> Result<PathBuf, PathError> {
    let invalid = |reason| PathError::Url { url: url.to_owned(), reason };
    let rest = &url["file://".len()..];
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
        return Err(invalid("a file URL must name no host, or localhost"));
    }
    let mut bytes = Vec::with_capacity(path.len());
    let mut left = path.as_bytes();
    while let Some((&byte, tail)) = left.split_first() {
        left = tail;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (Some(high), Some(low)) = (left.first().and_then(hex), left.get(1).and_then(hex)) else {
            return Err(invalid("a % must be followed by two hexadecimal digits"));
        };
        left = &left[2..];
        match high * 16 + low {
            b'/' => return Err(invalid("a file URL must not hold an encoded /")),
            0 => return Err(invalid("a file URL must not hold a NUL character")),
            decoded => bytes.push(decoded),
        }
    }
    if bytes.is_empty() {
        bytes.push(b'/');
    }
    Ok(PathBuf::from(OsString::from_vec(bytes)))
}

fn hex(digit: &u8) -> Option<u8> {
    char::from(*digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use std::path::Component;

    use proptest::prelude::*;

    use super::*;

    fn resolved(argument: &str) -> Result<PathBuf, PathError> {
        resolve(argument, Base { cwd: Path::new("/w/dir"), home: Some(Path::new("/home/me")) })
    }

    fn check(argument: &str, expected: &str) {
        assert_eq!(resolved(argument).as_deref(), Ok(Path::new(expected)), "{argument:?}");
    }

    #[test]
    fn paths_are_taken_as_meant() {
        check("a.txt", "/w/dir/a.txt");
        check("./a/../b//c/.", "/w/dir/b/c");
        check("../x", "/w/x");
        check("../../../../x", "/x");
        check("/abs/x", "/abs/x");
        check("", "/w/dir");
        check("@src/a.rs", "/w/dir/src/a.rs");
        check("@@a", "/w/dir/@a");
        check("@~/a", "/home/me/a");
        check("~", "/home/me");
        check("~/a b", "/home/me/a b");
        check("~//a", "/home/me/a");
        check("~other/a", "/w/dir/~other/a");
        check("a\u{a0}b\u{202f}c\u{3000}d\u{2009}e", "/w/dir/a b c d e");
    }

    #[test]
    fn file_urls_are_converted() {
        check("file:///a/b%20c", "/a/b c");
        check("file://localhost/a?x#y", "/a");
        check("file:///%C3%A9", "/é");
        check("file://", "/");
        for (url, reason) in [
            ("file://host/a", "a file URL must name no host, or localhost"),
            ("file:///a%2fb", "a file URL must not hold an encoded /"),
            ("file:///a%zz", "a % must be followed by two hexadecimal digits"),
            ("file:///a%", "a % must be followed by two hexadecimal digits"),
            ("file:///a%00", "a file URL must not hold a NUL character"),
        ] {
            assert_eq!(resolved(url), Err(PathError::Url { url: url.to_owned(), reason }));
        }
    }

    #[test]
    fn a_path_with_nul_is_refused() {
        let error = resolved("a\0b").unwrap_err();
        assert_eq!(error.to_string(), "Invalid path: \"a\\0b\" contains a NUL character");
    }

    #[test]
    fn without_a_home_the_tilde_is_a_name() {
        let path = resolve("~/a", Base { cwd: Path::new("/w"), home: None });
        assert_eq!(path.as_deref(), Ok(Path::new("/w/~/a")));
    }

    proptest! {
        #[test]
        fn every_path_is_absolute_and_plain(argument in "(file://)?[@~./%a0é ]{0,12}") {
            if let Ok(path) = resolved(&argument) {
                prop_assert!(path.is_absolute());
                prop_assert!(path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_))));
            }
        }
    }
}
