//! The commands of a group and their limits: what a group shares with its processes.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{io::AsyncReadExt as _, time::sleep};
use tokio_util::task::TaskTracker;

use crate::{
    frames::SupervisorOrder,
    launcher::Launcher,
    limits::{LimitedResource, ProcessLimits},
    streams::OutputPipe,
    supervisor::{CommandState, SupervisorHandle},
};

/// Bytes between two pauses.
const CHUNK: usize = 64 * 1024;

/// The pause after each chunk: a background process may write 1.3 MB a second, and a flood costs next to nothing.
const PAUSE: Duration = Duration::from_millis(50);

/// What the clones of a group share. Its end kills everything in it.
#[derive(Debug)]
pub(crate) struct GroupState {
    pub(crate) launcher: Launcher,
    limits: Mutex<ProcessLimits>,
    members: Mutex<GroupMembers>,
    tasks: TaskTracker,
}

#[derive(Debug, Default)]
pub(crate) struct GroupMembers {
    pub(crate) closed: bool,
    next: u64,
    pub(crate) supervisors: HashMap<u64, Arc<SupervisorHandle>>,
}

impl GroupState {
    pub(crate) fn new(launcher: Launcher) -> Self {
        Self { launcher, limits: Mutex::default(), members: Mutex::default(), tasks: TaskTracker::new() }
    }

    /// Sets the limits of the group's commands.
    pub(crate) fn set_limits(&self, limits: ProcessLimits) {
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner) = limits;
    }

    /// Runs a task on behalf of the group's processes.
    pub(crate) fn spawn_task(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Keeps reading, and discards, the output of processes that a finished command left in the background.
    pub(crate) fn drain(&self, output: OutputPipe) {
        self.tasks.spawn(drain(output));
    }

    /// The supervisors of commands that may still run.
    pub(crate) fn supervisors(&self) -> Vec<Arc<SupervisorHandle>> {
        self.members().supervisors.values().cloned().collect()
    }

    pub(crate) fn limits(&self) -> ProcessLimits {
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a command. Returns its key in the members, or `None` when the group is closed.
    pub(crate) fn add(&self, supervisor: &Arc<SupervisorHandle>) -> Option<u64> {
        let mut members = self.members();
        if members.closed {
            return None;
        }
        members.next += 1;
        let id = members.next;
        members.supervisors.insert(id, Arc::clone(supervisor));
        Some(id)
    }

    /// Kills the largest command if all together use too much.
    pub(crate) fn check_limits(&self) {
        let limits = self.limits();
        let running: Vec<_> = self
            .supervisors()
            .into_iter()
            .map(|supervisor| (supervisor.now(), supervisor))
            .filter(|(state, _)| !state.gone)
            .collect();
        // A command that is already being killed may free enough.
        if running.iter().any(|(state, _)| state.limit.is_some()) {
            return;
        }
        let check = |resource, unit: u64, order, used: fn(&CommandState) -> u64| {
            let total: u64 = running.iter().map(|(state, _)| used(state)).sum();
            if limits.of(resource).is_some_and(|limit| total.saturating_mul(unit) > limit)
                && let Some((_, largest)) = running.iter().max_by_key(|(state, _)| used(state))
            {
                largest.order(order);
            }
        };
        check(LimitedResource::Processes, 1, SupervisorOrder::TooManyProcesses, |state| state.usage.0);
        check(LimitedResource::Memory, 1024, SupervisorOrder::TooMuchMemory, |state| state.usage.1);
    }

    pub(crate) fn members(&self) -> MutexGuard<'_, GroupMembers> {
        // No holder of this lock can panic with a half-made change.
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads `output` to its end and discards it.
///
/// Closing the pipe instead would kill a server that a command left running, at its next line of log.
async fn drain(mut output: OutputPipe) {
    let mut buffer = vec![0; 4096];
    let mut since_pause = 0;
    // A pipe that cannot be read counts as one at its end.
    while let Ok(count @ 1..) = output.read(&mut buffer).await {
        since_pause += count;
        if since_pause >= CHUNK {
            since_pause = 0;
            sleep(PAUSE).await;
        }
    }
}
