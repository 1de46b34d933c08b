//! stdin and stdout as the runtime can wait for them: pipes and sockets.
//!
//! The descriptors are shared with the host, and `O_NONBLOCK` is set on what is shared: setting it would break the host. A pipe is opened
//! once more, which makes a description of this process alone; a socket takes the wish not to wait with each call.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
};

use rustix::{
    fs::{FileType, Mode, OFlags, fstat, open},
    io::{fcntl_dupfd_cloexec, read, write},
    net::{RecvFlags, SendFlags, SocketType, recv, send, sockopt::socket_type},
};
use tokio::io::{Interest, unix::AsyncFd};

/// A pipe or a socket.
#[derive(Debug)]
pub(super) struct StandardStream {
    kind: Kind,
    file: AsyncFd<OwnedFd>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Pipe,
    Socket,
}

impl StandardStream {
    /// The readable end that `input` is; `None` where it is something else (a file, a terminal), or where the system does not let it be
    /// opened once more: then a thread has to read.
    pub(super) fn reading(input: impl AsFd) -> Option<Self> {
        Self::open(input.as_fd(), OFlags::RDONLY, Interest::READABLE)
    }

    /// The writable end that `output` is; `None` as for [`Self::reading`], and where nobody reads any more.
    pub(super) fn writing(output: impl AsFd) -> Option<Self> {
        Self::open(output.as_fd(), OFlags::WRONLY, Interest::WRITABLE)
    }

    fn open(shared: BorrowedFd<'_>, access: OFlags, interest: Interest) -> Option<Self> {
        let (kind, own) = match FileType::from_raw_mode(fstat(shared).ok()?.st_mode) {
            // Linux alone has a name for it that opens the pipe, and not a copy of the descriptor.
            FileType::Fifo if cfg!(target_os = "linux") => {
                let name = format!("/proc/self/fd/{}", shared.as_raw_fd());
                let flags = access | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
                (Kind::Pipe, open(name, flags, Mode::empty()).ok()?)
            }
            FileType::Socket if socket_type(shared).ok()? == SocketType::STREAM => {
                (Kind::Socket, fcntl_dupfd_cloexec(shared, 0).ok()?)
            }
            _ => return None,
        };
        #[expect(
            deprecated,
            reason = "an OwnedFd stays open and the same, which is what its unsafe successor wants to be promised"
        )]
        let file = AsyncFd::with_interest(own, interest).ok()?;
        Some(Self { kind, file })
    }

    /// Reads what there is; 0 at the end. Cancel safe.
    pub(super) async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let reading = |file: &OwnedFd| match self.kind {
            Kind::Pipe => Ok(read(file, &mut *buffer)?),
            Kind::Socket => Ok(recv(file, &mut *buffer, RecvFlags::DONTWAIT)?.1),
        };
        let mut reading = reading;
        self.file.async_io(Interest::READABLE, |file| interrupted_again(|| reading(file))).await
    }

    /// Writes what the reader takes now, and does not wait.
    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let writing = |file: &OwnedFd| match self.kind {
            Kind::Pipe => Ok(write(file, bytes)?),
            Kind::Socket => Ok(send(file, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?),
        };
        self.file.try_io(Interest::WRITABLE, |file| interrupted_again(|| writing(file)))
    }

    /// Waits until the reader may take more. Cancel safe.
    pub(super) async fn writable(&self) -> io::Result<()> {
        // The readiness stays: an attempt that finds no room takes it back.
        self.file.writable().await.map(drop)
    }
}

/// Calls again when a signal came in between.
fn interrupted_again<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs::File,
        io::{Read as _, Write as _},
        os::unix::net::UnixStream,
        thread,
    };

    use rustix::fs::fcntl_getfl;

    use super::*;
    use crate::transport::client_stream::ClientStream;

    /// More than fits in a pipe or a socket.
    fn much() -> Vec<u8> {
        (0..3_000_000_u32).map(|at| at.to_le_bytes()[0]).collect()
    }

    async fn all_of(stream: &StandardStream) -> Vec<u8> {
        let (mut all, mut buffer) = (Vec::new(), vec![0; 10_000]);
        loop {
            match stream.read(&mut buffer).await.unwrap() {
                0 => return all,
                count => all.extend_from_slice(&buffer[..count]),
            }
        }
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn everything_passes_through_a_pipe_whose_shared_ends_stay_as_they_are() {
        let (input, mut host) = io::pipe().unwrap();
        let reading = StandardStream::reading(&input).unwrap();
        let sending = thread::spawn(move || host.write_all(&much()).unwrap());
        assert!(all_of(&reading).await == much());
        sending.join().unwrap();

        let (mut host, output) = io::pipe().unwrap();
        let writing = ClientStream::Standard(StandardStream::writing(&output).unwrap());
        for shared in [fcntl_getfl(&input).unwrap(), fcntl_getfl(&output).unwrap()] {
            assert!(!shared.contains(OFlags::NONBLOCK), "{shared:?}");
        }
        let taking = thread::spawn(move || {
            let mut all = Vec::new();
            host.read_to_end(&mut all).unwrap();
            all
        });
        writing.write_all(&much()).await.unwrap();
        drop((writing, output));
        assert!(taking.join().unwrap() == much());
    }

    #[tokio::test]
    async fn everything_passes_through_a_socket_that_stays_as_it_is() {
        let (ours, host) = UnixStream::pair().unwrap();
        let reading = StandardStream::reading(&ours).unwrap();
        let writing = ClientStream::Standard(StandardStream::writing(&ours).unwrap());
        assert!(!fcntl_getfl(&ours).unwrap().contains(OFlags::NONBLOCK));
        let echo = thread::spawn(move || {
            let mut all = Vec::new();
            (&host).take(much().len() as u64).read_to_end(&mut all).unwrap();
            (&host).write_all(&all).unwrap();
        });
        writing.write_all(&much()).await.unwrap();
        assert!(all_of(&reading).await == much());
        echo.join().unwrap();
    }

    #[tokio::test]
    async fn a_closed_reader_is_an_error() {
        let (ours, host) = UnixStream::pair().unwrap();
        let writing = ClientStream::Standard(StandardStream::writing(&ours).unwrap());
        drop(host);
        assert_eq!(writing.write_all(b"a").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[tokio::test]
    async fn files_are_left_to_a_thread() {
        let file = tempfile::tempfile().unwrap();
        assert!(StandardStream::reading(&file).is_none());
        assert!(StandardStream::writing(File::open("/dev/null").unwrap()).is_none());
    }
}
