//! What is known of a server's tools and prompts: what it said last, in this session or in one before.

use std::sync::{Arc, Weak};

use tokio::time::Instant;

use super::{Knowledge, McpServer, lists::ToolList};
use crate::{
    definition::ToolDefinition,
    definition_cache::{DefinitionCache, KnownDefinitions},
};

impl McpServer {
    /// The tools that it had when they were last listed.
    pub(crate) fn tools(&self) -> Arc<[ToolDefinition]> {
        Arc::clone(&self.lock().tools)
    }

    /// Whether it had resources when it was last connected.
    pub(crate) fn has_resources(&self) -> bool {
        self.lock().has_resources
    }

    /// Its advice for the model, as it said last.
    pub(crate) fn instructions(&self) -> Option<String> {
        self.lock().instructions.clone()
    }

    /// Where what is known of its tools comes from.
    pub(crate) fn knowledge(&self) -> Knowledge {
        self.lock().knowledge
    }

    /// Takes note of another list of tools.
    pub(super) fn set_tools(self: &Arc<Self>, list: ToolList, stale: Option<Instant>) {
        let is_new = {
            let mut state = self.lock();
            let is_new = *state.tools != *list.tools;
            state.tools = list.tools.into();
            state.stale = stale;
            is_new
        };
        if is_new {
            self.keep_definitions();
            self.tell(true);
        }
    }

    /// Keeps what is known for later sessions, in the background.
    pub(super) fn keep_definitions(self: &Arc<Self>) {
        let Some(cache) = self.cache.clone() else { return };
        let server = Arc::downgrade(self);
        self.context.tasks.spawn(async move {
            if let Some(server) = Weak::upgrade(&server) {
                server.save(move |definitions| cache.save(&definitions)).await;
            }
        });
    }

    /// Keeps nothing of a server that is not there: the next session waits for it again.
    pub(super) fn forget_definitions(self: &Arc<Self>) {
        let Some(cache) = self.cache.clone() else { return };
        let server = Arc::clone(self);
        self.context.tasks.spawn(async move { server.save(move |_| DefinitionCache::forget(&cache)).await });
    }

    /// Changes the kept definitions; one change after the other, each with what is known then.
    async fn save(&self, change: impl FnOnce(KnownDefinitions) -> std::io::Result<()> + Send + 'static) {
        let _one = self.saving.lock().await;
        let definitions = {
            let state = self.lock();
            KnownDefinitions {
                tools: state.tools.to_vec(),
                prompts: self.prompts.get().to_vec(),
                has_resources: state.has_resources,
                instructions: state.instructions.clone(),
            }
        };
        let done = tokio::task::spawn_blocking(move || change(definitions)).await;
        if let Err(error) = done.unwrap_or_else(|error| Err(std::io::Error::other(error))) {
            // The next session waits for the server.
            tracing::warn!(server = self.config.name, %error, "what an MCP server has cannot be kept");
        }
    }

    /// Has the tools read again, in the background, where their list no longer counts.
    pub(super) fn renew_tools(&self) {
        let mut state = self.lock();
        if state.stale.is_some_and(|stale| stale <= Instant::now()) {
            state.stale = None;
            state.tools_changed.notify_one();
        }
    }
}
