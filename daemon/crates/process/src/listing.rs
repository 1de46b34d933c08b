//! Seeing what runs: the processes of groups, with what they work for.

use std::{collections::HashSet, io, sync::Weak, time::Duration};

use agentd_protocol::command::Work;

use crate::{group::Inner, linux};

/// One look at every process of the system.
#[derive(Debug)]
pub struct ProcessTable(linux::Table);

/// Shows the processes of a group, and keeps none of them alive. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ProcessView(Weak<Inner>);

/// A process of a group. What the system does not tell is `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct RunningProcess {
    /// The process.
    pub pid: u32,
    /// Its parent, if that is a process of the same command.
    pub parent: Option<u32>,
    /// What the command works for; `None` when the group was not told.
    pub work: Option<Work>,
    /// Whether the command that started it has ended.
    pub background: bool,
    /// Its arguments joined by spaces, or its name in brackets where there are none; at most 4,096 bytes.
    pub command: String,
    /// When it started, in Unix milliseconds.
    pub started_ms: Option<i64>,
    /// Processor time that it has used.
    pub cpu_time: Option<Duration>,
    /// Its resident memory in bytes.
    pub memory_bytes: Option<u64>,
}

impl ProcessTable {
    /// Looks at the system now. Blocks.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn read() -> io::Result<Self> {
        linux::Table::read().map(Self)
    }
}

impl ProcessView {
    pub(crate) fn new(group: Weak<Inner>) -> Self {
        Self(group)
    }

    /// Whether a process hangs on a command of the group. Looks at `/proc` where a number fits.
    #[must_use]
    pub fn started(&self, origin: &linux::CommandOrigin) -> bool {
        let Some(group) = self.0.upgrade() else { return false };
        let scopes = group.scopes();
        scopes.iter().filter_map(|scope| scope.now().scope).any(|scope| origin.hangs_on(scope))
    }

    /// The processes of the group that were there at the time of `table` and still are: those of its commands and
    /// everything that came of these, however detached, oldest first. Blocks.
    #[must_use]
    pub fn list(&self, table: &ProcessTable) -> Vec<RunningProcess> {
        let Some(group) = self.0.upgrade() else { return Vec::new() };
        let mut found = Vec::new();
        for scope in group.scopes() {
            let state = scope.now();
            // Before its command has started, a scope's child is a copy of the guard.
            let (Some(root), Some(_), true) = (state.scope, state.started, state.is_running()) else {
                continue;
            };
            let below = table.0.below(root);
            let pids: HashSet<u32> = below.iter().map(|facts| facts.pid).collect();
            found.extend(below.into_iter().map(|facts| {
                let process = RunningProcess {
                    pid: facts.pid,
                    parent: Some(facts.parent).filter(|parent| pids.contains(parent)),
                    work: scope.work().cloned(),
                    background: state.exit.is_some(),
                    command: facts.command,
                    started_ms: facts.started_ms,
                    cpu_time: facts.cpu_time,
                    memory_bytes: facts.memory_bytes,
                };
                (facts.started_ticks, process)
            }));
        }
        found.sort_by_key(|(started, process)| (*started, process.pid));
        found.into_iter().map(|(_, process)| process).collect()
    }
}
