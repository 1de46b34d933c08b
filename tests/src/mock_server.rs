//! A mock model server: each request gets the next scripted reply and is recorded.

use std::{
    collections::VecDeque,
    io::{self, BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread,
    time::Duration,
};

use serde_json::Value;

use crate::{
    Gate,
    wait::{DEADLINE, LONG_DEADLINE},
};

/// A received request.
#[derive(Debug, Clone)]
pub struct Request {
    /// Method and path, such as `POST /v1/chat/completions`.
    pub target: String,
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body; `null` when it is no JSON.
    pub body: Value,
    /// The body as it came.
    pub text: String,
}

impl Request {
    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A field of the query, or of a body in the form of one, as it was encoded.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        let query = self.target.split_once('?').map_or(self.text.as_str(), |(_, query)| query);
        query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
    }

    /// The messages of a chat request.
    #[must_use]
    pub fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map_or(&[], Vec::as_slice)
    }
}

#[derive(Clone)]
enum Step {
    /// Bytes of the body, in one piece.
    Bytes(Vec<u8>),
    /// Waits for the test.
    Gate(Gate),
    /// Waits until the client has disconnected.
    Hang,
    /// Closes the connection in the middle of the body.
    Cut,
    /// Bytes of the body that are made on demand.
    Live(Arc<Live>),
}

/// Makes and sends pieces of a body.
type Live = dyn Fn(&mut Pieces<'_>) -> io::Result<()> + Send + Sync;

/// The connection of a reply whose pieces are made on demand.
pub struct Pieces<'a>(&'a mut TcpStream);

impl Pieces<'_> {
    /// Sends a piece of the body at once. An empty piece is skipped.
    ///
    /// # Errors
    /// When the client has disconnected.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        self.0.write_all(&chunk)
    }
}

/// The server's reply to one request.
#[derive(Clone)]
pub struct Reply {
    status: u16,
    content_type: String,
    steps: Vec<Step>,
    headers: Vec<(String, String)>,
    before_headers: Option<Gate>,
    silent: bool,
}

impl Reply {
    /// An event stream with this body so far; more can be added.
    #[must_use]
    pub fn stream(body: impl AsRef<[u8]>) -> Self {
        Self::status(200, "text/event-stream", body)
    }

    /// Any other answer.
    #[must_use]
    pub fn status(status: u16, content_type: &str, body: impl AsRef<[u8]>) -> Self {
        let steps = vec![Step::Bytes(body.as_ref().to_owned())];
        Self {
            status,
            content_type: content_type.to_owned(),
            steps,
            headers: Vec::new(),
            before_headers: None,
            silent: false,
        }
    }

    /// An event stream with this body, sent in pieces of `size` bytes.
    #[must_use]
    pub fn stream_in_pieces(body: impl AsRef<[u8]>, size: usize) -> Self {
        let steps = body.as_ref().chunks(size).map(|piece| Step::Bytes(piece.to_owned())).collect();
        Self { steps, ..Self::stream("") }
    }

    /// Takes the request and never answers.
    #[must_use]
    pub fn silence() -> Self {
        Self { silent: true, steps: vec![Step::Hang], ..Self::stream("") }
    }

    /// Takes the request and closes the connection.
    #[must_use]
    pub fn hang_up() -> Self {
        Self { silent: true, steps: vec![Step::Cut], ..Self::stream("") }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// More of the body.
    #[must_use]
    pub fn then(mut self, body: impl AsRef<[u8]>) -> Self {
        self.steps.push(Step::Bytes(body.as_ref().to_owned()));
        self
    }

    /// More of the body, made on demand, piece by piece.
    #[must_use]
    pub fn live(mut self, make: impl Fn(&mut Pieces<'_>) -> io::Result<()> + Send + Sync + 'static) -> Self {
        self.steps.push(Step::Live(Arc::new(make)));
        self
    }

    /// Waits for the test before what follows.
    #[must_use]
    pub fn gate(mut self, gate: &Gate) -> Self {
        self.steps.push(Step::Gate(gate.clone()));
        self
    }

    /// Waits for the test before anything is answered.
    #[must_use]
    pub fn gate_first(mut self, gate: &Gate) -> Self {
        self.before_headers = Some(gate.clone());
        self
    }

    /// Sends nothing more until the client disconnects.
    #[must_use]
    pub fn hang(mut self) -> Self {
        self.steps.push(Step::Hang);
        self
    }

    /// Closes the connection before the end of the body.
    #[must_use]
    pub fn cut(mut self) -> Self {
        self.steps.push(Step::Cut);
        self
    }
}

/// Makes the reply to a request.
type Answer = dyn Fn(&Request) -> Reply + Send + Sync;

#[derive(Default)]
struct State {
    replies: VecDeque<Reply>,
    otherwise: Option<Reply>,
    requests: Vec<Request>,
    disconnects: usize,
    /// Those open now.
    connections: usize,
    accepted: usize,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// Answers every request.
    answer: Option<Box<Answer>>,
    /// Whether those are recorded.
    records: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        result
    }
}

/// A server on a free port of this machine.
pub struct MockServer {
    shared: Arc<Shared>,
    port: u16,
}

impl MockServer {
    /// A server that gives these replies, one for each request, in order.
    #[must_use]
    pub fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let shared = Shared::default();
        shared.lock().replies.extend(replies);
        Self::listen(shared)
    }

    /// A server that answers each request by `answer`, and records none: for any number of requests.
    #[must_use]
    pub fn answering(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        Self::listen(Shared { answer: Some(Box::new(answer)), ..Shared::default() })
    }

    /// A server that answers each request by `answer`, and records it.
    #[must_use]
    pub fn choosing(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        Self::listen(Shared { answer: Some(Box::new(answer)), records: true, ..Shared::default() })
    }

    fn listen(shared: Shared) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("the address of a listener").port();
        let shared = Arc::new(shared);
        let server = Self { shared: Arc::clone(&shared), port };
        // The threads live as long as the test process.
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                shared.change(|state| {
                    state.connections += 1;
                    state.accepted += 1;
                });
                thread::spawn(move || {
                    serve(connection, &shared);
                    shared.change(|state| state.connections -= 1);
                });
            }
        });
        server
    }

    /// A server that gives every request the same reply.
    #[must_use]
    pub fn always(reply: Reply) -> Self {
        let server = Self::start([]);
        server.shared.lock().otherwise = Some(reply);
        server
    }

    /// Adds a reply for a further request.
    pub fn push(&self, reply: Reply) {
        self.shared.lock().replies.push_back(reply);
    }

    /// The `baseUrl` for a model.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// The requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.shared.lock().requests.clone()
    }

    /// Waits for `count` requests, and returns them.
    #[must_use]
    pub fn wait_for_requests(&self, count: usize) -> Vec<Request> {
        self.wait(DEADLINE, |state| state.requests.len() >= count, &format!("{count} requests"))
            .requests
            .clone()
    }

    /// The connections that are open now, and those that were ever accepted.
    #[must_use]
    pub fn connections(&self) -> (usize, usize) {
        let state = self.shared.lock();
        (state.connections, state.accepted)
    }

    /// Waits until a client is connected.
    pub fn wait_for_a_connection(&self) {
        drop(self.wait(DEADLINE, |state| state.connections > 0, "an open connection"));
    }

    /// Waits until no client is connected.
    pub fn wait_for_no_connection(&self) {
        drop(self.wait(DEADLINE, |state| state.connections == 0, "the end of all connections"));
    }

    /// Waits until `count` clients have disconnected before the end of their answer.
    pub fn wait_for_disconnects(&self, count: usize) {
        drop(self.wait(LONG_DEADLINE, |state| state.disconnects >= count, &format!("{count} disconnects")));
    }

    fn wait(&self, deadline: Duration, done: impl Fn(&State) -> bool, what: &str) -> MutexGuard<'_, State> {
        let state = self.shared.lock();
        let (state, waited) =
            self.shared.changed.wait_timeout_while(state, deadline, |state| !done(state)).unwrap();
        assert!(!waited.timed_out(), "the model server did not see {what} within {deadline:?}");
        state
    }
}

/// Serves one connection until the client leaves.
fn serve(connection: TcpStream, shared: &Shared) {
    // Sends pieces at once, without waiting for acknowledgements.
    let _ = connection.set_nodelay(true);
    let mut reader = BufReader::new(connection);
    while let Ok(Some(request)) = read_request(&mut reader) {
        let reply = match &shared.answer {
            Some(answer) => {
                let reply = answer(&request);
                if shared.records {
                    shared.change(|state| state.requests.push(request));
                }
                Some(reply)
            }
            None => shared.change(|state| {
                state.requests.push(request);
                state.replies.pop_front().or_else(|| state.otherwise.clone())
            }),
        };
        let reply = reply.unwrap_or_else(|| {
            Reply::status(500, "application/json", r#"{"error":{"message":"the test has no reply left"}}"#)
        });
        match answer(&mut reader, &reply) {
            Ok(Outcome::Complete) => {}
            Ok(Outcome::Closed) => return,
            Ok(Outcome::ClientLeft) | Err(_) => {
                shared.change(|state| state.disconnects += 1);
                return;
            }
        }
    }
}

enum Outcome {
    Complete,
    Closed,
    ClientLeft,
}

fn answer(connection: &mut BufReader<TcpStream>, reply: &Reply) -> io::Result<Outcome> {
    if let Some(gate) = &reply.before_headers {
        gate.pass();
    }
    if !reply.silent {
        let head = format!(
            "HTTP/1.1 {} Scripted\r\nContent-Type: {}\r\n{}Transfer-Encoding: chunked\r\n\r\n",
            reply.status,
            reply.content_type,
            reply.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect::<String>()
        );
        connection.get_mut().write_all(head.as_bytes())?;
    }
    for step in &reply.steps {
        match step {
            Step::Bytes(bytes) => Pieces(connection.get_mut()).send(bytes)?,
            Step::Live(make) => make(&mut Pieces(connection.get_mut()))?,
            Step::Gate(gate) => gate.pass(),
            Step::Hang => {
                // A client that waits for an answer sends nothing, so any result of this read is the end of the
                // connection.
                let mut byte = [0];
                return match connection.read(&mut byte) {
                    Ok(1..) => Err(io::Error::other("a second request on a busy connection")),
                    Ok(0) | Err(_) => Ok(Outcome::ClientLeft),
                };
            }
            Step::Cut => return Ok(Outcome::Closed),
        }
    }
    connection.get_mut().write_all(b"0\r\n\r\n")?;
    Ok(Outcome::Complete)
}

/// Reads the next request; `None` when the client has disconnected.
fn read_request(reader: &mut BufReader<TcpStream>) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let target = line.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let text = String::from_utf8_lossy(&body).into_owned();
    Ok(Some(Request { target, headers, body: serde_json::from_slice(&body).unwrap_or(Value::Null), text }))
}
