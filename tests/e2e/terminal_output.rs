//! What the screen of a terminal shows of an answer: Markdown laid out in its width, as it streams.

use std::num::NonZero;

use agentd_e2e::{Gate, Home, MockServer, Reply, Service, binaries, ctl::Terminal, sse};
use serde_json::json;

use crate::support::assert_says;

const ANSWER: &str = "# The plan\n\nThere are *two* ways to do **all** of this, and `make` is the one that is shorter to type.\n\n\
- First one\n  - with more\n- [x] done\n\n1. One\n1. Two\n\n| Name | 数 |\n|:--|--:|\n| alpha | 1 |\n| 漢字 | 22 |\n\n\
```rust\nfn main() {} // end\n```\n\n> Quoted [text](https://example.com/a).\n\n漢字かな交じり文は単語の間に空白がないので、どこでも改行できます。";

/// The screen after these bytes, with the rows that have left it at the top; without blanks at the ends of rows.
fn screen(bytes: &[u8], (columns, rows): (u16, u16)) -> Vec<String> {
    let mut parser = emulator((columns, rows));
    parser.process(bytes);
    all_rows(&mut parser, columns)
}

fn nonzero(count: u16) -> NonZero<u16> {
    NonZero::new(count).expect("a size")
}

fn emulator((columns, rows): (u16, u16)) -> vt100::Parser {
    vt100::Parser::new(nonzero(rows), nonzero(columns), 1000)
}

fn all_rows(parser: &mut vt100::Parser, columns: u16) -> Vec<String> {
    parser.screen_mut().set_scrollback(usize::MAX);
    let above = parser.screen().scrollback();
    let mut rows: Vec<String> = Vec::new();
    for back in (0..=above).rev() {
        parser.screen_mut().set_scrollback(back);
        let mut shown = parser.screen().rows(0, columns);
        if back > 0 { rows.extend(shown.next()) } else { rows.extend(shown) }
    }
    rows.iter().map(|row| row.trim_end().to_owned()).collect()
}

/// The rows of the answer: behind the line about the session, before that about the tokens.
fn answer(rows: &[String], columns: u16) -> Vec<&str> {
    let session = rows.iter().position(|row| row.contains("· session ")).expect("the line at the start");
    // That line may take more than a row.
    let is_full = rows[session].chars().count() == usize::from(columns);
    let begin = session + if is_full { 2 } else { 1 };
    let end = rows.iter().rposition(|row| row.contains(" tokens")).expect("the line at the end");
    rows[begin..end].iter().map(String::as_str).collect()
}

fn prompted(home: &Home, size: (u16, u16), variables: &[(&str, &str)]) -> Terminal {
    let args = ["prompt", "--model", "fake/fake", "Go."];
    Terminal::start_with(home, &binaries::agentctl(), &args, Some(size), variables)
}

/// A reply that comes in pieces of some characters.
fn in_pieces(text: &str, size: usize) -> Reply {
    let chars: Vec<char> = text.chars().collect();
    let deltas: String =
        chars.chunks(size).map(|piece| sse::text(&piece.iter().collect::<String>())).collect();
    Reply::stream(deltas + &sse::end("stop", (10, 0, 2)))
}

#[test]
fn the_screen_shows_markdown_in_its_width() {
    let at_50 = [
        "The plan",
        "",
        "There are two ways to do all of this, and make is",
        "the one that is shorter to type.",
        "",
        "• First one",
        "  • with more",
        "[x] done",
        "",
        "1. One",
        "2. Two",
        "",
        "Name  │ 数",
        "──────┼───",
        "alpha │  1",
        "漢字  │ 22",
        "",
        "  rust",
        "  fn main() {} // end",
        "",
        "│ Quoted text (https://example.com/a).",
        "",
        "漢字かな交じり文は単語の間に空白がないので、どこ",
        "でも改行できます。",
    ];
    let paragraph = ["There are two ways to do all of this, and make is the one that is shorter to type."];
    for (columns, rows) in [(50, 40), (80, 10), (200, 24)] {
        for piece in [1, 7, 1000] {
            let server = MockServer::start([in_pieces(ANSWER, piece)]);
            let home = Home::with_model(&server);
            let mut terminal = prompted(&home, (columns, rows), &[]);
            assert_eq!(terminal.wait_for_end(), 0, "{}", terminal.shown());
            let rows = screen(terminal.bytes(), (columns, rows));
            let shown = answer(&rows, columns);
            match columns {
                50 => assert_eq!(shown, at_50, "{piece}"),
                200 => assert_eq!((&shown[2..3], shown.len()), (&paragraph[..], at_50.len() - 2), "{piece}"),
                _ => assert_eq!((&shown[4..22], shown.len()), (&at_50[4..22], at_50.len() - 1), "{piece}"),
            }
        }
    }
}

#[test]
fn colours_only_where_they_are_wanted_and_a_dumb_terminal_gets_the_text() {
    let run = |variables: &[(&str, &str)]| {
        let server = MockServer::start([in_pieces(ANSWER, 5)]);
        let home = Home::with_model(&server);
        let mut terminal = prompted(&home, (80, 24), variables);
        assert_eq!(terminal.wait_for_end(), 0, "{}", terminal.shown());
        (terminal.shown(), screen(terminal.bytes(), (80, 24)))
    };
    let (coloured, rows) = run(&[]);
    assert_says(&coloured, &["\u{1b}[1;4;35mThe plan\u{1b}[0m"]);
    let (plain, plain_rows) = run(&[("NO_COLOR", "1")]);
    let has_colour = |text: &str| (30..38).chain(90..98).any(|sgr| text.contains(&format!("{sgr}m")));
    assert!(has_colour(&coloured) && !has_colour(&plain), "{plain:?}");
    assert_eq!(answer(&rows, 80), answer(&plain_rows, 80));
    let (dumb, _) = run(&[("TERM", "dumb")]);
    assert!(dumb.contains(ANSWER) && !dumb.contains('\u{1b}'), "{dumb:?}");
    let (linked, rows) = run(&[("TERM", "xterm-kitty")]);
    assert_says(&linked, &["\u{1b}]8;;https://example.com/a\u{1b}\\text\u{1b}]8;;\u{1b}\\"]);
    assert!(answer(&rows, 80).contains(&"│ Quoted text."), "{rows:?}");
}

#[test]
fn a_model_cannot_steer_the_terminal() {
    let text =
        "a\u{1b}[2Jb &#27;[2J `\u{9b}2J`\n\n```\n\u{1b}]0;title\u{7}\n```\n[x\u{1b}](https://x.y/\u{1b}[2J)";
    let server = MockServer::start([in_pieces(text, 3)]);
    let home = Home::with_model(&server);
    let mut terminal = prompted(&home, (80, 24), &[("TERM", "xterm-kitty")]);
    assert_eq!(terminal.wait_for_end(), 0, "{}", terminal.shown());
    let shown = terminal.shown();
    assert!(
        !shown.contains("\u{1b}[2J") && !shown.contains('\u{9b}') && !shown.contains('\u{7}'),
        "{shown:?}"
    );
    assert_eq!(answer(&screen(terminal.bytes(), (80, 24)), 80)[0], "a[2Jb &#27;[2J 2J");
}

#[test]
fn an_answer_that_has_not_ended_is_on_the_screen_and_follows_the_width() {
    let gates = [Gate::new(), Gate::new()];
    let reply = Reply::stream(sse::text("- one **two\n- three four five six seven eight nine ten"))
        .gate(&gates[0])
        .then(sse::text(" eleven"))
        .gate(&gates[1])
        .then(sse::text(" twelve\n\nEnd.") + &sse::end("stop", (10, 0, 2)));
    let server = MockServer::start([reply]);
    let home = Home::with_model(&server);
    let mut terminal = prompted(&home, (40, 12), &[]);
    terminal.wait_for("  ten");
    let mut parser = emulator((40, 12));
    parser.process(terminal.bytes());
    let first = terminal.bytes().len();
    let rows = all_rows(&mut parser, 40);
    // What is open may still be closed.
    let at = rows.iter().position(|row| row == "• one two").expect("the first item");
    assert_eq!(rows[at + 1..at + 3], ["• three four five six seven eight nine", "  ten"]);
    parser.screen_mut().set_scrollback(0);
    terminal.resize((80, 12));
    parser.screen_mut().set_size(nonzero(12), nonzero(80));
    gates[0].open();
    terminal.wait_for("eleven");
    gates[1].open();
    assert_eq!(terminal.wait_for_end(), 0, "{}", terminal.shown());
    parser.process(&terminal.bytes()[first..]);
    let rows = all_rows(&mut parser, 80);
    let at = rows.iter().position(|row| row == "• one **two").expect("the first item");
    assert_eq!(
        rows[at + 1..at + 4],
        ["• three four five six seven eight nine ten eleven twelve", "", "End."]
    );
}

#[test]
fn thinking_is_one_line_and_tools_stand_below_what_was_said() {
    let think = |words: &str| sse::delta(json!({ "reasoning_content": words }));
    let server = MockServer::start([
        Reply::stream(
            think("I look at it. Then ")
                + &think("I write.")
                + &sse::text("**Writing** it.")
                + &sse::calls(&[("c1", "write", json!({"path": "made.txt", "content": "x\n"}))]),
        ),
        Reply::stream(sse::answer("Done.")),
        Reply::stream(think("One.\n\nTwo.") + &sse::answer("Again.")),
    ]);
    let home = Home::with_model(&server);
    let mut terminal = prompted(&home, (60, 24), &[]);
    assert_eq!(terminal.wait_for_end(), 0, "{}", terminal.shown());
    let rows = screen(terminal.bytes(), (60, 24));
    let shown = answer(&rows, 60);
    assert_eq!((shown[0], shown[1]), ("thought for less than a second", "Writing it."), "{shown:?}");
    assert!(
        shown[2].starts_with("✓ write made.txt: ok") && shown[3] == "Done." && shown.len() == 4,
        "{shown:?}"
    );
    // All of it where it is wanted.
    let args = ["prompt", "--model", "fake/fake", "--show-thinking", "Go."];
    let mut terminal = Terminal::start_with(&home, &binaries::agentctl(), &args, Some((60, 24)), &[]);
    assert_eq!(terminal.wait_for_end(), 0, "{}", terminal.shown());
    let rows = screen(terminal.bytes(), (60, 24));
    assert_eq!(answer(&rows, 60), ["One.", "", "Two.", "thought for less than a second", "Again."]);
}

#[test]
fn an_attached_terminal_shows_it_too() {
    let gate = Gate::new();
    let reply = Reply::stream(sse::text("# Title\n\nSome **bo"))
        .gate(&gate)
        .then(sse::text("ld** text.") + &sse::end("stop", (10, 0, 2)));
    let server = MockServer::start([reply]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut client = service.client();
    client.done(json!({"type": "hello", "protocol": 1, "client": {"name": "editor"}, "capabilities": {"sessions": true}}));
    let id = crate::asking::open(&mut client, &home, &[]);
    let mut terminal =
        Terminal::start_with(&home, &binaries::agentctl(), &["attach", "--plain", &id], Some((60, 24)), &[]);
    terminal.wait_for("Ctrl-D leaves it.");
    client.send(&json!({"type": "prompt", "sessionId": id, "message": "Go."}));
    terminal.wait_for("Some \u{1b}[1mbo");
    gate.open();
    client.event("agent_settled");
    terminal.wait_for("bold\u{1b}[0m text.");
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_end(), 0, "{}", terminal.shown());
    let rows = screen(terminal.bytes(), (60, 24));
    let at = rows.iter().position(|row| row == "Title").expect("the heading");
    assert_eq!(rows[at..at + 3], ["Title", "", "Some bold text."]);
    // The history is laid out, too.
    let mut terminal =
        Terminal::start_with(&home, &binaries::agentctl(), &["attach", "--plain", &id], Some((60, 24)), &[]);
    terminal.wait_for("Ctrl-D leaves it.");
    terminal.wait_for("text.");
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_end(), 0, "{}", terminal.shown());
    assert!(
        screen(terminal.bytes(), (60, 24)).iter().any(|row| row == "Some bold text."),
        "{}",
        terminal.shown()
    );
}
