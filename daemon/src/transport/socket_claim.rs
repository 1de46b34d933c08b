//! Claims the path of a daemon's socket: a private folder, one daemon at a time; the remains of a killed daemon are removed.
//!
//! A lock file beside the socket decides which process is the daemon of that path. It is locked for as long as the daemon lives,
//! and the system unlocks it however the daemon ends. The holder of the lock may remove a socket that nobody listens on.

use std::{
    fs::{self, DirBuilder, File, Metadata, Permissions},
    io::{self, ErrorKind, Write},
    os::unix::{
        fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt},
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
};

use agentd_files::fail_point::{self, Point};
use agentd_files::lock;
use agentd_protocol::socket_path;
use agentd_safe_open::{LinkPolicy, OpenRules};

/// Only the user may enter the folder.
const FOLDER_MODE: u32 = 0o700;

/// Only the user may connect.
const SOCKET_MODE: u32 = 0o600;

/// The largest lock file that is read, in bytes. It holds the number of a process.
const MAX_LOCK_BYTES: u64 = 64;

/// Why a path cannot be claimed.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// Another daemon has it.
    #[error("agentd is already running ({}socket {path})", of(*.pid))]
    Running {
        /// Its process, where it is known.
        pid: Option<u32>,
        /// Its socket.
        path: PathBuf,
    },
    /// The path is longer than the system allows for sockets.
    #[error(
        "the socket path {path} has {} bytes, and the system takes {}: name a shorter one with --socket or AGENTD_SOCKET",
        .path.as_os_str().len(), socket_path::MAX_BYTES
    )]
    TooLong {
        /// The path.
        path: PathBuf,
    },
    /// Other users could reach the socket.
    #[error("the folder of the socket, {folder}, {fault}: {advice}", advice = advice(.folder))]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The fault.
        fault: String,
    },
    /// A file that is no socket has the name.
    #[error("{path} is no socket: move it away, or name another path with --socket or AGENTD_SOCKET")]
    Occupied {
        /// The path.
        path: PathBuf,
    },
    /// A system call failed.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// The action that failed.
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl ClaimError {
    /// Whether a file or folder was not there that had to be.
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == ErrorKind::NotFound)
    }
}

fn of(pid: Option<u32>) -> String {
    pid.map(|pid| format!("pid {pid}, ")).unwrap_or_default()
}

fn advice(folder: &Path) -> String {
    format!(
        "make it yours alone (chmod 700 {}), or name a socket in another folder with --socket or AGENTD_SOCKET",
        folder.display()
    )
}

/// The claimed path of a socket. Dropping the claim removes the socket, then releases the lock.
#[derive(Debug)]
pub struct SocketClaim {
    path: PathBuf,
    /// Device and inode of our socket: another socket of that name must not be removed.
    identity: (u64, u64),
    /// Closing it releases the lock. The file stays: without it two daemons could hold locks on different files.
    lock: File,
}

impl SocketClaim {
    /// Claims the path and listens there. Blocks. Makes missing folders.
    ///
    /// # Errors
    /// See [`ClaimError`]; files of other programs are unchanged then.
    pub fn acquire(path: &Path) -> Result<(Self, UnixListener), ClaimError> {
        if !socket_path::fits(path) {
            return Err(ClaimError::TooLong { path: path.to_owned() });
        }
        prepare_folder(path.parent().unwrap_or(Path::new("/")))?;
        let lock = lock(path)?;
        let (listener, identity) = bind(path)?;
        Ok((Self { path: path.to_owned(), identity, lock }, listener))
    }

    /// The path of the socket.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of the socket.
    pub(super) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    /// Whether clients find our socket at the path, and other daemons our lock.
    pub(super) fn is_there(&self) -> bool {
        self.has_socket() && self.has_lock()
    }

    /// Restores what is gone of folder, lock and socket. Blocks. Gives the new listener when the socket was gone.
    ///
    /// # Errors
    /// As of [`SocketClaim::acquire`]: another process has claimed the path, or it cannot be used.
    pub(super) fn put_back(&mut self) -> Result<Option<UnixListener>, ClaimError> {
        prepare_folder(self.folder())?;
        if !self.has_lock() {
            self.lock = lock(&self.path)?;
        }
        if self.has_socket() {
            return Ok(None);
        }
        let (listener, identity) = bind(&self.path)?;
        self.identity = identity;
        Ok(Some(listener))
    }

    fn has_socket(&self) -> bool {
        fs::symlink_metadata(&self.path).is_ok_and(|now| identity(&now) == self.identity)
    }

    fn has_lock(&self) -> bool {
        let named = fs::symlink_metadata(lock_name(&self.path));
        matches!((named, self.lock.metadata()), (Ok(named), Ok(ours)) if identity(&named) == identity(&ours))
    }
}

impl Drop for SocketClaim {
    fn drop(&mut self) {
        if self.has_socket()
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(%error, path = %self.path.display(), "cannot remove the socket");
        }
    }
}

/// Device and inode.
fn identity(about: &Metadata) -> (u64, u64) {
    (about.dev(), about.ino())
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ClaimError {
    let path = path.to_owned();
    move |source| ClaimError::Io { action, path, source }
}

/// Makes the folder if it is missing, and refuses one that another user can enter or replace.
fn prepare_folder(folder: &Path) -> Result<(), ClaimError> {
    DirBuilder::new()
        .recursive(true)
        .mode(FOLDER_MODE)
        .create(folder)
        .map_err(failed("make the folder", folder))?;
    let look = failed("look at", folder);
    let (link, about) = match fs::symlink_metadata(folder).and_then(|link| Ok((link, fs::metadata(folder)?)))
    {
        Ok(both) => both,
        Err(error) => return Err(look(error)),
    };
    let user = rustix::process::geteuid().as_raw();
    let fault = if let Some(owner) = [link.uid(), about.uid()].into_iter().find(|owner| *owner != user) {
        format!("belongs to user {owner}, and agentd runs as user {user}")
    } else if about.mode() & 0o077 != 0 {
        format!("has the mode {:03o}, which lets others in", about.mode() & 0o777)
    } else {
        return Ok(());
    };
    Err(ClaimError::Folder { folder: folder.to_owned(), fault })
}

/// Takes the lock of the path and writes the id of this process into it. Blocks.
fn lock(path: &Path) -> Result<File, ClaimError> {
    let name = lock_name(path);
    // A link, or a file that is no lock, must not be written to.
    let opened = OpenRules::new(LinkPolicy::Refused).max_bytes(MAX_LOCK_BYTES).open_or_create(&name);
    let mut file =
        opened.map_err(|error| failed("open the lock file", &name)(error.into_problem().into()))?;
    let is_ours = lock::try_lock(&file).map_err(failed("lock", &name))?;
    if !is_ours {
        return Err(ClaimError::Running { pid: lock::noted_pid(&file), path: path.to_owned() });
    }
    file.set_len(0)
        .and_then(|()| writeln!(file, "{}", std::process::id()))
        .map_err(failed("write to the lock file", &name))?;
    fail_point::hit(Point::SocketLocked);
    Ok(file)
}

fn lock_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

/// Listens at the path, replacing a socket that nobody listens on. Gives the new socket's identity, too.
fn bind(path: &Path) -> Result<(UnixListener, (u64, u64)), ClaimError> {
    remove_dead_socket(path)?;
    let listener = UnixListener::bind(path).map_err(failed("listen on", path))?;
    fail_point::hit(Point::SocketBound);
    let about = fs::symlink_metadata(path).map_err(failed("look at", path))?;
    // No other user could enter the folder meanwhile.
    fs::set_permissions(path, Permissions::from_mode(SOCKET_MODE))
        .map_err(failed("set the mode of", path))?;
    Ok((listener, identity(&about)))
}

/// Removes a socket that nobody listens on.
fn remove_dead_socket(path: &Path) -> Result<(), ClaimError> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed("look at", path)(error)),
        Ok(about) if !about.file_type().is_socket() => {
            return Err(ClaimError::Occupied { path: path.to_owned() });
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        // Its daemon lives, though it does not hold the lock.
        Ok(_) => Err(ClaimError::Running { pid: None, path: path.to_owned() }),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(failed("remove the dead socket", path))
        }
        Err(error) => Err(failed("connect to", path)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
        folder
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn folder_and_socket_are_private_and_the_socket_vanishes() {
        let home = folder();
        let path = home.path().join("run/agentd.sock");
        let (claim, _listener) = SocketClaim::acquire(&path).unwrap();
        assert_eq!((mode(path.parent().unwrap()), mode(&path)), (0o700, 0o600));
        UnixStream::connect(&path).unwrap();
        drop(claim);
        assert!(!path.exists());
        drop(SocketClaim::acquire(&path).unwrap());
    }

    #[test]
    fn one_daemon_at_a_time_and_the_second_names_the_first() {
        let home = folder();
        let path = home.path().join("a.sock");
        let (claim, listener) = SocketClaim::acquire(&path).unwrap();
        let error = SocketClaim::acquire(&path).unwrap_err();
        let expected =
            format!("agentd is already running (pid {}, socket {})", std::process::id(), path.display());
        assert_eq!(error.to_string(), expected);
        UnixStream::connect(&path).unwrap();
        // A daemon that ends listens no more but still holds the path.
        drop(listener);
        assert!(matches!(SocketClaim::acquire(&path), Err(ClaimError::Running { pid: Some(_), .. })));
        drop(claim);
    }

    #[test]
    fn the_remains_of_a_dead_daemon_are_removed_and_nothing_else() {
        let home = folder();
        let path = home.path().join("a.sock");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let (claim, _listener) = SocketClaim::acquire(&path).unwrap();
        UnixStream::connect(&path).unwrap();
        // Another process put its own socket there: that one stays.
        fs::remove_file(&path).unwrap();
        let other = UnixListener::bind(&path).unwrap();
        drop(claim);
        UnixStream::connect(&path).unwrap();
        assert!(matches!(SocketClaim::acquire(&path), Err(ClaimError::Running { pid: None, .. })));
        drop(other);

        let file = home.path().join("file");
        fs::write(&file, "precious").unwrap();
        assert!(matches!(SocketClaim::acquire(&file), Err(ClaimError::Occupied { .. })));
        assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
    }

    #[test]
    fn folders_of_others_are_refused() {
        let home = folder();
        let open = home.path().join("open");
        DirBuilder::new().mode(0o700).create(&open).unwrap();
        for mode in [0o755, 0o701, 0o720] {
            fs::set_permissions(&open, Permissions::from_mode(mode)).unwrap();
            let error = SocketClaim::acquire(&open.join("a.sock")).unwrap_err().to_string();
            assert!(
                error.contains(&format!("has the mode {mode:o}")) && error.contains("chmod 700"),
                "{error}"
            );
            assert_eq!(fs::read_dir(&open).unwrap().count(), 0);
        }
    }

    #[test]
    fn long_paths_are_refused_with_both_numbers() {
        let path = Path::new("/").join("a".repeat(200));
        let error = SocketClaim::acquire(&path).unwrap_err().to_string();
        assert!(error.contains("201 bytes") && error.contains("takes 107"), "{error}");
    }
}
