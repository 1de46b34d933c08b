//! `agentctl up` and `agentctl down`: starts and ends the daemon.

use std::{thread, time::Duration};

use agentd_protocol::daemon::{DaemonEnding, DaemonStatus, EndMode, ShutdownParams};
use jiff::Timestamp;
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    process::{Pid, PidfdFlags, pidfd_open},
};
use serde::Serialize;
use tokio::{sync::oneshot, time::timeout};

use super::{at_work::live_sessions, daemon_call::block_on};
use crate::{
    cli::{DownOptions, UpOptions},
    exit::{Exit, Fault, conclude, print_stderr},
    output,
    render::short_time,
    rpc::{CallError, Shutdown},
    shared_daemon::{DaemonConnection, Endpoint},
};

/// How many daemons that are ending are waited for.
const ATTEMPTS: usize = 3;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UpReport<'a> {
    /// Whether this command started the daemon.
    started: bool,
    socket: &'a str,
    #[serde(flatten)]
    status: DaemonStatus,
}

/// Starts the daemon and waits until it answers. A daemon that is ending is waited for and replaced.
pub(crate) fn up(options: &UpOptions) -> Exit {
    conclude(block_on(async {
        let endpoint = Endpoint::find()?;
        for _ in 0..ATTEMPTS {
            let (connection, status, started) = endpoint.status_or_start().await?;
            match status.ending {
                None => return print_running(options, &endpoint, started, status),
                Some(ending) => see_out(options, connection, &status, ending).await?,
            }
        }
        Err(Fault::new(Exit::Ending, "agentctl: agentd is ended again after each start; try again later."))
    }))
}

/// Waits until a daemon that is ending is gone.
async fn see_out(
    options: &UpOptions,
    connection: DaemonConnection,
    status: &DaemonStatus,
    ending: DaemonEnding,
) -> Result<(), Fault> {
    let pid = status.daemon.pid;
    let process = watch(pid);
    let remaining = Duration::from_millis(ending.remaining_ms);
    let until_gone = remaining.saturating_add(GRACE);
    let allowed = options.timeout.unwrap_or(until_gone).min(until_gone);
    let time = short_time(remaining.min(allowed).as_secs());
    let works = works(&connection, status, ending.mode).await;
    print_stderr(&match works {
        Some((count, list)) => {
            format!(
                "agentd (pid {pid}) is ending: waiting for {count} session(s) to finish, {time} at most.{list}"
            )
        }
        None => format!("agentd (pid {pid}) is ending: waiting for its end."),
    });
    timeout(allowed, gone(connection, process)).await.map_err(|_| {
        let text = format!(
            "agentctl: agentd (pid {pid}) is ending and has not ended yet. Try again, or stop its work with `agentctl down --abort`."
        );
        Fault::new(Exit::Ending, text)
    })
}

/// How many sessions a daemon finishes before it ends, and lines about them, each after a line feed; `None` when there are none.
/// A daemon that ends meanwhile finishes none.
async fn works(
    connection: &DaemonConnection,
    status: &DaemonStatus,
    mode: EndMode,
) -> Option<(usize, String)> {
    if mode == EndMode::Abort {
        return None;
    }
    match live_sessions(&connection.client).await {
        Ok(live) => {
            let count = live.at_work().len();
            let list = format!("\n{}`agentctl down --abort` stops them.", live.text(Timestamp::now()));
            (count > 0).then_some((count, list))
        }
        Err(CallError::Ended { .. }) => None,
        // Such as an agentd of another version: the caller waits all the same.
        Err(_) => {
            let count = status.running_sessions as usize;
            (count > 0).then(|| (count, " `agentctl down --abort` stops them.".to_owned()))
        }
    }
}

fn print_running(
    options: &UpOptions,
    endpoint: &Endpoint,
    started: bool,
    status: DaemonStatus,
) -> Result<Exit, Fault> {
    let socket = endpoint.socket.display().to_string();
    if options.json {
        // The report has the socket already.
        let status = DaemonStatus { socket: None, ..status };
        return output::print_json(&UpReport { started, socket: &socket, status });
    }
    let how = if started { "is running" } else { "is running already" };
    output::print(&format!("agentd {how} (pid {}, socket {socket})\n", status.daemon.pid))
}

/// The daemon's own deadline for its work.
const DEFAULT_DEADLINE: Duration = Duration::from_secs(30);

/// How long the end may take after the deadline.
const GRACE: Duration = Duration::from_secs(15);

/// Ends the daemon and waits until it is gone. Makes the end of a daemon that is ending already stricter or sooner.
pub(crate) fn down(options: &DownOptions) -> Exit {
    conclude(block_on(async {
        let endpoint = Endpoint::find()?;
        for _ in 0..ATTEMPTS {
            let Some(connection) = endpoint.connect().await? else {
                return output::print("agentd is not running\n");
            };
            // One that ends as we connect is gone, or has a successor.
            if let Some(status) = connection.status_unless_ended(&endpoint).await? {
                return end(options, connection, &status).await;
            }
        }
        Err(endpoint.unusable("agentd ended before it answered, again and again").into())
    }))
}

/// Asks a daemon to end, and waits until it is gone.
async fn end(
    options: &DownOptions,
    connection: DaemonConnection,
    status: &DaemonStatus,
) -> Result<Exit, Fault> {
    let pid = status.daemon.pid;
    // Opened before the daemon is asked to end: afterwards the process id may be another process's.
    let process = watch(pid);
    let mode = if options.abort { EndMode::Abort } else { EndMode::Drain };
    let params = ShutdownParams { mode, deadline_ms: options.deadline.map(milliseconds) };
    match connection.client.call::<Shutdown>(&params).await {
        // The daemon may be gone before its answer is read.
        Ok(()) | Err(CallError::Ended { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    // What another client asked for before us counts, too.
    let ending = match &status.ending {
        Some(ending) if ending.mode == EndMode::Abort => Some(Duration::ZERO),
        Some(ending) => Some(Duration::from_millis(ending.remaining_ms)),
        None => None,
    };
    let allowed = match (options.deadline, ending) {
        (Some(deadline), Some(remaining)) => deadline.min(remaining),
        (deadline, remaining) => deadline.or(remaining).unwrap_or(DEFAULT_DEADLINE),
    };
    if let Some((count, list)) = works(&connection, status, mode).await {
        let time = short_time(allowed.as_secs());
        print_stderr(&format!("Waiting for {count} session(s) to finish, {time} at most.{list}"));
    }
    if timeout(allowed.saturating_add(GRACE), gone(connection, process)).await.is_err() {
        let text = format!(
            "agentctl: agentd (pid {pid}) has not ended yet. `agentctl status` says what it waits for, `agentctl down --abort` stops that."
        );
        return Err(Fault::new(Exit::Failed, text));
    }
    output::print(&format!("agentd has ended (pid {pid})\n"))
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Waits for the end of a process on a thread; `None` where the process cannot be watched.
fn watch(pid: u32) -> Option<oneshot::Receiver<()>> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw)?;
    // The descriptor stands for this process, even when its id is reused.
    let process = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    let (ended, receiver) = oneshot::channel();
    let wait = move || {
        // Readable once the process has ended. Other errors mean that there is nothing to wait for.
        while let Err(Errno::INTR) = poll(&mut [PollFd::new(&process, PollFlags::IN)], None) {}
        // Fails when the time for waiting is over.
        let _ = ended.send(());
    };
    thread::Builder::new().name("end-of-agentd".into()).spawn(wait).ok()?;
    Some(receiver)
}

/// Waits until the daemon has closed the connection and its process has ended, where that can be watched.
async fn gone(mut connection: DaemonConnection, process: Option<oneshot::Receiver<()>>) {
    connection.ended().await;
    if let Some(process) = process {
        // An error means that the thread is gone.
        let _ = process.await;
    }
}
