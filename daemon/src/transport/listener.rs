//! Accepts clients at the socket, and only those of our own user.

use std::{
    fs::File,
    io,
    os::unix::net,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::net::{UnixListener, UnixStream};

/// Pause after the system refused to accept a client: nothing tells when it accepts again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A client that has connected.
#[derive(Debug)]
pub enum Arrival {
    /// It is to be served.
    Client(UnixStream),
    /// It was accepted with the spare descriptor, only to be told that there are no more.
    OneTooMany(UnixStream),
}

/// Accepts clients.
#[derive(Debug)]
pub struct Listener {
    inner: UnixListener,
    user: u32,
    /// A descriptor that is freed to accept a client when there is no other, so that the client gets an answer.
    spare: Mutex<Option<File>>,
}

impl Listener {
    /// Accepts clients at this socket, from inside of a runtime.
    ///
    /// # Errors
    /// When the runtime cannot watch the socket.
    pub fn new(listener: net::UnixListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self {
            inner: UnixListener::from_std(listener)?,
            user: rustix::process::geteuid().as_raw(),
            spare: Mutex::new(spare()),
        })
    }

    /// The next client. A client of another user is closed, whatever the modes of folder and socket allow.
    ///
    /// Cancel safe: no client is lost.
    pub async fn accept(&self) -> Arrival {
        let mut is_logged = false;
        loop {
            let arrival = match self.inner.accept().await {
                Ok((stream, _)) => Arrival::Client(stream),
                // The client left before it was accepted.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => {
                    if !std::mem::replace(&mut is_logged, true) {
                        tracing::error!(%error, "cannot take in a client");
                    }
                    match self.accept_with_spare().await {
                        Some(stream) => Arrival::OneTooMany(stream),
                        None => {
                            tokio::time::sleep(ACCEPT_PAUSE).await;
                            continue;
                        }
                    }
                }
            };
            let (Arrival::Client(stream) | Arrival::OneTooMany(stream)) = &arrival;
            if is_of(stream, self.user) {
                return arrival;
            }
        }
    }

    /// Frees the spare descriptor and accepts the next waiting client with it. Does not wait.
    async fn accept_with_spare(&self) -> Option<UnixStream> {
        let slot = || self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if slot().take().is_none() {
            // There is one again when a client has left.
            *slot() = spare();
            return None;
        }
        let accepted = futures::FutureExt::now_or_never(self.inner.accept());
        accepted.and_then(Result::ok).map(|(stream, _)| stream)
    }

    /// Takes a spare descriptor again, after the client that was accepted with it is closed.
    pub fn keep_spare(&self) {
        let mut slot = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.is_none() {
            *slot = spare();
        }
    }

    /// Accepts all waiting clients, and listens no more. Just dropping the listener would hang up on them.
    #[must_use]
    pub fn accept_last(self) -> Vec<UnixStream> {
        let Self { inner, user, spare: _ } = self;
        let mut waiting = Vec::new();
        let taken = inner.into_std().and_then(|listener| {
            loop {
                match listener.accept() {
                    Ok((stream, _)) => {
                        stream.set_nonblocking(true)?;
                        waiting.push(UnixStream::from_std(stream)?);
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                    Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                    Err(error) => return Err(error),
                }
            }
        });
        if let Err(error) = taken {
            tracing::error!(%error, "cannot take in a client");
        }
        waiting.retain(|stream| is_of(stream, user));
        waiting
    }
}

/// A descriptor, if one is free.
fn spare() -> Option<File> {
    File::open("/dev/null").ok()
}

/// Whether a client belongs to that user. Logs when it does not.
fn is_of(stream: &UnixStream, user: u32) -> bool {
    match stream.peer_cred() {
        Ok(peer) if peer.uid() == user => return true,
        Ok(peer) => tracing::warn!(uid = peer.uid(), pid = peer.pid(), "refused a client of another user"),
        Err(error) => tracing::warn!(%error, "refused a client that the system does not name"),
    }
    false
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn clients_that_wait_when_listening_ends_are_accepted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        let listener = Listener::new(net::UnixListener::bind(&path).unwrap()).unwrap();
        // The runtime has not seen these yet.
        let clients = [(); 3].map(|()| net::UnixStream::connect(&path).unwrap());
        let waiting = listener.accept_last();
        assert_eq!(waiting.len(), clients.len());
        for (mut taken, mut client) in waiting.into_iter().zip(clients) {
            io::Write::write_all(&mut client, b"x").unwrap();
            assert_eq!(taken.read_u8().await.unwrap(), b'x');
        }
        assert_eq!(net::UnixStream::connect(&path).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    }
}
