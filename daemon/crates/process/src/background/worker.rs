//! Reads a background process's output, and ends the process at its timeout.

use std::{sync::Arc, time::Duration};

use tokio::{
    io::AsyncReadExt as _,
    select,
    time::{Instant, sleep, sleep_until},
};

use super::{
    log::LogFile,
    process::{BackgroundEnd, BackgroundProcess, EndedBy, OutputProgress},
    terms::OutputListener,
};
use crate::{command::ExitStatus, plain_text::Utf8Stream, process::Process, terminal_text::TerminalText};

/// Bytes read at once.
const CHUNK: usize = 64 * 1024;

/// The pause after each full chunk when neither memory nor file has room: a flood that nobody reads goes on at about 12
/// MB a second, and costs next to nothing.
const FLOOD_PAUSE: Duration = Duration::from_millis(5);

/// Reads of the output after the process is gone: enough for all that a pipe or a terminal holds.
const LAST_READS: usize = 64;

/// The time between SIGTERM and SIGKILL after the timeout.
const GRACE: Duration = Duration::from_secs(2);

/// Serves one process until it has ended.
pub(super) struct Worker {
    pub(super) process: Process,
    pub(super) shown: Arc<BackgroundProcess>,
    pub(super) decoder: Utf8Stream,
    /// On a terminal.
    pub(super) terminal: Option<TerminalText>,
    pub(super) keep_bytes: usize,
    pub(super) file: LogFile,
    pub(super) deadline: Option<Instant>,
    pub(super) listener: Option<OutputListener>,
}

impl Worker {
    /// Returns how the process ended.
    pub(super) async fn run(mut self) -> BackgroundEnd {
        // Only a process that writes a lot gets memory for a whole chunk.
        let mut buffer = vec![0; 4096];
        let mut open = true;
        let watch = self.process.watch().clone();
        loop {
            select! {
                biased;
                () = watch.gone() => break,
                () = sleep_until(self.deadline.unwrap_or_else(Instant::now)), if self.deadline.is_some() => {
                    self.deadline = None;
                    self.time_is_up();
                }
                read = self.process.output.read(&mut buffer), if open => match read {
                    Ok(count @ 1..) => {
                        self.take(&buffer[..count]).await;
                        if count == buffer.len() {
                            buffer.resize(CHUNK, 0);
                            if self.file.is_full() {
                                sleep(FLOOD_PAUSE).await;
                            }
                        }
                    }
                    // A pipe that cannot be read is at its end.
                    Ok(0) | Err(_) => open = false,
                },
            }
        }
        if open {
            for _ in 0..LAST_READS {
                // An error means that the pipe is empty now: a process out of reach holds it open.
                let Ok(count @ 1..) = self.process.output.try_read(&mut buffer) else { break };
                self.take(&buffer[..count]).await;
            }
        }
        self.finish().await
    }

    /// Takes written bytes: into the file first when memory has no room, so that no output is in neither.
    async fn take(&mut self, bytes: &[u8]) {
        let text = self.decoder.push(bytes);
        let (text, current) = match &mut self.terminal {
            Some(terminal) => (terminal.push(&text).into(), terminal.current()),
            None => (text, String::new()),
        };
        let text = text.into_owned();
        self.keep(&text, current, bytes.len()).await;
    }

    async fn keep(&mut self, text: &str, current: String, written: usize) {
        let beginning = {
            let log = self.shown.log();
            let overflows = log.kept().len() + text.len() > self.keep_bytes;
            (!self.file.has_begun() && overflows).then(|| log.kept().to_owned())
        };
        if let Some(beginning) = beginning {
            self.file.append(&beginning).await;
            self.file.append(text).await;
        } else if self.file.has_begun() {
            self.file.append(text).await;
        }
        {
            let mut log = self.shown.log();
            log.push(text, current.clone());
            log.file = self.file.facts();
        }
        // Who hears of it finds it in the log.
        if let Some(listener) = &mut self.listener {
            listener(text, &current);
        }
        self.shown.news.send_modify(|news| news.written += written as u64);
    }

    /// The timeout passed: ends the process without waiting for it.
    fn time_is_up(&self) {
        let shown = Arc::clone(&self.shown);
        self.process.group().spawn_task(async move {
            // The group logs what survives SIGKILL.
            let _ = shown.terminate(GRACE, EndedBy::Timeout).await;
        });
    }

    async fn finish(mut self) -> BackgroundEnd {
        let mut rest = self.decoder.finish().to_owned();
        if let Some(terminal) = &mut self.terminal {
            rest = terminal.push(&rest) + &terminal.finish();
        }
        self.keep(&rest, String::new(), 0).await;
        self.file.finish().await;
        self.shown.log().file = self.file.facts();
        // Nothing reads any more, and an open pipe would waste a descriptor.
        *self.shown.input.lock().await = None;
        let end = BackgroundEnd {
            // Only a shell whose supervisor was killed has no exit status.
            exit: self.process.exit().unwrap_or(ExitStatus::signaled(libc::SIGKILL)),
            by: self.shown.requested_end().or_else(|| self.process.limit_reached().map(EndedBy::Limit)),
            wall_time: self.shown.started.elapsed(),
        };
        self.shown.news.send_modify(|news| *news = OutputProgress { end: Some(end), ..*news });
        end
    }
}
