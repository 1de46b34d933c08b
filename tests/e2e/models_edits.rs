//! Edits of models.json reach sessions that are open, between runs.

use agentd_e2e::{Daemon, Gate, Home, MockServer, Reply, sse};
use serde_json::{Value, json};

use crate::support::{answers, assert_says, complaint, text};

fn provider(server: &MockServer, key: &str, models: &[&str]) -> Value {
    let models: Vec<Value> = models.iter().map(|id| json!({"id": id})).collect();
    json!({"baseUrl": server.base_url(), "api": "openai-completions", "apiKey": key, "models": models})
}

fn available(daemon: &mut Daemon) -> Vec<String> {
    let models = daemon.done(json!({"type": "get_available_models"}))["models"].clone();
    let of_ours = models.as_array().unwrap().iter().filter(|model| model["provider"] != "demo");
    of_ours.map(|model| model["id"].as_str().unwrap().to_owned()).collect()
}

fn said(daemon: &mut Daemon, message: &str) -> String {
    let events = daemon.prompt(message);
    text(answers(&events)[0])
}

#[test]
fn a_live_session_sees_other_providers_addresses_and_keys() {
    let (one, two) = (
        MockServer::always(Reply::stream(sse::answer("One."))),
        MockServer::always(Reply::stream(sse::answer("Two."))),
    );
    let home = Home::with_model(&one);
    let mut daemon = Daemon::start(&home, &[]);
    assert_eq!(said(&mut daemon, "Hi"), "One.");
    // Another address and key of the model that is in use.
    home.configure(&json!({"providers": {"fake": provider(&two, "key-number-two", &["fake"])}}));
    assert_eq!(said(&mut daemon, "Hi"), "Two.");
    assert_eq!(two.requests()[0].header("authorization"), Some("Bearer key-number-two"));
    // Another provider, its headers included.
    let mut more = provider(&one, "key-number-three", &["m"]);
    more["headers"] = json!({"x-mine": "yes"});
    home.configure(
        &json!({"providers": {"fake": provider(&two, "key-number-two", &["fake"]), "more": more}}),
    );
    daemon.done(json!({"type": "set_model", "provider": "more", "modelId": "m"}));
    assert_eq!(said(&mut daemon, "Hi"), "One.");
    assert_eq!(one.requests().last().unwrap().header("x-mine"), Some("yes"));
    assert_eq!(available(&mut daemon), ["fake", "m"]);
    home.configure(&json!({"providers": {"more": provider(&one, "key-number-three", &["m", "n"])}}));
    assert_eq!(available(&mut daemon), ["m", "n"]);
    let refused = daemon.refused(json!({"type": "set_model", "provider": "fake", "modelId": "fake"}));
    assert_eq!(refused["code"], json!("no_model"));
    // A variable that is a model's key now does not reach commands.
    home.configure(&json!({"providers": {"more": provider(&one, "$LANG_KEY", &["m"])}}));
    assert_eq!(available(&mut daemon).len(), 0, "the variable is not set");
}

#[test]
fn a_session_whose_model_is_gone_says_so_and_goes_on_when_it_is_back() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &[]);
    assert_eq!(said(&mut daemon, "Hi"), "Ok.");
    for edit in
        [json!({"providers": {"fake": provider(&server, "key-1234", &["other"])}}), json!({"providers": {}})]
    {
        home.configure(&edit);
        let refused = daemon.refused(json!({"type": "prompt", "message": "Hi"}));
        assert_eq!(refused["code"], json!("no_model"), "{refused}");
        assert_says(&complaint(&refused), &["fake/fake", "models.json", "set_model", "get_available_models"]);
    }
    home.configure(&json!({"providers": {"fake": provider(&server, "key-1234", &["other"])}}));
    daemon.done(json!({"type": "set_model", "provider": "fake", "modelId": "other"}));
    assert_eq!(said(&mut daemon, "Hi"), "Ok.");
    home.configure(&json!({"providers": {"fake": provider(&server, "key-1234", &["fake"])}}));
    daemon.refused(json!({"type": "prompt", "message": "Hi"}));
    home.configure(&json!({"providers": {"fake": provider(&server, "key-1234", &["fake", "other"])}}));
    assert_eq!(said(&mut daemon, "Hi"), "Ok.");
    assert_eq!(server.requests().last().unwrap().body["model"], json!("other"));
}

#[test]
fn a_broken_file_keeps_the_models_and_is_told_once() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    daemon.done(json!({"type": "hello", "protocol": 1, "capabilities": {"ui": true}}));
    let notices = |events: &[Value]| {
        events
            .iter()
            .filter(|event| event["type"] == "extension_ui_request" && event["method"] == "notify")
            .count()
    };
    assert_eq!(notices(&daemon.prompt("Hi")), 0);
    home.write_agent("models.json", "{\"providers\": {,}");
    let events = daemon.prompt("Hi");
    assert_eq!((notices(&events), text(answers(&events)[0]).as_str()), (1, "Ok."), "{events:?}");
    assert_eq!(notices(&daemon.prompt("Hi")), 0);
    let told = daemon.done(json!({"type": "get_diagnostics"})).to_string();
    assert_says(&told, &["models.json"]);
    // What is right again counts again.
    home.configure(&json!({"providers": {"fake": provider(&server, "key-1234", &["fake", "other"])}}));
    assert_eq!(available(&mut daemon), ["fake", "other"]);
    assert!(!daemon.done(json!({"type": "get_diagnostics"})).to_string().contains("models.json"));
}

#[test]
fn switches_and_keys_of_flags_outlast_an_edit_and_a_run_its_own_models() {
    let gate = Gate::new();
    let server = MockServer::start([
        Reply::stream(sse::text("First, "))
            .gate(&gate)
            .then(sse::text("second.") + &sse::end("stop", (1, 0, 1))),
        Reply::stream(sse::answer("Ok.")),
    ]);
    let home = Home::with_model(&server);
    let mut daemon =
        Daemon::start(&home, &["--no-session", "--model", "fake/fake", "--api-key", "key-of-the-flag"]);
    daemon.done(json!({"type": "set_auto_compaction", "enabled": false}));
    daemon.send(&json!({"type": "prompt", "message": "Hi"}));
    daemon.until("a delta", |line| line["assistantMessageEvent"]["type"] == "text_delta");
    home.configure(&json!({"providers": {"fake": provider(&server, "key-1234", &["fake", "other"])}}));
    assert_eq!(available(&mut daemon), ["fake"], "a run works by the models that it began with");
    gate.open();
    daemon.settled();
    assert_eq!(available(&mut daemon), ["fake", "other"]);
    assert_eq!(said(&mut daemon, "Hi"), "Ok.");
    assert_eq!(server.requests()[1].header("authorization"), Some("Bearer key-of-the-flag"));
    assert_eq!(daemon.done(json!({"type": "get_state"}))["autoCompactionEnabled"], json!(false));
}
