//! What the search and the tools for resources see of a session's servers.

use std::{
    pin::Pin,
    sync::{Arc, Weak},
};

use agentd_protocol::{mcp::McpExposure, tool::ToolSpec};
use tokio::time::Instant;

use super::{Inner, NamedTool, READY_WAIT, entry::SessionServer};
use crate::{
    definition::ToolDefinition,
    resource_tools::{ResourceServers, resource_tools},
    search::Document,
    search_tool::DeferredTools,
    server::McpServer,
};

impl DeferredTools for Inner {
    fn settled(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.connect(|it| it.is_deferred() && it.is_idle());
        Box::pin(self.until_settled(Instant::now() + READY_WAIT, SessionServer::is_deferred))
    }

    fn documents(&self) -> Vec<Document> {
        let servers = self.lock();
        let deferred =
            self.named_tools(&servers).into_iter().filter(|it| it.exposure == McpExposure::Deferred);
        let document = |NamedTool { name, server, definition, .. }: NamedTool<'_>| {
            let config = server.server.config();
            let instructions = server.server.instructions().unwrap_or_default();
            let description = config.description.as_deref().unwrap_or_default();
            let about_server = [config.name.as_str(), description, instructions.as_str()];
            let ToolDefinition { name: own_name, description, input_schema, .. } = &definition;
            Document::new(&name, own_name, description, input_schema, &about_server)
        };
        let mut documents: Vec<Document> = deferred.map(document).collect();
        let with_resources = || servers.values().filter(|it| it.has_resources());
        if with_resources().next().is_some() && !with_resources().any(SessionServer::is_direct) {
            let this: Weak<Inner> = Weak::clone(&self.this);
            let this: Weak<dyn ResourceServers> = this;
            let names: Vec<&str> = with_resources().map(|it| it.server.config().name.as_str()).collect();
            documents.extend(resource_tools(&this, &self.storage).iter().map(|tool| {
                let ToolSpec { name, description, parameters, .. } = &**tool.spec();
                Document::new(name, name, description, parameters, &names)
            }));
        }
        documents
    }

    fn load(&self, names: &[String]) {
        let count = {
            let mut loaded = self.loaded();
            let before = loaded.len();
            loaded.extend(names.iter().cloned());
            loaded.len() - before
        };
        if count > 0 {
            self.publish();
        }
    }

    fn missing(&self) -> Vec<(String, String)> {
        let servers = self.lock();
        let deferred = servers.values().filter(|it| it.is_deferred());
        let missing = deferred.filter_map(|it| {
            let view = it.server.view();
            Some((it.server.config().name.clone(), view.error?))
        });
        missing.collect()
    }
}

impl ResourceServers for Inner {
    fn with_resources(&self) -> Vec<Arc<McpServer>> {
        let servers = self.lock();
        servers.values().filter(|it| it.has_resources()).map(|it| Arc::clone(&**it.server)).collect()
    }
}
