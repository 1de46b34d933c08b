//! `agent://` in the tool `read`: results of subagents.

use agentd_agent::ToolError;
use agentd_tools::{UrlContent, UrlReader};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::table::Subagents;

/// What the URLs begin with.
const START: &str = "agent://";

/// Reads results: `agent://<id>`, or a part of a result that is JSON, `agent://<id>/<key>/<index>`.
pub(crate) struct SubagentResults(pub(crate) Subagents);

impl UrlReader for SubagentResults {
    fn start(&self) -> &str {
        START
    }

    fn read<'a>(&'a self, rest: &'a str, _: &'a CancellationToken) -> UrlContent<'a> {
        Box::pin(async move { self.content(rest).await.map(String::into_bytes).map_err(ToolError) })
    }
}

impl SubagentResults {
    async fn content(&self, rest: &str) -> Result<String, String> {
        let (id, path) = rest.split_once('/').unwrap_or((rest, ""));
        let known = self.0.list();
        let Some(found) = known.iter().find(|subagent| subagent.id == id) else {
            let ids: Vec<&str> = known.iter().map(|subagent| subagent.id.as_str()).collect();
            let ids = if ids.is_empty() { "none".to_owned() } else { ids.join(", ") };
            return Err(format!("Not found: {id}. There are: {ids}"));
        };
        if found.status.is_active() {
            return Err(format!("The subagent {id} has no result yet: it is at work."));
        }
        let text =
            self.0.result_text(id).await.ok_or_else(|| format!("The subagent {id} left no result."))?;
        if path.is_empty() {
            return Ok(text);
        }
        let value: Value = serde_json::from_str(&text)
            .map_err(|_| format!("The result of {id} is no JSON, so that it has no part \"{path}\"."))?;
        let part = value.pointer(&format!("/{}", path.trim_end_matches('/')));
        let part = part.ok_or_else(|| format!("The result of {id} has no part \"{path}\"."))?;
        Ok(match part {
            Value::String(text) => text.clone(),
            other => serde_json::to_string_pretty(other).unwrap_or_else(|_| other.to_string()),
        })
    }
}
