//! The program `agentd-syntax`, one for all sessions: started when it is first needed, ended when it was idle, and started again after it
//! crashed or was killed for what it used.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agentd_process::{
    CommandSpec, CommandStreams, InputPipe, Launcher, OutputPipe, ProcessLimits, SpawnError,
};
use agentd_protocol::text_bounds;
use agentd_syntax::{Answer, MAX_LINE, PROGRAM, Query, Request, Response};
use rustix::process::Signal;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    select,
    sync::{Mutex as AsyncMutex, Semaphore, SemaphorePermit, mpsc, oneshot},
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

/// Requests that the program has at a time. Others wait for their turn, so that what one search sends delays no other for long.
const MOST_OPEN: u32 = 8;

/// Lines that wait to be written to the program.
const MOST_UNWRITTEN: usize = 2;

/// How long a process may take to end once its output has ended.
const END_WAIT: Duration = Duration::from_secs(1);

/// Bytes that are read at once.
const CHUNK: usize = 64 * 1024;

/// The most bytes kept of what the program writes to its errors.
const MAX_SAID: usize = 4096;

/// The limits of the program.
#[derive(Debug, Clone, Copy)]
pub struct SyntaxLimits {
    /// How long it stays without a request.
    pub idle: Duration,
    /// Bytes of memory at which it is killed.
    pub memory_bytes: u64,
}

impl Default for SyntaxLimits {
    fn default() -> Self {
        Self { idle: Duration::from_secs(300), memory_bytes: 1 << 30 }
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SyntaxFailure {
    /// The program cannot be started: a sentence.
    Unavailable(String),
    /// It ended, or was ended, before it answered: a clause why.
    Lost(String),
}

/// The program that parses for all sessions. Cheap to clone; clones share one process.
#[derive(Clone)]
pub struct SyntaxProgram(Arc<Shared>);

struct Shared {
    launcher: Launcher,
    path: PathBuf,
    limits: SyntaxLimits,
    running: AsyncMutex<Option<Arc<Running>>>,
    turns: Semaphore,
}

/// The process while it runs.
struct Running {
    pid: Option<i32>,
    lines: mpsc::Sender<Vec<u8>>,
    open: Mutex<OpenRequests>,
    /// Fires to end the process; a clause why is in `open`.
    stop: CancellationToken,
}

struct OpenRequests {
    next_id: u64,
    waiting: HashMap<u64, oneshot::Sender<Answer>>,
    /// When the last request came or was answered.
    last: Instant,
    /// Why the process ended or is to end.
    ended: Option<String>,
    /// Whether somebody else killed it, which says nothing of what it was asked.
    was_killed: bool,
}

/// The right to make requests: one at a time, or alone.
pub(super) struct Turn<'a>(#[expect(dead_code, reason = "held, and never looked at")] SemaphorePermit<'a>);

impl SyntaxProgram {
    /// The program at `path`, which need not exist.
    #[must_use]
    pub fn new(launcher: Launcher, path: PathBuf, limits: SyntaxLimits) -> Self {
        let turns = Semaphore::new(MOST_OPEN as usize);
        Self(Arc::new(Shared { launcher, path, limits, running: AsyncMutex::new(None), turns }))
    }

    /// The program beside this one; `None` where this program's own path is not known.
    #[must_use]
    pub fn beside_this_program(launcher: Launcher) -> Option<Self> {
        Some(Self::new(launcher, Self::path_beside_this_program()?, SyntaxLimits::default()))
    }

    /// Where the program belongs; `None` where this program's own path is not known.
    #[must_use]
    pub fn path_beside_this_program() -> Option<PathBuf> {
        Some(std::env::current_exe().ok()?.parent()?.join(PROGRAM))
    }

    /// Whether the program is there. Looks at the file; blocks.
    #[must_use]
    pub fn is_installed(&self) -> bool {
        self.0.path.is_file()
    }

    /// The process id, while the program runs.
    pub async fn pid(&self) -> Option<i32> {
        let running = self.0.running.lock().await.clone()?;
        let open = running.open();
        open.ended.is_none().then_some(())?;
        drop(open);
        running.pid
    }

    /// Waits for a turn among all searches. Cancel safe.
    pub(super) async fn turn(&self) -> Result<Turn<'_>, SyntaxFailure> {
        self.turns(1).await
    }

    /// Waits until nobody else has a request open: what happens to the program then comes of one's own. Cancel safe.
    pub(super) async fn turn_alone(&self) -> Result<Turn<'_>, SyntaxFailure> {
        self.turns(MOST_OPEN).await
    }

    async fn turns(&self, count: u32) -> Result<Turn<'_>, SyntaxFailure> {
        // The semaphore is never closed.
        let permit = self.0.turns.acquire_many(count).await;
        permit.map(Turn).map_err(|error| SyntaxFailure::Unavailable(error.to_string()))
    }

    /// Asks about texts. Without an answer in time, the program is ended. Of one that was killed meanwhile, or before that was noticed, the
    /// successor is asked.
    ///
    /// Cancel safe: the answer to a request that was given up is dropped.
    pub(super) async fn ask(
        &self,
        _: &Turn<'_>,
        query: Query,
        texts: Vec<String>,
        time: Duration,
    ) -> Result<Answer, SyntaxFailure> {
        let running = self.running().await?;
        let mut request = Request { id: 0, query, texts };
        match Self::exchange(&running, &mut request, time).await {
            Err(SyntaxFailure::Lost(_)) if running.open().was_killed => {
                Self::exchange(&*self.running().await?, &mut request, time).await
            }
            answered => answered,
        }
    }

    async fn exchange(
        running: &Running,
        request: &mut Request,
        time: Duration,
    ) -> Result<Answer, SyntaxFailure> {
        let (id, answer) = running.enter();
        let _leaving = Leaving { running, id };
        request.id = id;
        let mut line = serde_json::to_vec(request)
            .map_err(|error| SyntaxFailure::Lost(format!("the request cannot be written: {error}")))?;
        line.push(b'\n');
        if line.len() > MAX_LINE {
            return Err(SyntaxFailure::Lost("the text is too long for a request".to_owned()));
        }
        let exchange = async {
            // A process that has ended takes no more lines, and drops the sender of the answer.
            let _ = running.lines.send(line).await;
            answer.await
        };
        match timeout(time, exchange).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Err(SyntaxFailure::Lost(running.reason())),
            Err(_) => {
                let why = format!("it did not answer within {} seconds", time.as_secs_f64());
                running.end(why.clone());
                Err(SyntaxFailure::Lost(why))
            }
        }
    }

    /// The running process; starts one where there is none.
    async fn running(&self) -> Result<Arc<Running>, SyntaxFailure> {
        let mut slot = self.0.running.lock().await;
        if let Some(running) = slot.as_ref().filter(|running| running.open().ended.is_none()) {
            // An idle process must not end between here and the request.
            running.open().last = Instant::now();
            return Ok(Arc::clone(running));
        }
        let started = self.start().await?;
        *slot = Some(Arc::clone(&started));
        Ok(started)
    }

    async fn start(&self) -> Result<Arc<Running>, SyntaxFailure> {
        let Shared { launcher, path, limits, .. } = &*self.0;
        let group = launcher.group();
        group.set_limits(ProcessLimits {
            memory_bytes: Some(limits.memory_bytes),
            ..ProcessLimits::default()
        });
        let spawned = group.spawn(CommandSpec {
            program: path.clone().into(),
            args: Vec::new(),
            cwd: "/".into(),
            env: Vec::new(),
            streams: CommandStreams::Separate,
            sandbox: None,
        });
        let mut process = spawned.await.map_err(|error| unavailable(path, &error))?;
        let missing = || SyntaxFailure::Unavailable(format!("{PROGRAM} has no input and output."));
        let input = process.take_input().ok_or_else(missing)?;
        let output = process.take_output().ok_or_else(missing)?;
        let errors = process.errors.take().ok_or_else(missing)?;
        let (lines, unwritten) = mpsc::channel(MOST_UNWRITTEN);
        let running = Arc::new(Running {
            pid: process.pid(),
            lines,
            open: Mutex::new(OpenRequests {
                next_id: 0,
                waiting: HashMap::new(),
                last: Instant::now(),
                ended: None,
                was_killed: false,
            }),
            stop: CancellationToken::new(),
        });
        tokio::spawn(write_lines(input, unwritten));
        let said = tokio::spawn(end_of(errors));
        let served = Arc::clone(&running);
        let idle = limits.idle;
        tokio::spawn(async move {
            let why = served.serve(output, idle).await;
            // At the end of its output, a process is about to end by itself.
            let exit = match why {
                None => timeout(END_WAIT, process.wait()).await.ok(),
                Some(_) => None,
            };
            let limit = process.limit_reached();
            process.kill().await;
            let said = said.await.unwrap_or_default();
            let signal = exit.and_then(|exit| exit.signal);
            let was_killed = why.is_none() && limit.is_none() && signal == Some(Signal::KILL.as_raw());
            let why = why.unwrap_or_else(|| match (limit, signal) {
                (Some(_), _) => "it used more memory than it may".to_owned(),
                (None, Some(signal)) => format!("it was ended by signal {signal}"),
                (None, None) if said.is_empty() => "it ended".to_owned(),
                (None, None) => format!("it ended: {said}"),
            });
            served.finish(why, was_killed);
            drop(group);
        });
        Ok(running)
    }
}

fn unavailable(path: &std::path::Path, error: &SpawnError) -> SyntaxFailure {
    let shown = path.display();
    SyntaxFailure::Unavailable(match error {
        SpawnError::Program { source, .. } if source.kind() == std::io::ErrorKind::NotFound => format!(
            "The program {PROGRAM} is missing ({shown}): install it beside agentd. Search with grep meanwhile."
        ),
        error => format!("The program {PROGRAM} cannot be started: {error}"),
    })
}

impl Running {
    fn open(&self) -> MutexGuard<'_, OpenRequests> {
        // No holder of this lock leaves a half-made change.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the number of a request, and what its answer comes through.
    fn enter(&self) -> (u64, oneshot::Receiver<Answer>) {
        let (sender, answer) = oneshot::channel();
        let mut open = self.open();
        let id = open.next_id;
        open.next_id += 1;
        open.last = Instant::now();
        if open.ended.is_none() {
            open.waiting.insert(id, sender);
        }
        (id, answer)
    }

    /// Has the process ended.
    fn end(&self, why: String) {
        self.open().ended.get_or_insert(why);
        self.stop.cancel();
    }

    /// The process is gone: no request gets an answer any more.
    fn finish(&self, why: String, was_killed: bool) {
        let mut open = self.open();
        open.was_killed = was_killed && open.ended.is_none();
        open.ended.get_or_insert(why);
        open.waiting.clear();
    }

    fn reason(&self) -> String {
        self.open().ended.clone().unwrap_or_else(|| "it ended".to_owned())
    }

    /// Passes answers on until the output ends, the process is to end, or was idle. A clause why, where the process has not ended by itself.
    async fn serve(&self, mut output: OutputPipe, idle: Duration) -> Option<String> {
        let mut buffer: Vec<u8> = Vec::new();
        let mut looked_at = 0;
        loop {
            let deadline = self.open().last + idle;
            select! {
                biased;
                () = self.stop.cancelled() => return Some(self.reason()),
                read = read_more(&mut output, &mut buffer) => if read == 0 {
                    return None;
                },
                () = sleep_until(deadline) => {
                    let mut open = self.open();
                    if open.waiting.is_empty() && open.last + idle <= Instant::now() {
                        // A request that comes from now on starts another process.
                        let why = "it was idle".to_owned();
                        open.ended = Some(why.clone());
                        return Some(why);
                    }
                    // What is asked for takes its time: look again after as long.
                    open.last = Instant::now();
                    continue;
                }
            }
            while let Some(found) = memchr::memchr(b'\n', &buffer[looked_at..]) {
                let end = looked_at + found;
                match serde_json::from_slice::<Response>(&buffer[..end]) {
                    Ok(Response { id, answer }) => {
                        let mut open = self.open();
                        open.last = Instant::now();
                        // One that was given up has no receiver.
                        if let Some(sender) = open.waiting.remove(&id) {
                            let _ = sender.send(answer);
                        }
                    }
                    Err(error) => {
                        return Some(format!(
                            "its answer is not understood ({error}): is it of another version?"
                        ));
                    }
                }
                buffer.drain(..=end);
                looked_at = 0;
            }
            looked_at = buffer.len();
            if buffer.len() > MAX_LINE {
                return Some("its answer is too long".to_owned());
            }
            if buffer.is_empty() {
                buffer.shrink_to(CHUNK);
            }
        }
    }
}

/// Forgets a request that is answered or given up.
struct Leaving<'a> {
    running: &'a Running,
    id: u64,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        let mut open = self.running.open();
        open.waiting.remove(&self.id);
        open.last = Instant::now();
    }
}

/// Reads more; 0 at the end. Cancel safe.
async fn read_more(output: &mut OutputPipe, buffer: &mut Vec<u8>) -> usize {
    buffer.reserve(CHUNK);
    // A pipe that cannot be read is at its end.
    output.read_buf(buffer).await.unwrap_or(0)
}

async fn write_lines(mut input: InputPipe, mut lines: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = lines.recv().await {
        // A process that reads no more has ended, and its reader says so.
        if input.write_all(&line).await.is_err() {
            return;
        }
    }
}

/// Reads a pipe to its end; returns the last line.
async fn end_of(mut pipe: OutputPipe) -> String {
    let mut kept = Vec::new();
    while let Ok(1..) = pipe.read_buf(&mut kept).await {
        let surplus = kept.len().saturating_sub(MAX_SAID);
        kept.drain(..surplus);
    }
    let text = String::from_utf8_lossy(&kept);
    let line = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    text_bounds::head(line.trim(), 300).chars().filter(|letter| !letter.is_control()).collect()
}

/// Ends the process with the last clone.
impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(running) = self.running.get_mut() {
            running.end("the daemon ends".to_owned());
        }
    }
}
