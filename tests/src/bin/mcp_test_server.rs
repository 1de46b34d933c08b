//! An MCP server for tests, on its standard streams. Its tools do what servers do, and what they should not.
//!
//! `mcp_test_server [--log FILE] [--resources] [--prompts] [--stay] [--broken] [--revision R]`: `--log` notes each received line, `--resources` and `--prompts` offer some, `--stay` goes on after the end of the
//! input, `--broken` ends at once with an error, `--revision` is the answer to `initialize`.

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
        ];
        let mut tools: Vec<Value> = names.iter().map(|name| tool(name, json!({}))).collect();
        tools.push(tool("echo", text));
        tools.push(tool("variable", json!({"name": {"type": "string"}})));
        tools.push(tool("late", json!({"millis": {"type": "integer"}})));
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
                send(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
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
            _ => {
                let error = json!({"code": -32602, "message": "unknown tool"});
                send(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
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
        log: None,
    };
    let mut stays = false;
    let mut args = env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--log" => {
                let path = args.next().unwrap_or_default();
                let file = OpenOptions::new().create(true).append(true).open(path);
                server.log = file.ok().map(|file| Arc::new(Mutex::new(file)));
            }
            "--revision" => server.revision = args.next().unwrap_or_default(),
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
