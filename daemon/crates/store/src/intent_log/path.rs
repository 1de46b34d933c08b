//! Where a session's intent log is.

use std::path::{Path, PathBuf};

/// The intent log of a session file: beside it, with `.ledger` in the place of `.jsonl`, or behind a name that has another end.
#[must_use]
pub fn intent_log_path(session_file: &Path) -> PathBuf {
    if session_file.extension().is_some_and(|extension| extension == "jsonl") {
        return session_file.with_extension("ledger");
    }
    let mut path = session_file.as_os_str().to_owned();
    path.push(".ledger");
    path.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_session_file_is_its_own_intent_log() {
        for (file, log) in [
            ("/s/a_b.jsonl", "/s/a_b.ledger"),
            ("/s/a.b.jsonl", "/s/a.b.ledger"),
            ("/s/a", "/s/a.ledger"),
            ("/s/a.ledger", "/s/a.ledger.ledger"),
        ] {
            assert_eq!(intent_log_path(Path::new(file)), Path::new(log));
        }
    }
}
