//! Tools in the hands of a scripted model: searches, many edits in one answer, and wrong or extreme calls.

use std::os::unix::fs::symlink;

use agentd_e2e::{Daemon, Home, MockServer, Reply, sse};
use serde_json::{Value, json};

use crate::support::{assert_says, ended, text};

/// Runs one call, and returns its result message.
fn call(home: &Home, args: &[&str], tool: &str, arguments: Value) -> Value {
    let server = MockServer::start([
        Reply::stream(sse::calls(&[("c1", tool, arguments)])),
        Reply::stream(sse::answer("Ok.")),
    ]);
    home.configure(&agentd_e2e::home::models(&server.base_url()));
    let mut daemon = Daemon::start(home, args);
    let events = daemon.prompt("Go.");
    let result = ended(&events, "toolResult")[0].clone();
    let tool_messages =
        server.requests()[1].messages().iter().filter(|message| message["role"] == "tool").count();
    assert_eq!(tool_messages, 1, "the model receives the result of its call");
    result
}

#[test]
fn wrong_calls_tell_the_model_what_is_wrong() {
    let home = Home::new();
    home.write("a.txt", "one one\n");
    for (tool, arguments, says) in [
        ("read", json!({}), &["Validation failed for tool \"read\":", "path", "Received arguments:"][..]),
        ("nope", json!({}), &["Tool nope not found"]),
        ("read", json!({"path": "missing"}), &["ENOENT"]),
        ("read", json!({"path": "."}), &["EISDIR"]),
        (
            "edit",
            json!({"path": "a.txt", "edits": [{"oldText": "two", "newText": "x"}]}),
            &["Could not find", "a.txt"],
        ),
        (
            "edit",
            json!({"path": "a.txt", "edits": [{"oldText": "one", "newText": "x"}]}),
            &["Found 2 occurrences"],
        ),
        ("bash", json!({"command": "true", "timeout": -1}), &["Invalid timeout"]),
        ("write", json!({"path": "a.txt/b", "content": "x"}), &["a.txt"]),
    ] {
        let result = call(&home, &["--no-session"], tool, arguments.clone());
        assert_eq!(result["isError"], true, "{tool} {arguments}");
        assert_says(&text(&result), says);
    }
    assert_eq!(home.read("a.txt"), "one one\n");
}

#[test]
fn a_command_that_takes_too_long_is_stopped() {
    let result = call(
        &Home::new(),
        &["--no-session"],
        "bash",
        json!({"command": "echo hi; sleep 1000", "timeout": 2}),
    );
    assert_eq!(result["isError"], true);
    assert_eq!(text(&result), "hi\n\n\nCommand timed out after 2 seconds");
}

#[test]
fn commands_know_the_session() {
    let home = Home::new();
    let result = call(
        &home,
        &[],
        "bash",
        json!({"command": "echo $PI_SESSION_ID $PI_PROVIDER $PI_MODEL $AI_AGENT; test -f \"$PI_SESSION_FILE\""}),
    );
    assert_eq!(result["isError"], false, "{result}");
    let output = text(&result);
    let words: Vec<&str> = output.split_whitespace().collect();
    assert_eq!(words.len(), 4, "{output}");
    assert_eq!(words[1..], ["fake", "fake", "agentd"]);
    assert!(home.session_files()[0].display().to_string().contains(words[0]));
}

#[test]
fn edits_of_one_file_in_one_answer_all_stay() {
    let home = Home::new();
    home.write("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n");
    let calls: Vec<(String, Value)> = (1..=8)
        .map(|n| {
            let edits = json!([{"oldText": format!("{n}\n"), "newText": format!("{}\n", n * 100)}]);
            (format!("c{n}"), json!({"path": "a.txt", "edits": edits}))
        })
        .collect();
    let calls: Vec<(&str, &str, Value)> =
        calls.iter().map(|(id, args)| (id.as_str(), "edit", args.clone())).collect();
    let server = MockServer::start([Reply::stream(sse::calls(&calls)), Reply::stream(sse::answer("Ok."))]);
    home.configure(&agentd_e2e::home::models(&server.base_url()));
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let events = daemon.prompt("Go.");
    assert!(ended(&events, "toolResult").iter().all(|result| result["isError"] == false), "{events:?}");
    assert_eq!(home.read("a.txt"), "100\n200\n300\n400\n500\n600\n700\n800\n");
}

#[test]
fn flags_choose_the_tools() {
    for (args, expected) in [
        (&["--tools", "read,bash"][..], &["read", "bash"][..]),
        (&["--tools", "read,bash", "--exclude-tools", "bash"], &["read"]),
        (&["-t", "-bash"], &["read", "edit", "write"]),
        (&["--no-tools"], &[]),
    ] {
        let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
        let home = Home::with_model(&server);
        let mut daemon = Daemon::start(&home, &[args, &["--no-session"]].concat());
        daemon.prompt("Go.");
        let body = &server.requests()[0].body;
        let tools = body["tools"].as_array().cloned().unwrap_or_default();
        let names: Vec<&str> = tools.iter().filter_map(|tool| tool["function"]["name"].as_str()).collect();
        assert_eq!(names, expected, "{args:?}");
    }
}

#[test]
fn a_flood_of_output_stays_bounded() {
    let home = Home::new();
    let result = call(&home, &["--no-session"], "bash", json!({"command": "yes | head -c 30000000"}));
    assert_eq!(result["isError"], false);
    assert!(text(&result).len() < 60_000);
    assert_says(&text(&result), &["Full output: "]);
    let path = result["details"]["fullOutputPath"].as_str().expect("a path");
    assert_eq!(std::fs::metadata(path).unwrap().len(), 30_000_000);
}

const CALLS: usize = 100;

/// Makes all these calls in one answer; returns `isError` of the results.
fn at_once(home: &Home, calls: &[(String, &str, Value)]) -> Vec<Value> {
    let calls: Vec<(&str, &str, Value)> =
        calls.iter().map(|(id, tool, arguments)| (id.as_str(), *tool, arguments.clone())).collect();
    let server = MockServer::start([Reply::stream(sse::calls(&calls)), Reply::stream(sse::answer("Ok."))]);
    home.configure(&agentd_e2e::home::models(&server.base_url()));
    let mut daemon = Daemon::start(home, &["--no-session"]);
    let events = daemon.prompt("Go.");
    ended(&events, "toolResult").iter().map(|result| result["isError"].clone()).collect()
}

#[test]
fn a_hundred_edits_of_one_file_by_two_names_all_land() {
    let home = Home::new();
    home.write("real/file.txt", &(0..CALLS).map(|number| format!("<{number}>\n")).collect::<String>());
    symlink("real/file.txt", home.project().join("link.txt")).unwrap();
    symlink("real", home.project().join("folder")).unwrap();
    let calls: Vec<_> = (0..CALLS)
        .map(|number| {
            let path = ["link.txt", "folder/file.txt"][number % 2];
            let edits = json!([{"oldText": format!("<{number}>"), "newText": format!("done {number}")}]);
            (format!("c{number}"), "edit", json!({"path": path, "edits": edits}))
        })
        .collect();
    assert_eq!(at_once(&home, &calls), vec![json!(false); CALLS]);
    let expected: String = (0..CALLS).map(|number| format!("done {number}\n")).collect();
    assert_eq!(home.read("real/file.txt"), expected);
    assert!(home.project().join("link.txt").is_symlink() && home.project().join("folder").is_symlink());
}

#[test]
fn writes_and_edits_of_one_file_keep_the_order_of_the_calls() {
    let home = Home::new();
    home.write("real.txt", "0\n");
    symlink("real.txt", home.project().join("link.txt")).unwrap();
    // Each edit matches only the text that the previous call wrote.
    let calls: Vec<_> = (1..=CALLS)
        .map(|number| {
            let path = ["real.txt", "link.txt"][number % 2];
            let call = if number % 10 == 0 {
                ("write", json!({"path": path, "content": format!("{number}\n")}))
            } else {
                let edits =
                    json!([{"oldText": format!("{}\n", number - 1), "newText": format!("{number}\n")}]);
                ("edit", json!({"path": path, "edits": edits}))
            };
            (format!("c{number}"), call.0, call.1)
        })
        .collect();
    assert_eq!(at_once(&home, &calls), vec![json!(false); CALLS]);
    assert_eq!(home.read("real.txt"), format!("{CALLS}\n"));
}

#[test]
fn a_hundred_files_are_written_and_edited_in_one_answer() {
    let home = Home::new();
    let calls: Vec<_> = (0..CALLS)
        .flat_map(|number| {
            let path = format!("new/{number}.txt");
            let edits = json!([{"oldText": "before", "newText": format!("after {number}")}]);
            [
                (format!("w{number}"), "write", json!({"path": path, "content": "before\n"})),
                (format!("e{number}"), "edit", json!({"path": path, "edits": edits})),
            ]
        })
        .collect();
    assert_eq!(at_once(&home, &calls), vec![json!(false); 2 * CALLS]);
    for number in 0..CALLS {
        assert_eq!(home.read(&format!("new/{number}.txt")), format!("after {number}\n"));
    }
}

#[test]
fn a_model_searches_when_it_may() {
    let calls = [
        ("c1", "grep", json!({"pattern": "fn \\w+", "glob": "*.rs"})),
        ("c2", "find", json!({"pattern": "src/*"})),
        ("c3", "ls", json!({})),
        ("c4", "grep", json!({"pattern": "(", "path": "src"})),
    ];
    let server =
        MockServer::start([Reply::stream(sse::calls(&calls)), Reply::stream(sse::answer("There it is."))]);
    let home = Home::with_model(&server);
    home.write("src/main.rs", "fn main() {}\n");
    home.write("src/lib.rs", "pub fn run() {}\n");
    home.write("target/out.rs", "fn generated() {}\n");
    home.write(".ignore", "target\n");
    let mut daemon = Daemon::start(&home, &["--no-session", "--tools", "+grep,+find,+ls,-bash"]);
    let events = daemon.prompt("Where is main?");
    let results = ended(&events, "toolResult");
    let said: Vec<String> = results.iter().map(|result| text(result)).collect();
    assert_eq!(said[0], "src/lib.rs:1: pub fn run() {}\nsrc/main.rs:1: fn main() {}");
    assert_eq!(said[1], "src/lib.rs\nsrc/main.rs");
    assert_eq!(said[2], ".ignore\nsrc/\ntarget/");
    assert_says(&said[3], &["regex parse error"]);
    assert_eq!(results[3]["isError"], true);
    let request = &server.requests()[0];
    let names: Vec<_> = request.body["tools"].as_array().expect("tools").iter().collect();
    let names: Vec<_> = names.iter().map(|tool| tool["function"]["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["read", "edit", "write", "grep", "find", "ls"]);
    let system = text(&request.messages()[0]);
    assert_says(&system, &["- grep: ", "- find: ", "- ls: "]);
}

#[test]
fn search_tools_are_not_active_by_default() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    daemon.prompt("Hi");
    let request = &server.requests()[0];
    assert_eq!(request.body["tools"].as_array().map(Vec::len), Some(4));
    assert!(!text(&request.messages()[0]).contains("- grep: "));
}

#[test]
fn a_search_ends_with_its_run() {
    let server = MockServer::start([
        Reply::stream(sse::calls(&[("c1", "grep", json!({"pattern": "needle", "path": "huge"}))])),
        Reply::stream(sse::answer("Again.")),
    ]);
    let home = Home::with_model(&server);
    // A sparse file, which reads as NUL bytes for hours; its byte order mark makes it UTF-16, so that it is not skipped as
    // binary.
    home.write("huge", "");
    let huge = home.project().join("huge");
    std::fs::write(&huge, [0xff, 0xfe, b'a', 0]).expect("a file");
    std::fs::OpenOptions::new()
        .write(true)
        .open(&huge)
        .and_then(|file| file.set_len(1 << 43))
        .expect("holes");
    let mut daemon = Daemon::start(&home, &["--no-session", "--tools", "grep"]);
    daemon.send(&json!({"type": "prompt", "message": "Search."}));
    daemon.event("tool_execution_start");
    daemon.send(&json!({"id": "a", "type": "abort"}));
    let end = daemon.event("tool_execution_end");
    assert_eq!((&end["isError"], text(&end["result"])), (&json!(true), "Operation aborted".to_owned()));
    daemon.until("the answer", |line| line["id"] == "a");
    assert_eq!(daemon.done(json!({"type": "get_state"}))["isStreaming"], false);
}
