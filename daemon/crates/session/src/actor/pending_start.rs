//! Extensions that are being started while their session is open: a reload, a restart, or hosts that come from the session before.

use agentd_protocol::command::SessionCommand;
use tokio_util::sync::CancellationToken;

use crate::{
    extension_start::StartAsker, open::ExtensionsFound, replacement::SessionEnd, reply::Reply,
    requests::PendingRequest, run::RunBeginning,
};

/// The most commands that wait for extensions.
const MAX_WAITING: usize = 256;

/// The most further starts that wait for the one that is under way.
const MAX_RENEWALS: usize = 16;

/// How a session starts its extensions again.
pub(super) enum Renewal {
    /// In the same processes, with all code read again.
    Reload,
    /// In new processes.
    Restart,
    /// In new processes, since the others go to another session.
    Give(Box<SessionEnd>),
}

/// Extensions that are being started. What needs them waits.
#[derive(Default)]
pub(super) struct PendingStart {
    /// The extensions that were found with the session, where a client is still to bring their hosts.
    pub(super) found: Option<ExtensionsFound>,
    /// Gives the start up.
    pub(super) cancel: CancellationToken,
    commands: Vec<(SessionCommand, Reply)>,
    runs: Vec<(RunBeginning, Option<PendingRequest>)>,
    renewals: Vec<(Renewal, StartAsker)>,
}

/// What waited for extensions.
pub(super) struct AfterStart {
    pub(super) commands: Vec<(SessionCommand, Reply)>,
    pub(super) runs: Vec<(RunBeginning, Option<PendingRequest>)>,
    pub(super) renewals: Vec<(Renewal, StartAsker)>,
}

impl PendingStart {
    /// These extensions wait for the client that brings their hosts.
    pub(super) fn of(found: ExtensionsFound) -> Self {
        Self { found: Some(found), ..Self::default() }
    }

    /// Lets a command wait; gives it back where too many do.
    pub(super) fn wait(&mut self, command: SessionCommand, reply: Reply) -> Option<(SessionCommand, Reply)> {
        if self.commands.len() >= MAX_WAITING {
            return Some((command, reply));
        }
        self.commands.push((command, reply));
        None
    }

    /// Lets a run wait.
    pub(super) fn wait_to_run(&mut self, beginning: RunBeginning, request: Option<PendingRequest>) {
        self.runs.push((beginning, request));
    }

    /// Lets another start wait for the end of this one; gives its asker back where too many do.
    pub(super) fn wait_to_renew(&mut self, renewal: Renewal, asker: StartAsker) -> Option<StartAsker> {
        if self.renewals.len() >= MAX_RENEWALS {
            return Some(asker);
        }
        self.renewals.push((renewal, asker));
        None
    }

    /// What waited.
    pub(super) fn into_parts(self) -> AfterStart {
        AfterStart { commands: self.commands, runs: self.runs, renewals: self.renewals }
    }
}
