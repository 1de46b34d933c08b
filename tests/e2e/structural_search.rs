//! The tools `ast_grep` and `ast_edit` on the real programs: the daemon, and `agentd-syntax` beside it.

use std::{fs, time::Duration};

use agentd_e2e::{Daemon, Home, MockServer, Reply, binaries, processes, sse};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{
    client_tools::{hello, offered},
    support::{assert_says, ended, text},
};

/// How long a program may take to end.
const END: Duration = Duration::from_secs(60);

/// A session with the tools, whose model makes the calls that a test asks for.
struct Session {
    model: MockServer,
    home: Home,
    daemon: Daemon,
}

impl Session {
    fn new(settings: &Value) -> Self {
        let model = MockServer::start([]);
        let home = Home::with_model(&model);
        let mut all = json!({"syntax": {"enabled": true}, "undo": {"enabled": true}});
        let given = settings.as_object().expect("settings").clone();
        all.as_object_mut().expect("settings").extend(given);
        home.settings(&all);
        let mut daemon = Daemon::start(&home, &[]);
        hello(&mut daemon, "test");
        Self { model, home, daemon }
    }

    /// Has the model make a call: all events, the text of the result, and whether the call failed.
    fn call_events(&mut self, tool: &str, arguments: &Value) -> (Vec<Value>, Value) {
        self.model.push(Reply::stream(sse::calls(&[("c1", tool, arguments.clone())])));
        self.model.push(Reply::stream(sse::answer("Ok.")));
        let events = self.daemon.prompt("Go.");
        let result = ended(&events, "toolResult")[0].clone();
        (events, result)
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> (String, bool) {
        let (_, result) = self.call_events(tool, arguments);
        (text(&result), result["isError"] == true)
    }

    /// The id of the preview of a rewriting.
    fn preview(&mut self, arguments: &Value) -> (String, String) {
        let (text, failed) = self.call("ast_edit", arguments);
        assert!(!failed, "{text}");
        let id = text.split([' ', ':']).nth(1).expect("an id").to_owned();
        (id, text)
    }

    /// The process of the program that parses.
    fn parser(&self) -> i32 {
        let mut left = processes::children(self.daemon.id());
        while let Some(pid) = left.pop() {
            if fs::read_to_string(format!("/proc/{pid}/comm"))
                .is_ok_and(|name| name.trim() == "agentd-syntax")
            {
                return pid;
            }
            left.extend(processes::children(pid.cast_unsigned()));
        }
        panic!("agentd-syntax does not run");
    }
}

fn with(arguments: &Value, key: &str, value: &str) -> Value {
    let mut arguments = arguments.clone();
    arguments[key] = value.into();
    arguments
}

#[test]
fn the_tools_are_active_only_where_somebody_says_so() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    let ask = |args: &[&str]| {
        let mut daemon = Daemon::start(&home, args);
        hello(&mut daemon, "test");
        model.push(Reply::stream(sse::answer("Ok.")));
        daemon.prompt("Go.");
        offered(&model, model.requests().len() - 1)
    };
    let four = ["read", "bash", "edit", "write"];
    let both = [&four[..], &["ast_grep", "ast_edit"]].concat();
    assert_eq!(ask(&["--no-session"]), four);
    assert_eq!(ask(&["--no-session", "--syntax"]), both);
    assert_eq!(ask(&["--no-session", "--tools", "read,ast_grep"]), ["read", "ast_grep"]);
    home.settings(&json!({"syntax": {"enabled": false}}));
    assert_eq!(ask(&["--no-session", "--syntax"]), four);
    home.settings(&json!({"syntax": {"enabled": true}}));
    assert_eq!(ask(&["--no-session"]), both);
    // Without the program, nobody has the tools.
    let alone = home.root().join("alone");
    fs::create_dir(&alone).expect("a folder");
    binaries::copy(&binaries::agentd(), &alone.join("agentd"));
    let mut command = home.command(alone.join("agentd"));
    command.args(["--stdio", "--no-session"]);
    let mut daemon = Daemon::start_command(command);
    hello(&mut daemon, "test");
    model.push(Reply::stream(sse::answer("Ok.")));
    daemon.prompt("Go.");
    assert_eq!(offered(&model, model.requests().len() - 1), four);
}

#[test]
fn code_is_found_by_its_structure() {
    let mut session = Session::new(&json!({}));
    let home = &session.home;
    home.write(
        "src/a.rs",
        "fn a() {\n    let x = parse(\n        1, // one\n        2,\n    );\n    parse (3, 4);\n}\n",
    );
    home.write("src/b.py", "parse(1, 2)\nprint(\"parse(1, 2)\")\n");
    home.write("ignored.rs", "fn i() { parse(1, 2); }\n");
    home.write(".ignore", "ignored.rs\n");
    home.write("notes.txt", "parse(1, 2)\n");
    let (found, failed) = session.call("ast_grep", &json!({"pattern": "parse($A, $B)", "language": "rust"}));
    assert_eq!(
        found,
        "src/a.rs:2:     let x = parse(\nsrc/a.rs-3-         1, // one\nsrc/a.rs-4-         2,\nsrc/a.rs-5-     );\n\
         src/a.rs:6:     parse (3, 4);"
    );
    assert!(!failed);
    let (found, _) = session.call("ast_grep", &json!({"pattern": "parse($$$ARGS)", "limit": 1}));
    assert_says(&found, &["src/a.rs:2:", "1 matches limit reached"]);
    let (found, _) = session.call("ast_grep", &json!({"pattern": "parse($$$ARGS)", "glob": "*.py"}));
    assert_eq!(found, "src/b.py:1: parse(1, 2)");
    let (found, _) = session.call("ast_grep", &json!({"pattern": "parse($A, $B)", "path": "src/b.py"}));
    assert_eq!(found, "b.py:1: parse(1, 2)");
    let (found, failed) = session.call("ast_grep", &json!({"pattern": "nothing($A)", "language": "rust"}));
    assert_eq!((found.as_str(), failed), ("No matches found in 1 files", false));
    for (arguments, says) in [
        (json!({"pattern": "fn (", "language": "rust"}), "Invalid pattern for rust: it is no code in rust"),
        (json!({"pattern": "x", "language": "cobol"}), "Unknown language \"cobol\""),
        (json!({"pattern": "x", "path": "nowhere"}), "Path not found"),
        (json!({"pattern": "x", "path": "notes.txt"}), "The language of"),
    ] {
        let (said, failed) = session.call("ast_grep", &arguments);
        assert!(failed && said.contains(says), "{arguments}: {said}");
    }
}

#[test]
fn a_rewriting_is_shown_first_and_made_in_all_files() {
    let mut session = Session::new(&json!({}));
    session.home.write("a.rs", "fn a() { one.unwrap(); }\r\n");
    session.home.write("sub/b.rs", "fn b() {\n    two.unwrap();\n}\n");
    let rewriting = json!({"pattern": "$X.unwrap()", "rewrite": "$X.expect(\"there\")", "language": "rust"});
    let (id, preview) = session.preview(&rewriting);
    assert_says(
        &preview,
        &[
            "2 changes in 2 files. Nothing is changed yet",
            "--- a.rs",
            "-    two.unwrap();\n+    two.expect(\"there\");",
        ],
    );
    assert_eq!(session.home.read("a.rs"), "fn a() { one.unwrap(); }\r\n");
    // A file that changes meanwhile makes it another preview.
    session.home.write("sub/c.rs", "fn c() { three.unwrap(); }\n");
    let (stale, failed) = session.call("ast_edit", &with(&rewriting, "apply", &id));
    assert!(
        failed && stale.starts_with("Nothing was changed: the changes are not those of the preview"),
        "{stale}"
    );
    assert_eq!(session.home.read("a.rs"), "fn a() { one.unwrap(); }\r\n");
    let (id, _) = session.preview(&rewriting);
    let (events, result) = session.call_events("ast_edit", &with(&rewriting, "apply", &id));
    assert_eq!(
        text(&result),
        "Made 3 changes in 3 files.\na.rs: 1 change\nsub/b.rs: 1 change\nsub/c.rs: 1 change"
    );
    assert_eq!(session.home.read("a.rs"), "fn a() { one.expect(\"there\"); }\r\n");
    assert_eq!(session.home.read("sub/b.rs"), "fn b() {\n    two.expect(\"there\");\n}\n");
    // One checkpoint for all of it.
    let kept: Vec<&Value> = events.iter().filter(|event| event["type"] == "checkpoint_created").collect();
    assert_eq!((kept.len(), &kept[0]["checkpoint"]["tool"]), (1, &json!("ast_edit")));
    session.daemon.done(json!({"type": "restore_checkpoint", "step": "undo"}));
    assert_eq!(session.home.read("a.rs"), "fn a() { one.unwrap(); }\r\n");
    assert_eq!(session.home.read("sub/c.rs"), "fn c() { three.unwrap(); }\n");
}

#[test]
fn each_file_is_judged_as_an_edit() {
    let rule = json!({"tool": "edit", "path": "./kept/**", "action": "deny"});
    let mut session = Session::new(&json!({"permissions": {"preset": "full", "rules": [rule]}}));
    session.home.write("a.rs", "fn a() { f(1); }\n");
    session.home.write("kept/b.rs", "fn b() { f(2); }\n");
    let rewriting = json!({"pattern": "f($A)", "rewrite": "g($A)", "language": "rust"});
    let (id, _) = session.preview(&rewriting);
    let (said, failed) = session.call("ast_edit", &with(&rewriting, "apply", &id));
    assert!(failed, "{said}");
    assert_says(
        &said,
        &["Permission denied: rule 1 of the setting permissions.rules refuses it", "Nothing was changed."],
    );
    assert_eq!(session.home.read("a.rs"), "fn a() { f(1); }\n");
    let narrow = with(&rewriting, "path", "a.rs");
    let (id, _) = session.preview(&narrow);
    let (said, failed) = session.call("ast_edit", &with(&narrow, "apply", &id));
    assert!(!failed, "{said}");
    assert_eq!(session.home.read("a.rs"), "fn a() { g(1); }\n");
    // In plan mode a model may look, and see what would be changed.
    session.daemon.done(json!({"type": "set_mode", "mode": "plan"}));
    let back = json!({"pattern": "g($A)", "rewrite": "f($A)", "path": "a.rs"});
    let (id, _) = session.preview(&back);
    let (said, failed) = session.call("ast_edit", &with(&back, "apply", &id));
    assert!(failed && said.contains("plan mode refuses writing"), "{said}");
    assert_eq!(session.home.read("a.rs"), "fn a() { g(1); }\n");
}

#[test]
fn a_parser_that_is_killed_or_stopped_takes_nothing_with_it() {
    let mut session = Session::new(&json!({"syntax": {"enabled": true, "timeoutMs": 3000}}));
    session.home.write("a.rs", "fn a() { f(1); }\n");
    let search = json!({"pattern": "f($A)", "language": "rust"});
    let found = ("a.rs:1: fn a() { f(1); }".to_owned(), false);
    assert_eq!(session.call("ast_grep", &search), found);
    let first = session.parser();
    let watched = processes::watch(&[first]);
    kill_process(Pid::from_raw(first).expect("a process id"), Signal::KILL).expect("it can be killed");
    watched.assert_gone_within(END);
    assert_eq!(session.call("ast_grep", &search), found, "another one is started");
    let second = session.parser();
    assert_ne!(first, second);
    // One that answers no more is ended, and its successor does the work.
    let watched = processes::watch(&[second]);
    kill_process(Pid::from_raw(second).expect("a process id"), Signal::STOP).expect("it can be stopped");
    let (said, failed) = session.call("ast_grep", &search);
    assert!(failed && said.contains("it did not answer within 3 seconds"), "{said}");
    watched.assert_gone_within(END);
    assert_eq!(session.call("ast_grep", &search), found);
    // With the daemon, it ends.
    let watched = processes::watch(&[session.parser()]);
    session.daemon.signal(Signal::KILL);
    watched.assert_gone_within(END);
}
