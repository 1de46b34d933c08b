//! Taking in clients of the socket, and only those of our own user.

use std::{io, os::unix::net, time::Duration};

use tokio::net::{UnixListener, UnixStream};

/// How long to leave a client waiting when the system has no descriptor for it. Nothing tells when there is one again.
const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(100);

/// Takes in clients.
#[derive(Debug)]
pub struct Listener {
    inner: UnixListener,
    user: u32,
}

impl Listener {
    /// Takes in clients at this socket, from inside of a runtime.
    ///
    /// # Errors
    /// When the runtime cannot watch the socket.
    pub fn new(listener: net::UnixListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self { inner: UnixListener::from_std(listener)?, user: rustix::process::geteuid().as_raw() })
    }

    /// The next client. Another user's is closed: whatever the rights of folder and file say, our sessions are ours.
    ///
    /// Cancel safe: no client is lost.
    pub async fn accept(&self) -> UnixStream {
        loop {
            let stream = match self.inner.accept().await {
                Ok((stream, _)) => stream,
                // It left before it was its turn.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => {
                    tracing::error!(%error, "cannot take in a client");
                    tokio::time::sleep(OUT_OF_DESCRIPTORS).await;
                    continue;
                }
            };
            match stream.peer_cred() {
                Ok(peer) if peer.uid() == self.user => return stream,
                Ok(peer) => {
                    tracing::warn!(uid = peer.uid(), pid = peer.pid(), "refused a client of another user");
                }
                Err(error) => tracing::warn!(%error, "refused a client that the system does not name"),
            }
        }
    }
}
