//! Commands of extensions that run, and whom to answer once they have ended.

use std::collections::HashMap;

use tokio_util::sync::CancellationToken;

use crate::{requests::PendingRequest, server_prompts::MessageCommand};

/// A command of an extension that runs.
pub(crate) struct RunningCommand {
    /// The message that called it.
    pub(crate) request: PendingRequest,
    /// Fires once it has ended.
    pub(crate) ended: CancellationToken,
    /// Gives it up.
    pub(crate) cancel: CancellationToken,
    /// Fires once another session waits for it.
    pub(crate) moved: CancellationToken,
}

/// The commands of extensions that run in a session.
#[derive(Default)]
pub(crate) struct CommandRuns {
    running: HashMap<u64, RunningCommand>,
    last: u64,
    /// Messages that extensions sent while they were told that a run is over: they come after that.
    pub(crate) after_run: Vec<(MessageCommand, PendingRequest)>,
    /// Whether an extension wants the session to end.
    pub(crate) quits: bool,
}

impl CommandRuns {
    /// A command begins; gives its number, by which calls say that they are made within it.
    pub(crate) fn begin(&mut self, command: RunningCommand) -> u64 {
        self.last += 1;
        self.running.insert(self.last, command);
        self.last
    }

    /// Whether none runs.
    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// A command that runs.
    pub(crate) fn get(&self, number: u64) -> Option<&RunningCommand> {
        self.running.get(&number)
    }

    /// A command has ended, or goes on in another session.
    pub(crate) fn take(&mut self, number: u64) -> Option<RunningCommand> {
        self.running.remove(&number)
    }

    /// Gives all up.
    pub(crate) fn give_up(&self) {
        self.running.values().for_each(|command| command.cancel.cancel());
    }
}
