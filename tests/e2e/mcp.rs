//! Tools of MCP servers, on a server of our own that does what servers do and what they should not.

use std::{fs, time::Instant};

use agentd_e2e::{
    Conversation, DEADLINE, Daemon, Home, MockServer, Reply, conversation::LineTransport, ctl, processes, sse,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    client_tools::{hello, offered},
    support::{assert_says, complaint, ended, text},
};

pub(crate) const SERVER: &str = env!("CARGO_BIN_EXE_mcp_test_server");

/// Where a server notes what it gets, below its working directory.
const LOG: &str = "calls.log";

/// A server whose tools are declared to the model.
pub(crate) fn direct(args: &[&str]) -> Value {
    json!({"command": SERVER, "args": args, "exposure": "direct"})
}

/// The same with other fields.
fn with(mut entry: Value, fields: Value) -> Value {
    for (key, value) in fields.as_object().expect("fields") {
        entry[key] = value.clone();
    }
    entry
}

pub(crate) fn configure(home: &Home, servers: Value) {
    home.write_agent("mcp.json", &json!({"mcpServers": servers}).to_string());
}

/// Has the model call a tool; the result that it gets.
pub(crate) fn call<W: LineTransport>(
    client: &mut Conversation<W>,
    model: &MockServer,
    tool: &str,
    arguments: Value,
) -> Value {
    events_of_call(client, model, tool, arguments).1
}

fn events_of_call<W: LineTransport>(
    client: &mut Conversation<W>,
    model: &MockServer,
    tool: &str,
    arguments: Value,
) -> (Vec<Value>, Value) {
    model.push(Reply::stream(sse::calls(&[("c1", tool, arguments)])));
    model.push(Reply::stream(sse::answer("Ok.")));
    let events = client.prompt("Go.");
    let result = ended(&events, "toolResult")[0].clone();
    (events, result)
}

pub(crate) fn servers<W: LineTransport>(client: &mut Conversation<W>) -> Vec<Value> {
    client.done(json!({"type": "get_mcp_servers"}))["servers"].as_array().expect("a list").clone()
}

fn mcp_tools<W: LineTransport>(client: &mut Conversation<W>) -> Vec<Value> {
    let tools = client.done(json!({"type": "get_tools"}))["tools"].clone();
    tools.as_array().expect("a list").iter().filter(|tool| tool["source"] == "mcp").cloned().collect()
}

/// Waits until all servers are in a state.
pub(crate) fn wait_for<W: LineTransport>(client: &mut Conversation<W>, state: &str) -> Vec<Value> {
    let is_so = |servers: &[Value]| servers.iter().all(|server| server["state"] == state);
    let now = servers(client);
    if is_so(&now) {
        return now;
    }
    let change = client.until(state, |line| {
        line["type"] == "mcp_servers_change" && is_so(line["servers"].as_array().expect("a list"))
    });
    change["servers"].as_array().expect("a list").clone()
}

fn process_of(server: &Value) -> i32 {
    i32::try_from(server["pid"].as_i64().expect("a process id")).expect("a process id")
}

/// A daemon with the server `test`, and a client that said hello.
fn start(servers: Value) -> (MockServer, Home, Daemon) {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    configure(&home, servers);
    let mut daemon = Daemon::start_with(&home, &[], |command| {
        command.env("TEST_SECRET", "hush-hush-0123456789");
    });
    hello(&mut daemon, "test");
    (model, home, daemon)
}

#[test]
fn tools_of_servers_are_tools_like_all_others() {
    let (model, home, mut daemon) = start(json!({"test": direct(&[])}));
    let (events, result) = events_of_call(&mut daemon, &model, "mcp__test__echo", json!({"text": "hello"}));
    assert_eq!((text(&result).as_str(), &result["isError"]), ("hello", &json!(false)));
    assert_eq!(result["details"], json!({"server": "test", "tool": "echo"}));
    let declared = offered(&model, 0);
    assert!(declared.starts_with(&["read", "bash", "edit", "write"].map(str::to_owned)), "{declared:?}");
    assert!(
        declared.contains(&"mcp__test__echo".to_owned()) && !declared.contains(&"mcp__test__bad".to_owned())
    );
    let kinds: Vec<&Value> = events.iter().map(|event| &event["type"]).collect();
    assert!(kinds.contains(&&json!("tool_execution_start")) && kinds.contains(&&json!("tool_execution_end")));
    let listed = mcp_tools(&mut daemon);
    let echo = listed.iter().find(|tool| tool["name"] == "mcp__test__echo").expect("the tool");
    assert_eq!(
        (&echo["server"], &echo["active"], &echo["timeoutMs"]),
        (&json!("test"), &json!(true), &json!(60_000))
    );
    assert_eq!(echo["parameters"], json!({"type": "object", "properties": {"text": {"type": "string"}}}));
    let server = &servers(&mut daemon)[0];
    assert_eq!((&server["state"], &server["transport"]), (&json!("connected"), &json!("stdio")));
    assert_eq!((&server["serverName"], &server["serverVersion"]), (&json!("test"), &json!("1.2.3")));
    assert_eq!(server["protocolVersion"], "2025-11-25");
    assert_eq!(server["tools"].as_array().expect("a list").len(), listed.len());
    // They are chosen as others are, and what is chosen is on record.
    daemon.done(json!({"type": "set_active_tools", "tools": ["read", "mcp__test__add_tool"]}));
    model.push(Reply::stream(sse::answer("Ok.")));
    daemon.prompt("Go on.");
    assert_eq!(offered(&model, 2), ["read", "mcp__test__add_tool"]);
    assert_eq!(home.session_files().len(), 1);
}

#[test]
fn every_kind_of_result_reaches_the_model() {
    let (model, _home, mut daemon) = start(json!({"test": direct(&[])}));
    let (events, picture) = events_of_call(&mut daemon, &model, "mcp__test__picture", json!({}));
    assert_eq!(
        (&picture["content"][0]["type"], &picture["content"][0]["mimeType"]),
        (&json!("image"), &json!("image/png"))
    );
    let end = events.iter().find(|event| event["type"] == "tool_execution_end").expect("the end");
    assert_eq!(end["result"]["structuredContent"]["structuredContent"], json!({"width": 1}), "{end}");
    let failed = call(&mut daemon, &model, "mcp__test__fail", json!({}));
    assert_eq!((text(&failed).as_str(), &failed["isError"]), ("it failed", &json!(true)));
    let refused = call(&mut daemon, &model, "mcp__test__refuse", json!({}));
    assert_says(&text(&refused), &["MCP tool test/refuse failed", "refused", "-32602"]);
    let (events, done) = events_of_call(&mut daemon, &model, "mcp__test__progress", json!({}));
    assert_eq!(text(&done), "done");
    let update = events.iter().find(|event| event["type"] == "tool_execution_update").expect("progress");
    assert_eq!(update["partialResult"]["content"][0]["text"], "half way");
    let roots = call(&mut daemon, &model, "mcp__test__roots", json!({}));
    assert_says(&text(&roots), &["file:///", "project"]);
    let big = call(&mut daemon, &model, "mcp__test__big", json!({}));
    let path = big["details"]["fullOutputPath"].as_str().expect("a path");
    assert_eq!(fs::read_to_string(path).expect("the file").lines().count(), 10_000);
    assert_says(&text(&big), &["Total output lines: 10000", path]);
    let wrong = call(&mut daemon, &model, "mcp__test__echo", json!({"text": 3}));
    assert_eq!(wrong["isError"], false, "numbers are read as texts: {wrong}");
    let wrong = call(&mut daemon, &model, "mcp__test__late", json!({"millis": "soon"}));
    assert_says(&text(&wrong), &["millis"]);
}

#[test]
fn a_server_that_lies_or_ends_costs_its_own_calls_only() {
    let secret = json!({"env": {"TEST_SECRET": "${TEST_SECRET}"}});
    let (model, _home, mut daemon) = start(json!({"test": with(direct(&[]), secret), "other": direct(&[])}));
    assert_eq!(text(&call(&mut daemon, &model, "mcp__test__garbage", json!({}))), "right");
    let huge = call(&mut daemon, &model, "mcp__test__huge", json!({}));
    assert_says(&text(&huge), &["MCP tool test/huge failed", "longer than 16777216 bytes"]);
    assert_eq!(text(&call(&mut daemon, &model, "mcp__test__flood", json!({}))), "flooded");
    assert_eq!(
        text(&call(&mut daemon, &model, "mcp__test__echo", json!({"text": "still there"}))),
        "still there"
    );
    let before = servers(&mut daemon);
    let watched = processes::watch(&[process_of(&before[1])]);
    let crashed = call(&mut daemon, &model, "mcp__test__crash", json!({}));
    assert_says(&text(&crashed), &["ended with code 3", "crashing with", "may have run"]);
    assert!(!text(&crashed).contains("hush-hush"), "{crashed}");
    // The next call makes another connection.
    assert_eq!(text(&call(&mut daemon, &model, "mcp__test__echo", json!({"text": "again"}))), "again");
    let closed = call(&mut daemon, &model, "mcp__test__close_output", json!({}));
    assert_says(&text(&closed), &["closed its output", "may have run"]);
    assert_eq!(
        text(&call(&mut daemon, &model, "mcp__test__echo", json!({"text": "once more"}))),
        "once more"
    );
    let after = servers(&mut daemon);
    assert_eq!(after[0], before[0], "the other server noticed nothing");
    assert_ne!(after[1]["pid"], before[1]["pid"]);
    watched.assert_gone_within(DEADLINE);
}

#[test]
fn a_call_that_takes_too_long_ends_and_the_server_is_told() {
    let entry = with(direct(&["--log", LOG]), json!({"timeout": 2}));
    let (model, home, mut daemon) = start(json!({"test": entry}));
    let late = call(&mut daemon, &model, "mcp__test__late", json!({"millis": 3000}));
    assert_says(&text(&late), &["MCP tool test/late failed", "did not answer within 2 seconds"]);
    // Its answer comes while another call waits.
    let hung = call(&mut daemon, &model, "mcp__test__hang", json!({}));
    assert_says(&text(&hung), &["did not answer"]);
    assert_eq!(text(&call(&mut daemon, &model, "mcp__test__echo", json!({"text": "next"}))), "next");
    assert!(notes(&home).iter().filter(|line| line.contains("notifications/cancelled")).count() == 2);
}

#[test]
fn an_abort_ends_a_call_and_the_server_is_told() {
    let (model, home, mut daemon) = start(json!({"test": direct(&["--log", LOG])}));
    model.push(Reply::stream(sse::calls(&[("c1", "mcp__test__hang", json!({}))])));
    daemon.done(json!({"type": "prompt", "message": "Go."}));
    daemon.event("tool_execution_start");
    let begun = Instant::now();
    daemon.send(&json!({"type": "abort"}));
    let events = daemon.settled();
    assert_eq!(text(ended(&events, "toolResult")[0]), "Operation aborted");
    assert!(begun.elapsed() < DEADLINE / 2);
    assert_eq!(text(&call(&mut daemon, &model, "mcp__test__echo", json!({"text": "next"}))), "next");
    let lines = notes(&home);
    let is_told = |line: &String| line.contains("notifications/cancelled") && line.contains("aborted");
    assert!(lines.iter().any(is_told) || !lines.iter().any(|line| line == "hanging"), "{lines:?}");
}

#[test]
fn no_server_outlives_the_daemon() {
    let trapped = |args: &str| {
        let script = format!("trap '' TERM; {SERVER} {args} & exec {SERVER} {args}");
        json!({"command": "bash", "args": ["-c", script], "exposure": "direct"})
    };
    for ends_itself in [true, false] {
        let (_model, _home, mut daemon) = start(json!({"good": direct(&[]), "bad": trapped("--stay")}));
        let there = wait_for(&mut daemon, "connected");
        let mut ids: Vec<i32> = there.iter().map(process_of).collect();
        ids.extend(
            ids.clone().into_iter().flat_map(|id| processes::children(u32::try_from(id).expect("an id"))),
        );
        assert_eq!(ids.len(), 3, "{ids:?}");
        let watched = processes::watch(&ids);
        if ends_itself {
            assert!(daemon.close().status.success());
        } else {
            daemon.signal(Signal::KILL);
            let _ = daemon.wait();
        }
        watched.assert_gone_within(DEADLINE);
    }
}

#[test]
fn what_cannot_be_started_says_why_and_gives_no_secret_away() {
    let secret = json!({"env": {"TEST_SECRET": "${TEST_SECRET}"}});
    let (model, _home, mut daemon) = start(json!({
        "broken": with(direct(&["--broken"]), secret),
        "missing": {"command": "/no/such/program", "exposure": "direct"},
        "old": direct(&["--revision", "1999-01-01"]),
        "unset": with(direct(&[]), json!({"env": {"K": "${NOT_SET_ANYWHERE}"}})),
    }));
    let all = wait_for(&mut daemon, "failed");
    let errors: Vec<&str> = all.iter().map(|server| server["error"].as_str().expect("an error")).collect();
    assert_says(errors[0], &["ended with code 1", "cannot start: [redacted]"]);
    assert_says(errors[1], &["/no/such/program"]);
    assert_says(errors[2], &["1999-01-01", "2025-11-25"]);
    assert_says(errors[3], &["\"K\"", "NOT_SET_ANYWHERE"]);
    // The session works without them.
    model.push(Reply::stream(sse::answer("Ok.")));
    daemon.prompt("Go.");
    assert_eq!(offered(&model, 0), ["read", "bash", "edit", "write"]);
}

#[test]
fn mistakes_in_mcp_json_are_named_and_the_other_servers_count() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    configure(
        &home,
        json!({"good": direct(&[]), "bad name": direct(&[]), "sse": {"type": "sse", "url": "https://x/sse"}}),
    );
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let found = daemon.done(json!({"type": "get_diagnostics"}))["diagnostics"].clone();
    let told: Vec<&Value> =
        found.as_array().expect("a list").iter().filter(|diagnostic| diagnostic["kind"] == "mcp").collect();
    assert_eq!(told.len(), 2, "{found}");
    assert_says(told[0]["message"].as_str().expect("a text"), &["\"bad name\"", "letters"]);
    assert_says(told[1]["message"].as_str().expect("a text"), &["\"sse\"", "/mcp"]);
    assert!(told.iter().all(|it| it["path"].as_str().is_some_and(|path| path.ends_with("mcp.json"))));
    let names: Vec<Value> = servers(&mut daemon).iter().map(|server| server["name"].clone()).collect();
    assert_eq!(names, ["good"]);
}

#[test]
fn exposure_says_how_the_model_gets_to_a_tool() {
    let exposure = json!({"toolExposure": {"hang": "hidden", "big": "deferred"}});
    let (model, _home, mut daemon) = start(json!({
        "test": with(direct(&[]), exposure),
        "secret": with(direct(&[]), json!({"exposure": "hidden"})),
        "off": with(direct(&[]), json!({"enabled": false})),
    }));
    model.push(Reply::stream(sse::answer("Ok.")));
    daemon.prompt("Go.");
    let declared = offered(&model, 0);
    assert!(declared.contains(&"mcp__test__echo".to_owned()));
    assert!(!declared.iter().any(|name| name.contains("hang") || name.contains("big")), "{declared:?}");
    let listed = mcp_tools(&mut daemon);
    let of = |name: &str| listed.iter().find(|tool| tool["name"] == name).map(|tool| tool["active"].clone());
    assert_eq!((of("mcp__test__big"), of("mcp__test__hang")), (Some(json!(false)), None));
    let states: Vec<Value> = servers(&mut daemon).iter().map(|server| server["state"].clone()).collect();
    assert_eq!(states, ["disabled", "disconnected", "connected"], "a hidden server is not started");
}

#[test]
fn servers_are_switched_and_reconnected() {
    let (model, _home, mut daemon) = start(json!({"test": direct(&[])}));
    let before = wait_for(&mut daemon, "connected");
    let first = processes::watch(&[process_of(&before[0])]);
    let after = daemon.done(json!({"type": "reconnect_mcp_server", "name": "test"}))["servers"].clone();
    assert_eq!(after[0]["state"], "connected");
    assert_ne!(after[0]["pid"], before[0]["pid"]);
    first.assert_gone_within(DEADLINE);
    let second = processes::watch(&[process_of(&after[0])]);
    let off =
        daemon.done(json!({"type": "set_mcp_server", "name": "test", "enabled": false}))["servers"].clone();
    assert_eq!((&off[0]["state"], &off[0]["tools"]), (&json!("disabled"), &json!([])));
    second.assert_gone_within(DEADLINE);
    assert_eq!(mcp_tools(&mut daemon), [Value::Null; 0]);
    let refused = daemon.refused(json!({"type": "reconnect_mcp_server", "name": "test"}));
    assert_says(&complaint(&refused), &["switched off", "set_mcp_server"]);
    let refused = daemon.refused(json!({"type": "set_mcp_server", "name": "tset", "enabled": true}));
    assert_says(&complaint(&refused), &["\"tset\"", "there are test"]);
    daemon.done(json!({"type": "set_mcp_server", "name": "test", "enabled": true, "exposure": "hidden"}));
    daemon.done(json!({"type": "set_mcp_server", "name": "test", "exposure": "direct"}));
    wait_for(&mut daemon, "connected");
    assert_eq!(text(&call(&mut daemon, &model, "mcp__test__echo", json!({"text": "back"}))), "back");
}

#[test]
fn deferred_tools_are_found_and_loaded() {
    let described = with(direct(&[]), json!({"exposure": "deferred", "description": "Says things again"}));
    let (model, home, mut daemon) = start(json!({"test": described}));
    let unused = servers(&mut daemon)[0].clone();
    assert_eq!(
        (&unused["state"], &unused["pid"]),
        (&json!("idle"), &Value::Null),
        "nothing is started unasked"
    );
    let found = call(&mut daemon, &model, "tool_search", json!({"query": "echo", "limit": 1}));
    assert_says(&text(&found), &["1 tool was loaded", "- mcp__test__echo: Does echo."]);
    assert_eq!(found["details"], json!({"tools": ["mcp__test__echo"]}));
    assert_eq!(offered(&model, 0), ["read", "bash", "edit", "write", "tool_search"]);
    assert_eq!(offered(&model, 1), ["read", "bash", "edit", "write", "tool_search", "mcp__test__echo"]);
    let system = model.requests()[0].messages()[0].clone();
    assert_says(&text(&system), &["<mcp_servers>", "- mcp__test: Says things again"]);
    assert_eq!(text(&call(&mut daemon, &model, "mcp__test__echo", json!({"text": "found"}))), "found");
    let nothing = call(&mut daemon, &model, "tool_search", json!({"query": "weather"}));
    assert_says(&text(&nothing), &["No tool fits"]);
    // What a branch has loaded stays loaded, also in another daemon.
    assert!(daemon.close().status.success());
    let file = home.session_files()[0].clone();
    let mut again = Daemon::start(&home, &["--session", file.to_str().expect("a path")]);
    hello(&mut again, "test");
    // What it had is known: it is started by the call.
    assert_eq!(servers(&mut again)[0]["state"], "idle");
    assert_eq!(text(&call(&mut again, &model, "mcp__test__echo", json!({"text": "still"}))), "still");
    let last = model.requests().len() - 1;
    assert!(offered(&model, last).contains(&"mcp__test__echo".to_owned()));
    // A choice that leaves it out counts.
    again.done(json!({"type": "set_active_tools", "tools": ["read", "tool_search"]}));
    model.push(Reply::stream(sse::answer("Ok.")));
    again.prompt("Go.");
    assert_eq!(offered(&model, last + 1), ["read", "tool_search"]);
    let found = call(&mut again, &model, "tool_search", json!({"query": "mcp__test__echo"}));
    assert_says(&text(&found), &["- mcp__test__echo"]);
    assert!(offered(&model, last + 3).contains(&"mcp__test__echo".to_owned()));
}

#[test]
fn resources_are_listed_and_read() {
    let (model, _home, mut daemon) = start(json!({"test": direct(&["--resources"]), "other": direct(&[])}));
    let listed = call(&mut daemon, &model, "list_mcp_resources", json!({}));
    let list: Value = serde_json::from_str(&text(&listed)).expect("JSON");
    let notes = json!({"uri": "test:notes", "name": "notes", "mimeType": "text/plain", "server": "test"});
    assert_eq!(list, json!({"resources": [notes]}));
    let templates = call(&mut daemon, &model, "list_mcp_resource_templates", json!({"server": "test"}));
    assert_says(&text(&templates), &["\"resourceTemplates\":[]"]);
    let read = call(&mut daemon, &model, "read_mcp_resource", json!({"server": "test", "uri": "test:notes"}));
    assert_eq!(text(&read), "what was noted");
    let missing = call(&mut daemon, &model, "read_mcp_resource", json!({"server": "test", "uri": "test:x"}));
    assert_says(&text(&missing), &["\"test\" failed", "no such resource"]);
    let other =
        call(&mut daemon, &model, "read_mcp_resource", json!({"server": "other", "uri": "test:notes"}));
    assert_says(&text(&other), &["\"other\"", "there are test"]);
}

#[test]
fn agentctl_lists_and_tests_servers() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    let nothing = ctl::run(&home, &["mcp", "list"]);
    assert_eq!(nothing.code, 0, "{nothing:?}");
    assert_says(&nothing.stdout, &["No MCP servers"]);
    configure(&home, json!({"good": direct(&[]), "broken": direct(&["--broken"]), "bad name": direct(&[])}));
    let listed = ctl::run(&home, &["mcp", "list"]);
    assert_eq!(listed.code, 1, "{listed:?}");
    assert_says(
        &listed.stdout,
        &["good    connected", "broken  failed", "ended with code 1", "\"bad name\""],
    );
    let listed = ctl::run(&home, &["mcp", "list", "--json"]);
    let found: Value = serde_json::from_str(&listed.stdout).expect("JSON");
    assert_eq!(
        (&found["servers"][1]["name"], &found["servers"][1]["state"]),
        (&json!("good"), &json!("connected"))
    );
    let tested = ctl::run(&home, &["mcp", "test", "good"]);
    assert_eq!(tested.code, 0, "{tested:?}");
    assert_says(
        &tested.stdout,
        &[
            "good: connected",
            "test 1.2.3",
            "mcp__good__echo  Say again  (reads only)",
            "mcp__good__remove  (may destroy)",
        ],
    );
    assert_eq!(ctl::run(&home, &["mcp", "test", "broken"]).code, 1);
    let missing = ctl::run(&home, &["mcp", "test", "x"]);
    assert_says(&missing.stderr, &["no server \"x\""]);
}

#[test]
fn a_changed_list_of_tools_counts() {
    let (model, _home, mut daemon) = start(json!({"test": direct(&[])}));
    assert_eq!(text(&call(&mut daemon, &model, "mcp__test__add_tool", json!({}))), "added");
    let has_later =
        |client: &mut Daemon| mcp_tools(client).iter().any(|tool| tool["name"] == "mcp__test__later");
    if !has_later(&mut daemon) {
        daemon.until("the new tool", |line| {
            line["type"] == "mcp_servers_change" && line["servers"].to_string().contains("mcp__test__later")
        });
    }
    assert!(has_later(&mut daemon));
    assert_eq!(text(&call(&mut daemon, &model, "mcp__test__later", json!({}))), "later");
}

#[test]
fn hints_of_a_server_are_shown_and_count_where_the_user_trusts_them() {
    let hints = json!({"title": "Say again", "readOnlyHint": true, "openWorldHint": false});
    for (trusts, echoed) in [(false, "Permission denied: the preset read-only refuses"), (true, "hello")] {
        let model = MockServer::start([]);
        let home = Home::with_model(&model);
        configure(&home, json!({"test": with(direct(&[]), json!({"trustHints": trusts}))}));
        home.settings(&json!({"permissions": {"preset": "read-only"}}));
        let mut daemon = Daemon::start(&home, &["--no-session"]);
        hello(&mut daemon, "test");
        let echo = call(&mut daemon, &model, "mcp__test__echo", json!({"text": "hello"}));
        assert_says(&text(&echo), &[echoed]);
        let removed = call(&mut daemon, &model, "mcp__test__remove", json!({}));
        assert_says(
            &text(&removed),
            &["Permission denied: the preset read-only refuses the tool mcp__test__remove"],
        );
        let listed = mcp_tools(&mut daemon);
        let of = |name: &str| listed.iter().find(|tool| tool["name"] == name).expect("the tool").clone();
        let echo = of("mcp__test__echo");
        assert_eq!((&echo["label"], &echo["annotations"]), (&json!("Say again"), &hints));
        assert_eq!(of("mcp__test__fail")["annotations"], Value::Null);
    }
    // A project cannot have them believed.
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    let entry = with(direct(&[]), json!({"trustHints": true}));
    home.write(".agentd/mcp.json", &json!({"mcpServers": {"test": entry}}).to_string());
    home.settings(&json!({"permissions": {"preset": "read-only"}}));
    let mut daemon = Daemon::start(&home, &["--no-session", "--approve"]);
    let found = daemon.done(json!({"type": "get_diagnostics"}))["diagnostics"].to_string();
    assert_says(&found, &["\\\"trustHints\\\" counts in the user's mcp.json only"]);
    let echo = call(&mut daemon, &model, "mcp__test__echo", json!({"text": "hello"}));
    assert_says(&text(&echo), &["Permission denied"]);
}

#[test]
fn permissions_stand_before_the_tools_of_servers() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    configure(&home, json!({"test": direct(&[])}));
    home.settings(&json!({"permissions": {"rules": [{"tool": "mcp__test__e*", "action": "deny"}]}}));
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let denied = call(&mut daemon, &model, "mcp__test__echo", json!({"text": "hello"}));
    assert_says(&text(&denied), &["Permission denied"]);
}

#[test]
fn a_project_is_trusted_before_its_servers_are_started() {
    let model = MockServer::start([]);
    let home = Home::with_model(&model);
    let entry = direct(&["--log", LOG]);
    home.write(".agentd/mcp.json", &json!({"mcpServers": {"theirs": entry}}).to_string());
    let mut daemon = Daemon::start(&home, &["--no-session", "--no-approve"]);
    assert!(servers(&mut daemon).is_empty());
    assert!(daemon.close().status.success());
    assert!(!home.project().join(LOG).exists());
    let mut daemon = Daemon::start(&home, &["--no-session", "--approve"]);
    hello(&mut daemon, "test");
    assert_eq!(wait_for(&mut daemon, "connected")[0]["name"], "theirs");
}

/// What the server noted.
fn notes(home: &Home) -> Vec<String> {
    let log = fs::read_to_string(home.project().join(LOG)).expect("the log");
    log.lines().map(str::to_owned).collect()
}
