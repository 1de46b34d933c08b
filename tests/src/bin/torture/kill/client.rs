//! A client that survives the daemon: it records what it sent and received until the connection ends.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use serde_json::{Value, value::RawValue};

use super::daemon::Daemon;

/// A received line.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) at: Instant,
    pub(crate) raw: String,
    pub(crate) value: Value,
}

#[derive(Default)]
struct Heard {
    lines: Vec<Line>,
    closed: bool,
}

/// The number of lines that all clients of a round received.
#[derive(Default)]
pub(crate) struct LineCount {
    count: AtomicU64,
}

impl LineCount {
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

/// A connection.
pub(crate) struct Client {
    output: Box<dyn Write + Send>,
    heard: Arc<(Mutex<Heard>, Condvar)>,
    reader: Option<JoinHandle<()>>,
    /// Commands in the order in which they were sent, with their ids.
    pub(crate) sent: Vec<Value>,
    name: String,
}

impl Client {
    /// Connects a client of this name; `None` if the daemon is gone.
    pub(crate) fn connect(daemon: &mut Daemon, name: &str, told: &Arc<LineCount>) -> Option<Self> {
        let (output, input): (Box<dyn Write + Send>, Box<dyn Read + Send>) = match daemon.pipes.take() {
            Some((stdin, stdout)) => (Box::new(stdin), Box::new(stdout)),
            None => {
                let stream = daemon.connect()?;
                (Box::new(stream.try_clone().ok()?), Box::new(stream))
            }
        };
        let heard = Arc::new((Mutex::new(Heard::default()), Condvar::new()));
        let (listening, told) = (Arc::clone(&heard), Arc::clone(told));
        let reader = thread::spawn(move || {
            let mut input = BufReader::new(input);
            let mut raw = String::new();
            // An unterminated line does not count: the daemon died while writing it.
            while matches!(input.read_line(&mut raw), Ok(1..)) && raw.ends_with('\n') {
                let value = read(&raw);
                let line = Line { at: Instant::now(), raw: std::mem::take(&mut raw), value };
                listening.0.lock().unwrap().lines.push(line);
                told.count.fetch_add(1, Ordering::Relaxed);
                listening.1.notify_all();
            }
            listening.0.lock().unwrap().closed = true;
            listening.1.notify_all();
        });
        Some(Self { output, heard, reader: Some(reader), sent: Vec::new(), name: name.to_owned() })
    }

    /// Sends a command under a new id, and returns the id; `None` if the daemon is gone.
    pub(crate) fn send(&mut self, mut command: Value) -> Option<String> {
        let id = format!("{}-{}", self.name, self.sent.len());
        command["id"] = Value::from(id.as_str());
        let text = format!("{command}\n");
        self.sent.push(command);
        self.output.write_all(text.as_bytes()).and_then(|()| self.output.flush()).ok()?;
        Some(id)
    }

    /// Answers a question, which has no response.
    pub(crate) fn answer(&mut self, question: &Value, mut answer: Value) -> Option<()> {
        answer["id"] = question.clone();
        let text = format!("{answer}\n");
        self.output.write_all(text.as_bytes()).and_then(|()| self.output.flush()).ok()
    }

    /// Waits for the line that matches `wanted` among those from `from` on; `None` if it does not come.
    pub(crate) fn wait(
        &self,
        from: usize,
        limit: Duration,
        wanted: impl Fn(&Value) -> bool,
    ) -> Option<Value> {
        let end = Instant::now() + limit;
        let mut seen = from;
        let mut heard = self.heard.0.lock().unwrap();
        loop {
            if let Some(line) =
                heard.lines[seen.min(heard.lines.len())..].iter().find(|line| wanted(&line.value))
            {
                return Some(line.value.clone());
            }
            seen = heard.lines.len();
            let left = end.saturating_duration_since(Instant::now());
            if heard.closed || left.is_zero() {
                return None;
            }
            heard = self.heard.1.wait_timeout(heard, left).unwrap().0;
        }
    }

    /// Sends a command and waits for its response.
    pub(crate) fn call(&mut self, command: Value, limit: Duration) -> Option<Value> {
        let from = self.heard();
        let id = self.send(command)?;
        self.wait(from, limit, |line| line["type"] == "response" && line["id"] == *id)
    }

    /// The number of received lines.
    pub(crate) fn heard(&self) -> usize {
        self.heard.0.lock().unwrap().lines.len()
    }

    /// Returns `true` if the connection has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.heard.0.lock().unwrap().closed
    }

    /// Returns `true` if the connection ends within `limit`.
    pub(crate) fn closes_within(&self, limit: Duration) -> bool {
        // No line matches: the wait ends with the connection, or with the time.
        let _ = self.wait(usize::MAX, limit, |_| false);
        self.is_closed()
    }

    /// Waits until the daemon has closed the connection, and returns the commands and lines.
    pub(crate) fn end(mut self) -> (Vec<Value>, Vec<Line>) {
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        (std::mem::take(&mut self.sent), std::mem::take(&mut self.heard.0.lock().unwrap().lines))
    }
}

/// The value of a line; `Null` if it is no JSON. A tree nests as deep as its conversation is long, deeper than serde_json
/// reads: of such a line, only the shallow members are there.
fn read(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|_| {
        let members = serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(line);
        members.map_or(Value::Null, |members| {
            let read = |(name, text): (String, Box<RawValue>)| {
                (name, serde_json::from_str(text.get()).unwrap_or(Value::Null))
            };
            Value::Object(members.into_iter().map(read).collect())
        })
    })
}
