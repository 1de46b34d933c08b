//! Keys: stored, found, taken back, through the real programs.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, thread};

use agentd_e2e::{
    Daemon, Home, MockServer, Reply, Terminal,
    apis::ProviderApi,
    binaries,
    ctl::{self, Finished},
};
use serde_json::{Value, json};

use crate::support::assert_says;

/// A home in which the built-in providers point to `server`.
fn redirected(server: &MockServer) -> Home {
    let home = Home::new();
    let url = server.base_url();
    home.configure(&json!({"providers": {"anthropic": {"baseUrl": url}, "openai": {"baseUrl": url}}}));
    home
}

fn stored(home: &Home) -> Value {
    serde_json::from_str(&fs::read_to_string(home.agent_dir().join("auth.json")).unwrap()).unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// The JSON on stdout.
fn data(done: &Finished) -> Value {
    serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {done:?}"))
}

#[test]
fn a_key_that_is_piped_in_counts_at_once() {
    let server = MockServer::start([Reply::stream(ProviderApi::Messages.answer("Hello."))]);
    let home = redirected(&server);
    let done = ctl::run_with_input(&home, &["login", "anthropic"], "  sk-$HOME-!x\r\n");
    assert_eq!((done.code, done.stderr.as_str()), (0, ""), "{done:?}");
    assert_says(&done.stdout, &["Stored the key of anthropic in ", "agent/auth.json"]);
    let file = home.agent_dir().join("auth.json");
    assert_eq!((mode(&file), mode(&home.agent_dir().join("run"))), (0o600, 0o700));

    let done = ctl::run(&home, &["prompt", "Hi"]);
    assert_eq!((done.code, done.stdout.as_str()), (0, "Hello.\n"), "{done:?}");
    assert_eq!(server.requests()[0].header("x-api-key"), Some("sk-$HOME-!x"));

    let done = ctl::run(&home, &["auth", "status", "--json"]);
    let expected = json!([{"provider": "anthropic", "source": {"from": "stored"}, "usable": true}]);
    assert_eq!((done.code, &data(&done)["providers"]), (0, &expected), "{done:?}");
    let done = ctl::run(&home, &["logout", "anthropic"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(stored(&home), json!({}));
    let done = ctl::run(&home, &["logout", "anthropic"]);
    assert_eq!(done.code, 1, "{done:?}");
    assert_says(&done.stderr, &["Nothing is stored for \"anthropic\"", "auth.json"]);
    assert_eq!(ctl::run(&home, &["auth", "status"]).code, 1);
}

#[test]
fn a_typed_key_is_not_shown() {
    let home = Home::new();
    let mut terminal = Terminal::start(&home, &binaries::agentctl(), &["login", "openai"]);
    terminal.wait_for("Key for openai (it is not shown): ");
    terminal.press("sk-typed-1234\r");
    let done = terminal.finish();
    assert_eq!(done.code, 0, "{done:?}");
    assert!(!done.stdout.contains("sk-typed"), "{done:?}");
    assert_eq!(stored(&home)["openai"], json!({"type": "api_key", "key": "sk-typed-1234"}));
}

#[test]
fn ctrl_c_at_the_question_stores_nothing() {
    let home = Home::new();
    let mut terminal = Terminal::start(&home, &binaries::agentctl(), &["login", "openai"]);
    terminal.wait_for("not shown): ");
    terminal.press("sk-half\u{3}");
    let done = terminal.finish();
    assert_eq!(done.code, 130, "{done:?}");
    assert!(!done.stdout.contains("sk-half") && !home.agent_dir().join("auth.json").exists(), "{done:?}");
}

#[test]
fn what_cannot_be_stored_is_refused_with_a_reason() {
    let home = Home::new();
    let check = |args: &[&str], input: &str, code: i32, says: &[&str]| {
        let done = ctl::run_with_input(&home, args, input);
        assert_eq!((done.code, done.stdout.as_str()), (code, ""), "{args:?} {done:?}");
        assert_says(&done.stderr, says);
        assert!(!done.stderr.contains("hush"), "{done:?}");
    };
    check(
        &["login", "openai", "hush-key"],
        "",
        2,
        &["not taken from the command line", "agentctl login openai < FILE"],
    );
    check(&["login", "openai"], " \n", 2, &["no key was given"]);
    check(
        &["login", "opnai"],
        "hush\n",
        1,
        &["Unknown provider \"opnai\". Did you mean \"openai\"?", "--force"],
    );
    check(&["login", "openai"], "hush hush\n", 1, &["Nothing was stored", "a blank"]);
    check(&["login", "openai", "--env", "hush"], "k", 2, &["--env takes NAME=VALUE"]);
    check(&["login", "openai", "--env", "1=hush"], "k", 1, &["\"1\" cannot be the name of a variable"]);
    check(&["auth", "status", "opnai"], "", 1, &["Unknown provider \"opnai\". Did you mean \"openai\"?"]);
    assert!(!home.agent_dir().join("auth.json").exists());

    let oauth = r#"{"anthropic": {"type": "oauth", "refresh": "hush"}}"#;
    home.write_agent("auth.json", oauth);
    check(&["login", "anthropic"], "k", 1, &["a login (\"oauth\") for anthropic", "--force"]);
    assert_eq!(fs::read_to_string(home.agent_dir().join("auth.json")).unwrap(), oauth);
    let done = ctl::run_with_input(&home, &["login", "anthropic", "--force"], "k");
    assert_eq!((done.code, &stored(&home)["anthropic"]["key"]), (0, &json!("k")), "{done:?}");

    let broken = "{\"openai\": hush";
    home.write_agent("auth.json", broken);
    check(&["login", "openai"], "k", 1, &["auth.json, line 1, column 12", "Repair the file or remove it."]);
    check(&["logout", "openai"], "", 1, &["auth.json, line 1"]);
    assert_eq!(fs::read_to_string(home.agent_dir().join("auth.json")).unwrap(), broken);
}

#[test]
fn a_file_that_is_open_to_others_is_closed_and_else_kept() {
    let home = Home::new();
    let before = "// mine\n{\n  \"openai\": {\"type\": \"api_key\", \"key\": \"old\", \"n\": 1.0}, // o\n  \"x\": 1\n}\n";
    home.write_agent("auth.json", before);
    let file = home.agent_dir().join("auth.json");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(ctl::run_with_input(&home, &["login", "openai"], "new").code, 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), before.replace("old", "new"));
    assert_eq!(mode(&file), 0o600);
    assert_eq!(ctl::run(&home, &["logout", "openai"]).code, 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), "// mine\n{\n   // o\n  \"x\": 1\n}\n");
}

#[test]
fn many_at_once_lose_nothing() {
    const PROVIDERS: [&str; 8] =
        ["anthropic", "openai", "groq", "xai", "deepseek", "cerebras", "openrouter", "together"];
    let home = Home::new();
    thread::scope(|scope| {
        for provider in PROVIDERS {
            let home = &home;
            scope.spawn(move || {
                let done = ctl::run_with_input(home, &["login", provider], &format!("key-of-{provider}"));
                assert_eq!(done.code, 0, "{done:?}");
            });
        }
    });
    let stored = stored(&home);
    for provider in PROVIDERS {
        assert_eq!(stored[provider]["key"], json!(format!("key-of-{provider}")));
    }
}

#[test]
fn the_source_that_counts_is_named() {
    let home = Home::new();
    home.configure(
        &json!({"providers": {"openai": {"baseUrl": "http://127.0.0.1:9/v1", "apiKey": "$MINE"}}}),
    );
    home.write_agent(
        "auth.json",
        r#"{"openai": {"type": "api_key", "key": "k"}, "groq": {"type": "api_key", "key": "$NONE"}}"#,
    );
    let run = |args: &[&str]| {
        let mut command = ctl::command(&home, args);
        command.env("OPENAI_API_KEY", "k").env("MINE", "k");
        ctl::Ctl::start_with(command, std::process::Stdio::null()).finish()
    };
    let done = run(&["auth", "status", "--json"]);
    let variable = json!({"from": "variable", "name": "OPENAI_API_KEY"});
    let expected = json!([
        {"provider": "groq", "source": {"from": "stored"}, "usable": false, "problem": "it is empty, or names a variable that is not set"},
        {"provider": "openai", "source": {"from": "stored"}, "usable": true, "shadowed": [{"from": "modelsFile"}, variable]},
    ]);
    assert_eq!((done.code, &data(&done)["providers"]), (0, &expected), "{done:?}");
    let done = run(&["logout", "openai"]);
    assert_says(&done.stdout, &["openai still has a key: \"apiKey\" in models.json."]);
    let done = run(&["auth", "status"]);
    assert_says(
        &done.stdout,
        &["openai  \"apiKey\" in models.json (comes before OPENAI_API_KEY in the environment)\n"],
    );
    let done = run(&["auth", "status", "groq"]);
    assert_eq!(done.code, 1, "{done:?}");
}

#[test]
fn a_running_session_sees_a_login_of_another_program() {
    let server = MockServer::start([Reply::stream(ProviderApi::Responses.answer("Hello."))]);
    let home = redirected(&server);
    let mut daemon = Daemon::start(&home, &[]);
    let providers = |daemon: &mut Daemon| -> Vec<String> {
        let models = daemon.done(json!({"type": "get_available_models"}))["models"].clone();
        let mut providers: Vec<String> = models
            .as_array()
            .unwrap()
            .iter()
            .map(|model| model["provider"].as_str().unwrap().to_owned())
            .collect();
        providers.dedup();
        providers
    };
    let before = providers(&mut daemon);
    assert!(!before.contains(&"openai".to_owned()), "{before:?}");
    assert_eq!(ctl::run_with_input(&home, &["login", "openai"], "sk-other").code, 0);
    assert!(providers(&mut daemon).contains(&"openai".to_owned()));
    let model = daemon.done(json!({"type": "cycle_model"}))["model"].clone();
    assert_eq!(model["provider"], "openai", "{model}");
    daemon.prompt("Hi");
    assert_eq!(server.requests()[0].header("authorization"), Some("Bearer sk-other"));
    // It also sees a login of its own client.
    let stored = daemon.done(json!({"type": "login", "provider": "anthropic", "key": "sk-own"}));
    assert_eq!(stored["replaced"], json!(false));
    assert!(providers(&mut daemon).contains(&"anthropic".to_owned()));
    daemon.done(json!({"type": "logout", "provider": "openai"}));
    assert_eq!(providers(&mut daemon), ["anthropic"]);
}
