//! The prompts of a server: listed after it is connected, and again when it says that they have changed.

use std::{
    collections::HashSet,
    sync::{Arc, Weak},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{McpServer, clean, connecting::Attempt, follow::LIST_PAUSE};
use crate::{
    peer::{Peer, RequestError, RequestTerms},
    prompt::PromptDefinition,
};

/// Pages of a list: a server that has more is at fault.
const MAX_PAGES: usize = 100;

/// Prompts of a server.
const MAX_PROMPTS: usize = 500;

impl McpServer {
    /// The prompts that it had when they were last listed.
    pub(crate) fn prompts(&self) -> Arc<[PromptDefinition]> {
        self.prompts.get()
    }

    /// Lists the prompts again, after connecting the server where it is not connected. `Err(None)`: given up by `cancel`.
    pub(crate) async fn list_prompts_now(
        self: &Arc<Self>,
        cancel: &CancellationToken,
    ) -> Result<(), Option<String>> {
        let connection = self.connection(Some(cancel), Attempt::AfterPause).await?;
        if !connection.facts.has_prompts {
            self.set_prompts(Vec::new());
            return Ok(());
        }
        let listing = list_prompts(&connection.peer, self.config.timeout);
        let listed = cancel.run_until_cancelled(listing).await.ok_or(None)?;
        self.set_prompts(listed.map_err(|error| Some(clean(&error)))?);
        Ok(())
    }

    pub(super) fn set_prompts(self: &Arc<Self>, prompts: Vec<PromptDefinition>) {
        if self.prompts.set(prompts) {
            self.keep_definitions();
            self.tell(false);
        }
    }

    /// Lists the prompts of a connection now and whenever they have changed, until it is over. Does not keep the server.
    pub(super) async fn follow_prompts(
        server: Weak<Self>,
        peer: Peer,
        over: CancellationToken,
        prompts_changed: Arc<Notify>,
    ) {
        let reading = async {
            loop {
                let Some(timeout) = server.upgrade().map(|server| server.config.set_up_timeout()) else {
                    return;
                };
                match list_prompts(&peer, timeout).await {
                    Ok(prompts) => {
                        let Some(server) = server.upgrade() else { return };
                        server.set_prompts(prompts);
                    }
                    Err(error) => {
                        tracing::warn!(
                            error = clean(&error),
                            "the prompts of an MCP server could not be listed"
                        )
                    }
                }
                tokio::time::sleep(LIST_PAUSE).await;
                prompts_changed.notified().await;
            }
        };
        over.run_until_cancelled(reading).await;
    }
}

/// All prompts of a server, page by page. Those that cannot be used are left out.
///
/// # Errors
/// Why they could not be listed.
async fn list_prompts(peer: &Peer, timeout: Duration) -> Result<Vec<PromptDefinition>, String> {
    let (mut prompts, mut names, mut cursors) = (Vec::new(), HashSet::new(), HashSet::new());
    let mut params = json!({});
    for _ in 0..MAX_PAGES {
        let terms = RequestTerms::within(timeout);
        let page = peer.request("prompts/list", params, terms).await.map_err(|error| match error {
            RequestError::Closed(reason) => reason.to_string(),
            error => format!("prompts/list: {error}"),
        })?;
        for item in page.get("prompts").and_then(Value::as_array).into_iter().flatten() {
            match PromptDefinition::read(item) {
                Ok(prompt) if names.insert(prompt.name.clone()) => prompts.push(prompt),
                Ok(prompt) => tracing::warn!(prompt = prompt.name, "an MCP server lists a prompt twice"),
                Err(why) => tracing::warn!(why, "a prompt of an MCP server is left out"),
            }
            if prompts.len() > MAX_PROMPTS {
                return Err(format!("it lists more than {MAX_PROMPTS} prompts"));
            }
        }
        let Some(cursor) = page.get("nextCursor").and_then(Value::as_str).filter(|cursor| !cursor.is_empty())
        else {
            return Ok(prompts);
        };
        if !cursors.insert(cursor.to_owned()) {
            return Err("its list of prompts comes back to a page that it had before".to_owned());
        }
        params = json!({"cursor": cursor});
    }
    Err(format!("its list of prompts has more than {MAX_PAGES} pages"))
}
