//! Fixes and refactorings that a server offers, and carrying one out.

use std::sync::Arc;

use agentd_protocol::tool::ToolResult;
use serde_json::{Value, json};

use super::{Call, CallFile, document};
use crate::{
    client::Client,
    diagnostics::{Diagnostic, Severity},
    position::{Lines, Position, Range},
    workspace_edit::operations,
};

/// Actions that a result lists.
const MAX_LISTED: usize = 60;

/// Edits that one command makes.
const MAX_EDITS: usize = 20;

impl Call<'_> {
    pub(super) async fn code_actions(&self) -> Result<ToolResult, String> {
        let file = self.file().await?;
        let (client, text) = self.main_client(&file).await?;
        self.check(&client, "codeActionProvider", "textDocument/codeAction")?;
        let range = self.range(&text, &client)?;
        let of_file = client.diagnostics_of(&file.path).all();
        let touches =
            |it: &&Diagnostic| it.range.start.line <= range.end.line && range.start.line <= it.range.end.line;
        let diagnostics: Vec<Value> = of_file.iter().filter(touches).map(as_json).collect();
        let query = self.arguments.query.as_deref().map(str::trim).filter(|query| !query.is_empty());
        let params = json!({
            "textDocument": document(&file.path),
            "range": range.to_json(),
            "context": {"diagnostics": diagnostics, "triggerKind": 1},
        });
        let answer = self.ask(&client, "textDocument/codeAction", &params).await?;
        let actions: Vec<&Value> =
            answer.as_array().into_iter().flatten().filter(|it| it.is_object()).collect();
        if self.arguments.apply != Some(true) {
            let listed: Vec<String> = actions
                .iter()
                .enumerate()
                .filter(|(_, action)| query.is_none_or(|query| fits(action, query)))
                .take(MAX_LISTED)
                .map(|(index, action)| format!("{}. {}", index + 1, title_of(action)))
                .collect();
            let text = match listed.as_slice() {
                [] => format!("{} offers nothing there.", client.name),
                listed => listed.join("\n"),
            };
            return Ok(ToolResult::text(text));
        }
        let chosen = choose(&actions, query)?;
        self.carry_out_action(&client, &file, chosen).await
    }

    /// The symbol of the call, its line, or the whole file.
    fn range(&self, text: &str, client: &Client) -> Result<Range, String> {
        let lines = Lines::of(text);
        if self.arguments.line.is_none() && self.arguments.symbol.is_none() {
            let end = Position { line: lines.count().saturating_sub(1) as u64, column: 0 };
            return Ok(Range { start: Position::default(), end });
        }
        let start = self.position(text, client)?;
        if self.arguments.symbol.is_some() {
            return Ok(Range { start, end: start });
        }
        let line = usize::try_from(start.line).ok().and_then(|index| lines.line(index)).unwrap_or_default();
        let column = client.encoding().column(line, line.len());
        Ok(Range { start, end: Position { line: start.line, column } })
    }

    async fn carry_out_action(
        &self,
        client: &Arc<Client>,
        file: &CallFile,
        action: &Value,
    ) -> Result<ToolResult, String> {
        let title = title_of(action);
        let mut action = action.clone();
        if let Some(why) = action.pointer("/disabled/reason").and_then(Value::as_str) {
            return Err(format!("{title} cannot be done: {why}"));
        }
        let resolves = client.capability("/codeActionProvider/resolveProvider") == Some(Value::Bool(true));
        let is_command = action.get("command").is_some_and(Value::is_string);
        if action.get("edit").is_none() && resolves && !is_command {
            let resolved = self.ask(client, "codeAction/resolve", &action).await?;
            if resolved.is_object() {
                action = resolved;
            }
        }
        let mut result = None;
        if let Some(edit) = action.get("edit").filter(|edit| edit.is_object()) {
            let plan = self.plan(client, operations(edit)?).await?;
            result = Some(self.carry_out(client, plan, &format!("{title}: done")).await?);
        }
        // Either the action is a command itself, or it has one.
        let command = if is_command { Some(&action) } else { action.get("command") };
        match (command.filter(|command| command.is_object()), result) {
            (Some(command), result) => {
                let done = self.execute(client, command).await?;
                Ok(match result {
                    Some(result) => super::changes::with_note(result, &done),
                    None => ToolResult::text(format!("{title}: done\n{done}")),
                })
            }
            (None, Some(result)) => Ok(result),
            (None, None) => Err(format!("{title} of {} changes nothing in {}", client.name, file.given)),
        }
    }

    /// Has the server execute a command, and makes the edits that it wants meanwhile.
    async fn execute(&self, client: &Arc<Client>, command: &Value) -> Result<String, String> {
        let name = command.get("command").and_then(Value::as_str).unwrap_or_default();
        let commands = client.capability("/executeCommandProvider/commands");
        let is_known = commands
            .as_ref()
            .and_then(Value::as_array)
            .is_some_and(|known| known.iter().any(|known| known.as_str() == Some(name)));
        if !is_known {
            return Err(format!("{name} is a command for an editor, which agentd is not"));
        }
        let _alone = client.commands.lock().await;
        let mut edits = client.take_edits();
        let params = json!({
            "command": name,
            "arguments": command.get("arguments").cloned().unwrap_or_else(|| json!([])),
        });
        let mut executing = std::pin::pin!(self.ask(client, "workspace/executeCommand", &params));
        let (mut made, mut answer) = (Vec::new(), None);
        loop {
            tokio::select! {
                biased;
                wanted = edits.recv() => {
                    let Some(wanted) = wanted else { break };
                    let applied = if made.len() < MAX_EDITS {
                        self.apply_wanted(client, &wanted.edit).await
                    } else {
                        Err(format!("one command makes at most {MAX_EDITS} edits"))
                    };
                    made.push(applied.clone());
                    // A server that does not wait for the answer is gone.
                    let _ = wanted.answer.send(applied.map(drop));
                }
                done = &mut executing, if answer.is_none() => {
                    answer = Some(done);
                    // What it asked for before it answered is in the channel by now.
                    edits.close();
                }
            }
        }
        if let Some(Err(error)) = answer {
            return Err(error);
        }
        let (done, failed): (Vec<_>, Vec<_>) = made.into_iter().partition(Result::is_ok);
        if let Some(Err(why)) = failed.into_iter().next() {
            return Err(why);
        }
        let done: Vec<String> = done.into_iter().flatten().collect();
        Ok(if done.is_empty() { format!("{} executed {name}.", client.name) } else { done.join("\n") })
    }

    /// Makes an edit that a command wants; what it changed.
    async fn apply_wanted(&self, client: &Arc<Client>, edit: &Value) -> Result<String, String> {
        let plan = self.plan(client, operations(edit)?).await?;
        let names: Vec<String> = plan.files.iter().map(|file| self.servers.shown(&file.path)).collect();
        self.make(client, plan).await?;
        Ok(format!("Changed {}.", names.join(", ")))
    }
}

/// The title of an action, its kind, and whether it is the one that the server would choose.
fn title_of(action: &Value) -> String {
    let text = |name: &str| action.get(name).and_then(Value::as_str);
    let kind =
        text("kind").filter(|kind| !kind.is_empty()).map(|kind| format!(" ({kind})")).unwrap_or_default();
    let preferred = match action.get("isPreferred") {
        Some(Value::Bool(true)) => ", preferred",
        _ => "",
    };
    let title = text("title").or_else(|| text("command")).unwrap_or("an action without a title");
    format!("{title}{kind}{preferred}")
}

/// Whether an action has a text in its title or kind.
fn fits(action: &Value, query: &str) -> bool {
    title_of(action).to_lowercase().contains(&query.to_lowercase())
}

/// The action that a call means: by its number, by its title, or the only one.
fn choose<'a>(actions: &[&'a Value], query: Option<&str>) -> Result<&'a Value, String> {
    let listed = |actions: &[&Value]| {
        let lines = actions.iter().take(MAX_LISTED).enumerate();
        lines.map(|(index, action)| format!("\n{}. {}", index + 1, title_of(action))).collect::<String>()
    };
    let Some(query) = query else {
        return match actions {
            [] => Err("the server offers nothing there".to_owned()),
            [only] => Ok(only),
            actions => {
                Err(format!("query is missing: the number or title of one of these:{}", listed(actions)))
            }
        };
    };
    if let Ok(number) = query.parse::<usize>() {
        let action = number.checked_sub(1).and_then(|index| actions.get(index));
        return action.copied().ok_or_else(|| format!("there is no action {number}:{}", listed(actions)));
    }
    let found: Vec<&Value> = actions.iter().copied().filter(|action| fits(action, query)).collect();
    let is_exact = |action: &&&Value| action.get("title").and_then(Value::as_str) == Some(query);
    match (found.iter().find(is_exact), found.as_slice()) {
        (Some(exact), _) => Ok(exact),
        (None, [only]) => Ok(only),
        (None, []) => Err(format!("no action fits \"{query}\":{}", listed(actions))),
        (None, _) => Err(format!("several actions fit \"{query}\":{}", listed(&found))),
    }
}

/// A diagnostic as the server gave it.
fn as_json(it: &Diagnostic) -> Value {
    let severity = match it.severity {
        Severity::Error => 1,
        Severity::Warning => 2,
        Severity::Information => 3,
        Severity::Hint => 4,
    };
    let mut value = json!({"range": it.range.to_json(), "severity": severity, "message": it.message});
    if let Some(code) = &it.code {
        value["code"] = code.parse::<i64>().map_or_else(|_| code.as_str().into(), Value::from);
    }
    if let Some(source) = &it.source {
        value["source"] = source.as_str().into();
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_is_chosen_by_number_or_title() {
        let all = json!([
            {"title": "Import a", "kind": "quickfix", "isPreferred": true},
            {"title": "Import a from b"},
            {"title": "Extract", "kind": "refactor.extract"},
        ]);
        let actions: Vec<&Value> = all.as_array().unwrap().iter().collect();
        let title = |query: Option<&str>| choose(&actions, query).map(title_of);
        assert_eq!(title(Some("3")).unwrap(), "Extract (refactor.extract)");
        assert_eq!(title(Some("Import a")).unwrap(), "Import a (quickfix), preferred");
        assert_eq!(title(Some("EXTRACT")).unwrap(), "Extract (refactor.extract)");
        assert!(title(Some("import")).unwrap_err().contains("several actions fit \"import\":\n1. Import a"));
        assert!(title(Some("9")).unwrap_err().starts_with("there is no action 9:\n1."));
        assert!(title(Some("zzz")).unwrap_err().starts_with("no action fits"));
        assert!(title(None).unwrap_err().starts_with("query is missing"));
        assert_eq!(choose(&actions[2..], None).map(title_of).unwrap(), "Extract (refactor.extract)");
        assert!(choose(&[], None).is_err());
    }
}
