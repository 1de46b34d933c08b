//! Diagnostics of settings, models and files, with file and line; misspelt names; a session whose folder is gone.

use std::fs;

use agentd_e2e::{Daemon, Home, MockServer, Reply, Service, ctl, home::models, sse};
use serde_json::{Value, json};

use crate::support::{assert_says, complaint, records};

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
    // The session keeps the settings that it read.
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

/// Two providers at a port without a listener.
fn with_models(home: &Home) {
    let provider = |ids: [&str; 2]| {
        json!({"baseUrl": "http://127.0.0.1:9/v1", "api": "openai-completions", "apiKey": "k",
            "models": [{"id": ids[0]}, {"id": ids[1]}]})
    };
    home.configure(&json!({"providers": {"west": provider(["small-model", "large-model"]), "east": provider(["wise", "x/y"])}}));
}

#[test]
fn unknown_keys_are_reported_with_file_line_and_suggestion() {
    let home = Home::new();
    home.write_agent(
        "settings.json",
        "{\n  // mine\n  \"steeringMod\": \"all\",\n  \"compaction\": {\n    \"enabeld\": false\n  },\n  \"nobodyKnowsThis\": 1\n}",
    );
    home.write(".pi/settings.json", "{\n  \"retry\": {\"provider\": {\"maxRetrys\": 3}}\n}");
    let expected = [
        "settings.json:3: there is no key \"steeringMod\": it has no effect (did you mean \"steeringMode\"?)",
        "settings.json:5: there is no key \"compaction.enabeld\": it has no effect (did you mean \"compaction.enabled\"?)",
        "settings.json:7: there is no key \"nobodyKnowsThis\": it has no effect",
        ".pi/settings.json:2: there is no key \"retry.provider.maxRetrys\": it has no effect (did you mean \
         \"retry.provider.maxRetries\"?)",
    ];
    let checked = ctl::run(&home, &["config", "check", "--approve"]);
    assert_eq!(checked.code, 1, "{checked:?}");
    assert_says(&checked.stdout, &expected);
    // Files of an untrusted project are not read.
    let checked = ctl::run(&home, &["config", "check"]);
    assert_eq!(checked.code, 1, "{checked:?}");
    assert!(!checked.stdout.contains("maxRetrys"), "{checked:?}");
    // They are reported once, at the start.
    let mut daemon = Daemon::start(&home, &["--no-session", "--approve", "--demo"]);
    daemon.prompt("Hi");
    let told = daemon.close().stderr;
    for text in expected {
        assert_eq!(told.matches(text).count(), 1, "{text}\n{told}");
    }
}

#[test]
fn settings_of_pi_are_no_mistakes() {
    let home = Home::new();
    home.settings(
        &json!({"theme": "dark", "terminal": {"showImages": true}, "lastChangelogVersion": "1.5.2",
        "$schema": "x"}),
    );
    let checked = ctl::run(&home, &["config", "check"]);
    assert_eq!(checked.code, 0, "{checked:?}");
    assert_says(
        &checked.stdout,
        &["note: ", "settings.json: pi knows these settings", "\"theme\"", "\"terminal\""],
    );
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    daemon.done(json!({"type": "get_state"}));
    assert_eq!(daemon.close().stderr, "");
}

#[test]
fn models_that_do_not_exist_are_reported() {
    let home = Home::new();
    with_models(&home);
    home.write_agent(
        "settings.json",
        "{\n\"defaultProvider\": \"west\",\n\"defaultModel\": \"smal-model\",\n\"enabledModels\": [\n\"west/*\",\n\"west/lagre-model\"\n],\n\
         \"fallbackModels\": [\"east/wise\",\n\"north/star-model\"]}",
    );
    let expected = [
        "settings.json:3: \"defaultModel\": there is no model \"west/smal-model\" (Did you mean \"west/small-model\"?)",
        "settings.json:6: \"enabledModels\": ",
        "\"west/lagre-model\". Did you mean \"west/large-model\"?",
        "settings.json:9: \"fallbackModels\": ",
        "\"north/star-model\"",
    ];
    let checked = ctl::run(&home, &["config", "check"]);
    assert_eq!((checked.code, checked.stdout.lines().count()), (1, 3), "{checked:?}");
    assert_says(&checked.stdout, &expected);
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    daemon.done(json!({"type": "get_state"}));
    assert_says(&daemon.close().stderr, &expected);
}

#[test]
fn the_default_model_may_stand_in_full() {
    let home = Home::new();
    with_models(&home);
    let started_with = |settings| {
        home.settings(&settings);
        let mut daemon = Daemon::start(&home, &["--no-session"]);
        let model = daemon.done(json!({"type": "get_state"}))["model"].clone();
        let name = format!("{}/{}", model["provider"].as_str().unwrap(), model["id"].as_str().unwrap());
        (name, daemon.close().stderr)
    };
    let check =
        |settings, expected: &str| assert_eq!(started_with(settings), (expected.to_owned(), String::new()));
    check(json!({"defaultModel": "east/wise"}), "east/wise");
    check(json!({"defaultProvider": "east", "defaultModel": "east/wise"}), "east/wise");
    check(json!({"defaultProvider": "east", "defaultModel": "wise"}), "east/wise");
    check(json!({"defaultProvider": "east", "defaultModel": "x/y"}), "east/x/y");
    check(json!({"defaultModel": "east/x/y"}), "east/x/y");
    let (model, told) = started_with(json!({"defaultProvider": "west", "defaultModel": "east/wise"}));
    assert_eq!(model, "east/wise");
    assert_says(&told, &["settings.json:", "\"defaultProvider\" says west", "east/wise is used"]);
    let doctor = ctl::run(&home, &["doctor"]);
    assert_says(&doctor.stdout, &["warn model: east/wise: \"defaultProvider\" says west"]);
    let (_, told) = started_with(json!({"defaultModel": "wise"}));
    assert_says(&told, &["\"defaultModel\": \"wise\" names no provider and is not used"]);
}

#[test]
fn slips_in_a_models_file_are_reported() {
    let home = Home::new();
    home.write_agent(
        "models.json",
        "{\"providers\": {\"p\": {\n\"baseUrl\": \"http://127.0.0.1:9/v1\",\n\"api\": \"openai-completions\",\n\"apikey\": \"k\",\n\
         \"models\": [{\"id\": \"m\"}]}}}",
    );
    let checked = ctl::run(&home, &["config", "check"]);
    assert_eq!(checked.code, 1, "{checked:?}");
    let slip = "models.json:4: there is no key \"providers.p.apikey\": it has no effect (did you mean \"providers.p.apiKey\"?)";
    assert_says(&checked.stdout, &[slip]);
    assert_says(
        &ctl::run(&home, &["doctor"]).stdout,
        &["warn models.json: there is no key \"providers.p.apikey\""],
    );
    // The file is readable and its unknown keys have no effect.
    home.write_agent(
        "models.json",
        "{\"providers\": {\n\"p\": {\"baseUrl\": \"http://127.0.0.1:9/v1\", \"api\": \"openai-completion\", \"models\": [{\"id\": \"m\"}]}}}",
    );
    let checked = ctl::run(&home, &["config", "check"]);
    assert_eq!(checked.code, 1, "{checked:?}");
    assert_says(&checked.stdout, &["models.json:2: provider p: 1 model not offered.", "openai-completion"]);
}

/// A session with a message whose folder is deleted; its id.
fn left_behind(home: &Home) -> String {
    home.write("old/file.txt", "x");
    let old = home.project().join("old");
    let done = ctl::run(home, &["prompt", "--private", "--cwd", &old.display().to_string(), "Hi"]);
    assert_eq!(done.code, 0, "{done:?}");
    fs::remove_dir_all(old).unwrap();
    records(&home.session_files()[0])[0]["id"].as_str().unwrap().to_owned()
}

fn header_of(home: &Home, id: &str) -> Value {
    let files = home.session_files();
    let file = files.iter().find(|file| file.display().to_string().contains(id)).expect("the copy");
    records(file)[0].clone()
}

fn goes_on_elsewhere(shared: bool) {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let id = left_behind(&home);
    let original = home.session_files()[0].display().to_string();
    let service = shared.then(|| Service::start(&home, &[]));

    let refused = ctl::run(&home, &["prompt", "--session", &original, "And?"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    let how = format!("agentctl fork --cwd DIR {id}");
    assert_says(&refused.stderr, &["does not exist", "/old", &how]);
    if let Some(service) = &service {
        let mut client = service.client();
        let refused = client.refused(json!({"type": "attach_session", "sessionId": id}));
        assert_says(&complaint(&refused), &["does not exist", &how]);
        assert_says(refused["hint"].as_str().unwrap(), &[&how]);
    }

    home.write("new/file.txt", "x");
    let new = home.project().join("new").display().to_string();
    let forked = ctl::run(&home, &["fork", "--cwd", &new, &id]);
    assert_eq!((forked.code, forked.stderr.as_str()), (0, ""), "{forked:?}");
    let copy = forked.stdout.trim();
    let header = header_of(&home, copy);
    assert_eq!((&header["cwd"], &header["parentSession"]), (&json!(new), &json!(original)));
    let done = ctl::run(&home, &["prompt", "--cwd", &new, "--session", copy, "And now?"]);
    assert_eq!((done.code, done.stdout.as_str()), (0, "Ok.\n"), "{done:?}");
    let asked = server.requests();
    let said = asked.last().unwrap().messages().to_vec();
    assert!(said.iter().any(|message| message.to_string().contains("Hi")), "{said:?}");

    let refused = ctl::run(&home, &["fork", "--cwd", "nowhere", &id]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert_says(&refused.stderr, &["--cwd nowhere"]);
}

#[test]
fn a_session_whose_folder_is_gone_goes_on_elsewhere_with_the_daemon() {
    goes_on_elsewhere(true);
}

#[test]
fn a_session_whose_folder_is_gone_goes_on_elsewhere_without_the_daemon() {
    goes_on_elsewhere(false);
}
