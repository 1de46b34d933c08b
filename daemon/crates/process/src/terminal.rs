//! A terminal without a screen: the daemon's end of the pseudo-terminal that a command runs on.

use std::{
    fmt, io,
    os::fd::{BorrowedFd, OwnedFd, RawFd},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll, ready},
};

use portable_pty::{MasterPty, PtySize, native_pty_system};
use rustix::{io::Errno, pty::OpenptFlags, termios};
use tokio::io::unix::AsyncFd;

/// The size of a terminal in characters. 24 rows of 80 columns unless chosen otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalSize {
    /// Lines.
    pub rows: u16,
    /// Characters of a line.
    pub cols: u16,
}

impl Default for TerminalSize {
    fn default() -> Self {
        Self { rows: 24, cols: 80 }
    }
}

/// A pseudo-terminal's controlling end. When its last user is gone, the terminal hangs up.
pub(crate) struct Terminal {
    /// A descriptor of the same terminal, watched by the runtime.
    io: AsyncFd<OwnedFd>,
    /// Keeps the terminal open, and resizes it.
    master: Mutex<Box<dyn MasterPty + Send>>,
    /// Rows in the upper half, columns in the lower.
    size: AtomicU32,
}

impl fmt::Debug for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terminal").field("io", &self.io).field("size", &self.size()).finish()
    }
}

impl Terminal {
    /// Creates a terminal. The second value is the command's end; reading ends when all copies of it are closed.
    ///
    /// # Errors
    /// The system's, when it has no more terminals or none at all.
    pub(crate) fn open(size: TerminalSize) -> io::Result<(Arc<Self>, OwnedFd)> {
        let pair = native_pty_system().openpty(pty_size(size)).map_err(io::Error::other)?;
        let master = pair.master;
        let raw = master.as_raw_fd().ok_or_else(|| io::Error::other("the terminal has no descriptor"))?;
        let io = duplicate(raw)?;
        // Ask the terminal itself: its name means nothing where another `/dev/pts` is mounted.
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let theirs = rustix::pty::ioctl_tiocgptpeer(&io, flags)?;
        // Backspace erases a whole UTF-8 character.
        let mut modes = termios::tcgetattr(&theirs)?;
        modes.input_modes |= termios::InputModes::IUTF8;
        termios::tcsetattr(&theirs, termios::OptionalActions::Now, &modes)?;
        rustix::io::ioctl_fionbio(&io, true)?;
        let terminal =
            Self { io: watched(io)?, master: Mutex::new(master), size: AtomicU32::new(packed(size)) };
        Ok((Arc::new(terminal), theirs))
    }

    pub(crate) fn size(&self) -> TerminalSize {
        let size = self.size.load(Ordering::Relaxed);
        TerminalSize { rows: (size >> 16) as u16, cols: (size & 0xffff) as u16 }
    }

    /// Resizes the terminal, and notifies its foreground program (SIGWINCH).
    pub(crate) fn resize(&self, size: TerminalSize) -> io::Result<()> {
        // No holder of this lock can panic with a half-made change.
        let master = self.master.lock().unwrap_or_else(PoisonError::into_inner);
        master.resize(pty_size(size)).map_err(io::Error::other)?;
        self.size.store(packed(size), Ordering::Relaxed);
        Ok(())
    }

    /// Reads what is available: 0 when all copies of the other end are closed.
    pub(crate) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match rustix::io::read(self.io.get_ref(), buffer) {
            // The terminal's other end is closed.
            Err(Errno::IO) => Ok(0),
            outcome => Ok(outcome?),
        }
    }

    pub(crate) fn poll_read(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            let mut ready = ready!(self.io.poll_read_ready(cx))?;
            if let Ok(outcome) = ready.try_io(|_| self.try_read(buffer)) {
                return Poll::Ready(outcome);
            }
        }
    }

    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match rustix::io::write(self.io.get_ref(), bytes) {
            Err(Errno::IO) => Err(io::ErrorKind::BrokenPipe.into()),
            outcome => Ok(outcome?),
        }
    }

    /// For one task at a time: only the last caller would be woken.
    pub(crate) fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let mut ready = ready!(self.io.poll_write_ready(cx))?;
            // Without readers, the terminal itself would accept bytes until it is full.
            if ready.ready().is_write_closed() {
                return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
            }
            if let Ok(outcome) = ready.try_io(|_| self.try_write(bytes)) {
                return Poll::Ready(outcome);
            }
        }
    }

    /// The characters that a user would type to end the input: none when the command has disabled that.
    pub(crate) fn end_of_input(&self, at_line_start: bool) -> Vec<u8> {
        const DISABLED: u8 = 0;
        const CTRL_D: u8 = 4;
        let Ok(modes) = termios::tcgetattr(self.io.get_ref()) else { return vec![CTRL_D] };
        let lines = modes.local_modes.contains(termios::LocalModes::ICANON);
        match (modes.special_codes[termios::SpecialCodeIndex::VEOF], lines) {
            (DISABLED, true) => Vec::new(),
            (character, true) if at_line_start => vec![character],
            (character, true) => vec![character; 2],
            // The program reads single keys.
            (_, false) => vec![CTRL_D],
        }
    }
}

fn watched(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    #[expect(unsafe_code, reason = "the runtime wants to be told that a descriptor stays what it is")]
    // SAFETY: the value owns its descriptor, which nothing else closes, replaces or exchanges.
    let watched = unsafe { AsyncFd::register(fd) };
    Ok(watched?)
}

fn duplicate(raw: RawFd) -> io::Result<OwnedFd> {
    #[expect(unsafe_code, reason = "portable-pty tells its descriptor as a number only")]
    // SAFETY: the number is that of a descriptor which the caller's `MasterPty` owns and keeps open over this call.
    let fd = unsafe { BorrowedFd::borrow_raw(raw) };
    Ok(rustix::io::fcntl_dupfd_cloexec(fd, 3)?)
}

fn pty_size(TerminalSize { rows, cols }: TerminalSize) -> PtySize {
    PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }
}

fn packed(TerminalSize { rows, cols }: TerminalSize) -> u32 {
    u32::from(rows) << 16 | u32::from(cols)
}
