//! Another catalogue in the place of the built-in one.

use std::{fs, os::unix::fs::PermissionsExt};

use agentd_e2e::{Daemon, Home, MockServer, Reply, Service, ctl, wires::Wire};
use serde_json::{Value, json};

use super::{agentctl, docs::block, full_ids, with};
use crate::support::assert_says;

const KEY: &[(&str, &str)] = &[("GROQ_API_KEY", "the-key")];

/// The example of docs/models.md, with models at this server.
fn example(server: &MockServer) -> String {
    let example = block("json", "\"defaults\"");
    assert!(example.contains("https://llm.example.com/v1"));
    example.replace("https://llm.example.com/v1", &server.base_url())
}

fn stored(home: &Home) -> std::path::PathBuf {
    home.agent_dir().join("models-catalogue.bin")
}

#[test]
fn a_catalogue_is_taken_used_and_left_again() {
    let server = MockServer::always(Reply::stream(Wire::Chat.answer("Hello.")));
    let home = Home::new();
    let service = Service::start_with(&home, &[], with(KEY));
    let mut client = service.client();
    client.done(json!({"type": "open_session", "cwd": home.project(), "ephemeral": true}));
    assert_eq!(
        full_ids(&json!([client.done(json!({"type": "get_state"}))["model"]])),
        ["groq/openai/gpt-oss-120b"]
    );

    fs::write(home.project().join("new.json"), example(&server)).unwrap();
    let mut command = ctl::command(&home, &["models", "--update", "new.json"]);
    command.current_dir(home.project());
    let done = ctl::feed(command, "");
    assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{done:?}");
    assert_says(
        &done.stdout,
        &[
            "Catalogue: updated at 20",
            ", of 2027-01-31 (my own list).\n2 models of 1 provider.\nModels: 2 added, 1643 removed.\n",
            "Providers removed: amazon-bedrock, ",
            "Left out: the header User-Agent of 1 model: ",
            "Not offered: 1 model of the API morse, ",
        ],
    );
    assert_eq!(fs::metadata(stored(&home)).unwrap().permissions().mode() & 0o777, 0o600);

    let list = agentctl(&home, KEY, &["models"]);
    assert_eq!((list.code, list.stdout.lines().count()), (0, 2), "{list:?}");
    assert_says(&list.stdout, &["groq", "new-model"]);
    assert_says(
        &list.stderr,
        &["1 model can be used.", "Catalogue: updated at 20", ", of 2027-01-31 (my own list)."],
    );
    let doctor = agentctl(&home, KEY, &["doctor"]);
    assert_says(&doctor.stdout, &["model catalogue: updated at 20", "groq/new-model (the first that a key"]);

    // The session that is open keeps what it has; the next one sees the new catalogue, in the same daemon.
    assert_eq!(full_ids(&client.done(json!({"type": "get_available_models"}))["models"]).len(), 7);
    let mut other = service.client();
    other.done(json!({"type": "open_session", "cwd": home.project(), "ephemeral": true}));
    let offered = other.done(json!({"type": "get_available_models"}));
    assert_eq!(full_ids(&offered["models"]), ["groq/new-model"]);
    assert_eq!(offered["models"][0]["tokensPerSecond"], 500);
    let asked = agentctl(&home, KEY, &["prompt", "Hi"]);
    assert_eq!((asked.code, asked.stdout.as_str()), (0, "Hello.\n"), "{asked:?}");
    let request = &server.requests()[0];
    assert_eq!(request.header("authorization"), Some("Bearer the-key"));
    assert!(!request.header("user-agent").unwrap().contains("another"), "{request:?}");
    assert_eq!(request.header("x-team"), Some("tools"));

    let reset = agentctl(&home, &[], &["models", "--reset-catalogue", "--json"]);
    let reset: Value = serde_json::from_str(&reset.stdout).expect("one line of JSON");
    assert_eq!((&reset["addedModels"], &reset["catalogue"]["kind"]), (&json!(1643), &json!("builtin")));
    assert!(!stored(&home).exists());
    let mut third = service.client();
    third.done(json!({"type": "open_session", "cwd": home.project(), "ephemeral": true}));
    assert_eq!(full_ids(&third.done(json!({"type": "get_available_models"}))["models"]).len(), 7);
    let list = agentctl(&home, KEY, &["models"]);
    assert_says(&list.stderr, &["Catalogue: built-in, of 2"]);
}

#[test]
fn what_is_wrong_is_told_and_changes_nothing() {
    let server = MockServer::always(Reply::stream(Wire::Chat.answer("Hello.")));
    let home = Home::new();
    let good = example(&server);
    let done = ctl::run_with_input(&home, &["models", "--update", "-"], &good);
    assert_eq!(done.code, 0, "{done:?}");
    let before = fs::read(stored(&home)).unwrap();
    let wrong = good.replace("\"contextWindow\": 131072", "\"contextWindow\": \"large\"");
    let done = ctl::run_with_input(&home, &["models", "--update", "-"], &wrong);
    assert_eq!((done.code, done.stdout.as_str()), (1, ""), "{done:?}");
    assert_says(
        &done.stderr,
        &["nothing was changed", "line 15: models[0].contextWindow: expected a number of tokens above 0"],
    );
    let missing = agentctl(&home, &[], &["models", "--update", "/nonexistent/c.json"]);
    assert_eq!(missing.code, 1, "{missing:?}");
    assert_says(&missing.stderr, &["/nonexistent/c.json: cannot be read"]);
    for flags in
        [&["models", "--update", "x", "--all"][..], &["models", "--update", "x", "--reset-catalogue"]]
    {
        assert_eq!(agentctl(&home, &[], flags).code, 2, "{flags:?}");
    }
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let refused = daemon.refused(json!({"type": "update_models"}));
    assert_says(&refused["error"].to_string(), &["exactly one of path, text"]);
    assert_eq!(fs::read(stored(&home)).unwrap(), before);
}

#[test]
fn a_stored_file_that_is_broken_gives_way_to_the_built_in_one() {
    let home = Home::new();
    for (content, says) in [
        ("agentd model catalogue 1 0000000000000000\n{}\n", "is damaged"),
        ("agentd model catalogue 2 0000000000000000\n", "was stored by a newer agentd"),
        ("{}", "is no stored catalogue"),
    ] {
        home.write_agent("models-catalogue.bin", content);
        let path = stored(&home).display().to_string();
        let says = [says, path.as_str(), "agentctl models --reset-catalogue"];
        let mut daemon = Daemon::start_with(&home, &["--no-session"], with(KEY));
        let offered = daemon.done(json!({"type": "get_available_models"}));
        assert_eq!(full_ids(&offered["models"]).len(), 7);
        assert_says(&daemon.close().stderr, &says);
        let list = agentctl(&home, KEY, &["models"]);
        assert_eq!(list.code, 0, "{list:?}");
        assert_says(&list.stderr, &says);
        assert_says(&list.stderr, &["7 models can be used.", "Catalogue: built-in"]);
        let doctor = agentctl(&home, KEY, &["doctor"]);
        assert_eq!(doctor.code, 1, "{doctor:?}");
        assert_says(&doctor.stdout, &says);
    }
    assert_eq!(agentctl(&home, &[], &["models", "--reset-catalogue"]).code, 0);
    assert_eq!(agentctl(&home, KEY, &["models"]).stderr.matches("catalogue").count(), 0);
}
