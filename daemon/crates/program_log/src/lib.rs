//! Logs of what programs of others say: MCP servers and extensions, by log messages and on their standard error.
//!
//! Nothing waits for the disk: lines are put into a bounded queue, and a thread for blocking work writes them. A program that floods loses its
//! own lines, and the log says how many. A file has a limit; what was before it is in the file of the same name with `.1` after it.

mod output_tail;

use std::{
    collections::{BTreeMap, VecDeque},
    fs::{self, DirBuilder, File},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use agentd_http::scrub;
use agentd_protocol::{terminal_text::harmless, text_bounds};
use agentd_safe_open::{LinkPolicy, OpenRules};
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::Notify;

pub use output_tail::OutputTail;

/// The file is moved away before it would grow beyond this, in bytes.
const MAX_FILE: u64 = 5 << 20;

/// The longest text of a message, in bytes.
const MAX_TEXT: usize = 4000;

/// The longest level or name of a logger, in bytes.
const MAX_WORD: usize = 100;

/// Lines of a program in a second; more are left out.
const LINES_A_SECOND: u32 = 100;

/// The span of that count.
const SECOND: Duration = Duration::from_secs(1);

/// Bytes that wait for the disk.
const MAX_QUEUE: usize = 1 << 20;

/// The level of what a program writes to its standard error.
const STDERR: &str = "stderr";

/// The logs of a process, one for each file.
#[derive(Debug, Default)]
pub struct ProgramLogs(Mutex<BTreeMap<PathBuf, ProgramLog>>);

impl ProgramLogs {
    /// The log at this path.
    #[must_use]
    pub fn at(&self, path: PathBuf) -> ProgramLog {
        let mut logs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        logs.entry(path.clone()).or_insert_with(|| ProgramLog::at(path)).clone()
    }

    /// Waits until what was said so far is in the logs. For the end of a daemon, once its sessions are closed.
    pub async fn flushed(&self) {
        let logs: Vec<ProgramLog> =
            self.0.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        for log in logs {
            log.flushed().await;
        }
    }
}

/// One log. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ProgramLog(Arc<LogState>);

#[derive(Debug)]
struct LogState {
    path: PathBuf,
    queue: Mutex<LineQueue>,
    /// Told when nothing is left to write.
    idle: Notify,
}

#[derive(Debug, Default)]
struct LineQueue {
    lines: VecDeque<String>,
    bytes: usize,
    /// Lines that found no room.
    left_out: u64,
    /// Whether a thread writes, which takes what comes meanwhile.
    is_writing: bool,
}

impl ProgramLog {
    /// The log at this path. Nothing is opened before there is something to write.
    #[must_use]
    pub fn at(path: PathBuf) -> Self {
        Self(Arc::new(LogState { path, queue: Mutex::default(), idle: Notify::new() }))
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The lines of a program.
    #[must_use]
    pub fn source(&self, name: &str) -> ProgramLogSource {
        ProgramLogSource { log: self.clone(), name: name.to_owned(), state: Mutex::default() }
    }

    /// Has a line written soon. Must be called within the runtime.
    fn push(&self, line: String) {
        let mut queue = self.lock();
        if queue.bytes + line.len() > MAX_QUEUE {
            queue.left_out += 1;
            return;
        }
        queue.bytes += line.len();
        queue.lines.push_back(line);
        if !std::mem::replace(&mut queue.is_writing, true) {
            drop(queue);
            let log = self.clone();
            tokio::task::spawn_blocking(move || log.write_queued());
        }
    }

    /// Waits until every line so far was written, or could not be. A runtime that ends before that may lose the last ones.
    ///
    /// Cancel safety: nothing is lost.
    pub async fn flushed(&self) {
        loop {
            let mut idle = pin!(self.0.idle.notified());
            // Before the look, so that no notice is missed between the two.
            idle.as_mut().enable();
            if !self.lock().is_writing {
                return;
            }
            idle.await;
        }
    }

    /// Writes until nothing waits. Blocks.
    fn write_queued(&self) {
        let mut has_failed = false;
        loop {
            let text = {
                let mut queue = self.lock();
                if queue.lines.is_empty() {
                    queue.is_writing = false;
                    drop(queue);
                    return self.0.idle.notify_waiters();
                }
                queue.bytes = 0;
                let mut text: String = queue.lines.drain(..).collect();
                match std::mem::take(&mut queue.left_out) {
                    0 => {}
                    count => text.push_str(&line("agentd", "warning", &left_out(count))),
                }
                text
            };
            // Once for what waits now: a full disk stays full for a while.
            if let Err(error) = append(&self.0.path, text.as_bytes())
                && !std::mem::replace(&mut has_failed, true)
            {
                tracing::warn!(%error, path = %self.0.path.display(), "what programs say cannot be written");
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, LineQueue> {
        // No method panics halfway.
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one program writes to the log.
pub struct ProgramLogSource {
    log: ProgramLog,
    name: String,
    state: Mutex<SourceState>,
}

#[derive(Default)]
struct SourceState {
    rate: LineRate,
    /// The beginning of a line of the standard error.
    partial: String,
}

impl ProgramLogSource {
    /// A message of the program: its level, the part of the program that it is of, and a text or any value.
    pub fn message(&self, level: &str, logger: Option<&str>, data: &Value) {
        let admitted = self.lock().rate.admit(Instant::now());
        let Some(before) = self.written(admitted) else { return };
        let level = text_bounds::head(level, MAX_WORD);
        let logger = logger.map(|logger| text_bounds::head(logger, MAX_WORD));
        let head = logger.map_or_else(|| level.to_owned(), |logger| format!("{level} {logger}"));
        self.write(before, &head.replace(['\n', '\r'], " "), &text_of(data));
    }

    /// Something that the program wrote to its standard error.
    pub fn errors(&self, text: &str) {
        for piece in text.split_inclusive('\n') {
            let mut state = self.lock();
            if state.partial.len() < 2 * MAX_TEXT {
                state.partial.push_str(text_bounds::head(piece, 2 * MAX_TEXT));
            }
            if piece.ends_with('\n') {
                let said = std::mem::take(&mut state.partial);
                if said.trim().is_empty() {
                    continue;
                }
                let admitted = state.rate.admit(Instant::now());
                drop(state);
                if let Some(before) = self.written(admitted) {
                    self.write(before, STDERR, said.trim_end());
                }
            }
        }
    }

    /// The number of lines left out before one that is written; `None` for one that is not. The first of those is noted at once: a flood
    /// may be the last that a program says.
    fn written(&self, admitted: Admitted) -> Option<u64> {
        match admitted {
            Admitted::Yes { before } => Some(before),
            Admitted::No { is_first } => {
                if is_first {
                    let text =
                        format!("more than {LINES_A_SECOND} messages in a second: the rest is left out");
                    self.log.push(line(&self.name, "warning agentd", &text));
                }
                None
            }
        }
    }

    /// Writes a text, and before it the note about lines that were left out.
    fn write(&self, before: u64, head: &str, text: &str) {
        if before > 0 {
            self.log.push(line(&self.name, "warning agentd", &left_out(before)));
        }
        // What is cut off may begin in the middle of a secret: the end goes after secrets are gone.
        let text = scrub(text_bounds::head(text, 2 * MAX_TEXT)).into_owned();
        self.log.push(line(&self.name, head, text_bounds::head(&text, MAX_TEXT)));
    }

    fn lock(&self) -> MutexGuard<'_, SourceState> {
        // No method panics halfway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ProgramLogSource {
    fn drop(&mut self) {
        let (partial, count) = {
            let mut state = self.lock();
            (std::mem::take(&mut state.partial), state.rate.take_left_out())
        };
        // The last connection may be dropped with the runtime.
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        if !partial.trim().is_empty() {
            self.write(0, STDERR, partial.trim_end());
        }
        if count > 0 {
            self.log.push(line(&self.name, "warning agentd", &left_out(count)));
        }
    }
}

/// Whether a line may be written.
#[derive(Debug, PartialEq, Eq)]
enum Admitted {
    /// It may; so many were left out before it.
    Yes { before: u64 },
    /// It may not.
    No { is_first: bool },
}

/// Counts the lines of a program.
#[derive(Default)]
struct LineRate {
    since: Option<Instant>,
    lines: u32,
    left_out: u64,
}

impl LineRate {
    /// Whether a line may be written now.
    fn admit(&mut self, now: Instant) -> Admitted {
        if self.since.is_none_or(|since| now.duration_since(since) >= SECOND) {
            (self.since, self.lines) = (Some(now), 0);
        }
        if self.lines >= LINES_A_SECOND {
            self.left_out += 1;
            return Admitted::No { is_first: self.left_out == 1 };
        }
        self.lines += 1;
        Admitted::Yes { before: self.take_left_out() }
    }

    fn take_left_out(&mut self) -> u64 {
        std::mem::take(&mut self.left_out)
    }
}

fn left_out(count: u64) -> String {
    let many = if count == 1 { "1 message was".to_owned() } else { format!("{count} messages were") };
    format!("{many} left out")
}

/// `<time> [name] head: text`, with further lines of the text indented.
fn line(name: &str, head: &str, text: &str) -> String {
    let (head, text) = (harmless(head), harmless(text));
    let text = text.trim_end().replace('\n', "\n    ");
    format!("{:.3} [{name}] {head}: {text}\n", Timestamp::now())
}

/// The data of a message: a text as it is, anything else as the beginning of its JSON.
fn text_of(data: &Value) -> String {
    /// Takes a number of bytes at most.
    struct Beginning(Vec<u8>);

    impl Write for Beginning {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0.len() >= 2 * MAX_TEXT {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.0.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    if let Value::String(text) = data {
        return text_bounds::head(text, 2 * MAX_TEXT).to_owned();
    }
    let mut beginning = Beginning(Vec::new());
    // Fails where there is more than is wanted.
    let _ = serde_json::to_writer(&mut beginning, data);
    String::from_utf8_lossy(&beginning.0).into_owned()
}

/// Appends to the log, after moving a long one away. Other processes of the user may do the same.
fn append(path: &Path, text: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    loop {
        let opened = OpenRules::new(LinkPolicy::Refused).open_to_append(path);
        let mut file = opened.map_err(|error| io::Error::from(error.into_problem()))?;
        if file.metadata()?.len() + text.len() as u64 <= MAX_FILE || !move_away(&file, path)? {
            return file.write_all(text);
        }
    }
}

/// Moves the log away, unless it is empty or another process has done so. Returns whether there is another file at `path` now.
fn move_away(file: &File, path: &Path) -> io::Result<bool> {
    file.lock()?;
    let own = file.metadata()?;
    let there = match fs::symlink_metadata(path) {
        Ok(there) => there,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    if (own.dev(), own.ino()) != (there.dev(), there.ino()) {
        return Ok(true);
    }
    if own.len() == 0 {
        return Ok(false);
    }
    let mut old = path.as_os_str().to_owned();
    old.push(".1");
    fs::rename(path, old)?;
    Ok(true)
}

#[cfg(test)]
mod tests;
