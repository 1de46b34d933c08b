//! A conversation with the daemon: commands go out, lines come in, whatever carries them.

use std::{collections::VecDeque, io, time::Instant};

use serde_json::{Value, json};

use crate::DEADLINE;

/// How many of the last lines are shown when a test fails.
const SHOWN_LINES: usize = 60;

/// How much of a line is shown then, in characters.
const SHOWN_OF_LINE: usize = 500;

/// What carries lines to the daemon and back.
pub trait LineTransport {
    /// Sends bytes as they are.
    ///
    /// # Errors
    /// When the daemon takes none.
    fn send(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// The next line without its end; `None` when no more comes.
    ///
    /// # Errors
    /// `TimedOut` when none has come by `end`, and whatever else is wrong with what came.
    fn receive(&mut self, end: Instant) -> io::Result<Option<String>>;

    /// What else is known about a daemon that did not do as it should. It may be ended for that.
    fn last_words(&mut self) -> String {
        String::new()
    }
}

/// One side of a conversation, over a [`LineTransport`]. Whatever is not as it should be panics with the last lines in both
/// directions.
pub struct Conversation<W> {
    pub(crate) transport: W,
    /// Lines that `call` passed over.
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

    /// Sends a command under a new id, and waits for its response. What comes before is kept for later.
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
        self.next(Instant::now() + DEADLINE, "a line")
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

    /// Waits for the end of the run, and gives everything up to it.
    pub fn settled(&mut self) -> Vec<Value> {
        self.all_until("agent_settled", |line| line["type"] == "agent_settled")
    }

    /// Sends a prompt and waits for the end of the run. Gives everything in between, the response first or later.
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

    /// Everything that comes until no more does.
    pub(crate) fn rest(&mut self) -> Vec<Value> {
        let end = Instant::now() + DEADLINE;
        let mut rest: Vec<Value> = self.backlog.drain(..).collect();
        while let Some(line) = self.read(end, "the end") {
            rest.push(line);
        }
        rest
    }

    /// Panics with everything that was seen.
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

    /// The next line off the transport.
    fn fresh(&mut self, end: Instant, what: &str) -> Value {
        match self.read(end, what) {
            Some(line) => line,
            None => self.fail(&format!("agentd ended the conversation instead of sending {what}")),
        }
    }

    /// The next line off the transport, which has to be a record of the protocol; `None` at the end.
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
            _ => self.fail("that is no record of the protocol"),
        }
    }
}
