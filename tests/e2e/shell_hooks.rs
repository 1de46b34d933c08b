//! Shell hooks about tool calls: before them beside the permissions, and after them.

use std::{fs, os::unix::fs::PermissionsExt as _, process::Command};

use agentd_e2e::{DEADLINE, Daemon, Home, MockServer, Reply, Service, processes, sse};
use serde_json::{Value, json};

use crate::{
    asking::{answer, asked, calls, open, option, result_of},
    sandbox::{WORKSPACE, is_enforced},
    support::{assert_says, ended, text},
};

/// A `hooks` object with one hook.
pub(crate) fn hooks(event: &str, matcher: &str, command: &str) -> Value {
    json!({event: [{"matcher": matcher, "hooks": [{"type": "command", "command": command}]}]})
}

/// A model that makes these calls, each in an answer of its own, and then says that it is done.
pub(crate) fn calling(called: &[(&str, Value)]) -> MockServer {
    let each = called.iter().enumerate().map(|(index, (tool, arguments))| {
        Reply::stream(sse::calls(&[(&format!("call_{index}"), *tool, arguments.clone())]))
    });
    MockServer::start(each.chain([Reply::stream(sse::answer("Done."))]).collect::<Vec<_>>())
}

fn home(server: &MockServer, hooks: Value) -> Home {
    let home = Home::with_model(server);
    home.settings(&json!({ "hooks": hooks }));
    home
}

/// Writes an executable file of the project.
pub(crate) fn write_program(home: &Home, name: &str, text: &str) {
    home.write(name, text);
    fs::set_permissions(home.project().join(name), fs::Permissions::from_mode(0o755)).unwrap();
}

/// The texts of all results.
fn results(events: &[Value]) -> Vec<String> {
    ended(events, "toolResult").into_iter().map(text).collect()
}

/// The command of a hook that answers so.
fn says(answer: &Value) -> String {
    format!("cat > /dev/null; echo '{answer}'")
}

#[test]
fn a_hook_before_a_call_can_block_it() {
    let server = calling(&[("bash", json!({"command": "touch made"})), ("read", json!({"path": "a.txt"}))]);
    let home = home(&server, hooks("PreToolUse", "Bash", "cat > seen; echo 'no new files' >&2; exit 2"));
    home.write("a.txt", "content\n");
    let mut daemon = Daemon::start(&home, &[]);
    let events = daemon.prompt("Go.");
    assert_eq!(results(&events), ["Blocked by a hook: no new files", "content\n"]);
    assert!(!home.project().join("made").exists());
    let seen: Value = serde_json::from_str(&home.read("seen")).unwrap();
    assert_eq!(
        (&seen["hook_event_name"], &seen["tool_name"], &seen["tool_input"], &seen["cwd"]),
        (
            &json!("PreToolUse"),
            &json!("bash"),
            &json!({"command": "touch made"}),
            &json!(home.project().canonicalize().unwrap())
        )
    );
    let id = daemon.done(json!({"type": "get_state"}))["sessionId"].clone();
    assert_eq!(seen["session_id"], id);
    assert!(seen["transcript_path"].as_str().unwrap().ends_with(".jsonl"));
    let told = server.requests()[1].messages().last().map(text);
    assert_eq!(told.as_deref(), Some("Blocked by a hook: no new files"));
}

#[test]
fn changed_arguments_are_checked_again_and_the_permissions_see_them() {
    let server = calling(&[("bash", json!({"command": "echo first"})), ("bash", json!({"command": "ls"}))]);
    let home = Home::with_model(&server);
    // The first call gets another command, the second one that a rule refuses.
    let script = r#"if grep -q first; then echo '{"hookSpecificOutput":{"updatedInput":{"command":"echo second"}}}'
        else echo '{"hookSpecificOutput":{"permissionDecision":"allow","updatedInput":{"command":"rm -r /"}}}'; fi"#;
    home.settings(&json!({
        "hooks": hooks("PreToolUse", "bash", script),
        "permissions": {"rules": [{"tool": "bash", "command": "rm *", "action": "deny"}]},
    }));
    let mut daemon = Daemon::start(&home, &[]);
    let found = results(&daemon.prompt("Go."));
    assert_eq!(found[0], "second\n");
    assert_says(&found[1], &["Permission denied: ", "rm"]);

    let server = calling(&[("bash", json!({"command": "touch made"}))]);
    let wrong = json!({"hookSpecificOutput": {"updatedInput": {"comand": "ls"}}});
    let home = self::home(&server, hooks("PreToolUse", "", &says(&wrong)));
    let mut daemon = Daemon::start(&home, &[]);
    let found = results(&daemon.prompt("Go."));
    assert_says(
        &found[0],
        &["A hook changed the arguments into some that the tool does not take", "command"],
    );
    assert!(!home.project().join("made").exists());
}

#[test]
fn a_hook_cannot_allow_what_is_asked_about_and_can_make_it_asked() {
    let allow = json!({"hookSpecificOutput": {"permissionDecision": "allow"}});
    let server = calling(&[("bash", json!({"command": "touch made"}))]);
    let home = Home::with_model(&server);
    home.settings(&json!({
        "hooks": hooks("PreToolUse", "bash", &says(&allow)), "permissions": {"preset": "ask"},
    }));
    // Nobody is there to be asked.
    let found = results(&Daemon::start(&home, &[]).prompt("Go."));
    assert_says(&found[0], &["Permission denied: it needs the user's permission"]);

    let ask = json!({"hookSpecificOutput": {"permissionDecision": "ask", "permissionDecisionReason": "it is late"}});
    let server = MockServer::start([
        calls(&["touch one"]),
        calls(&["touch two"]),
        Reply::stream(sse::answer("Done.")),
        calls(&["touch three"]),
        Reply::stream(sse::answer("Done.")),
    ]);
    let home = self::home(&server, hooks("PreToolUse", "bash", &says(&ask)));
    let service = Service::start(&home, &[]);
    let mut client = asked(&service, "one");
    let id = open(&mut client, &home, &[]);
    client.send(&json!({"type": "prompt", "sessionId": id, "message": "Go."}));
    let question = client.event("extension_ui_request");
    assert_says(question["title"].as_str().unwrap(), &["$ touch one", "Asked, since it is late."]);
    option(&question, "Yes");
    answer(&mut client, &question, "Yes");
    // An answer is for one call: the next is asked about again.
    let question = client.event("extension_ui_request");
    answer(&mut client, &question, "No");
    assert_says(&result_of(&mut client), &[""]);
    client.event("agent_settled");
    assert!(home.project().join("one").exists() && !home.project().join("two").exists());

    // Without anybody to ask it is refused.
    drop(client);
    let found = results(&Daemon::start(&home, &[]).prompt("Go."));
    assert_says(&found[0], &["nobody is there to be asked (it is late)"]);
}

#[test]
fn a_hook_that_hangs_is_killed_and_blocks() {
    let server = calling(&[("bash", json!({"command": "touch made"}))]);
    let home = Home::with_model(&server);
    home.settings(&json!({
        "hooks": hooks("PreToolUse", "*", "sleep 1000 & echo $! > child; wait"),
        "shellHooks": {"timeoutSeconds": 0.5},
    }));
    let mut daemon = Daemon::start(&home, &[]);
    let found = results(&daemon.prompt("Go."));
    assert_says(
        &found[0],
        &["Blocked by a hook: The hook \"sleep 1000 &", "did not end within 0.5 seconds and was killed."],
    );
    assert!(!home.project().join("made").exists());
    let child = home.read("child");
    let state = fs::read_to_string(format!("/proc/{}/stat", child.trim())).unwrap_or_default();
    assert!(state.is_empty() || state.contains(") Z "), "its child lives: {state}");
}

#[test]
fn an_abort_kills_what_a_hook_started() {
    let server = calling(&[("bash", json!({"command": "touch made"}))]);
    let home = home(&server, hooks("PreToolUse", "*", "setsid sleep 1000 & echo $$ $! > pipe; wait"));
    let pipe = home.project().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut daemon = Daemon::start(&home, &[]);
    daemon.send(&json!({"id": "1", "type": "prompt", "message": "Go."}));
    // Until the hook writes to it.
    let ids = fs::read_to_string(&pipe).unwrap();
    let ids: Vec<i32> = ids.split_whitespace().map(|id| id.parse().expect("a process id")).collect();
    let watched = processes::watch(&ids);
    assert!(watched.all_alive());
    daemon.done(json!({"type": "abort"}));
    watched.assert_gone_within(DEADLINE);
    assert!(!home.project().join("made").exists());
}

#[test]
fn hooks_of_one_event_run_side_by_side_and_their_answers_keep_their_order() {
    let server = calling(&[("bash", json!({"command": "touch made"}))]);
    let home = Home::with_model(&server);
    // Each waits until the other has begun.
    let meet = |own: &str, other: &str, reason: &str| json!({"type": "command", "command": format!("echo x > {own} & cat {other} > /dev/null; echo {reason} >&2; exit 2")});
    home.settings(&json!({"hooks": {"PreToolUse": [
        {"matcher": "Bash", "hooks": [meet("one", "two", "first"), meet("two", "one", "second"), meet("one", "two", "first")]},
    ]}}));
    for pipe in ["one", "two"] {
        assert!(Command::new("mkfifo").arg(home.project().join(pipe)).status().unwrap().success());
    }
    let found = results(&Daemon::start(&home, &[]).prompt("Go."));
    assert_eq!(found, ["Blocked by a hook: first\nsecond"], "the third is the first once more");
}

#[test]
fn a_hook_after_a_call_speaks_to_the_model() {
    let write = json!({"path": "a.txt", "content": "x"});
    let server = calling(&[("write", write), ("bash", json!({"command": "exit 3"}))]);
    let home = Home::with_model(&server);
    let script = r#"cat > seen.$$; echo '{"decision":"block","reason":"The file has no licence.","hookSpecificOutput":{"additionalContext":"Licences are in LICENSE."}}'"#;
    home.write(
        ".claude/settings.json",
        &json!({"hooks": hooks("PostToolUse", "Write|Bash", script)}).to_string(),
    );
    let mut daemon = Daemon::start(&home, &["--approve"]);
    let events = daemon.prompt("Go.");
    let found = results(&events);
    assert_says(
        &found[0],
        &["\nLicences are in LICENSE.", "A hook has found something to correct:\nThe file has no licence."],
    );
    assert!(found[0].starts_with("Successfully wrote"), "{}", found[0]);
    assert_eq!(home.read("a.txt"), "x");
    let seen: Vec<Value> = fs::read_dir(home.project())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("seen."))
        .map(|name| serde_json::from_str(&home.read(&name)).unwrap())
        .collect();
    // A call that failed has no such hooks.
    let [seen] = seen.as_slice() else { panic!("{seen:?}") };
    let path = home.project().canonicalize().unwrap().join("a.txt");
    assert_eq!((&seen["tool_name"], &seen["tool_input"]["file_path"]), (&json!("Write"), &json!(path)));
    assert_eq!(seen["tool_response"]["filePath"], json!(path));
    assert_eq!(seen["tool_response"]["success"], true);
}

#[test]
fn a_hook_can_end_the_work() {
    let server =
        calling(&[("bash", json!({"command": "echo hi"})), ("bash", json!({"command": "touch made"}))]);
    let stop = json!({"continue": false, "stopReason": "It is enough."});
    let home = home(&server, hooks("PostToolUse", "bash", &says(&stop)));
    let mut daemon = Daemon::start(&home, &[]);
    daemon
        .done(json!({"type": "hello", "protocol": 1, "client": {"name": "t"}, "capabilities": {"ui": true}}));
    let events = daemon.prompt("Go.");
    assert_eq!(server.requests().len(), 1);
    assert_eq!(results(&events), ["hi\n"]);
    let notices: Vec<&Value> = events.iter().filter(|event| event["method"] == "notify").collect();
    assert_eq!(notices[0]["message"], "A hook has ended the work: It is enough.", "{notices:?}");
    // The next prompt is a new beginning, which ends in the same way.
    assert_eq!(results(&daemon.prompt("Go on.")), ["(no output)"]);
    assert!(home.project().join("made").exists());
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn executables_in_the_folders_of_hooks_are_named_after_tools() {
    let server = calling(&[
        ("bash", json!({"command": "touch made"})),
        ("write", json!({"path": "b", "content": "x"})),
    ]);
    let home = Home::with_model(&server);
    write_program(
        &home,
        ".agentd/hooks/pre/bash.py",
        "#!/usr/bin/env python3\nimport json, os, sys\ncall = json.load(sys.stdin)\n\
         print(os.environ['AGENTD_PROJECT_DIR'] == call['cwd'], call['tool_input']['command'], file=sys.stderr)\nsys.exit(2)\n",
    );
    write_program(&home, ".agentd/hooks/post/*.sh", "#!/bin/sh\ncat >> log\n");
    home.write(".agentd/hooks/pre/write.sh", "#!/bin/sh\nexit 2\n");
    let mut daemon = Daemon::start(&home, &["--approve"]);
    let found = results(&daemon.prompt("Go."));
    assert_eq!(found[0], "Blocked by a hook: True touch made");
    assert!(found[1].starts_with("Successfully wrote"), "{}", found[1]);
    let log: Value = serde_json::from_str(&home.read("log")).unwrap();
    assert_eq!((&log["hook_event_name"], &log["tool_name"]), (&json!("PostToolUse"), &json!("write")));
    // A file that is not executable is named.
    let said = daemon.done(json!({"type": "get_diagnostics"}));
    let said = said["diagnostics"].as_array().unwrap();
    let about: Vec<&Value> = said.iter().filter(|it| it["kind"] == "hook").collect();
    assert_eq!(about.len(), 1, "{said:?}");
    assert_says(
        about[0]["message"].as_str().unwrap(),
        &["the hook is not run: it is not executable (chmod +x "],
    );
}

#[test]
fn hooks_and_tools_from_files_stay_in_the_sandbox() {
    if !is_enforced() {
        return;
    }
    let server = calling(&[("leave", json!({})), ("bash", json!({"command": "true"}))]);
    let home = Home::with_model(&server);
    let leave = "echo x > inside-tool; echo x > ../outside-tool";
    let tool = json!({"name": "leave", "description": "Leaves.", "command": ["sh", "-c", leave]});
    home.write_agent("tools/leave.json", &tool.to_string());
    let script = "echo x > inside-hook; if echo x > ../outside-hook; then :; fi; exit 0";
    home.settings(&json!({"hooks": hooks("PreToolUse", "bash", script)}));
    let mut daemon = Daemon::start(&home, &WORKSPACE);
    let found = results(&daemon.prompt("Go."));
    assert_says(&found[0], &["Read-only file system"]);
    let is_there = |name: &str| home.project().join(name).exists();
    assert!(is_there("inside-tool") && is_there("inside-hook"), "{found:?}");
    assert!(!is_there("../outside-tool") && !is_there("../outside-hook"));
    // The user can let the own hooks out of it.
    home.settings(&json!({"hooks": hooks("PreToolUse", "bash", script), "shellHooks": {"sandboxed": false}}));
    server.push(Reply::stream(sse::calls(&[("call_9", "bash", json!({"command": "true"}))])));
    server.push(Reply::stream(sse::answer("Done.")));
    Daemon::start(&home, &WORKSPACE).prompt("Go.");
    assert!(is_there("../outside-hook"));
}
