//! `agentctl prompt` and `agentd -p`: output, exit codes, interrupts, standard input, a terminal.

use std::{io::Read as _, process::Stdio};

use agentd_e2e::{Ctl, Gate, Home, MockServer, Reply, Terminal, binaries, ctl, sse};
use agentd_protocol::{
    event::Event,
    message::{ContentBlock, Message},
    prompt_records::PromptRecord,
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
    // The demo model used these tools.
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
    let mut running = Ctl::start(&home, &["prompt", "--all", "Run", "it."]);
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
    let lines: Vec<&str> = done.stdout.lines().collect();
    let [first, events @ .., last] = &lines[..] else { panic!("{done:?}") };
    let events: Vec<Event> = events
        .iter()
        .map(|line| {
            let value: Value = serde_json::from_str(line).expect("a line of JSON");
            let kind = value["type"].as_str().expect("a type");
            Event::parse(kind, line).unwrap_or_else(|| panic!("no event: {line}")).expect("an event's fields")
        })
        .collect();
    assert!(matches!(events.first(), Some(Event::AgentStart(_))), "{done:?}");
    assert!(matches!(events.last(), Some(Event::AgentSettled(_))), "{done:?}");
    let records = [first, last].map(|line| serde_json::from_str(line).expect("a record"));
    assert!(matches!(records, [PromptRecord::Session(_), PromptRecord::Result(_)]), "{done:?}");
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
    // `--session` takes a path relative to the client's folder.
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
    let expected = format!(
        "<stdin>\npiped\n</stdin>\n\n<file name=\"{}\">\nfirst\n\n</file>\nExplain this. @not-a-file",
        path.display()
    );
    assert_eq!(text(&server.requests()[0].messages()[1]), expected);
}

#[test]
fn images_are_attached() {
    // An image of one pixel.
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
    let hint =
        "fake did not accept the key (\"apiKey\" in models.json). `agentctl login fake` stores another one";
    assert_says(&done.stderr, &["Error: ", "401", "bad key", hint]);
    assert!(!done.stderr.contains("test-key-1234"), "{done:?}");
    let done = ctl::run(&home, &["prompt", "Hi"]);
    assert_eq!((done.code, done.stdout.as_str()), (1, "Half\n"), "{done:?}");
    assert_says(&done.stderr, &["truncated", "output token limit"]);
}

#[test]
fn what_the_daemon_refuses_at_the_start_is_reported() {
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
    let mut running = Ctl::start(&home, &["prompt", "--all", "Count"]);
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
    let mut running = Ctl::start(&home, &["prompt", "--all", "Count"]);
    running.wait_for_stdout("So far");
    running.signal(Signal::TERM);
    assert_eq!(running.finish().code, 143);
    let last = records(&home.session_files()[0]).pop().expect("a last entry");
    assert_eq!(last["message"]["stopReason"], "aborted", "{last}");
}

#[test]
fn a_reader_that_has_enough_ends_the_prompt_quietly() {
    let server = MockServer::start([Reply::stream(sse::text("Nobody reads this.")).hang()]);
    let home = Home::with_model(&server);
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut command = ctl::command(&home, &["prompt", "--all", "Talk"]);
    let running =
        command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped()).spawn().expect("agentctl");
    // Its end of the pipe is the only one.
    drop(command);
    reader.read_exact(&mut [0; 6]).expect("the beginning of the answer");
    drop(reader);
    // The rest of the answer never comes, so nothing more is written.
    let output = running.wait_with_output().expect("agentctl runs");
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

/// Returns the message that the model receives for a command line and its stdin.
fn sent(args: &[&str], input: &str) -> String {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    home.write("a.txt", "file\n");
    let done = ctl::run_with_input(&home, args, input);
    assert_eq!(done.code, 0, "{args:?}: {done:?}");
    let path = home.project().join("a.txt").display().to_string();
    text(&server.requests()[0].messages()[1]).replace(&path, "a.txt")
}

const DIFF: &str = "diff --git a/x b/x\n+last line\n";

#[test]
fn what_is_piped_in_is_a_block_beside_the_words() {
    let set_off = "<stdin>\ndiff --git a/x b/x\n+last line\n</stdin>\n\nReview this change.";
    assert_eq!(sent(&["prompt", "Review this change."], DIFF.trim_end()), set_off);
    assert_eq!(sent(&["prompt", "Review this change."], DIFF), set_off);
    assert_eq!(sent(&["prompt", "-", "Review", "this change."], &format!("{DIFF}\n\n")), set_off);
    assert_eq!(
        sent(&["prompt", "Before:", "-", "After.", "@a.txt"], "in\n"),
        "<file name=\"a.txt\">\nfile\n\n</file>\nBefore:\n\n<stdin>\nin\n</stdin>\n\nAfter."
    );
    assert_eq!(sent(&["prompt", "-"], "  if x:\n    y\n"), "  if x:\n    y");
    assert_eq!(sent(&["prompt", "Nothing", "came."], ""), "Nothing came.");
    assert_eq!(sent(&["prompt", "Nothing", "came.", "-"], " \n"), "Nothing came.");
    assert_eq!(sent(&["prompt", "A", "--", "-"], ""), "A -");
}

/// pi's print mode joins the parts without a separator, and so does ours.
#[test]
fn print_mode_is_that_of_pi() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let done = ctl::feed(ctl::agentd(&home, &["-p", "Review this change."]), "+last line\n");
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(text(&server.requests()[0].messages()[1]), "+last lineReview this change.");
}

#[test]
fn a_dash_that_brings_nothing_or_comes_twice_is_a_mistake() {
    let home = Home::new();
    let empty = ctl::run_with_input(&home, &["prompt", "-"], "\n");
    assert_eq!(empty.code, 2, "{empty:?}");
    assert_says(&empty.stderr, &["there is no message"]);
    let twice = ctl::run_with_input(&home, &["prompt", "-", "and", "-"], "x");
    assert_eq!(twice.code, 2, "{twice:?}");
    assert_says(&twice.stderr, &["- stands for stdin, which is read once", "after `--`"]);
}

#[test]
fn a_dash_at_a_terminal_reads_what_is_typed() {
    let server = MockServer::always(Reply::stream(sse::answer("Heard.")));
    let home = Home::with_model(&server);
    let mut terminal = Terminal::start(&home, &binaries::agentctl(), &["prompt", "-"]);
    terminal.wait_for("Ctrl-D");
    terminal.press("Typed line.\n\u{4}");
    let done = terminal.finish();
    assert_eq!(done.code, 0, "{done:?}");
    assert_says(&done.stdout, &["Heard."]);
    assert_eq!(text(&server.requests()[0].messages()[1]), "Typed line.");
}

#[test]
fn colour_on_a_terminal_and_no_escapes_of_the_model() {
    let server = MockServer::start([
        Reply::stream(sse::calls(&[("c1", "bash", json!({"command": "true"}))])),
        Reply::stream(sse::answer("cl\u{1b}[2Jean")),
    ]);
    let home = Home::with_model(&server);
    let done = Terminal::start(&home, &binaries::agentctl(), &["prompt", "Hi"]).finish();
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stdout.contains("\u{1b}[32m✓\u{1b}[0m \u{1b}[2mbash true: ok, "), "{done:?}");
    assert!(done.stdout.contains("cl[2Jean\n"), "{done:?}");
}

/// The screen after the cursor went back to the beginning of a line: what stood there is gone.
fn lines_of(screen: &str) -> Vec<String> {
    let line = |line: &str| line.rsplit("\r\u{1b}[K").next().unwrap_or_default().to_owned();
    screen.lines().map(line).collect()
}

#[test]
fn a_terminal_shows_what_goes_on_and_what_it_took() {
    let gate = Gate::new();
    let call = json!({"command": "echo one; echo two; exit 3"});
    let server = MockServer::start([
        Reply::stream(sse::calls(&[("c1", "bash", call)])).gate_first(&gate),
        Reply::stream(sse::answer("It failed.")),
    ]);
    let home = Home::with_model(&server);
    let mut terminal = Terminal::start(&home, &binaries::agentctl(), &["prompt", "Run it."]);
    // Nothing has come yet.
    terminal.wait_for("fake · waiting for the answer · 0 s");
    gate.open();
    let done = terminal.finish();
    assert_eq!(done.code, 0, "{done:?}");
    let lines = lines_of(&done.stdout);
    let plain: Vec<String> = lines
        .iter()
        .map(|line| {
            ["2", "0", "31", "32"]
                .iter()
                .fold(line.clone(), |line, code| line.replace(&format!("\u{1b}[{code}m"), ""))
        })
        .collect();
    assert!(plain[0].starts_with("fake · session ") && plain[0].ends_with("/project"), "{plain:?}");
    assert!(plain[1].starts_with("✗ bash echo one; echo two; exit 3: failed, "), "{plain:?}");
    assert_eq!(plain[2..5], ["    one", "    two", "It failed."], "{plain:?}");
    assert!(
        plain[5].starts_with("2 turns · ") && plain[5].ends_with(" · agentctl prompt -c goes on"),
        "{plain:?}"
    );
    assert_eq!(plain.len(), 6, "{plain:?}");
}

/// Where a line cannot be rewritten, none is.
#[test]
fn a_dumb_terminal_gets_plain_lines() {
    let server = MockServer::start([
        Reply::stream(sse::calls(&[("c1", "bash", json!({"command": "true"}))])),
        Reply::stream(sse::answer("Done.")),
    ]);
    let home = Home::with_model(&server);
    let script = format!("TERM=dumb exec {} prompt Hi", binaries::agentctl().display());
    let done = Terminal::start(&home, std::path::Path::new("/bin/sh"), &["-c", &script]).finish();
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stdout.starts_with("-> bash true\n<- bash true: ok, "), "{done:?}");
    assert!(done.stdout.ends_with("Done.\n") && !done.stdout.contains('\u{1b}'), "{done:?}");
}

/// A terminal gets cleaned text; a file or a pipe gets every byte.
#[test]
fn print_mode_lets_no_model_steer_the_terminal() {
    let failed = Reply::status(400, "text/plain", "no \u{1b}]0;title\u{7}way");
    let server = MockServer::start([
        Reply::stream(sse::answer("cl\u{1b}[2Jean")),
        Reply::stream(sse::answer("cl\u{1b}[2Jean")),
        failed,
    ]);
    let home = Home::with_model(&server);
    // A terminal on stdin is not read: the message is the whole prompt.
    let shown = Terminal::start(&home, &binaries::agentd(), &["-p", "Hi"]).finish();
    assert_eq!((shown.code, shown.stdout.as_str()), (0, "clean\n"));
    let piped = home.command(binaries::agentd()).args(["-p", "Hi"]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(piped.stdout, b"cl\x1b[2Jean\n");
    let told = Terminal::start(&home, &binaries::agentd(), &["-p", "Hi"]).finish();
    assert_eq!(told.code, 1);
    assert!(told.stdout.contains("no way") && !told.stdout.contains('\u{1b}'), "{told:?}");
}

/// Ctrl-C reaches every foreground process of a terminal; the daemon survives it and stores the run.
#[test]
fn ctrl_c_stops_the_run_and_keeps_it() {
    let server = MockServer::start([Reply::stream(sse::text("So far")).hang()]);
    let home = Home::with_model(&server);
    let mut terminal = Terminal::start(&home, &binaries::agentctl(), &["prompt", "Count"]);
    terminal.wait_for("So far");
    terminal.press("\u{3}");
    let done = terminal.finish();
    assert_eq!(done.code, 130, "{done:?}");
    let last = records(&home.session_files()[0]).pop().expect("a last entry");
    assert_eq!(
        (text(&last["message"]).as_str(), &last["message"]["stopReason"]),
        ("So far", &json!("aborted"))
    );
}

#[test]
fn without_a_message_nothing_is_waited_for() {
    let done = Terminal::start(&Home::new(), &binaries::agentctl(), &["prompt"]).finish();
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.stdout.contains("there is no message"), "{done:?}");
}

/// Ctrl-C works while the reader of stdout pauses.
#[test]
fn an_interrupt_is_heard_while_stdout_is_full() {
    let gate = Gate::new();
    let flood = sse::text(&"x".repeat(1 << 20));
    let server = MockServer::start([Reply::stream(flood).gate(&gate).hang()]);
    let home = Home::with_model(&server);
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = ctl::command(&home, &["prompt", "Flood"]);
    command.stdin(std::process::Stdio::null()).stdout(writer).stderr(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    drop(command);
    gate.wait_until_reached();
    gate.open();
    let watched = agentd_e2e::processes::watch(&[i32::try_from(child.id()).unwrap()]);
    // The first signal stops the run, whose text cannot be written; the second ends the client at once.
    agentd_e2e::processes::signal(child.id(), rustix::process::Signal::INT);
    server.wait_for_disconnects(1);
    agentd_e2e::processes::signal(child.id(), rustix::process::Signal::INT);
    watched.assert_gone_within(agentd_e2e::DEADLINE);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    drop(reader);
}
