//! Flags for a session that the daemon has open already: applied, or refused by name, and never dropped.

use std::collections::BTreeSet;

use agentd_e2e::{Ctl, Daemon, Gate, Home, MockServer, Reply, Service, ctl, socket::SocketClient, sse};
use serde_json::{Value, json};

use crate::{
    support::{assert_says, complaint, live_sessions},
    unload::gone,
};

/// What becomes of flags in a session that is open.
enum Live {
    /// They count: what then holds of its state, and the tools that are active.
    Applied(fn(&Value, &[&str]) -> bool),
    /// They are refused, by this name.
    Refused(&'static str),
    /// They say which session it is, or are about the client.
    Counts,
}

use Live::{Applied, Counts, Refused};

const DEFAULT: [&str; 4] = ["read", "bash", "edit", "write"];

/// Every flag of a session.
const FLAGS: &[(&[&str], Live)] = &[
    (&["--model", "fake/other"], Applied(|state, _| state["model"]["id"] == "other")),
    (&["--model", "fake/other:high"], Applied(|state, _| state["thinkingLevel"] == "high")),
    (&["--provider", "fake", "--model", "other"], Applied(|state, _| state["model"]["id"] == "other")),
    (&["--thinking", "minimal"], Applied(|state, _| state["thinkingLevel"] == "minimal")),
    (&["--name", "Mine"], Applied(|state, _| state["sessionName"] == "Mine")),
    (&["-n", "Mine"], Applied(|state, _| state["sessionName"] == "Mine")),
    (&["--tools", "read"], Applied(|_, tools| tools == ["read"])),
    (&["-t", "+grep,-bash"], Applied(|_, tools| tools == ["read", "edit", "write", "grep"])),
    (&["--exclude-tools", "bash,w*"], Applied(|_, tools| tools == ["read", "edit"])),
    (&["-xt", "bash"], Applied(|_, tools| tools == ["read", "edit", "write"])),
    (&["--no-tools"], Applied(|_, tools| tools.is_empty())),
    (&["-nt", "--tools", "ls"], Applied(|_, tools| tools == ["ls"])),
    (&["--no-builtin-tools"], Applied(|_, tools| tools.is_empty())),
    (&["-nbt"], Applied(|_, tools| tools.is_empty())),
    (&["--system-prompt", "Be brief."], Refused("--system-prompt")),
    (&["--append-system-prompt", "Be brief."], Refused("--append-system-prompt")),
    (&["--models", "fake/other"], Refused("--models")),
    (&["--fallback-models", "fake/other"], Refused("--fallback-models")),
    (&["--model", "fake/fake", "--api-key", "hush-hush-hush"], Refused("--api-key")),
    (&["--session-dir", "elsewhere"], Refused("--session-dir")),
    (&["--ssh", "nowhere.invalid"], Refused("--ssh")),
    (&["--no-context-files"], Refused("--no-context-files")),
    (&["-nc"], Refused("--no-context-files")),
    (&["--skill", "skills/one"], Refused("--skill")),
    (&["--no-skills"], Refused("--no-skills")),
    (&["-ns"], Refused("--no-skills")),
    (&["--prompt-template", "one.md"], Refused("--prompt-template")),
    (&["--no-prompt-templates"], Refused("--no-prompt-templates")),
    (&["-np"], Refused("--no-prompt-templates")),
    (&["--approve"], Refused("--approve")),
    (&["-a"], Refused("--approve")),
    (&["--continue"], Counts),
    (&["-c"], Counts),
    (&["--prefer", "other"], Counts),
    (&["--no-approve"], Counts),
    (&["-na"], Counts),
    (&["--on-eof", "drain"], Counts),
    (&["--ready"], Counts),
    (&["--cumulative-updates"], Counts),
    (&["--offline"], Counts),
];

/// Flags of the help that have a test of their own below, or are none of a session that is open.
const ELSEWHERE: &[&str] = &[
    "--demo",
    "--session",
    "--session-id",
    "--fork",
    "--no-session",
    "--stdio",
    "--mode",
    "--print",
    "--shared",
    "--socket",
    "--compat",
    "--record",
    "--replay",
    "--replay-match",
    "--replay-timing",
    "--help",
    "--version",
    "--list-models",
    "--export",
    "--extension",
    "--no-extensions",
    "--theme",
    "--no-themes",
    "--use-theme",
    "--tui-mode",
    "--no-mcp",
    "--verbose",
];

fn home(server: &MockServer, idle_ms: Option<u64>) -> Home {
    let home = Home::with_model(server);
    home.configure(&json!({"providers": {"fake": {
        "baseUrl": server.base_url(), "api": "openai-completions", "apiKey": "test-key-1234",
        "models": [{"id": "fake", "reasoning": true}, {"id": "other", "reasoning": true}],
    }}}));
    // Something to trust, and nobody who says so.
    home.write(".agentd/settings.json", "{}");
    if let Some(idle_ms) = idle_ms {
        home.settings(&json!({"daemon": {"idleUnloadMs": idle_ms}}));
    }
    home
}

fn hello(service: &Service) -> SocketClient {
    let mut client = service.client();
    client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    client
}

fn open(home: &Home, args: &[&str]) -> Value {
    json!({"type": "open_session", "cwd": home.project(), "args": args})
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

/// A session with something said in it, opened with these flags.
fn begun(client: &mut SocketClient, home: &Home, args: &[&str]) -> String {
    let id = text(&client.done(open(home, args))["sessionId"]);
    client.done(json!({"type": "prompt", "message": "Hi"}));
    client.settled();
    id
}

fn active(client: &mut SocketClient) -> Vec<String> {
    let tools = client.done(json!({"type": "get_tools"}))["tools"].clone();
    let tools = tools.as_array().expect("a list").iter().filter(|tool| tool["active"] == true);
    tools.map(|tool| text(&tool["name"])).collect()
}

/// Opens a session again with flags, and sees what comes of it.
fn check(client: &mut SocketClient, home: &Home, id: &str, args: &[&str], live: &Live) {
    let session = ["--session", id];
    let counts_itself = args.iter().any(|arg| ["-c", "--continue"].contains(arg));
    let args = [if counts_itself { &[][..] } else { &session }, args].concat();
    match live {
        Applied(holds) => {
            let opened = client.done(open(home, &args));
            assert_eq!(opened["sessionId"], json!(id), "{args:?}");
            let tools = active(client);
            let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
            assert!(holds(&opened, &tools), "{args:?}: {opened} {tools:?}");
        }
        Counts => assert_eq!(client.done(open(home, &args))["sessionId"], json!(id), "{args:?}"),
        Refused(name) => {
            let refused = client.refused(open(home, &args));
            assert_eq!(refused["code"], json!("invalid_field"), "{args:?}: {refused}");
            assert_says(
                &complaint(&refused),
                &[name, "\"args\"", id, "close_session"].map(|part| {
                    if part == "close_session" && *name == "--fallback-models" {
                        "set_fallback_models"
                    } else {
                        part
                    }
                }),
            );
            assert!(!refused.to_string().contains("hush"), "{refused}");
            assert_eq!(active_of(client, id), DEFAULT, "{args:?}");
        }
    }
}

fn active_of(client: &mut SocketClient, id: &str) -> Vec<String> {
    let tools = client.done(json!({"type": "get_tools", "sessionId": id}))["tools"].clone();
    let tools = tools.as_array().expect("a list").iter().filter(|tool| tool["active"] == true);
    tools.map(|tool| text(&tool["name"])).collect()
}

#[test]
fn every_flag_is_looked_at() {
    let help = ctl::feed(ctl::agentd(&Home::new(), &["--help"]), "").stdout;
    let words = help.split(|next: char| !(next.is_alphanumeric() || next == '-'));
    let documented: BTreeSet<&str> = words.filter(|word| word.starts_with("--") && word.len() > 3).collect();
    let tested = FLAGS.iter().flat_map(|(args, _)| args.iter().copied()).chain(ELSEWHERE.iter().copied());
    let tested: BTreeSet<&str> = tested.collect();
    let untested: Vec<_> = documented.difference(&tested).collect();
    assert!(untested.is_empty(), "{untested:?}");
}

#[test]
fn in_memory() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = home(&server, None);
    let service = Service::start(&home, &[]);
    let (mut first, mut client) = (hello(&service), hello(&service));
    for (args, live) in FLAGS {
        let id = begun(&mut first, &home, &[]);
        check(&mut client, &home, &id, args, live);
    }
}

#[test]
fn out_of_memory() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = home(&server, Some(1));
    let service = Service::start(&home, &[]);
    let (mut watcher, mut first, mut client) = (hello(&service), hello(&service), hello(&service));
    watcher.done(json!({"type": "watch_sessions"}));
    for (args, live) in FLAGS {
        let id = begun(&mut first, &home, &[]);
        gone(&mut watcher, &id);
        check(&mut client, &home, &id, args, live);
    }
}

#[test]
fn on_disk_they_all_count() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = home(&server, None);
    let service = Service::start(&home, &[]);
    let (mut first, mut client) = (hello(&service), hello(&service));
    for (args, live) in FLAGS {
        let id = begun(&mut first, &home, &[]);
        first.done(json!({"type": "close_session", "sessionId": id}));
        let session =
            text(&json!(home.session_files().iter().find(|file| file.display().to_string().contains(&id))));
        match live {
            // Where another folder is searched, the file says which session it is.
            Refused(_) => {
                let opened = client.done(open(&home, &[&["--session", &session], *args].concat()));
                assert_eq!(opened["sessionId"], json!(id), "{args:?}");
            }
            live => check(&mut client, &home, &id, args, live),
        }
        client.done(json!({"type": "close_session", "sessionId": id}));
    }
}

#[test]
fn what_is_there_already_is_no_difference() {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = home(&server, None);
    let service = Service::start(&home, &[]);
    let mut client = hello(&service);
    for (args, live) in FLAGS.iter().filter(|(_, live)| matches!(live, Refused(_))) {
        let Refused(name) = live else { continue };
        let opened = client.done(open(&home, args));
        let id = text(&opened["sessionId"]);
        let again = client.done(open(&home, &[*args, &["--session", &id]].concat()));
        assert_eq!((&again["sessionId"], &again["seq"]), (&json!(id), &opened["seq"]), "{name}");
        client.done(json!({"type": "close_session", "sessionId": id}));
    }
    // What is there by default, too.
    let id = begun(&mut client, &home, &[]);
    let folder = home.session_files()[0].parent().expect("a folder").display().to_string();
    for args in
        [&["--model", "fake/fake"][..], &["--tools", "read,bash,edit,write"], &["--session-dir", &folder]]
    {
        let before = client.done(json!({"type": "get_entries"}));
        client.done(open(&home, &[args, &["--session", &id]].concat()));
        assert_eq!(client.done(json!({"type": "get_entries"})), before, "{args:?}");
    }
}

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
    // One in memory only is what it is.
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
    // It is the client's also after the session left memory.
    gone(&mut watcher, &id);
    shows(&mut second, "none /venv none");
    shows(&mut first, "one none none");
    // A key of a model stays behind, whoever brings it.
    home.configure(&json!({"providers": {"fake": {
        "baseUrl": server.base_url(), "api": "openai-completions", "apiKey": "$FAKE_KEY", "models": [{"id": "fake"}],
    }}}));
    gone(&mut watcher, &id);
    second.done(open(Some(&id), env(json!({"FAKE_KEY": "sk-hush-hush-hush"}))));
    let output = second.done(json!({"type": "bash", "command": SHOW}))["output"].clone();
    assert_eq!(output, json!("none none none\n"));
    // Who opens it without one works in the session's.
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
    let mut running = Ctl::start(&home, &["prompt", "Hi"]);
    running.wait_for_stdout("First, ");
    let refused = ctl::run(&home, &["prompt", "-c", "--tools", "read", "--model", "fake/other", "Now?"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert_says(&refused.stderr, &["is at work", "--follow-up"]);
    let id = text(&live_sessions(&home)[0]["id"]);
    let mut client = hello(&service);
    assert_eq!(active_of(&mut client, &id), DEFAULT);
    let state = client.done(json!({"type": "get_state", "sessionId": id}));
    assert_eq!(state["model"]["id"], json!("fake"));
    gate.open();
    assert_eq!(running.finish().code, 0);
}
