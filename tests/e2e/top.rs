//! `agentctl top`: once, as JSON, and live on a terminal.

use agentd_e2e::{
    Ctl, Gate, Home, MockServer, Reply, Service, SocketClient, Terminal, binaries,
    ctl::{self},
    processes, sse,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    agentctl_verbs::{client, open},
    support::assert_says,
};

/// A session at work on a command, and a client that follows it.
fn at_work(service: &Service, home: &Home) -> SocketClient {
    let mut client = client(service);
    open(&mut client, home, "aaaa-1");
    client.done(json!({"type": "prompt", "message": "Run \u{1b}[2Jit.", "sessionId": "aaaa-1"}));
    client.event("tool_execution_start");
    client
}

fn endless_command() -> MockServer {
    let call = sse::calls(&[("c1", "bash", json!({"command": "sleep 1000"}))]);
    MockServer::start([Reply::stream(call), Reply::stream(sse::answer("Stopped."))])
}

#[test]
fn one_table_for_pipes_and_programs() {
    let server = endless_command();
    let home = Home::with_model(&server);
    let without = ctl::run(&home, &["top", "--once"]);
    assert_eq!((without.code, without.stdout.as_str()), (3, ""), "{without:?}");
    let service = Service::start(&home, &[]);
    let empty = ctl::run(&home, &["top"]);
    assert_eq!(empty.code, 0, "{empty:?}");
    assert_says(&empty.stdout, &["agentd ", " · 0 of 0 sessions at work · $0.0000"]);
    let mut client = at_work(&service, &home);
    open(&mut client, &home, "bbbb-2");
    let once = ctl::run(&home, &["top", "--once"]);
    assert_eq!(once.code, 0, "{once:?}");
    let lines: Vec<&str> = once.stdout.lines().collect();
    assert_says(lines[0], &["agentd ", "1 of 2 sessions at work", "MB"]);
    assert_says(lines[1], &["SESSION", "STATE*", "TOK/S", "MODEL", "TITLE"]);
    assert_says(lines[2], &["  aaaa-1   running `sleep 1000`", "fake", "Run  [2Jit."]);
    assert_says(lines[3], &["  bbbb-2   idle", "fake"]);
    assert_eq!(lines.len(), 4, "{once:?}");
    let sorted = ctl::run(&home, &["top", "--once", "--sort", "title"]);
    assert_says(sorted.stdout.lines().nth(1).unwrap(), &["TITLE*"]);
    let json = ctl::run(&home, &["top", "--once", "--json"]);
    let report: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(report["sessions"][0]["session"]["id"], "aaaa-1", "{report}");
    assert_eq!(report["sessions"][0]["activity"]["state"], "running", "{report}");
    assert!(report["daemon"]["uptimeMs"].is_u64(), "{report}");
}

#[test]
fn changes_are_lines_of_json() {
    let gate = Gate::new();
    let server =
        MockServer::start([Reply::stream(sse::text("Half")).gate(&gate).then(sse::answer(" done."))]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut top = Ctl::start(&home, &["top", "--json"]);
    top.wait_for_stdout("\"sessions\":[]");
    let mut client = client(&service);
    open(&mut client, &home, "aaaa-1");
    top.wait_for_stdout("\"id\":\"aaaa-1\"");
    client.done(json!({"type": "prompt", "message": "Go.", "sessionId": "aaaa-1"}));
    top.wait_for_stdout("\"state\":\"answering\"");
    gate.open();
    client.event("agent_settled");
    client.done(json!({"type": "close_session", "sessionId": "aaaa-1"}));
    top.wait_for_stdout("{\"left\":\"aaaa-1\"}");
    top.signal(Signal::INT);
    assert_eq!(top.finish().code, 0);
}

/// Starts the table in a shell that says its process id first, and whether the terminal is as it was afterwards.
fn start(home: &Home) -> Terminal {
    let script = "before=$(stty -g); sh -c 'echo \"pid $$.\"; exec \"$0\" top' \"$0\"; echo \"code $?\"; \
                  [ \"$before\" = \"$(stty -g)\" ] && echo 'as it was'";
    let program = binaries::agentctl();
    Terminal::start(home, std::path::Path::new("sh"), &["-c", script, program.to_str().unwrap()])
}

/// The sequences that give the terminal back: the cursor, and the screen that was there before.
const GIVEN_BACK: &str = "\u{1b}[?25h\u{1b}[?1049l";

fn assert_restored(terminal: Terminal, code: u8) -> String {
    let ended = terminal.finish();
    let (_, after) = ended.stdout.rsplit_once(GIVEN_BACK).expect("the screen is given back");
    assert_says(after, &[&format!("code {code}"), "as it was"]);
    after.to_owned()
}

#[test]
fn keys_work_on_the_table_and_the_terminal_is_given_back() {
    let server = endless_command();
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut client = at_work(&service, &home);
    let mut top = start(&home);
    top.wait_for("\u{1b}[?1049h");
    top.wait_for("> aaaa-1   running `sleep 1000`");
    top.wait_for("s sort: state");
    // A session that comes later is there without a key.
    open(&mut client, &home, "bbbb-2");
    top.wait_for("  bbbb-2   idle");
    top.press("s");
    top.wait_for("s sort: rate");
    top.press("\u{1b}[B");
    top.wait_for("> bbbb-2");
    top.press("a");
    top.wait_for("Nothing is at work there.");
    top.press("\u{1b}[A");
    top.press("a");
    top.wait_for("Stop the work of aaaa-1? y/n");
    top.press("n");
    top.press("a");
    top.press("y");
    client.event("agent_settled");
    top.wait_for("> aaaa-1   idle");
    assert!(!top.shown().contains("\u{1b}[2Jit"), "the title cannot clear the screen");
    // Narrower than the table: columns leave.
    top.resize((50, 10));
    top.press("s");
    top.wait_for("s sort:…");
    top.press("q");
    assert_restored(top, 0);
}

#[test]
fn every_end_gives_the_terminal_back() {
    let server = endless_command();
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let _client = at_work(&service, &home);

    // Ctrl-C is a key here.
    let mut top = start(&home);
    top.wait_for("> aaaa-1");
    top.press("\u{3}");
    assert_restored(top, 0);

    let mut top = start(&home);
    top.wait_for("> aaaa-1");
    let shown = top.shown();
    let pid = shown.split("pid ").nth(1).and_then(|rest| rest.split('.').next()).unwrap().parse().unwrap();
    processes::signal(pid, Signal::TERM);
    assert_restored(top, 143);

    // Enter attaches.
    let mut top = start(&home);
    top.wait_for("> aaaa-1");
    top.press("\r");
    top.wait_for(GIVEN_BACK);
    // The interactive client takes pastes as such, and shows the session, also where a terminal does not tell its size.
    top.wait_for("\u{1b}[?2004h");
    top.wait_for("sleep 1000");
    top.press("\u{4}");
    assert_restored(top, 0);

    // The end of the daemon.
    let mut top = start(&home);
    top.wait_for("> aaaa-1");
    let down = ctl::run(&home, &["down", "--abort"]);
    assert_eq!(down.code, 0, "{down:?}");
    assert_eq!(service.wait().status.code(), Some(0));
    let after = assert_restored(top, 3);
    assert_says(&after, &["agentd has ended"]);
}

#[test]
fn no_colour_where_none_is_wanted() {
    let home = Home::new();
    let service = Service::start(&home, &[]);
    let mut client = client(&service);
    open(&mut client, &home, "aaaa-1");
    let program = binaries::agentctl();
    let script = "NO_COLOR=1 exec \"$0\" top";
    let mut top =
        Terminal::start(&home, std::path::Path::new("sh"), &["-c", script, program.to_str().unwrap()]);
    top.wait_for("> aaaa-1   idle");
    top.press("q");
    let ended = top.finish();
    assert_eq!(ended.code, 0, "{ended:?}");
    let sgr = ended.stdout.split("\u{1b}[").skip(1).filter(|rest| {
        rest.find(|c: char| !c.is_ascii_digit() && c != ';').is_some_and(|at| rest[at..].starts_with('m'))
    });
    assert_eq!(sgr.count(), 0, "{ended:?}");
}
