//! `agentctl rpc`: passes the protocol of a session, or of the daemon itself, through to stdin and stdout.

use std::{env, io, os::unix::process::CommandExt, process::Command};

use agentd_connect::{
    ConnectError, OpenedSession, PassThroughError, SessionOpening, environment, find_agentd, pass_through,
    standard_streams,
};
use agentd_protocol::daemon::OpenSessionParams;

use super::daemon_call;
use crate::{
    cli::{DaemonChoice, RpcOptions},
    exit::{Exit, Fault, conclude, print_stderr},
    shared_daemon::{ChosenDaemon, Endpoint, client_info},
};

/// The meaning of the end of stdin, unless the flags say otherwise.
const DRAIN: [&str; 2] = ["--on-eof", "drain"];

/// Passes lines through until both sides have ended.
pub(crate) fn run(options: &RpcOptions) -> Exit {
    conclude(serve(options))
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
            let opened = opening(options)?.open(&endpoint, stream).await?;
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

fn opening(options: &RpcOptions) -> Result<SessionOpening, Fault> {
    let cwd = env::current_dir().map_err(ConnectError::WorkingDirectory)?;
    let params = OpenSessionParams {
        cwd: cwd.display().to_string(),
        args: DRAIN.into_iter().map(str::to_owned).chain(options.args.iter().cloned()).collect(),
        env: Some(environment()),
        ..OpenSessionParams::default()
    };
    Ok(SessionOpening { client: client_info(), params })
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
