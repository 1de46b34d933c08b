//! What a server says and asks.

use std::sync::{Arc, PoisonError};

use agentd_program_log::ProgramLogSource;
use agentd_protocol::text_bounds;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

use super::server_link::{EditRequest, MAX_PROGRESS, MAX_REGISTERED, ServerLink};
use crate::{
    diagnostics::Diagnostic,
    message::{Incoming, RpcError},
    uri::{file_uri, path_of},
};

/// The code of a method that is not known.
const METHOD_NOT_FOUND: i64 = -32601;

/// Questions of a server that are answered at once, at most.
const MAX_ITEMS: usize = 200;

/// The longest text of progress, in bytes.
const MAX_PROGRESS_BYTES: usize = 200;

/// The longest complaint of a server about the project, in bytes.
const MAX_COMPLAINT_BYTES: usize = 1000;

/// The levels of log messages.
const LEVELS: [&str; 5] = ["error", "warning", "info", "log", "debug"];

/// Takes a message of the server. False: the server reads no answers, and is to be ended.
pub(super) fn receive(
    client: &Arc<ServerLink>,
    message: Incoming,
    log: &ProgramLogSource,
    tasks: &TaskTracker,
) -> bool {
    match message {
        Incoming::Response { id, result } => {
            client.connection.answered(id, result);
            true
        }
        Incoming::Notification { method, params } => {
            notified(client, &method, &params, log);
            true
        }
        Incoming::Request { id, method, params } => match method.as_str() {
            "workspace/applyEdit" => {
                apply_edit(client, id, params, tasks);
                true
            }
            _ => client.connection.respond(&id, answer(client, &method, &params)),
        },
    }
}

fn notified(client: &ServerLink, method: &str, params: &Value, log: &ProgramLogSource) {
    match method {
        "textDocument/publishDiagnostics" => {
            let path = params.get("uri").and_then(Value::as_str).and_then(path_of);
            let Some(path) = path else { return };
            let items = Diagnostic::list(params.get("diagnostics"));
            client.state().diagnostics.push(path, params.get("version").and_then(Value::as_i64), items);
        }
        "$/progress" => progress(client, params),
        "experimental/serverStatus" => {
            let is_done = params.get("quiescent").and_then(Value::as_bool).unwrap_or(true);
            let text = |name: &str| params.get(name).and_then(Value::as_str).unwrap_or_default();
            let said = text_bounds::head(text("message").trim(), MAX_COMPLAINT_BYTES).to_owned();
            let mut state = client.state();
            state.is_loading = !is_done;
            state.complaint = (text("health") != "ok" && !said.is_empty()).then_some(said);
        }
        "window/logMessage" | "window/showMessage" => {
            let level = params.get("type").and_then(Value::as_u64).unwrap_or(3);
            let level = usize::try_from(level).ok().and_then(|level| LEVELS.get(level.checked_sub(1)?));
            let text = params.get("message").cloned().unwrap_or_default();
            log.message(level.unwrap_or(&"info"), None, &text);
            let text = text.as_str().unwrap_or_default();
            if !client.has_read(|awaited| text.contains(awaited)) {
                // It says nothing of files.
                return;
            }
        }
        _ => return,
    }
    client.tell();
}

/// Keeps which work is under way. `params.token` names it.
fn progress(client: &ServerLink, params: &Value) {
    let Some(token) = params.get("token").map(Value::to_string) else { return };
    let Some(value) = params.get("value") else { return };
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let mut state = client.state();
    match text("kind") {
        "begin" if state.progress.len() < MAX_PROGRESS => {
            let said = [text("title"), text("message")].join(" ");
            let said = text_bounds::head(said.trim(), MAX_PROGRESS_BYTES).to_owned();
            state.progress.retain(|(known, _)| *known != token);
            state.progress.push((token, said));
        }
        "end" => state.progress.retain(|(known, _)| *known != token),
        _ => {}
    }
}

/// The answer to a request of the server that needs nobody else.
fn answer(client: &ServerLink, method: &str, params: &Value) -> Result<Value, RpcError> {
    match method {
        "workspace/configuration" => {
            let items = params.get("items").and_then(Value::as_array);
            let sections = items.into_iter().flatten().take(MAX_ITEMS).map(|item| item.get("section"));
            let value =
                |section: Option<&Value>| section_of(&client.settings, section.and_then(Value::as_str));
            Ok(sections.map(value).collect())
        }
        "workspace/workspaceFolders" => Ok(json!([folder(client)])),
        "client/registerCapability" => {
            let list = params.get("registrations").and_then(Value::as_array);
            let mut state = client.state();
            for registration in list.into_iter().flatten() {
                let text = |name: &str| registration.get(name).and_then(Value::as_str).map(str::to_owned);
                if let (Some(id), Some(method)) = (text("id"), text("method"))
                    && state.registered.len() < MAX_REGISTERED
                {
                    state.registered.push((id, method));
                }
            }
            drop(state);
            client.tell();
            Ok(Value::Null)
        }
        "client/unregisterCapability" => {
            // The protocol's own word is misspelt.
            let list = params.get("unregisterations").or_else(|| params.get("unregistrations"));
            let ids = list.and_then(Value::as_array).into_iter().flatten();
            let ids: Vec<&str> = ids.filter_map(|it| it.get("id")?.as_str()).collect();
            client.state().registered.retain(|(id, _)| !ids.contains(&id.as_str()));
            Ok(Value::Null)
        }
        "workspace/diagnostic/refresh" => {
            client.tell();
            Ok(Value::Null)
        }
        // Nobody is there who could choose: as if the question was closed.
        "window/workDoneProgress/create"
        | "window/showMessageRequest"
        | "workspace/semanticTokens/refresh"
        | "workspace/inlayHint/refresh"
        | "workspace/codeLens/refresh"
        | "workspace/inlineValue/refresh"
        | "workspace/foldingRange/refresh" => Ok(Value::Null),
        "window/showDocument" => Ok(json!({"success": false})),
        _ => Err(RpcError { code: METHOD_NOT_FOUND, message: format!("{method} is not supported") }),
    }
}

/// The folder that the server works in, as the protocol has it.
pub(super) fn folder(client: &ServerLink) -> Value {
    let name = client.root.file_name().map_or_else(|| "/".into(), |name| name.to_string_lossy());
    json!({"uri": file_uri(&client.root), "name": name})
}

/// The settings of a section: what stands below its name, its parts by dots; else all of them where the section is the name of nothing.
fn section_of(settings: &Value, section: Option<&str>) -> Value {
    let Some(section) = section.filter(|section| !section.is_empty()) else { return settings.clone() };
    if let Some(whole) = settings.get(section) {
        return whole.clone();
    }
    let found = section.split('.').try_fold(settings, |value, part| value.get(part));
    found.cloned().unwrap_or(Value::Null)
}

/// Has an edit made that belongs to a command which is executed for a call. Nobody else may change files.
fn apply_edit(client: &Arc<ServerLink>, id: Value, params: Value, tasks: &TaskTracker) {
    let sender = client.edits.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let client = Arc::clone(client);
    tasks.spawn(async move {
        let applied = async {
            let sender = sender.ok_or("no command is being executed")?;
            let (answer, answered) = oneshot::channel();
            let edit = params.get("edit").cloned().unwrap_or_default();
            let sent = sender.try_send(EditRequest { edit, answer });
            sent.map_err(|_| "no command is being executed")?;
            answered.await.map_err(|_| "the call has ended".to_owned()).and_then(|applied| applied)
        };
        let response = match client.over.run_until_cancelled(applied).await {
            Some(Ok(())) => json!({"applied": true}),
            Some(Err(why)) => json!({"applied": false, "failureReason": why}),
            None => return,
        };
        if !client.connection.respond(&id, Ok(response)) {
            client.connection.close("it does not read its input");
            client.over.cancel();
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_found_by_their_section() {
        let settings = json!({"python": {"analysis": {"mode": "strict"}}, "a.b": 1});
        let of = |section| section_of(&settings, section);
        assert_eq!(of(Some("python.analysis")), json!({"mode": "strict"}));
        assert_eq!(of(Some("a.b")), json!(1));
        assert_eq!(of(Some("go")), Value::Null);
        assert_eq!(of(None), settings);
    }
}
