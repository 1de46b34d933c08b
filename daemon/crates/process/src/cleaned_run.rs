//! Runs a shell command whose output people read: the clients' `bash` command.

use std::path::PathBuf;

use agentd_protocol::tool::Truncation;

use crate::{
    artifacts::OutputStorage,
    clean::OutputCleaner,
    decode::Utf8Stream,
    operations::{RunningCommand, Shell, ShellJob},
    shell::ShellError,
    shell_run::ShellOutcome,
    tail::{FullOutput, OutputTail},
};

/// A running command whose output comes as clean text (see [`OutputCleaner`]). Dropping it kills the command.
///
/// ```text
/// let mut run = CleanedRun::start(&shell, job, place).await?;
/// while let Some(text) = run.next().await { … }
/// let output = run.finish();
/// ```
pub struct CleanedRun {
    run: Box<dyn RunningCommand>,
    tail: OutputTail,
    decoder: Utf8Stream,
    cleaner: OutputCleaner,
    over: bool,
}

/// The result of a [`CleanedRun`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CleanedOutput {
    /// The end of the output.
    pub output: Truncation,
    /// The file with all of the output, when the output is long.
    pub full_output: Option<PathBuf>,
    /// How the command ended.
    pub outcome: ShellOutcome,
}

impl CleanedRun {
    /// Starts a command with `shell`. Long output goes to a file in `place`.
    ///
    /// # Errors
    /// See [`ShellError`]. Cancel safety: if dropped, whatever was started is killed.
    pub async fn start(shell: &dyn Shell, job: ShellJob, place: OutputStorage) -> Result<Self, ShellError> {
        Ok(Self {
            run: shell.start(job).await?,
            tail: OutputTail::new(place),
            decoder: Utf8Stream::new(),
            cleaner: OutputCleaner::new(),
            over: false,
        })
    }

    /// The next piece of text, never empty; `None` once the command has ended. The command waits while nothing is read.
    pub async fn next(&mut self) -> Option<String> {
        while !self.over {
            let (text, raw_bytes) = match self.run.next().await {
                Some(chunk) => (self.cleaner.clean(&self.decoder.push(chunk)), chunk.len()),
                None => {
                    self.over = true;
                    (self.cleaner.clean(self.decoder.finish()), 0)
                }
            };
            let text = text.to_string();
            self.tail.push_text(&text, raw_bytes).await;
            if self.over {
                self.tail.finish().await;
            }
            if !text.is_empty() {
                return Some(text);
            }
        }
        None
    }

    /// The result, once [`Self::next`] has returned `None`.
    ///
    /// # Errors
    /// [`ShellError::Unreachable`] when the connection to the other machine was lost, so that the end is unknown.
    pub fn finish(self) -> Result<CleanedOutput, ShellError> {
        if let Some(failure) = self.run.failure() {
            return Err(ShellError::Unreachable(failure));
        }
        let full_output = match self.tail.full_output() {
            FullOutput::File(path) => Some(path.to_path_buf()),
            FullOutput::Shown | FullOutput::Lost(_) => None,
        };
        Ok(CleanedOutput { output: self.tail.snapshot(), full_output, outcome: self.run.finish() })
    }
}
