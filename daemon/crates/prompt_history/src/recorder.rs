//! Records prompts so that none waits for the disk: at once where that takes microseconds, else beside the runtime's threads.

use std::{
    mem,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use agentd_files::QuickAccess;
use tokio_util::task::TaskTracker;

use crate::{file::HistoryFile, rows::NewPrompt};

/// The most prompts that wait for a disk that has stopped; later ones are not recorded.
const MOST_WAITING: usize = 256;

/// Takes prompts of all sessions. Cheap to clone; no thread and no open file while nothing is recorded.
#[derive(Debug, Clone)]
pub struct PromptRecorder {
    tasks: TaskTracker,
    state: Arc<Mutex<Waiting>>,
}

#[derive(Debug, Default)]
struct Waiting {
    prompts: Vec<(HistoryFile, NewPrompt)>,
    /// A blocking thread takes them.
    is_written: bool,
    /// The file that was used last, and how fast its disk is: mostly there is one file.
    last: Option<(HistoryFile, QuickAccess)>,
}

impl Waiting {
    /// Writes to this file.
    fn access(&mut self, file: &HistoryFile) -> QuickAccess {
        match &self.last {
            Some((last, access)) if last == file => access.clone(),
            _ => {
                let access = QuickAccess::new(file.folder().map(Path::to_owned));
                self.last = Some((file.clone(), access.clone()));
                access
            }
        }
    }
}

impl PromptRecorder {
    /// A recorder whose work is among these tasks, so that the end of the daemon waits for it.
    #[must_use]
    pub fn new(tasks: TaskTracker) -> Self {
        Self { tasks, state: Arc::default() }
    }

    /// Records a prompt now or soon. Returns at once; a failure is logged, and concerns nobody else.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn record(&self, file: HistoryFile, prompt: NewPrompt) {
        let access = {
            let mut waiting = lock(&self.state);
            let access = waiting.access(&file);
            // Prompts stay in their order.
            (!waiting.is_written).then_some(access)
        };
        match access.as_ref().and_then(|access| access.run_here(|| file.append_at_once(&prompt))) {
            Some(Ok(true)) => return,
            Some(Ok(false)) | None => {}
            Some(Err(error)) => return tracing::warn!(%error, "a prompt is not recorded"),
        }
        let mut waiting = lock(&self.state);
        if waiting.prompts.len() >= MOST_WAITING {
            tracing::warn!("the disk is too slow for the prompt history: a prompt is not recorded");
            return;
        }
        waiting.prompts.push((file, prompt));
        if !mem::replace(&mut waiting.is_written, true) {
            let (state, access) = (Arc::clone(&self.state), access.unwrap_or_else(QuickAccess::never));
            self.tasks.spawn_blocking(move || access.run_on_this_thread(|| write_all(&state)));
        }
    }
}

fn lock(state: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    // Nothing panics while it holds the lock.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Appends what waits, in its order, until nothing does.
fn write_all(state: &Mutex<Waiting>) {
    loop {
        let prompts = {
            let mut waiting = lock(state);
            if waiting.prompts.is_empty() {
                waiting.is_written = false;
                return;
            }
            mem::take(&mut waiting.prompts)
        };
        let mut prompts = prompts.into_iter().peekable();
        while let Some((file, first)) = prompts.next() {
            let mut batch = vec![first];
            while let Some((_, next)) = prompts.next_if(|(other, _)| *other == file) {
                batch.push(next);
            }
            if let Err(error) = file.append(batch) {
                tracing::warn!(%error, "prompts are not recorded");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::HistoryQuery;

    #[tokio::test(flavor = "multi_thread")]
    async fn what_is_recorded_is_there_when_the_tasks_have_ended() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let files = folders.each_ref().map(|folder| HistoryFile::of_agent_dir(folder.path()));
        let tasks = TaskTracker::new();
        let recorder = PromptRecorder::new(tasks.clone());
        for number in 0..100 {
            let prompt =
                NewPrompt { prompt: format!("p{number}"), created_at: number, cwd: None, session_id: None };
            recorder.record(files[usize::from(number % 10 == 0)].clone(), prompt);
        }
        tasks.close();
        tasks.wait().await;
        let found =
            files.map(|file| file.search(&HistoryQuery { limit: 1000, ..HistoryQuery::default() }).unwrap());
        assert_eq!((found[0].len(), found[1].len()), (90, 10));
        let texts: Vec<&str> = found[0].iter().rev().map(|entry| entry.prompt.as_str()).collect();
        let expected: Vec<String> =
            (0..100).filter(|number| number % 10 != 0).map(|number| format!("p{number}")).collect();
        assert_eq!(texts, expected, "in their order");
    }
}
