//! A lightweight client, one of hundreds, that returns errors instead of panicking: one client's trouble is a finding, and
//! the others go on.

use std::{
    io::{self, BufRead, BufReader, Write},
    net::Shutdown,
    os::unix::net::UnixStream,
    path::Path,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

/// The time limit of every wait, on a loaded machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(120);

/// A failure of a conversation.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The command was refused: code and text.
    Refused(String, String),
    /// The daemon closed the connection, or it broke.
    Closed(String),
    /// A required line is missing, or a forbidden one arrived.
    Wrong(String),
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(code, text) => write!(out, "refused with {code}: {text}"),
            Self::Closed(text) => write!(out, "the connection is closed: {text}"),
            Self::Wrong(text) => out.write_str(text),
        }
    }
}

/// A connection to the daemon's socket.
pub(crate) struct Peer {
    stream: UnixStream,
    input: BufReader<UnixStream>,
    next_id: u64,
    line: Vec<u8>,
    timeout: Duration,
}

impl Peer {
    /// Connects.
    pub(crate) fn connect(socket: &Path) -> Result<Self, Trouble> {
        Self::connect_for(socket, TIMEOUT)
    }

    /// Connects with another time limit.
    pub(crate) fn connect_for(socket: &Path, timeout: Duration) -> Result<Self, Trouble> {
        let stream = UnixStream::connect(socket).map_err(closed)?;
        stream.set_read_timeout(Some(timeout)).map_err(closed)?;
        stream.set_write_timeout(Some(TIMEOUT)).map_err(closed)?;
        let input = BufReader::with_capacity(16 << 10, stream.try_clone().map_err(closed)?);
        Ok(Self { stream, input, next_id: 1, line: Vec::new(), timeout })
    }

    /// Connects, and says `hello` as a client that counts events.
    pub(crate) fn counting(socket: &Path) -> Result<Self, Trouble> {
        Self::connect(socket)?.count()
    }

    /// Says `hello` as a client that counts events.
    pub(crate) fn count(mut self) -> Result<Self, Trouble> {
        let peer = &mut self;
        peer.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}))?;
        Ok(self)
    }

    /// The connection itself.
    pub(crate) fn stream(&self) -> io::Result<UnixStream> {
        self.stream.try_clone()
    }

    /// Sends a command under a new id, and returns the id.
    pub(crate) fn send(&mut self, mut command: Value) -> Result<u64, Trouble> {
        let id = self.next_id;
        self.next_id += 1;
        command["id"] = json!(id);
        self.send_bytes(format!("{command}\n").as_bytes())?;
        Ok(id)
    }

    /// Sends bytes as they are.
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        self.stream.write_all(bytes).map_err(closed)
    }

    /// The next line.
    pub(crate) fn next(&mut self) -> Result<Value, Trouble> {
        self.line.clear();
        match self.input.read_until(b'\n', &mut self.line) {
            Ok(0) => Err(Trouble::Closed("the daemon ended it".into())),
            Ok(_) => serde_json::from_slice(&self.line)
                .map_err(|error| Trouble::Wrong(format!("a line that is no JSON: {error}"))),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                Err(Trouble::Wrong(format!("nothing came for {} s", self.timeout.as_secs())))
            }
            Err(error) => Err(closed(error)),
        }
    }

    /// Reads lines until `wanted`, which sees each, returns a value.
    pub(crate) fn until<T>(
        &mut self,
        what: &str,
        mut wanted: impl FnMut(Value) -> Result<Option<T>, Trouble>,
    ) -> Result<T, Trouble> {
        let end = Instant::now() + self.timeout;
        loop {
            let line = match self.next() {
                Err(Trouble::Wrong(text)) => {
                    return Err(Trouble::Wrong(format!("waiting for {what}: {text}")));
                }
                other => other?,
            };
            if let Some(found) = wanted(line)? {
                return Ok(found);
            }
            if Instant::now() > end {
                return Err(Trouble::Wrong(format!("no {what} within {} s", self.timeout.as_secs())));
            }
        }
    }

    /// Sends a command and returns its response. Events before it are skipped.
    pub(crate) fn call(&mut self, command: Value) -> Result<Value, Trouble> {
        let what = format!("the response to {}", command["type"]);
        let id = self.send(command)?;
        self.until(&what, |line| Ok((line["type"] == "response" && line["id"] == id).then_some(line)))
    }

    /// Sends a command that must succeed, and returns its data.
    pub(crate) fn done(&mut self, command: Value) -> Result<Value, Trouble> {
        let mut response = self.call(command)?;
        if response["success"] == true { Ok(response["data"].take()) } else { Err(refusal(&response)) }
    }

    /// Closes the connection at once.
    pub(crate) fn drop_dead(self) {
        // It fails only for a closed connection.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// The error of a refused response.
pub(crate) fn refusal(response: &Value) -> Trouble {
    let text = |name: &str| response[name].as_str().unwrap_or_default().to_owned();
    Trouble::Refused(text("code"), text("error"))
}

fn closed(error: io::Error) -> Trouble {
    Trouble::Closed(error.to_string())
}
