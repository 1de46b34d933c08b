//! Misbehaving clients beside one that works: its answers come, its stream completes, and the daemon lives on. Read-only
//! commands are answered, too.

use std::{
    io::{ErrorKind, Read, Write},
    net::Shutdown,
    os::unix::net::UnixStream,
    thread,
    time::Instant,
};

use agentd_e2e::{DEADLINE, Gate, Home, MockServer, Reply, Service, SocketClient, processes, sse};
use serde_json::json;

use crate::support::{answers, complaint, text};

/// The longest line that the daemon takes.
const LINE_CAP: usize = 64 << 20;

/// The bytes that the daemon may grow for a client without long lines: its queued commands and replies.
const MAY_GROW: u64 = 24 << 20;

/// A daemon with one client at work: its answer has begun and waits for the gate.
struct Work {
    home: Home,
    service: Service,
    client: SocketClient,
    gate: Gate,
    before: processes::Usage,
    // Kept, so that the server runs as long as the test.
    _server: MockServer,
}

impl Work {
    fn begin() -> Self {
        let gate = Gate::new();
        let server =
            MockServer::start([Reply::stream(sse::text("Half ")).gate(&gate).then(sse::answer("and half."))]);
        let home = Home::with_model(&server);
        let service = Service::start(&home, &[]);
        let mut client = service.client();
        client.done(json!({"type": "open_session", "cwd": home.project()}));
        client.send(&json!({"type": "prompt", "message": "Go."}));
        client.event("message_update");
        let before = processes::usage(service.id());
        Self { home, service, client, gate, before, _server: server }
    }

    fn hostile(&self) -> SocketClient {
        self.service.client()
    }

    /// Completes the work. The daemon may have grown by `may_grow` bytes meanwhile.
    fn finish(mut self, may_grow: u64) {
        let status = self.client.done(json!({"type": "daemon_status"}));
        assert_eq!(status["runningSessions"], 1, "{status}");
        self.gate.open();
        let events = self.client.settled();
        assert_eq!(text(answers(&events)[0]), "Half and half.");
        let after = processes::usage(self.service.id());
        let grown = after.peak.saturating_sub(self.before.resident);
        assert!(grown < may_grow, "the daemon grew by {grown} bytes: {:?} {after:?}", self.before);
        // A new client is served.
        let opened = self.hostile().done(json!({"type": "open_session", "cwd": self.home.project()}));
        assert!(opened["sessionId"].is_string(), "{opened}");
    }
}

/// A raw connection, for what no client type allows.
fn raw(service: &Service) -> UnixStream {
    let stream = UnixStream::connect(service.socket()).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.set_write_timeout(Some(DEADLINE)).unwrap();
    stream
}

/// Sends a line that must be refused; returns code and message.
fn refusal(client: &mut SocketClient, line: &[u8]) -> (String, String) {
    client.send_bytes(line);
    client.send_bytes(b"\n");
    let answer = client.line();
    assert_eq!((&answer["type"], &answer["success"]), (&json!("response"), &json!(false)), "{answer}");
    (answer["code"].as_str().expect("a code").to_owned(), complaint(&answer))
}

#[test]
fn lines_that_are_no_commands_are_answered_one_by_one() {
    let work = Work::begin();
    let mut hostile = work.hostile();
    let garbage: Vec<u8> = (0..=255).cycle().take(10_000).filter(|byte| *byte != b'\n').collect();
    let deep = b"[".repeat(200_000);
    let deep_field =
        format!("{{\"type\":\"prompt\",\"message\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    for line in [
        &garbage[..],
        b"\x00\x00\x00",
        b"{\"type\":\"get_state\"\x00}",
        b"\xFF\xFE{\"type\":\"get_state\"}",
        b"{\"type\":\"get_\xC3\x28state\"}",
        b"{\"type\":\"get_state\"",
        b"[1,2,3]",
        b"null",
        b"\"get_state\"",
        &deep,
        deep_field.as_bytes(),
        b"{\"type\":\"prompt\",\"message\":\xED\xA0\x80}",
    ] {
        let (code, said) = refusal(&mut hostile, line);
        let shown = String::from_utf8_lossy(&line[..line.len().min(60)]).into_owned();
        let codes = ["parse", "invalid_field", "unknown_command"];
        assert!(codes.contains(&code.as_str()), "{shown}: {code} {said}");
        assert!(said.len() < 2_000, "an answer repeats a long line: {}", said.len());
    }
    // The connection still works.
    hostile.done(json!({"type": "daemon_status"}));
    work.finish(MAY_GROW);
}

#[test]
fn numbers_and_keys_without_measure_are_refused_or_do_no_harm() {
    let work = Work::begin();
    let mut hostile = work.hostile();
    for line in [
        &b"{\"type\":\"shutdown\",\"deadlineMs\":1e999}"[..],
        b"{\"type\":\"shutdown\",\"deadlineMs\":-1}",
        b"{\"type\":\"shutdown\",\"deadlineMs\":99999999999999999999999999999999}",
        b"{\"type\":\"list_sessions\",\"limit\":-5}",
        b"{\"type\":\"list_sessions\",\"limit\":1e400}",
        b"{\"type\":\"attach_session\",\"sessionId\":\"x\",\"since\":{\"epoch\":\"e\",\"seq\":-1}}",
    ] {
        let (code, said) = refusal(&mut hostile, line);
        let shown = String::from_utf8_lossy(line).into_owned();
        assert!(["parse", "invalid_field"].contains(&code.as_str()), "{shown}: {code} {said}");
    }
    // Ids of any type come back unchanged; of a duplicate key one counts, and there is one response.
    let digits = "9".repeat(5_000);
    for id in ["1e400".to_owned(), digits, "-0.0".to_owned(), format!("\"{}\"", "i".repeat(1 << 20))] {
        hostile.send_bytes(format!("{{\"id\":{id},\"type\":\"daemon_status\"}}\n").as_bytes());
        let answer = hostile.line();
        assert_eq!(answer["type"], "response", "{}", &id[..id.len().min(60)]);
    }
    hostile.send_bytes(b"{\"id\":\"a\",\"id\":\"b\",\"type\":\"get_state\",\"type\":\"daemon_status\"}\n");
    assert_eq!(hostile.line()["type"], "response");
    // No line is answered twice: the next response is that of the next command.
    hostile.send(&json!({"id": "last", "type": "daemon_status"}));
    assert_eq!(hostile.line()["id"], "last");
    work.finish(MAY_GROW);
}

#[test]
fn a_line_of_a_hundred_megabytes_is_skipped_and_not_kept() {
    let work = Work::begin();
    let mut hostile = work.hostile();
    let mut stream = hostile.stream();
    let sending = thread::spawn(move || {
        let piece = vec![b'x'; 1 << 20];
        for _ in 0..100 {
            stream.write_all(&piece)?;
        }
        stream.write_all(b"\n{\"id\":\"next\",\"type\":\"daemon_status\"}\n")
    });
    let answer = hostile.line();
    assert_eq!(answer["code"], "too_large", "{answer}");
    assert!(complaint(&answer).contains(&LINE_CAP.to_string()), "{answer}");
    assert_eq!(hostile.line()["id"], "next");
    sending.join().unwrap().unwrap();
    // The limit covers the line itself, and its copy while the buffer grows.
    work.finish(LINE_CAP as u64 * 2 + MAY_GROW);
}

#[test]
fn half_a_line_and_silence_harm_nobody() {
    let mut work = Work::begin();
    let mut half = raw(&work.service);
    half.write_all(b"{\"type\":\"prompt\",\"message\":\"never").unwrap();
    let silent = raw(&work.service);
    work.client.done(json!({"type": "get_state"}));
    // The last line counts without its end once no more can come.
    let mut closing = raw(&work.service);
    closing.write_all(b"{\"id\":\"half\",\"type\":\"daemon_status\"}").unwrap();
    closing.shutdown(Shutdown::Write).unwrap();
    let mut said = String::new();
    closing.read_to_string(&mut said).unwrap();
    assert!(said.contains("\"id\":\"half\"") && said.contains("\"success\":true"), "{said}");
    work.finish(MAY_GROW);
    drop((half, silent));
}

#[test]
fn a_million_commands_in_one_write_wait_for_their_turn() {
    let mut work = Work::begin();
    let mut hostile = work.hostile();
    let mut stream = hostile.stream();
    let sending = thread::spawn(move || {
        let commands = "{\"type\":\"get_state\"}\n".repeat(1_000_000);
        // The thread ends with the connection.
        stream.write_all(commands.as_bytes())
    });
    hostile.wait_until_readable();
    for _ in 0..20 {
        work.client.done(json!({"type": "get_state"}));
    }
    // The client reads some of the answers and leaves.
    for _ in 0..2_000 {
        assert_eq!(hostile.line()["code"], "no_session");
    }
    hostile.stream().shutdown(Shutdown::Both).unwrap();
    let error = sending.join().unwrap().expect_err("the daemon takes no more than it can answer");
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    work.finish(MAY_GROW);
}

#[test]
fn a_flood_for_the_session_at_work_holds_nobody_up() {
    let mut work = Work::begin();
    let session = work.client.done(json!({"type": "get_state"}))["sessionId"].clone();
    let mut hostile = work.hostile();
    hostile.done(json!({"type": "attach_session", "sessionId": session}));
    let mut stream = hostile.stream();
    let sending = thread::spawn(move || {
        let commands = "{\"type\":\"get_messages\"}\n".repeat(200_000);
        // The thread ends with the connection.
        stream.write_all(commands.as_bytes())
    });
    // The client takes none of the answers.
    hostile.wait_until_readable();
    for _ in 0..20 {
        work.client.done(json!({"type": "get_state"}));
    }
    let reading = work.hostile();
    hostile.stream().shutdown(Shutdown::Both).unwrap();
    let error = sending.join().unwrap().expect_err("the daemon takes no more than it can answer");
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    work.finish(MAY_GROW);
    drop(reading);
}

#[test]
fn one_that_asks_for_much_and_takes_nothing_is_asked_no_more() {
    let mut work = Work::begin();
    let mut hostile = work.hostile();
    // Each answer repeats the id of one megabyte.
    let question = format!("{{\"id\":\"{}\",\"type\":\"daemon_status\"}}\n", "i".repeat(1 << 20));
    let mut stream = hostile.stream();
    let sending = thread::spawn(move || (0..200).try_for_each(|_| stream.write_all(question.as_bytes())));
    hostile.wait_until_readable();
    for _ in 0..20 {
        work.client.done(json!({"type": "get_state"}));
    }
    let first = hostile.line();
    assert_eq!(first["id"].as_str().map(str::len), Some(1 << 20));
    hostile.stream().shutdown(Shutdown::Both).unwrap();
    sending.join().unwrap().expect_err("the daemon takes no more than it can answer");
    work.finish(MAY_GROW);
}

#[test]
fn three_hundred_that_connect_and_leave_leave_nothing_behind() {
    let mut work = Work::begin();
    for number in 0..300 {
        let mut stream = raw(&work.service);
        match number % 3 {
            0 => {}
            1 => stream.write_all(b"{\"type\":\"daemon_status\"}\n").unwrap(),
            _ => stream.write_all(b"{\"type\":").unwrap(),
        }
    }
    // Poll `daemon_status` until only the working client is left.
    let end = Instant::now() + DEADLINE;
    let mut there = 300;
    while there > 1 {
        assert!(Instant::now() < end, "{there} clients have not left");
        let status = work.client.done(json!({"type": "daemon_status"}));
        there = status["clients"].as_u64().expect("a count");
        let ever = status["counters"]["connections"].as_u64().expect("a count");
        assert!(there >= 1 && ever <= 301, "{status}");
        if ever < 301 {
            // Some connections were not accepted yet.
            there = 300;
        }
    }
    work.finish(MAY_GROW);
}

#[test]
fn three_hundred_that_stay_are_served_too() {
    let mut work = Work::begin();
    let mut staying: Vec<SocketClient> = (0..300).map(|_| work.hostile()).collect();
    for client in staying.iter_mut().step_by(29) {
        assert!(client.done(json!({"type": "daemon_status"}))["clients"].as_u64() > Some(1));
    }
    work.client.done(json!({"type": "get_state"}));
    work.finish(MAY_GROW);
    drop(staying);
}

#[test]
fn looking_cuts_off_nobody() {
    let flood: String = (0..400).map(|_| sse::text(&"0123456789".repeat(2_000))).collect();
    let answers = [flood + &sse::answer("End."), sse::answer("More.")];
    let server = MockServer::start(answers.map(Reply::stream));
    let home = Home::with_model(&server);
    // A client that lags is cut off at once.
    home.settings(&json!({"daemon": {"outboxBytes": 16_384, "lagGraceMs": 1}}));
    let service = Service::start(&home, &[]);
    let (mut sleeper, mut other) = (service.client(), service.client());
    sleeper.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    let opened = sleeper.done(json!({"type": "open_session", "cwd": home.project()}));
    let id = opened["sessionId"].clone();
    sleeper.done(json!({"type": "prompt", "message": "Flood"}));
    // Its own command waits until it reads, without delaying the others.
    sleeper.send(&json!({"id": "steer", "type": "steer", "message": "More."}));
    for _ in 0..200 {
        for kind in ["get_state", "get_messages", "get_session_stats", "get_tools", "get_commands"] {
            other.done(json!({"type": kind, "sessionId": id}));
        }
    }
    let events = sleeper.settled();
    assert!(events.iter().all(|line| line["type"] != "lagged"), "nobody was cut off");
    let numbers: Vec<u64> = events.iter().filter_map(|line| line["seq"].as_u64()).collect();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "no event is missing");
    assert!(events.iter().any(|line| line["id"] == "steer"), "its own command is answered");
}
