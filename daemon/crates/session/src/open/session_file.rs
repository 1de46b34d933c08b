//! The owner of a session file, and its problems.

use std::{
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use agentd_config::{AgentDir, SessionDir as SessionDirRule, is_of_project, settings::load_user};
use agentd_protocol::resources::{Diagnostic, DiagnosticKind, DiagnosticLevel};
use agentd_safe_open::AcceptedOwner;
use agentd_store::{
    LoadReport, Oddity,
    intent_log::{OwnershipNotes, intent_log_path},
};

use super::target::folder_rule;
use crate::{options::SessionOptions, recovery::Origin};

/// Whose a session file is that was opened for one of these working directories, and where its intent logs are noted when it lies
/// outside of the agent directory. Reads files; blocks.
pub(super) fn origin(
    file: &Path,
    cwds: [&PathBuf; 2],
    agent_dir: &AgentDir,
    options: &SessionOptions,
) -> (Origin, Option<OwnershipNotes>) {
    // Nearly always the same folder.
    let cwds = if cwds[0] == cwds[1] { &cwds[..1] } else { &cwds[..] };
    if cwds.iter().any(|cwd| is_of_project(file, cwd, agent_dir, &options.environment)) {
        return (Origin::Project, None);
    }
    let real = real(file);
    let own = [agent_dir.path().to_path_buf(), agent_dir.sessions_dir()];
    if own.iter().filter_map(|folder| folder.canonicalize().ok()).any(|folder| real.starts_with(folder)) {
        return (Origin::User, None);
    }
    let (claims, intent_log) = (OwnershipNotes::below(&agent_dir.run_dir()), intent_log_path(file));
    let is_users =
        claims.covers(&intent_log) || (is_in_session_dir(&real, agent_dir, options) && is_own(&intent_log));
    (if is_users { Origin::User } else { Origin::Outside }, Some(claims))
}

/// Whether the file is in the folder that the user named for sessions, by a flag, a variable or the user's own settings.
fn is_in_session_dir(real: &Path, agent_dir: &AgentDir, options: &SessionOptions) -> bool {
    match folder_rule(options, agent_dir, &load_user(agent_dir)) {
        SessionDirRule::Exact(folder) => {
            folder.canonicalize().is_ok_and(|folder| real.parent() == Some(folder.as_path()))
        }
        SessionDirRule::PerCwd(_) => false,
    }
}

/// Whether an intent log, if there is one, is a file of this user's or root's.
fn is_own(intent_log: &Path) -> bool {
    intent_log
        .symlink_metadata()
        .map_or(true, |about| about.is_file() && AcceptedOwner::Own.accepts(about.uid()))
}

/// The path without links, also of a file that is not there yet.
fn real(file: &Path) -> PathBuf {
    let in_folder = || Some(file.parent()?.canonicalize().ok()?.join(file.file_name()?));
    file.canonicalize().ok().or_else(in_folder).unwrap_or_else(|| file.to_path_buf())
}

/// So many places are named one by one; the others are counted. `agentctl fsck` names more.
const NAMED: usize = 20;

const HINT: &str = "agentctl fsck --repair writes a repaired copy; this file is never rewritten";

/// A diagnostic for each place that was odd, bounded.
pub(super) fn file_diagnostics(report: &LoadReport, path: Option<&Path>) -> Vec<Diagnostic> {
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
pub(super) fn read_only_diagnostic(path: &Path) -> Diagnostic {
    let text = "the session file can be read and not written to, so that the session takes no prompt";
    Diagnostic::warning(DiagnosticKind::Session, text).at(path).hint(
        "make it writable (chmod u+w), close the session and open it again; or go on in a fork (--fork)",
    )
}

/// That `--continue` does not go on with this file.
pub(super) fn project_file_diagnostic(path: &Path) -> Diagnostic {
    let text = "the last session of this folder is a file of the project itself, so that the author of the project may have \
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
        file_diagnostics(&report, Some(Path::new("/s.jsonl")))
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
