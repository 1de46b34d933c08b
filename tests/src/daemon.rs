//! `agentd --stdio`, seen through its three streams.

use std::{
    collections::VecDeque,
    io::{BufRead, BufReader, Read, Write},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread::{self, JoinHandle},
    time::Instant,
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{DEADLINE, Home, binaries, processes};

/// A running daemon. It is killed when the test forgets it.
pub struct Daemon {
    child: Child,
    input: Option<ChildStdin>,
    output: Receiver<String>,
    errors: Option<JoinHandle<String>>,
    /// Lines that `call` passed over.
    backlog: VecDeque<Value>,
    /// Every line in both directions.
    log: Vec<String>,
    next_id: u32,
}

/// How a daemon ended.
#[derive(Debug)]
pub struct Ended {
    /// The exit status.
    pub status: ExitStatus,
    /// What it still said on stdout.
    pub rest: Vec<Value>,
    /// Everything it said on stderr.
    pub stderr: String,
}

impl Daemon {
    /// Starts `agentd --stdio` with more arguments.
    #[must_use]
    pub fn start(home: &Home, args: &[&str]) -> Self {
        Self::start_with(home, args, |_| {})
    }

    /// As [`Daemon::start`], with changes of the command, such as variables.
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
            // Bytes that are no UTF-8 end the reading, and the test finds the output ended.
            for line in stdout.split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8(line).expect("agentd writes UTF-8");
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut stderr = child.stderr.take().expect("a piped stderr");
        let errors = thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = stderr.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        });
        let input = child.stdin.take();
        let (backlog, log) = (VecDeque::new(), Vec::new());
        Self { child, input, output, errors: Some(errors), backlog, log, next_id: 1 }
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a command.
    pub fn send(&mut self, command: &Value) {
        self.send_bytes(format!("{command}\n").as_bytes());
    }

    /// Sends bytes as they are.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        let shown = &bytes[..bytes.len().min(500)];
        self.log.push(format!("> {}", String::from_utf8_lossy(shown).trim_end()));
        let input = self.input.as_mut().expect("an open stdin");
        if let Err(error) = input.write_all(bytes).and_then(|()| input.flush()) {
            self.fail(&format!("agentd does not take input: {error}"));
        }
    }

    /// Sends a command under a new id, and waits for its response. What comes before is kept for later.
    pub fn call(&mut self, mut command: Value) -> Value {
        let id = format!("c{}", self.next_id);
        self.next_id += 1;
        command["id"] = json!(id);
        self.send(&command);
        let mut passed = VecDeque::new();
        let end = Instant::now() + DEADLINE;
        let response = loop {
            let line = self.receive(end, &format!("the response to {command}"));
            if line["type"] == "response" && line["id"] == json!(id) {
                break line;
            }
            passed.push_back(line);
        };
        self.backlog.append(&mut passed);
        assert_eq!(response["command"], command["type"], "the response names its command");
        response
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

    /// Sends a prompt and waits for the end of the run. Gives everything in between, the response first or later.
    pub fn prompt(&mut self, message: &str) -> Vec<Value> {
        let id = format!("p{}", self.next_id);
        self.next_id += 1;
        self.send(&json!({"id": id, "type": "prompt", "message": message}));
        let lines = self.all_until("the end of the prompt's run", |line| {
            line["type"] == "agent_settled" || (line["id"] == json!(id) && line["success"] == json!(false))
        });
        let refused = |line: &&Value| line["type"] == "response" && line["success"] == json!(false);
        if let Some(refused) = lines.iter().find(refused) {
            self.fail(&format!("refused: {refused}"));
        }
        lines
    }

    /// Closes stdin.
    pub fn end_input(&mut self) {
        self.input = None;
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
        let end = Instant::now() + DEADLINE;
        let mut rest: Vec<Value> = self.backlog.drain(..).collect();
        loop {
            match self.output.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) => rest.push(self.read(line)),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => self.fail("agentd does not end"),
            }
        }
        // stdout is closed: the process is ending, or a child holds it open no longer.
        let id = i32::try_from(self.id()).expect("a process id");
        if self.child.try_wait().expect("the state of a child").is_none() {
            processes::watch(&[id]).assert_gone_within(DEADLINE);
        }
        let status = self.child.wait().expect("the status of a child");
        let stderr =
            self.errors.take().map(|errors| errors.join().expect("stderr is read")).unwrap_or_default();
        Ended { status, rest, stderr }
    }

    fn next_by(&mut self, end: Instant, what: &str) -> Value {
        match self.backlog.pop_front() {
            Some(line) => line,
            None => self.receive(end, what),
        }
    }

    fn receive(&mut self, end: Instant, what: &str) -> Value {
        match self.output.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) => self.read(line),
            Err(RecvTimeoutError::Disconnected) => {
                self.fail(&format!("agentd ended instead of sending {what}"))
            }
            Err(RecvTimeoutError::Timeout) => self.fail(&format!("no {what} within {DEADLINE:?}")),
        }
    }

    /// Every line on stdout has to be an object of the protocol.
    fn read(&mut self, line: String) -> Value {
        let value = serde_json::from_str::<Value>(&line);
        let mut shown: String = line.chars().take(500).collect();
        shown.insert_str(0, "< ");
        self.log.push(shown);
        match value {
            Ok(value) if value["type"].is_string() => value,
            _ => self.fail("a line on stdout is no record of the protocol"),
        }
    }

    /// Panics with everything that was seen.
    fn fail(&mut self, complaint: &str) -> ! {
        let _ = self.child.kill();
        let stderr = self.errors.take().and_then(|errors| errors.join().ok()).unwrap_or_default();
        let first = self.log.len().saturating_sub(60);
        panic!("{complaint}\n{}\nstderr:\n{stderr}", self.log[first..].join("\n"));
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Both fail only for a process that is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
