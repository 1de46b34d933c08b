//! What the sessions of a daemon share: servers, and HTTP clients.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, Weak},
};

use agentd_http::HttpClients;

use crate::{
    config::ServerConfig,
    launch::ServerContext,
    server::ServerLease,
    server_log::{MCP_LOG, ServerLog},
};

/// The shared servers of a daemon. A server ends with the last session that has it.
#[derive(Default)]
pub struct SharedServers {
    servers: Mutex<Vec<Weak<ServerLease>>>,
    http: Arc<HttpClients>,
    /// By their paths: a daemon has one agent directory, and so one log.
    logs: Mutex<BTreeMap<PathBuf, ServerLog>>,
}

impl SharedServers {
    /// The HTTP clients for all servers.
    #[must_use]
    pub fn http(&self) -> &Arc<HttpClients> {
        &self.http
    }

    /// The log of servers in an agent directory.
    #[must_use]
    pub fn log(&self, agent_dir: &Path) -> ServerLog {
        let path = agent_dir.join(MCP_LOG);
        let mut logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
        logs.entry(path.clone()).or_insert_with(|| ServerLog::at(path)).clone()
    }

    /// Waits until what servers said so far is in the logs. For the end of a daemon, once its sessions are closed.
    pub async fn logs_flushed(&self) {
        let logs: Vec<ServerLog> =
            self.logs.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        for log in logs {
            log.flushed().await;
        }
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
