//! Notices when the socket of a running daemon is gone, so that it can be put back: cleaners of temporary folders and
//! `rm -r` take it away, and nobody would find the daemon any more.

use std::{io, os::unix::net::UnixListener, path::Path};

use rustix::{
    fd::OwnedFd,
    fs::inotify::{self, CreateFlags, WatchFlags},
    io::Errno,
};
use tokio::io::unix::AsyncFd;

use super::place::{Place, PlaceError};

/// Room for news; what is in them does not matter.
const NEWS_BYTES: usize = 4 << 10;

/// Watches the folder of a daemon's socket, where the socket is the daemon's own.
pub struct Keeper {
    folder: Option<AsyncFd<OwnedFd>>,
}

impl Keeper {
    /// Watches the place, from inside of a runtime. Without a place, or where the system does not let us watch, nothing is
    /// ever noticed.
    #[must_use]
    pub fn watch(place: Option<&Place>) -> Self {
        let folder = place.and_then(|place| match watch(place.folder()) {
            Ok(folder) => Some(folder),
            Err(error) => {
                tracing::warn!(%error, "cannot watch the folder of the socket; it is not put back if someone removes it");
                None
            }
        });
        Self { folder }
    }

    /// Waits until clients do not find the daemon at its place any more. Cancel safe.
    pub async fn lost(&self, place: Option<&Place>) {
        let (Some(folder), Some(place)) = (&self.folder, place) else { return std::future::pending().await };
        // Before the first wait: something may have happened before we watched.
        while place.is_there() {
            if let Err(error) = news(folder).await {
                tracing::warn!(%error, "cannot watch the folder of the socket any more");
                return std::future::pending().await;
            }
        }
    }

    /// Puts a lost socket back, and watches its folder anew. Gives what to listen on from here on; `None` when that is
    /// still what it was.
    ///
    /// # Errors
    /// When the place is someone else's by now: see [`PlaceError`].
    pub async fn put_back(&mut self, place: &mut Option<Place>) -> Result<Option<UnixListener>, PlaceError> {
        let Some(mut lost) = place.take() else { return Ok(None) };
        let path = lost.path().to_owned();
        let putting = tokio::task::spawn_blocking(move || {
            let listener = lost.put_back();
            (lost, listener)
        });
        let broken = |error| PlaceError::Io { action: "put back", path, source: io::Error::other(error) };
        let (back, listener) = putting.await.map_err(broken)?;
        let listener = listener?;
        *self = Self::watch(Some(&back));
        *place = Some(back);
        Ok(listener)
    }
}

#[expect(
    deprecated,
    reason = "meant for types that name a wrong descriptor, which OwnedFd does not; the other way is unsafe"
)]
fn watch(folder: &Path) -> io::Result<AsyncFd<OwnedFd>> {
    let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
    let what = WatchFlags::DELETE
        | WatchFlags::MOVED_FROM
        | WatchFlags::MOVED_TO
        | WatchFlags::DELETE_SELF
        | WatchFlags::MOVE_SELF;
    inotify::add_watch(&inotify, folder, what)?;
    AsyncFd::new(inotify)
}

/// Waits for news of the folder, and takes what there are.
async fn news(folder: &AsyncFd<OwnedFd>) -> io::Result<()> {
    let mut buffer = [0; NEWS_BYTES];
    loop {
        let mut ready = folder.readable().await?;
        match rustix::io::read(folder.get_ref(), &mut buffer) {
            Ok(_) => return Ok(()),
            Err(Errno::AGAIN) => ready.clear_ready(),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::{fs::PermissionsExt, net::UnixStream},
        path::PathBuf,
        time::Duration,
    };

    use tokio::time::timeout;

    use super::*;

    const SOON: Duration = Duration::from_secs(30);

    fn taken() -> (tempfile::TempDir, PathBuf, Option<Place>, UnixListener) {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("run/a.sock");
        let (place, listener) = Place::take(&path).unwrap();
        (home, path, Some(place), listener)
    }

    async fn put_back(keeper: &mut Keeper, place: &mut Option<Place>) -> Option<UnixListener> {
        timeout(SOON, keeper.lost(place.as_ref())).await.expect("the loss is noticed");
        keeper.put_back(place).await.unwrap()
    }

    #[tokio::test]
    async fn a_removed_socket_comes_back_and_again() {
        let (_home, path, mut place, mut listener) = taken();
        let mut keeper = Keeper::watch(place.as_ref());
        for _ in 0..2 {
            fs::remove_file(&path).unwrap();
            listener = put_back(&mut keeper, &mut place).await.expect("another socket");
            UnixStream::connect(&path).unwrap();
            listener.accept().unwrap();
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        drop(place);
        assert!(!path.exists());
        drop(listener);
    }

    #[tokio::test]
    async fn a_removed_folder_comes_back_with_its_lock() {
        let (_home, path, mut place, _listener) = taken();
        let mut keeper = Keeper::watch(place.as_ref());
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
        let _listener = put_back(&mut keeper, &mut place).await.expect("another socket");
        UnixStream::connect(&path).unwrap();
        assert!(matches!(Place::take(&path), Err(PlaceError::Running { pid: Some(_), .. })));
        // The lock alone: what listens stays.
        fs::remove_file(path.with_extension("sock.lock")).unwrap();
        assert!(put_back(&mut keeper, &mut place).await.is_none());
        assert!(matches!(Place::take(&path), Err(PlaceError::Running { pid: Some(_), .. })));
    }

    #[tokio::test]
    async fn what_someone_else_put_there_stays() {
        let (home, path, mut place, _listener) = taken();
        let mut keeper = Keeper::watch(place.as_ref());
        let other = home.path().join("other.sock");
        let theirs = UnixListener::bind(&other).unwrap();
        fs::rename(&other, &path).unwrap();
        timeout(SOON, keeper.lost(place.as_ref())).await.expect("the loss is noticed");
        let error = keeper.put_back(&mut place).await.unwrap_err();
        assert!(matches!(error, PlaceError::Running { pid: None, .. }), "{error}");
        UnixStream::connect(&path).unwrap();
        theirs.accept().unwrap();
    }

    #[tokio::test]
    async fn a_socket_that_was_passed_on_is_not_watched() {
        let keeper = Keeper::watch(None);
        let noticed = timeout(Duration::from_millis(1), keeper.lost(None)).await;
        assert!(noticed.is_err());
    }
}
