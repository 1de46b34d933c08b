//! `agentctl prompt` and `agentd -p` as a person sees them.

use std::process::Stdio;

use agentd_e2e::{Gate, Home, MockServer, Reply, Terminal, binaries, ctl, sse};
use serde_json::json;

use crate::support::{records, text};

#[test]
fn colour_on_a_terminal_and_no_escapes_of_the_model() {
    let server = MockServer::start([
        Reply::stream(sse::calls(&[("c1", "bash", json!({"command": "true"}))])),
        Reply::stream(sse::answer("cl\u{1b}[2Jean")),
    ]);
    let home = Home::with_model(&server);
    let done = Terminal::start(&home, &binaries::agentctl(), &["prompt", "Hi"]).finish();
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stdout.contains("\u{1b}[2m-> bash true\u{1b}[0m\n"), "{done:?}");
    assert!(done.stdout.contains("cl[2Jean\n"), "{done:?}");
}

/// What goes to a terminal is the text of the answer, and of the failure; a file or a pipe gets every byte.
#[test]
fn print_mode_lets_no_model_steer_the_terminal() {
    let failed = Reply::status(400, "text/plain", "no \u{1b}]0;title\u{7}way");
    let server = MockServer::start([
        Reply::stream(sse::answer("cl\u{1b}[2Jean")),
        Reply::stream(sse::answer("cl\u{1b}[2Jean")),
        failed,
    ]);
    let home = Home::with_model(&server);
    // Nothing is read from a terminal: the message is all.
    let shown = Terminal::start(&home, &binaries::agentd(), &["-p", "Hi"]).finish();
    assert_eq!((shown.code, shown.stdout.as_str()), (0, "clean\n"));
    let piped = home.command(binaries::agentd()).args(["-p", "Hi"]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(piped.stdout, b"cl\x1b[2Jean\n");
    let told = Terminal::start(&home, &binaries::agentd(), &["-p", "Hi"]).finish();
    assert_eq!(told.code, 1);
    assert!(told.stdout.contains("no way") && !told.stdout.contains('\u{1b}'), "{told:?}");
}

/// Ctrl-C reaches everything in the foreground of a terminal; the daemon has to survive it to store the run.
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

/// A reader that pauses must not keep us from hearing Ctrl-C.
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
    // The first stops the run, whose text cannot be shown; the second does not wait for that.
    agentd_e2e::processes::signal(child.id(), rustix::process::Signal::INT);
    server.wait_for_disconnects(1);
    agentd_e2e::processes::signal(child.id(), rustix::process::Signal::INT);
    watched.assert_gone_within(agentd_e2e::DEADLINE);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    drop(reader);
}
