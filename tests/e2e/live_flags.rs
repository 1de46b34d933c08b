//! Every flag, for a session that the daemon has open already: applied, or refused by name, and never dropped.

use std::collections::BTreeSet;

use agentd_e2e::{Home, MockServer, Reply, Service, SocketClient, ctl, sse};
use serde_json::{Value, json};

use crate::{
    support::{assert_says, complaint},
    unload::gone,
};

/// The effect of a flag on an open session.
enum Live {
    /// The flag is applied: a check of the state and of the active tools.
    Applied(fn(&Value, &[&str]) -> bool),
    /// The flag is refused, under this name.
    Refused(&'static str),
    /// The flag selects the session or concerns the client.
    Counts,
}

use Live::{Applied, Counts, Refused};

pub(crate) const DEFAULT: [&str; 4] = ["read", "bash", "edit", "write"];

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
    (&["--extension", "./mine"], Refused("--extension")),
    (&["-e", "../mine"], Refused("--extension")),
    (&["--no-extensions"], Refused("--no-extensions")),
    (&["--no-ui"], Refused("--no-ui")),
    (&["-ne"], Refused("--no-extensions")),
    (&["--permissions", "read-only"], Refused("--permissions")),
    (&["--permission-rules", "rules.json"], Refused("--permission-rules")),
    (&["--sandbox", "read-only"], Refused("--sandbox")),
    (&["--network", "off"], Refused("--network")),
    (&["--writable-root", "/tmp"], Refused("--writable-root")),
    (&["--undo", "on"], Refused("--undo")),
    (&["--approve"], Refused("--approve")),
    (&["-a"], Refused("--approve")),
    (&["--max-cost", "0.50"], Refused("--max-cost")),
    (&["--max-tokens", "1000"], Refused("--max-tokens")),
    (&["--max-turns", "5"], Refused("--max-turns")),
    (&["--max-tool-calls", "5"], Refused("--max-tool-calls")),
    (&["--timeout", "10m"], Refused("--timeout")),
    (&["--continue"], Counts),
    (&["-c"], Counts),
    (&["--prefer", "other"], Counts),
    (&["--no-approve"], Counts),
    (&["-na"], Counts),
    (&["--on-eof", "drain"], Counts),
    (&["--ready"], Counts),
    (&["--cumulative-updates"], Counts),
    (&["--todo"], Counts),
    (&["--syntax"], Counts),
    (&["--task"], Counts),
    (&["--async"], Counts),
    (&["--lsp"], Counts),
    (&["--web"], Counts),
    (&["--plan-mode"], Counts),
    (&["--offline"], Counts),
];

/// Flags of the help that have a test of their own, or do not apply to an open session.
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
    "--theme",
    "--no-themes",
    "--no-title",
    "--use-theme",
    "--tui-mode",
    "--no-mcp",
    "--mcp-on-demand",
    "--verbose",
];

pub(crate) fn home(server: &MockServer, idle_ms: Option<u64>) -> Home {
    let home = Home::with_model(server);
    home.configure(&json!({"providers": {"fake": {
        "baseUrl": server.base_url(), "api": "openai-completions", "apiKey": "test-key-1234",
        "models": [{"id": "fake", "reasoning": true}, {"id": "other", "reasoning": true}],
    }}}));
    home.write("rules.json", r#"{"rules": [{"tool": "bash", "command": "rm *", "action": "deny"}]}"#);
    // Packages without extensions.
    for package in ["mine", "project/mine"] {
        std::fs::create_dir_all(home.root().join(package).join("skills")).expect("a folder");
    }
    // The project has settings to trust, and no default for it.
    home.write(".agentd/settings.json", "{}");
    if let Some(idle_ms) = idle_ms {
        home.settings(&json!({"daemon": {"idleUnloadMs": idle_ms}}));
    }
    home
}

pub(crate) fn hello(service: &Service) -> SocketClient {
    let mut client = service.client();
    client.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true}}));
    client
}

pub(crate) fn open(home: &Home, args: &[&str]) -> Value {
    json!({"type": "open_session", "cwd": home.project(), "args": args})
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

/// A session that was opened with these flags and has a message.
pub(crate) fn begun(client: &mut SocketClient, home: &Home, args: &[&str]) -> String {
    let id = text(&client.done(open(home, args))["sessionId"]);
    client.done(json!({"type": "prompt", "message": "Hi"}));
    client.settled();
    id
}

pub(crate) fn active(client: &mut SocketClient) -> Vec<String> {
    let tools = client.done(json!({"type": "get_tools"}))["tools"].clone();
    let tools = tools.as_array().expect("a list").iter().filter(|tool| tool["active"] == true);
    tools.map(|tool| text(&tool["name"])).collect()
}

/// Opens a session again with flags, and checks their effect.
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
                &[name, "\"args\"", id, "close_session"].map(|part| match (part, *name) {
                    ("close_session", "--fallback-models") => "set_fallback_models",
                    ("close_session", "--permissions" | "--permission-rules") => "set_permissions",
                    _ => part,
                }),
            );
            assert!(!refused.to_string().contains("hush"), "{refused}");
            assert_eq!(active_of(client, id), DEFAULT, "{args:?}");
        }
    }
}

pub(crate) fn active_of(client: &mut SocketClient, id: &str) -> Vec<String> {
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
fn every_flag_is_tried_on_a_loaded_session() {
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
fn every_flag_is_tried_on_an_unloaded_session() {
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
fn every_flag_counts_for_a_session_on_disk() {
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
            // With another session folder, the file names the session.
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
fn flags_with_the_present_values_change_nothing() {
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
    // Default values count as equal, too.
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
