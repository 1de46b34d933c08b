//! How verbs reach agentd: the daemon that all clients share, an agentd of our own (private), or whichever is there.

use std::{
    future::Future,
    io::{self, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agentd_protocol::daemon::{ClientCapabilities, HelloParams, PROTOCOL, Role};
use tokio::sync::mpsc;

use crate::{
    exit::{self, Exit, Fault, Signals},
    output::Output,
    private_daemon::{PrivateDaemon, StartOptions},
    rpc::{Call, CallError, Client, EventLine, Hello},
    shared_daemon::{DaemonConnection, Endpoint, client_info},
};

/// Runs the work on a runtime of its own. A signal ends it without a message.
///
/// # Errors
/// Those of the work, and of the runtime's start.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    let broken = |error: std::io::Error| Fault::new(Exit::Failed, format!("agentctl: cannot start: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(broken)?;
    runtime.block_on(async {
        let mut signals = Signals::listen().map_err(broken)?;
        tokio::select! {
            biased;
            exit = signals.next() => Err(Fault::new(exit, "")),
            done = work => done,
        }
    })
}

/// Makes one call to the daemon where one runs, else to an agentd of our own.
///
/// # Errors
/// As [`private`].
pub(crate) fn any<C: Call>(params: &C::Params) -> Result<C::Data, Fault> {
    let answer = block_on(async {
        match Endpoint::find()?.connect().await? {
            Some(connection) => Ok(Some(connection.client.call::<C>(params).await?)),
            None => Ok(None),
        }
    })?;
    match answer {
        Some(data) => Ok(data),
        None => private::<C>(params),
    }
}

/// Connects to the daemon and introduces us; `None` when none runs.
///
/// # Errors
/// When the daemon refuses us, or something else listens.
pub(crate) async fn connect(role: Role) -> Result<Option<DaemonConnection>, Fault> {
    connect_as(role, false).await
}

/// As [`require`], for a verb that answers questions of the session. An observer is not asked.
///
/// # Errors
/// As [`require`].
pub(crate) async fn require_answering(role: Role) -> Result<DaemonConnection, Fault> {
    match connect_as(role, role == Role::Control).await? {
        Some(connection) => Ok(connection),
        None => Err(not_running(&Endpoint::find()?)),
    }
}

async fn connect_as(role: Role, ui: bool) -> Result<Option<DaemonConnection>, Fault> {
    let Some(connection) = Endpoint::find()?.connect().await? else { return Ok(None) };
    let hello = HelloParams {
        protocol: PROTOCOL,
        client: Some(client_info()),
        capabilities: ClientCapabilities {
            sessions: true,
            ui,
            permissions: ui,
            ..ClientCapabilities::default()
        },
        role,
    };
    connection.client.call::<Hello>(&hello).await?;
    Ok(Some(connection))
}

/// As [`connect`], for verbs that make no sense without a daemon.
///
/// # Errors
/// As [`connect`], and when none runs.
pub(crate) async fn require(role: Role) -> Result<DaemonConnection, Fault> {
    match connect(role).await? {
        Some(connection) => Ok(connection),
        None => Err(not_running(&Endpoint::find()?)),
    }
}

fn not_running(endpoint: &Endpoint) -> Fault {
    let text = format!(
        "agentctl: agentd is not running (socket {}), so nothing is in its memory. `agentctl up` starts it.",
        endpoint.socket.display()
    );
    Fault::new(Exit::NoDaemon, text)
}

/// How long an agentd that has answered may take to end. It has nothing to store.
const CLOSE_GRACE: Duration = Duration::from_secs(2);

/// How long it may take after a signal, or when its output is closed already.
const HURRIED_GRACE: Duration = Duration::from_millis(300);

/// No call of one answer needs MCP servers, extensions or packages that are not there: starting or getting those takes long, and what is wrong
/// with one must not stand in the way of asking.
const WITHOUT_SERVERS: &[&str] = &["--no-mcp", "--no-extensions", "--offline"];

/// Starts `agentd --stdio --no-session` with [`WITHOUT_SERVERS`] in this folder, makes one call, and ends it. Its stderr goes to ours.
///
/// # Errors
/// A refusal exits with 1 and keeps its hint; an agentd that is missing or breaks down exits with 3. A signal ends the
/// call without a message.
pub(crate) fn private<C: Call>(params: &C::Params) -> Result<C::Data, Fault> {
    call_private::<C>(WITHOUT_SERVERS, params, Output::start)
}

/// As [`private`], for answers that tell themselves what is wrong with the user's files: agentd's stderr is printed
/// only when there is no answer.
///
/// # Errors
/// As [`private`].
pub(crate) fn private_quietly<C: Call>(params: &C::Params) -> Result<C::Data, Fault> {
    private_quietly_with::<C>(WITHOUT_SERVERS, params)
}

/// As [`private_quietly`], with other flags for agentd than `--no-mcp`.
///
/// # Errors
/// As [`private`].
pub(crate) fn private_quietly_with<C: Call>(flags: &[&str], params: &C::Params) -> Result<C::Data, Fault> {
    let kept = KeptStderr::default();
    let answer = call_private::<C>(flags, params, || Output::start_with(io::stdout(), kept.clone()));
    if answer.is_err() {
        // A stderr that cannot be written has no reader.
        let _ = exit::stderr().write_all(&kept.take());
    }
    answer
}

/// The stderr of agentd, kept until the call has ended.
#[derive(Clone, Default)]
struct KeptStderr(Arc<Mutex<Vec<u8>>>);

impl KeptStderr {
    /// How many bytes are kept.
    const MOST: usize = 64 * 1024;

    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.bytes())
    }
}

impl Write for KeptStderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut kept = self.bytes();
        let room = Self::MOST.saturating_sub(kept.len());
        kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn call_private<C: Call>(
    flags: &[&str],
    params: &C::Params,
    output: impl FnOnce() -> io::Result<Output>,
) -> Result<C::Data, Fault> {
    let args = ["--no-session"].iter().chain(flags).map(|flag| (*flag).to_owned()).collect();
    hold_private(StartOptions { args, cwd: None }, output, async |client: &Client, _: &mut Events| {
        client.call::<C>(params).await
    })
}

/// Starts `agentd --stdio`, makes several calls, and ends it. Its stderr goes to ours.
///
/// # Errors
/// As [`private`].
pub(crate) fn with_private<T>(
    start: StartOptions,
    work: impl AsyncFnOnce(&Client) -> Result<T, CallError>,
) -> Result<T, Fault> {
    hold_private(start, Output::start, async |client: &Client, _: &mut Events| work(client).await)
}

/// As [`with_private`], for work that takes the events, too.
///
/// # Errors
/// As [`private`].
pub(crate) fn with_private_events<T>(
    start: StartOptions,
    work: impl AsyncFnOnce(&Client, &mut Events) -> Result<T, CallError>,
) -> Result<T, Fault> {
    hold_private(start, Output::start, work)
}

/// The events of an agentd.
pub(crate) type Events = mpsc::Receiver<EventLine>;

/// As [`with_private`]; agentd's stderr is printed only when there is no answer.
///
/// # Errors
/// As [`private`].
pub(crate) fn with_private_quietly<T>(
    start: StartOptions,
    work: impl AsyncFnOnce(&Client) -> Result<T, CallError>,
) -> Result<T, Fault> {
    let kept = KeptStderr::default();
    let output = || Output::start_with(io::stdout(), kept.clone());
    let answer = hold_private(start, output, async |client: &Client, _: &mut Events| work(client).await);
    if answer.is_err() {
        // A stderr that cannot be written has no reader.
        let _ = exit::stderr().write_all(&kept.take());
    }
    answer
}

fn hold_private<T>(
    start: StartOptions,
    output: impl FnOnce() -> io::Result<Output>,
    work: impl AsyncFnOnce(&Client, &mut Events) -> Result<T, CallError>,
) -> Result<T, Fault> {
    let broken = |error: io::Error| Fault::new(Exit::Failed, format!("agentctl: cannot start: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(broken)?;
    let answer = runtime.block_on(async {
        let mut signals = Signals::listen().map_err(broken)?;
        let output = output().map_err(broken)?;
        let mut daemon = PrivateDaemon::start(start, output.sender())?;
        let asked = tokio::select! {
            biased;
            exit = signals.next() => Err(NoAnswer::Signal(exit)),
            answer = work(&daemon.client, &mut daemon.incoming.events) => answer.map_err(NoAnswer::Call),
        };
        let answer = tokio::select! {
            answer = end(daemon, asked) => answer,
            // Dropping the daemon kills it.
            exit = signals.next() => Err(Fault::new(exit, "")),
        };
        // The stderr of agentd comes before our own words about it. A stderr that cannot be written has no reader.
        let _ = tokio::time::timeout(HURRIED_GRACE, output.finish()).await;
        answer
    });
    // The writing thread may hang on a stderr that nobody reads.
    runtime.shutdown_background();
    answer
}

/// The reason why there is no answer.
enum NoAnswer {
    Signal(Exit),
    Call(CallError),
}

/// Ends the daemon and gives the answer, or the fault.
async fn end<T>(daemon: PrivateDaemon, asked: Result<T, NoAnswer>) -> Result<T, Fault> {
    let fault = match asked {
        Ok(answer) => {
            daemon.close(CLOSE_GRACE).await;
            return Ok(answer);
        }
        Err(NoAnswer::Signal(exit)) => Fault::new(exit, ""),
        Err(NoAnswer::Call(CallError::Ended { .. })) => {
            return Err(daemon.not_started(HURRIED_GRACE).await);
        }
        Err(NoAnswer::Call(error)) => error.into(),
    };
    daemon.close(HURRIED_GRACE).await;
    Err(fault)
}
