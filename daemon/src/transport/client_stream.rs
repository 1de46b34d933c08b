//! The writing end of a client's pipe or socket.

use std::io;

use rustix::net::{Shutdown, shutdown};
use tokio::net::unix::OwnedWriteHalf;

use super::standard_stream::StandardStream;

/// Where bytes for a client go. Each method writes from its beginning: callers take turns.
pub(super) enum ClientStream {
    /// stdout.
    Standard(StandardStream),
    /// A client of the socket.
    Socket(OwnedWriteHalf),
}

impl ClientStream {
    /// Writes what the client takes now, and does not wait.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when it takes nothing now, and what the system refuses.
    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Standard(stream) => stream.try_write(bytes),
            Self::Socket(half) => half.try_write(bytes),
        }
    }

    /// Writes all of it. Dropped early, some of it is written.
    ///
    /// # Errors
    /// What the system refuses, most often since the reader closed its end.
    pub(super) async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.try_write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable().await?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Tells a client of the socket that nothing more comes. stdout is the host's, too.
    pub(super) fn close(&self) -> io::Result<()> {
        match self {
            Self::Standard(_) => Ok(()),
            Self::Socket(half) => Ok(shutdown(half.as_ref(), Shutdown::Write)?),
        }
    }

    /// Waits until the client may take more. Cancel safe.
    async fn writable(&self) -> io::Result<()> {
        match self {
            Self::Standard(stream) => stream.writable().await,
            Self::Socket(half) => half.writable().await,
        }
    }
}
