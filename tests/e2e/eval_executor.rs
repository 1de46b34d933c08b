//! A client that runs the cells of `eval`, on the real binaries.

use agentd_e2e::{Daemon, Home, MockServer, Reply, Service, sse};
use serde_json::{Value, json};

use crate::support::{assert_says, complaint, ended, text};

fn cell(arguments: Value) -> Reply {
    Reply::stream(sse::calls(&[("c1", "eval", arguments)]))
}

fn done() -> Reply {
    Reply::stream(sse::answer("Ok."))
}

/// A home whose sessions have the tool for Python and JavaScript, by interpreters that no test starts.
fn home(model: &MockServer, more: Value) -> Home {
    let home = Home::with_model(model);
    let mut settings = json!({"eval": {"enabled": true, "languages": ["py", "js"]}});
    settings.as_object_mut().expect("settings").extend(more.as_object().expect("settings").clone());
    home.settings(&settings);
    home
}

/// A daemon whose client runs cells of Python.
fn started(home: &Home) -> Daemon {
    let mut daemon = Daemon::start(home, &["--ready"]);
    let set = daemon.done(json!({"type": "set_eval_executor", "languages": ["py", "jupyter:ir", "py"]}));
    assert_eq!(set, json!({"languages": ["py", "jupyter:ir"]}));
    daemon
}

/// Sends a prompt, and waits for the cell that its model wants to run.
fn request(daemon: &mut Daemon) -> Value {
    daemon.send(&json!({"id": "p", "type": "prompt", "message": "Go."}));
    daemon.event("eval_request")
}

/// The only result of a prompt.
fn result(lines: &[Value]) -> Value {
    let results = ended(lines, "toolResult");
    assert_eq!(results.len(), 1, "{results:?}");
    results[0].clone()
}

#[test]
fn a_cell_goes_to_the_client_and_what_it_prints_and_shows_to_the_model() {
    const PNG: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGNgYGAAAAAEAAH2FzhVAAAAAElFTkSuQmCC";
    let arguments = json!({"language": "py", "code": "1 + 1", "title": "A sum", "timeout": 7, "reset": true});
    let model = MockServer::start([cell(arguments), done()]);
    let home = home(&model, json!({}));
    let mut daemon = started(&home);
    daemon.send(&json!({"id": "p", "type": "prompt", "message": "Go."}));
    let lines = daemon.all_until("a cell", |line| line["type"] == "eval_request");
    assert!(lines.iter().any(|line| line["type"] == "tool_execution_start"), "{lines:?}");
    let mut request = lines.last().expect("the request").clone();
    let (id, session) = (request["id"].take(), request["sessionId"].take());
    assert!(id.is_string() && session.is_string());
    assert_eq!(
        request,
        json!({
            "type": "eval_request", "id": null, "toolCallId": "c1", "language": "py", "code": "1 + 1", "title": "A sum",
            "timeout": 7.0, "reset": true, "cwd": home.project().display().to_string(), "sessionId": null,
        })
    );
    daemon.send(&json!({"type": "eval_output", "id": id, "text": "first\n"}));
    daemon.send(&json!({"type": "eval_output", "id": id, "text": "second\n"}));
    daemon.send(&json!({"type": "eval_result", "id": id, "content": [
        {"type": "text", "text": "2"}, {"type": "image", "data": PNG, "mimeType": "image/png"},
    ]}));
    let lines = daemon.settled();
    assert!(!lines.iter().any(|line| line["type"] == "response"), "answers have no response: {lines:?}");
    let result = result(&lines);
    assert_eq!((text(&result).as_str(), &result["isError"]), ("first\nsecond\n2", &json!(false)));
    assert_eq!(
        (&result["content"][1]["type"], &result["content"][1]["data"]),
        (&json!("image"), &json!(PNG))
    );
    let cell = &result["details"]["cells"][0];
    assert_eq!((&cell["status"], &cell["code"]), (&json!("complete"), &json!("1 + 1")));
    let late = json!({"id": id, "type": "eval_output", "text": "late"});
    daemon.send(&late);
    let refused = daemon.all_until("a refusal", |line| line["type"] == "response" && line["id"] == id);
    let refused = refused.last().expect("the refusal");
    assert_eq!((&refused["command"], &refused["code"]), (&json!("eval_output"), &json!("not_found")));
}

#[test]
fn a_failure_reaches_the_model_and_an_answer_of_another_form_ends_the_cell() {
    let py = || cell(json!({"language": "py", "code": "x"}));
    let model = MockServer::start([py(), done(), py(), done()]);
    let home = home(&model, json!({}));
    let mut daemon = started(&home);
    let first = request(&mut daemon);
    assert!(first.get("title").is_none() && first.get("reset").is_none(), "{first}");
    assert_eq!(first["timeout"], 30.0);
    daemon.send(&json!({"type": "eval_output", "id": first["id"], "text": "so far\n"}));
    daemon.send(&json!({"type": "eval_result", "id": first["id"], "error": "NameError: x"}));
    let failed = result(&daemon.settled());
    assert_eq!((text(&failed).as_str(), &failed["isError"]), ("so far\n\n\nNameError: x", &json!(true)));
    let second = request(&mut daemon);
    daemon.send(&json!({"type": "eval_result", "id": second["id"], "content": "no list"}));
    let lines = daemon.settled();
    let refused = lines.iter().find(|line| line["type"] == "response").expect("the refusal");
    assert_eq!((&refused["command"], &refused["code"]), (&json!("eval_result"), &json!("invalid_field")));
    assert_says(
        &text(&result(&lines)),
        &["The client that runs the cell gave an answer that cannot be used", "The cell was not repeated"],
    );
}

#[test]
fn time_limits_and_aborts_reach_the_client() {
    let model = MockServer::start([
        cell(json!({"language": "py", "code": "slow()", "timeout": 1})),
        done(),
        cell(json!({"language": "py", "code": "slow()", "timeout": 0})),
    ]);
    let home = home(&model, json!({}));
    let mut daemon = started(&home);
    let first = request(&mut daemon);
    let cancel = daemon.event("eval_cancel");
    assert_eq!((&cancel["targetId"], &cancel["reason"]), (&first["id"], &json!("timeout")));
    let late = result(&daemon.settled());
    assert_eq!(text(&late), "Cell timed out after 1 seconds: the client that runs it was told to stop it");
    let second = request(&mut daemon);
    assert!(second.get("timeout").is_none(), "{second}");
    daemon.send(&json!({"type": "abort"}));
    let lines = daemon.settled();
    let cancel = lines.iter().find(|line| line["type"] == "eval_cancel").expect("it is told");
    assert_eq!((&cancel["targetId"], &cancel["reason"]), (&second["id"], &json!("aborted")));
    assert!(text(&result(&lines)).contains("aborted"), "{lines:?}");
}

#[test]
fn permissions_are_asked_as_for_a_kernel_and_a_rule_keeps_cells_from_the_client() {
    let model = MockServer::start([cell(json!({"language": "py", "code": "1"})), done()]);
    let rule = json!({"tool": "eval", "action": "deny"});
    let home = home(&model, json!({"permissions": {"preset": "full", "rules": [rule]}}));
    let mut daemon = started(&home);
    daemon.send(&json!({"id": "p", "type": "prompt", "message": "Go."}));
    let lines = daemon.settled();
    assert!(!lines.iter().any(|line| line["type"] == "eval_request"), "{lines:?}");
    assert!(text(&result(&lines)).contains("Permission denied"), "{lines:?}");
}

#[test]
fn without_the_client_a_kernel_runs_the_cell_as_before() {
    let print = || cell(json!({"language": "py", "code": "print(6 * 7)"}));
    let model = MockServer::start([print(), done(), print(), done(), print(), done()]);
    let home = home(&model, json!({}));
    let service = Service::start(&home, &[]);
    let mut runner = service.client();
    runner.done(json!({"type": "hello", "protocol": 1, "client": {"name": "notebook"}, "capabilities": {"sessions": true}}));
    let opened = runner.done(json!({"type": "open_session", "cwd": home.project()}));
    let session = opened["sessionId"].clone();
    runner.done(json!({"type": "set_eval_executor", "languages": ["py"]}));
    let mut other = service.client();
    other.done(json!({"type": "hello", "protocol": 1, "client": {"name": "other"}, "capabilities": {"sessions": true}}));
    other.done(json!({"type": "attach_session", "sessionId": session}));
    let taken = other.refused(json!({"type": "set_eval_executor", "languages": ["py"]}));
    assert_says(&complaint(&taken), &["Cells of py are run by another client (notebook)."]);
    // One that leaves in the middle ends its cell.
    other.send(&json!({"id": "p", "type": "prompt", "message": "Go."}));
    runner.event("eval_request");
    drop(runner);
    let left = result(&other.settled());
    assert_eq!(left["isError"], true);
    assert_says(
        &text(&left),
        &["The client that runs cells of py has disconnected.", "The cell was not repeated"],
    );
    other.send(&json!({"id": "p", "type": "prompt", "message": "Go."}));
    assert_eq!(text(&result(&other.settled())), "42\n");
    // A client that takes its offer back gets no more cells.
    other.done(json!({"type": "set_eval_executor", "languages": ["py"]}));
    other.done(json!({"type": "set_eval_executor", "languages": []}));
    other.send(&json!({"id": "p", "type": "prompt", "message": "Go."}));
    assert_eq!(text(&result(&other.settled())), "42\n");
}

#[test]
fn what_is_no_language_is_refused() {
    let model = MockServer::start([]);
    let home = home(&model, json!({}));
    let mut daemon = Daemon::start(&home, &["--ready"]);
    let refused = daemon.refused(json!({"type": "set_eval_executor", "languages": ["py", "cobol"]}));
    assert_eq!(refused["code"], "invalid_field");
    assert_says(&complaint(&refused), &["languages[1]", "py, js or jupyter:NAME"]);
}
