//! The place of a daemon's socket: a private folder, one daemon at a time, and what a killed one left is cleared away.
//!
//! A lock file beside the socket decides who is the daemon here. It is locked for as long as the daemon lives, and the
//! system unlocks it however the daemon ends. Whoever has it may clear away a socket that nobody listens on.

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

/// Only the user may enter the folder, and connect.
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// A lock file holds the number of a process.
const MAX_LOCK_BYTES: u64 = 64;

/// Why there is no listening at a place.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// Another daemon is there.
    #[error("agentd is already running ({}socket {path})", of(*.pid))]
    Running {
        /// Its process, where it is known.
        pid: Option<u32>,
        /// Its socket.
        path: PathBuf,
    },
    /// The system takes no socket path of that length.
    #[error(
        "the socket path {path} has {} bytes, and the system takes {}: name a shorter one with --socket or AGENTD_SOCKET",
        .path.as_os_str().len(), socket_path::MAX_BYTES
    )]
    TooLong {
        /// The path.
        path: PathBuf,
    },
    /// Others could get at the socket.
    #[error("the folder of the socket, {folder}, {fault}: {advice}", advice = advice(.folder))]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What is wrong with it.
        fault: String,
    },
    /// Something else has the name.
    #[error("{path} is no socket: move it away, or name another path with --socket or AGENTD_SOCKET")]
    Occupied {
        /// The path.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
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

/// A place that is ours. Dropping it removes the socket, then lets others in.
#[derive(Debug)]
pub struct Place {
    path: PathBuf,
    /// Device and number of our socket: another one of that name is not ours to remove.
    identity: (u64, u64),
    /// Unlocked when it is closed. The file stays: removing it would let two daemons in.
    lock: File,
}

impl Place {
    /// Takes the place and listens there. Blocks. Folders that are missing are made.
    ///
    /// # Errors
    /// See [`PlaceError`]; nothing of another program is changed then.
    pub fn take(path: &Path) -> Result<(Self, UnixListener), PlaceError> {
        if !socket_path::fits(path) {
            return Err(PlaceError::TooLong { path: path.to_owned() });
        }
        prepare_folder(path.parent().unwrap_or(Path::new("/")))?;
        let lock = lock(path)?;
        let (listener, identity) = bind(path)?;
        Ok((Self { path: path.to_owned(), identity, lock }, listener))
    }

    /// Where the socket is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of the socket.
    pub(super) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    /// Whether clients find our socket there, and other daemons our lock.
    pub(super) fn is_there(&self) -> bool {
        self.has_socket() && self.has_lock()
    }

    /// Puts back what is gone of folder, lock and socket. Blocks. Gives the new listener when the socket was gone.
    ///
    /// # Errors
    /// As of [`Place::take`]: the place is someone else's by now, or cannot be used.
    pub(super) fn put_back(&mut self) -> Result<Option<UnixListener>, PlaceError> {
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

impl Drop for Place {
    fn drop(&mut self) {
        if self.has_socket()
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(%error, path = %self.path.display(), "cannot remove the socket");
        }
    }
}

/// Device and number.
fn identity(about: &Metadata) -> (u64, u64) {
    (about.dev(), about.ino())
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> PlaceError {
    let path = path.to_owned();
    move |source| PlaceError::Io { action, path, source }
}

/// Makes the folder where it is missing, and refuses one that others can enter or give another meaning.
fn prepare_folder(folder: &Path) -> Result<(), PlaceError> {
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
    Err(PlaceError::Folder { folder: folder.to_owned(), fault })
}

/// Becomes the one daemon of this socket, and notes who that is. Blocks.
fn lock(path: &Path) -> Result<File, PlaceError> {
    let name = lock_name(path);
    // A link, or a file that is no lock, is not ours to write to.
    let opened = OpenRules::new(LinkPolicy::Refused).max_bytes(MAX_LOCK_BYTES).open_or_create(&name);
    let mut file =
        opened.map_err(|error| failed("open the lock file", &name)(error.into_problem().into()))?;
    let is_ours = lock::try_lock(&file).map_err(failed("lock", &name))?;
    if !is_ours {
        return Err(PlaceError::Running { pid: lock::noted_pid(&file), path: path.to_owned() });
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

/// Listens there, in the place of a socket that nobody listens on. Gives the new socket's identity too.
fn bind(path: &Path) -> Result<(UnixListener, (u64, u64)), PlaceError> {
    clear(path)?;
    let listener = UnixListener::bind(path).map_err(failed("listen on", path))?;
    fail_point::hit(Point::SocketBound);
    let about = fs::symlink_metadata(path).map_err(failed("look at", path))?;
    // Nobody else could enter the folder meanwhile.
    fs::set_permissions(path, Permissions::from_mode(FILE_MODE)).map_err(failed("set the mode of", path))?;
    Ok((listener, identity(&about)))
}

/// Removes a socket that nobody listens on.
fn clear(path: &Path) -> Result<(), PlaceError> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed("look at", path)(error)),
        Ok(about) if !about.file_type().is_socket() => {
            return Err(PlaceError::Occupied { path: path.to_owned() });
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        // It has not our lock, but it lives.
        Ok(_) => Err(PlaceError::Running { pid: None, path: path.to_owned() }),
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
        let (place, _listener) = Place::take(&path).unwrap();
        assert_eq!((mode(path.parent().unwrap()), mode(&path)), (0o700, 0o600));
        UnixStream::connect(&path).unwrap();
        drop(place);
        assert!(!path.exists());
        drop(Place::take(&path).unwrap());
    }

    #[test]
    fn one_daemon_at_a_time_and_the_second_is_told_of_the_first() {
        let home = folder();
        let path = home.path().join("a.sock");
        let (place, listener) = Place::take(&path).unwrap();
        let error = Place::take(&path).unwrap_err();
        let expected =
            format!("agentd is already running (pid {}, socket {})", std::process::id(), path.display());
        assert_eq!(error.to_string(), expected);
        UnixStream::connect(&path).unwrap();
        // While it ends it listens no more, and is there all the same.
        drop(listener);
        assert!(matches!(Place::take(&path), Err(PlaceError::Running { pid: Some(_), .. })));
        drop(place);
    }

    #[test]
    fn what_a_dead_daemon_left_is_cleared_away_and_nothing_else() {
        let home = folder();
        let path = home.path().join("a.sock");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let (place, _listener) = Place::take(&path).unwrap();
        UnixStream::connect(&path).unwrap();
        // Someone put another one in its place: that one stays.
        fs::remove_file(&path).unwrap();
        let other = UnixListener::bind(&path).unwrap();
        drop(place);
        UnixStream::connect(&path).unwrap();
        assert!(matches!(Place::take(&path), Err(PlaceError::Running { pid: None, .. })));
        drop(other);

        let file = home.path().join("file");
        fs::write(&file, "precious").unwrap();
        assert!(matches!(Place::take(&file), Err(PlaceError::Occupied { .. })));
        assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
    }

    #[test]
    fn folders_of_others_are_refused() {
        let home = folder();
        let open = home.path().join("open");
        DirBuilder::new().mode(0o700).create(&open).unwrap();
        for mode in [0o755, 0o701, 0o720] {
            fs::set_permissions(&open, Permissions::from_mode(mode)).unwrap();
            let error = Place::take(&open.join("a.sock")).unwrap_err().to_string();
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
        let error = Place::take(&path).unwrap_err().to_string();
        assert!(error.contains("201 bytes") && error.contains("takes 107"), "{error}");
    }
}
