//! `agentd serve`: many sessions and clients at a local socket, until a signal or a client ends it.

use std::{
    io::{self, IsTerminal, Write},
    os::unix::net::UnixListener,
    path::PathBuf,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use agentd_process::{Peer, raise_file_limit};
use agentd_protocol::{
    daemon::EndMode, error::Failure, frame::Response, lines::write_line, terminal_text::harmless,
};
use listenfd::ListenFd;
use sd_notify::NotifyState;
use tokio::{
    net::UnixStream,
    sync::Semaphore,
    task::JoinSet,
    time::{sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    output_sweeper::{FirstSweep, sweep_in_background},
    runtime::{FAILED, Signals, Workers, check_file_limit, fail, run},
};
use crate::{
    cli::ServeOptions,
    compose,
    connection::{self, Connection, Origin, ReservedSlot},
    daemon_limits::DaemonLimits,
    hub::{DaemonContext, SessionRegistry, ShutdownSwitch, hosting_subagents, resource_limits},
    limits::{LAST_LINES, RESERVED_CLIENTS, STOP_GRACE, TELEMETRY_FLUSH},
    logging::complain,
    telemetry::DaemonTelemetry,
    transport::{Arrival, ClaimError, LineBudget, Listener, SocketClaim, SocketMonitor, split},
};

/// The exit code when another daemon has the socket.
const ALREADY_RUNNING: u8 = 4;

/// Variables of the service manager for this process, which the processes of sessions must not inherit.
const SERVICE_VARIABLES: [&str; 6] =
    ["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"];

/// Serves until a signal or a client ends the daemon. For `main`, before there are other threads.
///
/// Listens on the socket that a service manager passed on, else claims its own. When clients can connect, it writes a line to
/// stdout and notifies the service manager.
#[must_use]
pub fn daemon(mut options: ServeOptions) -> ExitCode {
    let passed = match ListenFd::from_env().take_unix_listener(0) {
        Ok(passed) => passed,
        Err(error) => return fail(&format!("Error: the socket that was passed on: {error}"), FAILED),
    };
    raise_file_limit();
    if let Err(error) = check_file_limit() {
        return fail(&error, FAILED);
    }
    SERVICE_VARIABLES.iter().for_each(|name| options.base.environment.remove(name));
    if options.detached {
        detach();
    }
    let claimed = match passed {
        Some(listener) => Ok((None, listener)),
        None => SocketClaim::acquire(&options.socket).map(|(claim, listener)| (Some(claim), listener)),
    };
    let (mut claim, listener) = match claimed {
        Ok(claimed) => claimed,
        Err(error) => {
            let code = if matches!(error, ClaimError::Running { .. }) { ALREADY_RUNNING } else { FAILED };
            return fail(&format!("Error: {error}"), code);
        }
    };
    let code = run(Workers::Several, observe(options, &mut claim, listener));
    // Only now may another daemon claim the socket.
    drop(claim);
    code
}

/// Leaves the terminal session and the working folder of the process that started the daemon.
fn detach() {
    if let Err(error) = rustix::process::setsid() {
        tracing::warn!(%error, "cannot leave the session of the terminal");
    }
    if let Err(error) = std::env::set_current_dir("/") {
        tracing::warn!(%error, "cannot leave the working directory");
    }
}

/// Serves, with telemetry until the end where it is on.
async fn observe(
    options: ServeOptions,
    claim: &mut Option<SocketClaim>,
    listener: UnixListener,
) -> Result<ExitCode, String> {
    let base = &options.base;
    let telemetry = DaemonTelemetry::start(&base.environment, base.compat, &base.cwd);
    let ended = serve(options, claim, listener, &telemetry).await;
    telemetry.shut_down(TELEMETRY_FLUSH).await;
    ended
}

async fn serve(
    options: ServeOptions,
    claim: &mut Option<SocketClaim>,
    listener: UnixListener,
    telemetry: &DaemonTelemetry,
) -> Result<ExitCode, String> {
    let failed = |what: &'static str| move |error: io::Error| format!("Error: cannot {what}: {error}");
    let mut signals = Signals::of_a_daemon().map_err(failed("watch signals"))?;
    let path = listener.local_addr().ok().and_then(|address| Some(address.as_pathname()?.to_owned()));
    let base = &options.base;
    let limits = DaemonLimits::load(&base.environment, base.compat, &base.cwd);
    let memory = limits.memory();
    let services = compose::services(
        &base.environment,
        base.compat,
        &base.cwd,
        limits.max_commands,
        &memory,
        telemetry.observers(),
        None,
    )?;
    let mut listener = Listener::new(listener).map_err(failed("listen"))?;
    let mut monitor = SocketMonitor::watch(claim.as_ref());
    let daemon = Daemon {
        context: DaemonContext::new(hosting_subagents(SessionRegistry::new(
            limits.session,
            limits.resources,
            services,
        ))),
        limits,
        socket: path.unwrap_or(options.socket.clone()),
        shutdown: ShutdownSwitch::default(),
        refuses: AtomicBool::new(false),
        ending: CancellationToken::new(),
        lines: LineBudget::new(memory, limits.line_idle),
        reserved: Arc::new(Semaphore::new(RESERVED_CLIENTS)),
        options,
    };
    telemetry.watch(&daemon.context);
    daemon.tell_ready();
    let base = &daemon.options.base;
    let found_from = (&base.environment, base.compat, &*base.cwd);
    let _sweeping =
        sweep_in_background(limits.outputs, daemon.context.sessions.outputs(), found_from, FirstSweep::Now);
    let mut clients = JoinSet::new();
    let mut lost = None;
    loop {
        tokio::select! {
            arrival = listener.accept() => {
                daemon.receive(arrival, &mut clients);
                listener.keep_spare();
            }
            Some(left) = clients.join_next() => note(left),
            _ = daemon.shutdown.requested() => break,
            _ = signals.next() => break,
            () = monitor.lost(claim.as_ref()) => match restore_socket(&mut monitor, claim).await {
                Ok(Some(new)) => {
                    for stream in std::mem::replace(&mut listener, new).accept_last() {
                        daemon.receive(Arrival::Client(stream), &mut clients);
                    }
                }
                Ok(None) => {}
                Err(why) => {
                    lost = Some(why);
                    break;
                }
            },
        }
    }
    // Connections see the request, too, and refuse new work. An earlier request of a client stays.
    daemon.shutdown.request(EndMode::Drain, None, limits.shutdown_deadline);
    tell_manager(&[NotifyState::Stopping]);
    tokio::select! {
        () = daemon.end(listener, clients) => lost.map_or(Ok(ExitCode::SUCCESS), Err),
        // A second signal ends the process at once.
        code = signals.next() => Ok(ExitCode::from(code)),
    }
}

/// Restores a socket that was removed: connected clients go on, and others find the daemon again.
///
/// # Errors
/// When it cannot be restored. The daemon then ends, since no client could find it.
async fn restore_socket(
    monitor: &mut SocketMonitor,
    claim: &mut Option<SocketClaim>,
) -> Result<Option<Listener>, String> {
    let lost = |error: &dyn std::fmt::Display| {
        format!("Error: the socket was taken away while agentd ran, and cannot be put back: {error}")
    };
    let listener = monitor.restore(claim).await.map_err(|error| lost(&error))?;
    tracing::warn!("someone removed the socket or its lock; it is back");
    listener.map(Listener::new).transpose().map_err(|error| lost(&error))
}

/// The accepting side of the daemon.
struct Daemon {
    context: Arc<DaemonContext>,
    limits: DaemonLimits,
    options: ServeOptions,
    socket: PathBuf,
    shutdown: ShutdownSwitch,
    /// Whether the last client was refused: only the first refusal in a row is logged.
    refuses: AtomicBool,
    /// The memory for unfinished lines of all clients.
    lines: LineBudget,
    /// The free ones of [`RESERVED_CLIENTS`].
    reserved: Arc<Semaphore>,
    /// Fires when connections have to write their last lines and end.
    ending: CancellationToken,
}

/// The end of a connection, and that of its task.
type ConnectionEnd = Result<io::Result<()>, tokio::task::JoinError>;

impl Daemon {
    /// Announces that clients can connect.
    fn tell_ready(&self) {
        tell_manager(&[NotifyState::Ready]);
        let line = format!(
            "agentd {} listens on {} (pid {})\n",
            env!("CARGO_PKG_VERSION"),
            self.socket.display(),
            std::process::id()
        );
        // A program that reads the path from the line gets it unchanged.
        let line = if io::stdout().is_terminal() { harmless(&line) } else { line.as_str().into() };
        // Stdout may be closed.
        let _ = io::stdout().lock().write_all(line.as_bytes()).and_then(|()| io::stdout().flush());
        if self.options.detached {
            // The process that started the daemon reads nothing after this line.
            if let Err(error) = rustix::stdio::dup2_stdout(io::stderr()) {
                tracing::warn!(%error, "cannot let go of stdout");
            }
        }
    }

    /// Serves a client, or tells it why not and closes it.
    fn receive(&self, arrival: Arrival, clients: &mut JoinSet<io::Result<()>>) {
        let (limit, files) =
            (self.limits.max_clients, || Failure::from(resource_limits::ResourceExhausted::of_files()));
        let reserved = RESERVED_CLIENTS - self.reserved.available_permits();
        // Not the number of tasks: ended ones are counted until they are joined.
        let count = (self.context.connections.open() as usize).saturating_sub(reserved);
        match arrival {
            Arrival::OneTooMany(stream) => self.refuse(&stream, files()),
            Arrival::Client(stream) if count >= limit => {
                let text = format!("{limit} clients are connected to this daemon, as many as may.");
                let failure = Failure::limit(text, "daemon.maxClients", "Wait until one leaves.");
                self.serve_reserved(stream, failure, clients);
            }
            Arrival::Client(stream) if resource_limits::files_are_short() => {
                self.serve_reserved(stream, files(), clients);
            }
            Arrival::Client(stream) => {
                self.refuses.store(false, Ordering::Relaxed);
                self.begin(stream, None, clients);
            }
        }
    }

    /// Serves a client beyond the limit, for commands about the daemon only: users must be able to look at a full daemon and to end it.
    fn serve_reserved(&self, stream: UnixStream, failure: Failure, clients: &mut JoinSet<io::Result<()>>) {
        match Arc::clone(&self.reserved).try_acquire_owned() {
            Ok(permit) => self.begin(stream, Some(ReservedSlot::new(permit, failure)), clients),
            Err(_) => self.refuse(&stream, failure),
        }
    }

    /// Tells a client why it is closed. The buffer of a new connection takes the line at once.
    fn refuse(&self, stream: &UnixStream, failure: Failure) {
        // Logged once for many clients in a row.
        if !self.refuses.swap(true, Ordering::Relaxed) {
            tracing::warn!(error = failure.error, "clients are refused");
        }
        let mut line = Vec::new();
        match serde_json::to_vec(&Response::<()>::failed(None, None, failure)) {
            Ok(response) => write_line(&response, &mut line),
            Err(error) => return tracing::error!(%error, "cannot write a record"),
        }
        if let Err(error) = stream.try_write(&line) {
            tracing::debug!(%error, "a refused client does not hear why");
        }
    }

    fn begin(
        &self,
        stream: UnixStream,
        reserved: Option<ReservedSlot>,
        clients: &mut JoinSet<io::Result<()>>,
    ) {
        // Looked up at once: the process that has connected may pass the socket on and end.
        let peer = Peer::of(&stream, stream.peer_cred().ok().and_then(|peer| peer.pid()));
        let (lines, output) = split(stream, self.limits.max_line_bytes, self.lines.client());
        let connection = Connection {
            daemon: Arc::clone(&self.context),
            origin: Origin::Socket { path: self.socket.clone(), peer: Some(peer) },
            options: self.options.base.clone(),
            shutdown: self.shutdown.clone(),
            shutdown_deadline: self.limits.shutdown_deadline,
            max_line_bytes: self.limits.max_line_bytes,
            limits: self.limits.client,
            reserved,
        };
        let count = self.context.connections.count_connection();
        clients.spawn(connection::serve(connection, count, lines, output, self.ending.clone()));
    }

    /// Finishes or aborts work, then writes the clients' last lines. Clients that connect meanwhile are served: they can look at the
    /// daemon, and shorten the deadline.
    async fn end(&self, listener: Listener, mut clients: JoinSet<io::Result<()>>) {
        let over = async {
            self.work_is_done().await;
            if timeout(STOP_GRACE, self.context.sessions.close_all()).await.is_err() {
                complain("Error: sessions did not end in time; what they stored so far is on disk");
            }
        };
        tokio::pin!(over);
        loop {
            tokio::select! {
                () = &mut over => break,
                arrival = listener.accept() => {
                    self.receive(arrival, &mut clients);
                    listener.keep_spare();
                }
                Some(left) = clients.join_next() => note(left),
            }
        }
        drop(listener);
        self.ending.cancel();
        let left = async {
            while let Some(left) = clients.join_next().await {
                note(left);
            }
        };
        if timeout(LAST_LINES, left).await.is_err() {
            tracing::warn!("clients did not take their last lines in time");
        }
    }

    /// Waits until no session has anything to do, until the deadline, or until a client requests to abort work.
    async fn work_is_done(&self) {
        let idle = self.context.sessions.idle();
        tokio::pin!(idle);
        let mut ending = self.shutdown.requested().await;
        while ending.mode == EndMode::Drain {
            tokio::select! {
                () = &mut idle => return,
                () = sleep_until(ending.until) => {
                    tracing::warn!("work is not done in time; stopping it");
                    return;
                }
                other = self.shutdown.changed_from(Some(ending)) => ending = other,
            }
        }
    }
}

fn note(end: ConnectionEnd) {
    match end {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a client left before it had everything"),
        Err(error) => tracing::error!(%error, "a connection broke down"),
    }
}

/// Notifies the service manager, if there is one.
fn tell_manager(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "cannot tell the service manager");
    }
}
