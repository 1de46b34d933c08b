//! The client: its name, role and capabilities, and the lines that it gets.

use agentd_protocol::{
    command::Command,
    daemon::{DaemonInfo, Hello, HelloParams, Limits, PROTOCOL, Role},
    error::{ErrorCode, Failure},
};
use agentd_session::{Audience, UiAbilities};

use super::options::ConnectionFlags;
use crate::hub::SessionRegistry;

/// What this daemon can, beside pi's protocol.
const CAPABILITIES: [&str; 8] =
    ["sessions", "ui", "permissions", "replay", "cumulative", "tools", "promptResult", "messageIds"];

const ANEW: &str = "Connect anew, and say hello with the role \"control\".";

/// The lines that a client said it understands. Without `hello`: those of pi's protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ClientView {
    /// The client said `hello`, or was started with `--ready`: it passes over what it does not know.
    pub(super) is_introduced: bool,
    /// Events carry `sessionId` and `seq`.
    pub(super) names_sessions: bool,
    /// The client answers the daemon's own questions.
    pub(super) answers_questions: bool,
    /// The client answers questions about calls, and gets them with all that is known.
    pub(super) answers_permissions: bool,
    /// The client asked for events about subagents.
    pub(super) follows_subagents: bool,
    /// Updates carry the answer so far, and there are no system messages.
    pub(super) is_cumulative: bool,
    /// The client hears how its prompts end.
    pub(super) hears_prompt_results: bool,
    /// Events about a message carry its id.
    pub(super) has_message_ids: bool,
}

impl ClientView {
    /// Whether this client gets an event for that audience. A client that counts events by `seq` gets all of them.
    pub(super) fn shows(self, audience: Audience) -> bool {
        self.names_sessions
            || match audience {
                Audience::Everyone | Audience::Settled { .. } => true,
                Audience::Asked => self.answers_questions,
                Audience::Permission { .. } => self.answers_questions || self.answers_permissions,
                Audience::Permissions => self.answers_permissions,
                Audience::Introduced => self.is_introduced,
                Audience::Subagents => self.follows_subagents,
                Audience::Counting => false,
            }
    }

    /// The form of an event's line for this client, and a line of its own behind it; empty for none.
    pub(super) fn form(self, audience: Audience, line: &[u8]) -> (&[u8], &[u8]) {
        let at = |split: u32| line.split_at(line.len().min(split as usize));
        match audience {
            Audience::Permission { split } => {
                let (with_all, plain) = at(split);
                (if self.answers_permissions { with_all } else { plain }, &[])
            }
            Audience::Settled { split } => {
                let (for_all, behind) = at(split);
                (for_all, if self.hears_prompt_results { behind } else { &[] })
            }
            _ => (line, &[]),
        }
    }
}

/// A client as it introduced itself. Before `hello`, it speaks pi's protocol.
#[derive(Debug, Clone)]
pub(super) struct Client {
    /// The number of its connection, counted from 1 in each daemon.
    number: u64,
    name: Option<String>,
    pub(super) view: ClientView,
    /// Whether it asked for all events of subagents.
    pub(super) hears_subagent_events: bool,
    role: Role,
    /// Whether it said `hello`.
    is_introduced: bool,
    /// Whether it was started with `--ready`.
    is_ready: bool,
    /// Whether no user is behind it who could be asked.
    pub(super) is_alone: bool,
    /// Whether it is a command of a session, and so not the user.
    is_command: bool,
    /// Whether it said that it is another agent.
    is_agent: bool,
}

impl Client {
    /// A client that has not said `hello` yet.
    pub(super) fn new(number: u64, is_command: bool) -> Self {
        Self {
            number,
            name: None,
            view: ClientView::default(),
            hears_subagent_events: false,
            role: Role::default(),
            is_introduced: false,
            is_ready: false,
            is_alone: false,
            is_command,
            is_agent: false,
        }
    }

    /// Takes flags of the command line that are about the connection: they stay in force after a `hello`. Returns whether the view
    /// is another one.
    pub(super) fn take_flags(&mut self, flags: ConnectionFlags) -> bool {
        let before = self.view;
        self.view.is_cumulative |= flags.cumulative;
        if flags.ready {
            self.is_ready = true;
            self.view.is_introduced = true;
            (self.view.hears_prompt_results, self.view.has_message_ids) = (true, true);
        }
        self.view != before
    }

    /// Its name, as other clients see it.
    pub(super) fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| format!("client {}", self.number))
    }

    /// Whether its prompts are the user's.
    pub(super) fn is_user(&self) -> bool {
        !self.is_command && !self.is_agent
    }

    /// Whether its events name their session, so that it can follow several.
    pub(super) fn names_sessions(&self) -> bool {
        self.view.names_sessions
    }

    /// Whether it said `hello`, and so knows more than pi's protocol.
    pub(super) fn is_introduced(&self) -> bool {
        self.is_introduced
    }

    /// Whether it may answer questions to the user.
    pub(super) fn may_answer(&self) -> bool {
        self.role == Role::Control && !self.is_command
    }

    /// The questions that it answers. Without `hello`, those of extensions, as in pi.
    pub(super) fn abilities(&self) -> Option<UiAbilities> {
        if self.is_alone {
            return None;
        }
        let ClientView { answers_questions, answers_permissions, names_sessions, .. } = self.view;
        let abilities = UiAbilities {
            daemon: answers_questions,
            permissions: answers_questions || answers_permissions,
            // This includes a host behind the bridge, for which the bridge said `hello`.
            extensions: answers_questions || !names_sessions,
        };
        let is_able = abilities.daemon || abilities.permissions || abilities.extensions;
        (self.may_answer() && is_able).then_some(abilities)
    }

    /// Takes a `hello`.
    ///
    /// # Errors
    /// When the client speaks another version, and when an observer asks for more. Nothing has changed then.
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
        self.view = ClientView {
            is_introduced: true,
            names_sessions: wanted.sessions,
            answers_questions: wanted.ui && params.role == Role::Control && !self.is_command,
            answers_permissions: wanted.permissions && params.role == Role::Control && !self.is_command,
            follows_subagents: self.view.follows_subagents,
            // `--cumulative-updates` on the command line stays in force.
            is_cumulative: wanted.cumulative || self.view.is_cumulative,
            // So do those of `--ready`.
            hears_prompt_results: wanted.prompt_result || self.is_ready,
            has_message_ids: wanted.message_ids || self.is_ready,
        };
        self.name = params.client.as_ref().map(|client| client.name.clone()).filter(|name| !name.is_empty());
        self.role = params.role;
        self.is_agent = wanted.agent;
        self.is_introduced = true;
        Ok(Hello {
            protocol: PROTOCOL,
            daemon: daemon_info(registry),
            capabilities: CAPABILITIES.map(str::to_owned).to_vec(),
            limits: Limits { max_line_bytes: max_line_bytes as u64 },
        })
    }

    /// Whether the client's role allows the command.
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

/// This daemon, as clients see it.
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
    fn dialogs_go_to_clients_that_have_a_user() {
        let plain = Client::new(1, false);
        let alone = Client { is_alone: true, ..plain.clone() };
        assert_eq!((plain.abilities(), alone.abilities()), (Some(UiAbilities::EXTENSIONS), None));
        assert_eq!(Client::new(1, true).abilities(), None);
    }

    #[test]
    fn events_that_pi_lacks_go_to_clients_that_said_hello() {
        assert!(!ClientView::default().shows(Audience::Introduced));
        assert!(ClientView { is_introduced: true, ..ClientView::default() }.shows(Audience::Introduced));
    }

    #[test]
    fn questions_go_to_clients_that_answer_and_to_those_that_count() {
        let check = |view: ClientView, asked: bool, counting: bool| {
            assert!(view.shows(Audience::Everyone));
            assert_eq!((view.shows(Audience::Asked), view.shows(Audience::Counting)), (asked, counting));
        };
        check(ClientView::default(), false, false);
        check(ClientView { answers_questions: true, ..ClientView::default() }, true, false);
        check(ClientView { names_sessions: true, ..ClientView::default() }, true, true);
    }
}
