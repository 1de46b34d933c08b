//! What a script gets from `agentctl prompt`: the last answer, all answers, a file, an answer of a schema, records.

use std::{fs, os::unix::fs::PermissionsExt};

use agentd_e2e::{Home, MockServer, Reply, Service, ctl, ctl::Finished, sse};
use serde_json::{Value, json};

use crate::support::{assert_says, live_sessions, text};

/// Two turns: text and a call, then text.
fn two_turns(home: &Home) -> [Reply; 2] {
    let path = home.project().join("sub/../made.txt").display().to_string();
    let call = [("c1", "write", json!({"path": path, "content": "x\n"}))];
    [Reply::stream(sse::text("I look.") + &sse::calls(&call)), Reply::stream(sse::answer("It is done."))]
}

fn records(done: &Finished) -> (Value, Value) {
    let lines: Vec<Value> =
        done.stdout.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    (lines.first().expect("a line").clone(), lines.last().expect("a line").clone())
}

#[test]
fn a_pipe_gets_the_last_answer_alone_and_all_of_them_when_wanted() {
    for (flags, wanted) in [(&[][..], "It is done.\n"), (&["--all"], "I look.\nIt is done.\n")] {
        let server = MockServer::start([]);
        let home = Home::with_model(&server);
        two_turns(&home).into_iter().for_each(|reply| server.push(reply));
        let done = ctl::run(&home, &[&["prompt", "Go."][..], flags].concat());
        assert_eq!((done.code, done.stdout.as_str()), (0, wanted), "{done:?}");
        assert_says(&done.stderr, &["-> write ", "<- write "]);
    }
}

#[test]
fn an_answer_that_failed_is_no_output() {
    let server = MockServer::start([Reply::stream(sse::text("Half")).cut()]);
    let home = Home::with_model(&server);
    home.settings(&json!({"retry": {"enabled": false}}));
    let done = ctl::run(&home, &["prompt", "-o", "answer.txt", "Go."]);
    assert_eq!((done.code, done.stdout.as_str()), (1, ""), "{done:?}");
    assert!(!home.project().join("answer.txt").exists());
}

#[test]
fn json_begins_with_the_session_and_ends_with_the_result() {
    for shared in [false, true] {
        let server = MockServer::start([]);
        let home = Home::with_model(&server);
        two_turns(&home).into_iter().for_each(|reply| server.push(reply));
        let _service = shared.then(|| Service::start(&home, &[]));
        let done = ctl::run(&home, &["prompt", "--json", "Go."]);
        assert_eq!(done.code, 0, "{done:?}");
        let (session, result) = records(&done);
        let file = home.session_files().remove(0).display().to_string();
        let cwd = home.project().display().to_string();
        let id = &session["id"];
        assert!(file.contains(id.as_str().unwrap()), "{session}");
        let wanted = json!({"type": "session", "id": id, "file": file, "cwd": cwd,
            "model": {"provider": "fake", "id": "fake"}, "thinkingLevel": "off"});
        assert_eq!(session, wanted);
        assert!(result["durationMs"].as_u64().is_some_and(|time| time < 120_000), "{result}");
        let wanted = json!({"type": "result", "sessionId": id, "exitCode": 0, "answer": "It is done.", "stopReason": "stop",
            "turns": 2, "toolCalls": 1, "usage": result["usage"], "durationMs": result["durationMs"],
            "filesChanged": ["made.txt"]});
        assert_eq!(result, wanted);
        assert!(result["usage"]["totalTokens"].as_u64().is_some_and(|tokens| tokens > 0), "{result}");
    }
}

#[test]
fn with_undo_the_result_names_what_commands_changed() {
    let call = [("c1", "bash", json!({"command": "mkdir sub; for i in 1 2; do echo > sub/$i; done"}))];
    let server = MockServer::start([Reply::stream(sse::calls(&call)), Reply::stream(sse::answer("Ok."))]);
    let home = Home::with_model(&server);
    let (_, result) = records(&ctl::run(&home, &["prompt", "--json", "--undo", "on", "Go."]));
    assert_eq!(result["filesChanged"], json!(["sub", "sub/1", "sub/2"]), "{result}");
}

#[test]
fn json_ends_with_a_result_whatever_the_end() {
    let server =
        MockServer::start([Reply::status(401, "application/json", r#"{"error":{"message":"bad key"}}"#)]);
    let home = Home::with_model(&server);
    let done = ctl::run(&home, &["prompt", "--json", "Go."]);
    let (session, result) = records(&done);
    assert_eq!((done.code, &result["exitCode"], &result["answer"]), (1, &json!(1), &Value::Null));
    assert_eq!((&result["sessionId"], &result["stopReason"]), (&session["id"], &json!("error")));
    let error = result["error"].as_str().unwrap();
    assert!(error.contains("bad key") && done.stderr.ends_with(&format!("{error}\n")), "{done:?}");
    // No session: no first record, and one line in all.
    for (shared, flags) in [(false, ["--session", "0123"]), (true, ["--session", "0123"])] {
        let _service = shared.then(|| Service::start(&home, &[]));
        let done = ctl::run(&home, &[&["prompt", "--json", "Go."][..], &flags].concat());
        assert_eq!((done.code, done.stdout.lines().count()), (1, 1), "{done:?}");
        let (_, result) = records(&done);
        assert_eq!((&result["type"], &result["exitCode"]), (&json!("result"), &json!(1)));
        assert!(result["error"].is_string() && result.get("sessionId").is_none(), "{result}");
    }
    // No model.
    let done = ctl::run(&Home::new(), &["prompt", "--json", "Go."]);
    let (session, result) = records(&done);
    assert_eq!((done.code, &session["model"], &result["turns"]), (1, &Value::Null, &json!(0)), "{done:?}");
}

#[test]
fn the_answer_goes_to_a_file_too() {
    let server = MockServer::always(Reply::stream(sse::answer("Blue.")));
    let home = Home::with_model(&server);
    let file = home.project().join("answer.txt");
    let done = ctl::run(&home, &["prompt", "-o", "answer.txt", "Colour?"]);
    assert_eq!((done.code, done.stdout.as_str()), (0, "Blue.\n"), "{done:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "Blue.\n");
    // One that is there is replaced, and keeps its mode; relative to our folder, not to that of the session.
    fs::write(&file, "a longer text that was there").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    home.write("sub/x", "");
    let done = ctl::run(&home, &["prompt", "--json", "--cwd", "sub", "--output", "answer.txt", "Colour?"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "Blue.\n");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(fs::read_dir(home.project()).unwrap().count(), 2);
    // Found out before the model is asked.
    let asked = server.requests().len();
    for target in ["missing/answer.txt", "sub", "answer.txt/x"] {
        let done = ctl::run(&home, &["prompt", "-o", target, "Colour?"]);
        assert_eq!(done.code, 2, "{done:?}");
        assert_says(&done.stderr, &["--output", target]);
    }
    assert_eq!(server.requests().len(), asked);
}

const SCHEMA: &str = r#"{"type":"object","properties":{"colour":{"enum":["red","blue"]}},"required":["colour"],"additionalProperties":false}"#;

fn submits(arguments: Value) -> Reply {
    Reply::stream(sse::calls(&[("c1", "submit_answer", arguments)]))
}

#[test]
fn an_answer_fits_the_schema() {
    for shared in [false, true] {
        // The daemon refuses the first call, and the model calls again in the same run.
        let server =
            MockServer::start([submits(json!({"colour": "green"})), submits(json!({"colour": "blue"}))]);
        let home = Home::with_model(&server);
        let _service = shared.then(|| Service::start(&home, &[]));
        home.write("schema.json", SCHEMA);
        let flags = ["--output-schema", "schema.json", "-o", "answer.json", "--tools", "read"];
        let done = ctl::run(&home, &[&["prompt", "Which colour?"][..], &flags].concat());
        assert_eq!((done.code, done.stdout.as_str()), (0, "{\"colour\":\"blue\"}\n"), "{done:?}");
        assert_eq!(fs::read_to_string(home.project().join("answer.json")).unwrap(), done.stdout);
        let requests = server.requests();
        assert_eq!(requests.len(), 2);
        let tools: Vec<&str> = requests[0].body["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["function"]["name"].as_str().unwrap())
            .collect();
        assert_eq!(tools, ["read", "submit_answer"]);
    }
}

#[test]
fn an_answer_in_words_is_asked_for_again() {
    let server = MockServer::start([
        Reply::stream(sse::answer("Blue, I think.")),
        submits(json!({"answer": ["red", "blue"]})),
    ]);
    let home = Home::with_model(&server);
    home.write(
        "schema.json",
        r##"{"type":"array","items":{"$ref":"#/$defs/c"},"$defs":{"c":{"enum":["red","blue"]}}}"##,
    );
    let done = ctl::run(&home, &["prompt", "--json", "Which?", "--output-schema", "schema.json"]);
    let (_, result) = records(&done);
    assert_eq!((done.code, &result["output"]), (0, &json!(["red", "blue"])), "{done:?}");
    assert_eq!((&result["answer"], &result["turns"]), (&json!("[\"red\",\"blue\"]"), &json!(2)));
    let asked = text(server.requests()[1].messages().last().unwrap());
    assert!(asked.contains("submit_answer"), "{asked}");
}

#[test]
fn a_model_that_never_gives_one_is_a_failure() {
    let server = MockServer::always(Reply::stream(sse::answer("Blue.")));
    let home = Home::with_model(&server);
    home.write("schema.json", SCHEMA);
    let ask = |more: &[&str]| {
        ctl::run(&home, &[&["prompt", "Which?", "--output-schema", "schema.json"][..], more].concat())
    };
    let done = ask(&[]);
    assert_eq!((done.code, done.stdout.as_str(), server.requests().len()), (1, "", 3), "{done:?}");
    assert_says(&done.stderr, &["--output-schema schema.json", "asked 3 times"]);
    let (_, result) = records(&ask(&["--json"]));
    assert!(result.get("output").is_none() && result["exitCode"] == 1, "{result}");
    // All attempts have one budget.
    let before = server.requests().len();
    let done = ask(&["--max-turns", "2"]);
    assert_eq!((done.code, server.requests().len() - before), (5, 2), "{done:?}");
}

#[test]
fn the_answer_needs_no_permission() {
    for preset in ["read-only", "ask"] {
        let server = MockServer::always(submits(json!({"colour": "red"})));
        let home = Home::with_model(&server);
        home.write("schema.json", SCHEMA);
        let done =
            ctl::run(&home, &["prompt", "Which?", "--output-schema", "schema.json", "--permissions", preset]);
        assert_eq!((done.code, done.stdout.as_str()), (0, "{\"colour\":\"red\"}\n"), "{done:?}");
    }
}

#[test]
fn the_tool_for_the_answer_leaves_a_shared_session() {
    let server = MockServer::start([submits(json!({"colour": "red"})), Reply::stream(sse::answer("Red."))]);
    let home = Home::with_model(&server);
    let _service = Service::start(&home, &[]);
    home.write("schema.json", SCHEMA);
    assert_eq!(ctl::run(&home, &["prompt", "Which?", "--output-schema", "schema.json"]).code, 0);
    assert_eq!(live_sessions(&home).len(), 1);
    assert_eq!(ctl::run(&home, &["prompt", "-c", "Again?"]).stdout, "Red.\n");
    assert!(!server.requests()[1].body["tools"].to_string().contains("submit_answer"));
}

#[test]
fn schemas_that_cannot_be_used_are_told_before_the_model_is_asked() {
    let server = MockServer::always(Reply::stream(sse::answer("Blue.")));
    let home = Home::with_model(&server);
    for (content, says) in [
        (None, "No such file"),
        (Some("{"), "no JSON"),
        (Some("[1]"), "an object"),
        (Some(r#"{"type":"object","properties":{"a":{"type":"colour"}}}"#), "cannot be used"),
    ] {
        if let Some(content) = content {
            home.write("schema.json", content);
        }
        let done = ctl::run(&home, &["prompt", "Which?", "--output-schema", "schema.json"]);
        assert_eq!((done.code, done.stdout.as_str()), (2, ""), "{done:?}");
        assert_says(&done.stderr, &["--output-schema schema.json", says]);
    }
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn an_untrusted_project_is_told_of_where_nobody_can_be_asked() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let said = "agentctl: the project is not trusted";
    let prompt = |flags: &[&str]| ctl::run(&home, &[&["prompt", "Go."][..], flags].concat());
    // Nothing needs trust.
    assert_eq!(prompt(&[]).stderr, "");
    home.write(".agentd/settings.json", r#"{"steeringMode": "all"}"#);
    for shared in [false, true] {
        let _service = shared.then(|| Service::start(&home, &[]));
        let done = prompt(&[]);
        assert_eq!((done.code, done.stdout.as_str()), (0, "Ok.\n"), "{done:?}");
        assert!(done.stderr.starts_with(said) && done.stderr.lines().count() == 1, "{done:?}");
        assert!(done.stderr.contains("--approve"), "{done:?}");
        for flag in ["--approve", "--no-approve"] {
            assert_eq!(prompt(&[flag]).stderr, "", "{flag}");
        }
    }
    let mut daemon = agentd_e2e::Daemon::start(&home, &[]);
    daemon.done(json!({"type": "hello", "protocol": 1}));
    assert_eq!(daemon.done(json!({"type": "get_state"}))["projectUntrusted"], true);
    let done = prompt(&["--approve", "--no-approve"]);
    assert_eq!(done.code, 2, "{done:?}");
}
