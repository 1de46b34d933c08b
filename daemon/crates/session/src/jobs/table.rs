//! The jobs of one session as one list, and how those who start processes reach the session's actor.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use agentd_process::{BackgroundProcess, BackgroundProcesses};
use agentd_protocol::jobs::{JobInfo, JobKind, JobStatus};
use agentd_tools::{JobRecorder, Recorded};
use tokio::sync::oneshot;

use super::info::{of_process, of_subagent};
use crate::{message_sender::MessageSender, subagents::Subagents};

/// Jobs that have left the list of processes and stay in this one: the last so many.
const REMEMBERED: usize = 64;

/// The jobs of a session. Cheap to clone; all clones are the same.
#[derive(Clone)]
pub(crate) struct SessionJobs(Arc<Inner>);

struct Inner {
    processes: BackgroundProcesses,
    subagents: Subagents,
    actor: OnceLock<MessageSender<JobMessage>>,
    /// Processes that have ended, the oldest first.
    ended: Mutex<Vec<JobInfo>>,
    /// The ids of those that run, once their beginning is on record.
    begun: Mutex<HashSet<String>>,
}

/// A message from a tool call to the session's actor.
pub(crate) enum JobMessage {
    /// A process began. Answered once it is on record, if it is to be.
    Began { process: Arc<BackgroundProcess>, done: oneshot::Sender<Result<(), String>> },
}

impl SessionJobs {
    /// Those of a session with these processes and subagents.
    pub(crate) fn new(processes: BackgroundProcesses, subagents: Subagents) -> Self {
        Self(Arc::new(Inner {
            processes,
            subagents,
            actor: OnceLock::new(),
            ended: Mutex::default(),
            begun: Mutex::default(),
        }))
    }

    /// Says how the session's actor is reached. Only the first time counts.
    pub(crate) fn lead_to(&self, actor: MessageSender<JobMessage>) {
        let _ = self.0.actor.set(actor);
    }

    /// The processes.
    pub(crate) fn processes(&self) -> &BackgroundProcesses {
        &self.0.processes
    }

    /// The subagents.
    pub(crate) fn subagents(&self) -> &Subagents {
        &self.0.subagents
    }

    fn ended(&self) -> MutexGuard<'_, Vec<JobInfo>> {
        // Each change is one push, one assignment or one removal.
        self.0.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begun(&self) -> MutexGuard<'_, HashSet<String>> {
        // Each change is one insertion or one removal.
        self.0.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a process is about to be on record. False when it has been: it may have ended before its call could say that it began.
    pub(crate) fn begin(&self, id: &str) -> bool {
        !self.ended().iter().any(|job| job.id == id) && self.begun().insert(id.to_owned())
    }

    /// Keeps a process in the list that has ended.
    pub(crate) fn keep(&self, job: JobInfo) {
        self.begun().remove(&job.id);
        let mut ended = self.ended();
        match ended.iter_mut().find(|known| known.id == job.id) {
            Some(known) => *known = job,
            None => ended.push(job),
        }
        let surplus = ended.len().saturating_sub(REMEMBERED);
        ended.drain(..surplus);
    }

    /// All jobs, those that have ended included: processes first, each kind in the order of its beginning.
    pub(crate) fn list(&self) -> Vec<JobInfo> {
        let processes = self.0.processes.list();
        let is_there = |job: &JobInfo| processes.iter().any(|process| process.id() == job.id);
        let mut jobs: Vec<JobInfo> = self.ended().iter().filter(|job| !is_there(job)).cloned().collect();
        jobs.extend(processes.iter().map(|process| of_process(process)));
        jobs.extend(self.0.subagents.list().iter().map(of_subagent));
        jobs
    }

    /// The job of that id, or the newest service of that name.
    ///
    /// # Errors
    /// A sentence with the ids that there are.
    pub(crate) fn find(&self, id: &str) -> Result<JobInfo, String> {
        let jobs = self.list();
        let by_name = || jobs.iter().rev().find(|job| job.name.as_deref() == Some(id));
        if let Some(job) = jobs.iter().find(|job| job.id == id).or_else(by_name) {
            return Ok(job.clone());
        }
        let known: Vec<&str> = jobs.iter().map(|job| job.id.as_str()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Err(format!("The session has no job \"{id}\"; there are: {known}."))
    }

    /// The jobs that somebody may wait for: those that run and are no services.
    pub(super) fn awaited(&self) -> Vec<JobInfo> {
        let mut jobs = self.list();
        jobs.retain(|job| job.status == JobStatus::Running && job.kind != JobKind::Service);
        jobs
    }

    /// Whether a job runs whose end the model is told.
    pub(crate) fn has_awaited_process(&self) -> bool {
        let runs = |process: &Arc<BackgroundProcess>| {
            process.facts().is_recorded && !process.facts().is_service && process.end().is_none()
        };
        self.0.processes.list().iter().any(runs)
    }
}

impl JobRecorder for SessionJobs {
    fn began(&self, process: Arc<BackgroundProcess>) -> Recorded<'_> {
        Box::pin(async move {
            let ended = || "The session has ended.".to_owned();
            let (done, recorded) = oneshot::channel();
            self.0.actor.get().ok_or_else(ended)?.send(JobMessage::Began { process, done }).await;
            recorded.await.unwrap_or_else(|_| Err(ended()))
        })
    }
}
