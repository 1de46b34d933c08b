//! Settings that nobody reads and models that do not exist are told at the start and by `agentctl config check`.

use agentd_e2e::{Daemon, Home, ctl};
use serde_json::json;

use crate::support::assert_says;

/// Two providers on a port where nobody listens.
fn with_models(home: &Home) {
    let provider = |ids: [&str; 2]| {
        json!({"baseUrl": "http://127.0.0.1:9/v1", "api": "openai-completions", "apiKey": "k",
            "models": [{"id": ids[0]}, {"id": ids[1]}]})
    };
    home.configure(&json!({"providers": {"west": provider(["small-model", "large-model"]), "east": provider(["wise", "x/y"])}}));
}

#[test]
fn unknown_keys_are_told_with_file_line_and_what_may_be_meant() {
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
    // A project that nobody trusts is not read.
    let checked = ctl::run(&home, &["config", "check"]);
    assert_eq!(checked.code, 1, "{checked:?}");
    assert!(!checked.stdout.contains("maxRetrys"), "{checked:?}");
    // At the start, once.
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
    home.settings(&json!({"theme": "dark", "packages": [], "terminal": {"showImages": true}, "lastChangelogVersion": "1.5.2",
        "$schema": "x"}));
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
fn models_that_do_not_exist_are_told() {
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
fn slips_in_a_models_file_are_told() {
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
    // What can be read and changes nothing.
    home.write_agent(
        "models.json",
        "{\"providers\": {\n\"p\": {\"baseUrl\": \"http://127.0.0.1:9/v1\", \"api\": \"openai-completion\", \"models\": [{\"id\": \"m\"}]}}}",
    );
    let checked = ctl::run(&home, &["config", "check"]);
    assert_eq!(checked.code, 1, "{checked:?}");
    assert_says(&checked.stdout, &["models.json:2: provider p: 1 model not offered.", "openai-completion"]);
}
