//! Clients that are commands: programs that agentd has started, and whatever those started. They are not the user.
//!
//! Such a client looks at the session whose command it is, opens sessions of its own with the environment that it has, and works in
//! these. All else is the user's, by the table [`agentd_protocol::command::CommandSpec`].

use std::sync::Arc;

use agentd_process::{CommandOrigin, Peer, PeerOrigin};
use agentd_protocol::{
    command::{Command, PeerAccess},
    error::{ErrorCode, Failure},
};
use agentd_session::{SessionOptions, Target};

use super::reader::Reader;
use crate::hub::{Opener, SessionLookup, SessionRegistry, SessionSlot};

const BY_THE_USER: &str = "The user can do it, from a shell that agentd has not started.";
const OWN_SESSIONS: &str = "open_session opens a session for the command itself; all else the user can do, from a shell that agentd has \
                            not started.";

/// A client that is a command.
pub(super) struct Caller {
    origin: CommandOrigin,
    /// The session whose command it is, once that was found.
    session: Option<Arc<str>>,
    /// Its connection.
    connection: u64,
}

impl Caller {
    /// Who is at the other end of a socket; `None` for the user.
    pub(super) async fn of(peer: Peer, connection: u64) -> Option<Self> {
        let found = tokio::task::spawn_blocking(move || peer.origin()).await;
        match found {
            Ok(PeerOrigin::Elsewhere) => None,
            Ok(PeerOrigin::Command(origin)) => Some(Self { origin, session: None, connection }),
            Err(error) => {
                tracing::error!(%error, "cannot tell whether a client is a command; it counts as one");
                Some(Self { origin: CommandOrigin::default(), session: None, connection })
            }
        }
    }

    /// Finds the session whose command it is, if that was not found yet: a command can be quicker than the word of its start.
    fn find_session(&mut self, registry: &SessionRegistry) {
        if self.session.is_none() {
            let is_it = |known: &Arc<SessionSlot>| {
                known.loaded().is_some_and(|handle| handle.processes().started(&self.origin))
            };
            self.session =
                registry.known().iter().find(|known| is_it(known)).map(|known| Arc::clone(known.id()));
        }
    }

    /// Whether a command of its session has opened this one, or this connection has.
    fn has_opened(&self, known: &SessionSlot) -> bool {
        known.opener().is_some_and(|opener| {
            opener.connection == self.connection
                || (opener.session.is_some() && opener.session == self.session)
        })
    }

    /// Whether it may look at a session.
    fn sees(&self, known: &SessionSlot) -> bool {
        self.session.as_ref() == Some(known.id()) || self.has_opened(known)
    }

    fn who(&self) -> String {
        match &self.session {
            Some(session) => format!("A command of the session {session}"),
            None => "A command that agentd has started".to_owned(),
        }
    }

    fn refusal(&self, what: &str, hint: &str) -> Failure {
        Failure::new(ErrorCode::Forbidden, format!("{} may not {what}", self.who())).hint(hint)
    }

    /// Whether it may ask for this, of the session `named`, or of the current one.
    fn may(
        &self,
        command: &Command,
        named: Option<&str>,
        target: Option<&SessionSlot>,
    ) -> Result<(), Failure> {
        let (name, access) = (command.name(), command.spec().peer_access);
        let of = match (named, target) {
            (Some(named), _) => named,
            (None, Some(known)) => known.id(),
            // Where there is no session, that is said by whoever looks for one.
            (None, None) if access != PeerAccess::Never => return Ok(()),
            (None, None) => "",
        };
        match access {
            PeerAccess::Always => Ok(()),
            PeerAccess::VisibleSession if target.is_some_and(|known| self.sees(known)) => Ok(()),
            PeerAccess::OpenedSession if target.is_some_and(|known| self.has_opened(known)) => Ok(()),
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

impl Reader {
    /// Whether the client may ask for this, by its role and by what it is.
    pub(super) fn may(&mut self, command: &Command, named: Option<&str>) -> Result<(), Failure> {
        self.client.may(command)?;
        let Some(caller) = &mut self.caller else { return Ok(()) };
        caller.find_session(&self.registry);
        let target = match named {
            Some(id) => self.registry.get(id),
            None => self.sessions.current.clone(),
        };
        caller.may(command, named, target.as_deref())
    }

    /// Whether the client may open a session with the daemon's environment (`has_environment` is false), or with these options.
    pub(super) async fn may_open(
        &self,
        options: &SessionOptions,
        has_environment: bool,
    ) -> Result<(), Failure> {
        let Some(caller) = &self.caller else { return Ok(()) };
        if !has_environment {
            let what = "open a session with the environment of the daemon.";
            return Err(caller.refusal(what, "Send the command's own environment as \"env\"."));
        }
        if options.approve == Some(true) {
            let what = "open a session with --approve: whether a project is trusted is for the user to say.";
            return Err(caller.refusal(what, BY_THE_USER));
        }
        if let Target::Fork { .. } = options.target {
            return Err(caller.refusal("open a copy of a session (--fork).", OWN_SESSIONS));
        }
        match self.registry.look_up(options).await? {
            SessionLookup::New => Ok(()),
            SessionLookup::Open(known) => self.may_join(&known),
            SessionLookup::File => Err(caller.refusal(
                "open a session that it has not opened since the daemon started.",
                "Leave --continue, --session and --session-id of other sessions out: the command gets a new session.",
            )),
        }
    }

    /// Whether the client may go on with a session that is open.
    pub(super) fn may_join(&self, known: &SessionSlot) -> Result<(), Failure> {
        match &self.caller {
            Some(caller) if !caller.has_opened(known) => {
                let what = format!("open the session {}, which is not its own.", known.id());
                Err(caller.refusal(&what, OWN_SESSIONS))
            }
            _ => Ok(()),
        }
    }

    /// The client has opened a session.
    pub(super) fn has_opened(&self, known: &SessionSlot) {
        if let Some(Caller { session, connection, .. }) = &self.caller {
            known.opened_by(Opener { session: session.clone(), connection: *connection });
        }
    }

    /// Whether the client may provide tools for a session.
    pub(super) fn may_provide_for(&self, known: &SessionSlot) -> bool {
        self.caller.as_ref().is_none_or(|caller| caller.has_opened(known))
    }

    /// The sessions that the client may see.
    pub(super) fn visible(&self) -> Vec<Arc<SessionSlot>> {
        let mut known = self.registry.known();
        if let Some(caller) = &self.caller {
            known.retain(|known| caller.sees(known));
        }
        known
    }

    /// Why the client may not answer questions to the user, if it is a command.
    pub(super) fn refusal_to_answer(&self) -> Option<Failure> {
        let caller = self.caller.as_ref()?;
        Some(caller.refusal("answer questions to the user.", BY_THE_USER))
    }
}
