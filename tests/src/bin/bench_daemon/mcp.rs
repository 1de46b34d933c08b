//! Scenarios about MCP servers: what agentd adds to a call, and what servers cost that nothing needs.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use agentd_e2e::{
    Conversation, Daemon, Home, MockServer, Reply, Service, conversation::LineTransport, processes, sse,
};
use serde_json::{Map, Value, json};

use crate::report::{Report, Scale, exact};

/// Servers of a user who has many.
const SERVERS: usize = 20;

/// Tools of each of them.
const TOOLS: usize = 50;

/// Bytes of JSON that are worth a token, roughly.
const BYTES_PER_TOKEN: f64 = 4.0;

pub(crate) fn run(scale: Scale, report: &mut Report) {
    calls(scale, report);
    unused(scale, report);
    turns(scale, report);
}

/// The server, which is built beside this program.
fn server() -> PathBuf {
    let own = std::env::current_exe().expect("the path of this program");
    own.with_file_name("mcp_test_server")
}

fn entry(exposure: &str, args: &[&str]) -> Value {
    json!({"command": server(), "args": args, "exposure": exposure})
}

/// A server that is spoken with directly.
struct Direct {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Direct {
    fn start() -> Self {
        let mut child = Command::new(server())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("mcp_test_server beside this program: cargo build --release -p agentd-e2e --bins");
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut direct = Self { child, input, output: BufReader::new(output), next: 0 };
        direct.ask("initialize", &json!({"protocolVersion": "2025-11-25"}));
        direct
    }

    fn ask(&mut self, method: &str, params: &Value) {
        self.next += 1;
        let message = json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        writeln!(self.input, "{message}").unwrap();
        loop {
            let mut line = String::new();
            self.output.read_line(&mut line).unwrap();
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"] == self.next {
                return;
            }
        }
    }
}

impl Drop for Direct {
    fn drop(&mut self) {
        // It has nothing to lose.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A call of a tool, directly and by a session: from the event before it to the event after it, as a client sees them.
fn calls(scale: Scale, report: &mut Report) {
    let count = scale.of(500, 10);
    let mut direct = Direct::start();
    let params = json!({"name": "echo", "arguments": {"text": "hello"}});
    let mut alone: Vec<Duration> = (0..count)
        .map(|_| {
            let begun = Instant::now();
            direct.ask("tools/call", &params);
            begun.elapsed()
        })
        .collect();
    report.times("a call, spoken with the server directly", &mut alone, 95);
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    home.write_agent("mcp.json", &json!({"mcpServers": {"test": entry("direct", &[])}}).to_string());
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let mut within: Vec<Duration> = (0..count)
        .map(|_| {
            model.push(Reply::stream(sse::calls(&[("c1", "mcp__test__echo", json!({"text": "hello"}))])));
            model.push(Reply::stream(sse::answer("Ok.")));
            daemon.done(json!({"type": "prompt", "message": "Go."}));
            daemon.event("tool_execution_start");
            let begun = Instant::now();
            let end = daemon.event("tool_execution_end");
            let time = begun.elapsed();
            assert_eq!(end["isError"], false, "{end}");
            daemon.settled();
            time
        })
        .collect();
    report.times("a call within a session, from its first event to its last", &mut within, 95);
    let added = within[count / 2].saturating_sub(alone[count / 2]);
    report.time("added at the median", added);
}

fn configure(home: &Home, count: usize, exposure: &str) {
    let tools = TOOLS.to_string();
    let servers: Map<String, Value> =
        (0..count).map(|number| (format!("server{number}"), entry(exposure, &["--tools", &tools]))).collect();
    home.write_agent("mcp.json", &json!({"mcpServers": servers}).to_string());
}

/// Servers that are configured and not used.
fn unused(scale: Scale, report: &mut Report) {
    let model = MockServer::always(Reply::stream(sse::answer("Hello.")));
    for count in [0, SERVERS] {
        let home = Home::with_model(&model);
        configure(&home, count, "deferred");
        let mut times: Vec<Duration> = (0..scale.of(40, 2))
            .map(|_| {
                let begun = Instant::now();
                let mut daemon = Daemon::start(&home, &["--no-session"]);
                daemon.done(json!({"type": "get_state"}));
                begun.elapsed()
            })
            .collect();
        report.times(&format!("{count} servers: agentd --stdio, start to first answer"), &mut times, 95);
        let service = Service::start(&home, &[]);
        let mut client = service.client();
        client.done(json!({"type": "open_session", "cwd": home.project(), "ephemeral": true}));
        client.prompt("Go.");
        let usage = processes::usage(service.id());
        report.bytes(&format!("{count} servers: RSS with one session"), usage.resident);
        report.bytes(&format!("{count} servers: of it private"), usage.private);
        let children = processes::children(service.id()).len();
        report.figure(&format!("{count} servers: processes of agentd"), exact(children as u64), "");
    }
}

/// A turn with many servers that are there: their tools on call, or all declared.
fn turns(scale: Scale, report: &mut Report) {
    for (name, count, exposure) in [
        ("no server", 0, "deferred"),
        ("1,000 tools on call", SERVERS, "deferred"),
        ("1,000 tools declared", SERVERS, "direct"),
    ] {
        let model = MockServer::start([]);
        let home = Home::with_model(&model);
        configure(&home, count, exposure);
        let mut daemon = Daemon::start(&home, &["--no-session"]);
        if count > 0 && exposure == "deferred" {
            // Connects them all.
            model.push(Reply::stream(sse::calls(&[(
                "c1",
                "tool_search",
                json!({"query": "search", "limit": 1}),
            )])));
            model.push(Reply::stream(sse::answer("Ok.")));
            daemon.prompt("Go.");
            let there = daemon.done(json!({"type": "get_mcp_servers"}));
            let is_there = |server: &Value| server["state"] == "connected";
            assert!(there["servers"].as_array().unwrap().iter().all(is_there), "{there}");
        }
        turn(&mut daemon, &model);
        let mut times: Vec<Duration> = (0..scale.of(100, 3))
            .map(|_| {
                let begun = Instant::now();
                turn(&mut daemon, &model);
                begun.elapsed()
            })
            .collect();
        report.times(&format!("{name}: a turn, prompt to agent_settled"), &mut times, 95);
        let requests = model.requests();
        let request = &requests[requests.len() - 1].body;
        let tools = request["tools"].to_string().len();
        let system = request["messages"][0].to_string().len();
        report.figure(
            &format!("{name}: tokens of tools and system prompt"),
            exact((tools + system) as u64) / BYTES_PER_TOKEN,
            "",
        );
    }
}

fn turn<W: LineTransport>(client: &mut Conversation<W>, model: &MockServer) {
    model.push(Reply::stream(sse::answer("Ok.")));
    client.prompt("Go.");
}
