//! Dialogs with the user, tested with the question whether a project is trusted.

use std::fs;

use agentd_e2e::{Ctl, Daemon, Home, MockServer, Reply, Service, SocketClient, ctl, sse};
use serde_json::{Value, json};

use crate::support::{assert_says, complaint};

const THIS_TIME: &str = "Trust it this time";
const ALWAYS: &str = "Always trust this folder";
const NOT_NOW: &str = "Not now";
const NEVER: &str = "Never trust this folder";

/// A home with a project whose settings change the output of every shell command.
fn home_with_project() -> Home {
    let home = Home::new();
    home.write(".pi/settings.json", &json!({"shellCommandPrefix": "echo trusted"}).to_string());
    home
}

fn hello(client: &mut SocketClient, name: &str, capabilities: Value) -> Value {
    client.done(json!({
        "type": "hello", "protocol": 1, "client": {"name": name}, "capabilities": capabilities,
    }))
}

/// A client that answers dialogs.
fn asked(service: &Service, name: &str) -> SocketClient {
    let mut client = service.client();
    hello(&mut client, name, json!({"sessions": true, "ui": true}));
    client
}

fn open(client: &mut SocketClient, home: &Home) -> String {
    let opened = client.done(json!({"type": "open_session", "cwd": home.project()}));
    opened["sessionId"].as_str().expect("an id").to_owned()
}

fn answer(question: &Value, value: &str) -> Value {
    json!({"type": "extension_ui_response", "id": question["id"], "value": value})
}

/// Returns `true` if the session applies the project's settings to its commands.
fn is_trusted(client: &mut SocketClient, session: &str) -> bool {
    let ran = client.done(json!({"type": "bash", "sessionId": session, "command": "true"}));
    match ran["output"].as_str().expect("an output") {
        "trusted\n" | "trusted" => true,
        output => {
            assert!(!output.contains("trusted"), "{output}");
            false
        }
    }
}

/// Waits until an answer has taken effect; this client's answer is refused where it did not.
fn until_resolved(client: &mut SocketClient, question: &Value) -> Value {
    let resolved = client.event("ui_request_resolved");
    assert_eq!(resolved["id"], question["id"]);
    resolved
}

/// Waits for the notice about the effect of an answer.
fn until_told(client: &mut SocketClient, what: &str) {
    let told = client.until("a notice", |line| line["method"] == "notify");
    assert_says(told["message"].as_str().expect("a message"), &[what]);
}

fn trust_file(home: &Home) -> Option<Value> {
    let text = fs::read_to_string(home.agent_dir().join("trust.json")).ok()?;
    Some(serde_json::from_str(&text).expect("trust.json is JSON"))
}

fn project_key(home: &Home) -> String {
    home.project().display().to_string()
}

#[test]
fn trust_for_a_time_is_not_saved() {
    let home = home_with_project();
    let service = Service::start(&home, &[]);
    let mut client = asked(&service, "one");
    let id = open(&mut client, &home);
    let question = client.event("extension_ui_request");
    assert_eq!((&question["method"], &question["sessionId"]), (&json!("select"), &json!(id)));
    assert!(question["seq"].is_u64());
    assert_eq!(question["options"], json!([THIS_TIME, ALWAYS, NOT_NOW, NEVER]));
    assert_says(question["title"].as_str().expect("a title"), &[&project_key(&home), ".pi/settings.json"]);
    // Without an answer the settings are not used, and nothing waits for it.
    assert!(!is_trusted(&mut client, &id));
    client.send(&answer(&question, THIS_TIME));
    assert_eq!(until_resolved(&mut client, &question)["by"], "one");
    until_told(&mut client, "count from now on");
    assert!(is_trusted(&mut client, &id));
    assert_eq!(trust_file(&home), None);
    // Each session asks its own question.
    open(&mut client, &home);
    client.event("extension_ui_request");
}

#[test]
fn trust_for_ever_is_saved_and_nobody_is_asked_again() {
    for (chosen, trusted) in [(ALWAYS, true), (NEVER, false)] {
        let home = home_with_project();
        let service = Service::start(&home, &[]);
        let mut client = asked(&service, "one");
        let id = open(&mut client, &home);
        let question = client.event("extension_ui_request");
        client.send(&answer(&question, chosen));
        until_resolved(&mut client, &question);
        until_told(&mut client, if trusted { "count from now on" } else { "not used" });
        assert_eq!(is_trusted(&mut client, &id), trusted, "{chosen}");
        assert_eq!(trust_file(&home), Some(json!({project_key(&home): trusted})));
        let next = open(&mut client, &home);
        assert_eq!(is_trusted(&mut client, &next), trusted, "{chosen}");
        let attached = client.done(json!({"type": "attach_session", "sessionId": next}));
        assert_eq!(attached["pendingUi"], json!([]));
    }
}

#[test]
fn not_now_leaves_everything_as_it_is() {
    let home = home_with_project();
    let service = Service::start(&home, &[]);
    let mut client = asked(&service, "one");
    let id = open(&mut client, &home);
    let question = client.event("extension_ui_request");
    // `cancelled` wins over a value.
    let mut cancelled = answer(&question, ALWAYS);
    cancelled["cancelled"] = json!(true);
    client.send(&cancelled);
    until_resolved(&mut client, &question);
    assert!(!is_trusted(&mut client, &id));
    assert_eq!(trust_file(&home), None);
    // The question is not repeated to clients that join.
    let attached = client.done(json!({"type": "attach_session", "sessionId": id}));
    assert_eq!(attached["pendingUi"], json!([]));
}

#[test]
fn the_first_answer_of_several_clients_counts() {
    let home = home_with_project();
    let service = Service::start(&home, &[]);
    let mut first = asked(&service, "first");
    let id = open(&mut first, &home);
    let question = first.event("extension_ui_request");
    // A client that joins later finds the question in its snapshot.
    let mut second = asked(&service, "second");
    let attached = second.done(json!({"type": "attach_session", "sessionId": id}));
    let pending = attached["pendingUi"].as_array().expect("a list");
    assert_eq!((pending.len(), &pending[0]["id"]), (1, &question["id"]));
    assert_eq!(pending[0]["title"], question["title"]);
    // An observer's answer is refused; an answer for another session is ignored.
    let mut observer = service.client();
    observer.done(json!({"type": "hello", "protocol": 1, "capabilities": {"sessions": true, "ui": true}, "role": "observe"}));
    observer.done(json!({"type": "attach_session", "sessionId": id}));
    let mut forbidden = answer(&question, NEVER);
    forbidden["type"] = json!("extension_ui_response");
    observer.send(&forbidden);
    let refused = observer.until("a refusal", |line| line["type"] == "response");
    assert_eq!((&refused["code"], &refused["success"]), (&json!("forbidden"), &json!(false)));
    assert_says(&complaint(&refused), &["observe", "control"]);
    second.send(&json!({"type": "extension_ui_response", "id": "unknown", "value": ALWAYS}));
    second.send(&json!({"type": "extension_ui_response", "id": question["id"], "sessionId": "other", "value": ALWAYS}));
    second.send(&answer(&question, THIS_TIME));
    for client in [&mut first, &mut second, &mut observer] {
        assert_eq!(until_resolved(client, &question)["by"], "second");
    }
    first.send(&answer(&question, NEVER));
    until_told(&mut first, "count from now on");
    assert!(is_trusted(&mut first, &id));
    assert_eq!(trust_file(&home), None);
}

#[test]
fn a_question_that_nobody_can_answer_ends_by_itself() {
    let home = home_with_project();
    home.settings(&json!({"daemon": {"uiTimeoutMs": 500, "idleUnloadMs": 1}}));
    let service = Service::start(&home, &[]);
    let mut watcher = service.client();
    hello(&mut watcher, "watcher", json!({"sessions": true}));
    let mut client = asked(&service, "one");
    let id = open(&mut client, &home);
    let question = client.event("extension_ui_request");
    // The watcher receives the event, since it counts events, but is not asked.
    let attached = watcher.done(json!({"type": "attach_session", "sessionId": id}));
    assert_eq!(attached["pendingUi"][0]["id"], question["id"]);
    client.end_input();
    let resolved = until_resolved(&mut watcher, &question);
    assert_eq!(resolved.get("by"), None);
    assert_eq!(trust_file(&home), None);
}

#[test]
fn plain_clients_hear_nothing_of_it() {
    let home = home_with_project();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let ran = daemon.done(json!({"type": "bash", "command": "true"}));
    assert!(!ran["output"].as_str().expect("an output").contains("trusted"));
    // Stray answers are ignored, whatever they contain.
    for stray in [json!({"id": "x", "value": "a"}), json!({"id": 3}), json!({})] {
        let mut stray = stray;
        stray["type"] = json!("extension_ui_response");
        daemon.send(&stray);
    }
    daemon.done(json!({"type": "get_state"}));
    let ended = daemon.close();
    assert_eq!((ended.rest, ended.stderr.as_str()), (Vec::new(), ""));
}

/// A host that announces `ui` is asked, even if its session existed before.
#[test]
fn a_host_that_answers_is_asked() {
    let home = home_with_project();
    let mut daemon = Daemon::start(&home, &["--no-session"]);
    let hello = daemon.done(json!({"type": "hello", "protocol": 1, "capabilities": {"ui": true}}));
    assert!(hello["capabilities"].as_array().expect("a list").contains(&json!("ui")));
    let question = daemon.event("extension_ui_request");
    // Without `sessions` the event has the plain form.
    assert_eq!((question.get("seq"), question.get("sessionId")), (None, None));
    daemon.send(&answer(&question, NOT_NOW));
    let ended = daemon.close();
    assert!(ended.rest.iter().all(|line| line["type"] != "ui_request_resolved"));
}

/// New settings apply after the running run.
#[test]
fn a_run_keeps_the_settings_that_it_began_with() {
    let gate = agentd_e2e::Gate::new();
    let server = MockServer::start([
        Reply::stream(sse::text("Wait")).gate(&gate).then(sse::end("stop", (1, 0, 1))),
        Reply::stream(sse::answer("Done.")),
    ]);
    let home = Home::with_model(&server);
    home.write(".pi/SYSTEM.md", "Be as the project wants it.");
    let service = Service::start(&home, &[]);
    let mut client = asked(&service, "one");
    let id = open(&mut client, &home);
    let question = client.event("extension_ui_request");
    let prompt = |text: &str| json!({"type": "prompt", "sessionId": id, "message": text});
    client.done(prompt("First"));
    client.until("a delta", |line| line["assistantMessageEvent"]["type"] == "text_delta");
    client.send(&answer(&question, THIS_TIME));
    until_resolved(&mut client, &question);
    gate.open();
    // The notice and the end of the run come in this order.
    let place = |lines: &[Value], key: &str, value: &str| lines.iter().position(|line| line[key] == value);
    let mut lines = Vec::new();
    while place(&lines, "method", "notify").is_none() || place(&lines, "type", "agent_settled").is_none() {
        lines.push(client.line());
    }
    assert!(place(&lines, "method", "notify") > place(&lines, "type", "agent_end"));
    let says =
        |lines: &[Value]| lines.iter().any(|line| line.to_string().contains("as the project wants it"));
    assert!(!says(&lines));
    client.done(prompt("Second"));
    assert!(says(&client.settled()));
}

#[test]
fn agentctl_attach_asks_and_answers() {
    let home = home_with_project();
    let service = Service::start(&home, &[]);
    let mut client = asked(&service, "editor");
    let id = open(&mut client, &home);
    let question = client.event("extension_ui_request");
    let mut attached = Ctl::start_with(ctl::command(&home, &["attach", &id]), std::process::Stdio::piped());
    attached.wait_for_stderr("  4. Never trust this folder");
    attached.type_line("seven");
    attached.wait_for_stderr("Type a number from 1 to 4");
    attached.type_line("1");
    assert_eq!(until_resolved(&mut client, &question)["by"], "agentctl");
    until_told(&mut client, "count from now on");
    assert!(is_trusted(&mut client, &id));
    // Another client answers the next question.
    let other = open(&mut client, &home);
    let question = client.event("extension_ui_request");
    let mut second = Ctl::start_with(ctl::command(&home, &["attach", &other]), std::process::Stdio::piped());
    second.wait_for_stderr("? Trust the project");
    client.send(&answer(&question, NOT_NOW));
    second.wait_for_stderr("Answered by editor.");
}

/// `agentctl prompt` asks at a terminal, too; the answer goes on meanwhile.
#[test]
fn agentctl_prompt_asks_on_a_terminal() {
    let gate = agentd_e2e::Gate::new();
    let server =
        MockServer::start([Reply::stream(sse::text("Wait")).gate(&gate).then(sse::end("stop", (1, 0, 1)))]);
    let home = Home::with_model(&server);
    home.write(".pi/SYSTEM.md", "Be as the project wants it.");
    let service = Service::start(&home, &[]);
    let mut terminal =
        agentd_e2e::Terminal::start(&home, &agentd_e2e::binaries::agentctl(), &["prompt", "Hi"]);
    terminal.wait_for("Type a number from 1 to 4");
    terminal.press("4\n");
    terminal.wait_for("are not used, now and in later sessions");
    gate.open();
    let done = terminal.finish();
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(trust_file(&home), Some(json!({project_key(&home): false})));
    // Without a terminal there is no question.
    let other = home_with_project();
    let _service = Service::start(&other, &[]);
    let said = ctl::run(&other, &["prompt", "--model", "demo/demo", "Hi"]);
    assert!(said.code == 0 && !said.stderr.contains("Trust"), "{said:?}");
    drop(service);
}
