//! The laws of everything that a model may write into a tool's arguments: for fuzz targets (`fuzz/` in the repository),
//! and for the tests that repeat known inputs. Only with the feature `fuzzing`; no part of the interface.
//!
//! Each function takes any bytes and panics where a law is broken.

use std::path::{Component, Path};

use crate::{
    TextLimits, count_lines,
    path::{Base, resolve},
    truncate_head, truncate_tail,
};

/// The laws, by the names of their fuzz targets.
pub const LAWS: &[(&str, fn(&[u8]))] = &[
    ("edits", crate::edit::fuzz::edits),
    ("ignore_files", crate::search::fuzz::ignore_files),
    ("globs", crate::find::fuzz::globs),
    ("regexes", crate::grep::fuzz::regexes),
    ("shell_words", crate::bash::fuzz::shell_words),
    ("paths", paths),
    ("truncation", truncation),
];

/// A path argument resolves to an absolute path without `.` and `..`, or is refused, and resolving the result changes
/// nothing.
pub fn paths(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let base = Base { cwd: Path::new("/home/me/project"), home: Some(Path::new("/home/me")) };
    let Ok(path) = resolve(&text, base) else { return };
    assert!(path.is_absolute());
    let is_plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
    assert!(path.components().all(is_plain), "{}", path.display());
    assert!(!path.as_os_str().as_encoded_bytes().contains(&0));
    if let Some(text) = path.to_str() {
        let url = format!("file://{}", text.replace('%', "%25").replace('?', "%3f").replace('#', "%23"));
        assert_eq!(resolve(&url, base).as_ref(), Ok(&path), "{url}");
    }
}

/// Truncation keeps whole lines of the start or the end, within the limits; a text within the limits stays whole.
pub fn truncation(input: &[u8]) {
    let Some((&[lines, bytes], text)) = input.split_first_chunk() else { return };
    let text = String::from_utf8_lossy(text);
    let limits = TextLimits { lines: usize::from(lines), bytes: usize::from(bytes) };
    for (cut, is_head) in [(truncate_head(&text, limits), true), (truncate_tail(&text, limits), false)] {
        assert_eq!((cut.total_bytes, cut.total_lines), (text.len() as u64, count_lines(&text) as u64));
        assert_eq!(cut.output_bytes, cut.content.len() as u64);
        let fits = text.len() <= limits.bytes && count_lines(&text) <= limits.lines;
        assert_eq!(cut.truncated, !fits);
        if fits {
            assert_eq!(cut.content, text);
            continue;
        }
        assert!(cut.content.len() <= limits.bytes, "{cut:?}");
        assert!(cut.output_lines <= limits.lines.max(1) as u64, "{cut:?}");
        let body = text.strip_suffix('\n').unwrap_or(&text);
        if is_head {
            assert!(text.starts_with(&cut.content));
            let rest = &body[cut.content.len().min(body.len())..];
            assert!(
                cut.content.is_empty() || rest.is_empty() || rest.starts_with('\n'),
                "whole lines: {cut:?}"
            );
        } else {
            assert!(body.ends_with(&cut.content));
            let before = &body[..body.len() - cut.content.len()];
            assert!(
                cut.last_line_partial
                    || cut.content.is_empty()
                    || before.is_empty()
                    || before.ends_with('\n'),
                "{cut:?}"
            );
        }
    }
}

#[cfg(test)]
#[path = "../../../../tests/fuzz/src/found.rs"]
mod found;

#[test]
fn inputs_that_were_found() {
    found::check(LAWS);
}
