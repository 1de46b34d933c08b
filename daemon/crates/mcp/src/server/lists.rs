//! The list of a server's tools.

use std::{collections::HashSet, time::Duration};

use serde_json::{Value, json};

use crate::{
    definition::ToolDefinition,
    peer::{Peer, RequestError, RequestTerms},
};

/// Pages of a list: a server that has more is at fault.
const MAX_PAGES: usize = 1000;

/// Tools of a server. Each costs memory, and tokens where it is declared.
const MAX_TOOLS: usize = 2000;

/// The longest time that a list counts as new.
const LONGEST_LIFE: Duration = Duration::from_secs(24 * 60 * 60);

/// A server's tools.
#[derive(Debug, Default)]
pub(crate) struct ToolList {
    pub(crate) tools: Vec<ToolDefinition>,
    /// How long the list counts as new, where the server says so.
    pub(crate) life: Option<Duration>,
}

/// All tools of a server, page by page. Those that cannot be used are left out. `with_headers`: as [`ToolDefinition::read`] has it.
///
/// # Errors
/// Why they could not be listed.
pub(crate) async fn list_tools(
    peer: &Peer,
    timeout: Duration,
    with_headers: bool,
) -> Result<ToolList, String> {
    let (mut list, mut names, mut cursors) = (ToolList::default(), HashSet::new(), HashSet::new());
    let mut params = json!({});
    for _ in 0..MAX_PAGES {
        let page = peer.request("tools/list", params, RequestTerms::within(timeout)).await;
        let page = page.map_err(|error| match error {
            RequestError::Closed(reason) => reason.to_string(),
            error => format!("tools/list: {error}"),
        })?;
        if let Some(life) = page.get("ttlMs").and_then(Value::as_u64) {
            let life = Duration::from_millis(life).min(LONGEST_LIFE);
            list.life = Some(list.life.map_or(life, |other| other.min(life)));
        }
        for tool in page.get("tools").and_then(Value::as_array).into_iter().flatten() {
            match ToolDefinition::read(tool, with_headers) {
                Ok(tool) if names.insert(tool.name.clone()) => list.tools.push(tool),
                Ok(tool) => tracing::warn!(tool = tool.name, "an MCP server lists a tool twice"),
                Err(why) => tracing::warn!(why, "a tool of an MCP server is left out"),
            }
            if list.tools.len() > MAX_TOOLS {
                return Err(format!("it lists more than {MAX_TOOLS} tools"));
            }
        }
        let Some(cursor) = page.get("nextCursor").and_then(Value::as_str).filter(|cursor| !cursor.is_empty())
        else {
            return Ok(list);
        };
        if !cursors.insert(cursor.to_owned()) {
            return Err("its list of tools comes back to a page that it had before".to_owned());
        }
        params = json!({"cursor": cursor});
    }
    Err(format!("its list of tools has more than {MAX_PAGES} pages"))
}
