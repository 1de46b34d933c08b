//! models.json: what docs/models.md shows works as it stands there, and edits reach open sessions between runs.

use agentd_e2e::{Daemon, Gate, Home, MockServer, Reply, apis::ProviderApi, binaries, sse};
use serde_json::{Value, json};

use crate::{
    catalogue::{agentctl, full_ids, with},
    support::{answers, assert_says, complaint, text},
};

fn page() -> String {
    std::fs::read_to_string(binaries::workspace().join("docs/models.md")).expect("the page")
}

/// The only fenced block of docs/models.md in this language that holds `part`.
pub(super) fn block(language: &str, part: &str) -> String {
    let page = page();
    let fence = format!("```{language}\n");
    let blocks = page.split(&fence).skip(1);
    let blocks = blocks.filter_map(|rest| rest.split_once("\n```")).map(|(block, _)| block);
    let found: Vec<&str> = blocks.filter(|block| block.contains(part)).collect();
    let [one] = found.as_slice() else { panic!("{part:?} is in {} blocks", found.len()) };
    (*one).to_owned()
}

fn own_server(server: &MockServer) -> String {
    let example = block("json", "under my desk");
    assert!(example.contains("http://127.0.0.1:11434/v1"));
    example.replace("http://127.0.0.1:11434/v1", &server.base_url())
}

#[test]
fn every_json_example_is_one_of_those_tried_here() {
    assert_eq!(page().matches("```json\n").count(), 5);
}

#[test]
fn the_example_of_roles_is_understood() {
    let home = Home::new();
    home.write_agent("settings.json", &block("json", "modelRoles"));
    let doctor = agentctl(&home, &[], &["doctor"]);
    assert!(!doctor.stdout.contains("modelRoles"), "{doctor:?}");
    let explained = agentctl(&home, &[], &["config", "explain", "modelRoles"]);
    assert!(explained.stdout.contains("anthropic/claude-haiku-4-5"), "{explained:?}");
}

#[test]
fn the_example_of_a_server_answers() {
    let server = MockServer::always(Reply::stream(ProviderApi::Chat.answer("Hello.")));
    let home = Home::new();
    home.write_agent("models.json", &own_server(&server));
    let done = agentctl(&home, &[], &["prompt", "--thinking", "low", "Hi"]);
    assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (0, "Hello.\n", ""), "{done:?}");
    let request = &server.requests()[0];
    assert_eq!(request.target, "POST /v1/chat/completions");
    assert_eq!((&request.body["model"], &request.body["temperature"]), (&json!("qwen3:8b"), &json!(0.6)));
    assert_eq!(request.messages()[0]["role"], "system");
    assert_eq!(request.body["max_completion_tokens"], 8192);
    let doctor = agentctl(&home, &[], &["doctor"]);
    assert!(!doctor.stdout.contains("warn models.json"), "{doctor:?}");
}

#[test]
fn the_example_of_a_proxy_changes_the_provider() {
    let server = MockServer::always(Reply::stream(ProviderApi::Messages.answer("Hello.")));
    let origin = server.base_url().trim_end_matches("/v1").to_owned();
    let example = block("json", "proxy.example.com");
    let home = Home::new();
    home.write_agent("models.json", &example.replace("https://proxy.example.com", &origin));
    let variables = [("ANTHROPIC_API_KEY", "the-key"), ("PROXY_TOKEN", "the-token")];
    let done = agentctl(&home, &variables, &["prompt", "Hi"]);
    assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (0, "Hello.\n", ""), "{done:?}");
    let request = &server.requests()[0];
    assert_eq!(request.target, "POST /anthropic/v1/messages?beta=true");
    for (name, value) in [("x-api-key", "the-key"), ("x-team", "tools"), ("x-token", "the-token")] {
        assert_eq!(request.header(name), Some(value));
    }
    let mut daemon = Daemon::start_with(&home, &["--no-session"], with(&variables));
    let offered = daemon.done(json!({"type": "get_available_models"}))["models"].take();
    let model =
        |id: &str| offered.as_array().unwrap().iter().find(|model| model["id"] == id).unwrap().clone();
    let changed = model("claude-opus-5-5");
    assert_eq!((&changed["contextWindow"], &changed["cost"]["input"]), (&json!(200_000), &json!(3)));
    assert!(changed["cost"]["output"].as_f64().unwrap() > 3.0, "{changed}");
    assert_eq!(
        (&model("claude-next")["input"], &model("claude-next")["api"]),
        (&json!(["text", "image"]), &json!("anthropic-messages"))
    );
    let doctor = agentctl(&home, &variables, &["doctor"]);
    assert!(!doctor.stdout.contains("warn models.json"), "{doctor:?}");
}

#[test]
fn the_example_of_settings_chooses() {
    let server = MockServer::always(Reply::stream(ProviderApi::Chat.answer("Hello.")));
    let home = Home::new();
    home.write_agent("models.json", &own_server(&server));
    home.write_agent("settings.json", &block("json", "defaultProvider"));
    let mut daemon = Daemon::start_with(&home, &["--no-session"], with(&[("ANTHROPIC_API_KEY", "k")]));
    let state = daemon.done(json!({"type": "get_state"}));
    assert_eq!(full_ids(&json!([state["model"]])), ["local/qwen3:8b"]);
    assert_eq!(state["thinkingLevel"], "low");
    let next = daemon.done(json!({"type": "cycle_model"}));
    assert_eq!(full_ids(&json!([next["model"]])), ["anthropic/claude-opus-5-5"]);
    assert_eq!((&next["thinkingLevel"], &next["isScoped"]), (&json!("xhigh"), &json!(true)));
    let set = json!({"type": "set_model", "provider": "anthropic", "modelId": "claude-opus-5-5"});
    daemon.done(set);
    let stderr = daemon.close().stderr;
    assert!(stderr.is_empty(), "{stderr}");
}

#[test]
fn every_field_of_the_file_is_explained() {
    let schema = std::fs::read_to_string(binaries::workspace().join("schemas/models.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let page = page();
    let mut fields = Vec::new();
    collect(&schema, &mut fields);
    assert!(fields.len() > 20, "{fields:?}");
    for field in fields {
        assert!(page.contains(&format!("`{field}`")), "{field} is not explained");
    }
}

/// The names of all properties in a schema.
fn collect(schema: &Value, fields: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::Object(properties)) = members.get("properties") {
                fields.extend(properties.keys().filter(|name| *name != "providers").cloned());
            }
            members.values().for_each(|member| collect(member, fields));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, fields)),
        _ => {}
    }
}

#[test]
fn the_defaults_and_apis_are_those_of_the_daemon() {
    let home = Home::new();
    home.configure(&json!({"providers": {"p": {"baseUrl": "http://127.0.0.1:1/v1", "api": "openai-completions", "apiKey": "none",
        "models": [{"id": "m"}]}, "odd": {"baseUrl": "http://127.0.0.1:1", "api": "morse", "models": [{"id": "dot"}]}}}));
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let model = daemon.done(json!({"type": "get_available_models"}))["models"][0].take();
    let page = page();
    for field in ["contextWindow", "maxTokens", "reasoning", "input"] {
        assert_says(&page, &[&format!("| `{field}` | `{}` |", model[field])]);
    }
    let refused = daemon.refused(json!({"type": "set_model", "provider": "odd", "modelId": "dot"}));
    let (_, apis) = refused["hint"].as_str().unwrap().split_once("it speaks: ").unwrap();
    let (apis, _) = apis.split_once('.').unwrap();
    let apis: Vec<String> = apis.split(", ").map(|api| format!("`{api}`")).collect();
    let (_, spoken) = page.split_once("\nagentd speaks ").unwrap();
    let (spoken, _) = spoken.split_once("\n\n").unwrap();
    for api in apis.iter().filter(|api| *api != "`scripted`") {
        assert_says(spoken, &[api]);
    }
    assert_eq!(apis.len(), 10);
}

#[test]
fn every_command_of_the_models_page_can_be_given() {
    let home = Home::new();
    let lines = block("sh", "agentctl models ");
    let commands: Vec<&str> = lines.lines().filter(|line| line.starts_with("agentctl models")).collect();
    assert_eq!(commands.len(), 4);
    for line in commands {
        let script = line.replacen("agentctl", &binaries::agentctl().display().to_string(), 1);
        let output = home.command("/bin/sh").args(["-c", &script]).output().unwrap();
        // Without a key, `agentctl models` has nothing to show.
        let expected = i32::from(line.starts_with("agentctl models  "));
        assert_eq!(output.status.code(), Some(expected), "{line}: {output:?}");
    }
    let help = agentctl(&home, &[], &["prompt", "--help"]).stdout;
    for flag in block("sh", "--provider").split_whitespace().filter(|word| word.starts_with("--")) {
        assert_says(&help, &[flag]);
    }
}

#[test]
fn every_link_of_the_models_page_leads_somewhere() {
    let page = page();
    let links = page.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link);
    let links: Vec<&str> = links.collect();
    assert!(links.len() > 2);
    for link in links {
        let link = link.split('#').next().unwrap();
        assert!(binaries::workspace().join("docs").join(link).exists(), "{link}");
    }
}

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
    // The model in use gets another address and key.
    home.configure(&json!({"providers": {"fake": provider(&two, "key-number-two", &["fake"])}}));
    assert_eq!(said(&mut daemon, "Hi"), "Two.");
    assert_eq!(two.requests()[0].header("authorization"), Some("Bearer key-number-two"));
    // Another provider is added, with headers.
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
    // A variable that became a model's key does not reach commands.
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
fn a_broken_file_keeps_the_models_and_is_reported_once() {
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
    // A repaired file is used again.
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
