//! Tools that files name: programs in any language, below the permissions.

use std::{fs, process::Command};

use agentd_e2e::{DEADLINE, Daemon, Home, MockServer, processes};
use serde_json::{Value, json};

use crate::{
    shell_hooks::{calling, write_program},
    support::{assert_says, ended, text},
};

fn results(events: &[Value]) -> Vec<(String, bool)> {
    let results = ended(events, "toolResult").into_iter();
    results.map(|result| (text(result), result["isError"] == true)).collect()
}

/// The tools of files in a session.
fn listed(daemon: &mut Daemon) -> Vec<Value> {
    let list = daemon.done(json!({"type": "get_tools"}));
    list["tools"].as_array().unwrap().iter().filter(|tool| tool["source"] == "file").cloned().collect()
}

#[test]
fn a_tool_in_shell_and_one_in_python() {
    let server = calling(&[
        ("greet", json!({"name": "Ada"})),
        ("add", json!({"numbers": [1, 2.5]})),
        ("add", json!({"numbers": ["x"]})),
        ("add", json!({"numbers": []})),
        ("greet", json!({"name": "nobody"})),
    ]);
    let home = Home::with_model(&server);
    home.write_agent(
        "tools/greet.json",
        &json!({
            "name": "greet", "description": "Greets somebody.",
            "parameters": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
            "command": ["sh", "-c", "name=$(jq -r .name); [ $name = nobody ] && { echo 'Who?' >&2; exit 3; }; echo Hello $name from $(basename $PWD)"],
        })
        .to_string(),
    );
    home.write(
        ".agentd/tools/add.json",
        &json!({
            "name": "add", "label": "Add", "description": "Adds numbers.", "timeout": 30,
            "parameters": {"type": "object", "properties": {"numbers": {"type": "array", "items": {"type": "number"}}}, "required": ["numbers"]},
            "command": ["./add.py"],
        })
        .to_string(),
    );
    write_program(
        &home,
        ".agentd/tools/add.py",
        "#!/usr/bin/env python3\nimport json, sys\nnumbers = json.load(sys.stdin)['numbers']\n\
         if not numbers:\n    print(json.dumps({'content': 'There is nothing to add.', 'isError': True}))\nelse:\n    \
         print(json.dumps({'content': [{'type': 'text', 'text': str(sum(numbers))}], 'details': {'count': len(numbers)}}))\n",
    );
    let mut daemon = Daemon::start(&home, &["--approve"]);
    let tools = listed(&mut daemon);
    let names: Vec<(&str, &str, bool)> = tools
        .iter()
        .map(|it| (it["name"].as_str().unwrap(), it["label"].as_str().unwrap(), it["active"] == true))
        .collect();
    assert_eq!(names, [("greet", "greet", true), ("add", "Add", true)]);
    assert_eq!(tools[1]["timeoutMs"], 30_000);
    let events = daemon.prompt("Go.");
    let found = results(&events);
    assert_eq!(found[0], ("Hello Ada from project\n".to_owned(), false));
    assert_eq!(found[1], ("3.5".to_owned(), false));
    assert_eq!(ended(&events, "toolResult")[1]["details"], json!({"count": 2}));
    assert!(found[2].1 && found[2].0.starts_with("Validation failed for tool \"add\""), "{found:?}");
    assert_eq!(found[3], ("There is nothing to add.".to_owned(), true));
    assert_eq!(found[4], ("Who?\n\nThe program of the tool exited with code 3.".to_owned(), true));
    // Not before the project is trusted.
    let mut daemon = Daemon::start(&home, &[]);
    assert_eq!(listed(&mut daemon).len(), 1);
}

#[test]
fn the_permissions_stand_before_these_tools() {
    let tool = |name: &str| {
        json!({"name": name, "description": "Makes a file.", "command": ["touch", name], "approval": "read"})
            .to_string()
    };
    let server = calling(&[("mine", json!({})), ("theirs", json!({}))]);
    let home = Home::with_model(&server);
    home.settings(&json!({"permissions": {"preset": "ask"}}));
    home.write_agent("tools/mine.json", &tool("mine"));
    home.write(".agentd/tools/theirs.json", &tool("theirs"));
    let mut daemon = Daemon::start(&home, &["--approve"]);
    let found = results(&daemon.prompt("Go."));
    // The user's own word for it counts; a project's does not.
    assert_eq!(found[0], ("(no output)".to_owned(), false));
    assert!(found[1].1 && found[1].0.starts_with("Permission denied: "), "{found:?}");
    assert!(home.project().join("mine").exists() && !home.project().join("theirs").exists());
}

#[test]
fn a_name_that_is_taken_is_an_error_with_both() {
    let server = MockServer::start([]);
    let home = Home::with_model(&server);
    let tool = |name: &str| json!({"name": name, "description": "x", "command": ["true"]}).to_string();
    home.write_agent("tools/a.json", &tool("bash"));
    home.write_agent("tools/b.json", &tool("deploy"));
    home.write_agent("tools/c.json", "{\"name\": \"c\"}");
    home.write(".agentd/tools/d.json", &tool("deploy"));
    let mut daemon = Daemon::start(&home, &["--approve"]);
    let tools = listed(&mut daemon);
    assert_eq!(tools.len(), 1, "{tools:?}");
    let found = daemon.done(json!({"type": "get_diagnostics"}));
    let found: Vec<String> = found["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["kind"] == "tools")
        .map(|it| {
            format!(
                "{} {} {}",
                it["level"].as_str().unwrap(),
                it["path"].as_str().unwrap(),
                it["message"].as_str().unwrap()
            )
        })
        .collect();
    assert_eq!(found.len(), 3, "{found:#?}");
    assert_says(
        &found[0],
        &["error ", "tools/a.json", "the tool \"bash\" is not used: a built-in tool is called \"bash\", too"],
    );
    assert_says(&found[1], &["tools/c.json", "missing field `description`"]);
    assert_says(
        &found[2],
        &["tools/d.json", "the tool \"deploy\" is not used: ", "tools/b.json names one of that name, too"],
    );
}

#[test]
fn an_abort_kills_what_a_tool_started() {
    let server = calling(&[("wait", json!({}))]);
    let home = Home::with_model(&server);
    let script = "setsid sleep 1000 & echo $$ $! > pipe; wait";
    let tool = json!({"name": "wait", "description": "Waits.", "command": ["sh", "-c", script]});
    home.write_agent("tools/wait.json", &tool.to_string());
    let pipe = home.project().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&json!({"id": "1", "type": "prompt", "message": "Go."}));
    // Until the tool writes to it.
    let ids = fs::read_to_string(&pipe).unwrap();
    let ids: Vec<i32> = ids.split_whitespace().map(|id| id.parse().expect("a process id")).collect();
    let watched = processes::watch(&ids);
    daemon.done(json!({"type": "abort"}));
    watched.assert_gone_within(DEADLINE);
}

#[test]
fn long_output_is_bounded_as_that_of_commands() {
    let server = calling(&[("count", json!({}))]);
    let home = Home::with_model(&server);
    let tool = json!({"name": "count", "description": "Counts.", "command": ["seq", "1", "100000"]});
    home.write_agent("tools/count.json", &tool.to_string());
    let mut daemon = Daemon::start(&home, &[]);
    let events = daemon.prompt("Go.");
    let result = ended(&events, "toolResult")[0];
    let shown = text(result);
    assert!(shown.len() < 60_000, "{}", shown.len());
    assert_says(&shown, &["99999\n100000", "[Showing lines ", "Full output: "]);
    let path = result["details"]["fullOutputPath"].as_str().unwrap();
    assert!(fs::read_to_string(path).unwrap().starts_with("1\n2\n"));
}

#[test]
fn what_a_tool_changes_can_be_undone() {
    let server = calling(&[("make", json!({}))]);
    let home = Home::with_model(&server);
    let tool = json!({"name": "make", "description": "Makes a file.", "command": ["touch", "made"]});
    home.write_agent("tools/make.json", &tool.to_string());
    let mut daemon = Daemon::start(&home, &["--undo", "on"]);
    daemon.done(json!({"type": "hello", "protocol": 1}));
    daemon.prompt("Go.");
    let made = home.project().join("made");
    assert!(made.exists());
    let list = daemon.done(json!({"type": "list_checkpoints"}));
    assert_eq!(list["checkpoints"][0]["tool"], "make", "{list}");
    daemon.done(json!({"type": "restore_checkpoint", "step": "undo"}));
    assert!(!made.exists());
}
