//! An agent that is an MCP client: it starts `agentd mcp serve`, and holds every line that it gets against the official JSON Schemas.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
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

/// The revisions of the protocol whose schemas are there.
pub(crate) const LEGACY: &str = "2025-11-25";
pub(crate) const MODERN: &str = "2026-07-28";

/// The validators of a revision, by the name of a definition.
struct Schema {
    document: Value,
    validators: Mutex<HashMap<String, Arc<Validator>>>,
}

impl Schema {
    fn of(version: &str) -> Self {
        let path = binaries::workspace().join(format!("tests/data/mcp/schema-{version}.json"));
        let document = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        Self { document, validators: Mutex::default() }
    }

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

    /// The definition of the messages of a method.
    fn definition(&self, method: &str) -> &str {
        let definitions = self.document["$defs"].as_object().unwrap();
        let is_of = |definition: &Value| definition["properties"]["method"]["const"] == method;
        let found = definitions.iter().find(|(_, definition)| is_of(definition));
        found.unwrap_or_else(|| panic!("the schema has no messages of {method}")).0
    }

    /// The definition of the errors with a code, where it has one of its own.
    fn error_definition(&self, code: &Value) -> &str {
        let definitions = self.document["$defs"].as_object().unwrap();
        let is_of = |definition: &Value| {
            let parts = definition["properties"]["error"]["allOf"].as_array();
            parts.is_some_and(|parts| parts.iter().any(|part| part["properties"]["code"]["const"] == *code))
        };
        definitions.iter().find(|(_, it)| is_of(it)).map_or("JSONRPCErrorResponse", |(name, _)| name)
    }
}

static SCHEMAS: LazyLock<[(&str, Schema); 2]> =
    LazyLock::new(|| [LEGACY, MODERN].map(|version| (version, Schema::of(version))));

fn schema(version: &str) -> &'static Schema {
    &SCHEMAS.iter().find(|(of, _)| *of == version).unwrap().1
}

/// What a request was.
struct Sent {
    method: String,
    version: &'static str,
    tool: Option<String>,
}

/// An agent. Dropping it kills the server.
pub(crate) struct Agent {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    /// The requests that are not answered.
    sent: HashMap<String, Sent>,
    last_id: u64,
    /// The schemas of our tools' results.
    outputs: HashMap<String, Validator>,
    /// Everything that came, oldest first.
    pub(crate) seen: Vec<Value>,
}

impl Agent {
    /// Starts `agentd mcp serve` with more arguments, and does not say anything yet.
    pub(crate) fn start(home: &Home, args: &[&str]) -> Self {
        let mut command: Command = home.command(binaries::agentd());
        command.args(["mcp", "serve"]).args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("agentd starts");
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().expect("a piped stdout"));
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        let (sent, outputs) = (HashMap::new(), HashMap::new());
        Self { child, input, lines, sent, last_id: 0, outputs, seen: Vec::new() }
    }

    /// Starts it, says which capabilities the client has, and reads the list of tools.
    pub(crate) fn ready(home: &Home, args: &[&str], capabilities: &Value) -> Self {
        let mut agent = Self::start(home, args);
        agent.initialize(LEGACY, capabilities);
        agent.read_outputs(LEGACY);
        agent
    }

    /// Starts it for the stateless revision.
    pub(crate) fn stateless(home: &Home, args: &[&str]) -> Self {
        let mut agent = Self::start(home, args);
        agent.read_outputs(MODERN);
        agent
    }

    pub(crate) fn initialize(&mut self, version: &str, capabilities: &Value) -> Value {
        let info = json!({"name": "other-agent", "version": "1"});
        let params = json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": info});
        let result = self.call("initialize", params);
        self.notify("notifications/initialized", &json!({}));
        result
    }

    /// Keeps the schemas of results, so that every result is held against them.
    fn read_outputs(&mut self, version: &'static str) {
        let id = self.ask_as(version, "tools/list", json!({}), &json!({}));
        let list = self.reply(id)["result"].clone();
        for tool in list["tools"].as_array().unwrap() {
            let name = tool["name"].as_str().unwrap().to_owned();
            self.outputs.insert(name, jsonschema::validator_for(&tool["outputSchema"]).unwrap());
        }
        assert!(!self.outputs.is_empty());
    }

    /// Sends a line.
    pub(crate) fn line(&mut self, line: &str) {
        let input = self.input.as_mut().expect("an open stdin");
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    /// Sends a request as a client that has introduced itself, and gives its id.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.ask_as(LEGACY, method, params, &Value::Null)
    }

    /// Sends a request of a revision, in the stateless one with capabilities, and gives its id.
    pub(crate) fn ask_as(
        &mut self,
        version: &'static str,
        method: &str,
        mut params: Value,
        capabilities: &Value,
    ) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        if version == MODERN {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = MODERN.into();
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities.clone();
            params["_meta"]["io.modelcontextprotocol/clientInfo"] =
                json!({"name": "other-agent", "version": "1"});
        }
        let tool = params["name"].as_str().filter(|_| method == "tools/call").map(str::to_owned);
        self.sent.insert(id.to_string(), Sent { method: method.to_owned(), version, tool });
        self.line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        id
    }

    pub(crate) fn notify(&mut self, method: &str, params: &Value) {
        self.line(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    /// Cancels a request.
    pub(crate) fn cancel(&mut self, id: u64) {
        self.notify("notifications/cancelled", &json!({"requestId": id, "reason": "not needed any more"}));
    }

    /// Answers a request of the server.
    pub(crate) fn answer(&mut self, request: &Value, result: &Value) {
        self.line(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}).to_string());
    }

    /// The next line; `None` at the end.
    pub(crate) fn next(&mut self) -> Option<Value> {
        let line = match self.lines.recv_timeout(DEADLINE) {
            Ok(line) => line,
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => panic!("nothing came after: {:#?}", self.seen.last()),
        };
        let message: Value =
            serde_json::from_str(&line).unwrap_or_else(|_| panic!("stdout has no protocol: {line}"));
        self.check(&message);
        self.seen.push(message.clone());
        Some(message)
    }

    /// Holds a message against the schemas.
    fn check(&mut self, message: &Value) {
        match (message["method"].as_str(), message.get("id")) {
            // Notifications belong to no request: those of both revisions have to be right in both.
            (Some(method @ "notifications/subscriptions/acknowledged"), None) => {
                schema(MODERN).check(schema(MODERN).definition(method), message);
            }
            (Some(method), None) => SCHEMAS.iter().for_each(|(_, schema)| {
                schema.check("JSONRPCNotification", message);
                schema.check(schema.definition(method), message);
            }),
            // Only the older revisions have requests of servers.
            (Some(method), Some(_)) => {
                schema(LEGACY).check("JSONRPCRequest", message);
                schema(LEGACY).check(schema(LEGACY).definition(method), message);
            }
            (None, id) => {
                let sent = id.map(|id| {
                    self.sent.remove(&id.to_string()).expect("an answer to a request, and one only")
                });
                let (version, method, tool) =
                    sent.map_or((LEGACY, String::new(), None), |sent| (sent.version, sent.method, sent.tool));
                let schema = schema(version);
                match message.get("error") {
                    Some(error) => {
                        assert!(message.get("result").is_none(), "{message}");
                        schema.check(schema.error_definition(&error["code"]), message);
                    }
                    None => {
                        schema.check("JSONRPCResultResponse", message);
                        let result = &message["result"];
                        let is_input = result["resultType"] == "input_required";
                        let definition = match method.as_str() {
                            "tools/call" if is_input => "InputRequiredResult".to_owned(),
                            "ping" => "EmptyResult".to_owned(),
                            _ => schema.definition(&method).replace("Request", "Result"),
                        };
                        schema.check(&definition, result);
                        assert_eq!(result.get("resultType").is_some(), version == MODERN, "{message}");
                        if let Some(tool) = tool.filter(|_| !is_input) {
                            self.check_output(&tool, result);
                        }
                    }
                }
            }
        }
    }

    /// Holds the result of a tool against the tool's own schema. Only one that is an error may have none.
    fn check_output(&self, tool: &str, result: &Value) {
        let data = &result["structuredContent"];
        if data.is_null() {
            assert_eq!(result["isError"], true, "{tool} gave no data: {result}");
        } else if let Some(validator) = self.outputs.get(tool) {
            let problems: Vec<String> = validator.iter_errors(data).map(|error| error.to_string()).collect();
            assert!(problems.is_empty(), "{tool}: {data}\n{}", problems.join("\n"));
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

    /// Sends a request that must be refused, and gives its error.
    pub(crate) fn refused(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        let reply = self.reply(id);
        assert!(reply.get("result").is_none(), "{method}: {reply}");
        reply["error"].clone()
    }

    /// Calls a tool, and gives the id of the request.
    pub(crate) fn begin(&mut self, tool: &str, arguments: &Value) -> u64 {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Calls a tool that has to do what it is asked for, and gives its data.
    pub(crate) fn tool(&mut self, tool: &str, arguments: &Value) -> Value {
        let result = self.call("tools/call", json!({"name": tool, "arguments": arguments}));
        assert_ne!(result["isError"], true, "{tool}: {result}");
        result["structuredContent"].clone()
    }

    /// Calls a tool that has to fail, and gives the text of its failure.
    pub(crate) fn failure(&mut self, tool: &str, arguments: &Value) -> String {
        let result = self.call("tools/call", json!({"name": tool, "arguments": arguments}));
        assert_eq!(result["isError"], true, "{tool}: {result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// The notifications about progress that came so far.
    pub(crate) fn progress(&self) -> Vec<&Value> {
        let of = self.seen.iter().filter(|message| message["method"] == "notifications/progress");
        of.map(|message| &message["params"]).collect()
    }

    /// Closes stdin and waits for the end: gives what still came, and how long it took.
    pub(crate) fn close(mut self) -> (Vec<Value>, Duration, ExitStatus) {
        let before = self.seen.len();
        let started = Instant::now();
        self.input = None;
        while self.next().is_some() {}
        let status = self.child.wait().unwrap();
        (self.seen.split_off(before), started.elapsed(), status)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
