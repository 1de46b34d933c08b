//! A model server that follows the prompt, records nothing, and can fail as real ones do: `soak ID KIND N` as the last
//! message of the user.
//!
//! | kind | answer |
//! | --- | --- |
//! | `text N` | N words, then `done ID` |
//! | `paced N` | the same, a word each millisecond |
//! | `work N`, `steady N` | a call of `bash`, then as `text N` or `paced N` |
//! | `tools` | `bash` and `write`, `edit` and `read`, `bash` that leaves a process behind, then `done ID` |
//! | `client N` | a call of the client's tool `look_up`, then `done ID` |
//! | `busy N`, `broken N` | 429, 500: for the first N requests |
//! | `cut N`, `hang N` | half an answer; none: for the first N requests |
//! | `garbage`, `refused` | no event stream; 400 |

use std::{
    collections::HashMap,
    io::{self, BufRead, BufReader, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use agentd_e2e::sse;
use serde_json::{Value, json};

/// The stack of a server thread, in bytes.
const STACK: usize = 256 << 10;

/// A server on a free port of this machine.
pub(crate) struct Model {
    shared: Arc<Shared>,
    port: u16,
}

#[derive(Default)]
struct Shared {
    /// The number of bad answers to each prompt so far.
    failures: Mutex<HashMap<String, u64>>,
    connections: Mutex<HashMap<u64, TcpStream>>,
    requests: AtomicU64,
}

impl Model {
    /// Starts the server.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("the address of a listener").port();
        let shared = Arc::new(Shared::default());
        let model = Self { shared: Arc::clone(&shared), port };
        thread::spawn(move || {
            for (number, stream) in (0..).zip(listener.incoming().flatten()) {
                let shared = Arc::clone(&shared);
                let serving = move || {
                    let _ = stream.set_nodelay(true);
                    let own = stream.try_clone().expect("a second descriptor");
                    shared.connections.lock().unwrap().insert(number, own);
                    // The daemon may disconnect at any time.
                    let _ = serve(stream, &shared);
                    shared.connections.lock().unwrap().remove(&number);
                };
                thread::Builder::new().stack_size(STACK).spawn(serving).expect("a thread");
            }
        });
        model
    }

    /// The `baseUrl` for a model.
    pub(crate) fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// The number of requests so far.
    pub(crate) fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// Closes all connections, as a server does after some time.
    pub(crate) fn hang_up(&self) {
        for connection in self.shared.connections.lock().unwrap().values() {
            // It fails only for a closed connection.
            let _ = connection.shutdown(Shutdown::Both);
        }
    }
}

fn serve(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let body = read_request(&mut reader)?;
        shared.requests.fetch_add(1, Ordering::Relaxed);
        if !answer(&mut reader, &body, shared)? {
            return Ok(());
        }
    }
}

/// The body of the next request.
fn read_request(reader: &mut BufReader<TcpStream>) -> io::Result<Value> {
    let mut length = 0;
    let mut line = String::new();
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let Some((name, value)) = line.trim_end().split_once(':') else {
            if line.trim_end().is_empty() {
                break;
            }
            continue;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    serde_json::from_slice(&body).map_err(io::Error::other)
}

/// The words of the last user message, and the number of answers after it.
fn directive(body: &Value) -> (Vec<String>, usize) {
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let last = messages.iter().rposition(|message| message["role"] == "user");
    let Some(last) = last else { return (Vec::new(), 0) };
    let content = &messages[last]["content"];
    let text = content.as_str().or_else(|| content[0]["text"].as_str()).unwrap_or_default();
    let after = messages[last..].iter().filter(|message| message["role"] == "assistant").count();
    let words = text.strip_prefix("soak ").unwrap_or_default();
    (words.split_whitespace().map(str::to_owned).collect(), after)
}

/// Answers; returns `false` when the connection is over.
fn answer(reader: &mut BufReader<TcpStream>, body: &Value, shared: &Shared) -> io::Result<bool> {
    let (words, turns) = directive(body);
    let word = |index: usize| words.get(index).map_or("", String::as_str);
    let (id, kind) = (word(0), word(1));
    let number: u64 = word(2).parse().unwrap_or(1);
    let done = format!("done {id}");
    let is_bad = match kind {
        "busy" | "broken" | "cut" | "hang" => {
            let mut failures = shared.failures.lock().unwrap();
            let so_far = failures.entry(id.to_owned()).or_default();
            *so_far += 1;
            let is_bad = *so_far <= number;
            // The daemon tries at most three times.
            if !is_bad || *so_far == 3 {
                failures.remove(id);
            }
            is_bad
        }
        _ => false,
    };
    let stream = reader.get_mut();
    match kind {
        "busy" if is_bad => status(stream, 429, r#"{"error":{"message":"slow down","type":"rate_limit"}}"#),
        "broken" if is_bad => status(stream, 500, "<html>Internal error</html>"),
        "refused" => status(stream, 400, r#"{"error":{"message":"not like this","type":"invalid"}}"#),
        "cut" if is_bad => {
            head(stream)?;
            chunk(stream, sse::text("half ").as_bytes())?;
            stream.shutdown(Shutdown::Both)?;
            Ok(false)
        }
        "hang" if is_bad => {
            let mut byte = [0];
            // Any result is the end of the connection.
            let _ = reader.read(&mut byte)?;
            Ok(false)
        }
        "garbage" => stream_all(stream, b"\0\xFF{]data: {\"choices\":[{]}\n\nid: 7\n\ndata: nothing\n\n"),
        "tools" if turns == 0 => stream_all(stream, calls(id).as_bytes()),
        "tools" if turns == 1 => stream_all(stream, more_calls(id).as_bytes()),
        "tools" if turns == 2 => stream_all(stream, last_call(id).as_bytes()),
        "client" if turns == 0 => {
            let call = [("c1", "look_up", json!({"word": id}))];
            stream_all(stream, sse::calls(&call).as_bytes())
        }
        "work" | "steady" if turns == 0 => {
            stream_all(stream, sse::calls(&[("c1", "bash", json!({"command": "true"}))]).as_bytes())
        }
        "paced" | "steady" => words_of(stream, number, Some(Duration::from_millis(1)), &done),
        "text" | "work" => words_of(stream, number, None, &done),
        "" => stream_all(stream, sse::answer("A summary of what was said.").as_bytes()),
        _ => stream_all(stream, sse::answer(&done).as_bytes()),
    }
}

fn calls(id: &str) -> String {
    sse::calls(&[
        ("c1", "bash", json!({"command": format!("echo {id}; seq 1 200")})),
        (
            "c2",
            "write",
            json!({"path": format!("work/{id}.txt"), "content": format!("first {id}\nsecond\n")}),
        ),
    ])
}

fn more_calls(id: &str) -> String {
    let edits = json!([{"oldText": "second", "newText": "third"}]);
    sse::calls(&[
        ("c3", "edit", json!({"path": format!("work/{id}.txt"), "edits": edits})),
        ("c4", "read", json!({"path": format!("work/{id}.txt")})),
    ])
}

fn last_call(id: &str) -> String {
    sse::calls(&[("c5", "bash", json!({"command": format!("(sleep 0.5 &); rm work/{id}.txt")}))])
}

/// Streams so many words, then the last ones.
fn words_of(stream: &mut TcpStream, count: u64, pace: Option<Duration>, last: &str) -> io::Result<bool> {
    head(stream)?;
    let piece = sse::text("a word or two ");
    let begun = Instant::now();
    let mut due = Duration::ZERO;
    for _ in 0..count {
        if let Some(pace) = pace {
            // Delays are made up for: the pace is that of the model, not of the machine.
            due += pace;
            thread::sleep(due.saturating_sub(begun.elapsed()));
        }
        chunk(stream, piece.as_bytes())?;
    }
    chunk(stream, sse::answer(last).as_bytes())?;
    stream.write_all(b"0\r\n\r\n")?;
    Ok(true)
}

fn stream_all(stream: &mut TcpStream, body: &[u8]) -> io::Result<bool> {
    head(stream)?;
    chunk(stream, body)?;
    stream.write_all(b"0\r\n\r\n")?;
    Ok(true)
}

fn head(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
    )
}

fn chunk(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    let mut all = format!("{:x}\r\n", bytes.len()).into_bytes();
    all.extend_from_slice(bytes);
    all.extend_from_slice(b"\r\n");
    stream.write_all(&all)
}

fn status(stream: &mut TcpStream, code: u16, body: &str) -> io::Result<bool> {
    let head = format!("HTTP/1.1 {code} Scripted\r\nContent-Type: application/json\r\n");
    stream.write_all(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes())?;
    Ok(true)
}
