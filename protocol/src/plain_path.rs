//! Paths without `.` and `..`, by their text alone.

use std::path::{Component, Path, PathBuf};

/// The path without `.` and `..`, by its text alone: nothing need be there, and links are not looked at. At the root `..` does nothing,
/// as in the file system; at the beginning of a relative path it is left out.
#[must_use]
pub fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
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

    #[test]
    fn dots_are_taken_out() {
        for (path, expected) in [
            ("/a/./b/../c", "/a/c"),
            ("/../../a", "/a"),
            ("/a/b/../../..", "/"),
            ("a/../../b", "b"),
            ("/a//b/", "/a/b"),
            ("", ""),
        ] {
            assert_eq!(without_dots(Path::new(path)), Path::new(expected), "{path}");
        }
    }
}
