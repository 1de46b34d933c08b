//! The path of an intent log, and proof that this user's daemons wrote it: outside of the agent directory, any user may have
//! put a file beside a session file.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _},
    },
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use agentd_safe_open::{LinkPolicy, OpenRules};

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

/// Notes on intent logs that lie outside of the agent directory, in a folder of it: one file for each, with its path, its number and
/// when it was made. Another file in the place of an intent log is not covered by the note. Blocks.
#[derive(Debug, Clone)]
pub struct OwnershipNotes(PathBuf);

impl OwnershipNotes {
    /// The notes below the agent directory's folder for what belongs to running daemons.
    #[must_use]
    pub fn below(run_dir: &Path) -> Self {
        Self(run_dir.join("ledgers"))
    }

    /// Returns whether the intent log exists and a daemon of this agent directory wrote it.
    #[must_use]
    pub fn covers(&self, log: &Path) -> bool {
        let noted = fs::read(self.note(log));
        matches!((noted, claim(log)), (Ok(noted), Ok(claim)) if noted == claim)
    }

    /// Notes that an intent log was just made. Without the note it counts as another user's: the user is asked about messages
    /// that wait in it.
    ///
    /// An existing note is overwritten: a session makes an intent log with each run, and creating and removing a file costs the
    /// file system far more than changing one.
    pub(super) fn make(&self, log: &Path) {
        let made = || -> io::Result<()> {
            let claim = claim(log)?;
            let note = self.note(log);
            let open = || OpenRules::new(LinkPolicy::Refused).open_or_create(&note);
            let note = open().or_else(|error| {
                if !error.is_missing() {
                    return Err(error);
                }
                // If this fails, so does the next attempt to open.
                let _ = DirBuilder::new().recursive(true).mode(0o700).create(&self.0);
                open()
            })?;
            let length = claim.len() as u64;
            if note.metadata()?.len() > length {
                note.set_len(length)?;
            }
            note.write_all_at(&claim, 0)
        };
        if let Err(error) = made() {
            tracing::warn!(%error, path = %log.display(), "an intent log outside of the agent directory is not noted as ours");
        }
    }

    /// The intent log is gone.
    pub(super) fn withdraw(&self, log: &Path) {
        if let Err(error) = fs::remove_file(self.note(log))
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::debug!(%error, path = %log.display(), "the note of an intent log stays");
        }
    }

    pub(super) fn note(&self, log: &Path) -> PathBuf {
        // FNV-1a. Two paths of one number only lose their notes, since a note has the path in it.
        let number = log.as_os_str().as_bytes().iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        self.0.join(format!("{number:016x}"))
    }
}

/// The content of the note for an intent log as it is now.
fn claim(log: &Path) -> io::Result<Vec<u8>> {
    let about = log.symlink_metadata()?;
    if !about.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let made = about.created().ok().and_then(|made| made.duration_since(UNIX_EPOCH).ok());
    let mut text = log.as_os_str().as_bytes().to_vec();
    // Numbers of one width: a note that is written over keeps its length.
    let made = made.map_or(0, |made| made.as_nanos());
    text.extend_from_slice(format!("\n{:020} {made:039}\n", about.ino()).as_bytes());
    Ok(text)
}

/// The ownership of one session's intent log.
#[derive(Default)]
pub(super) struct LogOwnership {
    /// `None` for an intent log in the agent directory.
    pub(super) notes: Option<OwnershipNotes>,
    /// True if the file holds records that another user may have written.
    pub(super) is_foreign: bool,
    /// The intent log that there is a note of.
    pub(super) noted: Option<PathBuf>,
    /// True if the note is of the file that is there.
    is_covered: bool,
}

impl LogOwnership {
    /// There is a new file.
    pub(super) fn is_made(&mut self, log: &Path) {
        self.is_covered = false;
        if let Some(notes) = self.notes.as_ref().filter(|_| !self.is_foreign) {
            notes.make(log);
            self.noted.get_or_insert_with(|| log.to_owned());
            self.is_covered = true;
        }
    }

    /// The emptied file is used again.
    pub(super) fn is_used_again(&mut self, log: &Path) {
        if !self.is_covered {
            self.is_made(log);
        }
    }

    /// The file is gone. Its note covers no other, and is needed again with the next run.
    pub(super) fn is_gone(&mut self) {
        (self.is_foreign, self.is_covered) = (false, false);
    }

    /// The file is there, and empty: what another user may have written is gone.
    pub(super) fn is_emptied(&mut self) {
        self.is_foreign = false;
    }
}

impl Drop for LogOwnership {
    /// The session is over: a note without its intent log is of no use any more.
    fn drop(&mut self) {
        if let (Some(notes), Some(log)) = (&self.notes, &self.noted)
            && log.symlink_metadata().is_err()
        {
            notes.withdraw(log);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_file_in_the_place_is_not_covered() {
        let folder = tempfile::tempdir().unwrap();
        let (claims, log) =
            (OwnershipNotes::below(&folder.path().join("run")), folder.path().join("s.ledger"));
        assert!(!claims.covers(&log));
        fs::write(&log, "ours").unwrap();
        assert!(!claims.covers(&log));
        claims.make(&log);
        assert!(claims.covers(&log));
        fs::write(&log, "ours, and more").unwrap();
        assert!(claims.covers(&log));
        // Kept, so that its number is not given again.
        fs::rename(&log, folder.path().join("before")).unwrap();
        assert!(!claims.covers(&log));
        fs::write(&log, "theirs").unwrap();
        assert!(!claims.covers(&log));
        claims.make(&log);
        assert!(claims.covers(&log));
        claims.withdraw(&log);
        assert!(!claims.covers(&log));
    }

    #[test]
    fn a_note_goes_with_the_session_and_stays_with_a_intent_log_that_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let (claims, log) =
            (OwnershipNotes::below(&folder.path().join("run")), folder.path().join("s.ledger"));
        let notes = || fs::read_dir(folder.path().join("run/ledgers")).unwrap().count();
        let claimed_by = |claims: &OwnershipNotes| LogOwnership {
            notes: Some(claims.clone()),
            is_foreign: false,
            noted: None,
            is_covered: false,
        };
        let mut claimed = claimed_by(&claims);
        fs::write(&log, "ours").unwrap();
        claimed.is_made(&log);
        fs::remove_file(&log).unwrap();
        claimed.is_gone();
        assert!(!claims.covers(&log));
        fs::write(&log, "ours again").unwrap();
        claimed.is_made(&log);
        drop(claimed);
        assert!(claims.covers(&log) && notes() == 1);
        let mut claimed = claimed_by(&claims);
        claimed.is_made(&log);
        fs::remove_file(&log).unwrap();
        drop(claimed);
        assert_eq!(notes(), 0);
    }

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
