//! What is accepted in the place of a session file, an intent log and a note of who has a session open.

use std::{fs::File, io, path::Path};

use agentd_protocol::entry::MAX_SESSION_FILE_BYTES;
use agentd_safe_open::{AcceptedOwner, LinkPolicy, OpenProblem, OpenRules};

use crate::StoreError;

/// Whoever names a session file means it: it may be a link, and somebody else's.
pub(crate) const SESSION: OpenRules<'_> =
    OpenRules::new(LinkPolicy::Followed).owner(AcceptedOwner::Anybody).max_bytes(MAX_SESSION_FILE_BYTES);

/// Nobody names an intent log: it counts where it is this user's own.
pub(crate) const INTENT_LOG: OpenRules<'_> = OpenRules::new(LinkPolicy::Refused);

/// A note has a path in it.
pub(crate) const NOTE: OpenRules<'_> = OpenRules::new(LinkPolicy::Refused).max_bytes(64 << 10);

/// Opens a session file to be read alone. Waits for nobody.
///
/// # Errors
/// [`StoreError::NotAFile`], and [`StoreError::Io`], also for a file that is too long.
pub(crate) fn open_to_read(path: &Path) -> Result<File, StoreError> {
    SESSION.open(path).map_err(|error| match error.into_problem() {
        OpenProblem::NotAFile(_) => StoreError::NotAFile { path: path.to_owned() },
        problem => StoreError::io("open the session file", path)(problem.into()),
    })
}

/// As [`open_to_read`], for callers that name the file themselves.
///
/// # Errors
/// Those of the system, and what is wrong with the file.
pub(crate) fn open_named(path: &Path) -> io::Result<File> {
    SESSION.open(path).map_err(|error| error.into_problem().into())
}
