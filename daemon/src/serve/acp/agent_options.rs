//! The options of the protocol, from those of the command line.

use agentd_acp::AgentOptions;

use crate::cli::HostOptions;

/// What the protocol has to know of the command line.
pub(super) fn agent_options(options: &HostOptions) -> AgentOptions {
    // Editors show the list as a plan.
    let session_args = options
        .session_args
        .iter()
        .cloned()
        .chain(["--todo", "--task", "--async", "--lsp", "--web", "--syntax"].map(str::to_owned))
        .collect();
    AgentOptions {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        session_args,
        env: None,
        home: options.base.environment.non_empty("HOME").map(Into::into),
        shared: options.shared,
        program: std::env::current_exe().unwrap_or_else(|_| "agentd".into()),
        local_files: options.base.ssh.is_none(),
    }
}
