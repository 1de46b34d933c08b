//! An editor for tests: it starts `agentd acp`, and holds every line that it gets against the official JSON Schema.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        Arc, LazyLock, Mutex,
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    thread,
    time::{Duration, Instant},
};

use agentd_e2e::{DEADLINE, Home, binaries};
use jsonschema::Validator;
use serde_json::{Value, json};

/// What a client has that can do everything.
pub(crate) fn able() -> Value {
    json!({
        "session": {"notices": {}, "compaction": {}},
        "elicitation": {"form": {}},
        "fs": {"readTextFile": true, "writeTextFile": true},
        "terminal": true,
    })
}

/// The validators of the schema, by the name of a definition.
struct Schema {
    document: Value,
    validators: Mutex<HashMap<String, Arc<Validator>>>,
}

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let path = binaries::workspace().join("tests/data/acp/schema.json");
    let document = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    Schema { document, validators: Mutex::default() }
});

impl Schema {
    /// Fails unless the value is what the definition says.
    fn check(&self, definition: &str, value: &Value) {
        let validator = {
            let mut validators = self.validators.lock().unwrap();
            let validator = validators.entry(definition.to_owned()).or_insert_with(|| {
                let schema =
                    json!({"$defs": self.document["$defs"], "$ref": format!("#/$defs/{definition}")});
                Arc::new(jsonschema::validator_for(&schema).unwrap())
            });
            Arc::clone(validator)
        };
        let problems: Vec<String> =
            validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(problems.is_empty(), "no {definition}: {value}\n{}", problems.join("\n"));
    }

    /// The definition for a method: what the side takes (`Request`, `Notification`) or gives (`Response`).
    fn definition(&self, method: &str, side: &str, ending: &str) -> String {
        let definitions = self.document["$defs"].as_object().unwrap();
        let found = definitions.iter().find(|(name, definition)| {
            definition["x-method"] == method && definition["x-side"] == side && name.ends_with(ending)
        });
        found.unwrap_or_else(|| panic!("the schema has no {ending} of {method}")).0.clone()
    }
}

/// An editor. Dropping it kills the agent.
pub(crate) struct Editor {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    /// The methods of requests that are not answered.
    asked: HashMap<String, String>,
    last_id: u64,
    /// Held by a test that wants no more to be read of the agent's output.
    pub(crate) reading: Arc<Mutex<()>>,
    /// Everything that came, oldest first.
    pub(crate) seen: Vec<Value>,
}

impl Editor {
    /// Starts `agentd acp` with more arguments, and does not say anything yet.
    pub(crate) fn start(home: &Home, args: &[&str]) -> Self {
        let mut command = home.command(binaries::agentd());
        command.arg("acp").args(args);
        Self::run(command)
    }

    /// Starts an agent by a command.
    pub(crate) fn run(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("agentd starts");
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().expect("a piped stdout"));
        let reading = Arc::new(Mutex::new(()));
        let may_read = Arc::clone(&reading);
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                drop(may_read.lock().unwrap());
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        Self { child, input, lines, asked: HashMap::new(), last_id: 0, reading, seen: Vec::new() }
    }

    /// Starts it and says which capabilities the client has.
    pub(crate) fn ready(home: &Home, args: &[&str], capabilities: &Value) -> Self {
        let mut editor = Self::start(home, args);
        editor.initialize(capabilities);
        editor
    }

    pub(crate) fn initialize(&mut self, capabilities: &Value) -> Value {
        let params = json!({
            "protocolVersion": 1, "clientCapabilities": capabilities, "clientInfo": {"name": "editor", "version": "1"},
        });
        self.call("initialize", params)
    }

    /// Sends a line.
    pub(crate) fn line(&mut self, line: &str) {
        let input = self.input.as_mut().expect("an open stdin");
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    /// Sends a request, and gives its id.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        if method != "session/fork" && !method.starts_with('_') {
            SCHEMA.check(&SCHEMA.definition(method, "agent", "Request"), &params);
        }
        self.asked.insert(id.to_string(), method.to_owned());
        self.line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        id
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.line(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    /// Answers a request of the agent.
    pub(crate) fn answer(&mut self, request: &Value, result: Value) {
        self.line(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}).to_string());
    }

    /// Chooses an option of a question.
    pub(crate) fn choose(&mut self, request: &Value, option: &str) {
        self.answer(request, json!({"outcome": {"outcome": "selected", "optionId": option}}));
    }

    /// The next line; `None` at the end.
    pub(crate) fn next(&mut self) -> Option<Value> {
        let line = match self.lines.recv_timeout(DEADLINE) {
            Ok(line) => line,
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {
                panic!("nothing came after: {:#?}", self.seen.last())
            }
        };
        let message: Value =
            serde_json::from_str(&line).unwrap_or_else(|_| panic!("stdout has no protocol: {line}"));
        self.check(&message);
        self.seen.push(message.clone());
        Some(message)
    }

    /// The next line as it stands.
    pub(crate) fn raw_next(&mut self) -> String {
        self.lines.recv_timeout(DEADLINE).expect("a line")
    }

    /// Holds a message against the schema.
    fn check(&mut self, message: &Value) {
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        match (message["method"].as_str(), message.get("id")) {
            (Some("$/cancel_request"), None) => SCHEMA.check("CancelRequestNotification", &message["params"]),
            (Some(method), None) => {
                SCHEMA.check(&SCHEMA.definition(method, "client", "Notification"), &message["params"]);
            }
            (Some(method), Some(_)) => {
                SCHEMA.check(&SCHEMA.definition(method, "client", "Request"), &message["params"]);
            }
            (None, Some(id)) => match message.get("error") {
                Some(error) => {
                    SCHEMA.check("Error", error);
                    self.asked.remove(&id.to_string());
                }
                None => {
                    let method = self.asked.remove(&id.to_string()).expect("an answer to a request");
                    let method = if method == "session/fork" { "session/new" } else { &method };
                    SCHEMA.check(&SCHEMA.definition(method, "agent", "Response"), &message["result"]);
                }
            },
            (None, None) => panic!("neither a request nor an answer: {message}"),
        }
    }

    /// Waits for a message, and gives it.
    pub(crate) fn until(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.next().unwrap_or_else(|| panic!("the output ended before {what}"));
            if wanted(&message) {
                return message;
            }
        }
    }

    /// Waits for the answer to a request, with its result or error.
    pub(crate) fn reply(&mut self, id: u64) -> Value {
        self.until(&format!("the answer to {id}"), |message| {
            message["id"] == id && message.get("method").is_none()
        })
    }

    /// Sends a request that must succeed, and gives its result.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        let reply = self.reply(id);
        assert!(reply.get("error").is_none(), "{method}: {reply}");
        reply["result"].clone()
    }

    /// Sends a request that must fail, and gives its error.
    pub(crate) fn refused(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        let reply = self.reply(id);
        assert!(reply.get("result").is_none(), "{method}: {reply}");
        reply["error"].clone()
    }

    /// Opens a session in the home's project, and gives its id.
    pub(crate) fn new_session(&mut self, home: &Home) -> String {
        let opened = self.call("session/new", json!({"cwd": home.project(), "mcpServers": []}));
        opened["sessionId"].as_str().expect("an id").to_owned()
    }

    /// Sends a prompt of text, and gives the id of the request.
    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
        self.ask("session/prompt", prompt)
    }

    /// Sends a prompt, and gives the stop reason.
    pub(crate) fn turn(&mut self, session: &str, text: &str) -> String {
        let id = self.prompt(session, text);
        let reply = self.reply(id);
        reply["result"]["stopReason"].as_str().unwrap_or_else(|| panic!("{reply}")).to_owned()
    }

    /// Waits for a request of the agent.
    pub(crate) fn question(&mut self, method: &str) -> Value {
        self.until(method, |message| message["method"] == method)
    }

    /// Waits for an update of a kind.
    pub(crate) fn update(&mut self, kind: &str) -> Value {
        let message = self.until(kind, |message| message["params"]["update"]["sessionUpdate"] == kind);
        message["params"]["update"].clone()
    }

    /// The updates of a kind that came so far.
    pub(crate) fn updates(&self, kind: &str) -> Vec<&Value> {
        let updates = self.seen.iter().map(|message| &message["params"]["update"]);
        updates.filter(|update| update["sessionUpdate"] == kind).collect()
    }

    /// The text of the answers that came so far.
    pub(crate) fn text(&self) -> String {
        let chunks = self.updates("agent_message_chunk");
        chunks.into_iter().filter_map(|chunk| chunk["content"]["text"].as_str()).collect()
    }

    /// Closes stdin and waits for the end: gives what still came, and how long it took.
    pub(crate) fn close(mut self) -> (Vec<Value>, Duration, std::process::ExitStatus) {
        let before = self.seen.len();
        let started = Instant::now();
        self.input = None;
        while self.next().is_some() {}
        let status = self.child.wait().unwrap();
        (self.seen.split_off(before), started.elapsed(), status)
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
