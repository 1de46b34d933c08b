//! Opening a session that is already open: other flags are applied, or refused by name, and each client works in its own
//! environment.

use agentd_e2e::{Ctl, Daemon, Gate, MockServer, Reply, Service, SocketClient, ctl, sse};
use serde_json::{Value, json};

use crate::{
    live_flags::{DEFAULT, active, active_of, begun, hello, home, open, text},
    support::{assert_says, complaint, live_sessions},
    unload::gone,
};

#[test]
fn fields_are_named_as_fields_and_nothing_is_changed_when_one_is_refused() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = home(&server, None);
    let service = Service::start(&home, &[]);
    let mut client = hello(&service);
    let id = begun(&mut client, &home, &[]);
    let mut refuse = |fields: Value, code: &str, says: &[&str]| {
        let mut command = json!({
            "type": "open_session", "cwd": home.project(), "sessionId": id, "name": "New", "model": "fake/other",
            "thinkingLevel": "minimal", "tools": ["read"],
        });
        command.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let refused = client.refused(command);
        assert_eq!(refused["code"], json!(code), "{refused}");
        assert_says(&complaint(&refused), says);
        let state = client.done(json!({"type": "get_state"}));
        assert_eq!((&state["model"]["id"], state.get("sessionName")), (&json!("fake"), None), "{fields}");
        assert_eq!(state["thinkingLevel"], json!("medium"), "{fields}");
        assert_eq!(active(&mut client), DEFAULT, "{fields}");
    };
    refuse(json!({"systemPrompt": "x"}), "invalid_field", &["field \"systemPrompt\"", &id]);
    refuse(json!({"appendSystemPrompt": "x"}), "invalid_field", &["field \"appendSystemPrompt\""]);
    refuse(
        json!({"systemPrompt": "x", "args": ["--ssh", "h"]}),
        "invalid_field",
        &["\"systemPrompt\"", "--ssh"],
    );
    refuse(json!({"cwd": home.root()}), "invalid_field", &["field \"cwd\"", "list_sessions"]);
    refuse(json!({"tools": ["read", "nope"]}), "invalid_field", &["\"nope\"", "read, bash"]);
    refuse(
        json!({"model": "fake/nope/nope", "args": ["--provider", "faker", "--model", "x"]}),
        "no_model",
        &["faker"],
    );
    refuse(json!({"model": "openai/gpt-6.1-sol"}), "no_model", &["gpt-6.1-sol", "agentctl login openai"]);
    refuse(json!({"name": " "}), "invalid_field", &["name"]);
    let mut observer = service.client();
    observer.done(json!({"type": "hello", "protocol": 1, "role": "observe"}));
    let command = json!({"type": "open_session", "cwd": home.project(), "sessionId": id, "tools": ["read"]});
    assert_eq!(observer.refused(command)["code"], json!("forbidden"));
    assert_eq!(active(&mut client), DEFAULT);
}

#[test]
fn a_session_that_is_kept_is_not_opened_as_one_that_is_not() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = home(&server, None);
    let service = Service::start(&home, &[]);
    let mut client = hello(&service);
    let id = begun(&mut client, &home, &[]);
    let refused = client.refused(open(&home, &["--no-session", "--session-id", &id]));
    assert_says(&complaint(&refused), &["--no-session", &id]);
    // A session without a file stays without one.
    let own = ["--no-session", "--session-id", "mine-1"];
    client.done(open(&home, &own));
    assert_eq!(client.done(open(&home, &own))["sessionId"], json!("mine-1"));
}

#[test]
fn changes_are_told_and_kept_as_if_their_commands_had_been_sent() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = home(&server, None);
    let service = Service::start(&home, &[]);
    let (mut first, mut client) = (hello(&service), hello(&service));
    let id = begun(&mut first, &home, &[]);
    let args = ["--session", &id, "--model", "fake/other:low", "--tools", "read", "--name", "Mine"];
    let opened = client.done(open(&home, &args));
    let events = first.all_until("the tools", |line| line["type"] == "tools_changed");
    let kinds: Vec<String> = events.iter().map(|event| text(&event["type"])).collect();
    assert_eq!(kinds, ["session_info_changed", "thinking_level_changed", "tools_changed"]);
    assert_eq!(opened["seq"], events.last().unwrap()["seq"], "the snapshot is after them");
    client.done(json!({"type": "prompt", "message": "And?"}));
    client.settled();
    let body = server.requests().last().unwrap().body.clone();
    assert_eq!(
        (&body["model"], body["tools"].as_array().map(Vec::len)),
        (&json!("other"), Some(1)),
        "{body}"
    );
    first.done(json!({"type": "close_session", "sessionId": id}));
    let again = first.done(open(&home, &["--session", &id]));
    assert_eq!(
        (&again["model"]["id"], &again["thinkingLevel"], &again["sessionName"]),
        (&json!("other"), &json!("low"), &json!("Mine"))
    );
    assert_eq!(active(&mut first), ["read"]);
}

/// A bash call, then an answer.
fn bash_then_text(command: &str) -> [Reply; 2] {
    let call = sse::calls(&[("c1", "bash", json!({"command": command}))]);
    [Reply::stream(call), Reply::stream(sse::answer("Ok."))]
}

#[test]
fn each_client_works_in_its_own_environment() {
    const SHOW: &str = "echo \"${MARK-none} ${VIRTUAL_ENV-none} ${FAKE_KEY-none}\"";
    let server = MockServer::start([]);
    let home = home(&server, Some(1));
    let service = Service::start(&home, &[]);
    let (mut watcher, mut first, mut second) = (hello(&service), hello(&service), hello(&service));
    watcher.done(json!({"type": "watch_sessions"}));
    let path = std::env::var("PATH").unwrap();
    let env = |more: Value| {
        let mut env = json!({"PATH": path, "HOME": home.root()});
        env.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        env
    };
    let open = |id: Option<&str>, env: Value| {
        let mut command = json!({"type": "open_session", "cwd": home.project(), "env": env});
        if let Some(id) = id {
            command["sessionId"] = json!(id);
        }
        command
    };
    let id = text(&first.done(open(None, env(json!({"MARK": "one"}))))["sessionId"]);
    second.done(open(Some(&id), env(json!({"VIRTUAL_ENV": "/venv"}))));
    let shows = |client: &mut SocketClient, expected: &str| {
        let output = client.done(json!({"type": "bash", "command": SHOW}))["output"].clone();
        assert_eq!(output, json!(format!("{expected}\n")));
        bash_then_text(SHOW).into_iter().for_each(|reply| server.push(reply));
        let before = client.done(json!({"type": "attach_session", "sessionId": id}))["seq"].as_u64();
        client.done(json!({"type": "prompt", "message": "Show it."}));
        client.until("the end", |line| line["type"] == "agent_settled" && line["seq"].as_u64() > before);
        let requests = server.requests();
        let result = requests.last().unwrap().messages().last().unwrap().clone();
        assert_eq!(crate::support::text(&result).trim_end(), expected);
    };
    shows(&mut first, "one none none");
    shows(&mut second, "none /venv none");
    // The environment remains after the session was unloaded.
    gone(&mut watcher, &id);
    shows(&mut second, "none /venv none");
    shows(&mut first, "one none none");
    // A model's key does not reach commands, whichever client sends it.
    home.configure(&json!({"providers": {"fake": {
        "baseUrl": server.base_url(), "api": "openai-completions", "apiKey": "$FAKE_KEY", "models": [{"id": "fake"}],
    }}}));
    gone(&mut watcher, &id);
    second.done(open(Some(&id), env(json!({"FAKE_KEY": "sk-hush-hush-hush"}))));
    let output = second.done(json!({"type": "bash", "command": SHOW}))["output"].clone();
    assert_eq!(output, json!("none none none\n"));
    // A client without an environment works in the session's.
    let mut third = hello(&service);
    third.done(json!({"type": "open_session", "cwd": home.project(), "sessionId": id}));
    assert_eq!(third.done(json!({"type": "bash", "command": "echo $MARK"}))["output"], json!("one\n"));
}

#[test]
fn a_new_session_of_a_client_has_what_the_client_asked_for() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = home(&server, None);
    let service = Service::start(&home, &[]);
    let mut first = hello(&service);
    let id = begun(&mut first, &home, &[]);
    let mut bridge = Daemon::start_shared(&home, &["--session", &id, "--tools", "read"]);
    let active = |bridge: &mut Daemon| {
        let tools = bridge.done(json!({"type": "get_tools"}))["tools"].clone();
        tools.as_array().unwrap().iter().filter(|tool| tool["active"] == true).count()
    };
    assert_eq!(active(&mut bridge), 1);
    bridge.done(json!({"type": "new_session"}));
    assert_eq!(active(&mut bridge), 1);
    drop(bridge);
    let refused = Daemon::start_shared(&home, &["--session", &id, "--system-prompt", "x"]).wait();
    assert_says(&refused.stderr, &["--system-prompt", &id, "close_session"]);
}

#[test]
fn agentctl_prompt_applies_or_refuses() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = home(&server, None);
    let _service = Service::start(&home, &[]);
    assert_eq!(ctl::run(&home, &["prompt", "Hi"]).code, 0);
    let id = text(&live_sessions(&home)[0]["id"]);
    let done =
        ctl::run(&home, &["prompt", "--session", &id, "--tools", "read", "--model", "fake/other", "Hi"]);
    assert_eq!(done.code, 0, "{done:?}");
    let body = server.requests().last().unwrap().body.clone();
    assert_eq!(
        (&body["model"], body["tools"].as_array().map(Vec::len)),
        (&json!("other"), Some(1)),
        "{body}"
    );
    let done = ctl::run(&home, &["prompt", "-c", "--tools", "read,ls", "--name", "Mine", "Hi"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(server.requests().last().unwrap().body["tools"].as_array().map(Vec::len), Some(2));
    assert_eq!(live_sessions(&home)[0]["name"], json!("Mine"));
    let asked = server.requests().len();
    for (args, says) in [
        (&["--system-prompt", "x"][..], "--system-prompt"),
        (&["--ssh", "h"], "--ssh"),
        (&["--model", "fake/fake", "--api-key", "k-k-k-k-k-k"], "--api-key"),
        (&["--tools", "nope"], "nope"),
    ] {
        let refused = ctl::run(&home, &[&["prompt", "-c"], args, &["Hi"]].concat());
        assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{refused:?}");
        assert_says(&refused.stderr, &[says]);
    }
    assert_eq!(server.requests().len(), asked);
}

#[test]
fn a_session_at_work_for_another_is_not_changed() {
    let gate = Gate::new();
    let held = Reply::stream(sse::text("First, "))
        .gate(&gate)
        .then(sse::text("second.") + &sse::end("stop", (1, 0, 1)));
    let server = MockServer::start([held]);
    let home = home(&server, None);
    let service = Service::start(&home, &[]);
    let mut running = Ctl::start(&home, &["prompt", "--all", "Hi"]);
    running.wait_for_stdout("First, ");
    let refused = ctl::run(&home, &["prompt", "-c", "--tools", "read", "--model", "fake/other", "Now?"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert_says(&refused.stderr, &["is at work", "--follow-up"]);
    let id = text(&live_sessions(&home)[0]["id"]);
    let mut client = hello(&service);
    assert_eq!(
        active_of(&mut client, &id),
        [&DEFAULT[..], &["ast_grep", "ast_edit", "web_fetch", "lsp", "task", "wait"]].concat()
    );
    let state = client.done(json!({"type": "get_state", "sessionId": id}));
    assert_eq!(state["model"]["id"], json!("fake"));
    gate.open();
    assert_eq!(running.finish().code, 0);
}
