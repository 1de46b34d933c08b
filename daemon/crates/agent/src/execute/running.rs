//! Tool calls while they run side by side: starting them, publishing their progress and ends, giving up those that do not end.

use std::{
    collections::VecDeque,
    future::poll_fn,
    panic::AssertUnwindSafe,
    path::Path,
    pin::pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::{Duration, Instant},
};

use agentd_images::Images;
use agentd_protocol::{
    Json,
    event::{Event, ToolExecutionUpdate},
    message::ToolCall,
    tool::ToolResult,
};
use futures::FutureExt;
use serde_json::{Map, Value};
use tokio::{
    sync::{Notify, oneshot},
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::outcome::{ABORTED, CallOutcome, CallStop, publish_end, to_json};
use crate::{
    ArgumentSchema, Host, HostError, Invocation, Tool, ToolProgress, TurnSetup,
    hooks::{Action, HookGate, Requester},
    images, in_flight,
};

/// The time in which stopped calls have to end before they are given up: an abort is answered within a second.
pub(super) const GRACE: Duration = Duration::from_millis(750);

/// The partial results of one call that wait for slow subscribers. Beyond them only the newest is kept, since each partial result replaces the
/// ones before.
const MAX_WAITING_RESULTS: usize = 8;

/// Partial results of running calls that wait to be published.
#[derive(Default)]
pub(super) struct PartialResults {
    waiting: Mutex<VecDeque<(usize, ToolResult)>>,
    /// Whether some that were taken are not published yet. Changes under the lock of those that wait.
    is_publishing: AtomicBool,
    /// Fires when there are some.
    pub(super) arrived: Notify,
    /// Fires when all that were taken are published, or nothing is any more.
    published: Notify,
    /// Nothing is published any more.
    closed: AtomicBool,
    /// The calls that still run were given up.
    given_up: AtomicBool,
}

impl PartialResults {
    /// Adds a partial result of the call at `index`.
    pub(super) fn add(&self, index: usize, partial: ToolResult) {
        if self.closed.load(Ordering::Relaxed) {
            return;
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let newest = waiting.iter().filter(|(of, _)| *of == index).count();
        if newest >= MAX_WAITING_RESULTS
            && let Some(last) = waiting.iter_mut().rev().find(|(of, _)| *of == index)
        {
            last.1 = partial;
        } else {
            waiting.push_back((index, partial));
        }
        drop(waiting);
        self.arrived.notify_one();
    }

    /// Takes all of them, oldest first. They count as published with [`Self::all_published`].
    pub(super) fn take(&self) -> VecDeque<(usize, ToolResult)> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_publishing.store(true, Ordering::Relaxed);
        std::mem::take(&mut waiting)
    }

    /// Those that were taken are published.
    pub(super) fn all_published(&self) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_publishing.store(false, Ordering::Relaxed);
        drop(waiting);
        self.published.notify_waiters();
    }

    fn are_all_published(&self) -> bool {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let is_idle = waiting.is_empty() && !self.is_publishing.load(Ordering::Relaxed);
        is_idle || self.closed.load(Ordering::Relaxed)
    }

    /// Waits until none is left to be published. Cancel safe.
    async fn until_published(&self) {
        loop {
            let published = self.published.notified();
            if self.are_all_published() {
                return;
            }
            published.await;
        }
    }

    /// Drops these and all later ones: nothing can be published any more.
    fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.take();
        self.all_published();
    }

    /// The same: the calls that still run are given up.
    pub(super) fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
        self.close();
    }

    /// Whether the calls that still run were given up.
    pub(super) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }
}

/// A call that passed its checks.
pub(super) struct PreparedCall {
    pub(super) tool: Arc<dyn Tool>,
    pub(super) arguments: Value,
}

/// The calls of a batch that run side by side.
pub(super) struct RunningCalls {
    tasks: JoinSet<(usize, CallOutcome)>,
    /// For each task, the index of its call and the token that fires at its end.
    over: Vec<(usize, CancellationToken)>,
    cancel: CancellationToken,
    partials: Arc<PartialResults>,
}

impl RunningCalls {
    pub(super) fn start(
        setup: &TurnSetup,
        calls: &[ToolCall],
        ready: Vec<(usize, PreparedCall)>,
        cancel: &CancellationToken,
        images: &Images,
    ) -> Self {
        let partials = Arc::new(PartialResults::default());
        let cancel = cancel.child_token();
        let (mut tasks, mut over) = (JoinSet::new(), Vec::with_capacity(ready.len()));
        // A tool may join a queue when it is called, so calls are made in their order, whatever thread each runs on: each waits until the one
        // before it is made (or gone).
        let mut before: Option<oneshot::Receiver<()>> = None;
        for (index, prepared) in ready {
            let (shown, told) = (Arc::clone(&partials), Arc::clone(&partials));
            let invocation = Invocation {
                call_id: calls[index].id.clone(),
                arguments: prepared.arguments,
                cwd: setup.cwd.clone(),
                sees_images: setup.request.model.sees_images(),
                images: images.clone(),
                session_env: setup.session_env.clone(),
                environment: setup.environment.clone(),
                cancel: cancel.child_token(),
                progress: ToolProgress::new(move |partial| shown.add(index, partial)).with_published(
                    move || {
                        let partials = Arc::clone(&told);
                        Box::pin(async move { partials.until_published().await })
                    },
                ),
            };
            let (call, gate, partials) = (calls[index].clone(), setup.gate.clone(), Arc::clone(&partials));
            let (made, after) = oneshot::channel();
            let previous = before.replace(after);
            let ended = CancellationToken::new();
            over.push((index, ended.clone()));
            tasks.spawn(async move {
                let _ended = ended.drop_guard();
                if let Some(previous) = previous {
                    let _ = previous.await;
                }
                let outcome = invoke(&*prepared.tool, (&gate, &partials), &call, invocation, made).await;
                if partials.is_given_up() {
                    tracing::warn!(
                        tool = call.name,
                        call = call.id,
                        "a tool call has ended that was given up when it was aborted"
                    );
                }
                (index, outcome)
            });
        }
        Self { tasks, over, cancel, partials }
    }

    /// Publishes partial results and ends until every call has ended or was given up.
    pub(super) async fn finish<H: Host>(
        mut self,
        host: &mut H,
        calls: &[ToolCall],
        outcomes: &mut [Option<CallOutcome>],
        stop: &mut CallStop<'_>,
    ) -> Result<(), HostError> {
        let published = self.publish(host, calls, outcomes, stop).await;
        if published.is_err() {
            // Nothing can be published any more, but the calls still have to end.
            self.partials.close();
            self.cancel.cancel();
            let ends = async { while self.tasks.join_next().await.is_some() {} };
            if timeout(GRACE, ends).await.is_err() {
                self.give_up();
            }
        }
        published
    }

    async fn publish<H: Host>(
        &mut self,
        host: &mut H,
        calls: &[ToolCall],
        outcomes: &mut [Option<CallOutcome>],
        stop: &mut CallStop<'_>,
    ) -> Result<(), HostError> {
        // The last partial result of each call, for clients that attach meanwhile.
        let mut shown: Vec<Option<ToolResult>> = vec![None; calls.len()];
        let arguments: Vec<Json<Map<String, Value>>> =
            calls.iter().map(|call| to_json(call.arguments.clone())).collect::<Result<_, _>>()?;
        let stopped = stop.calls.clone();
        let mut grace_over = pin!(async move {
            stopped.cancelled().await;
            sleep(GRACE).await;
        });
        let mut grace_is_over = false;
        while !self.tasks.is_empty() {
            let ended = tokio::select! {
                // Ended calls come first.
                biased;
                ended = self.tasks.join_next() => ended,
                () = &mut grace_over, if !grace_is_over => {
                    grace_is_over = true;
                    None
                }
                () = self.partials.arrived.notified() => None,
                () = host.in_flight_query() => {
                    host.answer_in_flight_query(in_flight::tools(unfinished(calls, outcomes, &shown))).await?;
                    continue;
                }
            };
            if grace_is_over && ended.is_none() {
                return self.leave_behind(host, calls, outcomes, stop).await;
            }
            // Partial results of a call go out before its end.
            for (index, partial_result) in self.partials.take() {
                let call = &calls[index];
                shown[index] = Some(partial_result.clone());
                host.emit(Event::from(ToolExecutionUpdate {
                    tool_call_id: call.id.clone(),
                    tool_name: call.name.clone(),
                    args: arguments[index].clone(),
                    partial_result,
                    parent_tool_call_id: None,
                }))
                .await?;
            }
            self.partials.all_published();
            if let Some(Ok((index, outcome))) = ended {
                let outcome = stop.ended(&calls[index], outcome);
                publish_end(host, calls, &calls[index], &outcome).await?;
                outcomes[index] = Some(outcome);
                shown[index] = None;
            }
        }
        Ok(())
    }

    /// Gives [`ABORTED`] as the result of calls that were stopped and do not end.
    async fn leave_behind<H: Host>(
        &mut self,
        host: &mut H,
        calls: &[ToolCall],
        outcomes: &mut [Option<CallOutcome>],
        stop: &mut CallStop<'_>,
    ) -> Result<(), HostError> {
        for (index, over) in self.give_up() {
            let call = &calls[index];
            if outcomes[index].is_some() {
                continue;
            }
            tracing::warn!(
                tool = call.name,
                call = call.id,
                "a tool call does not end though it was aborted"
            );
            host.call_survives(call, over);
            let outcome = stop.survived(call);
            publish_end(host, calls, call, &outcome).await?;
            outcomes[index] = Some(outcome);
        }
        Ok(())
    }

    /// Detaches all tasks; what they report from now on is dropped.
    fn give_up(&mut self) -> Vec<(usize, CancellationToken)> {
        self.partials.give_up();
        self.tasks.detach_all();
        std::mem::take(&mut self.over)
    }
}

/// Runs one call to its end; a panic becomes a failure like any other.
async fn invoke(
    tool: &dyn Tool,
    (gate, partials): (&HookGate, &PartialResults),
    call: &ToolCall,
    invocation: Invocation,
    made: oneshot::Sender<()>,
) -> CallOutcome {
    let started = Instant::now();
    let (images, stop) = (invocation.images.clone(), invocation.cancel.clone());
    let asked = (!gate.is_open()).then(|| (invocation.arguments.clone(), invocation.cwd.clone()));
    let execution = async {
        let mut work = tool.execute(invocation);
        // A tool that hands its calls on gets them in their order, too: each takes its first step before the next one does.
        let begun = poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await;
        // No call waits behind the last one.
        let _ = made.send(());
        match begun {
            Poll::Ready(result) => result,
            Poll::Pending => work.await,
        }
    };
    let executed = AssertUnwindSafe(execution).catch_unwind().await;
    let duration_ms = Some(rounded_ms(started.elapsed()));
    let (result, failed) = match executed {
        Ok(Ok(result)) => {
            let failed = result.is_error == Some(true);
            (result, failed)
        }
        Ok(Err(error)) => (ToolResult::failure(error.0), true),
        Err(_) => {
            tracing::error!(tool = call.name, "a tool panicked");
            (ToolResult::failure(format!("The tool {} failed unexpectedly.", call.name)), true)
        }
    };
    let Some((arguments, cwd)) = asked else {
        let result = if tool.prepares_images() { result } else { images::of_result(result, &images).await };
        return CallOutcome { result, failed, duration_ms };
    };
    // Hooks see the result after clients and extensions have seen what came before it.
    partials.until_published().await;
    match gate.after(&action(tool, call, &arguments, &cwd, None), result, failed, &stop).await {
        // A hook may have added some, or put others in their place.
        Some(Ok((result, failed))) => {
            CallOutcome { result: images::of_result(result, &images).await, failed, duration_ms }
        }
        Some(Err(message)) => CallOutcome { duration_ms, ..CallOutcome::failure(message) },
        None => CallOutcome { duration_ms, ..CallOutcome::failure(ABORTED) },
    }
}

fn rounded_ms(duration: Duration) -> u64 {
    u64::try_from((duration.as_micros() + 500) / 1000).unwrap_or(u64::MAX)
}

/// The calls without an outcome, each with its last partial result.
pub(super) fn unfinished<'a>(
    calls: &'a [ToolCall],
    outcomes: &'a [Option<CallOutcome>],
    shown: &'a [Option<ToolResult>],
) -> impl Iterator<Item = (&'a ToolCall, Option<&'a ToolResult>)> {
    let is_running = |index: &usize| !matches!(outcomes.get(*index), Some(Some(_)));
    (0..calls.len())
        .filter(is_running)
        .map(|index| (&calls[index], shown.get(index).and_then(Option::as_ref)))
}

/// A call as hooks see it.
pub(super) fn action<'a>(
    tool: &dyn Tool,
    call: &'a ToolCall,
    arguments: &'a Value,
    cwd: &'a Path,
    schema: Option<&'a ArgumentSchema>,
) -> Action<'a> {
    let by = Requester::Model { call_id: &call.id };
    let (is_trusted_read, declares_reading) = (tool.is_trusted_read(), tool.declares_reading());
    Action { by, tool: &call.name, arguments, cwd, is_trusted_read, declares_reading, schema, must_ask: None }
}
