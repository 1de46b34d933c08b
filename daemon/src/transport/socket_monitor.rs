//! Notices when the socket of a running daemon is removed, so that it can be restored: cleaners of temporary folders and `rm -r`
//! remove it, and no client would find the daemon any more.

use std::{io, os::unix::net::UnixListener, path::Path};

use rustix::{
    fd::OwnedFd,
    fs::inotify::{self, CreateFlags, WatchFlags},
    io::Errno,
};
use tokio::io::unix::AsyncFd;

use super::socket_claim::{ClaimError, SocketClaim};

/// The buffer for inotify events. Their content is not used.
const EVENT_BYTES: usize = 4 << 10;

/// How often a socket is restored that someone is still removing, as `rm -r` of its folder does.
const ATTEMPTS: u32 = 1_000;

/// Watches the folder of a daemon's socket, where the socket is the daemon's own.
pub struct SocketMonitor {
    folder: Option<AsyncFd<OwnedFd>>,
}

impl SocketMonitor {
    /// Watches the claimed path, from inside of a runtime. Without a claim, or where the system does not allow watching, nothing
    /// is ever noticed.
    #[must_use]
    pub fn watch(claim: Option<&SocketClaim>) -> Self {
        let folder = claim.and_then(|claim| match watch(claim.folder()) {
            Ok(folder) => Some(folder),
            Err(error) => {
                tracing::warn!(%error, "cannot watch the folder of the socket; it is not put back if someone removes it");
                None
            }
        });
        Self { folder }
    }

    /// Waits until clients no longer find the daemon at its path. Cancel safe.
    pub async fn lost(&self, claim: Option<&SocketClaim>) {
        let (Some(folder), Some(claim)) = (&self.folder, claim) else { return std::future::pending().await };
        // Checked before the first wait: the socket may have been removed before the watch began.
        while claim.is_there() {
            if let Err(error) = changed(folder).await {
                tracing::warn!(%error, "cannot watch the folder of the socket any more");
                return std::future::pending().await;
            }
        }
    }

    /// Restores a lost socket, and watches its folder anew. Gives the new listener; `None` when the old one is still in place.
    ///
    /// # Errors
    /// When another process has claimed the path: see [`ClaimError`].
    pub async fn restore(
        &mut self,
        claim: &mut Option<SocketClaim>,
    ) -> Result<Option<UnixListener>, ClaimError> {
        let Some(mut lost) = claim.take() else { return Ok(None) };
        let path = lost.path().to_owned();
        let mut restored = None;
        for attempt in 1..=ATTEMPTS {
            let putting = tokio::task::spawn_blocking(move || {
                let listener = lost.put_back();
                (lost, listener)
            });
            let broken = |error| ClaimError::Io {
                action: "put back",
                path: path.clone(),
                source: io::Error::other(error),
            };
            let (back, listener) = putting.await.map_err(broken)?;
            lost = back;
            match listener {
                Err(error) if error.is_missing() && attempt < ATTEMPTS => continue,
                // An earlier attempt may have made the socket that is still there.
                listener => restored = listener?.or(restored),
            }
            *self = Self::watch(Some(&lost));
            if self.folder.is_some() || lost.is_there() {
                break;
            }
        }
        *claim = Some(lost);
        Ok(restored)
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

/// Waits for changes in the folder, and reads the events.
async fn changed(folder: &AsyncFd<OwnedFd>) -> io::Result<()> {
    let mut buffer = [0; EVENT_BYTES];
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

    fn taken() -> (tempfile::TempDir, PathBuf, Option<SocketClaim>, UnixListener) {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("run/a.sock");
        let (claim, listener) = SocketClaim::acquire(&path).unwrap();
        (home, path, Some(claim), listener)
    }

    async fn restore(monitor: &mut SocketMonitor, claim: &mut Option<SocketClaim>) -> Option<UnixListener> {
        timeout(SOON, monitor.lost(claim.as_ref())).await.expect("the loss is noticed");
        monitor.restore(claim).await.unwrap()
    }

    #[tokio::test]
    async fn a_removed_socket_comes_back_and_again() {
        let (_home, path, mut claim, mut listener) = taken();
        let mut monitor = SocketMonitor::watch(claim.as_ref());
        for _ in 0..2 {
            fs::remove_file(&path).unwrap();
            listener = restore(&mut monitor, &mut claim).await.expect("another socket");
            UnixStream::connect(&path).unwrap();
            listener.accept().unwrap();
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        drop(claim);
        assert!(!path.exists());
        drop(listener);
    }

    #[tokio::test]
    async fn a_removed_folder_comes_back_with_its_lock() {
        let (_home, path, mut claim, _listener) = taken();
        let mut monitor = SocketMonitor::watch(claim.as_ref());
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
        let _listener = restore(&mut monitor, &mut claim).await.expect("another socket");
        UnixStream::connect(&path).unwrap();
        assert!(matches!(SocketClaim::acquire(&path), Err(ClaimError::Running { pid: Some(_), .. })));
        // The lock alone: the listener stays.
        fs::remove_file(path.with_extension("sock.lock")).unwrap();
        assert!(restore(&mut monitor, &mut claim).await.is_none());
        assert!(matches!(SocketClaim::acquire(&path), Err(ClaimError::Running { pid: Some(_), .. })));
    }

    #[tokio::test]
    async fn a_folder_comes_back_however_often_it_is_removed_meanwhile() {
        let (_home, path, mut claim, mut listener) = taken();
        let mut monitor = SocketMonitor::watch(claim.as_ref());
        let folder = path.parent().unwrap().to_owned();
        let removing = std::thread::spawn(move || {
            let mut left = 200;
            while left > 0 {
                // The folder may be gone, or filled again meanwhile.
                left -= u32::from(fs::remove_dir_all(&folder).is_ok());
            }
        });
        while !removing.is_finished() || !claim.as_ref().unwrap().is_there() {
            if claim.as_ref().unwrap().is_there() {
                tokio::task::yield_now().await;
            } else if let Some(new) = monitor.restore(&mut claim).await.unwrap() {
                listener = new;
            }
        }
        removing.join().unwrap();
        UnixStream::connect(&path).unwrap();
        listener.accept().unwrap();
    }

    #[tokio::test]
    async fn a_socket_of_another_process_stays() {
        let (home, path, mut claim, _listener) = taken();
        let mut monitor = SocketMonitor::watch(claim.as_ref());
        let other = home.path().join("other.sock");
        let theirs = UnixListener::bind(&other).unwrap();
        fs::rename(&other, &path).unwrap();
        timeout(SOON, monitor.lost(claim.as_ref())).await.expect("the loss is noticed");
        let error = monitor.restore(&mut claim).await.unwrap_err();
        assert!(matches!(error, ClaimError::Running { pid: None, .. }), "{error}");
        UnixStream::connect(&path).unwrap();
        theirs.accept().unwrap();
    }

    #[tokio::test]
    async fn a_socket_without_a_claim_is_not_watched() {
        let monitor = SocketMonitor::watch(None);
        let noticed = timeout(Duration::from_millis(1), monitor.lost(None)).await;
        assert!(noticed.is_err());
    }
}
