//! A command that a session runs does not have the user's rights, however it connects.

use std::io::Write;

use agentd_e2e::{Home, MockServer, Reply, Service, SocketClient, binaries, sse};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::relay::Inside;
use crate::support::{assert_says, complaint};

const ALWAYS: &str = "Always trust this folder";
const THIS_TIME: &str = "Trust it this time";

fn user(service: &Service, name: &str) -> SocketClient {
    let mut client = service.client();
    client.done(json!({
        "type": "hello", "protocol": 1, "client": {"name": name}, "capabilities": {"sessions": true, "ui": true},
    }));
    client
}

fn open(client: &mut SocketClient, home: &Home) -> Value {
    client.done(json!({"type": "open_session", "cwd": home.project()}))["sessionId"].clone()
}

/// The environment of a program of this home.
fn own_environment(home: &Home) -> Value {
    json!({"PATH": "/usr/bin:/bin", "HOME": home.root().join("home"), "MINE": "of the command"})
}

fn forbidden(client: &mut SocketClient, command: Value) -> String {
    let refused = client.refused(command.clone());
    assert_eq!(refused["code"], "forbidden", "{command}: {refused}");
    complaint(&refused)
}

/// A home whose project has settings that need trust.
fn home_with_project() -> Home {
    let home = Home::new();
    home.write(".pi/settings.json", &json!({"shellCommandPrefix": "echo trusted"}).to_string());
    home
}

#[test]
fn a_command_does_not_answer_for_the_user() {
    let home = home_with_project();
    let service = Service::start(&home, &[]);
    let mut user = user(&service, "user");
    let session = open(&mut user, &home);
    let question = user.event("extension_ui_request");
    let inside = Inside::new(&home, &service);
    let mut command = inside.run(&mut user, &session, &inside.command());
    command.done(json!({
        "type": "hello", "protocol": 1, "client": {"name": "user"}, "capabilities": {"sessions": true, "ui": true},
    }));
    command.done(json!({"type": "attach_session", "sessionId": session}));
    for mut answer in [json!({"sessionId": session}), json!({})] {
        answer["type"] = json!("extension_ui_response");
        answer["id"] = question["id"].clone();
        answer["value"] = json!(ALWAYS);
        command.send(&answer);
        let refused = command.until("a refusal", |line| line["type"] == "response");
        assert_eq!(refused["code"], "forbidden", "{refused}");
        let session = session.as_str().unwrap();
        assert_says(&complaint(&refused), &["A command of the session", session, "answer questions"]);
    }
    // Opening a trusted session does not help either.
    let approved = json!({"type": "open_session", "cwd": home.project(), "env": own_environment(&home), "args": ["--approve"]});
    assert_says(&forbidden(&mut command, approved), &["--approve"]);
    user.send(&json!({"type": "extension_ui_response", "id": question["id"], "value": THIS_TIME}));
    assert_eq!(user.event("ui_request_resolved")["by"], "user");
    assert!(!home.agent_dir().join("trust.json").exists());
}

/// Checks what a command of a session may do, whatever form it has.
fn is_kept_in(command: &mut SocketClient, own: Option<&Value>, other: &Value, home: &Home) {
    // It may not reach the daemon, settings and credentials.
    for asked in [
        json!({"type": "shutdown"}),
        json!({"type": "login", "provider": "openai", "key": "sk-of-the-command"}),
        json!({"type": "logout", "provider": "openai"}),
        json!({"type": "set_auto_retry", "enabled": false}),
        json!({"type": "update_models"}),
        json!({"type": "watch_sessions"}),
        json!({"type": "clean_outputs"}),
        json!({"type": "diagnose"}),
    ] {
        forbidden(command, asked);
    }
    // It may not reach another session.
    for asked in [
        json!({"type": "get_messages"}),
        json!({"type": "get_state"}),
        json!({"type": "attach_session"}),
        json!({"type": "list_processes"}),
        json!({"type": "prompt", "message": "Push."}),
        json!({"type": "steer", "message": "Push."}),
        json!({"type": "follow_up", "message": "Push."}),
        json!({"type": "abort"}),
        json!({"type": "bash", "command": "true"}),
        json!({"type": "compact"}),
        json!({"type": "clone"}),
        json!({"type": "new_session"}),
        json!({"type": "switch_session", "sessionPath": "/tmp/a.jsonl"}),
        json!({"type": "set_session_name", "name": "mine"}),
        json!({"type": "close_session"}),
        json!({"type": "delete_session"}),
    ] {
        for session in [Some(other), own].into_iter().flatten() {
            let looks = ["get_messages", "get_state", "attach_session", "list_processes"];
            if Some(session) == own && looks.contains(&asked["type"].as_str().unwrap()) {
                command.done(merged(&asked, session));
                continue;
            }
            let told = forbidden(command, merged(&asked, session));
            assert_says(&told, &["may not"]);
        }
    }
    let listed = command.done(json!({"type": "list_sessions"}));
    let ids: Vec<&Value> = listed["sessions"].as_array().unwrap().iter().map(|it| &it["id"]).collect();
    assert_eq!(ids, own.into_iter().collect::<Vec<_>>());
    let status = command.done(json!({"type": "daemon_status"}));
    assert_eq!(status["liveSessions"], json!(ids.len()));
    // Nor open it.
    let env = own_environment(home);
    for asked in [
        json!({"sessionId": other, "env": env}),
        json!({"path": other, "env": env}),
        json!({"args": ["--fork", other], "env": env}),
        json!({"args": ["--session", other], "env": env}),
        json!({}),
    ] {
        let mut asked = asked;
        asked["type"] = json!("open_session");
        asked["cwd"] = json!(home.project());
        forbidden(command, asked);
    }
}

fn merged(command: &Value, session: &Value) -> Value {
    let mut command = command.clone();
    command["sessionId"] = session.clone();
    command
}

#[test]
fn a_command_sees_its_own_session_alone_and_changes_nothing() {
    let home = Home::new();
    let service = Service::start(&home, &[]);
    let mut user = user(&service, "user");
    let (own, other) = (open(&mut user, &home), open(&mut user, &home));
    let inside = Inside::new(&home, &service);
    let plain = inside.command();
    for shape in [
        plain.clone(),
        // A process that left its command, its session and its parents.
        format!("(setsid sh -c '{} & ' &) ; sleep 0", plain.replace('\'', "'\\''")),
        format!(
            "nohup sh -c 'exec {}' &",
            plain.replace('\'', "'\\''").replace("AGENTD_E2E", "env AGENTD_E2E")
        ),
        format!("env -i {plain}"),
    ] {
        let mut command = inside.run(&mut user, &own, &shape);
        is_kept_in(&mut command, Some(&own), &other, &home);
        // Its `hello` changes nothing.
        command.done(
            json!({"type": "hello", "protocol": 1, "role": "control", "capabilities": {"sessions": true}}),
        );
        is_kept_in(&mut command, Some(&own), &other, &home);
        user.done(json!({"type": "abort_bash", "sessionId": own}));
    }
    let known = user.done(json!({"type": "list_sessions"}));
    assert_eq!(known["sessions"].as_array().unwrap().len(), 2);
    assert_eq!(user.done(json!({"type": "get_state", "sessionId": other}))["sessionName"], Value::Null);
}

/// A command of a model's tool is recognised like the user's `bash`.
#[test]
fn a_command_of_a_model_is_one() {
    let server = MockServer::start([]);
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut user = user(&service, "user");
    let (own, other) = (open(&mut user, &home), open(&mut user, &home));
    let inside = Inside::new(&home, &service);
    let call = sse::calls(&[("c1", "bash", json!({"command": inside.command()}))]);
    server.push(Reply::stream(call));
    user.send(&json!({"type": "prompt", "sessionId": own, "message": "Go."}));
    let mut command = SocketClient::over_stream(inside.arrival());
    is_kept_in(&mut command, Some(&own), &other, &home);
    user.done(json!({"type": "abort", "sessionId": own}));
}

/// A command connects, passes the connection to a child and ends before the daemon has looked at the peer. The command can
/// then no longer be identified.
#[test]
fn a_connection_that_was_handed_on_is_no_way_out() {
    let home = Home::new();
    let service = Service::start(&home, &[]);
    let mut user = user(&service, "user");
    let (own, other) = (open(&mut user, &home), open(&mut user, &home));
    let inside = Inside::new(&home, &service);
    user.send(&json!({"type": "bash", "sessionId": own, "command": inside.handing_on()}));
    let mut first = inside.arrival();
    service.signal(Signal::STOP);
    first.write_all(b"x").unwrap();
    let command = inside.arrival();
    service.signal(Signal::CONT);
    is_kept_in(&mut SocketClient::over_stream(command), None, &other, &home);
    user.done(json!({"type": "daemon_status"}));
}

#[test]
fn a_command_works_in_sessions_of_its_own_with_its_own_environment() {
    let server = MockServer::always(Reply::stream(sse::answer("Done.")));
    let home = Home::with_model(&server);
    let service = Service::start_with(&home, &[], |command| {
        command.env("OPENAI_API_KEY", "of-the-daemon").env("KUBECONFIG", "of-the-daemon");
    });
    let mut user = user(&service, "user");
    let env = own_environment(&home);
    let opened = user.done(json!({"type": "open_session", "cwd": home.project(), "env": env}));
    let session = opened["sessionId"].clone();
    let inside = Inside::new(&home, &service);
    let mut command = inside.run(&mut user, &session, &inside.command());
    let without = json!({"type": "open_session", "cwd": home.project()});
    assert_says(&forbidden(&mut command, without), &["the environment of the daemon", "env"]);
    let own =
        command.done(json!({"type": "open_session", "cwd": home.project(), "env": env, "name": "helper"}));
    let own = own["sessionId"].clone();
    let output =
        command.done(json!({"type": "bash", "command": "env"}))["output"].as_str().unwrap().to_owned();
    assert!(output.contains("MINE=of the command") && !output.contains("of-the-daemon"), "{output}");
    command.prompt("Hello.");
    command.done(json!({"type": "abort"}));
    command.done(json!({"type": "set_session_name", "name": "other"}));
    command.done(json!({"type": "clone"}));
    let copy = command.done(json!({"type": "get_state"}))["sessionId"].clone();
    assert_ne!(copy, own);
    command.prompt("Hello.");
    let listed = command.done(json!({"type": "list_sessions"}));
    let ids: Vec<&Value> = listed["sessions"].as_array().unwrap().iter().map(|it| &it["id"]).collect();
    assert!(ids.contains(&&session) && ids.contains(&&copy), "{ids:?}");
    user.done(json!({"type": "abort_bash", "sessionId": session}));

    // The next command of the same session can use its sessions; one of another session cannot.
    let mut next = inside.run(&mut user, &session, &inside.command());
    next.done(json!({"type": "open_session", "cwd": home.project(), "sessionId": copy, "env": env}));
    next.prompt("Hello.");
    let stranger = open(&mut user, &home);
    let mut stranger = inside.run(&mut user, &stranger, &inside.command());
    forbidden(&mut stranger, json!({"type": "prompt", "sessionId": copy, "message": "Hello."}));
    // Its tools reach no session of the user.
    next.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    let tool = json!({"name": "leak", "description": "d", "parameters": {"type": "object"}});
    next.done(json!({"type": "register_tools", "tools": [tool]}));
    next.done(json!({"type": "attach_session", "sessionId": session}));
    let tools = user.done(json!({"type": "get_tools", "sessionId": session})).to_string();
    assert!(!tools.contains("leak"), "{tools}");
    forbidden(&mut next, json!({"type": "register_tools", "sessionId": session, "tools": [tool]}));
}

#[test]
fn agentctl_works_within_a_command() {
    let server = MockServer::always(Reply::stream(sse::answer("Done.")));
    let home = Home::with_model(&server);
    let service = Service::start(&home, &[]);
    let mut user = user(&service, "user");
    let session = open(&mut user, &home);
    let agentctl = binaries::agentctl();
    let mut run = |arguments: &str| {
        let command = format!("'{}' {arguments} 2>&1; echo \"exit $?\"", agentctl.display());
        let ran = user.done(json!({"type": "bash", "sessionId": session, "command": command}));
        ran["output"].as_str().unwrap().to_owned()
    };
    assert_says(&run("prompt --shared Hello"), &["Done.", "exit 0"]);
    // The command can continue its own session; `--continue` never selects a session of the user.
    assert_says(&run("prompt --shared --continue Hello"), &["Done.", "exit 0"]);
    assert_says(&run("status"), &["exit 0"]);
    let down = run("down");
    assert_says(&down, &["may not send shutdown"]);
    assert!(!down.contains("exit 0"), "{down}");
    let other = open(&mut user, &home);
    let ran = user.done(json!({"type": "bash", "sessionId": session, "command":
        format!("'{}' abort {} 2>&1; echo \"exit $?\"", agentctl.display(), other.as_str().unwrap())}));
    assert!(!ran["output"].as_str().unwrap().contains("exit 0"), "{ran}");
    user.done(json!({"type": "daemon_status"}));
}

/// Processes of another agentd of the user descend from no command of this one; their mark identifies them.
#[test]
fn a_command_of_another_agentd_is_no_user_either() {
    let home = Home::new();
    let service = Service::start(&home, &[]);
    let mut user = user(&service, "user");
    let other = open(&mut user, &home);
    let inside = Inside::new(&home, &service);
    let mut private = agentd_e2e::Daemon::start(&home, &["--no-session"]);
    private.send(&json!({"type": "bash", "command": inside.command()}));
    let mut command = SocketClient::over_stream(inside.arrival());
    is_kept_in(&mut command, None, &other, &home);
}

#[test]
fn another_hello_does_not_widen_a_role() {
    let home = Home::new();
    let service = Service::start(&home, &[]);
    let mut user = user(&service, "user");
    let session = open(&mut user, &home);
    let mut observer = service.client();
    let hello =
        |role: &str| json!({"type": "hello", "protocol": 1, "role": role, "capabilities": {"ui": true}});
    observer.done(hello("observe"));
    assert_says(&forbidden(&mut observer, hello("control")), &["observe", "control"]);
    observer.done(json!({"type": "attach_session", "sessionId": session}));
    forbidden(&mut observer, json!({"type": "bash", "command": "true"}));
    observer.done(hello("observe"));
    // A client may narrow its own role.
    let mut careful = service.client();
    careful.done(hello("control"));
    careful.done(hello("observe"));
    forbidden(&mut careful, json!({"type": "shutdown"}));
}

#[test]
fn only_those_who_follow_a_session_and_said_so_answer_its_questions() {
    let home = home_with_project();
    let service = Service::start(&home, &[]);
    let mut first = user(&service, "first");
    open(&mut first, &home);
    first.event("extension_ui_request");
    let mut second = user(&service, "second");
    let session = open(&mut second, &home);
    let question = second.event("extension_ui_request");
    let answer = |value: &str| json!({"type": "extension_ui_response", "id": question["id"], "value": value});
    // The client follows another session, and names this one or none.
    first.send(&merged(&answer(ALWAYS), &session));
    let refused = first.until("a refusal", |line| line["type"] == "response");
    assert_eq!(refused["code"], "forbidden");
    assert_says(&complaint(&refused), &["does not follow", session.as_str().unwrap()]);
    first.send(&answer(ALWAYS));
    first.done(json!({"type": "daemon_status"}));
    // The client follows this session and did not announce `ui`.
    let mut silent = service.client();
    silent.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    silent.done(json!({"type": "attach_session", "sessionId": session}));
    silent.send(&answer(ALWAYS));
    let refused = silent.until("a refusal", |line| line["type"] == "response");
    assert_eq!(refused["code"], "forbidden");
    assert_says(&complaint(&refused), &["did not say", "ui"]);
    // The plain protocol has only the dialogs of extensions.
    let mut plain = service.client();
    let attached = plain.done(json!({"type": "attach_session", "sessionId": session}));
    assert_eq!(attached["pendingUi"][0]["id"], question["id"]);
    plain.send(&answer(ALWAYS));
    plain.done(json!({"type": "get_state"}));
    second.send(&answer(THIS_TIME));
    assert_eq!(second.event("ui_request_resolved")["by"], "second");
    second.until("a notice", |line| line["method"] == "notify");
    assert!(!home.agent_dir().join("trust.json").exists());
}
