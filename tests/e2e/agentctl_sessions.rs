//! The verbs of `agentctl` that find a session: the table, names, the last session of a folder, the list to pick from.

use agentd_e2e::{
    Home, MockServer, Reply, Service, Terminal, binaries,
    ctl::{self, Finished},
    sse,
};
use rustix::process::Signal;
use serde_json::Value;

use crate::{
    agentctl_verbs::{client, open},
    support::assert_says,
};

/// A home with two sessions in its project: a review of a diff, and one about zebras.
fn two_sessions() -> (MockServer, Home) {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let asked =
        ctl::run_with_input(&home, &["prompt", "Review this change."], "diff --git a/x b/x\n+last line");
    assert_eq!(asked.code, 0, "{asked:?}");
    assert_eq!(ctl::run(&home, &["run", "What about zebras?"]).code, 0);
    (server, home)
}

fn on_screen(home: &Home, args: &[&str], columns: u16) -> Finished {
    Terminal::start_with(home, &binaries::agentctl(), args, Some((columns, 24)), &[]).finish()
}

/// The text without colours.
fn plain(text: &str) -> String {
    let mut pieces = text.split('\u{1b}');
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| text + piece.split_once('m').map_or("", |(_, rest)| rest))
}

/// The ids, the last used first.
fn ids(home: &Home) -> Vec<String> {
    let listed: Value = serde_json::from_str(&ctl::run(home, &["ls", "--json"]).stdout).unwrap();
    let sessions = listed["sessions"].as_array().unwrap().iter();
    sessions.map(|session| session["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_terminal_gets_a_table_and_a_pipe_lines_with_tabs() {
    let (_server, home) = two_sessions();
    let wide = on_screen(&home, &["sessions"], 120);
    assert_eq!(wide.code, 0, "{wide:?}");
    let text = plain(&wide.stdout);
    let lines: Vec<&str> = text.lines().collect();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(lines[0]), ["ID", "TITLE", "MODEL", "TURNS", "COST", "AGE"], "{text}");
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[1].contains("What about zebras?") && lines[2].contains("Review this change."), "{text}");
    assert!(lines[1].contains("  fake") && !text.contains("diff --git"), "{text}");
    for columns in [50, 200] {
        let shown = plain(&on_screen(&home, &["ls"], columns).stdout);
        assert!(shown.lines().all(|line| line.chars().count() <= usize::from(columns)), "{shown}");
        assert_says(&shown, &["ID", "TITLE", "AGE", "Review this change."]);
    }
    let all = plain(&on_screen(&home, &["sessions", "--all"], 140).stdout);
    let project = home.project().file_name().unwrap().to_string_lossy().into_owned();
    assert_says(&all, &["FOLDER", &project]);
    let piped = ctl::run(&home, &["sessions", "--all"]);
    let ids = ids(&home);
    let lines: Vec<Vec<&str>> = piped.stdout.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(lines.iter().map(|line| line[0]).collect::<Vec<_>>(), ids);
    assert_eq!((lines[1][1], lines[1].len()), ("Review this change.", 8), "{piped:?}");
    let json: Value = serde_json::from_str(&ctl::run(&home, &["ls", "--json", "-n", "1"]).stdout).unwrap();
    let first = &json["sessions"][0];
    assert_eq!((first["turns"].as_u64(), first["cost"].as_f64().is_some()), (Some(1), true), "{first}");
    assert_eq!(first["model"], "fake/fake");
    // A session in memory says the same of itself.
    let service = Service::start(&home, &[]);
    let mut client = client(&service);
    open(&mut client, &home, &ids[1]);
    let live: Value = serde_json::from_str(&ctl::run(&home, &["ls", "--json", "--live"]).stdout).unwrap();
    let live = &live["sessions"][0];
    assert_eq!((&live["firstMessage"], &live["turns"]), (&"Review this change.".into(), &1.into()), "{live}");
}

#[test]
fn the_last_session_here_is_the_one_that_is_meant() {
    let (_server, home) = two_sessions();
    let last = ids(&home)[0].clone();
    let named = format!("Session {}, the last one here: What about zebras?\n", &last[..13]);
    for verb in ["tree", "export", "fsck", "artifact", "diff", "fork"] {
        let implied = ctl::run(&home, &[verb]);
        assert!(implied.stderr.starts_with(&named), "{verb}: {implied:?}");
        let given: &[&str] = if verb == "artifact" { &[verb, "--session", &last] } else { &[verb, &last] };
        let given = ctl::run(&home, given);
        assert_eq!(implied.code, given.code, "{verb}: {implied:?}");
        if verb != "fork" {
            assert_eq!(implied.stdout, given.stdout, "{verb}");
        }
        assert!(!given.stderr.contains("the last one here"), "{verb}: {given:?}");
    }
    // A fork is the last one now.
    let activated = ctl::run(&home, &["tools", "--activate", "ls"]);
    assert_eq!(activated.code, 0, "{activated:?}");
    assert_says(&activated.stderr, &["the last one here"]);
    let report = ctl::run(&home, &["bug-report", "-o", &home.root().join("report").display().to_string()]);
    assert_eq!(report.code, 0, "{report:?}");
    assert_says(&report.stderr, &["the last one here"]);

    for args in [
        &["tree", ""][..],
        &["export", ""],
        &["attach", ""],
        &["fsck", ""],
        &["artifact", "--session", ""],
        &["fork", ""],
        &["diff", ""],
        &["undo", ""],
        &["redo", ""],
        &["tools", ""],
        &["abort", ""],
        &["bug-report", ""],
        &["name", "", "x"],
        &["steer", "", "x"],
        &["rm", ""],
    ] {
        let refused = ctl::run(&home, args);
        assert_eq!(refused.code, 2, "{args:?}: {refused:?}");
        assert_says(&refused.stderr, &[" is empty"]);
    }
    assert_eq!(ctl::run(&home, &["rm"]).code, 2, "what is deleted has to be said");
    let elsewhere = Home::new();
    let none = ctl::run(&elsewhere, &["tree"]);
    assert_eq!(none.code, 1, "{none:?}");
    assert_says(&none.stderr, &["no session of this folder"]);
}

#[test]
fn a_session_gets_a_name_in_memory_or_not() {
    let (_server, home) = two_sessions();
    let ids = ids(&home);
    let named = ctl::run(&home, &["name", " Zebras\n "]);
    assert_eq!((named.code, named.stdout.as_str()), (0, ""), "{named:?}");
    assert_says(&named.stderr, &["the last one here: What about zebras?", "its name is \"Zebras\""]);
    assert!(ctl::run(&home, &["ls"]).stdout.contains("\tZebras\t"));
    let service = Service::start(&home, &[]);
    // One that is not loaded, and then is.
    for name in ["A diff", "The diff"] {
        let named = ctl::run(&home, &["name", &ids[1][..ids[1].len() - 1], name]);
        assert_eq!(named.code, 0, "{named:?}");
        assert!(ctl::run(&home, &["ls"]).stdout.contains(&format!("\t{name}\t")));
    }
    drop(service);
    for (args, says) in [
        (&["name"][..], "required"),
        (&["name", &ids[1]], "the name is missing"),
        (&["name", " "], "the name is empty"),
        (&["name", "three", "words", "here"], "unexpected"),
    ] {
        let refused = ctl::run(&home, args);
        assert_eq!(refused.code, 2, "{args:?}: {refused:?}");
        assert_says(&refused.stderr, &[says]);
    }
    assert_eq!(ctl::run(&home, &["name", "zzzz", "x"]).code, 1);
}

/// `agentctl` on a terminal, then its exit code and the modes of the terminal.
fn resume(home: &Home, args: &str, columns: u16) -> Terminal {
    let script = format!(
        "trap : TERM; {} resume --plain {args}; echo \"code $?\"; stty -a",
        binaries::agentctl().display()
    );
    Terminal::start_with(home, std::path::Path::new("/bin/sh"), &["-c", &script], Some((columns, 24)), &[])
}

/// What is there after the end: the code, and a terminal as a shell wants it.
fn ended(terminal: Terminal, code: u8) -> String {
    let done = terminal.finish();
    assert_says(&done.stdout, &[&format!("code {code}\n"), " icanon", " echo ", "isig", "opost"]);
    assert!(!done.stdout.contains("-icanon") && !done.stdout.contains("-echo "), "{done:?}");
    done.stdout
}

#[test]
fn a_session_is_picked_by_letters_and_shown() {
    let (_server, home) = two_sessions();
    let ids = ids(&home);
    let _service = Service::start(&home, &[]);
    for columns in [50, 120] {
        let mut picking = resume(&home, "", columns);
        picking.wait_for("2 of 2");
        assert_says(&picking.shown(), &["> What about zebras?", "  Review this change."]);
        picking.press("rvw");
        picking.wait_for("1 of 2");
        picking.press("\r");
        picking.wait_for(&format!("Session {}", ids[1]));
        picking.press("\u{4}");
        ended(picking, 0);
    }
    // Arrow keys choose.
    let mut picking = resume(&home, "", 80);
    picking.wait_for("2 of 2");
    picking.press("\u{1b}[B");
    picking.wait_for("> Review this change.");
    picking.press("\r");
    picking.wait_for(&format!("Session {}", ids[1]));
    picking.press("\u{4}");
    ended(picking, 0);
}

#[test]
fn the_terminal_is_as_before_however_the_list_ends() {
    let (_server, home) = two_sessions();
    let _service = Service::start(&home, &[]);
    for (keys, code) in [("\u{1b}", 1), ("\u{4}", 1), ("zzzz\r\u{3}", 130)] {
        let mut picking = resume(&home, "", 80);
        picking.wait_for("2 of 2");
        picking.press(keys);
        ended(picking, code);
    }
    let mut picking = resume(&home, "", 80);
    picking.wait_for("2 of 2");
    picking.signal(Signal::TERM);
    ended(picking, 143);
}

#[test]
fn words_find_a_session_and_a_daemon_is_started() {
    let (_server, home) = two_sessions();
    let ids = ids(&home);
    let mut found = resume(&home, "change REVIEW", 80);
    found.wait_for(&format!("Session {}", ids[1]));
    found.press("\u{4}");
    assert_says(&ended(found, 0), &["agentd was started in the background"]);
    // Several fit: they are listed.
    let mut several = resume(&home, "e", 80);
    several.wait_for("2 of 2");
    several.press("\u{1b}");
    ended(several, 1);
    let mut none = resume(&home, "xylophone", 80);
    none.wait_for("no session fits \"xylophone\"");
    ended(none, 1);
    assert_eq!(ctl::run(&home, &["down"]).code, 0);
    let refused = ctl::run(&home, &["resume", "zebras"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{refused:?}");
    assert_says(&refused.stderr, &["agentctl prompt --session ID", "--continue"]);
}

#[test]
fn abort_and_steer_take_the_one_at_work_here() {
    let server = MockServer::always(Reply::stream(sse::text("On and ")).hang());
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let idle = ctl::run(&home, &["steer", "Leave the tests alone."]);
    assert_eq!(idle.code, 1, "{idle:?}");
    assert_says(&idle.stderr, &["no session is at work", "agentctl prompt -c"]);
    let mut client = client(&service);
    let other = home.root().join("other");
    std::fs::create_dir_all(&other).unwrap();
    for (id, folder) in [("aaaa-1", home.project()), ("aaab-2", other)] {
        client.done(serde_json::json!({"type": "open_session", "cwd": folder, "sessionId": id}));
        client.done(serde_json::json!({"type": "prompt", "message": "Go on.", "sessionId": id}));
        client.until("a piece of the answer", |line| {
            line["type"] == "message_update" && line["sessionId"] == id
        });
    }
    let steered = ctl::run(&home, &["steer", "Leave the tests alone."]);
    assert_eq!(steered.code, 0, "{steered:?}");
    assert_says(&steered.stderr, &["aaaa-1: queued"]);
    let stopped = ctl::run(&home, &["abort"]);
    assert_eq!((stopped.code, stopped.stdout.as_str()), (0, "aaaa-1: stopped the run.\n"), "{stopped:?}");
}
