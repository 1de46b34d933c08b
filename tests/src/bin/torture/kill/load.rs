//! Clients that do everything at once until the daemon is gone.

use std::{
    path::PathBuf,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use agentd_e2e::Random;
use serde_json::{Value, json};

use super::{check::Open, client::Client, model_server::script};

/// The time that a client waits for a response before it goes on.
const SOON: Duration = Duration::from_millis(400);

/// The most sessions of a round.
const SESSIONS: usize = 8;

/// The state that the clients of a round share.
pub(crate) struct Stage {
    pub(crate) project: PathBuf,
    pub(crate) open: Mutex<Vec<Open>>,
    /// The part of the daemon to keep busy: the first part of a fail point's name.
    pub(crate) focus: Option<String>,
    pub(crate) token: String,
    /// A prefix for unique names.
    pub(crate) prefix: String,
    pub(crate) over: AtomicBool,
}

/// Actions and their weights.
const ACTIONS: &[(&str, u64)] = &[
    ("prompt", 30),
    ("steer", 8),
    ("follow_up", 6),
    ("clear_queue", 1),
    ("bash", 6),
    ("abort", 4),
    ("open", 6),
    ("name", 4),
    ("label", 3),
    ("model", 3),
    ("setting", 4),
    ("login", 2),
    ("compact", 2),
    ("fork", 3),
    ("clone", 3),
    ("navigate", 2),
    ("export", 2),
    ("delete", 2),
    ("catalogue", 1),
    ("tools", 2),
    ("look", 4),
];

/// The actions that keep a part of the daemon busy.
fn focused(part: &str) -> &'static [&'static str] {
    match part {
        "settings" => &["setting"],
        "auth" => &["login"],
        "models" | "catalogue" => &["catalogue"],
        "artifact" | "spill" | "process" => &["prompt", "bash"],
        "delete" => &["delete", "prompt"],
        "fork" | "copy" => &["fork", "clone", "prompt"],
        "export" => &["export", "prompt"],
        "trust" => &["open"],
        _ => &["prompt"],
    }
}

/// Sends commands until the daemon is gone or the load is over.
pub(crate) fn drive(client: &mut Client, stage: &Stage, mut random: Random, name: &str) {
    let answers = stage.focus.as_deref() == Some("trust");
    let capabilities = json!({"sessions": true, "ui": answers});
    if client.call(json!({"type": "hello", "protocol": 1, "capabilities": capabilities}), SOON).is_none() {
        return;
    }
    if answers {
        // Without a question there is nothing to answer.
        let _ = trust(client, stage);
    }
    for number in 0.. {
        if stage.over.load(Ordering::Relaxed) || client.is_closed() {
            return;
        }
        let unique = format!("{}{name}{number}", stage.prefix);
        let action = match &stage.focus {
            Some(part) if random.chance(50) => random.pick(focused(part)),
            _ => weighted(&mut random),
        };
        let done = match session(client, stage, &mut random, &unique, action == "open") {
            Some(id) => act(client, stage, &mut random, action, &id, &unique),
            None => None,
        };
        if done.is_none() && client.is_closed() {
            return;
        }
        // Pauses now and then.
        if random.chance(40) {
            thread::sleep(Duration::from_micros(random.below(0..4_000)));
        }
    }
}

/// Opens a session, and answers its question about trust with yes.
fn trust(client: &mut Client, stage: &Stage) -> Option<()> {
    let from = client.heard();
    client.call(json!({"type": "open_session", "cwd": stage.project}), SOON)?;
    let asked = client
        .wait(from, SOON, |line| line["type"] == "extension_ui_request" && line["method"] == "select")?;
    let options = asked["options"].as_array()?;
    let always = options.iter().find(|option| option.as_str().is_some_and(|text| text.contains("Always")))?;
    let answer = json!({"type": "extension_ui_response", "value": always});
    client.answer(&asked["id"], answer)
}

fn weighted(random: &mut Random) -> &'static str {
    let mut at = random.below(0..ACTIONS.iter().map(|(_, weight)| weight).sum());
    for (name, weight) in ACTIONS {
        match at.checked_sub(*weight) {
            Some(rest) => at = rest,
            None => return name,
        }
    }
    unreachable!("the number is below the sum")
}

/// A session; a new one if there is none, or if wanted.
fn session(
    client: &mut Client,
    stage: &Stage,
    random: &mut Random,
    unique: &str,
    fresh: bool,
) -> Option<String> {
    {
        let open = stage.open.lock().unwrap();
        if !open.is_empty() && (!fresh || open.len() >= SESSIONS) {
            return Some(random.pick(&open).id.clone());
        }
    }
    let name = random.chance(50).then(|| format!("named {unique}"));
    let opening = json!({"type": "open_session", "cwd": stage.project, "name": name});
    let id = client.call(opening, SOON)?["data"]["sessionId"].as_str()?.to_owned();
    stage.open.lock().unwrap().push(Open { id: id.clone() });
    Some(id)
}

/// Does one action. `None` if it had no effect.
fn act(
    client: &mut Client,
    stage: &Stage,
    random: &mut Random,
    action: &str,
    id: &str,
    unique: &str,
) -> Option<()> {
    let command = |kind: &str, more: Value| {
        let mut command = json!({"type": kind, "sessionId": id});
        for (key, value) in more.as_object().into_iter().flatten() {
            command[key] = value.clone();
        }
        command
    };
    let keyed =
        |kind: &str| command(kind, json!({"message": format!("Say {unique}."), "requestKey": unique}));
    let sent = match action {
        "prompt" => {
            let mut prompt = keyed("prompt");
            if random.chance(30) {
                prompt["streamingBehavior"] = json!(random.pick(&["steer", "followUp"]));
            }
            prompt
        }
        "steer" | "follow_up" => keyed(action),
        "clear_queue" => command(action, json!({})),
        "bash" => {
            let line = if random.chance(30) {
                "seq 1 20000".to_owned()
            } else {
                script(random, unique, &stage.token)
            };
            // The response comes at the end of the command, if at all.
            client.send(command("bash", json!({"command": line, "requestKey": unique})))?;
            return Some(());
        }
        "abort" => {
            let scope = random.pick(&[Value::Null, json!("turn"), json!("tools"), json!("all")]).clone();
            if random.chance(30) {
                command("abort_bash", json!({}))
            } else {
                command("abort", json!({"scope": scope}))
            }
        }
        "name" => command("set_session_name", json!({"name": format!("name {unique}")})),
        "model" => {
            command("set_model", json!({"provider": "fake", "modelId": random.pick(&["fake", "other"])}))
        }
        "setting" => match random.below(0..4) {
            0 => command("set_auto_retry", json!({"enabled": random.chance(50)})),
            1 => command("set_steering_mode", json!({"mode": random.pick(&["all", "one-at-a-time"])})),
            2 => command("set_follow_up_mode", json!({"mode": random.pick(&["all", "one-at-a-time"])})),
            _ => command("set_auto_compaction", json!({"enabled": random.chance(50)})),
        },
        "login" if random.chance(25) => json!({"type": "logout", "provider": "other"}),
        "login" => {
            json!({"type": "login", "provider": random.pick(&["fake", "other"]), "key": format!("key-{unique}"), "force": true})
        }
        "compact" => command("compact", json!({})),
        "export" => command("export_html", json!({"outputPath": format!("page-{unique}.html")})),
        "catalogue" if random.chance(30) => json!({"type": "update_models", "reset": true}),
        "catalogue" => json!({"type": "update_models", "text": CATALOGUE}),
        "tools" => {
            let tools = random
                .pick(&[json!(["bash", "read", "edit", "write", "ls"]), json!(["bash", "write"])])
                .clone();
            command("set_active_tools", json!({"tools": tools}))
        }
        "label" | "navigate" => {
            let entries = client.call(command("get_entries", json!({})), SOON)?;
            let entries = entries["data"]["entries"].as_array()?.clone();
            let entry = entries.get(random.index(entries.len().max(1)))?["id"].clone();
            if action == "label" {
                command("set_label", json!({"entryId": entry, "label": format!("label {unique}")}))
            } else {
                command("navigate_tree", json!({"entryId": entry}))
            }
        }
        "fork" | "clone" => return copy(client, stage, random, action, id),
        "delete" => {
            client.call(command("close_session", json!({"mode": "abort"})), SOON)?;
            stage.open.lock().unwrap().retain(|open| open.id != id);
            command("delete_session", json!({}))
        }
        _ => {
            let kind =
                random.pick(&["get_state", "get_messages", "list_sessions", "get_tree", "attach_session"]);
            command(kind, json!({}))
        }
    };
    if random.chance(60) {
        client.call(sent, SOON)?;
    } else {
        client.send(sent)?;
    }
    Some(())
}

/// Continues in a copy of the session.
fn copy(client: &mut Client, stage: &Stage, random: &mut Random, action: &str, id: &str) -> Option<()> {
    if stage.open.lock().unwrap().len() >= SESSIONS + 3 {
        return None;
    }
    let asked = if action == "fork" {
        let messages = client.call(json!({"type": "get_fork_messages", "sessionId": id}), SOON)?;
        let messages = messages["data"]["messages"].as_array()?.clone();
        let entry = messages.get(random.index(messages.len().max(1)))?["entryId"].clone();
        json!({"type": "fork", "sessionId": id, "entryId": entry})
    } else {
        json!({"type": "clone", "sessionId": id})
    };
    if client.call(asked, SOON)?["success"] != true {
        return None;
    }
    // Asks the copy: others may have navigated in the original meanwhile. With an answer it is a conversation.
    let last = client.call(json!({"type": "get_last_assistant_text"}), SOON)?;
    let has_file = last["data"]["text"].is_string();
    let state = client.call(json!({"type": "get_state", "isCopy": has_file}), SOON)?;
    let copy = state["data"]["sessionId"].as_str()?.to_owned();
    stage.open.lock().unwrap().push(Open { id: copy });
    Some(())
}

/// A catalogue that can replace the built-in one.
const CATALOGUE: &str = r#"{"source":"s","defaults":{"p":"m"},"models":[{"id":"m","name":"M","api":"openai-completions",
    "provider":"p","baseUrl":"http://h","input":["text"],"contextWindow":10,"maxTokens":5}]}"#;
