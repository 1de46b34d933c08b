//! What the sessions of a daemon share: servers, and HTTP clients.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use agentd_http::HttpClients;

use crate::{config::ServerConfig, launch::ServerContext, server::ServerLease};

/// The shared servers of a daemon. A server ends with the last session that has it.
#[derive(Default)]
pub struct SharedServers {
    servers: Mutex<Vec<Weak<ServerLease>>>,
    http: Arc<HttpClients>,
}

impl SharedServers {
    /// The HTTP clients for all servers.
    #[must_use]
    pub fn http(&self) -> &Arc<HttpClients> {
        &self.http
    }

    /// The server of this entry: that of another session whose configuration is the same, else a new one.
    pub(crate) fn get(&self, config: &ServerConfig, context: &ServerContext) -> Arc<ServerLease> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        servers.retain(|server| server.strong_count() > 0);
        let is_same = |server: &Arc<ServerLease>| {
            let theirs = server.context();
            *server.config() == *config
                && theirs.cwd == context.cwd
                && theirs.variables == context.variables
                && theirs.network == context.network
                && theirs.agent_dir == context.agent_dir
                && theirs.child_environment == context.child_environment
        };
        if let Some(server) = servers.iter().filter_map(Weak::upgrade).find(is_same) {
            return server;
        }
        let server = ServerLease::new(config.clone(), context.clone());
        servers.push(Arc::downgrade(&server));
        server
    }
}
