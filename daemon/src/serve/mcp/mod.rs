//! `agentd mcp serve`: sessions for another agent on stdin and stdout, by the Model Context Protocol. The protocol itself is in
//! `agentd-mcp-server`; its lines are moved by the relay.

mod translator;

use std::process::ExitCode;

use agentd_connect::environment;
use agentd_mcp_server::ServerOptions;

use self::translator::McpTranslator;
use super::{
    relay,
    runtime::{Workers, as_task, run},
};
use crate::{cli::HostOptions, logging::complain};

/// Serves until the input ends or a signal comes.
#[must_use]
pub fn mcp(options: HostOptions) -> ExitCode {
    for warning in &options.warnings {
        complain(warning);
    }
    let server = ServerOptions {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        cwd: options.base.cwd.clone(),
        session_args: options.session_args.clone(),
        env: options.shared.then(environment),
        shared: options.shared,
    };
    let translator = McpTranslator::new(server);
    if options.shared {
        relay::shared(&options, translator)
    } else {
        run(Workers::CallingThread, as_task(relay::own(options, None, translator)))
    }
}
