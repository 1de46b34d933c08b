//! The verbs of `agentctl` about sessions, with a daemon, without one, and with one that dies or does not listen.

use std::{path::PathBuf, process::Stdio};

use agentd_e2e::{
    Ctl, Gate, Home, MockServer, Reply, Service, SocketClient, Terminal, binaries,
    ctl::{self, Finished},
    sse,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{assert_says, roles};

/// Connects a client that names sessions.
pub(crate) fn client(service: &Service) -> SocketClient {
    let mut client = service.client();
    client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    client
}

/// Opens a session with this id.
pub(crate) fn open(client: &mut SocketClient, home: &Home, id: &str) {
    client.done(json!({"type": "open_session", "cwd": home.project(), "sessionId": id}));
}

/// Starts a run that lasts until it is stopped.
fn set_to_work(client: &mut SocketClient, id: &str) {
    client.done(json!({"type": "prompt", "message": "Go on and on.", "sessionId": id}));
    client.until("a piece of the answer", |line| line["type"] == "message_update" && line["sessionId"] == id);
}

fn endless() -> Reply {
    Reply::stream(sse::text("On and ")).hang()
}

#[test]
fn abort_stops_the_only_one_at_work_or_says_that_there_is_none() {
    let server = MockServer::always(endless());
    let home = Home::with_model(&server);
    let without = ctl::run(&home, &["abort"]);
    assert_eq!((without.code, without.stdout.as_str()), (0, ""), "{without:?}");
    assert_says(&without.stderr, &["Nothing is at work", "not running"]);

    let service = Service::start(&home, &[]);
    let mut client = client(&service);
    open(&mut client, &home, "aaaa-1");
    let idle = ctl::run(&home, &["abort", "--json"]);
    assert_eq!((idle.code, idle.stdout.as_str()), (0, "{\"ended\":[],\"survives\":[]}\n"), "{idle:?}");
    set_to_work(&mut client, "aaaa-1");
    let stopped = ctl::run(&home, &["abort"]);
    assert_eq!((stopped.code, stopped.stdout.as_str()), (0, "aaaa-1: stopped the run.\n"), "{stopped:?}");
    client.event("agent_settled");
    let again = ctl::run(&home, &["abort", "aaaa"]);
    assert_eq!((again.code, again.stdout.as_str()), (0, "aaaa-1: nothing was at work.\n"), "{again:?}");
}

#[test]
fn with_several_at_work_abort_asks_for_an_id_that_is_clear() {
    let server = MockServer::always(endless());
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut client = client(&service);
    for id in ["aaaa-1", "aaab-2"] {
        open(&mut client, &home, id);
        set_to_work(&mut client, id);
    }
    for args in [&["abort"][..], &["abort", "aaa"]] {
        let unclear = ctl::run(&home, args);
        assert_eq!((unclear.code, unclear.stdout.as_str()), (1, ""), "{unclear:?}");
        assert_says(&unclear.stderr, &["aaaa-1", "aaab-2", "project: Go on and on."]);
    }
    assert_eq!(ctl::run(&home, &["abort", "nothing-like-it"]).code, 1);
    let stopped = ctl::run(&home, &["abort", "aaab", "--scope", "all"]);
    assert_eq!((stopped.code, stopped.stdout.as_str()), (0, "aaab-2: stopped the run.\n"), "{stopped:?}");
    let state = client.done(json!({"type": "get_state", "sessionId": "aaaa-1"}));
    assert_eq!(state["isStreaming"], json!(true));
}

#[test]
fn steer_reaches_what_is_at_work_and_nothing_else() {
    let gate = Gate::new();
    let held = Reply::stream(sse::text("Working. ")).gate(&gate).then(sse::answer("Done."));
    let server = MockServer::start([held, Reply::stream(sse::answer("Noted."))]);
    let home = Home::with_model(&server);
    assert_eq!(ctl::run(&home, &["steer", "aaaa", "x"]).code, 3);
    let service = Service::start(&home, &[]);
    let mut client = client(&service);
    open(&mut client, &home, "aaaa-1");
    let idle = ctl::run(&home, &["steer", "aaaa", "Leave", "it."]);
    assert_eq!(idle.code, 1, "{idle:?}");
    assert_says(&idle.stderr, &["not at work", "agentctl prompt --session aaaa-1"]);
    set_to_work(&mut client, "aaaa-1");
    let empty = ctl::run(&home, &["steer", "aaaa"]);
    assert_eq!(empty.code, 2, "{empty:?}");
    assert_says(&empty.stderr, &["there is no message"]);
    let steered = ctl::run_with_input(&home, &["steer", "aaaa", " Leave", "--", "-v"], "Piped.\n");
    assert_eq!((steered.code, steered.stdout.as_str()), (0, ""), "{steered:?}");
    let queue = client.event("queue_update");
    assert_eq!(queue["steering"], json!(["<stdin>\nPiped.\n</stdin>\n\n Leave -v"]), "{queue}");
    let later = ctl::run(&home, &["steer", "--follow-up", "aaaa-1", "Then rest."]);
    assert_eq!(later.code, 0, "{later:?}");
    assert_eq!(client.event("queue_update")["followUp"], json!(["Then rest."]));
    server.push(Reply::stream(sse::answer("Pausing.")));
    gate.open();
    client.event("agent_settled");
    assert_eq!(roles(&home.session_files()[0]).iter().filter(|role| *role == "user").count(), 3);
}

#[test]
fn export_writes_the_file_or_a_transcript_and_overwrites_nothing() {
    let calls = sse::calls(&[("c1", "bash", json!({"command": "echo '```'; printf 'a\\033[31mb\\n'"}))]);
    let server = MockServer::start([Reply::stream(calls), Reply::stream(sse::answer("It said ```."))]);
    let home = Home::with_model(&server);
    assert_eq!(ctl::run(&home, &["prompt", "Say three *ticks*."]).code, 0);
    let file = home.session_files().pop().unwrap();
    let bytes = std::fs::read_to_string(&file).unwrap();
    let id = serde_json::from_str::<Value>(bytes.lines().next().unwrap()).unwrap()["id"].clone();
    let short = &id.as_str().unwrap()[..9];

    let piped = ctl::run(&home, &["export", short]);
    assert_eq!((piped.code, piped.stdout == bytes), (0, true), "{piped:?}");
    let written = ctl::run(&home, &["export", short, "-o", "talk.md"]);
    assert_eq!((written.code, written.stdout.as_str()), (0, ""), "{written:?}");
    let text = home.read("talk.md");
    let result = "**Result** of `bash` (ok, ";
    assert_says(
        &text,
        &["# Say three \\*ticks\\*.\n", "\n## User\n\nSay three *ticks*.\n", result, "\n````text\n```\n"],
    );
    assert_says(&text, &["| `fake/fake` | 2 |"]);
    let again = ctl::run(&home, &["export", short, "-o", "talk.md"]);
    assert_eq!(again.code, 2, "{again:?}");
    assert_says(&again.stderr, &["talk.md is there already", "--force"]);
    home.write("talk.md", "old");
    assert_eq!(ctl::run(&home, &["export", short, "-o", "talk.md", "--force"]).code, 0);
    assert_eq!(home.read("talk.md"), text);
    let nowhere = ctl::run(&home, &["export", short, "-o", "no/such/folder.md"]);
    assert_eq!(nowhere.code, 1, "{nowhere:?}");
    assert_says(&nowhere.stderr, &["cannot write no/such/folder.md"]);

    let by_path = ctl::run(&home, &["export", &file.display().to_string(), "--format", "md"]);
    assert_eq!((by_path.code, by_path.stdout), (0, text), "{}", by_path.stderr);
    let other = ctl::run(&home, &["export", "./talk.md", "--format", "md"]);
    assert_says(&other.stderr, &["talk.md", "no session file"]);
    // On a terminal it prints a transcript, cleaned of control characters.
    let seen = Terminal::start(&home, &binaries::agentctl(), &["export", short]).finish();
    assert_says(&seen.stdout, &["## User", "## Assistant"]);
    assert!(!seen.stdout.contains('\u{1b}'), "{seen:?}");
}

#[test]
fn a_session_in_memory_alone_has_a_transcript() {
    let server = MockServer::always(Reply::stream(sse::answer("Only here.")));
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut client = client(&service);
    let opened = client.done(json!({"type": "open_session", "cwd": home.project(), "ephemeral": true}));
    client.done(json!({"type": "prompt", "message": "Keep nothing."}));
    client.settled();
    let id = opened["sessionId"].as_str().unwrap();
    let text = ctl::run(&home, &["export", id, "--format", "md"]);
    assert_eq!(text.code, 0, "{text:?}");
    assert_says(&text.stdout, &["# Keep nothing.\n", "Only here."]);
    let bytes = ctl::run(&home, &["export", id, "--format", "jsonl"]);
    assert_eq!((bytes.code, bytes.stdout.as_str()), (1, ""), "{bytes:?}");
    assert_says(&bytes.stderr, &["only in memory", "--format md"]);
}

#[test]
fn rm_asks_a_person_and_wants_whole_ids_of_a_script() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut client = client(&service);
    for id in ["aaaa-1", "aaab-2", "b-3"] {
        open(&mut client, &home, id);
        client.done(json!({"type": "prompt", "message": format!("I am {id}."), "sessionId": id}));
        client.settled();
        client.done(json!({"type": "close_session", "sessionId": id}));
    }
    assert_eq!(home.session_files().len(), 3);
    let short = ctl::run(&home, &["rm", "b-3", "aaaa"]);
    assert_eq!(short.code, 2, "{short:?}");
    assert_says(&short.stderr, &["\"aaaa\" is the beginning of an id", "--yes"]);
    let unclear = ctl::run(&home, &["rm", "--yes", "b-3", "aaa"]);
    assert_eq!(unclear.code, 1, "{unclear:?}");
    assert_says(&unclear.stderr, &["aaaa-1", "aaab-2"]);
    let mut asked = Terminal::start(&home, &binaries::agentctl(), &["rm", "aaaa"]);
    asked.wait_for("Delete 1 session for good? [y/N]");
    asked.press("\r");
    let kept = asked.finish();
    assert_eq!((kept.code, kept.stdout.contains("I am aaaa-1.")), (1, true), "{kept:?}");
    assert_eq!(home.session_files().len(), 3);
    let mut asked = Terminal::start(&home, &binaries::agentctl(), &["rm", "aaaa"]);
    asked.wait_for("[y/N]");
    asked.press("y\r");
    assert_eq!(asked.finish().code, 0);
    assert_eq!(ctl::run(&home, &["rm", "-y", "aaab"]).code, 0);
    assert_eq!(ctl::run(&home, &["rm", "b-3"]).code, 0);
    assert_eq!(home.session_files().len(), 0);
}

#[test]
fn attach_shows_the_last_exchange_and_what_others_say() {
    let server = MockServer::start([
        Reply::stream(sse::answer("The first answer.")),
        Reply::stream(sse::answer("The second answer.")),
        Reply::stream(sse::answer("The third answer.")),
    ]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut client = client(&service);
    open(&mut client, &home, "aaaa-1");
    for prompt in ["First?", "Second?"] {
        client.done(json!({"type": "prompt", "message": prompt}));
        client.settled();
    }
    let mut watching = Terminal::start(&home, &binaries::agentctl(), &["attach", "--plain", "aaaa"]);
    watching.wait_for("> Second?");
    watching.wait_for("The second answer.");
    client.done(json!({"type": "prompt", "message": "Third?"}));
    watching.wait_for("> Third?");
    watching.wait_for("The third answer.");
    client.event("agent_settled");
    watching.press("\u{4}");
    let done = watching.finish();
    assert_eq!((done.code, done.stdout.contains("First?")), (0, false), "{done:?}");

    let mut plain =
        Terminal::start(&home, &binaries::agentctl(), &["attach", "--plain", "--no-history", "aaaa"]);
    plain.wait_for("type to talk to it");
    plain.press("\u{4}");
    let done = plain.finish();
    assert_eq!((done.code, done.stdout.contains("third")), (0, false), "{done:?}");
}

#[test]
fn watch_tells_what_is_live_and_what_changes() {
    let gate = Gate::new();
    let held = Reply::stream(sse::text("Working. ")).gate(&gate).then(sse::answer("Done."));
    let server = MockServer::start([held]);
    let home = Home::with_model(&server);
    assert_eq!(ctl::run(&home, &["watch"]).code, 3);
    let service = Service::start(&home, &[]);
    let mut client = client(&service);
    open(&mut client, &home, "aaaa-1");
    let mut watching = Ctl::start(&home, &["watch"]);
    watching.wait_for_stdout("aaaa-1  idle, 1 client");
    watching.wait_for_stderr("Ctrl-C ends it");
    let mut raw = Ctl::start(&home, &["watch", "--json"]);
    raw.wait_for_stderr("Ctrl-C ends it");
    // Both are separate clients of the daemon, and each gets the changes that it watches.
    open(&mut client, &home, "aaab-2");
    watching.wait_for_stdout("aaab-2  opened");
    client.done(json!({"type": "prompt", "message": "Hi", "sessionId": "aaaa-1"}));
    watching.wait_for_stdout("aaaa-1  at work");
    gate.open();
    watching.wait_for_stdout("aaaa-1  idle  ");
    client.done(json!({"type": "set_session_name", "name": "The first", "sessionId": "aaaa-1"}));
    watching.wait_for_stdout("aaaa-1  renamed to The first");
    client.done(json!({"type": "close_session", "sessionId": "aaaa-1"}));
    watching.wait_for_stdout("aaaa-1  closed");
    raw.wait_for_stdout("\"type\":\"session_closed\"");
    raw.signal(Signal::INT);
    let raw = raw.finish();
    assert_eq!(raw.code, 0, "{raw:?}");
    for line in raw.stdout.lines() {
        let event: Value = serde_json::from_str(line).expect("an event");
        assert!(event["type"].as_str().unwrap().starts_with("session_"), "{line}");
    }
    service.signal(Signal::TERM);
    let left = watching.finish();
    assert_eq!(left.code, 3, "{left:?}");
    assert_says(&left.stderr, &["agentd has ended"]);
}

#[test]
fn session_files_of_every_age_have_a_transcript() {
    let home = Home::new();
    let folder = binaries::workspace().join("tests/data/sessions");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect();
    assert!(files.len() >= 4);
    for file in files {
        let text = ctl::run(&home, &["export", &file.display().to_string(), "--format", "md"]);
        assert_eq!((text.code, text.stderr.as_str()), (0, ""), "{}", file.display());
        assert_says(&text.stdout, &["\n## User\n", "\n## Assistant (", "| model | answers |"]);
        assert!(text.stdout.lines().any(|line| line.starts_with("# ")), "{}", text.stdout);
    }
}

/// A folder with a copy of `agentctl`, and this script as `agentd`.
///
/// Another process writes both: a descriptor that is open for writing in this process could be inherited by a child that
/// another test forks, and the system does not execute a file that is open for writing.
fn install(home: &Home, script: Option<&str>) -> PathBuf {
    let mut command = home.command("/bin/sh");
    command.current_dir(home.root()).env("AGENTCTL", binaries::agentctl());
    if let Some(script) = script {
        command.env("SCRIPT", format!("#!/bin/bash\n{script}"));
    }
    let copy = r#"mkdir bin; cp "$AGENTCTL" bin/agentctl"#;
    let write = r#"test -z "$SCRIPT" || { printf '%s\n' "$SCRIPT" > bin/agentd; chmod +x bin/agentd; }"#;
    command.args(["-e", "-c", &format!("{copy}; {write}")]);
    assert!(command.status().expect("a shell runs").success());
    home.root().join("bin/agentctl")
}

fn start(home: &Home, script: Option<&str>) -> Ctl {
    let mut command = home.command(install(home, script));
    command.args(["prompt", "Hi"]);
    if script.is_none() {
        command.env("PATH", home.root().join("nothing"));
    }
    Ctl::start_with(command, Stdio::null())
}

fn run(script: Option<&str>) -> Finished {
    start(&Home::new(), script).finish()
}

/// Answers what `agentctl` asks of a daemon with a model.
const MODEL: &str = r#"
read -r line
echo '{"id":"1","type":"response","command":"hello","success":true,"data":{"protocol":1,"daemon":{"name":"agentd","version":"0.1.0","pid":1,"epoch":"e"},"capabilities":[],"limits":{"maxLineBytes":67108864}}}'
read -r line
echo '{"id":"2","type":"response","command":"get_state","success":true,"data":{"model":{"id":"m","name":"m","api":"a","provider":"p"},"thinkingLevel":"off","isStreaming":false,"isCompacting":false,"steeringMode":"all","followUpMode":"all","sessionId":"s","autoCompactionEnabled":true,"messageCount":0,"pendingMessageCount":0}}'
read -r line
echo '{"id":"3","type":"response","command":"prompt","success":true,"data":{"disposition":"started"}}'
echo '{"type":"agent_start"}'
"#;

#[test]
fn a_missing_daemon_is_explained() {
    let done = run(None);
    assert_eq!(done.code, 3, "{done:?}");
    assert_says(&done.stderr, &["agentd", "cargo build", "PATH"]);
}

#[test]
fn a_daemon_that_refuses_to_start_is_quoted() {
    let done = run(Some("echo 'Error: the moon is in the wrong place' >&2; exit 1"));
    assert_eq!(done.code, 1, "{done:?}");
    assert_says(&done.stderr, &["the moon is in the wrong place", "refused to start"]);
}

#[test]
fn a_daemon_that_breaks_down_at_the_start_is_another_matter() {
    for (script, how) in
        [("exit 101", "exit status: 101"), ("kill -SEGV $$", "signal: 11"), ("exit 0", "exit status: 0")]
    {
        let done = run(Some(script));
        assert_eq!(done.code, 3, "{done:?}");
        assert_says(&done.stderr, &["/bin/agentd could not start", how]);
    }
}

#[test]
fn a_daemon_that_dies_in_the_middle_is_reported() {
    let done = run(Some(&format!("{MODEL}\nkill -KILL $$")));
    assert_eq!(done.code, 3, "{done:?}");
    assert_says(&done.stderr, &["ended before the answer was complete", "signal: 9", "--continue"]);
}

#[test]
fn warnings_of_the_daemon_are_passed_on_to_stderr_alone() {
    let settled = r#"echo '{"type":"message_end","message":{"role":"assistant","content":[],"stopReason":"stop"}}'
        echo '{"type":"agent_settled","aborted":false}'; read -r line"#;
    let done = run(Some(&format!("echo 'Warning: odd settings' >&2\n{MODEL}\n{settled}")));
    assert_eq!((done.code, done.stdout.as_str()), (0, ""), "{done:?}");
    assert_eq!(done.stderr, "Warning: odd settings\n");
}

#[test]
fn a_second_interrupt_does_not_wait() {
    let home = Home::new();
    // The script ignores signals and the end of its input.
    let deaf =
        format!("{MODEL}\necho up >&2\nread -r line\necho told >&2\ntrap '' INT TERM HUP\nexec sleep 1000");
    let mut running = start(&home, Some(&deaf));
    running.wait_for_stderr("up");
    running.signal(Signal::INT);
    running.wait_for_stderr("told");
    running.signal(Signal::INT);
    let done = running.finish();
    assert_eq!(done.code, 130, "{done:?}");
}

#[test]
fn a_refused_prompt_keeps_its_advice() {
    let refusal = MODEL.replace(
        r#""success":true,"data":{"disposition":"started"}"#,
        r#""success":false,"error":"No API key found for p.","code":"no_credentials","hint":"Set P_KEY.""#,
    );
    let done = run(Some(&format!("{refusal}\nread -r line")));
    assert_eq!((done.code, done.stdout.as_str()), (1, ""), "{done:?}");
    assert_eq!(done.stderr, "Error: No API key found for p.\nSet P_KEY.\n");
}
