//! Helpers of many test files.

use std::{fs, path::Path};

use agentd_e2e::{DEADLINE, Daemon, Home, MockServer, Reply, Service, SocketClient, ctl, sse};
use serde_json::{Value, json};

/// A prompt under the id `1`.
pub(crate) fn prompt(message: &str) -> Value {
    json!({"id": "1", "type": "prompt", "message": message})
}

/// The final assistant messages among events, in order.
pub(crate) fn answers(events: &[Value]) -> Vec<&Value> {
    ended(events, "assistant")
}

/// The final messages of a role among events, in order.
pub(crate) fn ended<'a>(events: &'a [Value], role: &str) -> Vec<&'a Value> {
    let ends = events.iter().filter(|event| event["type"] == "message_end");
    ends.map(|event| &event["message"]).filter(|message| message["role"] == role).collect()
}

/// Whether a file is empty, or is not there, as the intent log of a session with no work under way.
pub(crate) fn holds_nothing(path: &Path) -> bool {
    fs::metadata(path).map_or(true, |about| about.len() == 0)
}

/// Waits until the file is not locked. A lock of this process can outlive its file handle for a moment: a child that
/// another thread forked holds it until it executes its program.
pub(crate) fn wait_until_free(path: &Path) {
    let (free, waiting) = std::sync::mpsc::channel();
    let file = fs::File::open(path).expect("a file");
    std::thread::spawn(move || {
        file.lock().expect("a lock");
        let _ = free.send(());
    });
    waiting.recv_timeout(DEADLINE).expect("a file that nobody holds");
}

/// The text of a message.
pub(crate) fn text(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        content => {
            let blocks = content.as_array().into_iter().flatten();
            blocks.filter_map(|block| block["text"].as_str()).collect()
        }
    }
}

/// The types of events without consecutive repetitions.
pub(crate) fn kinds(events: &[Value]) -> Vec<&str> {
    let mut kinds: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    kinds.dedup();
    kinds
}

/// The records of a session file: the header first.
pub(crate) fn records(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    assert!(text.ends_with('\n'), "a session file ends with a whole line: {text}");
    text.lines().map(|line| serde_json::from_str(line).expect("a line of a session file is JSON")).collect()
}

/// The roles of the messages in a session file.
pub(crate) fn roles(file: &Path) -> Vec<String> {
    let messages = records(file).into_iter().filter(|record| record["type"] == "message");
    messages.map(|record| record["message"]["role"].as_str().expect("a role").to_owned()).collect()
}

/// Asserts that a text, such as an error, holds all of these parts.
pub(crate) fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing in: {text}");
    }
}

/// The error and the hint of a refused command.
pub(crate) fn complaint(response: &Value) -> String {
    [&response["error"], &response["hint"]]
        .into_iter()
        .filter_map(Value::as_str)
        .collect::<Vec<_>>()
        .join("\n")
}

/// The daemon that something starts in a home on demand. Dropping this ends it.
pub(crate) struct OnDemand<'a>(pub(crate) &'a Home);

impl OnDemand<'_> {
    /// The process id; `None` while no daemon runs.
    pub(crate) fn pid(&self) -> Option<u32> {
        let said = ctl::run(self.0, &["status", "--json"]);
        let status: Value = serde_json::from_str(&said.stdout).expect("one line of JSON");
        status["daemon"]["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok())
    }
}

impl Drop for OnDemand<'_> {
    fn drop(&mut self) {
        // The socket belongs to this home alone; a daemon that does not run is fine. `down` waits for the end of the
        // process. A panic here would abort the process of a test that already fails.
        let _ = std::panic::catch_unwind(|| ctl::run(self.0, &["down", "--abort"]));
    }
}

/// The loaded sessions of a home's daemon.
pub(crate) fn live_sessions(home: &Home) -> Vec<Value> {
    let said = ctl::run(home, &["sessions", "--live", "--json"]);
    let list: Value = serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
    list["sessions"].as_array().expect("a list").clone()
}

/// A client with a session, over stdin and stdout or over the socket.
pub(crate) trait TestClient {
    /// Sends a command.
    fn send(&mut self, command: Value);
    /// Sends a command that must succeed, and returns its data.
    fn done(&mut self, command: Value) -> Value;
    /// Sends a command that must be refused, and returns the response.
    fn refused(&mut self, command: Value) -> Value;
    /// Waits for the line that matches `wanted`, and returns it with all lines before it.
    fn lines_until(&mut self, what: &str, wanted: &dyn Fn(&Value) -> bool) -> Vec<Value>;

    /// Sends a prompt and waits for the end of the run.
    fn say(&mut self, message: &str) -> Vec<Value> {
        self.done(json!({"type": "prompt", "message": message}));
        self.lines_until("agent_settled", &|line| line["type"] == "agent_settled")
    }

    /// Sends a command, and returns all lines up to and including its response.
    fn lines_until_done(&mut self, mut command: Value) -> Vec<Value> {
        command["id"] = json!("until");
        self.send(command);
        self.lines_until("the response", &|line| line["id"] == "until" && line["type"] == "response")
    }

    fn state(&mut self) -> Value {
        self.done(json!({"type": "get_state"}))
    }

    /// The user messages that can be forked: id and text.
    fn fork_messages(&mut self) -> Vec<(String, String)> {
        let data = self.done(json!({"type": "get_fork_messages"}));
        let field = |message: &Value, name: &str| message[name].as_str().expect("a text").to_owned();
        let messages = data["messages"].as_array().expect("a list");
        messages.iter().map(|message| (field(message, "entryId"), field(message, "text"))).collect()
    }

    /// The messages of the context as `role: text`, without the system's.
    fn context(&mut self) -> Vec<String> {
        let data = self.done(json!({"type": "get_messages"}));
        let messages = data["messages"].as_array().expect("a list").iter();
        let said = messages.filter(|message| message["role"] != "system");
        said.map(|message| {
            format!("{}: {}", message["role"].as_str().expect("a role"), crate::support::text(message))
        })
        .collect()
    }
}

impl TestClient for Daemon {
    fn send(&mut self, command: Value) {
        Self::send(self, &command);
    }

    fn done(&mut self, command: Value) -> Value {
        Self::done(self, command)
    }

    fn refused(&mut self, command: Value) -> Value {
        Self::refused(self, command)
    }

    fn lines_until(&mut self, what: &str, wanted: &dyn Fn(&Value) -> bool) -> Vec<Value> {
        self.all_until(what, wanted)
    }
}

impl TestClient for SocketClient {
    fn send(&mut self, command: Value) {
        Self::send(self, &command);
    }

    fn done(&mut self, command: Value) -> Value {
        Self::done(self, command)
    }

    fn refused(&mut self, command: Value) -> Value {
        Self::refused(self, command)
    }

    fn lines_until(&mut self, what: &str, wanted: &dyn Fn(&Value) -> bool) -> Vec<Value> {
        self.all_until(what, wanted)
    }
}

/// Runs a test over stdin and stdout, then over the socket, each in a home of its own. `args` are the flags of the
/// session.
pub(crate) fn both(replies: &[Reply], args: &[&str], test: impl Fn(&Home, &MockServer, &mut dyn TestClient)) {
    let server = MockServer::start(replies.to_vec());
    let home = Home::with_model(&server);
    test(&home, &server, &mut Daemon::start(&home, args));

    let server = MockServer::start(replies.to_vec());
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    client.done(json!({"type": "open_session", "cwd": home.project(), "args": args}));
    test(&home, &server, &mut client);
}

/// A home in which the model `fake/fake` has a window of 1000 tokens, of which 200 are reserved.
pub(crate) fn small_window_home(server: &MockServer) -> Home {
    small_window_home_with(server, &json!({"reserveTokens": 200, "keepRecentTokens": 1}))
}

pub(crate) fn small_window_home_with(server: &MockServer, compaction: &Value) -> Home {
    let home = Home::new();
    home.configure(&json!({"providers": {"fake": {
        "baseUrl": server.base_url(), "api": "openai-completions", "apiKey": "test-key-1234",
        "models": [{"id": "fake", "contextWindow": 1000, "maxTokens": 100}],
    }}}));
    home.settings(&json!({"compaction": compaction, "retry": {"baseDelayMs": 1}}));
    home
}

/// An answer to a request of `input` tokens.
pub(crate) fn answer_to_tokens(text: &str, input: u64) -> Reply {
    Reply::stream(sse::text(text) + &sse::end("stop", (input, 0, 2)))
}

/// A call of `read` in answer to a request of `input` tokens.
pub(crate) fn read_call(path: &str, input: u64) -> Reply {
    Reply::stream(
        sse::call_start(0, "call_1", "read")
            + &sse::call_arguments(0, &json!({"path": path}).to_string())
            + &sse::end("tool_calls", (input, 0, 5)),
    )
}

pub(crate) fn context_overflow() -> Reply {
    Reply::status(400, "application/json", r#"{"error":{"message":"maximum context length is 1000 tokens"}}"#)
}

/// Returns `true` for a request for a summary.
pub(crate) fn asks_for_summary(request: &agentd_e2e::mock_server::Request) -> bool {
    let system = request.messages()[0]["content"].to_string();
    system.contains("You summarise conversations")
}

pub(crate) fn of_kind<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

/// The types of events from the first `from` on, without those of messages.
pub(crate) fn frame_from<'a>(events: &'a [Value], from: &str) -> Vec<&'a str> {
    let kinds = events.iter().filter_map(|event| event["type"].as_str());
    kinds.skip_while(|kind| *kind != from).filter(|kind| !kind.starts_with("message_")).collect()
}
