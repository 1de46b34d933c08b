//! Clients that join in the middle, fall behind or die, in one session that goes on.

use std::{
    io,
    sync::{Arc, Condvar, Mutex},
};

use agentd_e2e::{
    Ctl, Gate, Home, MockServer, Reply, Service, SocketClient, mock_server::Pieces, processes, sse,
    wait::LONG_DEADLINE,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{records, text};

/// Deltas before the gate, and as many after it. Each becomes an event of about [`EVENT_BYTES`].
const DELTAS: usize = 60_000;

/// The least number of bytes of an event with one letter.
const EVENT_BYTES: u64 = 150;

/// The bytes that the daemon may grow while it sends a stream that is several times as large: the queues of each client,
/// twice, the transcript, and code that is loaded on first use.
const MAY_GROW: u64 = 16 << 20;

/// The deltas that the server sends at once.
const BLOCK: usize = 500;

/// The deltas that the server may be ahead of a reader that keeps up: far less than the queue of a client holds.
const AHEAD: usize = 1_500;

/// The progress of the clients that keep up. The server waits for them, so that none is cut off however slow the machine is.
#[derive(Clone, Default)]
struct Pace(Arc<(Mutex<Vec<usize>>, Condvar)>);

/// The place of one client in a [`Pace`].
struct Reader {
    pace: Pace,
    at: usize,
}

impl Pace {
    /// A reader that has `letters` of the answer.
    fn reader(&self, letters: usize) -> Reader {
        let mut readers = self.0.0.lock().unwrap();
        readers.push(letters);
        Reader { pace: self.clone(), at: readers.len() - 1 }
    }

    /// Sends [`DELTAS`] deltas, after `before` letters of the answer.
    fn send(&self, pieces: &mut Pieces<'_>, letter: &str, before: usize) -> io::Result<()> {
        let block = sse::text(letter).repeat(BLOCK);
        for sent in (0..DELTAS).step_by(BLOCK) {
            pieces.send(block.as_bytes())?;
            let least = (before + sent + BLOCK).saturating_sub(AHEAD);
            let (readers, changed) = &*self.0;
            let behind = |readers: &mut Vec<usize>| readers.iter().any(|letters| *letters < least);
            let waited =
                changed.wait_timeout_while(readers.lock().unwrap(), LONG_DEADLINE, behind).unwrap().1;
            if waited.timed_out() {
                return Err(io::Error::other("a reader does not come along"));
            }
        }
        Ok(())
    }
}

impl Reader {
    fn has(&self, letters: usize) {
        let (readers, changed) = &*self.pace.0;
        readers.lock().unwrap()[self.at] = letters;
        changed.notify_all();
    }
}

/// A client, and the transcript that it can rebuild from the lines that it received.
struct View {
    client: SocketClient,
    session: String,
    epoch: Value,
    /// The number of the last event.
    seq: u64,
    /// The finished messages.
    messages: Vec<Value>,
    /// The text of the unfinished answer, from its deltas.
    streamed: String,
    /// Where the server waits for this client.
    reader: Option<Reader>,
}

impl View {
    /// Attaches, and starts with the messages that the session has.
    fn attach(service: &Service, session: &str, since: Option<(&Value, u64)>) -> (Self, Value) {
        let mut client = service.client();
        client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
        Self::of(client, session, since)
    }

    fn of(mut client: SocketClient, session: &str, since: Option<(&Value, u64)>) -> (Self, Value) {
        let since = since.map(|(epoch, seq)| json!({"epoch": epoch, "seq": seq}));
        let attached = client.done(json!({"type": "attach_session", "sessionId": session, "since": since}));
        let seq = attached["seq"].as_u64().expect("a number");
        let messages = client.done(json!({"type": "get_messages"}))["messages"].clone();
        let view = Self {
            client,
            session: session.to_owned(),
            epoch: attached["epoch"].clone(),
            seq,
            messages: messages.as_array().expect("a list").clone(),
            streamed: text(&attached["inFlight"]["message"]),
            reader: None,
        };
        (view, attached)
    }

    /// Lets the server wait for this client from here on.
    fn keep_up(&mut self, pace: &Pace) {
        self.reader = Some(pace.reader(self.streamed.len()));
    }

    /// Takes the next event, whose number must follow the last; `None` when the client is cut off instead.
    fn step(&mut self) -> Option<Value> {
        let event = self.client.line();
        if event["type"] == "lagged" {
            assert_eq!(event, json!({"type": "lagged", "sessionId": self.session, "fromSeq": self.seq + 1}));
            return None;
        }
        if event["type"] != "response" {
            self.seq += 1;
            assert_eq!(
                (&event["sessionId"], &event["seq"]),
                (&json!(self.session), &json!(self.seq)),
                "{event}"
            );
        }
        let delta = &event["assistantMessageEvent"];
        if delta["type"] == "text_delta" {
            self.streamed.push_str(delta["delta"].as_str().expect("a text"));
            if let Some(reader) = &self.reader {
                reader.has(self.streamed.len());
            }
        }
        if event["type"] == "message_end" {
            // The deltas equal the message.
            if event["message"]["role"] == "assistant" {
                assert_eq!(std::mem::take(&mut self.streamed), text(&event["message"]));
            }
            self.messages.push(event["message"].clone());
        }
        Some(event)
    }

    /// Takes events until the answer has this length.
    fn until_streamed(&mut self, length: usize) {
        while self.streamed.len() < length {
            self.step().expect("a client that keeps up is not cut off");
        }
    }

    fn until_settled(&mut self) {
        while self.step().expect("a client that keeps up is not cut off")["type"] != "agent_settled" {}
    }

    /// Takes the remaining events up to `lagged`.
    fn until_lagged(&mut self) {
        while self.step().is_some() {}
    }
}

fn deltas(letter: &str) -> String {
    sse::text(letter).repeat(DELTAS)
}

#[test]
fn clients_that_stay_or_come_back_have_the_whole_transcript() {
    let (first, second) = (Gate::new(), Gate::new());
    let (of_b, of_c) = (Pace::default(), Pace::default());
    let server = MockServer::start([{
        let (of_b, of_c) = (of_b.clone(), of_c.clone());
        Reply::stream(sse::text("a"))
            .gate(&first)
            .live(move |pieces| of_b.send(pieces, "b", 1))
            .gate(&second)
            .live(move |pieces| of_c.send(pieces, "c", 1 + DELTAS))
            .then(sse::end("stop", (1, 0, 1)))
    }]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut host = service.client();
    let opened = host.done(json!({"type": "open_session", "cwd": home.project(), "attach": false}));
    let session = opened["sessionId"].as_str().expect("an id").to_owned();

    let (mut steady, _) = View::attach(&service, &session, None);
    let (mut slow, _) = View::attach(&service, &session, None);
    let (mut slower, _) = View::attach(&service, &session, None);
    steady.client.send(&json!({"type": "prompt", "message": "Go."}));
    steady.until_streamed(1);
    // Two clients join in the middle of the message: one stays, the other is a program that will be killed.
    let (mut late, attached) = View::attach(&service, &session, None);
    assert_eq!(text(&attached["inFlight"]["message"]), "a", "{attached}");
    let mut program = Ctl::start(&home, &["attach", "--observe", &session]);
    program.wait_for_stdout("a");
    let before = processes::usage(service.id());

    steady.keep_up(&of_b);
    late.keep_up(&of_b);
    first.open();
    program.wait_for_stdout("bbb");
    program.signal(Signal::KILL);
    assert_eq!(program.finish().code, 128 + 9);
    // Both read on while the two slow ones do not. They receive far more than any queue may hold.
    let reading = std::thread::spawn(move || {
        late.until_streamed(1 + DELTAS);
        late
    });
    steady.until_streamed(1 + DELTAS);
    let late = reading.join().expect("the late one reads");
    second.wait_until_reached();

    // The slow clients were cut off. One comes back with its number, the other one starts anew.
    slow.until_lagged();
    assert!(slow.seq < steady.seq / 2, "{} of {}", slow.seq, steady.seq);
    slower.until_lagged();
    let (slow, again) = View::of(slow.client, &session, Some((&slow.epoch, slow.seq)));
    assert_eq!((&again["replayed"], slow.seq), (&json!(false), steady.seq), "so much is not kept");
    let (slower, again) = View::of(slower.client, &session, None);
    assert_eq!(text(&again["inFlight"]["message"]), steady.streamed);
    // A client that was away for a moment misses nothing and gets nothing twice.
    let away = steady.seq - 100;
    let (mut back, again) = View::attach(&service, &session, Some((&steady.epoch, away)));
    assert_eq!((&again["replayed"], &again["seq"]), (&json!(true), &json!(away)));
    back.streamed = steady.streamed[..steady.streamed.len() - 100].to_owned();

    let mut others = [slow, slower, late, back];
    steady.keep_up(&of_c);
    others.iter_mut().for_each(|view| view.keep_up(&of_c));
    second.open();
    let reading: Vec<_> = others
        .into_iter()
        .map(|mut view| {
            std::thread::spawn(move || {
                view.until_settled();
                view
            })
        })
        .collect();
    steady.until_settled();
    let after = processes::usage(service.id());

    let stored: Vec<Value> = records(&home.session_files()[0])
        .into_iter()
        .filter(|record| record["type"] == "message")
        .map(|record| record["message"].clone())
        .collect();
    assert_eq!(text(stored.last().expect("an answer")).len(), 1 + 2 * DELTAS);
    let shown =
        |view: &View| view.messages.iter().filter(|message| message["role"] != "system").cloned().collect();
    let expected: Vec<Value> = stored.into_iter().filter(|message| message["role"] != "system").collect();
    assert_eq!(shown(&steady), expected);
    for view in reading {
        let view = view.join().expect("each of them reads to the end");
        assert_eq!((shown(&view), view.seq), (expected.clone(), steady.seq));
    }
    // Two clients took all of it, and three a good part.
    let stream = 2 * steady.seq * EVENT_BYTES;
    assert!(stream > 2 * MAY_GROW, "{stream} bytes prove nothing");
    let grown = after.peak.saturating_sub(before.resident);
    assert!(grown < MAY_GROW, "the daemon grew by {grown} bytes: {before:?} {after:?}");
}

#[test]
fn a_client_that_is_alone_is_waited_for() {
    let server = MockServer::start([Reply::stream(deltas("b")).then(sse::end("stop", (1, 0, 1)))]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut host = service.client();
    let opened = host.done(json!({"type": "open_session", "cwd": home.project(), "attach": false}));
    let (mut alone, _) = View::attach(&service, opened["sessionId"].as_str().expect("an id"), None);
    alone.client.send(&json!({"type": "prompt", "message": "Go."}));
    // The client reads slowly, and receives everything.
    alone.client.wait_until_readable();
    alone.until_settled();
    assert_eq!(text(alone.messages.last().expect("an answer")).len(), DELTAS);
}

#[test]
fn a_plain_client_that_falls_behind_is_told_and_left() {
    let (first, second, pace) = (Gate::new(), Gate::new(), Pace::default());
    let server = MockServer::start([{
        let pace = pace.clone();
        Reply::stream(sse::text("a"))
            .gate(&first)
            .live(move |pieces| pace.send(pieces, "b", 1))
            .gate(&second)
            .then(sse::end("stop", (1, 0, 1)))
    }]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut plain = service.client();
    let opened = plain.done(json!({"type": "open_session", "cwd": home.project()}));
    let (mut steady, _) = View::attach(&service, opened["sessionId"].as_str().expect("an id"), None);
    steady.client.send(&json!({"type": "prompt", "message": "Go."}));
    steady.keep_up(&pace);
    first.open();
    steady.until_streamed(1 + DELTAS);
    let said = plain.closed();
    let last = said.last().expect("a last word");
    assert_eq!(
        (&last["type"], &last["success"], &last["code"]),
        (&json!("response"), &json!(false), &json!("aborted"))
    );
    assert!(said.iter().all(|line| line.get("seq").is_none()), "a plain client knows no numbers");
    second.open();
    steady.until_settled();
}
