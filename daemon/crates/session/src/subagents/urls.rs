//! `agent://` in the tools `read` and `write`: results of subagents, and messages to agents.

use agentd_agent::ToolError;
use agentd_protocol::{subagent::AGENT_URL, tool::ToolResult};
use agentd_tools::{UrlContent, UrlReader, UrlWritten};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::table::Subagents;

/// Reads results: `agent://<id>`, or a part of a result that is JSON, `agent://<id>/<key>/<index>`. Writes messages: `agent://<id>`, `agent://all`.
pub(crate) struct SubagentResults(pub(crate) Subagents);

impl UrlReader for SubagentResults {
    fn start(&self) -> &str {
        AGENT_URL
    }

    fn is_writable(&self) -> bool {
        true
    }

    fn write<'a>(&'a self, rest: &'a str, content: String, _: &'a CancellationToken) -> UrlWritten<'a> {
        Box::pin(async move { self.0.send(rest, &content).await.map(ToolResult::text).map_err(ToolError) })
    }

    fn read<'a>(&'a self, rest: &'a str, _: &'a CancellationToken) -> UrlContent<'a> {
        Box::pin(async move { self.content(rest).await.map(String::into_bytes).map_err(ToolError) })
    }
}

impl SubagentResults {
    async fn content(&self, rest: &str) -> Result<String, String> {
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
        let (id, path) = rest.split_once('/').unwrap_or((rest, ""));
        let path = match query {
            None => path.to_owned(),
            Some(query) => format!("{path}/{}", asked_for(query)?).trim_start_matches('/').to_owned(),
        };
        self.0.restored().await;
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

/// The path of a query: `q=key.list[0].name` as `key/list/0/name`.
fn asked_for(query: &str) -> Result<String, String> {
    let Some(asked) = query.strip_prefix("q=") else {
        return Err(format!("Unknown query \"{query}\": q=KEY names a part, as in ?q=items[0].name."));
    };
    let parts = asked.split(['.', '[', ']']).filter(|part| !part.is_empty());
    Ok(parts.map(|part| part.replace('~', "~0").replace('/', "~1")).collect::<Vec<_>>().join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_paths() {
        assert_eq!(asked_for("q=key.list[0].na/me").as_deref(), Ok("key/list/0/na~1me"));
        assert_eq!(asked_for("q=.").as_deref(), Ok(""));
        assert!(asked_for("x=1").unwrap_err().contains("q=KEY"));
    }
}
