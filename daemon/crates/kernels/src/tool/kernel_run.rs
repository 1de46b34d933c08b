//! A cell that an own kernel runs, from the kernel's start to the cell's end.

use std::time::Duration;

use agentd_agent::{ToolError, ToolProgress};
use agentd_protocol::tool::ToolResult;
use futures::stream::{FuturesUnordered, StreamExt as _};
use serde_json::{Map, Value, json};
use tokio::{
    select,
    sync::mpsc,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{options::EvalOptions, updates::Updates};
use crate::{
    arguments::EvalCall,
    cell::{Cell, CellEnd, CellNews, NEWS},
    kernel::KernelHandle,
    records::Request,
    report::{CallEnd, CellOutput},
    session::Slot,
    start::KernelTerms,
    tool_calls::CellToolCall,
};

/// How long an aborted call waits for the end of its cell: its loop waits no longer.
const ABORT_WAIT: Duration = Duration::from_millis(500);

/// The most calls of tools that a cell makes at a time.
const MAX_CALLS: usize = 64;

/// Clears who runs in a slot.
struct Running<'a>(&'a Slot);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.runs(None);
    }
}

/// One call.
pub(super) struct KernelRun<'a> {
    pub(super) options: &'a EvalOptions,
    pub(super) call: &'a EvalCall,
    pub(super) call_id: &'a str,
    pub(super) env: &'a Map<String, Value>,
    pub(super) cancel: &'a CancellationToken,
    pub(super) progress: &'a ToolProgress,
}

/// How an attempt to run the cell ended.
enum Attempt {
    Over(CallEnd),
    /// The kernel was gone before the cell had begun: why.
    NotBegun(String),
}

impl KernelRun<'_> {
    /// Runs the cell in the kernel of a slot.
    ///
    /// A kernel that is gone before the cell has begun is replaced, and the cell is sent once more: nothing of it can have happened. One that
    /// ends later is not: the cell may have had effects.
    pub(super) async fn in_slot(&self, slot: &Slot, terms: &KernelTerms) -> Result<ToolResult, ToolError> {
        let aborted = || ToolError("Cell aborted".to_owned());
        let mut kernel = self.cancel.run_until_cancelled(slot.kernel.lock()).await.ok_or_else(aborted)?;
        slot.runs(Some(self.call_id));
        let _running = Running(slot);
        if self.call.reset {
            kernel.end().await;
        }
        let since = Instant::now();
        let mut output = CellOutput::new(self.options.outputs.clone());
        let mut notices: Option<String> = None;
        for is_last in [false, true] {
            let ready = self.options.kernels.ready(&mut kernel, terms);
            let ready = self.cancel.run_until_cancelled(ready).await.ok_or_else(aborted)??;
            notices = notices.or(ready.notice);
            match self.attempt(&ready.handle, &mut output).await {
                Attempt::Over(end) => {
                    output.tail.finish().await;
                    return Ok(output.result(self.call, end, notices, since.elapsed()));
                }
                Attempt::NotBegun(why) if is_last => {
                    return Err(ToolError(format!(
                        "The {} kernel ended twice before the cell had begun: {why}. The cell was not run.",
                        self.call.language.title()
                    )));
                }
                Attempt::NotBegun(_) => {}
            }
        }
        Err(ToolError("The cell was not run.".to_owned()))
    }

    async fn attempt(&self, handle: &KernelHandle, output: &mut CellOutput) -> Attempt {
        let (to_call, mut news) = mpsc::channel(NEWS);
        let stop = CancellationToken::new();
        let cell =
            Cell { code: self.call.code.clone(), env: self.env.clone(), news: to_call, stop: stop.clone() };
        if handle.cells.send(Box::new(cell)).await.is_err() {
            return Attempt::NotBegun(handle.end.why().unwrap_or_else(|| "it ended".to_owned()));
        }
        let mut has_begun = false;
        let mut limit = TimeLimit::new(self.call.timeout);
        let (mut is_aborted, mut is_late) = (false, false);
        let mut give_up = Instant::now();
        let mut updates = Updates::new(self.progress);
        let mut calls = FuturesUnordered::new();
        let end = loop {
            select! {
                biased;
                () = self.cancel.cancelled(), if !is_aborted => {
                    is_aborted = true;
                    stop.cancel();
                    give_up = Instant::now() + ABORT_WAIT;
                }
                () = sleep_until(give_up), if is_aborted => break None,
                () = limit.reached(), if !is_late && !is_aborted => {
                    is_late = true;
                    stop.cancel();
                }
                Some((number, (result, is_error))) = calls.next(), if !calls.is_empty() => {
                    limit.goes_on(calls.is_empty());
                    self.tell_result(handle, number, &result, is_error, &stop).await;
                }
                happened = news.recv() => match happened {
                    None => break Some(CellEnd::KernelGone(handle.end.why().unwrap_or_else(|| "it ended".to_owned()))),
                    Some(CellNews::Started) => {
                        has_begun = true;
                        limit.begin();
                    }
                    Some(CellNews::Text(bytes)) => {
                        output.tail.push(&bytes).await;
                        updates.changed(output, self.call);
                    }
                    Some(CellNews::Image(image)) => output.image(image),
                    Some(CellNews::Json(value)) => output.json(value),
                    Some(CellNews::Call { number, name, arguments }) => {
                        if calls.len() < MAX_CALLS {
                            limit.pause();
                            calls.push(self.tool_call(number, name, arguments, &stop));
                        } else {
                            let refusal = ToolResult::text(format!("A cell makes at most {MAX_CALLS} calls at a time: wait for some of them."));
                            self.tell_result(handle, number, &refusal, true, &stop).await;
                        }
                    }
                    Some(CellNews::Ended(end)) => break Some(end),
                },
                () = sleep_until(updates.next), if updates.is_due => updates.send(output, self.call),
            }
        };
        if !calls.is_empty() {
            // The cell has not waited for them: they are stopped, and end with their results. A thread of the cell may wait for one.
            stop.cancel();
            let lines = handle.lines.clone();
            self.options.kernels.pool().spawn(async move {
                while let Some((number, (result, is_error))) = calls.next().await {
                    if let Some(line) = result_line(number, &result, is_error) {
                        // A kernel that is gone needs no results.
                        let _ = lines.send(line).await;
                    }
                }
            });
        }
        match end {
            _ if is_aborted => Attempt::Over(CallEnd::Aborted),
            None => Attempt::Over(CallEnd::Aborted),
            Some(CellEnd::KernelGone(why)) if is_late => {
                Attempt::Over(CallEnd::TimedOut { kernel_gone: Some(why) })
            }
            Some(CellEnd::KernelGone(why)) if !has_begun => Attempt::NotBegun(why),
            Some(CellEnd::KernelGone(why)) => Attempt::Over(CallEnd::KernelGone(why)),
            Some(CellEnd::Done(done)) if is_late && done.was_cancelled => {
                Attempt::Over(CallEnd::TimedOut { kernel_gone: None })
            }
            Some(CellEnd::Done(done)) => Attempt::Over(CallEnd::Done(done)),
        }
    }

    fn tool_call(
        &self,
        number: u64,
        name: String,
        arguments: Map<String, Value>,
        stop: &CancellationToken,
    ) -> impl Future<Output = (u64, (ToolResult, bool))> + Send + use<> {
        let call =
            CellToolCall { parent: self.call_id.to_owned(), name, arguments, cancel: stop.child_token() };
        let running = self.options.tools.call(call);
        async move { (number, running.await) }
    }

    /// Gives a cell the result of its call. Waits while the interpreter does not read, unless the cell is stopped.
    async fn tell_result(
        &self,
        handle: &KernelHandle,
        number: u64,
        result: &ToolResult,
        is_error: bool,
        stop: &CancellationToken,
    ) {
        if let Some(line) = result_line(number, result, is_error) {
            // A kernel that is gone needs no results.
            drop(stop.run_until_cancelled(handle.lines.send(line)).await);
        }
    }
}

/// The record of a result.
fn result_line(number: u64, result: &ToolResult, is_error: bool) -> Option<Vec<u8>> {
    let content = json!(result.content);
    let record =
        Request::Result { call: number, content: &content, details: result.details.as_ref(), is_error };
    record
        .line()
        .inspect_err(|error| tracing::error!(%error, "the result of a cell's call cannot be written"))
        .ok()
}

/// The time of a cell, which stands still while its tools work: those have limits of their own, and may wait for the user.
struct TimeLimit {
    limit: Option<Duration>,
    /// The moment that the limit is reached at.
    at: Option<Instant>,
    /// Since when it stands still.
    paused: Option<Instant>,
}

impl TimeLimit {
    fn new(limit: Option<Duration>) -> Self {
        Self { limit, at: None, paused: None }
    }

    fn begin(&mut self) {
        self.at = self.limit.and_then(|limit| Instant::now().checked_add(limit));
    }

    fn pause(&mut self) {
        self.paused.get_or_insert_with(Instant::now);
    }

    fn goes_on(&mut self, is_last: bool) {
        if is_last && let Some(since) = self.paused.take() {
            self.at = self.at.and_then(|at| at.checked_add(since.elapsed()));
        }
    }

    /// Waits until the limit is reached. Cancel safe.
    async fn reached(&self) {
        match (self.at, self.paused) {
            (Some(at), None) => sleep_until(at).await,
            _ => std::future::pending().await,
        }
    }
}
