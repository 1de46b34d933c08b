//! A kernel that runs: one task owns its process, and runs its cells one after the other.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use agentd_process::{LimitedResource, OutputPipe, Process, ProcessMark};
use agentd_protocol::lines::{Line, LineSplitter};
use tokio::{
    io::AsyncReadExt as _,
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    cell::{Cell, CellEnd, CellNews},
    pool::Place,
    records::{Answer, MAX_RECORD, Request},
};

/// The time that an interrupted cell has to end, before its kernel is asked to.
const INTERRUPT_WAIT: Duration = Duration::from_secs(5);

/// The time that a kernel has to end which was asked to.
const TERMINATE_WAIT: Duration = Duration::from_secs(2);

/// The time that a kernel has to end by itself, once its requests are closed.
const CLOSED_WAIT: Duration = Duration::from_millis(500);

/// Bytes that are kept of what is printed between two cells: the last ones.
const KEPT_BETWEEN: usize = 32 << 10;

/// Bytes read at once.
const CHUNK: usize = 64 << 10;

/// The handle of a kernel. Dropping all of them ends it.
#[derive(Debug, Clone)]
pub(crate) struct KernelHandle {
    pub(crate) cells: mpsc::Sender<CellRequest>,
    /// Lines for the interpreter.
    pub(crate) lines: mpsc::Sender<Vec<u8>>,
    pub(crate) end: KernelEnd,
}

/// A cell for the kernel's task.
pub(crate) type CellRequest = Box<Cell>;

/// Whether a kernel is gone, and why.
#[derive(Debug, Clone, Default)]
pub(crate) struct KernelEnd {
    why: Arc<Mutex<Option<String>>>,
    /// Fires to end it.
    pub(crate) wanted: CancellationToken,
    /// Fires to close its requests.
    pub(crate) closing: CancellationToken,
    /// Fires when nothing of it is left.
    pub(crate) gone: CancellationToken,
}

impl KernelEnd {
    /// Why it is gone, or is about to be: a clause.
    pub(crate) fn why(&self) -> Option<String> {
        self.why.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn say(&self, why: &str) {
        self.why.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| why.to_owned());
    }
}

/// A process whose interpreter has said that it takes cells.
pub(crate) struct Kernel {
    pub(crate) process: Process,
    pub(crate) records: Records,
    /// What is printed.
    pub(crate) printed: OutputPipe,
    pub(crate) lines: mpsc::Sender<Vec<u8>>,
    pub(crate) place: Place,
    pub(crate) end: KernelEnd,
    /// Idle time after which it ends; `None`: never.
    pub(crate) idle: Option<Duration>,
    /// The limit of its memory, for the clause about its end.
    pub(crate) memory_bytes: u64,
}

/// The records of a kernel, as lines.
pub(crate) struct Records {
    pub(crate) pipe: OutputPipe,
    splitter: LineSplitter,
    lines: Vec<Line>,
    buffer: Vec<u8>,
    /// How the kernel broke the protocol, behind the records before that.
    fault: Option<String>,
}

impl Records {
    pub(crate) fn new(pipe: OutputPipe) -> Self {
        let splitter = LineSplitter::new(MAX_RECORD);
        Self { pipe, splitter, lines: Vec::new(), buffer: vec![0; CHUNK], fault: None }
    }

    /// The records of the next piece; `None` at the end. Cancel safe.
    ///
    /// # Errors
    /// How the kernel broke the protocol.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Answer>>, String> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        // A pipe that cannot be read is at its end.
        let count = self.pipe.read(&mut self.buffer).await.unwrap_or(0);
        Ok((count > 0).then(|| self.parse(count)))
    }

    /// The records that are there without waiting: those of a kernel that has ended.
    fn rest(&mut self) -> Vec<Answer> {
        let mut answers = Vec::new();
        while let (None, Ok(count @ 1..)) = (&self.fault, self.pipe.try_read(&mut self.buffer)) {
            answers.extend(self.parse(count));
        }
        answers
    }

    fn parse(&mut self, count: usize) -> Vec<Answer> {
        self.splitter.push(&self.buffer[..count], &mut self.lines);
        let mut answers = Vec::new();
        for line in self.lines.drain(..) {
            let answer = match line {
                Line::Text(line) => Answer::parse(&line),
                Line::TooLong | Line::Refused(_) => {
                    Err(format!("a record of more than {} MiB", MAX_RECORD >> 20))
                }
            };
            match answer {
                Ok(answer) => answers.push(answer),
                Err(fault) => {
                    self.fault = Some(fault);
                    break;
                }
            }
        }
        answers
    }
}

/// What wakes a kernel that has nothing to do.
enum IdleNews {
    Cell(Option<CellRequest>),
    Printed(usize),
    Records(Result<Option<Vec<Answer>>, String>),
    Over(String),
}

/// What wakes a kernel while a cell runs.
enum BusyNews {
    Stop,
    Late,
    Exited,
    EndWanted,
    Records(Result<Option<Vec<Answer>>, String>),
    Printed(usize),
}

/// How far the stopping of a cell is.
enum Stopping {
    No,
    /// It was interrupted; at the time the kernel is asked to end.
    Interrupted(Instant),
    /// The kernel was asked to end; at the time it is killed.
    Terminated(Instant),
}

impl Kernel {
    /// Runs cells until the kernel ends, and everything that it started with it.
    pub(crate) async fn run(mut self, mut cells: mpsc::Receiver<CellRequest>) {
        let base = self.process.mark().await;
        self.place.works(false);
        let mut mark = base.clone();
        let (mut between, mut buffer) = (Vec::new(), vec![0; CHUNK]);
        let mut number = 0;
        let why = loop {
            let idle_until = self.idle.and_then(|idle| Instant::now().checked_add(idle));
            let cell = match self.idle_until_cell(&mut cells, idle_until, &mut between, &mut buffer).await {
                Ok(cell) => cell,
                Err(why) => break why,
            };
            if !self.place.works(true) {
                self.end.say(EVICTED);
                tell(&cell, CellNews::Ended(CellEnd::KernelGone(EVICTED.to_owned()))).await;
                break EVICTED.to_owned();
            }
            number += 1;
            let left = std::mem::take(&mut between);
            if !left.is_empty() {
                tell(&cell, CellNews::Text(left)).await;
            }
            match self.run_cell(&cell, number, (&base, &mark), &mut buffer).await {
                CellEnd::Done(done) => {
                    tell(&cell, CellNews::Ended(CellEnd::Done(done))).await;
                    drop(cell);
                    self.place.works(false);
                    // What a cell has left running is not that of the next.
                    mark = self.process.mark().await;
                }
                CellEnd::KernelGone(why) => {
                    self.end.say(&why);
                    tell(&cell, CellNews::Ended(CellEnd::KernelGone(why.clone()))).await;
                    break why;
                }
            }
        };
        self.end.say(&why);
        let Self { process, end, place, .. } = self;
        // The interpreter ends at the end of its requests.
        end.closing.cancel();
        drop(cells);
        if timeout(CLOSED_WAIT, process.wait()).await.is_err() {
            tracing::debug!("a kernel did not end by itself");
        }
        process.kill().await;
        drop(place);
        end.gone.cancel();
    }

    /// Waits for the next cell. Reads what is printed meanwhile, so that nothing that a cell has left running is held up.
    ///
    /// # Errors
    /// Why the kernel is to end.
    async fn idle_until_cell(
        &mut self,
        cells: &mut mpsc::Receiver<CellRequest>,
        until: Option<Instant>,
        between: &mut Vec<u8>,
        buffer: &mut [u8],
    ) -> Result<CellRequest, String> {
        let (mut printed_open, mut records_open) = (true, true);
        loop {
            let news = tokio::select! {
                biased;
                () = self.place.evicted.cancelled() => IdleNews::Over(EVICTED.to_owned()),
                () = self.end.wanted.cancelled() => IdleNews::Over("it was ended".to_owned()),
                status = self.process.wait() => IdleNews::Over(self.exit_text(status.code, status.signal)),
                cell = cells.recv() => IdleNews::Cell(cell),
                () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => {
                    let minutes = self.idle.unwrap_or_default().as_secs_f64() / 60.0;
                    IdleNews::Over(format!("it had nothing to do for {minutes:.3} minutes (setting eval.idleMs)").replace(".000 ", " "))
                }
                records = self.records.next(), if records_open => IdleNews::Records(records),
                count = self.printed.read(buffer), if printed_open => IdleNews::Printed(count.unwrap_or(0)),
            };
            match news {
                IdleNews::Over(why) => return Err(why),
                IdleNews::Cell(Some(cell)) => return Ok(cell),
                IdleNews::Cell(None) => return Err("its session has ended".to_owned()),
                IdleNews::Printed(0) => printed_open = false,
                IdleNews::Printed(count) => {
                    between.extend_from_slice(&buffer[..count]);
                    let surplus = between.len().saturating_sub(KEPT_BETWEEN);
                    between.drain(..surplus);
                }
                // What comes from a thread or timer that a cell has left is not for any call.
                IdleNews::Records(Ok(Some(_))) => {}
                IdleNews::Records(Ok(None)) => records_open = false,
                IdleNews::Records(Err(fault)) => return Err(format!("it broke the protocol: {fault}")),
            }
        }
    }

    async fn run_cell(
        &mut self,
        cell: &Cell,
        number: u64,
        (base, mark): (&ProcessMark, &ProcessMark),
        buffer: &mut [u8],
    ) -> CellEnd {
        let line = match (Request::Run { id: number, code: &cell.code, env: &cell.env }).line() {
            Ok(line) => line,
            Err(error) => return CellEnd::KernelGone(format!("the cell could not be sent: {error}")),
        };
        if self.lines.send(line).await.is_err() {
            let status = self.process.wait().await;
            return CellEnd::KernelGone(self.exit_text(status.code, status.signal));
        }
        let (mut printed_open, mut records_open) = (true, true);
        let mut stopping = Stopping::No;
        loop {
            let late = match stopping {
                Stopping::No => None,
                Stopping::Interrupted(at) | Stopping::Terminated(at) => Some(at),
            };
            let news = tokio::select! {
                biased;
                () = cell.stop.cancelled(), if late.is_none() => BusyNews::Stop,
                () = sleep_until(late.unwrap_or_else(Instant::now)), if late.is_some() => BusyNews::Late,
                () = self.end.wanted.cancelled() => BusyNews::EndWanted,
                _ = self.process.wait() => BusyNews::Exited,
                records = self.records.next(), if records_open => BusyNews::Records(records),
                count = self.printed.read(buffer), if printed_open => BusyNews::Printed(count.unwrap_or(0)),
            };
            match news {
                BusyNews::Stop => {
                    stopping = Stopping::Interrupted(Instant::now() + INTERRUPT_WAIT);
                    // Interrupted first: what waits for a process must not go on with its next line when that is killed.
                    self.process.interrupt(base).await;
                    if let Ok(line) = Request::Interrupt.line() {
                        // Where earlier lines wait, the runner reads none: it is asked to end then.
                        let _ = self.lines.try_send(line);
                    }
                    self.process.kill_newer(mark).await;
                }
                BusyNews::Late => match stopping {
                    Stopping::Interrupted(_) => {
                        stopping = Stopping::Terminated(Instant::now() + TERMINATE_WAIT);
                        self.process.terminate_all();
                    }
                    Stopping::No | Stopping::Terminated(_) => {
                        self.process.kill().await;
                        return CellEnd::KernelGone(
                            "its cell could not be interrupted, so it was killed".to_owned(),
                        );
                    }
                },
                BusyNews::EndWanted => return CellEnd::KernelGone("it was ended".to_owned()),
                BusyNews::Exited => {
                    // Whether the cell had begun is among them.
                    for answer in self.records.rest() {
                        self.take_answer(cell, answer).await;
                    }
                    self.drain(cell, buffer).await;
                    let status = self.process.wait().await;
                    let why = match stopping {
                        Stopping::No => self.exit_text(status.code, status.signal),
                        Stopping::Interrupted(_) | Stopping::Terminated(_) => {
                            "its cell was interrupted, and it ended".to_owned()
                        }
                    };
                    return CellEnd::KernelGone(why);
                }
                BusyNews::Printed(0) => printed_open = false,
                BusyNews::Printed(count) => tell(cell, CellNews::Text(buffer[..count].to_vec())).await,
                BusyNews::Records(Ok(None)) => records_open = false,
                BusyNews::Records(Err(fault)) => {
                    self.process.kill().await;
                    return CellEnd::KernelGone(format!("it broke the protocol, and was killed: {fault}"));
                }
                BusyNews::Records(Ok(Some(answers))) => {
                    for answer in answers {
                        if let Some(done) = self.take_answer(cell, answer).await {
                            self.drain(cell, buffer).await;
                            return CellEnd::Done(done);
                        }
                    }
                }
            }
        }
    }

    async fn take_answer(&mut self, cell: &Cell, answer: Answer) -> Option<crate::records::CellDone> {
        let news = match answer {
            Answer::Started => CellNews::Started,
            Answer::Image(image) => CellNews::Image(image),
            Answer::Json(value) => CellNews::Json(value),
            Answer::Call { number, name, arguments } => CellNews::Call { number, name, arguments },
            Answer::Done(done) => return Some(done),
            Answer::Ready | Answer::Unsupported(_) | Answer::Other => return None,
        };
        tell(cell, news).await;
        None
    }

    /// Reads what was printed before the cell's end: it is in the pipe by then. At most as much as a pipe holds a few times over, since
    /// something that the cell has left running may go on printing.
    async fn drain(&mut self, cell: &Cell, buffer: &mut [u8]) {
        const MOST: usize = 1 << 20;
        let mut total = 0;
        while let Ok(count @ 1..) = self.printed.try_read(buffer) {
            tell(cell, CellNews::Text(buffer[..count].to_vec())).await;
            total += count;
            if total > MOST {
                return;
            }
        }
    }

    /// How the interpreter ended: a clause.
    fn exit_text(&self, code: i32, signal: Option<i32>) -> String {
        if let Some(limit) = self.process.limit_reached() {
            return match limit.resource {
                LimitedResource::Memory if !limit.together && limit.limit == self.memory_bytes => {
                    format!(
                        "it used more than {} bytes of memory, and was killed (setting eval.maxMemoryBytes)",
                        limit.limit
                    )
                }
                _ => limit.to_string().replace("Command killed: ", "it was killed: "),
            };
        }
        match signal {
            Some(signal) => format!("signal {signal} ended it"),
            None => format!("it exited with code {code}"),
        }
    }
}

/// Why a kernel is gone that had to make room.
const EVICTED: &str = "it made room for the kernel of another session (setting eval.maxKernels)";

/// Tells the call what happens. Nobody may be there any more: the cell is stopped then, or ends by itself.
async fn tell(cell: &Cell, news: CellNews) {
    let _ = cell.news.send(news).await;
}
