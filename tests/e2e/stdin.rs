//! What is piped or typed into `agentctl prompt`, and where it stands in the message.

use agentd_e2e::{Home, MockServer, Reply, Terminal, binaries, ctl, sse};

use crate::support::{assert_says, text};

/// The message that the model gets of a command line and its stdin.
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
fn a_blank_line_sets_off_what_is_piped_in() {
    let set_off = "diff --git a/x b/x\n+last line\n\nReview this change.";
    assert_eq!(sent(&["prompt", "Review this change."], DIFF), set_off);
    assert_eq!(sent(&["prompt", "-", "Review", "this change."], &format!("{DIFF}\n\n")), set_off);
    assert_eq!(
        sent(&["prompt", "Before:", "-", "After.", "@a.txt"], "in\n"),
        "<file name=\"a.txt\">\nfile\n\n</file>\nBefore:\n\nin\n\nAfter."
    );
    assert_eq!(sent(&["prompt", "-"], "  if x:\n    y\n"), "  if x:\n    y");
    assert_eq!(sent(&["prompt", "Nothing", "came."], ""), "Nothing came.");
    assert_eq!(sent(&["prompt", "Nothing", "came.", "-"], " \n"), "Nothing came.");
    assert_eq!(sent(&["prompt", "A", "--", "-"], ""), "A -");
}

/// The reference's print mode glues the parts together, and so does ours.
#[test]
fn print_mode_is_that_of_the_reference() {
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
