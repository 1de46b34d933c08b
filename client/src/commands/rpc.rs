//! `agentctl rpc`: passes the protocol of a session, or of the daemon itself, through to stdin and stdout.

mod simple;

use std::{io, os::unix::process::CommandExt, process::Command};

use agentd_connect::{
    ConnectError, OpenedSession, PassThroughError, find_agentd, pass_through, standard_streams,
};
use agentd_protocol::daemon::ClientCapabilities;

use super::{daemon_call, headless_session};
use crate::{
    cli::{DaemonChoice, RpcOptions},
    exit::{Exit, Fault, conclude, print_stderr},
    shared_daemon::{ChosenDaemon, Endpoint},
};

/// The meaning of the end of stdin, unless the flags say otherwise.
const DRAIN: [&str; 2] = ["--on-eof", "drain"];

/// Passes lines through until both sides have ended.
pub(crate) fn run(options: &RpcOptions) -> Exit {
    conclude(if options.simple { simple::run(options) } else { serve(options) })
}

fn serve(options: &RpcOptions) -> Result<Exit, Fault> {
    let passed = daemon_call::block_on(async {
        let chosen = if options.daemon {
            bare(options.choice).await?
        } else {
            ChosenDaemon::choose(options.choice).await?
        };
        let ChosenDaemon::Shared(endpoint, stream) = chosen else { return Ok(None) };
        let (stream, first) = if options.daemon {
            (stream, Vec::new())
        } else {
            let args = DRAIN.into_iter().map(str::to_owned).chain(options.args.iter().cloned()).collect();
            let opened = headless_session::opening(None, args, ClientCapabilities::default())?
                .open(&endpoint, stream)
                .await?;
            let OpenedSession { stream, rest, warnings } = opened;
            warnings.iter().for_each(|warning| print_stderr(&format!("Warning: {warning}")));
            (stream, rest)
        };
        let (input, output) = standard_streams().map_err(broken)?;
        match pass_through(stream, first, input, output).await {
            Ok(()) => Ok(Some(Exit::Answered)),
            Err(PassThroughError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                Ok(Some(Exit::OutputClosed))
            }
            Err(error) => Err(broken(error)),
        }
    })?;
    match passed {
        Some(exit) => Ok(exit),
        None => Err(become_agentd(&options.args)),
    }
}

/// The daemon itself. An agentd of our own has no use here.
async fn bare(choice: DaemonChoice) -> Result<ChosenDaemon, Fault> {
    match ChosenDaemon::choose(choice).await? {
        ChosenDaemon::Private => {
            let endpoint = Endpoint::find()?;
            Err(ConnectError::NotRunning(endpoint.socket.clone()).into())
        }
        shared @ ChosenDaemon::Shared(..) => Ok(shared),
    }
}

fn broken(error: PassThroughError) -> Fault {
    let exit = match &error {
        PassThroughError::Closed | PassThroughError::Lost(_) => Exit::NoDaemon,
        PassThroughError::Output(_) | PassThroughError::Start(_) => Exit::Failed,
    };
    Fault::new(exit, format!("agentctl: {error}"))
}

/// Replaces this process by `agentd --stdio`, with our streams and signals. Returns only when that fails.
fn become_agentd(args: &[String]) -> Fault {
    match find_agentd() {
        Ok(program) => {
            let source = Command::new(&program).arg("--stdio").args(DRAIN).args(args).exec();
            ConnectError::Spawn { program, source }.into()
        }
        Err(error) => error.into(),
    }
}
