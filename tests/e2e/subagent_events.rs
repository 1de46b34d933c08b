//! All events of subagents in the session that they work for (`subagent_event`), and hooks on them, on the real binaries.

use agentd_e2e::{Daemon, Gate, Home, Reply, Service, sse};
use serde_json::{Value, json};

use crate::{
    subagents::{hand_in, hello, home, is_subagent, last, model, run},
    support::{assert_says, text},
};

#[test]
fn all_events_of_subagents_can_be_followed() {
    let (gate, last_gate) = (Gate::default(), Gate::default());
    let (waiting, at_last) = (gate.clone(), last_gate.clone());
    let model = model(json!({"tasks": [{"name": "A", "task": "Look around."}]}), move |request| {
        if last(request).contains("<task>") {
            Reply::stream(sse::calls(&[("b1", "bash", json!({"command": "echo seen"}))])).gate_first(&waiting)
        } else {
            hand_in(json!("done")).gate_first(&at_last)
        }
    });
    let home = home(&model, json!({}));
    let service = Service::start(&home, &[]);
    let (mut client, mut plain) = (hello(&service), hello(&service));
    let id = client.done(json!({"type": "open_session", "cwd": home.project()}))["sessionId"].clone();
    plain.done(json!({"type": "attach_session", "sessionId": id}));
    // By the name of omp's clients, and before the session has any.
    let set = client.done(json!({"type": "set_subagent_subscription", "level": "events"}));
    assert_eq!(set, json!({"level": "events"}));
    client.send(&json!({"type": "prompt", "message": "Go.", "sessionId": id}));
    client.until("a running subagent", |event| {
        event["type"] == "subagent_lifecycle" && event["subagent"]["status"] == "running"
    });
    let _ = model.wait_for_requests(2);
    gate.open();
    let is_over = |event: &Value| event["type"] == "agent_settled" && event["sessionId"] == id;
    let shows_call = |event: &Value| {
        event["type"] == "subagent_progress"
            && event["payload"]["progress"]["recentTools"][0]["tool"] == "bash"
    };
    let mut lines = client.all_until("a call that has ended", shows_call);
    last_gate.open();
    lines.extend(client.all_until("the end", is_over));
    let of_child: Vec<&Value> = lines.iter().filter(|line| line["type"] == "subagent_event").collect();
    assert!(
        of_child.iter().all(|line| line["payload"]["id"] == "A" && line["sessionId"] == id),
        "{of_child:?}"
    );
    assert!(of_child.iter().all(|line| line.get("seq").is_none()), "they are no events of this session");
    let kinds: Vec<&str> =
        of_child.iter().filter_map(|line| line["payload"]["event"]["type"].as_str()).collect();
    for expected in
        ["message_update", "tool_execution_start", "tool_execution_end", "agent_end", "agent_settled"]
    {
        assert!(kinds.contains(&expected), "{expected} is missing in {kinds:?}");
    }
    let lifecycles: Vec<&Value> = lines
        .iter()
        .filter(|line| line["type"] == "subagent_lifecycle")
        .map(|line| &line["payload"])
        .collect();
    let ended = lifecycles.last().expect("the end of the subagent");
    assert_eq!(
        (&ended["id"], &ended["index"], &ended["agent"], &ended["agentSource"], &ended["status"]),
        (&json!("A"), &json!(0), &json!("task"), &json!("bundled"), &json!("completed"))
    );
    assert!(ended["sessionFile"].is_string() && ended["parentToolCallId"].is_string(), "{ended}");
    let progressed = lines.iter().rfind(|line| line["type"] == "subagent_progress").expect("progress");
    let work = &progressed["payload"]["progress"];
    assert_eq!(
        (&progressed["payload"]["task"], &work["id"], &work["status"]),
        (&json!("Look around."), &json!("A"), &json!("running"))
    );
    assert_says(work["recentTools"][0]["args"].as_str().expect("arguments"), &["echo seen"]);
    for list in ["recentTools", "recentOutput"] {
        assert!(work[list].is_array(), "{work}");
    }
    for number in ["toolCount", "requests", "tokens", "cost", "durationMs"] {
        assert!(work[number].is_number(), "{number} in {work}");
    }
    let place = |kind: &str| kinds.iter().position(|other| *other == kind);
    assert!(place("tool_execution_start") < place("tool_execution_end"), "{kinds:?}");
    // Those who did not ask have none.
    let lines = plain.all_until("the end", is_over);
    assert!(!lines.iter().any(|line| line["type"] == "subagent_event"), "{lines:?}");
    // Nobody hears more than was asked for last.
    client.done(json!({"type": "set_subagent_subscription", "subscription": "progress"}));
    client.send(&json!({"type": "prompt", "message": "Go.", "sessionId": id}));
    let lines = client.all_until("the end", is_over);
    assert!(lines.iter().any(|line| line["type"] == "subagent_lifecycle"), "{lines:?}");
    assert!(!lines.iter().any(|line| line["type"] == "subagent_event"), "{lines:?}");
}

#[test]
fn a_hook_can_stop_a_subagent() {
    let model = model(json!({"tasks": [{"name": "A", "task": "Look around."}]}), |_| {
        Reply::stream(sse::calls(&[("b1", "bash", json!({"command": "echo seen"}))]))
    });
    let home = Home::with_model(&model);
    let stop = json!({"continue": false, "stopReason": "It is enough."}).to_string();
    let hook = json!({"type": "command", "command": format!("cat > /dev/null; echo '{stop}'")});
    home.settings(&json!({
        "task": {"enabled": true}, "hooks": {"PostToolUse": [{"matcher": "Bash", "hooks": [hook]}]},
    }));
    let mut daemon = Daemon::start(&home, &[]);
    let result = run(&mut daemon);
    assert_says(&text(&result), &["## A (task) stopped: the result of a call of bash ended its work"]);
    assert_eq!(model.requests().iter().filter(|request| is_subagent(request)).count(), 1, "no reminders");
}
