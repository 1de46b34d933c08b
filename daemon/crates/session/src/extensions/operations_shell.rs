//! A shell whose commands an extension runs.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use agentd_extensions::BashOperations;
use agentd_process::{
    ExitStatus, RunningCommand, Shell, ShellError, ShellFuture, ShellJob, ShellOutcome, StopCause,
};
use tokio::sync::{mpsc, oneshot};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

/// Bytes of output that may wait to be read. Extensions are not slowed down by those who read: one that prints more is stopped.
const MAX_WAITING: usize = 64 << 20;

/// Runs commands by functions of an extension.
pub(crate) struct OperationsShell {
    pub(crate) operations: BashOperations,
    pub(crate) tasks: TaskTracker,
}

impl Shell for OperationsShell {
    fn start(&self, job: ShellJob) -> ShellFuture<'_, Result<Box<dyn RunningCommand>, ShellError>> {
        Box::pin(async move {
            let (chunks, output) = mpsc::unbounded_channel();
            let (told, ended) = oneshot::channel();
            let waiting = Arc::<AtomicUsize>::default();
            let stop = job.cancel.child_token();
            let (operations, counted, flooded) =
                (self.operations.clone(), Arc::clone(&waiting), stop.clone());
            let data = move |chunk: Vec<u8>| {
                if counted.fetch_add(chunk.len(), Ordering::Relaxed) + chunk.len() > MAX_WAITING {
                    return flooded.cancel();
                }
                // Nobody may read any more.
                let _ = chunks.send(chunk);
            };
            let cancel = stop.clone();
            self.tasks.spawn(async move {
                let cwd = job.cwd.display().to_string();
                let end = operations.exec((&job.command, &cwd), &cancel, data).await;
                // The reader may have left.
                let _ = told.send(end);
            });
            Ok(Box::new(OperationsRun {
                output,
                waiting,
                chunk: Vec::new(),
                ended: Some(ended),
                end: None,
                begun: Instant::now(),
                cancel: job.cancel,
                _stop: stop.drop_guard(),
            }) as Box<dyn RunningCommand>)
        })
    }
}

struct OperationsRun {
    output: mpsc::UnboundedReceiver<Vec<u8>>,
    waiting: Arc<AtomicUsize>,
    chunk: Vec<u8>,
    ended: Option<oneshot::Receiver<Result<Option<i32>, String>>>,
    end: Option<Result<Option<i32>, String>>,
    begun: Instant,
    cancel: CancellationToken,
    _stop: DropGuard,
}

impl RunningCommand for OperationsRun {
    fn next(&mut self) -> ShellFuture<'_, Option<&[u8]>> {
        Box::pin(async move {
            // It is closed with the request of the host.
            if let Some(chunk) = self.output.recv().await {
                self.waiting.fetch_sub(chunk.len(), Ordering::Relaxed);
                self.chunk = chunk;
                return Some(self.chunk.as_slice());
            }
            if let Some(ended) = &mut self.ended {
                let end = ended.await;
                self.end =
                    Some(end.unwrap_or_else(|_| Err("The extension did not run the command.".to_owned())));
                self.ended = None;
            }
            None
        })
    }

    fn failure(&self) -> Option<String> {
        // A command that was stopped has its output so far, however it says that.
        match &self.end {
            Some(Err(error)) if !self.cancel.is_cancelled() => {
                Some(if self.waiting.load(Ordering::Relaxed) > MAX_WAITING {
                    "The command of the extension printed more than could be read, and was stopped."
                        .to_owned()
                } else {
                    error.clone()
                })
            }
            _ => None,
        }
    }

    fn finish(self: Box<Self>) -> ShellOutcome {
        let code = self.end.and_then(Result::ok).flatten();
        ShellOutcome {
            exit: code.map(|code| ExitStatus { code, signal: None }),
            stopped: self.cancel.is_cancelled().then_some(StopCause::Aborted),
            shell_exited_after: None,
            wall_time: self.begun.elapsed(),
        }
    }
}
