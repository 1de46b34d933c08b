//! Following a connection: its list of tools, and its end.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::sync::Notify;

use super::{McpServer, clean, handshake::Connection, lists::list_tools, subscription, subscription::Topics};
use crate::config::Endpoint;

/// The least time between two readings of a server's list of tools, however often it says that the list has changed.
pub(super) const LIST_PAUSE: Duration = Duration::from_secs(1);

impl McpServer {
    /// Reads the tools again when the server says that they have changed, and notes the end of the connection. Does not keep either: the
    /// connection ends with its server.
    pub(super) async fn follow(
        (server, connection): (Weak<McpServer>, Weak<Connection>),
        number: u64,
        (tools_changed, prompts_changed): (Arc<Notify>, Arc<Notify>),
    ) {
        let Some((peer, over, topics)) = connection.upgrade().map(|it| {
            let topics = Topics { tools: it.facts.tells_tools, prompts: it.facts.tells_prompts };
            (it.peer.clone(), it.over.clone(), Some(topics).filter(|_| it.peer.is_stateless()))
        }) else {
            return;
        };
        let reading = async {
            loop {
                tools_changed.notified().await;
                let Some((timeout, with_headers)) = server.upgrade().map(|server| {
                    let is_http = matches!(server.config.endpoint, Endpoint::Http { .. });
                    (server.config.set_up_timeout(), is_http && peer.is_stateless())
                }) else {
                    return;
                };
                match list_tools(&peer, timeout, with_headers).await {
                    Ok(list) => {
                        let (Some(server), Some(connection)) = (server.upgrade(), connection.upgrade())
                        else {
                            return;
                        };
                        let stale = connection.stale(&list);
                        server.set_tools(list, stale);
                    }
                    Err(error) => {
                        tracing::warn!(
                            error = clean(&error),
                            "the tools of an MCP server could not be listed"
                        )
                    }
                }
                tokio::time::sleep(LIST_PAUSE).await;
            }
        };
        let listening = async {
            if let Some(topics) = topics.filter(|topics| topics.tools || topics.prompts) {
                let missed = || {
                    tools_changed.notify_one();
                    prompts_changed.notify_one();
                };
                subscription::listen(peer.clone(), topics, missed).await;
            }
        };
        over.run_until_cancelled(async { tokio::join!(reading, listening) }).await;
        let Some(server) = server.upgrade() else { return };
        {
            let mut state = server.lock();
            if state.connections == number && state.connection.is_some() {
                state.error = peer.closed().map(|reason| clean(&reason));
                state.connection = None;
            }
        }
        server.tell(false);
    }
}
