//! Commands of the connection and the daemon: `hello`, lists, watching, closing, status, shutdown.

use std::{collections::HashSet, sync::Arc, time::Duration};

use agentd_config::AgentDir;
use agentd_process::{ProcessTable, RunningProcess};
use agentd_protocol::{
    chunked::{FrameVersion, NegotiateProtocolParams, NegotiatedProtocol},
    command::{DaemonCommand, WorkKind},
    daemon::{
        Amount, CloseSessionParams, Counters, DaemonEnding, DaemonStatus, DaemonUsage, HelloParams,
        ListProcessesParams, ListSessionsParams, ProcessInfo, ProcessList, SessionParams, ShutdownParams,
        WatchSessionsParams, WatchedSessions,
    },
    error::{ErrorCode, Failure},
    event_filter::{EventFilter, SetEventFilterParams},
    frame::Response,
    subagent::{SubagentSubscription, SubagentSubscriptionSet},
};
use agentd_session::SessionHandle;
use agentd_store::iso_timestamp;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    activity_sampler::ActivitySampler, client::daemon_info, dispatcher::Dispatcher, event_filter::EventTypes,
    feeds::SessionWatch, options::Origin, writer::WriterCommand,
};
use crate::hub::{self, resource_limits, session_list::WithoutFile};

impl Dispatcher {
    /// Executes a command of the daemon.
    pub(super) async fn execute_daemon(&mut self, command: DaemonCommand, id: Option<Value>) {
        let name = command.name();
        match command {
            DaemonCommand::Hello(params) => self.hello(&params, id).await,
            DaemonCommand::NegotiateProtocol(params) => self.negotiate_protocol(params, id).await,
            DaemonCommand::SetEventFilter(params) => self.set_event_filter(params, id).await,
            DaemonCommand::OpenSession(params) => self.open_session(params, id).await,
            DaemonCommand::AttachSession(params) => self.attach_session(params, id).await,
            DaemonCommand::DetachSession(params) => self.detach_session(params, id).await,
            DaemonCommand::CloseSession(params) => self.close_session(params, id).await,
            DaemonCommand::ListSessions(params) => self.list_sessions(params, id).await,
            DaemonCommand::ListProcesses(params) => self.list_processes(params, id).await,
            DaemonCommand::DeleteSession(params) => self.delete_session(params, id).await,
            DaemonCommand::WatchSessions(params) => self.watch_sessions(params, id).await,
            DaemonCommand::UnwatchSessions(_) => {
                self.watching = None;
                self.answer(&Response::<()>::done(id, name, None)).await;
            }
            DaemonCommand::SetSubagentSubscription(params) => {
                let level = params.subscription;
                self.client.view.follows_subagents = level != SubagentSubscription::Off;
                self.tell_writer(WriterCommand::View(self.client.view)).await;
                self.answer(&Response::done(id, name, Some(SubagentSubscriptionSet { level }))).await;
                self.client.hears_subagent_events = level == SubagentSubscription::Events;
                self.sessions.follow_subagents(self.client.hears_subagent_events);
                // The writer must show these events before sessions send them.
                self.settle().await;
            }
            DaemonCommand::DaemonStatus(_) => self.daemon_status(id).await,
            DaemonCommand::Shutdown(params) => self.shut_down(&params, id).await,
        }
    }

    async fn hello(&mut self, params: &HelloParams, id: Option<Value>) {
        match self.client.hello(params, &self.registry, self.connection.max_line_bytes) {
            Ok(hello) => {
                self.tell_writer(WriterCommand::View(self.client.view)).await;
                self.answer(&Response::done(id, "hello", Some(hello))).await;
                // The writer must show the client's new kinds of lines before sessions send them.
                self.settle().await;
                self.begin_answering().await;
            }
            Err(failure) => self.fail(id, Some("hello"), failure).await,
        }
    }

    /// Chooses the form of long lines. The answer still comes in the old form.
    async fn negotiate_protocol(&mut self, params: NegotiateProtocolParams, id: Option<Value>) {
        const NAME: &str = "negotiate_protocol";
        let Some(version) = FrameVersion::of(params.protocol_version) else {
            let text = format!("Unsupported RPC protocol version: {}", params.protocol_version);
            let failure = Failure::new(ErrorCode::Unsupported, text)
                .hint("The versions are 1 (whole lines) and 2 (long lines in parts).");
            return self.fail(id, Some(NAME), failure).await;
        };
        let data = NegotiatedProtocol { protocol_version: version.number() };
        self.answer(&Response::done(id, NAME, Some(data))).await;
        self.tell_writer(WriterCommand::Frames(version)).await;
    }

    /// Chooses the events that the writer shows, from before the answer on.
    async fn set_event_filter(&mut self, params: SetEventFilterParams, id: Option<Value>) {
        let types = params.events.map(EventTypes::of);
        let data = EventFilter { events: types.as_ref().map(EventTypes::names) };
        self.tell_writer(WriterCommand::Filter(types)).await;
        self.answer(&Response::done(id, "set_event_filter", Some(data))).await;
    }

    async fn close_session(&mut self, params: CloseSessionParams, id: Option<Value>) {
        match self.find_session(&params.session_id).await {
            Ok(session) => {
                let registry = Arc::clone(&self.registry);
                self.in_background(id, "close_session", async move {
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
        // A client that is a command sees its own sessions; the user sees all, loaded or not.
        let ids = || self.visible().iter().map(|session| Arc::clone(session.id())).collect::<HashSet<_>>();
        let only = self.command_peer.is_some().then(ids);
        self.in_background(id, "list_sessions", async move {
            let agent_dir = agent_dir?;
            // Stops the blocking listing when this future is dropped.
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
        self.in_background(id, NAME, async move {
            registry.delete(&params.session_id, agent_dir?).await?;
            Ok(None::<()>)
        })
        .await;
    }

    /// Watches all sessions. A second `watch_sessions` starts over.
    async fn watch_sessions(&mut self, params: WatchSessionsParams, id: Option<Value>) {
        let leaving = CancellationToken::new();
        let watcher = self.registry.watch_broker().subscribe();
        let (activities, sampler) = if params.activity {
            let (activities, sampler) = ActivitySampler::start(&self.registry).await;
            (Some(activities), Some(sampler))
        } else {
            (None, None)
        };
        let watching = SessionWatch {
            registry: Arc::clone(&self.registry),
            watcher,
            activities: sampler,
            leaving: leaving.clone(),
        };
        self.watching = Some(leaving.drop_guard());
        // The answer goes out before the first change.
        self.answer(&Response::done(id, "watch_sessions", Some(WatchedSessions { activities }))).await;
        self.tell_writer(WriterCommand::Watch(watching)).await;
    }

    async fn daemon_status(&mut self, id: Option<Value>) {
        let agent_dir = match self.agent_dir() {
            Ok(agent_dir) => agent_dir,
            Err(failure) => return self.fail(id, Some("daemon_status"), failure).await,
        };
        let sessions = self.visible();
        let live: Vec<_> = sessions.iter().filter_map(|session| session.loaded()).collect();
        let running = live.iter().filter(|live| live.summary().is_streaming).count();
        let unloaded = sessions.iter().filter(|session| session.is_unloaded()).count();
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
            unloaded_sessions: u32::try_from(unloaded).unwrap_or(u32::MAX),
            running_sessions: u32::try_from(running).unwrap_or(u32::MAX),
            memory_bytes: resource_limits::resident_bytes(),
            tasks: u32::try_from(tokio::runtime::Handle::current().metrics().num_alive_tasks())
                .unwrap_or(u32::MAX),
            usage: self.usage(sessions.len()).await,
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
        // Shown as zero where it cannot be counted.
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

    /// `list_processes`. Works on a blocking thread, since it reads all of `/proc`.
    pub(super) async fn list_processes(&mut self, params: ListProcessesParams, id: Option<Value>) {
        const NAME: &str = "list_processes";
        let sessions: Vec<SessionHandle> = match &params.session_id {
            Some(session_id) => match self.find_session(session_id).await {
                // An unloaded session has no processes: with any, it would not have been unloaded.
                Ok(session) => session.loaded().into_iter().collect(),
                Err(failure) => return self.fail(id, Some(NAME), failure).await,
            },
            None => self.visible().iter().filter_map(|session| session.loaded()).collect(),
        };
        self.in_background(id, NAME, async move {
            let listed = tokio::task::spawn_blocking(move || list(sessions)).await;
            listed.map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))?.map(Some)
        })
        .await;
    }
}

/// The processes of sessions, by session, then oldest first. Blocks.
fn list(mut sessions: Vec<SessionHandle>) -> Result<ProcessList, Failure> {
    sessions.sort_by(|one, other| one.id().cmp(other.id()));
    let table = ProcessTable::read().map_err(|error| {
        Failure::new(ErrorCode::Io, format!("The processes of the system cannot be read: {error}"))
    })?;
    let of = |session: &SessionHandle| {
        let id = session.id().to_owned();
        session.processes().list(&table).into_iter().map(move |process| info(id.clone(), process))
    };
    Ok(ProcessList { processes: sessions.iter().flat_map(of).collect() })
}

fn info(session_id: String, process: RunningProcess) -> ProcessInfo {
    let RunningProcess { pid, parent, work, background, command, started_ms, cpu_time, memory_bytes } =
        process;
    let (kind, id) = work.map_or((WorkKind::Tool, None), |work| (work.kind, work.id));
    ProcessInfo {
        session_id,
        pid,
        parent_pid: parent,
        kind: if background { WorkKind::Background } else { kind },
        id,
        command,
        started: started_ms.map(iso_timestamp),
        cpu_ms: cpu_time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        memory_bytes,
    }
}
