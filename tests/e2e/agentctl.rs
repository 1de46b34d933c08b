//! `agentctl prompt` with the real daemon behind it.

use std::process::Stdio;

use agentd_e2e::{Ctl, Gate, Home, MockServer, Reply, ctl, sse};
use agentd_protocol::{
    event::Event,
    message::{ContentBlock, Message},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{assert_says, records, roles, text};

fn small_project(home: &Home) {
    home.write("README.md", "# Weather station\n\nReads sensors.\n");
    home.write("src/main.py", "print('hello')\n");
}

#[test]
fn a_new_user_gets_an_answer_from_the_demo_model() {
    let home = Home::new();
    small_project(&home);
    let done = ctl::run(&home, &["prompt", "--demo", "What is in this folder?"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_says(&done.stdout, &["README.md", "Weather station", "demo model", "What is in this folder?"]);
    assert!(done.stdout.ends_with('\n'));
    // The tools that the demo used.
    assert_says(&done.stderr, &["-> bash ", "<- bash ", ": ok, "]);
    assert_eq!(home.session_files().len(), 1);
}

#[test]
fn text_goes_to_stdout_as_it_comes_and_tools_to_stderr() {
    let gate = Gate::new();
    let server = MockServer::start([
        Reply::stream(sse::calls(&[("c1", "bash", json!({"command": "echo out; exit 3"}))])),
        Reply::stream(sse::text("It fail")).gate(&gate).then(sse::text("ed.") + &sse::end("stop", (1, 0, 1))),
    ]);
    let home = Home::with_model(&server);
    let mut running = Ctl::start(&home, &["prompt", "Run", "it."]);
    running.wait_for_stdout("It fail");
    gate.open();
    let done = running.finish();
    assert_eq!((done.code, done.stdout.as_str()), (0, "It failed.\n"), "{done:?}");
    let lines: Vec<&str> = done.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{done:?}");
    assert_eq!(lines[0], "-> bash echo out; exit 3");
    assert!(lines[1].starts_with("<- bash echo out; exit 3: failed, "), "{done:?}");
    assert!(lines[1].ends_with("Command exited with code 3"), "{done:?}");
    assert_eq!(text(&server.requests()[0].messages()[1]), "Run it.");
}

#[test]
fn json_prints_the_events_and_nothing_else() {
    let home = Home::new();
    small_project(&home);
    let done = ctl::run(&home, &["prompt", "--demo", "--json", "What is in this folder?"]);
    assert_eq!(done.code, 0, "{done:?}");
    let events: Vec<Event> = done
        .stdout
        .lines()
        .map(|line| {
            let value: Value = serde_json::from_str(line).expect("a line of JSON");
            let kind = value["type"].as_str().expect("a type");
            Event::parse(kind, line).unwrap_or_else(|| panic!("no event: {line}")).expect("an event's fields")
        })
        .collect();
    assert!(matches!(events.first(), Some(Event::AgentStart(_))), "{done:?}");
    assert!(matches!(events.last(), Some(Event::AgentSettled(_))), "{done:?}");
    assert!(!done.stderr.contains("-> "), "{done:?}");
}

#[test]
fn continue_goes_on_after_the_process_is_gone() {
    let server = MockServer::start([
        Reply::stream(sse::answer("Noted.")),
        Reply::stream(sse::answer("Blue.")),
        Reply::stream(sse::answer("Fresh.")),
    ]);
    let home = Home::with_model(&server);
    assert_eq!(ctl::run(&home, &["prompt", "My colour is blue."]).code, 0);
    let done = ctl::run(&home, &["prompt", "-c", "Which colour?"]);
    assert_eq!((done.code, done.stdout.as_str()), (0, "Blue.\n"), "{done:?}");
    let requests = server.requests();
    let said: Vec<String> = requests[1].messages().iter().skip(1).map(text).collect();
    assert_eq!(said, ["My colour is blue.", "Noted.", "Which colour?"]);
    let files = home.session_files();
    assert_eq!(files.len(), 1);
    assert_eq!(roles(&files[0]), ["system", "user", "assistant", "user", "assistant"]);
    // Another session by its file, from another folder, with a path that is relative to ours.
    home.write("sub/x", "");
    let file = files[0].strip_prefix(home.root()).expect("a file of the home");
    let relative = format!("../{}", file.display());
    let done = ctl::run(&home, &["prompt", "--cwd", "sub", "--session", &relative, "Still?"]);
    assert_eq!((done.code, done.stdout.as_str()), (0, "Fresh.\n"), "{done:?}");
    assert_eq!(home.session_files().len(), 1);
}

#[test]
fn no_session_leaves_no_file() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    assert_eq!(ctl::run(&home, &["prompt", "--no-session", "Hi"]).code, 0);
    assert_eq!(home.session_files(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn stdin_files_and_words_make_one_prompt() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    home.write("a.txt", "first\n");
    home.write("empty", "");
    let args = ["prompt", "Explain", "@a.txt", "@empty", "this.", "--", "@not-a-file"];
    let done = ctl::run_with_input(&home, &args, "\n piped \n");
    assert_eq!(done.code, 0, "{done:?}");
    let path = home.project().join("a.txt");
    let expected =
        format!("piped\n\n<file name=\"{}\">\nfirst\n\n</file>\nExplain this. @not-a-file", path.display());
    assert_eq!(text(&server.requests()[0].messages()[1]), expected);
}

#[test]
fn images_are_attached() {
    // A picture of one pixel.
    const PNG: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
    let server = MockServer::always(Reply::stream(sse::answer("A dot.")));
    let home = Home::new();
    let mut models = agentd_e2e::home::models(&server.base_url());
    models["providers"]["fake"]["models"][0]["input"] = json!(["text", "image"]);
    home.configure(&models);
    std::fs::write(home.project().join("dot"), STANDARD.decode(PNG).unwrap()).unwrap();
    let done = ctl::run(&home, &["prompt", "--json", "What is it?", "@dot"]);
    assert_eq!(done.code, 0, "{done:?}");
    let entries = records(&home.session_files()[0]);
    let user = entries.iter().find(|entry| entry["message"]["role"] == "user").expect("a user message");
    let Message::User(user) = serde_json::from_value(user["message"].clone()).unwrap() else {
        panic!("{user}")
    };
    let blocks = user.content.blocks().into_owned();
    let [ContentBlock::Text { text, .. }, ContentBlock::Image(image)] = &blocks[..] else {
        panic!("{blocks:?}")
    };
    assert_eq!(
        *text,
        format!("<file name=\"{}\"></file>\nWhat is it?", home.project().join("dot").display())
    );
    assert_eq!((image.mime_type.as_str(), image.data.as_str()), ("image/png", PNG));
    let sent = server.requests()[0].body.to_string();
    assert!(sent.contains(&format!("data:image/png;base64,{PNG}")), "{sent}");
}

#[test]
fn unusable_command_lines_say_what_to_do() {
    let home = Home::new();
    home.write("binary", "a\0b");
    let missing = home.project().join("missing").display().to_string();
    for (args, says) in [
        (&["prompt"][..], &["there is no message", "agentctl prompt \"What is in this folder?\""][..]),
        (&["prompt", "  "], &["there is no message"]),
        (&["prompt", "@missing"], &[&format!("Error: File not found: {missing}")]),
        (&["prompt", "@."], &["is a folder"]),
        (&["prompt", "@binary"], &["binary", "neither text nor"]),
        (&["prompt", "--cwd", "missing", "x"], &["--cwd", "missing"]),
        (&["prompt", "--thinking", "lots", "x"], &["lots", "medium"]),
        (&["prompt", "--nope", "x"], &["--nope", "--help"]),
        (&["prompt", "--provider", "x", "y"], &["--model"]),
        (&[], &["Usage"]),
    ] {
        let done = ctl::run(&home, args);
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{args:?}: {done:?}");
        assert_says(&done.stderr, says);
    }
}

#[test]
fn a_failing_model_is_an_exit_code_of_its_own() {
    let server = MockServer::start([
        Reply::status(401, "application/json", r#"{"error":{"message":"bad key test-key-1234"}}"#),
        Reply::stream(sse::text("Half") + &sse::end("length", (1, 0, 1))),
    ]);
    let home = Home::with_model(&server);
    let done = ctl::run(&home, &["prompt", "Hi"]);
    assert_eq!((done.code, done.stdout.as_str()), (1, ""), "{done:?}");
    assert_says(&done.stderr, &["Error: ", "401", "bad key"]);
    assert!(!done.stderr.contains("test-key-1234"), "{done:?}");
    let done = ctl::run(&home, &["prompt", "Hi"]);
    assert_eq!((done.code, done.stdout.as_str()), (1, "Half\n"), "{done:?}");
    assert_says(&done.stderr, &["truncated", "output token limit"]);
}

#[test]
fn what_the_daemon_refuses_at_the_start_is_told() {
    let home = Home::new();
    for (args, says) in [
        (["--model", "no-such-model"], &["no-such-model"][..]),
        (["--session", "0123"], &["No session found matching '0123'"]),
    ] {
        let done = ctl::run(&home, &[&["prompt", "Hi"][..], &args].concat());
        assert_eq!((done.code, done.stdout.as_str()), (1, ""), "{done:?}");
        assert_says(&done.stderr, says);
    }
}

#[test]
fn the_first_interrupt_stops_the_run_and_keeps_what_came() {
    let server = MockServer::start([Reply::stream(sse::text("So far")).hang()]);
    let home = Home::with_model(&server);
    let mut running = Ctl::start(&home, &["prompt", "Count"]);
    running.wait_for_stdout("So far");
    running.signal(Signal::INT);
    let done = running.finish();
    assert_eq!((done.code, done.stdout.as_str()), (130, "So far\n"), "{done:?}");
    server.wait_for_disconnects(1);
    let last = records(&home.session_files()[0]).pop().expect("a last entry");
    assert_eq!(last["message"]["stopReason"], "aborted", "{last}");
    assert_eq!(text(&last["message"]), "So far");
}

#[test]
fn a_terminate_signal_stops_the_run_too() {
    let server = MockServer::start([Reply::stream(sse::text("So far")).hang()]);
    let home = Home::with_model(&server);
    let mut running = Ctl::start(&home, &["prompt", "Count"]);
    running.wait_for_stdout("So far");
    running.signal(Signal::TERM);
    assert_eq!(running.finish().code, 143);
    let last = records(&home.session_files()[0]).pop().expect("a last entry");
    assert_eq!(last["message"]["stopReason"], "aborted", "{last}");
}

#[test]
fn a_reader_that_has_enough_ends_it_quietly() {
    let (reader, writer) = std::io::pipe().unwrap();
    let server = MockServer::start([Reply::stream(sse::text("Nobody reads this.")).hang()]);
    let home = Home::with_model(&server);
    drop(reader);
    let mut command = ctl::command(&home, &["prompt", "Talk"]);
    let output = command.stdin(Stdio::null()).stdout(writer).output().expect("agentctl runs");
    assert_eq!(output.status.code(), Some(141), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    server.wait_for_disconnects(1);
}

#[test]
fn notices_are_plain_when_stderr_is_no_terminal() {
    let server = MockServer::start([
        Reply::stream(sse::calls(&[("c1", "write", json!({"path": "a", "content": "x"}))])),
        Reply::stream(sse::answer("Done.")),
    ]);
    let home = Home::with_model(&server);
    let done = ctl::run(&home, &["prompt", "Write"]);
    assert!(!done.stderr.contains('\u{1b}'), "{done:?}");
    assert_says(&done.stderr, &["-> write a\n", "<- write a: ok, "]);
}
