//! Diagnostics: to stderr, never to stdout, which belongs to the protocol.

use std::io::{self, IsTerminal};

use tracing_subscriber::{EnvFilter, fmt};

/// Sends log lines to stderr. `filter` is the value of `AGENTD_LOG`, such as `debug` or `agentd_session=trace`; the
/// default is `warn`.
pub fn start(filter: Option<&str>) {
    let filter = EnvFilter::try_new(filter.unwrap_or("warn")).unwrap_or_else(|_| EnvFilter::new("warn"));
    // A second call (several daemons in one test process) keeps the first setting.
    let _ = fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_target(false)
        .with_ansi(io::stderr().is_terminal())
        .try_init();
}
