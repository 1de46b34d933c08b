//! A command that was started in the foreground and goes on in the background: the task that reads its output feeds the list.

use std::sync::{Arc, Mutex};

use tokio::sync::{Mutex as AsyncMutex, watch};

use super::{
    list::{BackgroundError, BackgroundLimits, BackgroundProcesses},
    log::OutputLog,
    process::{BackgroundEnd, BackgroundProcess, EndedBy, OutputProgress},
    terms::{DeliveryState, JobTerms},
};
use crate::{
    command::ExitStatus,
    output_storage::LogFileFacts,
    shell_run::{ShellOutcome, ShellRun, StopCause},
};

/// The output of a command before it was adopted.
#[derive(Debug, Clone)]
pub struct AdoptedOutput<'a> {
    /// Its end.
    pub text: &'a str,
    /// The bytes of all of it.
    pub total_bytes: u64,
    /// The line feeds in all of it.
    pub line_feeds: u64,
    /// The file with all of it.
    pub file: LogFileFacts,
}

/// A command in the list of background processes whose output is read elsewhere. Dropped before [`Self::finish`], it leaves the list.
#[derive(Debug)]
pub struct AdoptedProcess {
    pub(super) shown: Arc<BackgroundProcess>,
    pub(super) list: BackgroundProcesses,
    pub(super) end: Option<BackgroundEnd>,
}

impl BackgroundProcesses {
    /// Puts a command in the list that was started otherwise and runs. What it has written so far is `output`.
    ///
    /// # Errors
    /// [`BackgroundError::TooMany`]; nothing has changed then.
    pub fn adopt(
        &self,
        run: &ShellRun,
        label: String,
        terms: JobTerms,
        limits: BackgroundLimits,
        output: &AdoptedOutput<'_>,
    ) -> Result<AdoptedProcess, BackgroundError> {
        let starting = self.reserve(limits.running)?;
        let mut log = OutputLog::begun(limits.keep_bytes, output.text, output.total_bytes, output.line_feeds);
        log.file = output.file.clone();
        let shown = Arc::new(BackgroundProcess {
            id: starting.id.clone(),
            label,
            pid: run.pid(),
            on_terminal: false,
            started: run.started(),
            log: Mutex::new(log),
            news: watch::Sender::new(OutputProgress::default()),
            watch: run.watch(),
            input: AsyncMutex::new(None),
            ended_by: Mutex::new(None),
            facts: terms.facts,
            delivery: DeliveryState::new(terms.delivery),
        });
        starting.done(Arc::clone(&shown));
        Ok(AdoptedProcess { shown, list: self.clone(), end: None })
    }
}

impl AdoptedProcess {
    /// The process in the list.
    #[must_use]
    pub fn process(&self) -> &Arc<BackgroundProcess> {
        &self.shown
    }

    /// Takes a piece of its output as text, made of `raw` bytes; `file` has all of the output by then.
    pub fn push(&self, text: &str, raw: usize, file: LogFileFacts) {
        {
            let mut log = self.shown.log();
            log.push(text, String::new());
            log.file = file;
        }
        self.shown.news.send_modify(|news| news.written += raw as u64);
    }

    /// The command has ended, and all of its output was taken.
    pub fn finish(mut self, outcome: &ShellOutcome) {
        let by = match outcome.stopped {
            Some(StopCause::TimedOut) => Some(EndedBy::Timeout),
            Some(StopCause::Limit(limit)) => Some(EndedBy::Limit(limit)),
            Some(StopCause::Aborted) => Some(EndedBy::Request),
            None => None,
        };
        self.end = Some(BackgroundEnd {
            exit: outcome.exit.unwrap_or(ExitStatus::signaled(libc::SIGKILL)),
            by: self.shown.requested_end().or(by),
            wall_time: outcome.wall_time,
        });
    }
}

impl Drop for AdoptedProcess {
    fn drop(&mut self) {
        match self.end {
            Some(end) => {
                self.shown.news.send_modify(|news| *news = OutputProgress { end: Some(end), ..*news });
                self.list.note_end(Arc::clone(&self.shown));
            }
            None => self.list.leave_out(&self.shown),
        }
    }
}
