//! `agentctl up`: a daemon in the background, unless one runs already.

use agentd_protocol::daemon::DaemonStatus;
use serde::Serialize;

use super::{one_call, run};
use crate::{
    cli::UpOptions,
    connect::socket::Endpoint,
    exit::{Exit, Fault},
};

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

/// Starts the daemon and waits until it answers.
pub(crate) fn up(options: &UpOptions) -> Exit {
    run(async {
        let endpoint = Endpoint::find()?;
        let (status, started) = endpoint.status_or_start().await?;
        tell(options, &endpoint, started, status)
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
