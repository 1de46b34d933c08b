//! Which ledgers outside of the agent directory this user's daemons wrote: anybody may have put one beside a session file there.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write as _},
    os::unix::{
        ffi::OsStrExt as _,
        fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    },
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use super::Ledger;

/// Notes on ledgers that lie outside of the agent directory, in a folder of it: one file for each, with its path, its number and
/// when it was made. Another file in the place of a ledger is not covered by the note. Blocks.
#[derive(Debug, Clone)]
pub struct Claims(PathBuf);

impl Claims {
    /// The notes below the agent directory's folder for what belongs to running daemons.
    #[must_use]
    pub fn below(run_dir: &Path) -> Self {
        Self(run_dir.join("ledgers"))
    }

    /// Whether there is a ledger, and a daemon of this agent directory wrote it.
    #[must_use]
    pub fn covers(&self, ledger: &Path) -> bool {
        let noted = fs::read(self.note(ledger));
        matches!((noted, claim(ledger)), (Ok(noted), Ok(claim)) if noted == claim)
    }

    /// Notes a ledger that was just made. Without the note it is told from others no more: what waits in it is asked about.
    pub(super) fn make(&self, ledger: &Path) {
        let made = || -> io::Result<()> {
            DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
            let mut options = OpenOptions::new();
            let mut note =
                options.write(true).create(true).truncate(true).mode(0o600).open(self.note(ledger))?;
            note.write_all(&claim(ledger)?)
        };
        if let Err(error) = made() {
            tracing::warn!(%error, path = %ledger.display(), "a ledger outside of the agent directory is not noted as ours");
        }
    }

    /// The ledger is gone.
    pub(super) fn withdraw(&self, ledger: &Path) {
        if let Err(error) = fs::remove_file(self.note(ledger))
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::debug!(%error, path = %ledger.display(), "the note of a ledger stays");
        }
    }

    fn note(&self, ledger: &Path) -> PathBuf {
        // FNV-1a. Two paths of one number only lose their notes, since a note has the path in it.
        let number = ledger.as_os_str().as_bytes().iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        self.0.join(format!("{number:016x}"))
    }
}

/// What is noted of a ledger as it is now.
fn claim(ledger: &Path) -> io::Result<Vec<u8>> {
    let about = ledger.symlink_metadata()?;
    if !about.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let made = about.created().ok().and_then(|made| made.duration_since(UNIX_EPOCH).ok());
    let mut text = ledger.as_os_str().as_bytes().to_vec();
    text.extend_from_slice(format!("\n{} {:?}\n", about.ino(), made).as_bytes());
    Ok(text)
}

/// Whether the ledger of one session is noted as ours.
#[derive(Default)]
pub(super) struct Claimed {
    /// `None` for a ledger in the agent directory.
    claims: Option<Claims>,
    /// Whether the file says what somebody else may have written.
    is_foreign: bool,
}

impl Claimed {
    /// There is a new file.
    pub(super) fn is_made(&self, ledger: &Path) {
        if let Some(claims) = self.claims.as_ref().filter(|_| !self.is_foreign) {
            claims.make(ledger);
        }
    }

    /// The file is gone, or empty.
    pub(super) fn is_gone(&mut self, ledger: &Path) {
        self.is_foreign = false;
        if let Some(claims) = &self.claims {
            claims.withdraw(ledger);
        }
    }
}

impl Ledger {
    /// The ledger lies outside of the agent directory: each one that is made is noted there as ours.
    pub fn claim_in(&mut self, claims: Claims) {
        self.claimed.claims = Some(claims);
    }

    /// What is left in it may be somebody else's. It is not noted as ours for as long as it says anything of that.
    pub fn is_of_others(&mut self) {
        self.claimed.is_foreign = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_file_in_the_place_is_not_covered() {
        let folder = tempfile::tempdir().unwrap();
        let (claims, ledger) = (Claims::below(&folder.path().join("run")), folder.path().join("s.ledger"));
        assert!(!claims.covers(&ledger));
        fs::write(&ledger, "ours").unwrap();
        assert!(!claims.covers(&ledger));
        claims.make(&ledger);
        assert!(claims.covers(&ledger));
        fs::write(&ledger, "ours, and more").unwrap();
        assert!(claims.covers(&ledger));
        // Kept, so that its number is not given again.
        fs::rename(&ledger, folder.path().join("before")).unwrap();
        assert!(!claims.covers(&ledger));
        fs::write(&ledger, "theirs").unwrap();
        assert!(!claims.covers(&ledger));
        claims.make(&ledger);
        claims.withdraw(&ledger);
        assert!(!claims.covers(&ledger));
    }
}
