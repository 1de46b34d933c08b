//! Bad input of every kind: the error names the thing and says what to do, and the daemon lives on.

use std::fs;

use agentd_e2e::{Daemon, Home, MockServer, Reply, home::models, sse};
use serde_json::{Value, json};

use crate::support::{answers, assert_says, complaint, text};

fn assert_alive(daemon: &mut Daemon) {
    assert!(daemon.done(json!({"type": "get_state"}))["sessionId"].is_string());
}

/// Sends a prompt to a failing model, and returns the error of the answer.
fn failed_answer(daemon: &mut Daemon) -> String {
    let events = daemon.prompt("Go.");
    let answer = *answers(&events).last().expect("an answer");
    assert_eq!(answer["stopReason"], "error", "{answer}");
    assert_alive(daemon);
    answer["errorMessage"].as_str().expect("an error message").to_owned()
}

fn with_reply(reply: Reply) -> (Home, Daemon, MockServer) {
    let server = MockServer::always(reply);
    let home = Home::with_model(&server);
    home.settings(&json!({"retry": {"enabled": false}}));
    let daemon = Daemon::start(&home, &["--no-session"]);
    (home, daemon, server)
}

#[test]
fn no_model() {
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &[]);
    let refused = daemon.refused(json!({"type": "prompt", "message": "Hi"}));
    assert_says(&complaint(&refused), &["No API key found for the selected model.", "models.json"]);
    assert_alive(&mut daemon);
    assert_eq!(home.session_files(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn no_key() {
    let home = Home::new();
    let mut file = models("http://127.0.0.1:1/v1");
    file["providers"]["fake"]["apiKey"] = json!("$NO_SUCH_KEY");
    home.configure(&file);
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let refused = daemon.refused(json!({"type": "set_model", "provider": "fake", "modelId": "fake"}));
    assert_says(&complaint(&refused), &["fake/fake"]);
    let refused = daemon.refused(json!({"type": "prompt", "message": "Hi"}));
    assert_says(&complaint(&refused), &["No API key found", "models.json"]);
    assert_alive(&mut daemon);
}

#[test]
fn unknown_model() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let refused = daemon.refused(json!({"type": "set_model", "provider": "fake", "modelId": "other"}));
    assert_eq!(refused["error"], "Model not found: fake/other");
    assert_eq!(refused["code"], "no_model");
    assert_alive(&mut daemon);
    let ended = Daemon::start(&home, &["--model", "no-such-model"]).wait();
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert_says(&ended.stderr, &["no-such-model"]);
}

#[test]
fn broken_models_file() {
    let home = Home::new();
    let path = home.agent_dir().join("models.json").display().to_string();
    for (content, says) in [
        ("{\"providers\": {", &["Failed to parse models.json:"][..]),
        ("{\"providers\": {\"x\": {\"baseUrl\": 3}}}", &["Invalid models.json schema:", "baseUrl"]),
        ("{\"providers\": {\"x\": {}}}", &["Provider x:", "must specify"]),
    ] {
        home.write_agent("models.json", content);
        let mut daemon = Daemon::start(&home, &["--no-session"]);
        assert_eq!(daemon.done(json!({"type": "get_available_models"})), json!({"models": []}));
        let refused = daemon.refused(json!({"type": "prompt", "message": "Hi"}));
        let ended = daemon.close();
        // The error is reported at the start and again by the failing command.
        assert_says(&ended.stderr, says);
        assert_says(&ended.stderr, &[&path]);
        assert_says(&complaint(&refused), &["models.json"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), content, "the file is the user's");
    }
}

#[test]
fn broken_settings_file() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let path = home.agent_dir().join("settings.json").display().to_string();
    home.write_agent("settings.json", "{\"steeringMode\": \"all\",\n  oops}");
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let refused = daemon.refused(json!({"type": "set_steering_mode", "mode": "all"}));
    assert_says(&complaint(&refused), &[&path]);
    daemon.prompt("Hi");
    let ended = daemon.close();
    assert_says(&ended.stderr, &[&format!("{path}:2: not JSON at column 3")]);
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"steeringMode\": \"all\",\n  oops}");
    // A wrong value affects that setting only.
    home.write_agent("settings.json", r#"{"steeringMode": 3, "followUpMode": "all"}"#);
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let state = daemon.done(json!({"type": "get_state"}));
    assert_eq!((&state["steeringMode"], &state["followUpMode"]), (&json!("one-at-a-time"), &json!("all")));
    assert_says(&daemon.close().stderr, &["steeringMode", &path]);
}

#[test]
fn unusable_session_files() {
    let home = Home::new();
    home.write("text.jsonl", "this is no session\n");
    fs::create_dir(home.project().join("folder.jsonl")).unwrap();
    for (name, says) in
        [("text.jsonl", "Session file is not a valid pi session: "), ("folder.jsonl", "folder.jsonl")]
    {
        let path = home.project().join(name).display().to_string();
        let ended = Daemon::start(&home, &["--session", &path]).wait();
        assert_eq!(
            (ended.status.code(), ended.rest),
            (Some(1), Vec::<Value>::new()),
            "{name}: {}",
            ended.stderr
        );
        assert_says(&ended.stderr, &[says, &path]);
    }
    assert_eq!(home.read("text.jsonl"), "this is no session\n");
    let ended = Daemon::start(&home, &["--session", "0123"]).wait();
    assert_eq!(ended.status.code(), Some(1));
    assert_says(&ended.stderr, &["No session found matching '0123'"]);
}

#[test]
fn folders_where_files_should_be() {
    let home = Home::new();
    for name in ["models.json", "settings.json", "auth.json"] {
        fs::create_dir(home.agent_dir().join(name)).unwrap();
    }
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    assert_alive(&mut daemon);
    let refused = daemon.refused(json!({"type": "prompt", "message": "Hi"}));
    assert_says(&complaint(&refused), &["No API key found"]);
    let ended = daemon.close();
    for name in ["models.json", "settings.json"] {
        assert_says(&ended.stderr, &[&home.agent_dir().join(name).display().to_string()]);
    }
}

#[test]
fn a_sessions_folder_that_cannot_be_made() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    home.write_agent("sessions", "a file in the way");
    let ended = Daemon::start(&home, &[]).close();
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert_says(&ended.stderr, &[&home.agent_dir().join("sessions").display().to_string()]);
}

#[test]
fn lines_that_are_no_commands() {
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    for line in ["{\"type\":\"get_state\"", "", "   ", "nonsense", "{\"a\":}", "\u{feff}{}"] {
        daemon.send_bytes(format!("{line}\n").as_bytes());
        let response = daemon.line();
        assert_eq!(
            (&response["command"], &response["success"]),
            (&json!("parse"), &json!(false)),
            "{line:?}"
        );
        assert!(response["error"].as_str().unwrap().starts_with("Failed to parse command: "), "{response}");
        assert_eq!(response.get("id"), None);
    }
    for line in ["3", "true", "\"get_state\"", "[]", "null", "{}"] {
        daemon.send_bytes(format!("{line}\n").as_bytes());
        let response = daemon.line();
        assert_eq!(response["error"], "Unknown command: undefined", "{line:?}");
    }
    // CRLF and surrounding spaces are accepted.
    daemon.send_bytes(b"  {\"id\":\"x\",\"type\":\"abort\"}  \r\n");
    assert_eq!(daemon.line()["id"], "x");
    assert_alive(&mut daemon);
}

#[test]
fn texts_that_are_no_whole_characters_are_taken() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    // A lone surrogate as JavaScript sends it after cutting inside a character, and Latin-1 bytes.
    for (line, shown) in [
        (&b"{\"id\":\"a\",\"type\":\"prompt\",\"message\":\"cut \\ud83d\"}\n"[..], "cut \u{fffd}"),
        (b"{\"id\":\"a\",\"type\":\"prompt\",\"message\":\"caf\xE9\"}\n", "caf\u{fffd}"),
        (
            b"{\"id\":\"a\",\"type\":\"prompt\",\"x\":\"\\udc00\",\"message\":\"\\ud83d\\ude00\"}\n",
            "\u{1f600}",
        ),
    ] {
        daemon.send_bytes(line);
        let response = daemon.line();
        assert_eq!((&response["id"], &response["success"]), (&json!("a"), &json!(true)), "{response}");
        daemon.settled();
        let request = server.requests().pop().unwrap();
        assert_eq!(text(request.messages().last().unwrap()), shown);
    }
    daemon.send_bytes(b"{\"type\":\"abort\",\"id\":\"\xFF\"}\n");
    assert_eq!(daemon.line()["id"], "\u{fffd}");
    assert_alive(&mut daemon);
}

#[test]
fn an_image_that_is_none_is_left_out_and_the_model_is_told() {
    const PIXEL: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    const NOTE: &str = "[Image omitted: it is no PNG, JPEG, GIF, WebP or BMP image in base64.]";
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    let image = |data: &str| json!({"type": "image", "data": data, "mimeType": "image/jpeg"});
    let images = json!([image("!!!"), image(&format!("data:image/png;base64,{PIXEL}")), image("aGVsbG8=")]);
    daemon.done(json!({"type": "follow_up", "message": "Then this.", "images": images}));
    daemon.send(&json!({"id": "p", "type": "prompt", "message": "Look.", "images": images}));
    let events = daemon.settled();
    let users: Vec<&Value> = events
        .iter()
        .filter(|event| event["type"] == "message_end" && event["message"]["role"] == "user")
        .map(|event| &event["message"]["content"])
        .collect();
    let expected = |text: &str| {
        json!([{"type": "text", "text": format!("{text}\n\n{NOTE}\n{NOTE}")},
            {"type": "image", "data": PIXEL, "mimeType": "image/png"}])
    };
    assert_eq!(users, [&expected("Look."), &expected("Then this.")]);
}

#[test]
fn a_line_of_a_hundred_megabytes() {
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    daemon.send_bytes(br#"{"id":"1","type":"prompt","message":""#);
    let block = vec![b'x'; 1 << 20];
    for _ in 0..100 {
        daemon.send_bytes(&block);
    }
    daemon.send_bytes(b"\"}\n");
    let response = daemon.line();
    assert_eq!((&response["success"], &response["code"]), (&json!(false), &json!("too_large")), "{response}");
    assert_alive(&mut daemon);
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the peak of memory");
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 200 << 10, "a line that is refused is not kept: {peak} kB");
}

#[test]
fn deeply_nested_json() {
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    daemon.send_bytes(format!("{{\"id\":\"d\",\"type\":\"get_state\",\"x\":{deep}}}\n").as_bytes());
    // Both ignoring and refusing are fine: the daemon answers and no stack overflows.
    let response = daemon.line();
    assert_eq!(response["type"], "response");
    assert_alive(&mut daemon);
}

#[test]
fn a_provider_that_answers_with_a_web_page() {
    for status in [200, 404, 502] {
        let page = "<!DOCTYPE html><html><body>Sign in to the hotel network</body></html>";
        let (_home, mut daemon, server) = with_reply(Reply::status(status, "text/html", page));
        let error = failed_answer(&mut daemon);
        let host = server.base_url().replace("http://", "").replace("/v1", "");
        if status == 200 {
            assert_says(&error, &[&host]);
        } else {
            assert_says(&error, &[&status.to_string(), "hotel network"]);
        }
    }
}

#[test]
fn a_provider_that_is_not_there() {
    let home = Home::new();
    home.configure(&models("http://127.0.0.1:9/v1"));
    home.settings(&json!({"retry": {"enabled": false}}));
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    assert_says(&failed_answer(&mut daemon), &["127.0.0.1:9"]);
}

#[test]
fn a_provider_that_says_nothing() {
    for reply in [Reply::silence(), Reply::stream(sse::text("Hm.")).hang()] {
        let server = MockServer::always(reply);
        let home = Home::with_model(&server);
        home.settings(&json!({"httpIdleTimeoutMs": 300, "retry": {"enabled": false}}));
        let mut daemon = Daemon::start(&home, &["--no-session"]);
        assert_says(&failed_answer(&mut daemon), &["127.0.0.1", "httpIdleTimeoutMs"]);
        server.wait_for_disconnects(1);
    }
}

#[test]
fn a_provider_that_breaks_off() {
    let (_home, mut daemon, _server) = with_reply(Reply::stream(sse::text("Hal")).cut());
    let events = daemon.prompt("Go.");
    let answer = answers(&events)[0];
    assert_eq!((text(answer).as_str(), &answer["stopReason"]), ("Hal", &json!("error")));
    assert!(!answer["errorMessage"].as_str().unwrap().is_empty());
    // The stream ends before the answer does.
    let (_home, mut daemon, _server) = with_reply(Reply::stream(sse::text("Hal")));
    assert_says(&failed_answer(&mut daemon), &["Stream ended without finish_reason"]);
}

#[test]
fn a_provider_that_talks_nonsense() {
    for body in ["data: {not json\n\n", "data: [1,2]\n\n", "\0\0\0", "event: x\n\n"] {
        let (_home, mut daemon, _server) = with_reply(Reply::stream(body));
        assert!(!failed_answer(&mut daemon).is_empty());
    }
    let (_home, mut daemon, _server) =
        with_reply(Reply::stream("data: {\"error\":{\"message\":\"the engine is on fire\"}}\n\n"));
    assert_says(&failed_answer(&mut daemon), &["the engine is on fire"]);
}

#[test]
fn an_error_does_not_repeat_the_key() {
    let body = r#"{"error":{"message":"key test-key-1234 is unknown"}}"#;
    let (_home, mut daemon, _server) = with_reply(Reply::status(401, "application/json", body));
    let error = failed_answer(&mut daemon);
    assert!(!error.contains("test-key-1234"), "{error}");
    assert_says(&error, &["401"]);
    let ended = daemon.close();
    assert!(!ended.stderr.contains("test-key-1234"), "{}", ended.stderr);
}

/// Errors in the fields that every command has are reported under the command's `id`.
#[test]
fn fields_of_every_command_are_checked() {
    let home = Home::new();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let mut number = 0;
    let mut check = |fields: &str, kind: &str, expected: &str| {
        number += 1;
        let id = format!("bad-{number}");
        daemon.send_bytes(format!("{{\"id\":\"{id}\",{fields}}}\n").as_bytes());
        let answer =
            daemon.until("its answer", |line| line["type"] == "response" && line["id"] == id.as_str());
        let told = (&answer["success"], &answer["command"], &answer["code"], &answer["error"]);
        assert_eq!(
            told,
            (&json!(false), &json!(kind), &json!("invalid_field"), &json!(expected)),
            "{fields}"
        );
    };
    let kinds = [
        "get_state",
        "get_messages",
        "prompt",
        "abort",
        "set_session_name",
        "fork",
        "attach_session",
        "daemon_status",
    ];
    for kind in kinds {
        for (value, got) in [("12", "12"), ("false", "false"), ("{}", "map"), ("[\"a\"]", "sequence")] {
            let expected = format!("Invalid field \"sessionId\": expected a string, got {got}");
            check(&format!("\"type\":\"{kind}\",\"sessionId\":{value}"), kind, &expected);
        }
        for field in ["type", "sessionId"] {
            let again = json!({"type": kind, "sessionId": "a"})[field].clone();
            let fields = format!("\"type\":\"{kind}\",\"sessionId\":\"a\",\"{field}\":{again}");
            check(&fields, kind, &format!("Invalid field \"{field}\": given twice"));
        }
    }
    let twice = "\"type\":\"prompt\",\"message\":\"a\",\"message\":\"b\"";
    check(twice, "prompt", "Invalid field \"message\": given twice");
    // `null` is the same as no field.
    assert!(daemon.done(json!({"type": "get_state", "sessionId": null}))["sessionId"].is_string());
}
