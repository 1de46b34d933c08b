//! What clients are told of a session file that is not as it should be.

use std::path::Path;

use agentd_protocol::resources::{Diagnostic, DiagnosticKind, DiagnosticLevel};
use agentd_store::{LoadReport, Oddity};

/// So many places are named one by one; the others are counted. `agentctl fsck` names more.
const NAMED: usize = 20;

const HINT: &str = "agentctl fsck --repair writes a repaired copy; this file is never rewritten";

/// A diagnostic for each place that was odd, bounded.
pub(super) fn of_file(report: &LoadReport, path: Option<&Path>) -> Vec<Diagnostic> {
    let about = |problem: Diagnostic| match path {
        Some(path) => problem.at(path),
        None => problem,
    };
    let mut found: Vec<Diagnostic> =
        report.oddities().iter().take(NAMED).map(|oddity| about(of_place(oddity))).collect();
    let others = report.total().saturating_sub(found.len() as u64);
    if others > 0 {
        let text = format!("{others} more places in the file are odd; agentctl fsck lists them");
        found.push(about(Diagnostic::warning(DiagnosticKind::Session, text).hint(HINT)));
    }
    if let (Some(version), Some(original)) = (report.migrated_from, &report.original) {
        let text = format!(
            "the file was of format version {version} and was brought to the current one; as it was before, it is {}",
            original.display()
        );
        let told = Diagnostic::warning(DiagnosticKind::Session, text).level(DiagnosticLevel::Info);
        found.push(about(told));
    }
    found
}

/// That nothing can be added to this file.
pub(super) fn read_only(path: &Path) -> Diagnostic {
    let text = "the session file can be read and not written to, so that the session takes no prompt";
    Diagnostic::warning(DiagnosticKind::Session, text).at(path).hint(
        "make it writable (chmod u+w), close the session and open it again; or go on in a fork (--fork)",
    )
}

/// That `--continue` does not go on with this file.
pub(super) fn of_project(path: &Path) -> Diagnostic {
    let text = "the last session of this folder is a file of the project itself, so that whoever made the project may have \
                written it: it is not continued, and the session is a new one";
    let hint = format!("look at the file; --session {} goes on with it", path.display());
    Diagnostic::warning(DiagnosticKind::Session, text).at(path).hint(hint)
}

fn of_place(oddity: &Oddity) -> Diagnostic {
    let Oddity { kind, place } = oddity;
    let text = format!("{kind} ({} bytes from byte {})", place.bytes, place.byte);
    let level = if kind.is_harmless() { DiagnosticLevel::Info } else { DiagnosticLevel::Warning };
    Diagnostic::warning(DiagnosticKind::Session, text)
        .level(level)
        .line(u32::try_from(place.line).ok())
        .byte(place.byte)
        .hint(HINT)
}

#[cfg(test)]
mod tests {
    use agentd_store::{Store, StoreOptions};

    use super::*;

    fn told(text: &str) -> Vec<Diagnostic> {
        let store = Store::new(StoreOptions::default());
        let (_, report) = store.read_from(Path::new("x"), &mut text.as_bytes()).unwrap();
        of_file(&report, Some(Path::new("/s.jsonl")))
    }

    const HEADER: &str = r#"{"type":"session","version":3,"id":"s","timestamp":"t","cwd":"/w"}"#;

    #[test]
    fn each_place_is_named_with_line_and_byte() {
        assert_eq!(told(&format!("{HEADER}\n")), []);
        let told = told(&format!("{HEADER}\r\nbroken\n"));
        let byte = HEADER.len() as u64 + 2;
        assert_eq!((told[0].level, told[0].line), (DiagnosticLevel::Info, Some(1)));
        assert_eq!(
            told[1..],
            [Diagnostic::warning(
                DiagnosticKind::Session,
                format!("the line is no JSON and was skipped (6 bytes from byte {byte})")
            )
            .at("/s.jsonl")
            .line(2)
            .byte(byte)
            .hint(HINT)]
        );
    }

    #[test]
    fn many_places_are_counted() {
        let told = told(&format!("{HEADER}\n{}", "broken\n".repeat(1000)));
        assert_eq!(told.len(), NAMED + 1);
        assert_eq!(told[NAMED].message, "980 more places in the file are odd; agentctl fsck lists them");
    }
}
