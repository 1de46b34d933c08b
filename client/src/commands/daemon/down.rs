//! `agentctl down`: the end of the daemon, and waiting for it.

use std::{thread, time::Duration};

use agentd_protocol::daemon::{EndMode, ShutdownParams};
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    process::{Pid, PidfdFlags, pidfd_open},
};
use tokio::{sync::oneshot, time::timeout};

use super::{one_call, run};
use crate::{
    cli::DownOptions,
    connect::socket::{Connection, Endpoint},
    exit::{Exit, Fault, tell},
    rpc::{CallError, Shutdown},
};

/// What the daemon gives work when nobody says otherwise.
const DEFAULT_DEADLINE: Duration = Duration::from_secs(30);

/// How long the end may take once the deadline has passed.
const GRACE: Duration = Duration::from_secs(15);

/// Ends the daemon and waits until it is gone.
pub(crate) fn down(options: &DownOptions) -> Exit {
    run(async {
        let endpoint = Endpoint::find()?;
        let Some(connection) = endpoint.connect().await? else {
            return one_call::print("agentd is not running\n");
        };
        let status = connection.status(&endpoint).await?;
        let pid = status.daemon.pid;
        // Taken before it is asked to end: afterwards the number may be another process's.
        let process = watch(pid);
        let deadline = options.deadline.map(Duration::from_secs);
        let mode = if options.abort { EndMode::Abort } else { EndMode::Drain };
        let params = ShutdownParams { mode, deadline_ms: deadline.map(milliseconds) };
        match connection.client.call::<Shutdown>(&params).await {
            // It may be gone before its answer is read: that is what was asked for.
            Ok(()) | Err(CallError::Ended { .. }) => {}
            Err(error) => return Err(one_call::fault(&error)),
        }
        let allowed = deadline.unwrap_or(DEFAULT_DEADLINE);
        if status.running_sessions > 0 && mode == EndMode::Drain {
            let (count, seconds) = (status.running_sessions, allowed.as_secs());
            tell(&format!("Waiting for {count} session(s) to finish, {seconds} s at most."));
        }
        if timeout(allowed.saturating_add(GRACE), gone(connection, process)).await.is_err() {
            return Err(Fault::new(Exit::Failed, format!("agentctl: agentd (pid {pid}) has not ended yet.")));
        }
        one_call::print(&format!("agentd has ended (pid {pid})\n"))
    })
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Watches the end of a process, on a thread that ends with it or with us; `None` where it cannot be seen.
fn watch(pid: u32) -> Option<oneshot::Receiver<()>> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw)?;
    // It stands for this process, whatever becomes of the number.
    let process = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    let (ended, receiver) = oneshot::channel();
    let wait = move || {
        // Readable from its end on. Every other error means that there is nothing to wait for.
        while let Err(Errno::INTR) = poll(&mut [PollFd::new(&process, PollFlags::IN)], None) {}
        // Nobody waits any more when the patience is over.
        let _ = ended.send(());
    };
    thread::Builder::new().name("end-of-agentd".into()).spawn(wait).ok()?;
    Some(receiver)
}

/// Waits until the daemon has closed the connection and, where it can be seen, its process has ended.
async fn gone(mut connection: Connection, process: Option<oneshot::Receiver<()>>) {
    connection.ended().await;
    if let Some(process) = process {
        // An error is as good: the thread is gone.
        let _ = process.await;
    }
}
