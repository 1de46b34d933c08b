//! `agentd --stdio`, seen through its three streams.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread::{self, JoinHandle},
    time::Instant,
};

use rustix::process::Signal;
use serde_json::Value;

use crate::{
    DEADLINE, Home, binaries,
    conversation::{Conversation, LineTransport},
    processes,
};

/// A running daemon. Dropping it kills the process.
pub type Daemon = Conversation<Pipes>;

/// The three streams of a daemon, and its process.
pub struct Pipes {
    child: Child,
    input: Option<ChildStdin>,
    output: Receiver<io::Result<String>>,
    errors: Option<JoinHandle<String>>,
}

/// The end of a daemon.
#[derive(Debug)]
pub struct Ended {
    /// The exit status.
    pub status: ExitStatus,
    /// The remaining lines on stdout.
    pub rest: Vec<Value>,
    /// All of stderr.
    pub stderr: String,
}

impl Daemon {
    /// Starts `agentd --stdio` with more arguments.
    #[must_use]
    pub fn start(home: &Home, args: &[&str]) -> Self {
        Self::start_with(home, args, |_| {})
    }

    /// Like [`Daemon::start`], with changes of the command, such as variables.
    #[must_use]
    pub fn start_with(home: &Home, args: &[&str], change: impl FnOnce(&mut Command)) -> Self {
        let mut command = home.command(binaries::agentd());
        command.arg("--stdio").args(args);
        change(&mut command);
        Self::start_command(command)
    }

    /// Starts `agentd --stdio --shared` with more arguments: a session of the home's daemon.
    #[must_use]
    pub fn start_shared(home: &Home, args: &[&str]) -> Self {
        Self::start(home, &[&["--shared"], args].concat())
    }

    /// Starts a command that becomes `agentd --stdio`.
    #[must_use]
    pub fn start_command(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("agentd starts");
        let (sender, output) = channel();
        let stdout = BufReader::new(child.stdout.take().expect("a piped stdout"));
        thread::spawn(move || {
            for line in stdout.split(b'\n') {
                let line = line.and_then(|line| String::from_utf8(line).map_err(io::Error::other));
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let errors = read_to_end(child.stderr.take().expect("a piped stderr"));
        let input = child.stdin.take();
        Self::over(Pipes { child, input, output, errors: Some(errors) })
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.transport.child.id()
    }

    /// Closes stdin.
    pub fn end_input(&mut self) {
        self.transport.input = None;
    }

    /// Sends a signal to the daemon.
    pub fn signal(&self, signal: Signal) {
        processes::signal(self.id(), signal);
    }

    /// Closes stdin and waits for the end.
    pub fn close(mut self) -> Ended {
        self.end_input();
        self.wait()
    }

    /// Waits for the end.
    pub fn wait(mut self) -> Ended {
        let rest = self.rest();
        // stdout is closed: the process is ending, or a child held it open until now.
        let status = wait(&mut self.transport.child);
        let stderr = self.transport.errors.take().map(|errors| errors.join().expect("stderr is read"));
        Ended { status, rest, stderr: stderr.unwrap_or_default() }
    }
}

/// Waits for the end of a child, with a deadline.
pub(crate) fn wait(child: &mut Child) -> ExitStatus {
    if child.try_wait().expect("the state of a child").is_none() {
        let id = i32::try_from(child.id()).expect("a process id");
        processes::watch(&[id]).assert_gone_within(DEADLINE);
    }
    child.wait().expect("the status of a child")
}

/// Reads to the end, on a thread of its own.
pub(crate) fn read_to_end(mut stream: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

impl LineTransport for Pipes {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let input = self.input.as_mut().expect("an open stdin");
        input.write_all(bytes)?;
        input.flush()
    }

    fn receive(&mut self, end: Instant) -> io::Result<Option<String>> {
        match self.output.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) => line.map(Some),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    fn last_words(&mut self) -> String {
        // It fails only for a process that has ended.
        let _ = self.child.kill();
        let stderr = self.errors.take().and_then(|errors| errors.join().ok()).unwrap_or_default();
        format!("stderr:\n{stderr}")
    }
}

impl Drop for Pipes {
    fn drop(&mut self) {
        // Both fail only for a process that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
