//! The paths whose instructions are counted.

use std::{fmt::Write as _, fs};

use agentd_e2e::{Daemon, Home, MockServer, Reply, binaries, sse};
use serde_json::json;

/// Something that agentd does, as often as it is told.
pub(crate) struct HotPath {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// How often it is done in the two runs; equal numbers mean that the whole of one run counts.
    times: (u64, u64),
    run: fn(u64) -> u64,
}

/// All there are.
pub(crate) const PATHS: &[HotPath] = &[
    HotPath {
        name: "start",
        about: "agentd --stdio, from its start to the end of its input",
        times: (0, 0),
        run: start,
    },
    HotPath {
        name: "prompt",
        about: "a prompt that the model answers in one piece",
        times: (10, 30),
        run: prompts,
    },
    HotPath { name: "delta", about: "a piece of a long answer", times: (500, 2_500), run: deltas },
    HotPath {
        name: "arguments",
        about: "a piece of the arguments of a call",
        times: (500, 2_500),
        run: arguments,
    },
    HotPath { name: "read", about: "a turn with a call of `read`", times: (10, 30), run: reads },
    HotPath {
        name: "bash",
        about: "a turn with a shell command, without its process",
        times: (5, 15),
        run: shells,
    },
    HotPath { name: "state", about: "`get_state`", times: (50, 250), run: states },
    HotPath { name: "stats", about: "`get_session_stats` of 1,000 entries", times: (20, 120), run: stats },
    HotPath { name: "open", about: "an entry of a session that is opened", times: (500, 2_500), run: open },
    HotPath {
        name: "messages",
        about: "a message of a session that a client asks for",
        // More than 1 MiB: such an answer is made while it is written.
        times: (1_500, 3_500),
        run: messages,
    },
];

impl HotPath {
    /// The instructions for one.
    pub(crate) fn instructions(&self) -> u64 {
        let (few, many) = self.times;
        if few == many {
            return (self.run)(few);
        }
        let (few_took, many_took) = ((self.run)(few), (self.run)(many));
        many_took.saturating_sub(few_took) / (many - few)
    }
}

/// A daemon that valgrind watches, with a session of its own.
fn watched(home: &Home, args: &[&str]) -> Daemon {
    let mut command = home.command("valgrind");
    command.args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]);
    command.arg(binaries::agentd()).arg("--stdio").args(args);
    Daemon::start_command(command)
}

/// Ends a daemon. The instructions that it executed, by the line `==12== I   refs:      1,234`.
fn counted(daemon: Daemon) -> u64 {
    let ended = daemon.close();
    assert!(ended.status.success(), "{}", ended.stderr);
    let line = ended
        .stderr
        .lines()
        .find(|line| line.contains("refs:"))
        .unwrap_or_else(|| panic!("{}", ended.stderr));
    let digits: String =
        line.rsplit(':').next().unwrap_or_default().chars().filter(char::is_ascii_digit).collect();
    digits.parse().expect("a number of instructions")
}

fn start(_: u64) -> u64 {
    let home = Home::with_model(&MockServer::start([]));
    let mut daemon = watched(&home, &[]);
    daemon.done(json!({"type": "get_state"}));
    counted(daemon)
}

/// Prompts, each answered by the next of these replies until the run is over.
fn answered(prompts: u64, replies: Vec<Reply>) -> u64 {
    let server = MockServer::start(replies);
    let home = Home::with_model(&server);
    home.write("notes.txt", "one line\n");
    let mut daemon = watched(&home, &[]);
    for _ in 0..prompts {
        daemon.prompt("Go on.");
    }
    counted(daemon)
}

fn prompts(times: u64) -> u64 {
    answered(times, (0..times).map(|_| Reply::stream(sse::answer("Yes."))).collect())
}

fn deltas(times: u64) -> u64 {
    let pieces: String = (0..times).map(|at| sse::text(&format!("word{at} "))).collect();
    answered(1, vec![Reply::stream(pieces + &sse::answer("."))])
}

/// The tool is one that there is not: that it is refused is no part of a piece.
fn arguments(times: u64) -> u64 {
    let text =
        json!({"path": "a.txt", "content": "word ".repeat(usize::try_from(times).expect("few"))}).to_string();
    let pieces = text.as_bytes().chunks(5).filter_map(|piece| str::from_utf8(piece).ok());
    let call: String = pieces.map(|piece| sse::call_arguments(0, piece)).collect();
    let call = sse::call_start(0, "c1", "no_such_tool") + &call + &sse::end("tool_calls", (1, 0, 1));
    answered(1, vec![Reply::stream(call), Reply::stream(sse::answer("."))])
}

fn calls(times: u64, name: &str, input: &serde_json::Value) -> u64 {
    let turn = |at: u64| Reply::stream(sse::calls(&[(&format!("c{at}"), name, input.clone())]));
    let replies = (0..times).map(turn).chain([Reply::stream(sse::answer("Done."))]);
    answered(1, replies.collect())
}

fn reads(times: u64) -> u64 {
    calls(times, "read", &json!({"path": "notes.txt"}))
}

fn shells(times: u64) -> u64 {
    calls(times, "bash", &json!({"command": "true"}))
}

fn states(times: u64) -> u64 {
    let home = Home::with_model(&MockServer::start([]));
    let mut daemon = watched(&home, &[]);
    for _ in 0..times {
        daemon.done(json!({"type": "get_state"}));
    }
    counted(daemon)
}

fn stats(times: u64) -> u64 {
    with_session(1_000, |daemon| {
        for _ in 0..times {
            daemon.done(json!({"type": "get_session_stats"}));
        }
    })
}

fn open(entries: u64) -> u64 {
    with_session(entries, |daemon| {
        daemon.done(json!({"type": "get_state"}));
    })
}

/// What asking takes beyond opening.
fn messages(entries: u64) -> u64 {
    let asked = with_session(entries, |daemon| {
        daemon.done(json!({"type": "get_state"}));
        daemon.done(json!({"type": "get_messages"}));
    });
    asked.saturating_sub(open(entries))
}

/// A daemon with a session of so many messages, about a kilobyte each.
fn with_session(entries: u64, work: impl FnOnce(&mut Daemon)) -> u64 {
    let home = Home::with_model(&MockServer::start([]));
    let mut text = json!({"type": "session", "version": 3, "id": "00000000-0000-7000-8000-000000000001",
        "timestamp": "2026-01-01T00:00:00.000Z", "cwd": home.project()})
    .to_string();
    let words = "fn main() { let x = \\\"a\\\"; }\\n\\t".repeat(30);
    for at in 0..entries {
        let parent = if at == 0 { "null".to_owned() } else { format!("\"{:08x}\"", at - 1) };
        let message = if at % 2 == 0 {
            format!(r#"{{"role":"user","content":[{{"type":"text","text":"{words}"}}],"timestamp":{at}}}"#)
        } else {
            format!(
                r#"{{"role":"assistant","content":[{{"type":"text","text":"{words}"}}],"api":"openai-completions","provider":"fake","model":"fake","usage":{{"input":1,"output":1,"cacheRead":0,"cacheWrite":0,"totalTokens":2,"cost":{{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}}},"stopReason":"stop","timestamp":{at}}}"#
            )
        };
        let _ = write!(
            text,
            "\n{{\"type\":\"message\",\"id\":\"{at:08x}\",\"parentId\":{parent},\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"message\":{message}}}"
        );
    }
    let file = home.root().join("session.jsonl");
    fs::write(&file, text + "\n").expect("a session file");
    let mut daemon = watched(&home, &["--session", file.to_str().expect("a path in UTF-8")]);
    work(&mut daemon);
    counted(daemon)
}
