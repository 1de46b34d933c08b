//! The model: its answers keep the daemon busy, and it checks that requests are legal.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use agentd_e2e::{MockServer, Random, Reply, apis::ProviderApi, mock_server::Request, sse};
use serde_json::{Value, json};

use super::shared::Violation;

/// The file of every `edit`, and its initial content.
pub(crate) const EDITED: (&str, &str) = ("edited.txt", "x-end\n");

/// The text of a prompt that is answered at once.
pub(crate) const PROBE: &str = "PROBE";

/// The model server of a worker, for one life after the other.
pub(crate) struct Model {
    server: MockServer,
    script: Arc<Script>,
}

struct Script {
    random: Mutex<Random>,
    next: AtomicU64,
    complaints: Mutex<Vec<Violation>>,
    /// A number in the command line of every started process.
    token: String,
    /// See [`Model::stream_slowly`].
    is_slow: AtomicBool,
    /// See [`Model::answer_at_once`].
    is_calm: AtomicBool,
}

impl Model {
    /// Starts the server.
    pub(crate) fn start(token: &str) -> Self {
        let script = Arc::new(Script {
            random: Mutex::new(Random::new(0)),
            next: AtomicU64::new(1),
            complaints: Mutex::default(),
            token: token.to_owned(),
            is_slow: AtomicBool::new(false),
            is_calm: AtomicBool::new(false),
        });
        let answering = Arc::clone(&script);
        Self { server: MockServer::answering(move |request| answering.reply(request)), script }
    }

    /// Begins a life.
    pub(crate) fn begin(&self, random: Random) {
        *self.script.random.lock().unwrap() = random;
    }

    /// Streams text long enough for some of it to be stored.
    pub(crate) fn stream_slowly(&self, is_slow: bool) {
        self.script.is_slow.store(is_slow, Ordering::Relaxed);
    }

    /// Answers every request at once, without other work, so that queued messages are answered.
    pub(crate) fn answer_at_once(&self, is_calm: bool) {
        self.script.is_calm.store(is_calm, Ordering::Relaxed);
    }

    pub(crate) fn token(&self) -> &str {
        &self.script.token
    }

    pub(crate) fn base_url(&self) -> String {
        self.server.base_url()
    }

    /// The faults of requests since the last call.
    pub(crate) fn complaints(&self) -> Vec<Violation> {
        std::mem::take(&mut self.script.complaints.lock().unwrap())
    }
}

impl Script {
    fn reply(&self, request: &Request) -> Reply {
        // An illegal request panics, as in a test; here it becomes a violation.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| ProviderApi::Chat.assert_legal(&request.body))) {
            let seen = panic.downcast_ref::<String>().cloned().unwrap_or_default();
            self.complaints.lock().unwrap().push(Violation { promise: "requests are legal", seen });
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let messages = request.messages();
        let system = messages.first().map(|first| first["content"].to_string()).unwrap_or_default();
        if system.contains("You summarise conversations") {
            return Reply::stream(sse::answer(&format!("Summary {number}")));
        }
        let turns = messages.iter().rev().take_while(|message| message["role"] != "user").count();
        let is_probe = messages.last().is_some_and(|last| last["content"].to_string().contains(PROBE));
        if is_probe || self.is_calm.load(Ordering::Relaxed) {
            return Reply::stream(sse::answer(&format!("Here, {number}.")));
        }
        let mut random = self.random.lock().unwrap();
        let kind = if turns > 12 { 0 } else { random.below(0..100) };
        match kind {
            0..20 => Reply::stream(sse::answer(&format!("Answer {number}."))),
            20..36 => self.streamed(number, random.below(2..40), random.below(0..8)),
            36..40 => Reply::stream(sse::text(&format!("Half {number}"))).hang(),
            40..43 => {
                Reply::status(503, "application/json", r#"{"error":{"message":"overloaded"}}"#.as_bytes())
            }
            43..45 => Reply::stream(sse::text(&format!("Cut {number}"))).cut(),
            _ => {
                let calls: Vec<(String, &str, Value)> = (0..random.below(1..4))
                    .map(|index| {
                        let id = format!("call{number}n{index}");
                        let (tool, arguments) = self.call(&mut random, &id);
                        (id, tool, arguments)
                    })
                    .collect();
                let calls: Vec<(&str, &str, Value)> = calls
                    .iter()
                    .map(|(id, tool, arguments)| (id.as_str(), *tool, arguments.clone()))
                    .collect();
                Reply::stream(sse::calls(&calls))
            }
        }
    }

    /// Text in pieces, with pauses of some milliseconds.
    fn streamed(&self, number: u64, pieces: u64, pause: u64) -> Reply {
        let (pieces, pause) = if self.is_slow.load(Ordering::Relaxed) { (300, 10) } else { (pieces, pause) };
        Reply::stream(sse::text(&format!("Answer {number}:")))
            .live(move |out| {
                for piece in 0..pieces {
                    thread::sleep(Duration::from_millis(pause));
                    out.send(sse::text(&format!(" {piece}")).as_bytes())?;
                }
                Ok(())
            })
            .then(sse::end("stop", (10, 0, 2)))
    }

    fn call(&self, random: &mut Random, id: &str) -> (&'static str, Value) {
        let bash = |command: String| ("bash", json!({"command": command}));
        match random.below(0..14) {
            0..3 => ("write", json!({"path": format!("w-{id}.txt"), "content": format!("whole {id}\n")})),
            3..5 => {
                let edit = json!({"oldText": "x-end", "newText": format!("x-{id}\nx-end")});
                ("edit", json!({"path": EDITED.0, "edits": [edit]}))
            }
            5 => ("read", json!({"path": EDITED.0})),
            6 => bash("seq 1 30000".to_owned()),
            7 => {
                let command = format!("echo up {id}; sleep 86400.{}", self.token);
                ("bash", json!({"command": command, "background": true}))
            }
            8 => ("ls", json!({"path": "."})),
            _ => bash(script(random, id, &self.token)),
        }
    }
}

/// Commands that leave processes behind in every way.
pub(crate) fn script(random: &mut Random, id: &str, token: &str) -> String {
    let sleep = format!("sleep 86400.{token}");
    match random.below(0..8) {
        0 => format!("echo start {id}; {sleep}"),
        1 => format!("setsid {sleep} >/dev/null 2>&1 & echo bg {id}"),
        2 => format!("(setsid bash -c '{sleep} & disown; exit' &) >/dev/null 2>&1; echo double {id}"),
        3 => format!("nohup env -i {sleep} >/dev/null 2>&1 & echo nohup {id}"),
        4 => format!("(cd /; setsid env -i {sleep} &) >/dev/null 2>&1 </dev/null; echo bare {id}"),
        5 => format!("{sleep} & {sleep} & sleep 0.02; echo late {id}"),
        6 => format!("for i in 1 2 3 4 5; do echo $i {id}; sleep 0.01; done"),
        _ => format!("echo done {id}"),
    }
}
