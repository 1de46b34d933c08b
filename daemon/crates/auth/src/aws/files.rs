//! Small files of AWS's programs, read and written without blocking the runtime.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use agentd_safe_open::{AcceptedOwner, LinkPolicy, OpenRules};

/// The most that a file may have, in bytes: nobody's configuration is nearly as long.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// The text of a file, with what is no UTF-8 replaced; `None` where there is no such file.
///
/// # Errors
/// What the system reports, and files that are too long.
pub(super) async fn read(path: &Path) -> io::Result<Option<String>> {
    let path = path.to_owned();
    blocking(move || {
        // Of anybody: other programs put these files there.
        let rules = OpenRules::new(LinkPolicy::Followed).owner(AcceptedOwner::Anybody).max_bytes(MAX_BYTES);
        let bytes = rules.read(&path).map_err(|error| io::Error::from(error.into_problem()))?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    })
    .await
}

/// Replaces a file whole, readable for its owner alone.
///
/// # Errors
/// What the system reports; the file is then as it was.
pub(super) async fn replace(path: PathBuf, text: String) -> io::Result<()> {
    blocking(move || {
        let mut temporary = path.clone().into_os_string();
        temporary.push(format!(".{}.tmp", std::process::id()));
        let temporary = PathBuf::from(temporary);
        // A crash of a process with our number may have left one; of what else has the name, it is none to write to.
        if temporary.symlink_metadata().is_ok() {
            fs::remove_file(&temporary)?;
        }
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&temporary)?;
        let written = file.write_all(text.as_bytes()).and_then(|()| fs::rename(&temporary, &path));
        if written.is_err() {
            // What is left over is of no use to anybody; the failure is what counts.
            let _ = fs::remove_file(&temporary);
        }
        written
    })
    .await
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(io::Error::other(error)),
    }
}
