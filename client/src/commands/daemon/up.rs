//! `agentctl up`: a daemon in the background, unless one runs already.

use std::time::Duration;

use agentd_protocol::daemon::{DaemonEnding, DaemonStatus};
use serde::Serialize;
use tokio::time::timeout;

use super::{
    down::GRACE,
    gone::{gone, watch},
    one_call, run,
};
use crate::{
    cli::UpOptions,
    connect::socket::{Connection, Endpoint},
    exit::{Exit, Fault, tell as say},
};

/// How often a daemon that is ending is waited for.
const ATTEMPTS: usize = 3;

/// What `--json` prints.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    /// Whether this command has started it.
    started: bool,
    /// Where clients find it.
    socket: &'a str,
    #[serde(flatten)]
    status: DaemonStatus,
}

/// Starts the daemon and waits until it answers. One that is ending is waited for, and followed by another.
pub(crate) fn up(options: &UpOptions) -> Exit {
    run(async {
        let endpoint = Endpoint::find()?;
        for _ in 0..ATTEMPTS {
            let (connection, status, started) = endpoint.status_or_start().await?;
            match status.ending {
                None => return tell(options, &endpoint, started, status),
                Some(ending) => see_out(connection, &status, ending).await?,
            }
        }
        Err(Fault::new(Exit::Ending, "agentctl: agentd is ended by somebody whenever it has started."))
    })
}

/// Waits until a daemon that is ending is gone: another one can start then.
async fn see_out(connection: Connection, status: &DaemonStatus, ending: DaemonEnding) -> Result<(), Fault> {
    let pid = status.daemon.pid;
    let process = watch(pid);
    let remaining = Duration::from_millis(ending.remaining_ms);
    say(&format!(
        "agentd (pid {pid}) is ending: waiting for {} session(s) to finish, {} s at most. `agentctl down --abort` stops them.",
        status.running_sessions,
        remaining.as_secs()
    ));
    let waited = timeout(remaining.saturating_add(GRACE), gone(connection, process)).await;
    waited.map_err(|_| {
        let text = format!(
            "agentctl: agentd (pid {pid}) is ending and has not ended yet. Try again, or stop its work by `agentctl down --abort`."
        );
        Fault::new(Exit::Ending, text)
    })
}

fn tell(
    options: &UpOptions,
    endpoint: &Endpoint,
    started: bool,
    status: DaemonStatus,
) -> Result<Exit, Fault> {
    let socket = endpoint.socket.display().to_string();
    if options.json {
        // The socket stands once: where we found it is where it is.
        let status = DaemonStatus { socket: None, ..status };
        return one_call::print_json(&Report { started, socket: &socket, status });
    }
    let how = if started { "is running" } else { "is running already" };
    one_call::print(&format!("agentd {how} (pid {}, socket {socket})\n", status.daemon.pid))
}
