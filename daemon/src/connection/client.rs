//! Who the client is, and what it said that it can do.

use agentd_protocol::{
    command::Command,
    daemon::{DaemonInfo, Hello, HelloParams, Limits, PROTOCOL, Role},
    error::{ErrorCode, Failure},
};

use agentd_session::UiAbilities;

use super::view::View;
use crate::hub::SessionRegistry;

const ANEW: &str = "Connect anew, and say hello with the role \"control\".";

/// What a client told about itself. Before `hello`: the plain wire.
#[derive(Debug, Clone)]
pub(super) struct Client {
    /// Which of the daemon's connections this is, counted from 1.
    number: u64,
    name: Option<String>,
    /// How it sees what sessions say.
    pub(super) view: View,
    role: Role,
    /// Whether it introduced itself.
    is_introduced: bool,
    /// Whether no user is behind it who could be asked.
    pub(super) is_alone: bool,
    /// Whether it is a command of ours, and so not the user.
    is_command: bool,
}

impl Client {
    /// Somebody who has not said anything.
    pub(super) fn new(number: u64, is_command: bool) -> Self {
        Self {
            number,
            name: None,
            view: View::default(),
            role: Role::default(),
            is_introduced: false,
            is_alone: false,
            is_command,
        }
    }

    /// What others are told that it is called.
    pub(super) fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| format!("client {}", self.number))
    }

    /// Whether its events name their session, so that it can follow several.
    pub(super) fn names_sessions(&self) -> bool {
        self.view.names_sessions
    }

    /// Whether it introduced itself, and so knows more than the plain wire.
    pub(super) fn is_introduced(&self) -> bool {
        self.is_introduced
    }

    /// Whether it may answer questions to the user.
    pub(super) fn may_answer(&self) -> bool {
        self.role == Role::Control && !self.is_command
    }

    /// Whose questions it answers. A client of the plain wire: those of extensions, as in the reference.
    pub(super) fn abilities(&self) -> Option<UiAbilities> {
        if self.is_alone {
            return None;
        }
        match (self.may_answer(), self.view.answers_questions) {
            (true, true) => Some(UiAbilities::All),
            // A host behind the bridge as well, for which the bridge said hello.
            (true, false) if !self.names_sessions() => Some(UiAbilities::Extensions),
            _ => None,
        }
    }

    /// Takes an introduction.
    ///
    /// # Errors
    /// When the client speaks another version, and when an observer asks for more; it stays what it was.
    pub(super) fn hello(
        &mut self,
        params: &HelloParams,
        registry: &SessionRegistry,
        max_line_bytes: usize,
    ) -> Result<Hello, Failure> {
        if params.protocol != PROTOCOL {
            let text = format!("Unsupported protocol {}: this agentd speaks {PROTOCOL}.", params.protocol);
            return Err(Failure::new(ErrorCode::Unsupported, text).hint(format!(
                "Say hello with protocol {PROTOCOL}, or go on without: the plain wire works."
            )));
        }
        if self.is_introduced && self.role == Role::Observe && params.role == Role::Control {
            let text = "The role \"observe\" of this connection cannot become \"control\".";
            return Err(Failure::new(ErrorCode::Forbidden, text).hint(ANEW));
        }
        let wanted = params.capabilities;
        self.view = View {
            is_introduced: true,
            names_sessions: wanted.sessions,
            answers_questions: wanted.ui && params.role == Role::Control && !self.is_command,
            // What a flag of the command line asked for stays.
            is_cumulative: wanted.cumulative || self.view.is_cumulative,
        };
        self.name = params.client.as_ref().map(|client| client.name.clone()).filter(|name| !name.is_empty());
        self.role = params.role;
        self.is_introduced = true;
        Ok(Hello {
            protocol: PROTOCOL,
            daemon: daemon_info(registry),
            capabilities: ["sessions", "ui", "replay", "cumulative", "tools"].map(str::to_owned).to_vec(),
            limits: Limits { max_line_bytes: max_line_bytes as u64 },
        })
    }

    /// Whether the client may ask for that.
    ///
    /// # Errors
    /// The refusal.
    pub(super) fn may(&self, command: &Command) -> Result<(), Failure> {
        if self.role == Role::Control || command.spec().is_read_only() {
            return Ok(());
        }
        let text = format!("The role \"observe\" does not allow {}.", command.name());
        Err(Failure::new(ErrorCode::Forbidden, text).hint(ANEW))
    }
}

/// Who we are.
pub(super) fn daemon_info(registry: &SessionRegistry) -> DaemonInfo {
    DaemonInfo {
        name: "agentd".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        pid: std::process::id(),
        epoch: registry.epoch().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dialogs_go_to_those_who_have_a_user() {
        let plain = Client::new(1, false);
        let alone = Client { is_alone: true, ..plain.clone() };
        assert_eq!((plain.abilities(), alone.abilities()), (Some(UiAbilities::Extensions), None));
        assert_eq!(Client::new(1, true).abilities(), None);
    }
}
