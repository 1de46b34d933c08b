//! Who the client is, and what it said that it can do.

use agentd_protocol::{
    command::Command,
    daemon::{DaemonInfo, Hello, HelloParams, Limits, PROTOCOL, Role},
    error::{ErrorCode, Failure},
};

use crate::hub::Registry;

/// What a client told about itself. Before `hello`: the plain wire.
#[derive(Debug, Clone, Default)]
pub(super) struct Client {
    /// Whether its events name their session, so that it can follow several.
    pub(super) names_sessions: bool,
    role: Role,
}

impl Client {
    /// Takes an introduction.
    ///
    /// # Errors
    /// When the client speaks another version; it stays what it was.
    pub(super) fn hello(
        &mut self,
        params: &HelloParams,
        registry: &Registry,
        max_line_bytes: usize,
    ) -> Result<Hello, Failure> {
        if params.protocol != PROTOCOL {
            let text = format!("Unsupported protocol {}: this agentd speaks {PROTOCOL}.", params.protocol);
            return Err(Failure::new(ErrorCode::Unsupported, text).hint(format!(
                "Say hello with protocol {PROTOCOL}, or go on without: the plain wire works."
            )));
        }
        self.names_sessions = params.capabilities.sessions;
        self.role = params.role;
        Ok(Hello {
            protocol: PROTOCOL,
            daemon: daemon_info(registry),
            capabilities: ["sessions", "replay"].map(str::to_owned).to_vec(),
            limits: Limits { max_line_bytes: max_line_bytes as u64 },
        })
    }

    /// Whether the client may ask for that.
    ///
    /// # Errors
    /// The refusal.
    pub(super) fn may(&self, command: &Command) -> Result<(), Failure> {
        if self.role == Role::Control || command.only_looks() {
            return Ok(());
        }
        let text = format!("The role \"observe\" does not allow {}.", command.name());
        Err(Failure::new(ErrorCode::Forbidden, text).hint("Say hello with the role \"control\"."))
    }
}

/// Who we are.
pub(super) fn daemon_info(registry: &Registry) -> DaemonInfo {
    DaemonInfo {
        name: "agentd".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        pid: std::process::id(),
        epoch: registry.epoch().to_owned(),
    }
}
