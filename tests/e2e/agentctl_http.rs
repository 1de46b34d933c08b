//! `agentctl http`: prompts over HTTP, answered by server-sent events; who may ask; what becomes of a run whose client leaves.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    process::Stdio,
};

use agentd_e2e::{Ctl, DEADLINE, Gate, Home, MockServer, Reply, Service, ctl, sse};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::assert_says;

/// A running `agentctl http`.
struct Front {
    program: Ctl,
    address: String,
    token: String,
}

impl Front {
    fn start(home: &Home, args: &[&str]) -> Self {
        let mut program = Ctl::start_with(ctl::command(home, &[&["http"], args].concat()), Stdio::null());
        program.wait_for_stdout("\n");
        let line: Value = serde_json::from_str(program.stdout().lines().next().unwrap()).expect("JSON");
        assert_eq!(line["type"], "listening", "{line}");
        let address =
            line["url"].as_str().and_then(|url| url.strip_prefix("http://")).expect("an address").to_owned();
        let token = std::fs::read_to_string(line["tokenFile"].as_str().unwrap()).expect("the token");
        Self { program, address, token: token.trim().to_owned() }
    }

    /// Sends a request as it stands.
    fn send(&self, head: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.address).expect("the front listens");
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let request = format!("{head}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).expect("a request");
        Answer { stream, text: String::new() }
    }

    fn prompt(&self, body: &Value) -> Answer {
        let host = &self.address;
        let token = &self.token;
        self.send(
            &format!("POST /prompt HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}"),
            &body.to_string(),
        )
    }
}

/// An answer on its way. Dropping it closes the connection.
struct Answer {
    stream: TcpStream,
    text: String,
}

impl Answer {
    /// Reads on; `false` at the end.
    fn read(&mut self) -> bool {
        let mut bytes = [0; 4096];
        let count = self.stream.read(&mut bytes).expect("an answer");
        self.text.push_str(std::str::from_utf8(&bytes[..count]).expect("text"));
        count > 0
    }

    fn wait_for(&mut self, wanted: &str) {
        while !self.text.contains(wanted) {
            assert!(self.read(), "{wanted:?} never came: {}", self.text);
        }
    }

    /// The whole answer: its status, and its events with their data.
    fn finish(mut self) -> (u16, Vec<(String, Value)>) {
        while self.read() {}
        let status = self.text.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let of = |name| self.text.lines().filter_map(move |line| line.strip_prefix(name));
        let data = of("data: ").map(|data| serde_json::from_str(data).expect("JSON"));
        (status, of("event: ").map(str::to_owned).zip(data).collect())
    }
}

#[test]
fn a_prompt_is_answered_by_its_events() {
    let server =
        MockServer::start([Reply::stream(sse::answer("Two files.")), Reply::stream(sse::answer("Again."))]);
    let home = Home::with_model(&server);
    let front = Front::start(&home, &[]);
    let (status, events) = front.prompt(&json!({"message": "List all files"})).finish();
    assert_eq!(status, 200);
    let (kind, session) = &events[0];
    assert_eq!((kind.as_str(), session["cwd"].as_str()), ("session", home.project().to_str()));
    assert!(events.iter().any(|(kind, data)| kind == "message_update" && data["type"] == "message_update"));
    let (kind, last) = events.last().unwrap();
    assert_eq!((kind.as_str(), &last["status"]), ("prompt_result", &json!("completed")), "{last}");

    // The next request goes on where this one ended.
    let (status, events) = front.prompt(&json!({"message": "Go on", "session": session["id"]})).finish();
    assert_eq!((status, &events[0].1["id"]), (200, &session["id"]));
    assert_eq!(server.requests()[1].messages().len(), 4, "{:?}", server.requests()[1].messages());
}

#[test]
fn a_request_that_is_closed_stops_its_run() {
    let server = MockServer::start([Reply::stream(sse::text("On and on. ")).hang()]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let front = Front::start(&home, &[]);
    let mut client = service.client();
    client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    client.done(json!({"type": "watch_sessions"}));
    let mut answer = front.prompt(&json!({"message": "Go"}));
    answer.wait_for("On and on.");
    drop(answer);
    client.until("the end of the run", |line| {
        line["type"] == "session_changed" && line["session"]["isStreaming"] == json!(false)
    });
}

#[test]
fn a_detached_run_outlives_its_request() {
    let gate = Gate::new();
    let server =
        MockServer::start([Reply::stream(sse::text("At work. ")).gate(&gate).then(sse::answer("Done."))]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let front = Front::start(&home, &[]);
    let mut answer = front.prompt(&json!({"message": "Go", "onDisconnect": "detach"}));
    answer.wait_for("At work.");
    let session =
        answer.text.split("\"id\":\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap().to_owned();
    let mut client = service.client();
    client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    client.done(json!({"type": "attach_session", "sessionId": session}));
    drop(answer);
    gate.open();
    let end = client
        .until("the answer", |line| line["type"] == "message_end" && line["message"]["role"] == "assistant");
    assert_eq!(end["message"]["stopReason"], "stop", "{end}");
}

#[test]
fn an_agentd_of_its_own_stops_with_the_request() {
    let server = MockServer::start([Reply::stream(sse::text("On and on. ")).hang()]);
    let home = Home::with_model(&server);
    let front = Front::start(&home, &["--private"]);
    let mut answer = front.prompt(&json!({"message": "Go"}));
    answer.wait_for("On and on.");
    drop(answer);
    front.program.signal(Signal::TERM);
    let done = front.program.finish();
    assert_eq!(done.code, 0, "{done:?}");
    let stored = home.session_files().pop().expect("a session file");
    assert_says(&std::fs::read_to_string(stored).unwrap(), &["\"stopReason\":\"aborted\"", "On and on."]);
}

#[test]
fn only_programs_of_this_machine_with_the_token_are_served() {
    let home = Home::new();
    let front = Front::start(&home, &[]);
    let host = &front.address;
    let token = &front.token;
    let body = r#"{"message":"Hi"}"#;
    for (head, status) in [
        (format!("POST /prompt HTTP/1.1\r\nHost: {host}"), 401),
        (format!("POST /prompt HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}x"), 401),
        (format!("POST /prompt HTTP/1.1\r\nHost: evil.example\r\nAuthorization: Bearer {token}"), 403),
        (
            format!(
                "POST /prompt HTTP/1.1\r\nHost: {host}\r\nOrigin: http://evil.example\r\nAuthorization: Bearer {token}"
            ),
            403,
        ),
        (format!("GET /prompt HTTP/1.1\r\nHost: {host}"), 405),
        (format!("POST /health HTTP/1.1\r\nHost: {host}"), 405),
        (format!("POST /other HTTP/1.1\r\nHost: {host}"), 404),
        (format!("GET /health HTTP/1.1\r\nHost: {host}"), 200),
    ] {
        assert_eq!(front.send(&head, body).finish().0, status, "{head}");
    }
}

#[test]
fn what_is_wrong_is_said_in_the_answer() {
    let server = MockServer::always(Reply::stream(sse::text("On and on. ")).hang());
    let home = Home::with_model(&server);
    let front = Front::start(&home, &["--max-requests", "1"]);
    for (body, status, named) in [
        (json!({"message": ""}), 400, "message"),
        (json!({"message": "x", "prompt": "y"}), 400, "unknown field `prompt`"),
        (json!({"message": "x", "model": "nope/nope"}), 400, "nope"),
        (json!({"message": "x", "session": "nope"}), 400, "No session found matching 'nope'"),
        (json!({"message": "x", "cwd": "/nowhere/at/all"}), 400, "/nowhere/at/all"),
    ] {
        let mut answer = front.prompt(&body);
        while answer.read() {}
        assert_says(&answer.text, &[&format!("HTTP/1.1 {status} "), "application/json", named]);
    }
    let mut first = front.prompt(&json!({"message": "Go"}));
    first.wait_for("On and on.");
    let mut second = front.prompt(&json!({"message": "Go"}));
    second.wait_for("--max-requests");
    assert_says(&second.text, &["HTTP/1.1 503 ", "retry-after: 1"]);
}

#[test]
fn a_token_file_that_others_can_read_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;

    let home = Home::new();
    let file = home.project().join("token");
    std::fs::write(&file, "0123456789abcdef0123456789abcdef\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let done = ctl::run(&home, &["http", "--token-file", "token"]);
    assert_eq!(done.code, 1, "{done:?}");
    assert_says(&done.stderr, &["others can read it", "chmod 600"]);
    let done = ctl::run(&home, &["http", "--listen", "nonsense"]);
    assert_eq!(done.code, 2, "{done:?}");
}
