//! Reading a file that a user wrote for agents, and saying what is wrong with it.

use std::path::Path;

use agentd_protocol::resources::{Diagnostic, DiagnosticKind, DiagnosticLevel};

use agentd_safe_open::{AcceptedOwner, LinkPolicy, OpenRules};

use crate::text_file::{MAX_TEXT_BYTES, TextFileError, without_mark};

/// Reads a file without its byte order mark; `None` when it does not exist or cannot be used. Invalid UTF-8 becomes U+FFFD.
/// Faults are added to `diagnostics`.
pub(super) fn read(path: &Path, kind: DiagnosticKind, diagnostics: &mut Vec<Diagnostic>) -> Option<String> {
    let rules = OpenRules::new(LinkPolicy::Followed).owner(AcceptedOwner::Anybody);
    read_by(rules, path, path, kind, diagnostics)
}

/// [`read`] by these rules. `shown` is the path that the user knows, and `path` the real one.
pub(super) fn read_by(
    rules: OpenRules<'_>,
    path: &Path,
    shown: &Path,
    kind: DiagnosticKind,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<String> {
    let bytes = match rules.max_bytes(MAX_TEXT_BYTES).read(path) {
        Ok(bytes) => bytes?,
        Err(error) => {
            diagnostics.push(unreadable(shown, kind, &error.into()));
            return None;
        }
    };
    let bytes = without_mark(&bytes);
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text.to_owned()),
        Err(error) => {
            let lines = bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
            let message = "the file is not UTF-8 here; what cannot be read becomes U+FFFD";
            let diagnostic = Diagnostic::warning(kind, message).at(shown).line(u32::try_from(lines + 1).ok());
            diagnostics.push(diagnostic.hint("save it as UTF-8"));
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
    }
}

/// A file that is there and is not used.
pub(super) fn unreadable(path: &Path, kind: DiagnosticKind, error: &TextFileError) -> Diagnostic {
    let (message, hint) = match error {
        TextFileError::NotAFile { .. } => {
            ("this is no regular file and is not used".to_owned(), "put a file in its place")
        }
        TextFileError::TooLarge { size, limit, .. } => (
            format!("the file is {size} bytes long, more than the {limit} that are read, and is not used"),
            "make it shorter",
        ),
        TextFileError::Refused { problem, .. } => {
            (format!("this {problem}; it is not used"), "put a file in its place")
        }
        TextFileError::Io { source, .. } => {
            (format!("the file cannot be read and is not used: {source}"), "look at its permissions")
        }
    };
    Diagnostic::warning(kind, message).level(DiagnosticLevel::Error).at(path).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.md");
        let mut said = Vec::new();
        let mut check = |bytes: &[u8], expected: &str| {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(read(&path, DiagnosticKind::Skill, &mut said).as_deref(), Some(expected));
        };
        check("\u{FEFF}a\u{e9}".as_bytes(), "a\u{e9}");
        check(b"a\nb\nc\xFFd\n\xFE", "a\nb\nc\u{FFFD}d\n\u{FFFD}");
        assert_eq!((said.len(), said[0].line, said[0].level), (1, Some(3), DiagnosticLevel::Warning));
        assert_eq!(read(&path.with_extension("none"), DiagnosticKind::Skill, &mut said), None);
        assert_eq!(said.len(), 1);
        assert_eq!(read(folder.path(), DiagnosticKind::Skill, &mut said), None);
        let huge = std::fs::File::create(&path).unwrap();
        huge.set_len(MAX_TEXT_BYTES + 1).unwrap();
        assert_eq!(read(&path, DiagnosticKind::Skill, &mut said), None);
        let shown: Vec<String> = said[1..].iter().map(ToString::to_string).collect();
        assert!(shown[0].contains("no regular file"), "{shown:?}");
        assert!(shown[1].contains("file.md: the file is 1048577 bytes long"), "{shown:?}");
    }
}
