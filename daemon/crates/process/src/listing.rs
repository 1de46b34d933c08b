//! Lists the running processes of groups, with the work that they belong to.

use std::{collections::HashSet, io, sync::Weak, time::Duration};

use agentd_protocol::command::Work;

use crate::{group_state::GroupState, linux};

/// A snapshot of every process of the system.
#[derive(Debug)]
pub struct ProcessTable(linux::Table);

/// Lists the processes of a group, and keeps none of them alive. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ProcessView(Weak<GroupState>);

/// A process of a group. Facts that the system does not report are `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct RunningProcess {
    /// Its process id.
    pub pid: u32,
    /// Its parent, if that is a process of the same command.
    pub parent: Option<u32>,
    /// The work that the command belongs to; `None` when the group does not know it.
    pub work: Option<Work>,
    /// Whether the process's command has ended.
    pub background: bool,
    /// Its arguments joined by spaces, or its name in brackets when it has none; at most 4,096 bytes.
    pub command: String,
    /// When it started, in Unix milliseconds.
    pub started_ms: Option<i64>,
    /// Processor time used.
    pub cpu_time: Option<Duration>,
    /// Its resident memory in bytes.
    pub memory_bytes: Option<u64>,
}

impl ProcessTable {
    /// Takes the snapshot. Blocks.
    ///
    /// # Errors
    /// The system's, from reading `/proc`.
    pub fn read() -> io::Result<Self> {
        linux::Table::read().map(Self)
    }
}

impl ProcessView {
    pub(crate) fn new(group: Weak<GroupState>) -> Self {
        Self(group)
    }

    /// Whether a process was started by a command of the group. Reads `/proc` when a process id matches.
    #[must_use]
    pub fn started(&self, origin: &linux::CommandOrigin) -> bool {
        let Some(group) = self.0.upgrade() else { return false };
        let supervisors = group.supervisors();
        supervisors
            .iter()
            .filter_map(|supervisor| supervisor.now().supervisor)
            .any(|supervisor| origin.belongs_to(supervisor))
    }

    /// The processes of the group that were in `table` and still run: its commands and everything that they started,
    /// oldest first. Blocks.
    #[must_use]
    pub fn list(&self, table: &ProcessTable) -> Vec<RunningProcess> {
        let Some(group) = self.0.upgrade() else { return Vec::new() };
        let mut found = Vec::new();
        for supervisor in group.supervisors() {
            let state = supervisor.now();
            // Before the command has started, a supervisor's child is a copy of the guard.
            let (Some(root), Some(_), true) = (state.supervisor, state.started, state.is_running()) else {
                continue;
            };
            let below = table.0.below(root);
            let pids: HashSet<u32> = below.iter().map(|facts| facts.pid).collect();
            found.extend(below.into_iter().map(|facts| {
                let process = RunningProcess {
                    pid: facts.pid,
                    parent: Some(facts.parent).filter(|parent| pids.contains(parent)),
                    work: supervisor.work().cloned(),
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
