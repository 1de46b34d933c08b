//! An MCP server for tests, on its standard streams. Its tools do what servers do, and what they should not.
//!
//! `mcp_test_server [--log FILE] [--resources] [--prompts] [--stay] [--broken] [--revision R] [--stateless] [--unknown] [--tools N] [--tools-in FILE] [--delay MS]`: `--log` notes each received line, `--resources` and `--prompts` offer some, `--stay` goes on after the end of the
//! input, `--broken` ends at once with an error, `--revision` is the answer to `initialize`, `--stateless` knows the revision without it alone, `--unknown` ends on the first request of that revision, `--tools` adds so many with
//! schemas as they are usual, `--tools-in` as many as the file says, and `--delay` waits before it answers its first request.

use std::{
    collections::HashMap,
    env,
    fs::{File, OpenOptions},
    io::{self, BufRead as _, Write as _},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

/// A red pixel.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

struct Server {
    /// Calls that wait for the client's answer to a request: the id of the request, that of the call.
    asked: HashMap<u64, Value>,
    /// Whether the tool `later` is there.
    has_later: bool,
    has_resources: bool,
    has_prompts: bool,
    /// Whether the prompt `later` is there.
    has_later_prompt: bool,
    revision: String,
    is_stateless: bool,
    ends_on_unknown: bool,
    /// Further tools.
    more_tools: usize,
    /// The request for news of a stateless client.
    subscription: Value,
    log: Option<Arc<Mutex<File>>>,
}

/// A message to the client, unless it has left.
fn send(message: &Value) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{message}").and_then(|()| out.flush());
}

fn raw(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn answer(id: &Value, result: Value) {
    send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

fn says(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn tool(name: &str, properties: Value) -> Value {
    json!({
        "name": name, "description": format!("Does {name}."),
        "inputSchema": {"type": "object", "properties": properties},
    })
}

/// A tool whose description and schema have the usual length.
fn usual(number: usize) -> Value {
    let field = |about: &str| json!({"type": "string", "description": about});
    json!({
        "name": format!("usual_{number}"),
        "description": "Searches the records of the service by words and filters, and returns the best matches with their ids, \
                        titles, states and the people that they are assigned to.",
        "inputSchema": {"type": "object", "required": ["query"], "properties": {
            "query": field("Words to search for; several are combined by AND"),
            "project": field("The project's key, such as ABC; without it, all projects are searched"),
            "state": {"type": "string", "enum": ["open", "in_progress", "closed"], "description": "Only records in this state"},
            "limit": {"type": "integer", "minimum": 1, "maximum": 100, "description": "The most matches (default 20)"},
        }},
    })
}

impl Server {
    fn tools(&self) -> Vec<Value> {
        let text = json!({"text": {"type": "string"}});
        let names = [
            "picture",
            "progress",
            "hang",
            "fail",
            "refuse",
            "big",
            "huge",
            "garbage",
            "crash",
            "close_output",
            "add_tool",
            "roots",
            "flood",
            "log",
            "add_prompt",
            "ask",
            "page",
        ];
        let mut tools: Vec<Value> = names.iter().map(|name| tool(name, json!({}))).collect();
        let mut echo = tool("echo", text);
        echo["annotations"] = json!({"title": "Say again", "readOnlyHint": true, "openWorldHint": false});
        tools.push(echo);
        let mut remove = tool("remove", json!({}));
        remove["annotations"] = json!({"readOnlyHint": false, "destructiveHint": true});
        tools.push(remove);
        tools.push(tool("variable", json!({"name": {"type": "string"}})));
        tools.push(tool("late", json!({"millis": {"type": "integer"}})));
        tools.extend((0..self.more_tools).map(usual));
        tools.push(json!({"name": "bad", "inputSchema": {"type": "array"}}));
        if self.has_later {
            tools.push(tool("later", json!({})));
        }
        tools
    }

    fn note(&self, line: &str) {
        if let Some(log) = &self.log {
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = writeln!(log, "{line}").and_then(|()| log.flush());
        }
    }

    fn receive(&mut self, message: &Value) {
        let id = message["id"].clone();
        match message["method"].as_str() {
            Some("server/discover") if self.ends_on_unknown => std::process::exit(4),
            Some("server/discover") if self.is_stateless => {
                let result = json!({
                    "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": true}},
                    "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "test", "version": "1.2.3"}},
                    "instructions": "Use it in tests.", "ttlMs": 0, "cacheScope": "private",
                });
                answer(&id, result);
            }
            Some("subscriptions/listen") => {
                let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
                send(
                    &json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {"_meta": meta}}),
                );
                self.subscription = id;
            }
            Some("initialize" | "server/discover")
                if self.is_stateless || message["method"] == "server/discover" =>
            {
                send(
                    &json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown method"}}),
                );
            }
            Some("initialize") => {
                // Some servers speak first.
                send(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
                let mut capabilities = json!({"tools": {"listChanged": true}});
                if self.has_resources {
                    capabilities["resources"] = json!({});
                }
                if self.has_prompts {
                    capabilities["prompts"] = json!({"listChanged": true});
                }
                let result = json!({
                    "protocolVersion": self.revision, "capabilities": capabilities,
                    "serverInfo": {"name": "test", "version": "1.2.3"}, "instructions": "Use it in tests.",
                });
                answer(&id, result);
            }
            Some("tools/list") => match message["params"]["cursor"].as_str() {
                None => answer(&id, json!({"tools": self.tools()[..3], "nextCursor": "more"})),
                Some(_) => answer(&id, json!({"tools": self.tools()[3..], "nextCursor": ""})),
            },
            Some("resources/list") => {
                let resources = json!([
                    {"uri": "test:notes", "name": "notes", "icons": [{"src": "x"}], "mimeType": "text/plain"},
                    {"uri": "ui://screen", "name": "screen"},
                ]);
                answer(&id, json!({"resources": resources}));
            }
            Some("resources/read") if message["params"]["uri"] == "test:a b/long?x=1" => {
                let contents = json!([{"uri": "test:a b/long?x=1", "text": "line\n".repeat(3000)}]);
                answer(&id, json!({"contents": contents}));
            }
            Some("resources/read") if message["params"]["uri"] == "test:picture" => {
                let contents = json!([{"uri": "test:picture", "mimeType": "image/png", "blob": PIXEL}]);
                answer(&id, json!({"contents": contents}));
            }
            Some("resources/read") if message["params"]["uri"] == "test:notes" => {
                let contents =
                    json!([{"uri": "test:notes", "mimeType": "text/plain", "text": "what was noted"}]);
                answer(&id, json!({"contents": contents}));
            }
            Some("resources/read") => {
                let error = json!({"code": -32002, "message": "no such resource"});
                send(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
            Some("resources/templates/list") => {
                send(
                    &json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown method"}}),
                );
            }
            Some("prompts/list") => answer(&id, json!({"prompts": self.prompts()})),
            Some("prompts/get") => self.prompt(&id, &message["params"]),
            Some("tools/call") => self.call(&id, &message["params"]),
            Some(_) => {}
            None => {
                let asked = id.as_u64().and_then(|id| self.asked.remove(&id));
                if let Some(call) = asked {
                    answer(&call, says(&message["result"].to_string()));
                }
            }
        }
    }

    fn prompts(&self) -> Vec<Value> {
        let mut prompts = vec![
            json!({"name": "review", "description": "Reviews a file.", "arguments": [
                {"name": "file", "required": true}, {"name": "focus"}
            ]}),
            json!({"name": "show"}),
            json!({"name": "hang"}),
            json!({"name": "refuse"}),
        ];
        if self.has_later_prompt {
            prompts.push(json!({"name": "later"}));
        }
        prompts
    }

    fn prompt(&self, id: &Value, params: &Value) {
        let said = |text: &str| json!({"role": "user", "content": {"type": "text", "text": text}});
        match params["name"].as_str().unwrap_or_default() {
            "review" => {
                let text = format!("Review with {}.", params["arguments"]);
                answer(id, json!({"messages": [said(&text)]}));
            }
            "show" => {
                let image = json!({"type": "image", "data": PIXEL, "mimeType": "image/png"});
                let resource =
                    json!({"type": "resource", "resource": {"uri": "test:notes", "text": "what was noted"}});
                let messages = json!([
                    said("Look at this."), {"role": "user", "content": image}, {"role": "user", "content": resource}
                ]);
                answer(id, json!({"messages": messages}));
            }
            "hang" => self.note("hanging"),
            _ => {
                let error = json!({"code": -32602, "message": "no such prompt"});
                send(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
        }
    }

    fn call(&mut self, id: &Value, params: &Value) {
        let arguments = &params["arguments"];
        match params["name"].as_str().unwrap_or_default() {
            "echo" => answer(id, says(arguments["text"].as_str().unwrap_or_default())),
            "picture" => {
                let content = json!([{"type": "image", "data": PIXEL, "mimeType": "image/png"}]);
                answer(id, json!({"content": content, "structuredContent": {"width": 1}}));
            }
            "progress" => {
                let token = &params["_meta"]["progressToken"];
                let progress =
                    json!({"progressToken": token, "progress": 1, "total": 2, "message": "half way"});
                send(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}));
                answer(id, says("done"));
            }
            "ask" => self.ask(id, params),
            "page" => {
                let page = json!({"mode": "url", "elicitationId": "p", "message": "Sign in there.", "url": "https://pages.example/in"});
                let error =
                    json!({"code": -32042, "message": "a page first", "data": {"elicitations": [page]}});
                send(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
            "hang" => self.note("hanging"),
            "late" => {
                let (id, millis) = (id.clone(), arguments["millis"].as_u64().unwrap_or_default());
                thread::spawn(move || {
                    thread::sleep(Duration::from_millis(millis));
                    answer(&id, says("late"));
                });
            }
            "fail" => {
                answer(id, json!({"isError": true, "content": [{"type": "text", "text": "it failed"}]}))
            }
            "refuse" => {
                let error = json!({"code": -32602, "message": "refused"});
                send(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
            "big" => answer(id, says(&"line of text\n".repeat(10_000))),
            "huge" => answer(id, says(&"x".repeat(20 << 20))),
            "garbage" => {
                raw("\n{\"jsonrpc\": \"2.0\", \"id\"\n\u{0}\u{1}\n[]\n");
                answer(&json!(99_999), says("for nobody"));
                answer(&json!("1"), says("an id of another kind"));
                answer(id, says("right"));
                answer(id, says("again"));
            }
            "crash" => {
                let _ =
                    writeln!(io::stderr(), "crashing with {}", env::var("TEST_SECRET").unwrap_or_default());
                std::process::exit(3);
            }
            "close_output" => {
                // The descriptor is replaced by a file that nobody reads.
                if let Ok(null) = OpenOptions::new().write(true).open("/dev/null") {
                    let _ = rustix::stdio::dup2_stdout(null);
                }
            }
            "add_tool" => {
                self.has_later = true;
                let mut news = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
                if self.is_stateless {
                    news["params"] =
                        json!({"_meta": {"io.modelcontextprotocol/subscriptionId": self.subscription}});
                }
                send(&news);
                answer(id, says("added"));
            }
            "roots" => {
                self.asked.insert(0, id.clone());
                send(&json!({"jsonrpc": "2.0", "id": 0, "method": "roots/list"}));
            }
            "flood" => {
                for count in 0..20_000 {
                    let params = json!({"level": "info", "data": "noise", "count": count});
                    send(&json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params}));
                    send(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
                }
                answer(id, says("flooded"));
            }
            "add_prompt" => {
                self.has_later_prompt = true;
                send(&json!({"jsonrpc": "2.0", "method": "notifications/prompts/list_changed"}));
                answer(id, says("added"));
            }
            "log" => {
                let secret = env::var("TEST_SECRET").unwrap_or_default();
                let data = format!("opened with {secret}\nand more");
                let params = json!({"level": "error", "logger": "db", "data": data});
                send(&json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params}));
                let _ = writeln!(io::stderr(), "a word with {secret}");
                answer(id, says("logged"));
            }
            "variable" => {
                let name = arguments["name"].as_str().unwrap_or_default();
                answer(id, says(&env::var(name).unwrap_or_else(|_| "(not set)".to_owned())));
            }
            "later" => answer(id, says("later")),
            "remove" => answer(id, says("removed")),
            _ => {
                let error = json!({"code": -32602, "message": "unknown tool"});
                send(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
        }
    }
}

impl Server {
    /// Asks the user for a name, and says what came of it.
    fn ask(&mut self, id: &Value, params: &Value) {
        let schema = json!({"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string", "title": "Name"}, "age": {"type": "integer", "default": 30}}});
        let question = json!({"mode": "form", "message": "Who is it?", "requestedSchema": schema});
        if !self.is_stateless {
            self.asked.insert(7, id.clone());
            return send(
                &json!({"jsonrpc": "2.0", "id": 7, "method": "elicitation/create", "params": question}),
            );
        }
        match params.get("inputResponses") {
            None => {
                let requests = json!({"who": {"method": "elicitation/create", "params": question}});
                let result = json!({"resultType": "input_required", "inputRequests": requests, "requestState": "state-1"});
                answer(id, result);
            }
            Some(responses) => {
                let text = format!("{} {}", params["requestState"], responses["who"]);
                let mut result = says(&text);
                result["resultType"] = json!("complete");
                answer(id, result);
            }
        }
    }
}

fn main() {
    let mut server = Server {
        asked: HashMap::new(),
        has_later: false,
        has_resources: false,
        has_prompts: false,
        has_later_prompt: false,
        revision: "2025-11-25".to_owned(),
        is_stateless: false,
        ends_on_unknown: false,
        more_tools: 0,
        subscription: Value::Null,
        log: None,
    };
    let (mut stays, mut delay) = (false, Duration::ZERO);
    let mut args = env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--log" => {
                let path = args.next().unwrap_or_default();
                let file = OpenOptions::new().create(true).append(true).open(path);
                server.log = file.ok().map(|file| Arc::new(Mutex::new(file)));
            }
            "--revision" => server.revision = args.next().unwrap_or_default(),
            "--tools" => {
                server.more_tools = args.next().and_then(|count| count.parse().ok()).unwrap_or_default()
            }
            "--tools-in" => {
                let count = std::fs::read_to_string(args.next().unwrap_or_default()).ok();
                server.more_tools = count.and_then(|text| text.trim().parse().ok()).unwrap_or_default();
            }
            "--delay" => {
                let millis = args.next().and_then(|millis| millis.parse().ok()).unwrap_or_default();
                delay = Duration::from_millis(millis);
            }
            "--stateless" => server.is_stateless = true,
            "--unknown" => server.ends_on_unknown = true,
            "--resources" => server.has_resources = true,
            "--prompts" => server.has_prompts = true,
            "--stay" => stays = true,
            "--broken" => {
                let _ =
                    writeln!(io::stderr(), "cannot start: {}", env::var("TEST_SECRET").unwrap_or_default());
                std::process::exit(1);
            }
            _ => {}
        }
    }
    server.note("started");
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        server.note(&line);
        thread::sleep(std::mem::take(&mut delay));
        if let Ok(message) = serde_json::from_str(&line) {
            server.receive(&message);
        }
    }
    server.note("end of input");
    if stays {
        loop {
            thread::park();
        }
    }
}
