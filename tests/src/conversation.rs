//! A conversation with the daemon: commands go out and lines come in, over any transport.

use std::{collections::VecDeque, io, time::Instant};

use serde_json::{Value, json};

use crate::DEADLINE;

/// The number of last lines in the message of a failed test.
const SHOWN_LINES: usize = 60;

/// The number of characters of each of these lines.
const SHOWN_OF_LINE: usize = 500;

/// A transport of lines to the daemon and back.
pub trait LineTransport {
    /// Sends bytes as they are.
    ///
    /// # Errors
    /// When the daemon takes none.
    fn send(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Returns the next line without its end; `None` after the last one.
    ///
    /// # Errors
    /// `TimedOut` when none has come by `end`, or another error of the transport.
    fn receive(&mut self, end: Instant) -> io::Result<Option<String>>;

    /// Returns further output of a daemon that failed a test. May end the daemon.
    fn last_words(&mut self) -> String {
        String::new()
    }
}

/// One side of a conversation over a [`LineTransport`]. Failures panic with the last lines in both directions.
pub struct Conversation<W> {
    pub(crate) transport: W,
    /// Lines that `call` skipped.
    backlog: VecDeque<Value>,
    /// Every line in both directions.
    log: Vec<String>,
    next_id: u32,
}

impl<W: LineTransport> Conversation<W> {
    pub(crate) fn over(transport: W) -> Self {
        Self { transport, backlog: VecDeque::new(), log: Vec::new(), next_id: 1 }
    }

    /// Sends a command.
    pub fn send(&mut self, command: &Value) {
        self.send_bytes(format!("{command}\n").as_bytes());
    }

    /// Sends bytes as they are.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        let shown = &bytes[..bytes.len().min(SHOWN_OF_LINE)];
        self.log.push(format!("> {}", String::from_utf8_lossy(shown).trim_end()));
        if let Err(error) = self.transport.send(bytes) {
            self.fail(&format!("agentd does not take input: {error}"));
        }
    }

    /// Sends a command under a new id, and waits for its response. Lines before it are kept.
    pub fn call(&mut self, mut command: Value) -> Value {
        let id = json!(format!("c{}", self.new_id()));
        command["id"] = id.clone();
        self.send(&command);
        let what = format!("the response to {command}");
        let end = Instant::now() + DEADLINE;
        loop {
            let line = self.fresh(end, &what);
            if line["type"] == "response" && line["id"] == id {
                assert_eq!(line["command"], command["type"], "the response names its command");
                return line;
            }
            self.backlog.push_back(line);
        }
    }

    /// Sends a command that must succeed, and returns its data (`null` where there is none).
    pub fn done(&mut self, command: Value) -> Value {
        let response = self.call(command);
        if response["success"] != json!(true) {
            self.fail(&format!("refused: {response}"));
        }
        response["data"].clone()
    }

    /// Sends a command that must be refused, and returns the response.
    pub fn refused(&mut self, command: Value) -> Value {
        let response = self.call(command);
        if response["success"] != json!(false) {
            self.fail(&format!("not refused: {response}"));
        }
        response
    }

    /// The next line.
    pub fn line(&mut self) -> Value {
        self.next(Instant::now() + DEADLINE, "a line")
    }

    /// Waits for the line that matches `wanted`, and drops those before it.
    pub fn until(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        self.all_until(what, wanted).pop().expect("a list with at least the line that was waited for")
    }

    /// Waits for the line that matches `wanted`, and returns it with all lines before it.
    pub fn all_until(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
        let end = Instant::now() + DEADLINE;
        let mut lines = Vec::new();
        loop {
            let line = self.next(end, what);
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

    /// Waits for the end of the run, and returns all lines up to it.
    pub fn settled(&mut self) -> Vec<Value> {
        self.all_until("agent_settled", |line| line["type"] == "agent_settled")
    }

    /// Sends a prompt, waits for the end of the run, and returns all lines in between, the response included.
    pub fn prompt(&mut self, message: &str) -> Vec<Value> {
        let id = format!("p{}", self.new_id());
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

    /// Returns the remaining lines up to the end.
    pub(crate) fn rest(&mut self) -> Vec<Value> {
        let end = Instant::now() + DEADLINE;
        let mut rest: Vec<Value> = self.backlog.drain(..).collect();
        while let Some(line) = self.read(end, "the end") {
            rest.push(line);
        }
        rest
    }

    /// Panics with the last lines.
    pub(crate) fn fail(&mut self, complaint: &str) -> ! {
        let first = self.log.len().saturating_sub(SHOWN_LINES);
        panic!("{complaint}\n{}\n{}", self.log[first..].join("\n"), self.transport.last_words());
    }

    fn new_id(&mut self) -> u32 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    fn next(&mut self, end: Instant, what: &str) -> Value {
        match self.backlog.pop_front() {
            Some(line) => line,
            None => self.fresh(end, what),
        }
    }

    /// Returns the next line of the transport.
    fn fresh(&mut self, end: Instant, what: &str) -> Value {
        match self.read(end, what) {
            Some(line) => line,
            None => self.fail(&format!("agentd ended the conversation instead of sending {what}")),
        }
    }

    /// Returns the next line of the transport, which has to be a record of the protocol; `None` at the end.
    fn read(&mut self, end: Instant, what: &str) -> Option<Value> {
        let line = match self.transport.receive(end) {
            Ok(line) => line?,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                self.fail(&format!("no {what} within {DEADLINE:?}"))
            }
            Err(error) => self.fail(&format!("no {what}: {error}")),
        };
        self.log.push(format!("< {}", line.chars().take(SHOWN_OF_LINE).collect::<String>()));
        match serde_json::from_str::<Value>(&line) {
            Ok(value) if value["type"].is_string() => Some(value),
            _ => self.fail("the last line is no record of the protocol"),
        }
    }
}
