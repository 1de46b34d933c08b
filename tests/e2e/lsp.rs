//! Language servers, with one of our own that does what servers do and what they should not.

use std::{fs, process::Command};

use agentd_e2e::{
    Conversation, DEADLINE, Daemon, Home, MockServer, Reply, conversation::LineTransport, processes, sse,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{
    client_tools::{hello, offered},
    mcp::call,
    support::text,
};

const SERVER: &str = env!("CARGO_BIN_EXE_lsp_test_server");

/// A project of two files, and a server for it that is started with these arguments.
pub(crate) fn home(model: &MockServer, args: &[&str], settings: Value) -> Home {
    let home = Home::with_model(model);
    let server = json!({"command": SERVER, "args": args, "fileTypes": [".toy"], "rootMarkers": ["toy.project"],
        "settings": {"toy": {"level": 3}}});
    home.write_agent("lsp.json", &json!({"servers": {"toy": server}}).to_string());
    let mut lsp = json!({"enabled": true});
    for (key, value) in settings.as_object().expect("settings") {
        lsp[key] = value.clone();
    }
    home.settings(&json!({"lsp": lsp, "undo": {"enabled": true}}));
    home.write("toy.project", "");
    home.write("a.toy", "def add 2\n");
    home.write("b.toy", "import a.toy\n😀 call add 2\n");
    home
}

fn start(args: &[&str], settings: Value) -> (MockServer, Home, Daemon) {
    let model = MockServer::start([]);
    let home = home(&model, args, settings);
    let mut daemon = Daemon::start(&home, &[]);
    hello(&mut daemon, "test");
    (model, home, daemon)
}

fn says(text: &str, part: &str) {
    crate::support::assert_says(text, &[part]);
}

fn lsp<W: LineTransport>(client: &mut Conversation<W>, model: &MockServer, arguments: Value) -> String {
    let result = call(client, model, "lsp", arguments);
    assert_eq!(result["isError"], false, "{}", text(&result));
    text(&result)
}

fn failed<W: LineTransport>(client: &mut Conversation<W>, model: &MockServer, arguments: Value) -> String {
    let result = call(client, model, "lsp", arguments);
    assert_eq!(result["isError"], true, "{}", text(&result));
    text(&result)
}

fn edit<W: LineTransport>(client: &mut Conversation<W>, model: &MockServer, old: &str, new: &str) -> Value {
    call(client, model, "edit", json!({"path": "a.toy", "edits": [{"oldText": old, "newText": new}]}))
}

/// The process of the server, as the tool tells it.
fn process<W: LineTransport>(client: &mut Conversation<W>, model: &MockServer) -> i32 {
    let status = lsp(client, model, json!({"action": "status"}));
    let (_, rest) = status.split_once("process ").unwrap_or_else(|| panic!("no process: {status}"));
    rest.split(',').next().unwrap().parse().unwrap()
}

#[test]
fn an_edit_that_breaks_a_call_elsewhere_comes_back_with_the_diagnostic() {
    for args in [&[][..], &["--pull"], &["--odd"], &["--utf8"]] {
        let (model, home, mut daemon) = start(args, json!({"diagnosticsWaitMs": 10_000}));
        lsp(&mut daemon, &model, json!({"action": "diagnostics", "file": "a.toy"}));
        let result = edit(&mut daemon, &model, "def add 2", "def add 3");
        let said = text(&result);
        says(&said, "New diagnostics of toy:\nb.toy:2:");
        says(&said, "error[E2]: add takes 3, not 2");
        let meta = &result["details"]["meta"]["diagnostics"];
        assert_eq!((&meta["servers"], &meta["complete"]), (&json!(["toy"]), &json!(true)), "{args:?} {meta}");
        let item = &meta["items"][0];
        assert_eq!((&item["path"], &item["line"], &item["code"]), (&json!("b.toy"), &json!(2), &json!("E2")));
        assert!(result["details"]["diff"].is_string());
        // What was there before is not told again, though it moved.
        let result = edit(&mut daemon, &model, "def add 3", "\n\ndef add 3\ndef other 1");
        assert!(!text(&result).contains("New diagnostics"), "{}", text(&result));
        assert_eq!(home.read("a.toy"), "\n\ndef add 3\ndef other 1\n");
        // An error of the file itself, by the tool that writes whole files.
        let written = json!({"path": "c.toy", "content": "call missing 1\n"});
        let result = call(&mut daemon, &model, "write", written);
        says(&text(&result), "c.toy:1:6: error[E1]: missing is not defined");
    }
}

#[test]
fn the_first_file_that_is_read_starts_the_server() {
    let (model, home, mut daemon) = start(&["--log", "--tell"], json!({"diagnosticsWaitMs": 10_000}));
    let told = home.project().join("opened");
    assert!(Command::new("mkfifo").arg(&told).status().unwrap().success());
    call(&mut daemon, &model, "read", json!({"path": "a.toy"}));
    // The server gets the file once it has started, and says so.
    assert!(fs::read_to_string(&told).unwrap().ends_with("a.toy"));
    let result = edit(&mut daemon, &model, "def add 2", "def add 3");
    says(&text(&result), "b.toy:2:");
    let log = home.read("lsp.log");
    for method in ["textDocument/didChange", "textDocument/didSave", "workspace/didChangeWatchedFiles"] {
        says(&log, method);
    }
}

#[test]
fn without_the_setting_there_is_nothing_of_it() {
    let model = MockServer::start([]);
    let home = home(&model, &[], json!({"enabled": false}));
    let mut daemon = Daemon::start(&home, &[]);
    hello(&mut daemon, "test");
    let result = edit(&mut daemon, &model, "def add 2", "def add 3");
    assert!(!text(&result).contains("diagnostics") && result["details"].get("meta").is_none());
    assert!(!offered(&model, 0).contains(&"lsp".to_owned()));
    assert!(!home.agent_dir().join("lsp.log").exists());
}

#[test]
fn a_running_server_can_be_used_without_being_started_by_edits() {
    let (model, _home, mut daemon) = start(&[], json!({"diagnosticsOnEdit": "warm"}));
    let result = edit(&mut daemon, &model, "def add 2", "def add 3");
    assert!(result["details"].get("meta").is_none());
    says(&lsp(&mut daemon, &model, json!({"action": "status"})), "No language server was started");
}

#[test]
fn questions_are_answered_by_line_and_symbol() {
    for args in [&[][..], &["--utf8"], &["--odd"]] {
        let (model, _home, mut daemon) = start(args, json!({}));
        let mut ask = |arguments: Value| lsp(&mut daemon, &model, arguments);
        let at = |action: &str| json!({"action": action, "file": "b.toy", "line": 2, "symbol": "add"});
        assert_eq!(ask(at("definition")), "a.toy:1:5: def add 2");
        assert_eq!(ask(at("references")), "2 places:\na.toy:1:5: def add 2\nb.toy:2:8: 😀 call add 2");
        assert_eq!(ask(at("hover")), "toy **add**");
        says(&ask(json!({"action": "symbols", "file": "a.toy"})), "1: function add 2");
        says(&ask(json!({"action": "symbols", "query": "ad"})), "a.toy:1:5: function add | def add 2");
        assert_eq!(ask(json!({"action": "diagnostics", "file": "b.toy"})), "No diagnostics in b.toy.");
        says(&ask(json!({"action": "capabilities", "file": "a.toy"})), "\"renameProvider\": true");
        let echo =
            json!({"action": "request", "file": "b.toy", "query": "toy/echo", "payload": "{\"a\": 1}"});
        assert_eq!(ask(echo), "{\n  \"a\": 1\n}");
        let settings = json!({"action": "request", "file": "b.toy", "query": "toy/configuration"});
        assert_eq!(ask(settings), "[\n  3,\n  null\n]");
        let mut wrong = |arguments: Value| failed(&mut daemon, &model, arguments);
        says(&wrong(at("implementation")), "toy cannot do that: it has no implementationProvider");
        let missing = json!({"action": "hover", "file": "b.toy", "line": 1, "symbol": "add"});
        says(&wrong(missing), "\"add\" is not in the line 1, which is: import a.toy. It stands in line 2");
        let unknown = json!({"action": "request", "file": "b.toy", "query": "toy/none"});
        says(&wrong(unknown), "toy: toy/none is unknown (code -32601)");
        let other = json!({"action": "hover", "file": "x.unknown", "line": 1});
        says(&wrong(other), "no server is known for this kind of file");
    }
}

#[test]
fn a_rename_changes_every_use_and_undo_takes_it_back() {
    let (model, home, mut daemon) = start(&[], json!({}));
    let rename = |apply: bool| json!({"action": "rename", "file": "b.toy", "line": 2, "symbol": "add", "new_name": "sum", "apply": apply});
    let said = lsp(&mut daemon, &model, rename(false));
    says(&said, "Nothing was changed. This would be:\n2 file(s), 2 replacement(s)");
    assert_eq!(home.read("a.toy"), "def add 2\n");
    let result = call(&mut daemon, &model, "lsp", rename(true));
    says(&text(&result), "Renamed:\n2 file(s), 2 replacement(s)\na.toy (1)\nb.toy (1)");
    says(result["details"]["patch"].as_str().unwrap(), "-def add 2\n+def sum 2");
    assert_eq!(
        (home.read("a.toy"), home.read("b.toy")),
        ("def sum 2\n".into(), "import a.toy\n😀 call sum 2\n".into())
    );
    let done = daemon.done(json!({"type": "restore_checkpoint", "step": "undo"}));
    assert_eq!(done["conflicts"], json!([]));
    assert_eq!(
        (home.read("a.toy"), home.read("b.toy")),
        ("def add 2\n".into(), "import a.toy\n😀 call add 2\n".into())
    );
    // The server is told of files that changed without it.
    assert_eq!(
        lsp(
            &mut daemon,
            &model,
            json!({"action": "definition", "file": "b.toy", "line": 2, "symbol": "add"})
        ),
        "a.toy:1:5: def add 2"
    );
    let to = json!({"action": "rename_file", "file": "a.toy", "new_name": "sub/base.toy"});
    says(&lsp(&mut daemon, &model, to), "a.toy -> sub/base.toy");
    assert_eq!(
        (home.read("sub/base.toy"), home.read("b.toy")),
        ("def add 2\n".into(), "import base.toy\n😀 call add 2\n".into())
    );
    assert!(!home.project().join("a.toy").exists());
    daemon.done(json!({"type": "restore_checkpoint", "step": "undo"}));
    assert_eq!(
        (home.read("a.toy"), home.read("b.toy")),
        ("def add 2\n".into(), "import a.toy\n😀 call add 2\n".into())
    );
    assert!(!home.project().join("sub").exists());
}

#[test]
fn code_actions_are_listed_and_carried_out() {
    let (model, home, mut daemon) = start(&[], json!({}));
    let at = |fields: Value| {
        let mut arguments = json!({"action": "code_actions", "file": "b.toy", "line": 1});
        for (key, value) in fields.as_object().unwrap() {
            arguments[key] = value.clone();
        }
        arguments
    };
    let listed = lsp(&mut daemon, &model, at(json!({})));
    says(&listed, "1. Remove the line (quickfix), preferred\n2. Remove by a command\n3. For editors");
    lsp(&mut daemon, &model, at(json!({"apply": true, "query": "1"})));
    assert_eq!(home.read("b.toy"), "😀 call add 2\n");
    let said = lsp(&mut daemon, &model, at(json!({"apply": true, "query": "by a command"})));
    says(&said, "Changed b.toy.");
    assert_eq!(home.read("b.toy"), "");
    daemon.done(json!({"type": "restore_checkpoint", "step": "undo"}));
    says(
        &failed(&mut daemon, &model, at(json!({"apply": true, "query": "3"}))),
        "editor.only is a command for an editor",
    );
    says(&failed(&mut daemon, &model, at(json!({"apply": true, "query": "4"}))), "it is too late");
}

#[test]
fn each_file_of_a_rename_is_asked_about_and_one_refusal_stops_all() {
    let model = MockServer::start([]);
    let home = home(&model, &[], json!({}));
    home.settings(&json!({"lsp": {"enabled": true}, "permissions": {"rules": [
        {"tool": "edit", "path": "./a.toy", "action": "deny", "reason": "a.toy is sealed"},
    ]}}));
    let mut daemon = Daemon::start(&home, &[]);
    hello(&mut daemon, "test");
    let arguments =
        json!({"action": "rename", "file": "b.toy", "line": 2, "symbol": "add", "new_name": "sum"});
    let said = failed(&mut daemon, &model, arguments);
    says(&said, "a.toy: Permission denied");
    says(&said, "Nothing was changed.");
    assert_eq!(
        (home.read("a.toy"), home.read("b.toy")),
        ("def add 2\n".into(), "import a.toy\n😀 call add 2\n".into())
    );
}

#[test]
fn files_outside_are_changed_only_by_setting() {
    for (setting, is_allowed) in [(json!({}), false), (json!({"editsOutside": true}), true)] {
        let (model, home, mut daemon) = start(&["--outside"], setting);
        let outside = home.project().parent().unwrap().join("outside.toy");
        fs::write(&outside, "x\n").unwrap();
        let arguments =
            json!({"action": "rename", "file": "b.toy", "line": 2, "symbol": "add", "new_name": "sum"});
        if is_allowed {
            lsp(&mut daemon, &model, arguments);
        } else {
            says(
                &failed(&mut daemon, &model, arguments),
                "outside of the working folder: nothing was changed",
            );
        }
        let expected = if is_allowed { ("sumx\n", "def sum 2\n") } else { ("x\n", "def add 2\n") };
        assert_eq!((fs::read_to_string(&outside).unwrap().as_str(), home.read("a.toy").as_str()), expected);
    }
}

#[test]
fn a_server_that_runs_code_is_asked_about_and_not_started_by_edits_then() {
    let model = MockServer::start([]);
    let home = home(&model, &[], json!({}));
    home.settings(&json!({"lsp": {"enabled": true}, "permissions": {"rules": [
        {"tool": "lsp", "action": "deny", "reason": "no servers"},
        {"tool": "edit", "action": "allow"},
    ]}}));
    let mut daemon = Daemon::start(&home, &[]);
    hello(&mut daemon, "test");
    let result = edit(&mut daemon, &model, "def add 2", "def add 3");
    assert_eq!((&result["isError"], result["details"].get("meta")), (&json!(false), None));
    assert!(!home.agent_dir().join("lsp.log").exists());
}

#[test]
fn a_server_that_crashes_is_named_and_starts_again() {
    let (model, home, mut daemon) = start(&["--crash", "textDocument/hover"], json!({}));
    let hover = json!({"action": "hover", "file": "a.toy", "line": 1, "symbol": "add"});
    let said = failed(&mut daemon, &model, hover.clone());
    says(&said, "toy: it ended with code 3; it said: ");
    says(&said, "the toy server breaks at textDocument/hover");
    let definition = json!({"action": "definition", "file": "b.toy", "line": 2, "symbol": "add"});
    assert_eq!(lsp(&mut daemon, &model, definition.clone()), "a.toy:1:5: def add 2");
    failed(&mut daemon, &model, hover);
    let said = failed(&mut daemon, &model, definition.clone());
    says(&said, "toy failed 2 times: it ended with code 3");
    lsp(&mut daemon, &model, json!({"action": "reload"}));
    assert_eq!(lsp(&mut daemon, &model, definition), "a.toy:1:5: def add 2");
    daemon.close();
    says(&fs::read_to_string(home.agent_dir().join("lsp.log")).unwrap(), "the toy server begins");
}

#[test]
fn servers_that_hang_flood_or_take_all_memory_are_bounded_and_leave_nothing() {
    let memory = json!({"maxMemoryBytes": 300_000_000});
    for (args, settings, expected) in [
        (["--hang", "textDocument/hover"], json!({}), "it did not answer textDocument/hover within"),
        (["--big", "textDocument/hover"], json!({}), "its answer of 41943"),
        (["--flood", "textDocument/hover"], json!({}), "it sent more than 128 MiB within 60 s"),
        (
            ["--memory", "textDocument/hover"],
            memory,
            "it used more than 300000000 bytes of memory (setting lsp.maxMemoryBytes)",
        ),
    ] {
        let (model, _home, mut daemon) = start(&[args[0], args[1], "--child"], settings);
        lsp(&mut daemon, &model, json!({"action": "diagnostics", "file": "a.toy"}));
        let pid = process(&mut daemon, &model);
        let mut all = processes::children(u32::try_from(pid).unwrap());
        assert!(!all.is_empty());
        all.push(pid);
        let watched = processes::watch(&all);
        let timeout = if args[0] == "--hang" { 5 } else { 60 };
        let hover =
            json!({"action": "hover", "file": "a.toy", "line": 1, "symbol": "add", "timeout": timeout});
        says(&failed(&mut daemon, &model, hover), expected);
        daemon.close();
        watched.assert_gone_within(DEADLINE);
    }
}

#[test]
fn a_server_that_does_not_begin_is_named() {
    for (args, expected) in [
        (["--hang", "initialize"], "toy could not be started: it did not answer initialize within 1 s"),
        (["--crash", "initialize"], "toy could not be started: it ended with code 3"),
    ] {
        let (model, _home, mut daemon) = start(&args, json!({"startTimeoutMs": 1000}));
        let said = failed(&mut daemon, &model, json!({"action": "diagnostics", "file": "a.toy"}));
        says(&said, expected);
        says(&said, "lsp.log");
    }
}

#[test]
fn an_edit_waits_no_longer_than_the_setting_says_and_tells_the_rest_with_the_next_one() {
    let (model, _home, mut daemon) = start(&["--late", "1500"], json!({"diagnosticsWaitMs": 400}));
    lsp(&mut daemon, &model, json!({"action": "diagnostics", "file": "b.toy"}));
    let result = edit(&mut daemon, &model, "def add 2", "def add 3");
    assert!(!text(&result).contains("New diagnostics"));
    assert_eq!(result["details"]["meta"]["diagnostics"]["complete"], false);
    // It has come once the tool has waited for it.
    lsp(&mut daemon, &model, json!({"action": "diagnostics", "file": "a.toy"}));
    let result = edit(&mut daemon, &model, "def add 3", "def add 3\ndef other 1");
    says(&text(&result), "add takes 3, not 2");
}

#[test]
fn sessions_share_a_server_that_ends_when_nobody_uses_it() {
    let model = MockServer::start([]);
    let home = home(&model, &[], json!({}));
    let server = json!({"command": SERVER, "fileTypes": [".toy"], "rootMarkers": ["toy.project"]});
    home.write_agent("lsp.json", &json!({"idleTimeoutMs": 2000, "servers": {"toy": server}}).to_string());
    let mut daemon = Daemon::start(&home, &[]);
    hello(&mut daemon, "test");
    let ask = json!({"action": "diagnostics", "file": "a.toy"});
    lsp(&mut daemon, &model, ask.clone());
    let first = process(&mut daemon, &model);
    daemon.done(json!({"type": "new_session"}));
    lsp(&mut daemon, &model, ask.clone());
    assert_eq!(process(&mut daemon, &model), first);
    processes::watch(&[first]).assert_gone_within(DEADLINE);
    says(&lsp(&mut daemon, &model, json!({"action": "status"})), "ended; it starts when it is used");
    lsp(&mut daemon, &model, ask);
    let second = process(&mut daemon, &model);
    assert_ne!(first, second);
    // A server that is killed from outside starts again.
    let watched = processes::watch(&[second]);
    kill_process(Pid::from_raw(second).unwrap(), Signal::KILL).unwrap();
    watched.assert_gone_within(DEADLINE);
    lsp(&mut daemon, &model, json!({"action": "definition", "file": "b.toy", "line": 2, "symbol": "add"}));
}

#[test]
fn an_abort_ends_a_call_that_waits_for_a_server() {
    let (model, _home, mut daemon) = start(&["--hang", "textDocument/hover"], json!({}));
    let hover = json!({"action": "hover", "file": "a.toy", "line": 1, "symbol": "add", "timeout": 300});
    model.push(Reply::stream(sse::calls(&[("c1", "lsp", hover)])));
    daemon.send(&json!({"type": "prompt", "message": "Go."}));
    daemon.until("the call", |line| line["type"] == "tool_execution_start");
    daemon.done(json!({"type": "abort"}));
    let ended = daemon.until("its end", |line| line["type"] == "tool_execution_end");
    assert_eq!(ended["isError"], true);
}

#[test]
fn a_project_names_servers_only_when_it_is_trusted() {
    let model = MockServer::start([]);
    let home = home(&model, &[], json!({}));
    home.write_agent("lsp.json", "{}");
    let server = json!({"command": SERVER, "fileTypes": [".toy"]});
    home.write(".agentd/lsp.json", &json!({"servers": {"toy": server}}).to_string());
    for (flag, is_there) in [("--no-approve", false), ("--approve", true)] {
        let mut daemon = Daemon::start(&home, &[flag]);
        hello(&mut daemon, "test");
        let arguments = json!({"action": "diagnostics", "file": "a.toy"});
        if is_there {
            assert_eq!(lsp(&mut daemon, &model, arguments), "No diagnostics in a.toy.");
        } else {
            says(&failed(&mut daemon, &model, arguments), "no server is known for this kind of file");
        }
        daemon.close();
    }
}
