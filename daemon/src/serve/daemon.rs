//! Serving a local socket: many sessions and clients, until a signal or a client ends it.

use std::{
    io::{self, IsTerminal, Write},
    os::unix::net::UnixListener,
    path::PathBuf,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
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
    FAILED, check_file_limit, fail,
    limits::DaemonLimits,
    outputs::{First, keep_within},
    run,
    signals::Signals,
};
use crate::{
    cli::ServeOptions,
    complain, compose,
    connection::{self, Connection, Origin, Reserved},
    hub::{DaemonContext, SessionRegistry, ShutdownSwitch, resource_limits},
    transport::{
        keeper::Keeper,
        listener::{Arrival, Listener},
        place::{Place, PlaceError},
        room::LineRoom,
        socket,
    },
};

/// Ends with this when a daemon is there already.
const ALREADY_RUNNING: u8 = 4;

/// How long sessions have to store the end of work that is stopped.
const STOP_GRACE: Duration = Duration::from_secs(10);

/// Clients beyond those that there may be, who see to the daemon itself.
const RESERVED_CLIENTS: usize = 4;

/// How long clients have to take the last lines.
const LAST_LINES: Duration = Duration::from_secs(2);

/// Variables that are meant for this process alone, and not for what sessions start.
const OURS: [&str; 6] =
    ["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"];

/// Serves until a signal or a client ends it. For `main`, before there are other threads.
///
/// The socket is the one that a service manager passed on, else one of our own. When clients can come, a line on stdout
/// and the service manager say so.
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
    OURS.iter().for_each(|name| options.base.environment.remove(name));
    if options.detached {
        leave();
    }
    let taken = match passed {
        Some(listener) => Ok((None, listener)),
        None => Place::take(&options.socket).map(|(place, listener)| (Some(place), listener)),
    };
    let (mut place, listener) = match taken {
        Ok(taken) => taken,
        Err(error) => {
            let code = if matches!(error, PlaceError::Running { .. }) { ALREADY_RUNNING } else { FAILED };
            return fail(&format!("Error: {error}"), code);
        }
    };
    let code = run(serve(options, &mut place, listener));
    // Only now can another daemon be here.
    drop(place);
    code
}

/// Leaves the terminal of whoever started us, and the folder: it may be removed while we run.
fn leave() {
    if let Err(error) = rustix::process::setsid() {
        tracing::warn!(%error, "cannot leave the session of the terminal");
    }
    if let Err(error) = std::env::set_current_dir("/") {
        tracing::warn!(%error, "cannot leave the working directory");
    }
}

async fn serve(
    options: ServeOptions,
    place: &mut Option<Place>,
    listener: UnixListener,
) -> Result<ExitCode, String> {
    let failed = |what: &'static str| move |error: io::Error| format!("Error: cannot {what}: {error}");
    let mut signals = Signals::of_a_daemon().map_err(failed("watch signals"))?;
    let path = listener.local_addr().ok().and_then(|address| Some(address.as_pathname()?.to_owned()));
    let base = &options.base;
    let limits = DaemonLimits::load(&base.environment, base.compat, &base.cwd);
    let memory = limits.memory();
    let services =
        compose::services(&base.environment, base.compat, &base.cwd, limits.max_commands, &memory)?;
    let mut listener = Listener::new(listener).map_err(failed("listen"))?;
    let mut keeper = Keeper::watch(place.as_ref());
    let daemon = Daemon {
        context: DaemonContext::new(SessionRegistry::new(limits.session, limits.resources, services)),
        limits,
        socket: path.unwrap_or(options.socket.clone()),
        shutdown: ShutdownSwitch::default(),
        refuses: AtomicBool::new(false),
        ending: CancellationToken::new(),
        lines: LineRoom::new(memory, limits.line_idle),
        reserved: Arc::new(Semaphore::new(RESERVED_CLIENTS)),
        options,
    };
    daemon.tell_ready();
    let base = &daemon.options.base;
    let found_from = (&base.environment, base.compat, &*base.cwd);
    let _sweeping = keep_within(limits.outputs, daemon.context.sessions.outputs(), found_from, First::Now);
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
            () = keeper.lost(place.as_ref()) => match put_back(&mut keeper, place).await {
                Ok(Some(new)) => {
                    for stream in std::mem::replace(&mut listener, new).last() {
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
    // Connections see it too, and take no new work. What a client has asked for stays.
    daemon.shutdown.request(EndMode::Drain, None, limits.shutdown_deadline);
    tell_manager(&[NotifyState::Stopping]);
    tokio::select! {
        () = daemon.end(listener, clients) => lost.map_or(Ok(ExitCode::SUCCESS), Err),
        // A second one means now.
        code = signals.next() => Ok(ExitCode::from(code)),
    }
}

/// Puts a socket back that someone removed: clients who are here go on, and others find us again.
///
/// # Errors
/// When there is no way back. Nobody could find us then, so there is nothing left but to end.
async fn put_back(keeper: &mut Keeper, place: &mut Option<Place>) -> Result<Option<Listener>, String> {
    let lost = |error: &dyn std::fmt::Display| {
        format!("Error: the socket was taken away while agentd ran, and cannot be put back: {error}")
    };
    let listener = keeper.put_back(place).await.map_err(|error| lost(&error))?;
    tracing::warn!("someone removed the socket or its lock; it is back");
    listener.map(Listener::new).transpose().map_err(|error| lost(&error))
}

/// What clients share.
struct Daemon {
    context: Arc<DaemonContext>,
    limits: DaemonLimits,
    options: ServeOptions,
    socket: PathBuf,
    shutdown: ShutdownSwitch,
    /// Whether the last client was refused.
    refuses: AtomicBool,
    /// The room for what clients are sending.
    lines: LineRoom,
    /// Places for clients beyond those that there may be, who come to see to the daemon itself.
    reserved: Arc<Semaphore>,
    /// Fires when connections are to write what they owe, and end.
    ending: CancellationToken,
}

/// How a connection ended, and how its task did.
type Left = Result<io::Result<()>, tokio::task::JoinError>;

impl Daemon {
    /// Says that clients can come.
    fn tell_ready(&self) {
        tell_manager(&[NotifyState::Ready]);
        let line = format!(
            "agentd {} listens on {} (pid {})\n",
            env!("CARGO_PKG_VERSION"),
            self.socket.display(),
            std::process::id()
        );
        // A program reads the path from it.
        let line = if io::stdout().is_terminal() { harmless(&line) } else { line.as_str().into() };
        // A reader who has left does not want to know.
        let _ = io::stdout().lock().write_all(line.as_bytes()).and_then(|()| io::stdout().flush());
        if self.options.detached {
            // Whoever started us has waited for this line, and reads no more.
            if let Err(error) = rustix::stdio::dup2_stdout(io::stderr()) {
                tracing::warn!(%error, "cannot let go of stdout");
            }
        }
    }

    /// Serves a client, or says why not and leaves it: whoever is here goes on.
    fn receive(&self, arrival: Arrival, clients: &mut JoinSet<io::Result<()>>) {
        let (limit, files) =
            (self.limits.max_clients, || Failure::from(resource_limits::ResourceExhausted::of_files()));
        let reserved = RESERVED_CLIENTS - self.reserved.available_permits();
        // Not the tasks: one that has ended is still there until somebody looks.
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

    /// Serves a client that there is no place for as far as it wants to see to the daemon itself: what keeps all places must not keep its
    /// user from looking at it, or from ending it. There are few places for that.
    fn serve_reserved(&self, stream: UnixStream, failure: Failure, clients: &mut JoinSet<io::Result<()>>) {
        match Arc::clone(&self.reserved).try_acquire_owned() {
            Ok(place) => self.begin(stream, Some(Reserved::new(place, failure)), clients),
            Err(_) => self.refuse(&stream, failure),
        }
    }

    /// Tells a client why it is left. A line is less than what a new connection takes without waiting.
    fn refuse(&self, stream: &UnixStream, failure: Failure) {
        // Once for a crowd.
        if !self.refuses.swap(true, Ordering::Relaxed) {
            tracing::warn!(error = failure.error, "clients are refused");
        }
        let mut line = Vec::new();
        match serde_json::to_vec(&Response::<()>::failed(None, None, failure)) {
            Ok(response) => write_line(&response, &mut line),
            Err(error) => return tracing::error!(%error, "cannot write a record"),
        }
        if let Err(error) = stream.try_write(&line) {
            tracing::debug!(%error, "a client that is left does not hear why");
        }
    }

    fn begin(&self, stream: UnixStream, reserved: Option<Reserved>, clients: &mut JoinSet<io::Result<()>>) {
        // Now, and not later: whoever has connected may hand the socket on and end.
        let peer = Peer::of(&stream, stream.peer_cred().ok().and_then(|peer| peer.pid()));
        let (lines, output) = socket::split(stream, self.limits.max_line_bytes, self.lines.enter());
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

    /// Lets sessions finish or stops them, then gives clients the last lines. Whoever comes meanwhile is served: they can ask how
    /// it goes, and make it shorter.
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

    /// Waits until no session has anything to do, or work is to be stopped: at the deadline, or because a client wants that.
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

fn note(left: Left) {
    match left {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a client left before it had everything"),
        Err(error) => tracing::error!(%error, "a connection broke down"),
    }
}

/// Tells the service manager, where there is one.
fn tell_manager(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "cannot tell the service manager");
    }
}
