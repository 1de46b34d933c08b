//! Commands about the daemon and its sessions.

use std::{collections::HashSet, sync::Arc, time::Duration};

use agentd_config::AgentDir;
use agentd_protocol::{
    command::DaemonCommand,
    daemon::{
        Amount, CloseSessionParams, Counters, DaemonEnding, DaemonStatus, DaemonUsage, HelloParams,
        ListSessionsParams, SessionParams, ShutdownParams,
    },
    error::{ErrorCode, Failure},
    frame::Response,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{Origin, client::daemon_info, reader::Reader, watching::Watching, writer::Out};
use crate::hub::{self, resource_limits, session_list::WithoutFile};

impl Reader {
    /// Does a command of the daemon.
    pub(super) async fn manage(&mut self, command: DaemonCommand, id: Option<Value>) {
        let name = command.name();
        match command {
            DaemonCommand::Hello(params) => self.hello(&params, id).await,
            DaemonCommand::OpenSession(params) => self.open_session(params, id).await,
            DaemonCommand::AttachSession(params) => self.attach_session(params, id).await,
            DaemonCommand::DetachSession(params) => self.detach_session(params, id).await,
            DaemonCommand::CloseSession(params) => self.close_session(params, id).await,
            DaemonCommand::ListSessions(params) => self.list_sessions(params, id).await,
            DaemonCommand::ListProcesses(params) => self.list_processes(params, id).await,
            DaemonCommand::DeleteSession(params) => self.delete_session(params, id).await,
            DaemonCommand::WatchSessions(_) => self.watch_sessions(id).await,
            DaemonCommand::UnwatchSessions(_) => {
                self.watching = None;
                self.answer(&Response::<()>::done(id, name, None)).await;
            }
            DaemonCommand::DaemonStatus(_) => self.daemon_status(id).await,
            DaemonCommand::Shutdown(params) => self.shut_down(&params, id).await,
        }
    }

    async fn hello(&mut self, params: &HelloParams, id: Option<Value>) {
        match self.client.hello(params, &self.registry, self.connection.max_line_bytes) {
            Ok(hello) => {
                self.tell(Out::View(self.client.view)).await;
                self.answer(&Response::done(id, "hello", Some(hello))).await;
                // What is asked from here on must not pass by as something that this client does not see.
                self.settle().await;
                self.begin_answering().await;
            }
            Err(failure) => self.fail(id, Some("hello"), failure).await,
        }
    }

    async fn close_session(&mut self, params: CloseSessionParams, id: Option<Value>) {
        match self.known(&params.session_id).await {
            Ok(session) => {
                let registry = Arc::clone(&self.registry);
                self.beside(id, "close_session", async move {
                    registry.close(&session, params.mode).await;
                    Ok(None::<()>)
                })
                .await;
            }
            Err(failure) => self.fail(id, Some("close_session"), failure).await,
        }
    }

    async fn list_sessions(&mut self, params: ListSessionsParams, id: Option<Value>) {
        let (registry, agent_dir) = (Arc::clone(&self.registry), self.agent_dir());
        let without_file = match self.connection.origin {
            Origin::Host { .. } => WithoutFile::Promised,
            Origin::Socket { .. } => WithoutFile::All,
        };
        let unwanted = self.gone.child_token();
        // A command sees its own; the user all there are, in memory or not.
        let ids = || self.visible().iter().map(|known| Arc::clone(known.id())).collect::<HashSet<_>>();
        let only = self.caller.is_some().then(ids);
        self.beside(id, "list_sessions", async move {
            let agent_dir = agent_dir?;
            // Also when this is given up.
            let _guard = unwanted.clone().drop_guard();
            let listed = tokio::task::spawn_blocking(move || {
                let only = (without_file, only.as_ref());
                hub::session_list::sessions(&registry.known(), &agent_dir, &params, only, &|| {
                    !unwanted.is_cancelled()
                })
            })
            .await;
            listed.map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))?.map(Some)
        })
        .await;
    }

    async fn delete_session(&mut self, params: SessionParams, id: Option<Value>) {
        const NAME: &str = "delete_session";
        let (registry, agent_dir) = (Arc::clone(&self.registry), self.agent_dir());
        self.beside(id, NAME, async move {
            registry.delete(&params.session_id, agent_dir?).await?;
            Ok(None::<()>)
        })
        .await;
    }

    /// Watched anew from here on, if they were watched already.
    async fn watch_sessions(&mut self, id: Option<Value>) {
        let leaving = CancellationToken::new();
        let watching = Watching {
            registry: Arc::clone(&self.registry),
            watcher: self.registry.watch_broker().subscribe(),
            leaving: leaving.clone(),
        };
        self.watching = Some(leaving.drop_guard());
        // The answer first: what follows it is news.
        self.answer(&Response::<()>::done(id, "watch_sessions", None)).await;
        self.tell(Out::Watch(watching)).await;
    }

    async fn daemon_status(&mut self, id: Option<Value>) {
        let agent_dir = match self.agent_dir() {
            Ok(agent_dir) => agent_dir,
            Err(failure) => return self.fail(id, Some("daemon_status"), failure).await,
        };
        let known = self.visible();
        let live: Vec<_> = known.iter().filter_map(|known| known.loaded()).collect();
        let running = live.iter().filter(|live| live.summary().is_streaming).count();
        let resting = known.iter().filter(|known| known.is_unloaded()).count();
        let connections = &self.connection.daemon.connections;
        let status = DaemonStatus {
            daemon: daemon_info(&self.registry),
            uptime_ms: u64::try_from(self.connection.daemon.uptime().as_millis()).unwrap_or(u64::MAX),
            socket: match &self.connection.origin {
                Origin::Socket { path, .. } => Some(path.display().to_string()),
                Origin::Host { .. } => None,
            },
            agent_dir: agent_dir.path().display().to_string(),
            clients: connections.open(),
            live_sessions: u32::try_from(live.len()).unwrap_or(u32::MAX),
            ending: self.connection.shutdown.ending().map(|ending| DaemonEnding {
                mode: ending.mode,
                remaining_ms: u64::try_from(ending.remaining().as_millis()).unwrap_or(u64::MAX),
            }),
            resting_sessions: u32::try_from(resting).unwrap_or(u32::MAX),
            running_sessions: u32::try_from(running).unwrap_or(u32::MAX),
            memory_bytes: resource_limits::resident_bytes(),
            tasks: u32::try_from(tokio::runtime::Handle::current().metrics().num_alive_tasks())
                .unwrap_or(u32::MAX),
            usage: self.usage(known.len()).await,
            counters: Counters {
                connections: connections.total(),
                sessions_loaded: self.registry.loaded(),
                sessions_unloaded: self.registry.unloaded(),
            },
        };
        self.answer(&Response::done(id, "daemon_status", Some(status))).await;
    }

    async fn usage(&self, sessions: usize) -> DaemonUsage {
        let amount = |used: usize, limit: usize| Amount {
            used: used as u64,
            limit: (limit < usize::MAX).then_some(limit as u64),
        };
        let limits = self.registry.limits();
        let (commands, most_commands) = self.registry.commands();
        // Zero where it cannot be counted.
        let open_files = tokio::task::spawn_blocking(resource_limits::open_files).await.ok().flatten();
        DaemonUsage {
            clients: Amount {
                used: self.connection.daemon.connections.open().into(),
                limit: self.connection.limits.clients.map(|limit| limit as u64),
            },
            sessions: amount(sessions, limits.sessions),
            memory_bytes: Amount {
                used: resource_limits::resident_bytes().unwrap_or_default(),
                limit: Some(limits.memory_bytes).filter(|limit| *limit < u64::MAX),
            },
            commands: amount(commands, most_commands),
            open_files: Amount { used: open_files.unwrap_or_default(), limit: resource_limits::file_limit() },
        }
    }

    async fn shut_down(&mut self, params: &ShutdownParams, id: Option<Value>) {
        if matches!(self.connection.origin, Origin::Host { .. }) {
            let failure = Failure::new(ErrorCode::Unsupported, "This agentd serves only its host.");
            return self.fail(id, Some("shutdown"), failure.hint("Close its input to end it.")).await;
        }
        self.answer(&Response::<()>::done(id, "shutdown", None)).await;
        let deadline = params.deadline_ms.map(Duration::from_millis);
        self.connection.shutdown.request(params.mode, deadline, self.connection.shutdown_deadline);
    }

    pub(super) fn agent_dir(&self) -> Result<AgentDir, Failure> {
        let options = &self.connection.options;
        AgentDir::find(&options.environment, options.compat, &options.cwd)
            .map_err(|error| Failure::new(ErrorCode::Io, error.to_string()))
    }
}
