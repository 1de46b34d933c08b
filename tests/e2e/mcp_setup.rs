//! How MCP servers get into a session, and stay out of it: `agentctl mcp add` and its like, values that commands print, `--no-mcp`, and what
//! `agentctl doctor` says of them.

use std::fs;

use agentd_e2e::{
    Daemon, Home, MockServer, Reply,
    ctl::{self, Finished},
    sse,
};
use serde_json::{Value, json};

use crate::{
    client_tools::hello,
    mcp::{SERVER, call, configure, direct, servers, wait_for},
    support::{assert_says, text},
};

fn mcp(home: &Home, args: &[&str]) -> Finished {
    ctl::run(home, &[&["mcp"], args].concat())
}

fn read(home: &Home, path: &str) -> String {
    fs::read_to_string(home.root().join(path)).expect("the file")
}

#[test]
fn servers_are_added_switched_and_removed() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    let before = "{\n    \"mcpServers\": {\n        \"b\": {\"command\": \"x\", \"enabled\": false, \"more\": 1.50}\n    }\n}\n";
    home.write_agent("mcp.json", before);
    let added = mcp(
        &home,
        &["add", "--exposure", "direct", "--env", "API_KEY=hush-hush", "test", "--", SERVER, "--resources"],
    );
    assert_eq!(added.code, 0, "{added:?}");
    assert_says(&added.stdout, &["Added the MCP server \"test\"", "mcp.json", "agentctl mcp test test"]);
    assert_says(&added.stderr, &["\"env.API_KEY\"", "${NAME}"]);
    assert!(!format!("{added:?}").contains("hush"));
    let after = read(&home, "agent/mcp.json");
    assert!(after.starts_with(before.trim_end_matches("\n    }\n}\n")), "{after}");
    let entry: Value = serde_json::from_str(&after).expect("JSON");
    let expected = json!({"command": SERVER, "args": ["--resources"], "env": {"API_KEY": "hush-hush"}, "exposure": "direct"});
    assert_eq!(entry["mcpServers"]["test"], expected);
    let tested = mcp(&home, &["test", "test"]);
    assert_eq!(tested.code, 0, "{tested:?}");

    let taken = mcp(&home, &["add", "test", "--", "x"]);
    assert_eq!(taken.code, 1, "{taken:?}");
    assert_says(&taken.stderr, &["has a server \"test\" already", "--force"]);
    let both = mcp(&home, &["add", "c", "--url", "https://c.example", "--", "x"]);
    assert_eq!(both.code, 2, "{both:?}");
    assert_says(&both.stderr, &["leave one out"]);
    assert_eq!(read(&home, "agent/mcp.json"), after);

    assert_eq!(mcp(&home, &["disable", "test"]).code, 0);
    let listed = mcp(&home, &["list"]);
    assert_says(&listed.stdout, &["test  disabled"]);
    let again = mcp(&home, &["disable", "test"]);
    assert_says(&again.stdout, &["already disabled"]);
    assert_eq!(mcp(&home, &["enable", "test"]).code, 0);
    let removed = mcp(&home, &["remove", "test"]);
    assert_says(&removed.stdout, &["Removed the MCP server \"test\""]);
    assert_eq!(read(&home, "agent/mcp.json"), before);
    let missing = mcp(&home, &["remove", "test"]);
    assert_eq!(missing.code, 1, "{missing:?}");
    assert_says(&missing.stderr, &["no server \"test\"; there are b"]);
}

#[test]
fn a_project_has_servers_of_its_own() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    let added = mcp(&home, &["add", "--local", "ours", "--", SERVER]);
    assert_eq!(added.code, 0, "{added:?}");
    assert_says(&added.stdout, &["project/.agentd/mcp.json", "agentctl mcp test ours --approve"]);
    assert_says(&added.stderr, &["counts once the project is trusted"]);
    assert_says(&mcp(&home, &["list"]).stdout, &["No MCP servers"]);
    let tested = mcp(&home, &["test", "ours", "--approve"]);
    assert_eq!(tested.code, 0, "{tested:?}");
    let elsewhere = mcp(&home, &["remove", "ours"]);
    assert_says(&elsewhere.stderr, &["add --local"]);
    assert_eq!(mcp(&home, &["remove", "-l", "ours"]).code, 0);
}

#[test]
fn values_may_be_what_a_command_prints() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    let server = |args: &[&str], value: &str| {
        let mut entry = direct(args);
        entry["env"] = json!({"TEST_SECRET": value});
        entry
    };
    configure(
        &home,
        json!({
            "broken": server(&["--broken"], "!printf 'hush-hush-%s' 0123456789"),
            "failing": server(&[], "!echo hush-hush; exit 3"),
            "good": server(&[], "!printf %s \"$GIVEN\""),
        }),
    );
    let theirs = server(&[], "!touch ran-for-a-project; echo x");
    home.write(".agentd/mcp.json", &json!({"mcpServers": {"theirs": theirs}}).to_string());
    let mut daemon = Daemon::start_with(&home, &["--no-approve"], |command| {
        command.env("GIVEN", "from-the-environment");
    });
    hello(&mut daemon, "test");
    let arguments = json!({"name": "TEST_SECRET"});
    let seen = call(&mut daemon, &model, "mcp__good__variable", arguments);
    assert_eq!(text(&seen), "from-the-environment");
    let all = servers(&mut daemon);
    let error = |at: usize| all[at]["error"].as_str().expect("an error");
    assert_says(error(0), &["cannot start: [redacted]"]);
    assert_says(error(1), &["\"TEST_SECRET\"", "its command failed with exit status: 3"]);
    assert_eq!(all.len(), 3, "a project that is not trusted has no servers: {all:?}");
    assert!(!serde_json::to_string(&all).expect("JSON").contains("hush-hush"));
}

#[test]
fn without_mcp_no_server_is_started() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    configure(&home, json!({"test": direct(&["--log", "calls.log"]), "bad name": {}}));
    let mut daemon = Daemon::start(&home, &["--no-session", "--no-mcp"]);
    assert!(servers(&mut daemon).is_empty());
    let found = daemon.done(json!({"type": "get_diagnostics"}))["diagnostics"].clone();
    assert_eq!(found, json!([]));
    model.push(Reply::stream(sse::answer("Ok.")));
    daemon.prompt("Go.");
    drop(daemon);
    model.push(Reply::stream(sse::answer("Ok.")));
    let prompted = ctl::run(&home, &["prompt", "--private", "--no-mcp", "Go."]);
    assert_eq!(prompted.code, 0, "{prompted:?}");
    assert!(!home.project().join("calls.log").exists(), "no server was started");
    model.push(Reply::stream(sse::answer("Ok.")));
    let prompted = ctl::run(&home, &["prompt", "--private", "Go."]);
    assert_eq!(prompted.code, 0, "{prompted:?}");
    assert!(home.project().join("calls.log").exists(), "without the flag it is");
}

#[test]
fn a_session_with_servers_is_not_opened_again_without() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    configure(&home, json!({"test": direct(&[])}));
    let mut daemon = Daemon::start(&home, &[]);
    hello(&mut daemon, "test");
    wait_for(&mut daemon, "connected");
    let id = daemon.done(json!({"type": "get_state"}))["sessionId"].clone();
    let cwd = home.project().display().to_string();
    let refused =
        daemon.refused(json!({"type": "open_session", "cwd": cwd, "sessionId": id, "args": ["--no-mcp"]}));
    assert_says(refused["error"].as_str().expect("an error"), &["--no-mcp"]);
}

#[test]
fn doctor_names_what_servers_lack_and_starts_none() {
    let home = Home::new();
    let none = ctl::run(&home, &["doctor"]);
    assert!(!none.stdout.contains("MCP"), "{none:?}");
    let mut unset = direct(&[]);
    unset["env"] = json!({"K": "${NOT_SET_ANYWHERE}"});
    configure(
        &home,
        json!({
            "bad name": {}, "gone": {"command": "no-such-program-anywhere"}, "unset": unset,
            "off": {"command": "no-such-program", "enabled": false}, "web": {"url": "https://127.0.0.1:1/mcp"},
            "good": {"command": SERVER, "args": ["--log", "calls.log"]},
        }),
    );
    let done = ctl::run(&home, &["doctor"]);
    assert_says(
        &done.stdout,
        &[
            "warn MCP servers: gone",
            "the program no-such-program-anywhere is not there",
            "\"env.K\": the variable NOT_SET_ANYWHERE is not set",
            "\"bad name\"",
            "ok   MCP servers: off: switched off",
            "ok   MCP servers: web: HTTP, deferred",
            "ok   MCP servers: good: a program, deferred; `agentctl mcp test good` connects it",
        ],
    );
    assert!(!home.project().join("calls.log").exists(), "nothing is started");
}
