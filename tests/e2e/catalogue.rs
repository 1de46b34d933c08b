//! The built-in catalogue as clients and users see it, and another one in its place.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use agentd_e2e::{
    Ctl, Daemon, Home, MockServer, Reply, Service, Terminal,
    apis::ProviderApi,
    binaries,
    ctl::{self, Finished},
    sse,
};
use serde_json::{Value, json};

use crate::{
    models_file::block,
    support::{assert_says, complaint},
};

pub(crate) fn with<'a>(variables: &'a [(&str, &str)]) -> impl FnOnce(&mut Command) + 'a {
    move |command| {
        command.envs(variables.iter().copied());
    }
}

pub(crate) fn agentctl(home: &Home, variables: &[(&str, &str)], args: &[&str]) -> Finished {
    let mut command = ctl::command(home, args);
    command.envs(variables.iter().copied());
    Ctl::start_with(command, std::process::Stdio::null()).finish()
}

pub(crate) fn full_ids(models: &Value) -> Vec<String> {
    let name =
        |model: &Value| format!("{}/{}", model["provider"].as_str().unwrap(), model["id"].as_str().unwrap());
    models.as_array().expect("a list of models").iter().map(name).collect()
}

/// The models of a provider in the catalogue's file.
pub(crate) fn catalogue(provider: &str) -> Vec<Value> {
    let file = format!("daemon/crates/config/catalogue/models/{provider}.jsonl");
    let text = std::fs::read_to_string(binaries::workspace().join(file)).expect("the provider's file");
    text.lines().map(|line| serde_json::from_str(line).expect("a model")).collect()
}

/// The providers of the catalogue's file, in order of preference.
pub(crate) fn rows() -> Vec<Value> {
    let file = binaries::workspace().join("daemon/crates/config/catalogue/providers.jsonl");
    let text = std::fs::read_to_string(file).expect("the file of providers");
    text.lines().map(|line| serde_json::from_str(line).expect("a provider")).collect()
}

#[test]
fn a_key_in_the_environment_is_all_that_is_needed() {
    for (variables, model) in [
        (&[("OPENAI_API_KEY", "k")][..], "openai/gpt-6.1-sol"),
        (&[("ANTHROPIC_API_KEY", "k")], "anthropic/claude-opus-5-5"),
        (&[("OPENAI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")], "anthropic/claude-opus-5-5"),
        (&[("GEMINI_API_KEY", "k"), ("GROQ_API_KEY", "k")], "google/gemini-4-argon"),
        (&[("GEMINI_API_KEY", "k")], "google/gemini-4-argon"),
        (&[], "unknown/unknown"),
    ] {
        let home = Home::new();
        let mut daemon = Daemon::start_with(&home, &["--no-session"], with(variables));
        let state = daemon.done(json!({"type": "get_state"}));
        assert_eq!(full_ids(&json!([state["model"]])), [model], "{variables:?}");
    }
}

#[test]
fn models_are_offered_in_catalogue_order_with_all_their_fields() {
    let home = Home::new();
    let keys = with(&[("XAI_API_KEY", "k"), ("NVIDIA_API_KEY", "k"), ("GEMINI_API_KEY", "k")]);
    let mut daemon = Daemon::start_with(&home, &["--no-session"], keys);
    let offered = daemon.done(json!({"type": "get_available_models"}));
    let expected: Vec<Value> = ["google", "nvidia", "xai"].into_iter().flat_map(catalogue).collect();
    assert_eq!(offered["models"], json!(expected));
    let order = |model: &Value| model.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let keys =
        ["id", "name", "api", "provider", "baseUrl", "reasoning", "thinkingLevelMap", "input", "inputLimits"];
    let grok = offered["models"].as_array().unwrap().iter().find(|model| model["id"] == "grok-4.7").unwrap();
    assert_eq!(order(grok)[..keys.len()], keys);

    let other = catalogue("xai").pop().unwrap();
    let set = daemon.done(json!({"type": "set_model", "provider": "xai", "modelId": other["id"]}));
    assert_eq!(set, other);
    assert_eq!(daemon.done(json!({"type": "get_state"}))["model"], other);
}

#[test]
fn what_cannot_be_used_says_why() {
    let home = Home::new();
    home.configure(&json!({"providers": {"mine": {"baseUrl": "http://127.0.0.1:9", "api": "telepathy",
        "apiKey": "k", "models": [{"id": "seer"}]}}}));
    let mut daemon = Daemon::start_with(&home, &["--no-session"], with(&[]));
    let refused = daemon.refused(json!({"type": "set_model", "provider": "mine", "modelId": "seer"}));
    assert_eq!(refused["error"], "Model not found: mine/seer");
    assert_says(&complaint(&refused), &["speaks telepathy, which this version of agentd does not"]);
    let refused = daemon.refused(json!({"type": "set_model", "provider": "xai", "modelId": "grok-4.7"}));
    assert_says(&complaint(&refused), &["Model not found: xai/grok-4.7", "agentctl login xai"]);

    let ended = agentctl(&home, &[], &["prompt", "--model", "mine/seer", "Hi"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    let reason = "Model \"mine/seer\" speaks telepathy, which this version of agentd does not; it speaks: anthropic-messages, ";
    assert_says(&ended.stderr, &[reason]);
}

#[test]
fn slips_of_the_pen_are_answered_with_what_may_have_been_meant() {
    let home = Home::new();
    let refused = |args: &[&str], says: &str| {
        let ended = agentctl(&home, &[], &[&["prompt"], args, &["Hi"]].concat());
        assert_eq!((ended.code, ended.stdout.as_str()), (1, ""), "{ended:?}");
        assert_says(&ended.stderr, &[says]);
    };
    let models = "Use `agentctl models` to see available models. Did you mean";
    refused(
        &["--model", "gtp-6.1-sol"],
        &format!("Model \"gtp-6.1-sol\" not found. {models} \"openai/gpt-6.1-sol\""),
    );
    refused(
        &["--model", "antropic/claude-opus-5-5"],
        &format!("Model \"antropic/claude-opus-5-5\" not found. {models} \"anthropic/claude-opus-5-5\"?"),
    );
    let provider = "Unknown provider \"antropic\". Use `agentctl models` to see available providers/models. Did you mean \"anthropic\"?";
    refused(&["--provider", "antropic", "--model", "opus"], provider);

    let mut daemon = Daemon::start_with(&home, &["--no-session"], with(&[("XAI_API_KEY", "k")]));
    let refused = daemon.refused(json!({"type": "set_model", "provider": "xai", "modelId": "grok4.7"}));
    assert_eq!(refused["error"], "Model not found: xai/grok4.7");
    assert_says(&complaint(&refused), &["Did you mean \"xai/grok-4.7\"? get_available_models lists"]);
}

#[test]
fn a_narrow_terminal_gets_fewer_columns() {
    let home = Home::new();
    let shown = |columns: usize| {
        let script =
            format!("stty cols {columns} && exec {} models cerebras/", binaries::agentctl().display());
        Terminal::start(&home, Path::new("/bin/sh"), &["-c", &script]).finish()
    };
    let wide = shown(200);
    assert_eq!(wide.code, 0, "{wide:?}");
    assert_says(
        &wide.stdout,
        &["cache read", "images", "no: set CEREBRAS_API_KEY", "0 of 2 models can be used."],
    );
    let narrow = shown(60);
    let table: Vec<&str> = narrow.stdout.lines().take(3).collect();
    assert!(table.iter().all(|line| line.len() <= 60), "{table:?}");
    let head: Vec<&str> = table[0].split("  ").filter(|cell| !cell.is_empty()).map(str::trim).collect();
    assert_eq!(head, ["provider", "id", "context", "$/M in", "out", "key"]);
}

#[test]
fn a_provider_of_the_catalogue_goes_through_a_proxy() {
    let server = MockServer::always(Reply::stream(sse::answer("Through.")));
    let home = Home::new();
    home.configure(
        &json!({"providers": {"nvidia": {"baseUrl": server.base_url(), "headers": {"X-Proxy": "on"}}}}),
    );
    let model = catalogue("nvidia")[0]["id"].as_str().unwrap().to_owned();
    let key = [("NVIDIA_API_KEY", "the-key")];
    let done = agentctl(&home, &key, &["prompt", "--model", &format!("nvidia/{model}"), "Hi"]);
    assert_eq!((done.code, done.stdout.as_str()), (0, "Through.\n"), "{done:?}");
    let request = &server.requests()[0];
    assert_eq!(request.header("authorization"), Some("Bearer the-key"));
    assert_eq!(request.header("nvcf-poll-seconds"), Some("3600"));
    assert_eq!(request.header("x-proxy"), Some("on"));
}

#[test]
fn models_json_adds_replaces_and_overrides() {
    let home = Home::new();
    home.configure(&json!({"providers": {
        "xai": {"models": [{"id": "grok-next"}], "modelOverrides": {"grok-4.7": {"name": "Mine", "cost": {"input": 9}}}},
        "local": {"baseUrl": "http://127.0.0.1:1/v1", "api": "openai-completions", "apiKey": "none", "models": [{"id": "m"}]},
    }}));
    let mut daemon = Daemon::start_with(&home, &["--no-session"], with(&[("XAI_API_KEY", "k")]));
    let offered = daemon.done(json!({"type": "get_available_models"}))["models"].take();
    let built_in = full_ids(&json!(catalogue("xai")));
    let ids = full_ids(&offered);
    assert_eq!(ids[..built_in.len()], built_in);
    assert_eq!(ids[built_in.len()..], ["xai/grok-next", "local/m"]);
    let model = |id: &str| offered.as_array().unwrap().iter().find(|model| model["id"] == id).unwrap();
    let before = catalogue("xai").into_iter().find(|model| model["id"] == "grok-4.7").unwrap();
    assert_eq!(
        (&model("grok-4.7")["name"], &model("grok-4.7")["cost"]["input"]),
        (&json!("Mine"), &json!(9))
    );
    assert_eq!(model("grok-4.7")["cost"]["output"], before["cost"]["output"]);
    // Missing fields come from another model of the same provider.
    assert_eq!(model("grok-next")["baseUrl"], before["baseUrl"]);
    assert_eq!(model("grok-next")["api"], "openai-responses");
}

#[test]
fn the_list_is_a_table_with_the_rest_on_stderr() {
    let home = Home::new();
    let done = agentctl(&home, &[("XAI_API_KEY", "k")], &["models"]);
    assert_eq!(done.code, 0, "{done:?}");
    let lines: Vec<&str> = done.stdout.lines().collect();
    assert_eq!(lines.len(), 1 + catalogue("xai").len());
    let head: Vec<&str> = lines[0].split("  ").filter(|cell| !cell.is_empty()).map(str::trim).collect();
    let columns =
        ["provider", "id", "context", "max out", "$/M in", "out", "cache read", "thinking", "images", "key"];
    assert_eq!(head, columns);
    assert!(lines.iter().all(|line| !line.contains('\u{1b}') && !line.ends_with(' ')), "{}", done.stdout);
    assert_says(
        &done.stderr,
        &["4 models can be used.", "have no key", "agentctl models --all", "agentctl login"],
    );

    let keyless = agentctl(&home, &[], &["models", "grok-4.7"]);
    assert_eq!(keyless.code, 0, "{keyless:?}");
    assert_says(&keyless.stdout, &["xai ", "no: set XAI_API_KEY"]);

    let glob = agentctl(&home, &[], &["models", "XAI/*"]);
    assert_eq!(glob.stdout.lines().count(), 1 + catalogue("xai").len());
    assert_says(&glob.stderr, &["0 of 4 models can be used.", "`agentctl login xai`, or set XAI_API_KEY"]);

    let nothing = agentctl(&home, &[], &["models", "no such model"]);
    assert_eq!((nothing.code, nothing.stdout.as_str()), (1, ""), "{nothing:?}");
    assert_says(&nothing.stderr, &["No model matches \"no such model\"."]);
    let near = agentctl(&home, &[], &["models", "claude-opsu-5-5"]);
    assert_eq!((near.code, near.stdout.as_str()), (1, ""), "{near:?}");
    assert_says(
        &near.stderr,
        &["No model matches \"claude-opsu-5-5\". Did you mean anthropic/claude-opus-5-5, amazon-bedrock/"],
    );

    let silent = agentctl(&home, &[], &["models", "google/gemini-4-argon-not"]);
    assert_eq!(silent.code, 1, "{silent:?}");
    let broken = agentctl(&home, &[], &["models", "["]);
    assert_eq!((broken.code, broken.stdout.as_str()), (1, ""), "{broken:?}");
    assert_says(&broken.stderr, &["no valid pattern"]);
}

#[test]
fn the_list_for_programs_is_the_answer_of_the_daemon() {
    let home = Home::new();
    let printed = agentctl(&home, &[], &["models", "--all", "--json"]);
    assert_eq!((printed.code, printed.stderr.as_str()), (0, ""), "{}", printed.stderr);
    let printed: Value = serde_json::from_str(&printed.stdout).expect("one line of JSON");
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    assert_eq!(printed, daemon.done(json!({"type": "list_models", "all": true})));
    assert_eq!(printed["notSpoken"], Value::Null);
    assert_eq!(printed["models"].as_array().unwrap().len(), 1643);
    assert!(printed["models"].as_array().unwrap().iter().all(|model| model["hasKey"] == false));

    let few = daemon.done(json!({"type": "list_models"}));
    assert_eq!((few["models"].as_array().unwrap().len(), few["providers"].as_array().unwrap().len()), (0, 0));
    assert_eq!(few["withoutKey"], printed["models"].as_array().unwrap().len());
}

#[test]
fn the_daemon_lists_models_by_itself() {
    let home = Home::new();
    let list = |home: &Home, search: &str| {
        let mut command = home.command(Path::new(&binaries::agentd()));
        let output = command.args(["--list-models", search]).env("XAI_API_KEY", "k").output().unwrap();
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
    };
    assert_says(&list(&home, "grok-4.7"), &["provider", "xai       grok-4.7"]);
    assert_says(&list(&home, "nothing-like-it"), &["No model with a key matches \"nothing-like-it\"."]);
}

const KEY: &[(&str, &str)] = &[("GROQ_API_KEY", "the-key")];

/// The example of docs/models.md, with the address of this server.
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
    let server = MockServer::always(Reply::stream(ProviderApi::Chat.answer("Hello.")));
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

    // An open session keeps its catalogue; the next one in the same daemon gets the new one.
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
fn errors_are_reported_and_change_nothing() {
    let server = MockServer::always(Reply::stream(ProviderApi::Chat.answer("Hello.")));
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
