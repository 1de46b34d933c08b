//! Taking in clients of the socket, and only those of our own user.

use std::{
    fs::File,
    io,
    os::unix::net,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::net::{UnixListener, UnixStream};

/// How long to leave clients waiting when the system lets none in, for whatever reason. Nothing tells when it does again.
const NOBODY_COMES_IN: Duration = Duration::from_millis(100);

/// A client.
#[derive(Debug)]
pub enum Arrival {
    /// It is to be served.
    Client(UnixStream),
    /// It came in by the descriptor that is kept for telling it that there are no more.
    OneTooMany(UnixStream),
}

/// Takes in clients.
#[derive(Debug)]
pub struct Listener {
    inner: UnixListener,
    user: u32,
    /// A descriptor that is let go to take in a client that there is none for, who would wait unheard otherwise.
    spare: Mutex<Option<File>>,
}

impl Listener {
    /// Takes in clients at this socket, from inside of a runtime.
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

    /// The next client. Another user's is closed: whatever the rights of folder and file say, our sessions are ours.
    ///
    /// Cancel safe: no client is lost.
    pub async fn accept(&self) -> Arrival {
        let mut has_told = false;
        loop {
            let arrival = match self.inner.accept().await {
                Ok((stream, _)) => Arrival::Client(stream),
                // It left before it was its turn.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => {
                    if !std::mem::replace(&mut has_told, true) {
                        tracing::error!(%error, "cannot take in a client");
                    }
                    match self.take_in_by_the_spare().await {
                        Some(stream) => Arrival::OneTooMany(stream),
                        None => {
                            tokio::time::sleep(NOBODY_COMES_IN).await;
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

    /// Takes in whoever waits by giving up the spare descriptor. Does not wait.
    async fn take_in_by_the_spare(&self) -> Option<UnixStream> {
        let slot = || self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if slot().take().is_none() {
            // It is back when a client has left.
            *slot() = spare();
            return None;
        }
        let accepted = futures::FutureExt::now_or_never(self.inner.accept());
        accepted.and_then(Result::ok).map(|(stream, _)| stream)
    }

    /// Keeps a descriptor again, after one who was told that there are no more has been left.
    pub fn keep_spare(&self) {
        let mut slot = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.is_none() {
            *slot = spare();
        }
    }

    /// Takes in whoever has connected and waits, and listens no more: a listener that is just dropped hangs up on them.
    #[must_use]
    pub fn last(self) -> Vec<UnixStream> {
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

/// A descriptor, if there is one.
fn spare() -> Option<File> {
    File::open("/dev/null").ok()
}

/// Whether a client is of that user; says so when it is not.
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
    async fn whoever_waits_when_listening_ends_is_taken_in() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        let listener = Listener::new(net::UnixListener::bind(&path).unwrap()).unwrap();
        // Nothing has told the runtime of these yet.
        let clients = [(); 3].map(|()| net::UnixStream::connect(&path).unwrap());
        let waiting = listener.last();
        assert_eq!(waiting.len(), clients.len());
        for (mut taken, mut client) in waiting.into_iter().zip(clients) {
            io::Write::write_all(&mut client, b"x").unwrap();
            assert_eq!(taken.read_u8().await.unwrap(), b'x');
        }
        assert_eq!(net::UnixStream::connect(&path).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    }
}
