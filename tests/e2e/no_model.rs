//! Without a usable model nothing answers in its place, unless the demo model is asked for.

use std::process::Stdio;

use agentd_e2e::{
    Ctl, Home, MockServer, Reply, Terminal, binaries,
    ctl::{self, Finished},
    home::models,
    sse,
};
use serde_json::json;

use crate::support::assert_says;

fn agentd(home: &Home, args: &[&str], variable: Option<(&str, &str)>) -> Finished {
    let mut command = ctl::agentd(home, args);
    command.envs(variable);
    Ctl::start_with(command, Stdio::null()).finish()
}

fn prompt(home: &Home, variable: Option<(&str, &str)>) -> Finished {
    let mut command = ctl::command(home, &["prompt", "Hi"]);
    command.envs(variable);
    Ctl::start_with(command, Stdio::null()).finish()
}

/// Every one-shot way ends with 1 and says why; none of them answers.
fn check(home: &Home, variable: Option<(&str, &str)>, says: &[&str]) {
    let ended = [
        prompt(home, variable),
        agentd(home, &["-p", "Hi"], variable),
        agentd(home, &["--mode", "json", "Hi"], variable),
    ];
    for done in &ended {
        assert_eq!(done.code, 1, "{done:?}");
        assert_says(&done.stderr, &["No API key found for the selected model."]);
        assert_says(&done.stderr, says);
        assert!(!done.stdout.contains("demo") && !done.stdout.contains("message_end"), "{done:?}");
    }
}

#[test]
fn scripts_get_exit_code_1_and_what_to_do() {
    let home = Home::new();
    let says = [
        "No usable model is configured. ",
        "agentctl login",
        "agentctl setup local",
        "agentctl doctor",
        "--demo",
    ];
    check(&home, None, &says);
}

#[test]
fn empty_key_variables_are_named() {
    let home = Home::new();
    check(&home, Some(("ANTHROPIC_API_KEY", "")), &["configured: ANTHROPIC_API_KEY is set and empty."]);
    let mut doctor = ctl::command(&home, &["doctor"]);
    doctor.env("ANTHROPIC_API_KEY", "");
    let looked = Ctl::start_with(doctor, Stdio::null()).finish();
    assert_says(&looked.stdout, &["warn keys: ANTHROPIC_API_KEY is set and empty"]);
    // One that a provider of the user reads.
    let mut file = models("http://127.0.0.1:9/v1");
    file["providers"]["fake"]["apiKey"] = json!("$MY_OWN_KEY");
    home.configure(&file);
    check(&home, Some(("MY_OWN_KEY", "")), &["MY_OWN_KEY is set and empty"]);
}

#[test]
fn unreadable_files_are_named_with_the_reason() {
    for (name, text, says) in [
        ("models.json", "{\n  \"providers\": {,}\n}", &["models.json", "not JSON"][..]),
        ("settings.json", "{\n  \"defaultModel\": \n", &["settings.json:", "not JSON"]),
        ("auth.json", "[", &["auth.json", "line 1"]),
    ] {
        let home = Home::new();
        home.write_agent(name, text);
        check(&home, None, says);
        // Not even at a terminal.
        let seen = Terminal::start(&home, &binaries::agentctl(), &["prompt", "Hi"]).finish();
        assert_eq!(seen.code, 1, "{name}: {seen:?}");
        assert_says(&seen.stdout, &[name]);
        assert!(!seen.stdout.contains("demo model answers:"), "{name}: {seen:?}");
    }
}

#[test]
fn who_asks_for_the_demo_model_gets_it() {
    let home = Home::new();
    home.write_agent("models.json", "{");
    home.write("README.md", "# Weather station\n");
    for done in [
        ctl::run(&home, &["prompt", "--demo", "What is in this folder?"]),
        ctl::run(&home, &["prompt", "--model", "demo/demo", "What is in this folder?"]),
        agentd(&home, &["-p", "--demo", "What is in this folder?"], None),
        agentd(&home, &["--mode", "json", "--demo", "What is in this folder?"], None),
    ] {
        assert_eq!(done.code, 0, "{done:?}");
        assert_says(&done.stdout, &["Weather station"]);
    }
    let both = ctl::run(&home, &["prompt", "--demo", "--model", "a/b", "Hi"]);
    assert_eq!(both.code, 2, "{both:?}");
}

/// A person who tries agentctl for the first time sees it work, and how to get a real model.
#[test]
fn at_a_bare_terminal_with_nothing_configured_the_demo_answers() {
    let home = Home::new();
    home.write("README.md", "# Weather station\n");
    let seen = Terminal::start(&home, &binaries::agentctl(), &["prompt", "What is here?"]).finish();
    assert_eq!(seen.code, 0, "{seen:?}");
    assert_says(
        &seen.stdout,
        &[
            "No model is configured",
            "ANTHROPIC_API_KEY",
            "agentctl login ",
            "agentctl setup local ",
            "agentctl doctor",
            "Weather station",
        ],
    );
    home.settings(&json!({"defaultProvider": "anthropic", "defaultModel": "claude-opus-5-5"}));
    let seen = Terminal::start(&home, &binaries::agentctl(), &["prompt", "What is here?"]).finish();
    assert_eq!(seen.code, 1, "{seen:?}");
    assert_says(&seen.stdout, &["No usable model is configured"]);
}

/// A session keeps the model that it was begun with; the demo model has to be asked for again all the same.
#[test]
fn a_session_of_the_demo_model_goes_on_with_it_only_when_asked() {
    let home = Home::new();
    assert_eq!(ctl::run(&home, &["prompt", "--demo", "Hi"]).code, 0);
    let unasked = ctl::run(&home, &["prompt", "-c", "Hi"]);
    assert_eq!((unasked.code, unasked.stdout.as_str()), (1, ""), "{unasked:?}");
    assert_says(&unasked.stderr, &["is the built-in demo model", "--demo goes on", "agentctl doctor"]);
    assert_eq!(ctl::run(&home, &["prompt", "-c", "--demo", "Hi"]).code, 0);
    for args in [&["-p", "-c", "Hi"][..], &["--mode", "json", "-c", "Hi"]] {
        let unasked = agentd(&home, args, None);
        assert_eq!((unasked.code, unasked.stdout.as_str()), (1, ""), "{unasked:?}");
        assert_says(&unasked.stderr, &["is the built-in demo model", "--demo goes on"]);
    }
    assert_eq!(agentd(&home, &["-p", "-c", "--demo", "Hi"], None).code, 0);
    let server = MockServer::start([Reply::stream(sse::answer("Real."))]);
    home.configure(&models(&server.base_url()));
    let unasked = ctl::run(&home, &["prompt", "-c", "Hi"]);
    assert_eq!(unasked.code, 1, "{unasked:?}");
    assert_says(&unasked.stderr, &["--model chooses another: fake/fake"]);
    let named = ctl::run(&home, &["prompt", "-c", "--model", "fake/fake", "Hi"]);
    assert_eq!((named.code, named.stdout.as_str()), (0, "Real.\n"), "{named:?}");
}
