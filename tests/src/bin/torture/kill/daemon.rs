//! The daemon under test, which may die at any time.

use std::{
    fs::{File, OpenOptions},
    io::{BufRead, BufReader, Read},
    os::unix::{net::UnixStream, process::ExitStatusExt as _},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Stdio},
    time::Duration,
};

use agentd_e2e::{Home, binaries};

use super::{plan::Mode, points};

/// A running daemon, and the way to it.
pub(crate) struct Daemon {
    pub(crate) child: Child,
    pub(crate) socket: Option<PathBuf>,
    pub(crate) pipes: Option<(ChildStdin, ChildStdout)>,
}

/// How a start went.
pub(crate) enum Started {
    Up(Daemon),
    /// It died of a signal on the way.
    Died(Daemon),
    /// It ended by itself, which it must not: the exit code and what it said.
    Refused(String),
}

impl Daemon {
    /// Starts it without waiting for anything.
    pub(crate) fn spawn(home: &Home, mode: Mode, armed: Option<&str>) -> Self {
        let mut command = home.command(binaries::agentd());
        match mode {
            Mode::Serve => command.arg("serve"),
            Mode::Stdio => command.arg("--stdio"),
        };
        let errors = OpenOptions::new().create(true).append(true).open(home.root().join("stderr"));
        command.stdout(Stdio::piped()).stderr(errors.expect("a file for stderr"));
        command.stdin(if mode == Mode::Stdio { Stdio::piped() } else { Stdio::null() });
        if let Some(armed) = armed {
            command.env(points::VARIABLE, armed);
        }
        let mut child = command.spawn().expect("agentd starts");
        let pipes = child.stdin.take().zip(child.stdout.take_if(|_| mode == Mode::Stdio));
        Self { child, socket: None, pipes }
    }

    /// Waits until it takes clients.
    pub(crate) fn up(mut self, home: &Home) -> Started {
        if self.pipes.is_some() {
            return Started::Up(self);
        }
        let mut line = String::new();
        let mut stdout = BufReader::new(self.child.stdout.take().expect("a piped stdout"));
        let _ = stdout.read_line(&mut line);
        let words = line.split_once(" listens on ").and_then(|(_, rest)| rest.rsplit_once(" (pid "));
        if let Some((socket, _)) = words {
            self.socket = Some(socket.into());
            return Started::Up(self);
        }
        let status = self.child.wait().expect("the status of a child");
        if status.signal() == Some(9) {
            return Started::Died(self);
        }
        Started::Refused(format!("{status}: {line}{}", stderr(home)))
    }

    /// A connection to its socket; `None` when it is gone.
    pub(crate) fn connect(&self) -> Option<UnixStream> {
        let stream = UnixStream::connect(self.socket.as_ref()?).ok()?;
        // A daemon that takes nothing must not hold the harness up for ever.
        let _ = stream.set_write_timeout(Some(Duration::from_secs(10)));
        Some(stream)
    }

    /// Whether it has ended by itself.
    pub(crate) fn is_dead(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Ends it as `kill -9` does, and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        // Both fail only for a process that is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The last of what the daemons of this home said on stderr.
pub(crate) fn stderr(home: &Home) -> String {
    let mut bytes = Vec::new();
    let _ = File::open(home.root().join("stderr")).and_then(|mut file| file.read_to_end(&mut bytes));
    let text = String::from_utf8_lossy(&bytes);
    text.lines().rev().take(5).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n")
}
