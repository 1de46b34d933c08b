//! `agentd serve`, and clients of its socket.

use std::{
    collections::VecDeque,
    io::{BufRead, BufReader, ErrorKind, Read, Write},
    net::Shutdown,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::channel,
    thread::{self, JoinHandle},
    time::Instant,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::Signal,
};
use serde_json::{Value, json};

use crate::{DEADLINE, Home, binaries, processes};

/// A daemon in the foreground. It is killed when the test forgets it.
pub struct Service {
    child: Child,
    socket: PathBuf,
    errors: Option<JoinHandle<String>>,
}

/// How a daemon ended.
#[derive(Debug)]
pub struct ServiceEnded {
    /// The exit status.
    pub status: ExitStatus,
    /// Everything it said on stderr.
    pub stderr: String,
}

impl Service {
    /// Starts `agentd serve` with more arguments, and waits until it listens.
    #[must_use]
    pub fn start(home: &Home, args: &[&str]) -> Self {
        Self::start_with(home, args, |_| {})
    }

    /// As [`Service::start`], with changes of the command, such as variables.
    #[must_use]
    pub fn start_with(home: &Home, args: &[&str], change: impl FnOnce(&mut Command)) -> Self {
        Self::try_start(home, args, change).unwrap_or_else(|ended| panic!("agentd did not start: {ended:?}"))
    }

    /// As [`Service::start_with`], for a daemon that may refuse to start.
    ///
    /// # Errors
    /// How it ended instead.
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
    /// How it ended instead.
    pub fn start_command(command: Command) -> Result<Self, ServiceEnded> {
        Self::start_passing(command, Stdio::null())
    }

    /// As [`Service::start_command`], with something on stdin.
    ///
    /// # Errors
    /// How it ended instead.
    pub fn start_passing(mut command: Command, stdin: impl Into<Stdio>) -> Result<Self, ServiceEnded> {
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("agentd starts");
        let stdout = child.stdout.take().expect("a piped stdout");
        let mut stderr = child.stderr.take().expect("a piped stderr");
        let errors = thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = stderr.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        });
        let mut service = Self { child, socket: PathBuf::new(), errors: Some(errors) };
        let (sender, said) = channel();
        thread::spawn(move || {
            let mut line = String::new();
            let read = BufReader::new(stdout).read_line(&mut line);
            // The test has given up by then.
            let _ = sender.send(read.map(|_| line));
        });
        // It says that it listens, or ends.
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

    /// The socket that it says it listens on.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// A new client.
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
        if self.child.try_wait().expect("the state of a child").is_none() {
            let id = i32::try_from(self.id()).expect("a process id");
            processes::watch(&[id]).assert_gone_within(DEADLINE);
        }
        let status = self.child.wait().expect("the status of a child");
        let stderr = self.errors.take().map(|errors| errors.join().expect("stderr is read"));
        ServiceEnded { status, stderr: stderr.unwrap_or_default() }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Both fail only for a process that is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client of the socket. It reads only when the test asks for a line, so that it can be a slow one.
pub struct SocketClient {
    stream: UnixStream,
    input: BufReader<UnixStream>,
    /// Lines that `call` passed over.
    backlog: VecDeque<Value>,
    /// Every line in both directions.
    log: Vec<String>,
    next_id: u32,
}

impl SocketClient {
    /// Connects.
    #[must_use]
    pub fn connect(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let input = BufReader::new(stream.try_clone().expect("a second descriptor"));
        Self { stream, input, backlog: VecDeque::new(), log: Vec::new(), next_id: 1 }
    }

    /// Sends a command.
    pub fn send(&mut self, command: &Value) {
        self.send_bytes(format!("{command}\n").as_bytes());
    }

    /// Sends bytes as they are.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        let shown = &bytes[..bytes.len().min(500)];
        self.log.push(format!("> {}", String::from_utf8_lossy(shown).trim_end()));
        if let Err(error) = self.stream.write_all(bytes) {
            self.fail(&format!("agentd does not take input: {error}"));
        }
    }

    /// Sends a command under a new id, and waits for its response. What comes before is kept for later.
    pub fn call(&mut self, mut command: Value) -> Value {
        let id = json!(format!("c{}", self.next_id));
        self.next_id += 1;
        command["id"] = id.clone();
        self.send(&command);
        let what = format!("the response to {command}");
        let end = Instant::now() + DEADLINE;
        loop {
            let line = self.expect(end, &what);
            if line["type"] == "response" && line["id"] == id {
                assert_eq!(line["command"], command["type"], "the response names its command");
                return line;
            }
            self.backlog.push_back(line);
        }
    }

    /// Sends a command that must be done, and gives its data (`null` where there is none).
    pub fn done(&mut self, command: Value) -> Value {
        let response = self.call(command);
        if response["success"] != json!(true) {
            self.fail(&format!("refused: {response}"));
        }
        response["data"].clone()
    }

    /// Sends a command that must be refused, and gives the response.
    pub fn refused(&mut self, command: Value) -> Value {
        let response = self.call(command);
        if response["success"] != json!(false) {
            self.fail(&format!("not refused: {response}"));
        }
        response
    }

    /// Waits until the daemon has begun to say something, and takes none of it.
    pub fn wait_until_readable(&self) {
        let timeout = Timespec { tv_sec: DEADLINE.as_secs().cast_signed(), tv_nsec: 0 };
        let ready = poll(&mut [PollFd::new(&self.stream, PollFlags::IN)], Some(&timeout));
        assert_eq!(ready, Ok(1), "agentd says nothing");
    }

    /// The next line.
    pub fn line(&mut self) -> Value {
        self.next_by(Instant::now() + DEADLINE, "a line")
    }

    /// Waits for the line that `wanted` picks. Those before it are gone.
    pub fn until(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        self.all_until(what, wanted).pop().expect("a list with at least the line that was waited for")
    }

    /// Waits for the line that `wanted` picks, and gives it with all before it.
    pub fn all_until(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
        let end = Instant::now() + DEADLINE;
        let mut lines = Vec::new();
        loop {
            let line = self.next_by(end, what);
            let found = wanted(&line);
            lines.push(line);
            if found {
                return lines;
            }
        }
    }

    /// Waits for an event of that type.
    pub fn event(&mut self, kind: &str) -> Value {
        self.until(kind, |line| line["type"] == kind)
    }

    /// Waits for the end of the run, and gives everything up to it.
    pub fn settled(&mut self) -> Vec<Value> {
        self.all_until("agent_settled", |line| line["type"] == "agent_settled")
    }

    /// Says that no more will be sent.
    pub fn end_input(&mut self) {
        // It fails only when the daemon has closed the connection.
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Waits until the daemon closes the connection, and gives what it still said.
    #[must_use]
    pub fn closed(mut self) -> Vec<Value> {
        let end = Instant::now() + DEADLINE;
        let mut rest: Vec<Value> = self.backlog.drain(..).collect();
        while let Some(line) = self.read(end, "the end of the connection") {
            rest.push(line);
        }
        rest
    }

    fn next_by(&mut self, end: Instant, what: &str) -> Value {
        match self.backlog.pop_front() {
            Some(line) => line,
            None => self.expect(end, what),
        }
    }

    fn expect(&mut self, end: Instant, what: &str) -> Value {
        match self.read(end, what) {
            Some(line) => line,
            None => self.fail(&format!("agentd closed the connection instead of sending {what}")),
        }
    }

    /// The next line from the socket; `None` at the end.
    fn read(&mut self, end: Instant, what: &str) -> Option<Value> {
        let mut line = Vec::new();
        // A zero means no limit.
        let left = end.saturating_duration_since(Instant::now()).max(std::time::Duration::from_millis(1));
        self.stream.set_read_timeout(Some(left)).expect("a socket takes a time limit");
        match self.input.read_until(b'\n', &mut line) {
            Ok(0) => return None,
            Ok(_) => {}
            // It was closed with something of ours unread.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
            Err(error) => self.fail(&format!("no {what}: {error}")),
        }
        let text = String::from_utf8(line).expect("agentd writes UTF-8");
        self.log.push(format!("< {}", text.trim_end().chars().take(500).collect::<String>()));
        match serde_json::from_str::<Value>(&text) {
            Ok(value) if text.ends_with('\n') && value["type"].is_string() => Some(value),
            _ => self.fail("a line from the socket is no record of the protocol"),
        }
    }

    /// Panics with everything that was seen.
    fn fail(&self, complaint: &str) -> ! {
        let first = self.log.len().saturating_sub(60);
        panic!("{complaint}\n{}", self.log[first..].join("\n"));
    }
}
