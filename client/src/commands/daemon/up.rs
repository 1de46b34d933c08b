//! `agentctl up`: a daemon in the background, unless one runs already.

use std::process::ExitStatus;

use agentd_protocol::daemon::DaemonStatus;

use super::{one_call, run};
use crate::{
    connect::{
        background::{Background, Started},
        socket::Endpoint,
    },
    exit::{Exit, Fault},
};

/// agentd ends with this when a daemon is there already.
const ALREADY_RUNNING: i32 = 4;

/// How often to try when someone else is faster, and then is not to be found: it has not begun to listen, or it is ending.
const ATTEMPTS: usize = 3;

/// Starts the daemon and waits until it answers.
pub(crate) fn up() -> Exit {
    run(async {
        let endpoint = Endpoint::find()?;
        let mut rival = String::new();
        for _ in 0..ATTEMPTS {
            if let Some(status) = endpoint.status().await? {
                return tell("is running already", &endpoint, &status);
            }
            match Background::start(&endpoint)?.started().await? {
                Started::Listens => return greet(&endpoint).await,
                Started::Ended(status, said) if status.code() == Some(ALREADY_RUNNING) => rival = said,
                Started::Ended(status, said) => return Err(not_started(&endpoint, status, &said)),
            }
        }
        match endpoint.status().await? {
            Some(status) => tell("is running already", &endpoint, &status),
            None => {
                let text = format!(
                    "{rival}\nagentctl: it takes no clients: it is ending. Try again when it has ended."
                );
                Err(Fault::new(Exit::NoDaemon, text))
            }
        }
    })
}

async fn greet(endpoint: &Endpoint) -> Result<Exit, Fault> {
    match endpoint.status().await? {
        Some(status) => tell("is running", endpoint, &status),
        None => {
            let log = endpoint.log_file();
            let text =
                format!("agentctl: agentd has ended right after its start; {} may say why.", log.display());
            Err(Fault::new(Exit::NoDaemon, text))
        }
    }
}

fn not_started(endpoint: &Endpoint, status: ExitStatus, said: &str) -> Fault {
    let log = endpoint.log_file();
    let text = format!("{said}\nagentctl: agentd did not start ({status}); see {}.", log.display());
    Fault::new(Exit::NoDaemon, text.trim_start())
}

fn tell(how: &str, endpoint: &Endpoint, status: &DaemonStatus) -> Result<Exit, Fault> {
    let (pid, socket) = (status.daemon.pid, endpoint.socket.display());
    one_call::print(&format!("agentd {how} (pid {pid}, socket {socket})\n"))
}
