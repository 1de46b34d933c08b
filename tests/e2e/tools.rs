//! What models meet when they call tools wrongly or at the edges.

use agentd_e2e::{Daemon, Home, MockServer, Reply, sse};
use serde_json::{Value, json};

use crate::support::{assert_says, ended, text};

/// Runs one call, and gives its result message.
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
    assert_eq!(tool_messages, 1, "the model is told what became of its call");
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
        json!({"command": "echo hi; sleep 1000", "timeout": 0.2}),
    );
    assert_eq!(result["isError"], true);
    assert_eq!(text(&result), "hi\n\n\nCommand timed out after 0.2 seconds");
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
