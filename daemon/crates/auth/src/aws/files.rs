//! Small files of AWS's programs, read and written without blocking the runtime.

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use agentd_files::replace::Replacement;
use agentd_safe_open::{AcceptedOwner, LinkPolicy, OpenRules};

/// The length limit for a file, in bytes: no configuration is nearly as long.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// The text of a file, with what is no UTF-8 replaced; `None` where there is no such file.
///
/// # Errors
/// What the system reports, and files that are too long.
pub(super) async fn read(path: &Path) -> io::Result<Option<String>> {
    let path = path.to_owned();
    blocking(move || {
        // Files of any user are accepted: other programs put them there.
        let rules = OpenRules::new(LinkPolicy::Followed).owner(AcceptedOwner::Anybody).max_bytes(MAX_BYTES);
        let bytes = rules.read(&path).map_err(|error| io::Error::from(error.into_problem()))?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    })
    .await
}

/// Replaces a file in one step; the new one is readable for its owner alone.
///
/// # Errors
/// The system's; the file is then as it was.
pub(super) async fn replace(path: PathBuf, text: String) -> io::Result<()> {
    blocking(move || {
        let folder = path.parent().unwrap_or(Path::new("."));
        let prefix = format!("{}.", path.file_name().unwrap_or_default().to_string_lossy());
        let mut new = Replacement::create(folder, &prefix, ".tmp", 0o600)?;
        new.file_mut().write_all(text.as_bytes())?;
        new.commit(&path).map(drop)
    })
    .await
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(io::Error::other(error)),
    }
}
