//! `agentd serve`, and clients of its socket.

use std::{
    io::{self, BufRead, BufReader, ErrorKind, Write},
    net::Shutdown,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::channel,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::Signal,
};
use serde_json::Value;

use crate::{
    DEADLINE, Home, binaries,
    conversation::{Conversation, LineTransport},
    daemon, processes,
};

/// A daemon in the foreground. Dropping it kills the process.
pub struct Service {
    child: Child,
    socket: PathBuf,
    errors: Option<JoinHandle<String>>,
}

/// The end of a daemon.
#[derive(Debug)]
pub struct ServiceEnded {
    /// The exit status.
    pub status: ExitStatus,
    /// All of stderr.
    pub stderr: String,
}

impl Service {
    /// Starts `agentd serve` with more arguments, and waits until it listens.
    #[must_use]
    pub fn start(home: &Home, args: &[&str]) -> Self {
        Self::start_with(home, args, |_| {})
    }

    /// Like [`Service::start`], with changes of the command, such as variables.
    #[must_use]
    pub fn start_with(home: &Home, args: &[&str], change: impl FnOnce(&mut Command)) -> Self {
        Self::try_start(home, args, change).unwrap_or_else(|ended| panic!("agentd did not start: {ended:?}"))
    }

    /// Like [`Service::start_with`], for a daemon that may refuse to start.
    ///
    /// # Errors
    /// The end of the daemon.
    pub fn try_start(
        home: &Home,
        args: &[&str],
        change: impl FnOnce(&mut Command),
    ) -> Result<Self, ServiceEnded> {
        let mut command = home.command(binaries::agentd());
        command.arg("serve").args(args);
        change(&mut command);
        Self::start_command(command)
    }

    /// Starts a command that becomes `agentd serve`.
    ///
    /// # Errors
    /// The end of the daemon.
    pub fn start_command(command: Command) -> Result<Self, ServiceEnded> {
        Self::start_passing(command, Stdio::null())
    }

    /// Like [`Service::start_command`], with something on stdin.
    ///
    /// # Errors
    /// The end of the daemon.
    pub fn start_passing(mut command: Command, stdin: impl Into<Stdio>) -> Result<Self, ServiceEnded> {
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("agentd starts");
        let stdout = child.stdout.take().expect("a piped stdout");
        let errors = daemon::read_to_end(child.stderr.take().expect("a piped stderr"));
        let mut service = Self { child, socket: PathBuf::new(), errors: Some(errors) };
        let (sender, said) = channel();
        thread::spawn(move || {
            let mut line = String::new();
            let read = BufReader::new(stdout).read_line(&mut line);
            // The receiver is gone if the test has given up.
            let _ = sender.send(read.map(|_| line));
        });
        // The daemon prints that it listens, or ends.
        let line = said.recv_timeout(DEADLINE).expect("agentd says that it listens, or ends");
        let line = line.expect("agentd writes UTF-8");
        let words =
            line.trim_end().split_once(" listens on ").and_then(|(_, rest)| rest.rsplit_once(" (pid "));
        let Some((socket, pid)) = words else { return Err(service.wait()) };
        assert_eq!(pid, format!("{})", service.id()), "{line}");
        service.socket = socket.into();
        Ok(service)
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The daemon's socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Connects a client.
    #[must_use]
    pub fn client(&self) -> SocketClient {
        SocketClient::connect(&self.socket)
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        processes::signal(self.id(), signal);
    }

    /// Waits for the end.
    #[must_use]
    pub fn wait(mut self) -> ServiceEnded {
        let status = daemon::wait(&mut self.child);
        let stderr = self.errors.take().map(|errors| errors.join().expect("stderr is read"));
        ServiceEnded { status, stderr: stderr.unwrap_or_default() }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Both fail only for a process that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client of the socket. It reads only when the test asks for a line, so that it can be a slow one.
pub type SocketClient = Conversation<Stream>;

/// A connection to the socket.
pub struct Stream {
    stream: UnixStream,
    input: BufReader<UnixStream>,
}

impl SocketClient {
    /// Connects.
    #[must_use]
    pub fn connect(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let input = BufReader::new(stream.try_clone().expect("a second descriptor"));
        Self::over(Stream { stream, input })
    }

    /// A client over an existing connection.
    #[must_use]
    pub fn over_stream(stream: UnixStream) -> Self {
        let input = BufReader::new(stream.try_clone().expect("a second descriptor"));
        Self::over(Stream { stream, input })
    }

    /// Waits until the daemon has begun to send, and reads nothing.
    pub fn wait_until_readable(&self) {
        let timeout = Timespec { tv_sec: DEADLINE.as_secs().cast_signed(), tv_nsec: 0 };
        let ready = poll(&mut [PollFd::new(&self.transport.stream, PollFlags::IN)], Some(&timeout));
        assert_eq!(ready, Ok(1), "agentd says nothing");
    }

    /// Waits until the daemon has begun to say something to one of the clients, and gives that one's index. Takes none of
    /// it.
    #[must_use]
    pub fn first_readable(clients: &[Self]) -> usize {
        let timeout = Timespec { tv_sec: DEADLINE.as_secs().cast_signed(), tv_nsec: 0 };
        let mut waiting: Vec<PollFd<'_>> =
            clients.iter().map(|client| PollFd::new(&client.transport.stream, PollFlags::IN)).collect();
        poll(&mut waiting, Some(&timeout)).expect("a poll of sockets");
        waiting
            .iter()
            .position(|one| one.revents().contains(PollFlags::IN))
            .expect("a client that agentd talks to")
    }

    /// Closes the sending side.
    pub fn end_input(&mut self) {
        // It fails only if the daemon has closed the connection.
        let _ = self.transport.stream.shutdown(Shutdown::Write);
    }

    /// Waits until the daemon closes the connection, and returns the remaining lines.
    #[must_use]
    pub fn closed(mut self) -> Vec<Value> {
        self.rest()
    }

    /// The connection, to write to from another thread.
    #[must_use]
    pub fn stream(&self) -> UnixStream {
        self.transport.stream.try_clone().expect("a second descriptor")
    }
}

impl LineTransport for Stream {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    fn receive(&mut self, end: Instant) -> io::Result<Option<String>> {
        // Zero would mean no limit.
        let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        self.stream.set_read_timeout(Some(left))?;
        let mut line = Vec::new();
        match self.input.read_until(b'\n', &mut line) {
            Ok(0) => return Ok(None),
            Ok(_) => {}
            // The daemon closed it with unread input.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(None),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(ErrorKind::TimedOut.into()),
            Err(error) => return Err(error),
        }
        if line.pop() != Some(b'\n') {
            return Err(io::Error::other("the last line lacks its end"));
        }
        String::from_utf8(line).map(Some).map_err(io::Error::other)
    }
}
