//! What is wrong with a session's files, with file and line, and where its settings come from.

use agentd_e2e::{Daemon, Home, MockServer, Reply, ctl, home::models, sse};
use serde_json::{Value, json};

use crate::support::assert_says;

/// Level, kind, file and line of each diagnostic of a session.
fn found(daemon: &mut Daemon, home: &Home) -> Vec<String> {
    let data = daemon.done(json!({"type": "get_diagnostics"}));
    let all = data["diagnostics"].as_array().expect("a list");
    let root = format!("{}/", home.root().canonicalize().expect("the home").display());
    let show = |it: &Value| {
        let path = it["path"].as_str().unwrap_or("-").replace(&root, "");
        let text = |field: &str| it[field].as_str().unwrap_or_default().to_owned();
        format!("{} {} {path}:{} {}", text("level"), text("kind"), it["line"], text("message"))
    };
    all.iter().map(show).collect()
}

#[track_caller]
fn assert_found(found: &[String], expected: &[&str]) {
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.contains(expected), "{found} has no {expected}");
    }
}

#[test]
fn each_broken_thing_is_named_with_its_line_and_the_rest_works() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    home.write_agent(
        "settings.json",
        "{\n  // a note\n  \"steeringMode\": \"all\",\n  \"compaction\": {\n    \"enabled\": \"yes\"\n  },\n  \"enabledModels\": [\"nothing-like-it\"]\n}",
    );
    home.write(".pi/settings.json", "{\n  \"shellPath\": 5,\n}");
    let mut daemon = Daemon::start(&home, &["--no-session", "--approve", "--exclude-tools", "hammer"]);
    assert_found(
        &found(&mut daemon, &home),
        &[
            "settings.json:5 \"compaction.enabled\" is ignored: expected a boolean, not a string",
            "project/.pi/settings.json:2 \"shellPath\" is ignored: expected a string, not an integer",
            "settings.json:7 \"enabledModels\": models to go through",
            "warning tools -:null no tool is called \"hammer\"",
        ],
    );
    assert_eq!(daemon.done(json!({"type": "get_state"}))["steeringMode"], "all");
    daemon.prompt("Hi");
    assert_says(
        &daemon.close().stderr,
        &["settings.json:5: \"compaction.enabled\"", ".pi/settings.json:2: \"shellPath\"", "\"hammer\""],
    );
}

#[test]
fn a_models_file_with_comments_and_a_wrong_type() {
    let home = Home::new();
    let mut file = models("http://127.0.0.1:1/v1");
    file["providers"]["fake"]["models"][0]["contextWindow"] = json!("big");
    let text = serde_json::to_string_pretty(&file).expect("JSON");
    let line = 2 + text.lines().position(|line| line.contains("\"big\"")).expect("the line");
    home.write_agent("models.json", &format!("// my models\n{text}\n"));
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let expected = format!("error models {}:{line} Invalid models.json schema: ", "agent/models.json");
    let found = found(&mut daemon, &home);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_says(
        &found[0],
        &["error models ", &expected[expected.find("models.json").unwrap_or(0)..], "contextWindow"],
    );
    // The demo model needs no file.
    daemon.done(json!({"type": "set_model", "provider": "demo", "modelId": "demo"}));
    daemon.prompt("Hi");
    assert_says(&daemon.close().stderr, &[&format!("models.json:{line}: ")]);
    let checked = ctl::run(&home, &["config", "check"]);
    assert_eq!(checked.code, 1, "{checked:?}");
    assert_says(&checked.stdout, &["error: ", &format!("models.json:{line}: Invalid")]);
    home.write_agent("models.json", "{}");
    let checked = ctl::run(&home, &["config", "check"]);
    assert_eq!((checked.code, checked.stdout.as_str()), (0, "Nothing is wrong.\n"), "{checked:?}");
}

#[test]
fn a_project_that_is_not_trusted_is_mentioned_and_not_complained_about() {
    let home = Home::new();
    home.write(".pi/settings.json", "{\"steeringMode\": \"all\", \"defaultModel\": 5}");
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    assert_found(&found(&mut daemon, &home), &["info trust project:null the project is not trusted"]);
    assert_eq!(daemon.close().stderr, "");
    let checked = ctl::run(&home, &["config", "check"]);
    assert_eq!(checked.code, 0, "{checked:?}");
    assert_says(&checked.stdout, &["note: ", "--approve"]);
    let checked = ctl::run(&home, &["config", "check", "--approve"]);
    assert_eq!(checked.code, 1, "{checked:?}");
    assert_says(&checked.stdout, &["warning: ", ".pi/settings.json:1: \"defaultModel\" is ignored"]);
    home.write_agent("prompts/bad.md", "---\nx: [\n---\nText");
    let doctor = ctl::run(&home, &["doctor"]);
    assert_says(&doctor.stdout, &["warn skills, templates, instructions: ", "bad.md:"]);
    assert_says(&doctor.stdout, &["warn project trust: ", ".pi/settings.json", "trust.json"]);
}

#[test]
fn a_damaged_session_file_is_reported_by_its_session() {
    let home = Home::new();
    let header = json!({"type": "session", "version": 3, "id": "0198c0de-0000-7000-8000-000000000001",
        "timestamp": "2026-01-01T00:00:00.000Z", "cwd": home.project()});
    home.write("s.jsonl", &format!("{header}\nnonsense\n"));
    let path = home.project().join("s.jsonl").display().to_string();
    let mut daemon = Daemon::start(&home, &["--session", &path]);
    assert_found(
        &found(&mut daemon, &home),
        &["warning session project/s.jsonl:2 the line is no JSON and was skipped (8 bytes from byte "],
    );
}

#[test]
fn a_setting_is_explained() {
    let home = Home::new();
    home.write_agent("settings.json", "{\n  \"compaction\": {\"enabled\": false},\n  \"theme\": \"dark\"\n}");
    home.write(".agentd/settings.json", "{\n\n  \"compaction\": {\"reserveTokens\": 100}\n}");
    let mut daemon = Daemon::start(&home, &["--no-session", "--approve", "--thinking", "high"]);
    let mut explain = |key: &str| daemon.done(json!({"type": "explain_setting", "key": key}));
    let answer = explain("compaction.enabled");
    assert_eq!(
        (&answer["value"], &answer["source"], &answer["line"]),
        (&json!(false), &json!("user"), &json!(2))
    );
    let answer = explain("compaction.reserveTokens");
    assert_eq!(
        (&answer["value"], &answer["source"], &answer["line"]),
        (&json!(100), &json!("project"), &json!(3))
    );
    assert_eq!(answer["layers"][2], json!({"source": "default", "value": 16384, "counts": false}));
    let answer = explain("defaultThinkingLevel");
    assert_eq!((&answer["value"], &answer["source"]), (&json!("high"), &json!("flag")));
    assert_eq!(answer["layers"][0]["name"], "--thinking");
    assert_eq!(explain("theme")["value"], "dark");
    // The session goes on with what it read.
    home.write(".agentd/settings.json", "{}");
    let mut explain = |key: &str| daemon.done(json!({"type": "explain_setting", "key": key}));
    let answer = explain("compaction.reserveTokens");
    assert_eq!((&answer["value"], &answer["inSession"]), (&json!(16384), &json!(100)), "{answer}");
    let refused = daemon.refused(json!({"type": "explain_setting", "key": "compaction.enable"}));
    assert_eq!(
        (&refused["error"], &refused["code"]),
        (&json!("There is no setting \"compaction.enable\"."), &json!("not_found"))
    );
    assert_says(refused["hint"].as_str().unwrap_or_default(), &["compaction.enabled"]);

    let shown = ctl::run(&home, &["config", "explain", "compaction.enabled"]);
    assert_eq!(shown.code, 0, "{shown:?}");
    assert_says(
        &shown.stdout,
        &["compaction.enabled: false\n", "* user ", "settings.json:2", "  default      true"],
    );
    let unknown = ctl::run(&home, &["config", "explain", "defaultModle"]);
    assert_eq!(unknown.code, 1, "{unknown:?}");
    assert_says(&unknown.stderr, &["There is no setting \"defaultModle\".", "Did you mean defaultModel?"]);
}
