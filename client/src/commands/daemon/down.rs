//! `agentctl down`: the end of the daemon, and waiting for it.

use std::time::Duration;

use agentd_protocol::daemon::{EndMode, ShutdownParams};
use tokio::time::timeout;

use super::{
    gone::{gone, watch},
    one_call, run,
};
use crate::{
    cli::DownOptions,
    connect::socket::Endpoint,
    exit::{Exit, Fault, tell},
    rpc::{CallError, Shutdown},
};

/// What the daemon gives work when nobody says otherwise.
const DEFAULT_DEADLINE: Duration = Duration::from_secs(30);

/// How long the end may take once the deadline has passed.
pub(super) const GRACE: Duration = Duration::from_secs(15);

/// Ends the daemon and waits until it is gone. One that is ending already does so sooner, if that is wished.
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
        let remaining = status.ending.map(|ending| Duration::from_millis(ending.remaining_ms));
        let allowed = match (deadline, remaining) {
            (Some(deadline), Some(remaining)) => deadline.min(remaining),
            (deadline, remaining) => deadline.or(remaining).unwrap_or(DEFAULT_DEADLINE),
        };
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
