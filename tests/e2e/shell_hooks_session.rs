//! Shell hooks about a session: its beginning and end, messages of the user, the end of a run, compactions.

use std::{fs, process::Command};

use agentd_e2e::{Daemon, Home, MockServer, Reply, Service, sse};
use serde_json::{Value, json};

use crate::{
    asking::{answer, asked, open},
    shell_hooks::{calling, hooks},
    support::{assert_says, complaint, text},
};

fn home(server: &MockServer, hooks: Value) -> Home {
    let home = Home::with_model(server);
    home.settings(&json!({ "hooks": hooks }));
    home
}

/// All texts of a request.
fn said(server: &MockServer, request: usize) -> String {
    server.requests()[request].messages().iter().map(text).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_hook_can_refuse_a_message() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let script = "if grep -q secret; then echo 'It holds a secret.' >&2; exit 2; fi";
    let home = home(&server, hooks("UserPromptSubmit", "", script));
    let mut daemon = Daemon::start(&home, &[]);
    let refused = daemon.refused(json!({"type": "prompt", "message": "My secret is 5."}));
    assert_eq!(refused["code"], "model_refused");
    assert_says(
        &complaint(&refused),
        &["A hook refused the message: It holds a secret.", "UserPromptSubmit"],
    );
    assert_eq!(server.requests().len(), 0);
    for command in ["steer", "follow_up"] {
        let refused = daemon.refused(json!({"type": command, "message": "secret"}));
        assert_eq!(refused["code"], "model_refused");
    }
    daemon.prompt("Nothing to hide.");
    assert!(!said(&server, 0).contains("secret"));
    for file in home.session_files() {
        assert!(!fs::read_to_string(file).unwrap().contains("secret"));
    }
}

#[test]
fn what_hooks_say_goes_to_the_model_with_the_message() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let json = json!({"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "The branch is main."}});
    home.settings(&json!({"hooks": {
        "SessionStart": [
            {"matcher": "startup", "hooks": [{"type": "command", "command": format!("cat > start; echo '{json}'")}]},
            {"matcher": "resume", "hooks": [{"type": "command", "command": "echo Back again."}]},
        ],
        "UserPromptSubmit": [{"hooks": [{"type": "command", "command": "jq -r '\"It says: \" + .prompt'"}]}],
    }}));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.prompt("Hello.");
    let first = said(&server, 0);
    assert_says(&first, &["The branch is main.", "It says: Hello."]);
    assert!(!first.contains("Back again."), "{first}");
    let start: Value = serde_json::from_str(&home.read("start")).unwrap();
    assert_eq!((&start["hook_event_name"], &start["source"]), (&json!("SessionStart"), &json!("startup")));
    // Clients do not show it.
    let messages = daemon.done(json!({"type": "get_messages"}));
    let custom: Vec<&Value> =
        messages["messages"].as_array().unwrap().iter().filter(|it| it["role"] == "custom").collect();
    assert_eq!(custom.len(), 2, "{messages}");
    assert!(
        custom.iter().all(|it| it["display"] == false && it["customType"] == "agentd.hook"),
        "{custom:?}"
    );
    daemon.close();
    let mut daemon = Daemon::start(&home, &["--continue"]);
    daemon.prompt("Again.");
    assert_says(&said(&server, 1), &["The branch is main.", "Back again.", "It says: Again."]);
}

#[test]
fn the_model_goes_on_until_a_hook_is_content() {
    let server = MockServer::always(Reply::stream(sse::answer("Done.")));
    let script =
        r#"if jq -e .stop_hook_active > /dev/null; then exit 0; fi; echo 'Run the tests.' >&2; exit 2"#;
    let home = home(&server, hooks("Stop", "", script));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.prompt("Go.");
    assert_eq!(server.requests().len(), 2);
    assert_says(&said(&server, 1), &["A check found that the work is not done yet:\nRun the tests."]);
    // The next run begins anew.
    daemon.prompt("Go again.");
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn a_hook_that_is_never_content_is_not_heard_for_ever() {
    let server = MockServer::always(Reply::stream(sse::answer("Done.")));
    let home = home(&server, hooks("Stop", "", "echo more >&2; exit 2"));
    let mut daemon = Daemon::start(&home, &[]);
    daemon
        .done(json!({"type": "hello", "protocol": 1, "client": {"name": "t"}, "capabilities": {"ui": true}}));
    let events = daemon.prompt("Go.");
    assert_eq!(server.requests().len(), 9);
    let notice = events.iter().find(|event| event["method"] == "notify").expect("a notice");
    assert_says(notice["message"].as_str().unwrap(), &["wants the work to go on for the 9th time"]);
}

#[test]
fn a_hook_can_prevent_a_compaction_and_speaks_again_after_one() {
    let server = MockServer::always(Reply::stream(sse::answer("A summary.")));
    let home = Home::with_model(&server);
    home.settings(&json!({
        "compaction": {"keepRecentTokens": 1},
        "hooks": {
            "PreCompact": [{"matcher": "manual", "hooks": [
                {"type": "command", "command": "cat > compact; if [ -e no ]; then echo 'Not now.' >&2; exit 2; fi"},
            ]}],
            "SessionStart": [{"matcher": "compact", "hooks": [{"type": "command", "command": "echo Use tabs."}]}],
        },
    }));
    let mut daemon = Daemon::start(&home, &[]);
    daemon.prompt("One.");
    daemon.prompt("Two.");
    home.write("no", "");
    let refused = daemon.refused(json!({"type": "compact", "customInstructions": "Keep names."}));
    assert_says(&complaint(&refused), &["A hook prevents the compaction: Not now.", "PreCompact"]);
    let told: Value = serde_json::from_str(&home.read("compact")).unwrap();
    assert_eq!((&told["trigger"], &told["custom_instructions"]), (&json!("manual"), &json!("Keep names.")));
    fs::remove_file(home.project().join("no")).unwrap();
    daemon.done(json!({"type": "compact"}));
    daemon.prompt("Three.");
    assert_says(&said(&server, server.requests().len() - 1), &["A summary.", "Use tabs."]);
}

#[test]
fn the_user_can_be_called_and_the_end_is_told() {
    let server = calling(&[("bash", json!({"command": "touch made"}))]);
    let home = Home::with_model(&server);
    home.settings(&json!({
        "permissions": {"preset": "ask"},
        "hooks": {
            "Notification": [{"matcher": "permission_prompt", "hooks": [{"type": "command", "command": "cat > pipe"}]}],
            "SessionEnd": [{"hooks": [{"type": "command", "command": "cat > ended"}]}],
        },
    }));
    let pipe = home.project().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let service = Service::start(&home, &[]);
    let mut client = asked(&service, "one");
    let id = open(&mut client, &home, &[]);
    client.send(&json!({"type": "prompt", "sessionId": id, "message": "Go."}));
    let question = client.event("extension_ui_request");
    // Until the hook writes to it.
    let told: Value = serde_json::from_str(&fs::read_to_string(&pipe).unwrap()).unwrap();
    assert_eq!(told["notification_type"], "permission_prompt");
    assert_says(told["message"].as_str().unwrap(), &["$ touch made"]);
    answer(&mut client, &question, "Yes");
    client.event("agent_settled");
    client.done(json!({"type": "close_session", "sessionId": id}));
    let ended: Value = serde_json::from_str(&home.read("ended")).unwrap();
    assert_eq!((&ended["hook_event_name"], &ended["reason"]), (&json!("SessionEnd"), &json!("other")));
}
