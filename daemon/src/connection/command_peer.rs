//! Clients that are commands of a session: programs that agentd has started, and programs that those started. They are not the user.
//!
//! Such a client sees the session that started it, opens sessions of its own with its own environment, and works in these. The table
//! of commands says what else it may do ([`PeerAccess`]).

use std::sync::Arc;

use agentd_process::{CommandOrigin, Peer, PeerOrigin};
use agentd_protocol::{
    command::{Command, PeerAccess},
    error::{ErrorCode, Failure},
};

use crate::hub::{SessionRegistry, SessionSlot};

pub(super) const BY_THE_USER: &str = "The user can do it, from a shell that agentd has not started.";
pub(super) const OWN_SESSIONS: &str = "open_session opens a session for the command itself; all else the user can do, from a shell that agentd has \
                            not started.";

/// A client that is a command of a session.
pub(super) struct CommandPeer {
    origin: CommandOrigin,
    /// The session that started it, once that is found.
    pub(super) session: Option<Arc<str>>,
    /// The number of its connection.
    pub(super) connection: u64,
    /// Whether its session has a sandbox, which this daemon would let it out of. It is so of a command of an unknown session, too,
    /// while there is a session with a sandbox.
    is_confined: bool,
}

impl CommandPeer {
    /// Identifies the program at the other end of a socket; `None` for the user.
    pub(super) async fn of(peer: Peer, connection: u64) -> Option<Self> {
        let found = tokio::task::spawn_blocking(move || peer.origin()).await;
        match found {
            Ok(PeerOrigin::Elsewhere) => None,
            Ok(PeerOrigin::Command(origin)) => {
                Some(Self { origin, session: None, connection, is_confined: false })
            }
            Err(error) => {
                tracing::error!(%error, "cannot tell whether a client is a command; it counts as one");
                let origin = CommandOrigin::default();
                Some(Self { origin, session: None, connection, is_confined: false })
            }
        }
    }

    /// Finds the session that started it, if that is not found yet: a command can connect before its start is recorded.
    pub(super) fn find_session(&mut self, registry: &SessionRegistry) {
        if self.session.is_none() {
            let is_it = |slot: &Arc<SessionSlot>| {
                slot.loaded().is_some_and(|handle| handle.processes().started(&self.origin))
            };
            let known = registry.known();
            let has_sandbox =
                |slot: &Arc<SessionSlot>| slot.loaded().is_some_and(|handle| handle.has_sandbox());
            let own = known.iter().find(|slot| is_it(slot));
            self.session = own.map(|slot| Arc::clone(slot.id()));
            self.is_confined = own.map_or_else(|| known.iter().any(has_sandbox), has_sandbox);
        }
    }

    /// Whether a command of the same session has opened this session, or this connection has.
    pub(super) fn has_opened(&self, session: &SessionSlot) -> bool {
        session.opener().is_some_and(|opener| {
            opener.connection == self.connection
                || (opener.session.is_some() && opener.session == self.session)
        })
    }

    /// Whether it may look at a session.
    pub(super) fn sees(&self, session: &SessionSlot) -> bool {
        self.session.as_ref() == Some(session.id()) || self.has_opened(session)
    }

    fn who(&self) -> String {
        match &self.session {
            Some(session) => format!("A command of the session {session}"),
            None => "A command that agentd has started".to_owned(),
        }
    }

    pub(super) fn refusal(&self, what: &str, hint: &str) -> Failure {
        Failure::new(ErrorCode::Forbidden, format!("{} may not {what}", self.who())).hint(hint)
    }

    /// Whether it may send the command for the session `named`, or for the current one: `target`.
    pub(super) fn may(
        &self,
        command: &Command,
        named: Option<&str>,
        target: Option<&SessionSlot>,
    ) -> Result<(), Failure> {
        let (name, access) = (command.name(), command.spec().peer_access);
        if self.is_confined {
            let what = format!("send {name}: its session has a sandbox, and the daemon is outside of it.");
            return Err(self.refusal(&what, BY_THE_USER));
        }
        let of = match (named, target) {
            (Some(named), _) => named,
            (None, Some(session)) => session.id(),
            // The command itself reports that there is no session.
            (None, None) if access != PeerAccess::Never => return Ok(()),
            (None, None) => "",
        };
        match access {
            PeerAccess::Always => Ok(()),
            PeerAccess::VisibleSession if target.is_some_and(|session| self.sees(session)) => Ok(()),
            PeerAccess::OpenedSession if target.is_some_and(|session| self.has_opened(session)) => Ok(()),
            PeerAccess::VisibleSession => {
                let what = format!(
                    "send {name} for the session {of}: it sees its own session and those that it opened."
                );
                Err(self.refusal(&what, OWN_SESSIONS))
            }
            PeerAccess::OpenedSession => {
                let what = format!(
                    "send {name} to the session {of}: it works in sessions that it opened, and only looks at its own."
                );
                Err(self.refusal(&what, OWN_SESSIONS))
            }
            PeerAccess::Never => Err(self.refusal(&format!("send {name}: that is the user's."), BY_THE_USER)),
        }
    }
}
