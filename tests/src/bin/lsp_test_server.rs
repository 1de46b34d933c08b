//! A language server for tests, for a language of its own: it does what servers do, and what they should not.
//!
//! A file `.toy` has lines `def NAME COUNT`, `call NAME COUNT` and `import FILE`. A call of what no file of the folder defines is an error,
//! and so is one with another count. Arguments: `--pull` answers for diagnostics instead of sending them; `--utf8`; `--hang METHOD`,
//! `--crash METHOD`, `--big METHOD`, `--flood METHOD` (notifications without end), `--memory METHOD` (takes memory without end);
//! `--child` leaves a process behind; `--odd` is off the protocol wherever clients can bear it; `--late MS` sends diagnostics later;
//! `--outside` has renames change a file outside of the folder; `--log` notes all methods in `lsp.log` of the folder; `--tell` writes the
//! name of the first file that it gets to the pipe `opened` there.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::zombie_processes,
    reason = "a server of tests: what it cannot do is the fault of a test"
)]

use std::{
    collections::BTreeMap,
    env, fs,
    io::{self, BufRead, Write},
    path::{Path, PathBuf},
    process::{Command, exit},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

fn main() {
    let mut server = Server::new(env::args().skip(1).collect());
    eprintln!("the toy server begins");
    if server.has("--odd") {
        print!("Toy server 1.0\n\n");
    }
    let mut input = io::stdin().lock();
    while let Some(message) = read(&mut input) {
        server.receive(&message);
    }
}

fn read(input: &mut impl BufRead) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if input.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("Content-Length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    input.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

/// What the server says. Two threads may speak.
#[derive(Clone)]
struct Output(Arc<Mutex<io::Stdout>>);

impl Output {
    fn send(&self, message: &Value) {
        let body = message.to_string();
        let mut out = self.0.lock().unwrap();
        let written = write!(out, "Content-Length: {}\r\n\r\n{body}", body.len());
        if written.and_then(|()| out.flush()).is_err() {
            exit(0);
        }
    }
}

struct Server {
    args: Vec<String>,
    out: Output,
    root: PathBuf,
    /// The open texts and their versions.
    open: BTreeMap<PathBuf, (String, i64)>,
    is_utf8: bool,
    /// The request that waits for an answer of the client.
    executing: Option<Value>,
}

/// A word of a line: where it stands.
struct Word {
    path: PathBuf,
    line: usize,
    kind: String,
    name: String,
    count: String,
}

impl Server {
    fn new(args: Vec<String>) -> Self {
        let out = Output(Arc::new(Mutex::new(io::stdout())));
        Self { args, out, root: PathBuf::new(), open: BTreeMap::new(), is_utf8: false, executing: None }
    }

    fn has(&self, flag: &str) -> bool {
        self.args.iter().any(|arg| arg == flag)
    }

    /// Whether a flag names a method.
    fn at(&self, flag: &str, method: &str) -> bool {
        self.args.windows(2).any(|pair| pair[0] == flag && pair[1] == method)
    }

    fn receive(&mut self, message: &Value) {
        let Some(method) = message["method"].as_str() else { return self.answered(message) };
        if self.has("--log") && !self.root.as_os_str().is_empty() {
            let mut log =
                fs::OpenOptions::new().create(true).append(true).open(self.root.join("lsp.log")).unwrap();
            writeln!(log, "{method} {}", message["params"]).unwrap();
        }
        self.misbehave(method, message);
        let params = &message["params"];
        match method {
            "initialized"
            | "$/cancelRequest"
            | "textDocument/didSave"
            | "workspace/didChangeConfiguration" => {}
            "exit" => exit(0),
            "textDocument/didOpen" => {
                let document = &params["textDocument"];
                self.put(&document["uri"], &document["text"], &document["version"]);
                if self.has("--tell") {
                    self.args.retain(|arg| arg != "--tell");
                    fs::write(self.root.join("opened"), document["uri"].as_str().unwrap()).unwrap();
                }
            }
            "textDocument/didChange" => {
                let text = &params["contentChanges"][0]["text"];
                self.put(&params["textDocument"]["uri"], text, &params["textDocument"]["version"]);
            }
            "textDocument/didClose" => {
                self.open.remove(&path(&params["textDocument"]["uri"]));
            }
            "workspace/didChangeWatchedFiles" => self.publish(),
            _ if message.get("id").is_some() => {
                if let Some(result) = self.answer(method, params, &message["id"]) {
                    let id = if self.has("--odd") {
                        json!(message["id"].to_string())
                    } else {
                        message["id"].clone()
                    };
                    self.out.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
                }
            }
            _ => {}
        }
    }

    fn misbehave(&self, method: &str, message: &Value) {
        if self.at("--hang", method) {
            loop {
                thread::park();
            }
        }
        if self.at("--crash", method) {
            eprintln!("the toy server breaks at {method}");
            exit(3);
        }
        if self.at("--big", method) {
            let result = "x".repeat(40 << 20);
            self.out.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
        }
        if self.at("--flood", method) {
            let out = self.out.clone();
            loop {
                out.send(&json!({"jsonrpc": "2.0", "method": "window/logMessage",
                    "params": {"type": 3, "message": "x".repeat(1 << 20)}}));
            }
        }
        if self.at("--memory", method) {
            let mut taken: Vec<Vec<u8>> = Vec::new();
            loop {
                taken.push(vec![1; 32 << 20]);
                thread::sleep(Duration::from_millis(20));
            }
        }
    }

    fn answer(&mut self, method: &str, params: &Value, id: &Value) -> Option<Value> {
        let document = path(&params["textDocument"]["uri"]);
        Some(match method {
            "initialize" => self.initialize(params),
            "shutdown" => Value::Null,
            "textDocument/diagnostic" => json!({"kind": "full", "items": self.problems(&document)}),
            "textDocument/documentSymbol" => {
                let own = self.words().into_iter().filter(|word| word.path == document && word.kind == "def");
                let symbol = |word: Word| {
                    let range = self.line_range(&word);
                    json!({"name": word.name, "kind": 12, "detail": word.count, "range": range,
                        "selectionRange": self.range(&word)})
                };
                own.map(symbol).collect()
            }
            "workspace/symbol" => {
                let query = params["query"].as_str().unwrap();
                let found =
                    self.words().into_iter().filter(|word| word.kind == "def" && word.name.contains(query));
                let symbol =
                    |word: Word| json!({"name": word.name, "kind": 12, "location": self.location(&word)});
                found.map(symbol).collect()
            }
            "textDocument/definition"
            | "textDocument/references"
            | "textDocument/hover"
            | "textDocument/rename" => {
                let Some(name) = self.name_at(&document, &params["position"]) else {
                    return Some(Value::Null);
                };
                let words = self.words().into_iter().filter(|word| word.name == name);
                match method {
                    "textDocument/definition" => {
                        let defs = words.filter(|word| word.kind == "def");
                        defs.map(|word| self.location(&word)).collect()
                    }
                    "textDocument/references" => {
                        let declares = params["context"]["includeDeclaration"] == true;
                        let uses = words.filter(|word| word.kind == "call" || declares);
                        uses.map(|word| self.location(&word)).collect()
                    }
                    "textDocument/hover" => {
                        json!({"contents": {"kind": "markdown", "value": format!("toy **{name}**")}})
                    }
                    _ => self.rename(words, params["newName"].as_str().unwrap()),
                }
            }
            "workspace/willRenameFiles" => {
                let (from, to) = (path(&params["files"][0]["oldUri"]), path(&params["files"][0]["newUri"]));
                let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
                let imports =
                    self.words().into_iter().filter(|word| word.kind == "import" && word.name == name(&from));
                self.rename(imports, &name(&to))
            }
            "textDocument/codeAction" => {
                let line = params["range"]["start"]["line"].as_u64().unwrap();
                let range = json!({"start": {"line": line, "character": 0}, "end": {"line": line + 1, "character": 0}});
                let edit = json!({"changes": {uri(&document): [{"range": range, "newText": ""}]}});
                let command = json!({"title": "Remove", "command": "toy.remove", "arguments": [edit]});
                json!([
                    {"title": "Remove the line", "kind": "quickfix", "isPreferred": true, "edit": edit},
                    {"title": "Remove by a command", "command": command},
                    {"title": "For editors", "command": {"title": "x", "command": "editor.only"}},
                    {"title": "Not now", "disabled": {"reason": "it is too late"}},
                ])
            }
            "workspace/executeCommand" => {
                self.executing = Some(id.clone());
                self.out.send(&json!({"jsonrpc": "2.0", "id": "edit", "method": "workspace/applyEdit",
                    "params": {"edit": params["arguments"][0]}}));
                return None;
            }
            "toy/configuration" => {
                self.executing = Some(id.clone());
                self.out.send(&json!({"jsonrpc": "2.0", "id": 77, "method": "workspace/configuration",
                    "params": {"items": [{"section": "toy.level"}, {"section": "none"}]}}));
                return None;
            }
            "toy/echo" => params.clone(),
            _ => {
                let error = json!({"code": -32601, "message": format!("{method} is unknown")});
                self.out.send(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
                return None;
            }
        })
    }

    /// Passes an answer of the client on to the request that waits for it.
    fn answered(&mut self, message: &Value) {
        if let Some(id) = self.executing.take() {
            self.out.send(&json!({"jsonrpc": "2.0", "id": id, "result": message["result"]}));
        }
    }

    fn initialize(&mut self, params: &Value) -> Value {
        self.root = path(&params["rootUri"]);
        if self.has("--child") {
            Command::new("sleep").arg("1000").spawn().unwrap();
        }
        let encodings = params["capabilities"]["general"]["positionEncodings"].as_array().unwrap();
        self.is_utf8 = self.has("--utf8") && encodings.contains(&json!("utf-8"));
        let mut capabilities = json!({
            "textDocumentSync": {"openClose": true, "change": 1, "save": {"includeText": true}},
            "definitionProvider": true, "referencesProvider": true, "hoverProvider": {}, "renameProvider": true,
            "documentSymbolProvider": true, "workspaceSymbolProvider": true, "codeActionProvider": true,
            "executeCommandProvider": {"commands": ["toy.remove"]},
            "workspace": {"fileOperations": {"willRename": {"filters": []}}},
        });
        if self.has("--pull") {
            capabilities["diagnosticProvider"] = json!({"interFileDependencies": true});
        }
        if self.is_utf8 {
            capabilities["positionEncoding"] = json!("utf-8");
        }
        json!({"capabilities": capabilities})
    }

    fn put(&mut self, uri: &Value, text: &Value, version: &Value) {
        self.open.insert(path(uri), (text.as_str().unwrap().to_owned(), version.as_i64().unwrap()));
        if !self.has("--pull") {
            self.publish();
        }
    }

    /// Sends the diagnostics of all open texts.
    fn publish(&self) {
        let all: Vec<Value> = self
            .open
            .iter()
            .map(|(path, (_, version))| {
                let version = if self.has("--odd") { Value::Null } else { json!(version) };
                json!({"uri": uri(path), "version": version, "diagnostics": self.problems(path)})
            })
            .collect();
        let late = self.args.windows(2).find(|pair| pair[0] == "--late").map(|pair| pair[1].parse().unwrap());
        let out = self.out.clone();
        let send = move || {
            for params in all {
                out.send(
                    &json!({"jsonrpc": "2.0", "method": "textDocument/publishDiagnostics", "params": params}),
                );
            }
        };
        match late {
            Some(ms) => drop(thread::spawn(move || {
                thread::sleep(Duration::from_millis(ms));
                send();
            })),
            None => send(),
        }
    }

    fn problems(&self, path: &Path) -> Vec<Value> {
        let words = self.words();
        let of_path = words.iter().filter(|word| word.path == path && word.kind == "call");
        of_path
            .filter_map(|call| {
                let def = words.iter().find(|word| word.kind == "def" && word.name == call.name);
                let (code, message) = match def {
                    None => ("E1", format!("{} is not defined", call.name)),
                    Some(def) if def.count != call.count => {
                        ("E2", format!("{} takes {}, not {}", call.name, def.count, call.count))
                    }
                    Some(_) => return None,
                };
                let mut problem =
                    json!({"range": self.range(call), "severity": 1, "code": code, "source": "toy", "message": message});
                if self.has("--odd") {
                    problem["severity"] = Value::Null;
                    problem["range"]["start"]["line"] = json!(call.line as f64);
                }
                Some(problem)
            })
            .collect()
    }

    fn text(&self, path: &Path) -> String {
        match self.open.get(path) {
            Some((text, _)) => text.clone(),
            None => fs::read_to_string(path).unwrap_or_default(),
        }
    }

    fn words(&self) -> Vec<Word> {
        let mut paths: Vec<PathBuf> = fs::read_dir(&self.root)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|end| end == "toy"))
            .collect();
        paths.sort();
        let mut words = Vec::new();
        for path in paths {
            for (line, text) in self.text(&path).lines().enumerate() {
                let mut parts =
                    text.split_whitespace().skip_while(|part| !["def", "call", "import"].contains(part));
                let mut next = || parts.next().unwrap_or_default().to_owned();
                let (kind, name, count) = (next(), next(), next());
                if !name.is_empty() {
                    words.push(Word { path: path.clone(), line, kind, name, count });
                }
            }
        }
        words
    }

    fn columns(&self, text: &str, byte: usize) -> usize {
        if self.is_utf8 { byte } else { text[..byte].encode_utf16().count() }
    }

    fn range(&self, word: &Word) -> Value {
        let text = self.text(&word.path);
        let line = text.lines().nth(word.line).unwrap();
        let at = line.find(&format!(" {}", word.name)).unwrap() + 1;
        let (start, end) = (self.columns(line, at), self.columns(line, at + word.name.len()));
        json!({"start": {"line": word.line, "character": start}, "end": {"line": word.line, "character": end}})
    }

    fn line_range(&self, word: &Word) -> Value {
        let start = json!({"line": word.line, "character": 0});
        json!({"start": start, "end": {"line": word.line, "character": 1000}})
    }

    fn location(&self, word: &Word) -> Value {
        json!({"uri": uri(&word.path), "range": self.range(word)})
    }

    fn name_at(&self, path: &Path, position: &Value) -> Option<String> {
        let (line, column) = (position["line"].as_u64()? as usize, position["character"].as_u64()? as usize);
        let found = self.words().into_iter().find(|word| {
            let range = self.range(word);
            let is_at = range["start"]["character"].as_u64().unwrap() as usize <= column
                && column <= range["end"]["character"].as_u64().unwrap() as usize;
            word.path == path && word.line == line && is_at
        });
        found.map(|word| word.name)
    }

    fn rename(&self, words: impl Iterator<Item = Word>, new: &str) -> Value {
        let mut edits: BTreeMap<PathBuf, Vec<Value>> = BTreeMap::new();
        for word in words {
            let edit = json!({"range": self.range(&word), "newText": new});
            edits.entry(word.path).or_default().push(edit);
        }
        if self.has("--outside") {
            let start = json!({"line": 0, "character": 0});
            let edit = json!({"range": {"start": start, "end": start}, "newText": new});
            edits.insert(self.root.parent().unwrap().join("outside.toy"), vec![edit]);
        }
        let steps = edits.into_iter().map(|(path, edits)| {
            let version = self.open.get(&path).map(|(_, version)| *version);
            json!({"textDocument": {"uri": uri(&path), "version": version}, "edits": edits})
        });
        json!({"documentChanges": steps.collect::<Vec<_>>()})
    }
}

fn path(uri: &Value) -> PathBuf {
    PathBuf::from(uri.as_str().and_then(|uri| uri.strip_prefix("file://")).unwrap_or_default())
}

fn uri(path: &Path) -> String {
    format!("file://{}", path.display())
}
