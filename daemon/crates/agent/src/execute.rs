//! Runs the tool calls of one answer.

mod news;
mod stop;

use std::{
    panic::AssertUnwindSafe,
    path::Path,
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use agentd_images::Images;
use agentd_protocol::{
    Json,
    event::{Event, MessageEnd, MessageStart, ToolExecutionEnd, ToolExecutionStart, ToolExecutionUpdate},
    message::{Message, ToolCall, ToolResultMessage},
    tool::ToolResult,
};
use futures::FutureExt;
use serde_json::{Map, Value};
use tokio::{
    sync::oneshot,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use self::{news::News, stop::Stop};
use crate::{
    ExecutionMode, Host, HostError, Invocation, Tool, ToolProgress, TurnSetup,
    hooks::{Action, GateDecision, HookGate, Requester},
    images, in_flight, serve_in_flight_queries,
};

/// The result of a call that was never started because the run was aborted, or that was stopped alone.
const ABORTED: &str = "Operation aborted";

/// How long calls that were stopped have to end before they are given up: an abort is answered within a second.
const GRACE: Duration = Duration::from_millis(750);

/// What became of the calls of one answer.
pub(crate) struct Batch {
    /// The result messages in the order of the calls.
    pub(crate) results: Vec<Json<Message>>,
    /// Whether every result says that the run may end.
    pub(crate) terminate: bool,
}

/// Runs `calls` and emits everything about them. Every call gets a result, also when `cancel` fires, or the host stops
/// the calls alone: one that does not end then within [`GRACE`] gets its result without it, and is left to itself.
///
/// # Errors
/// As [`Host::emit`]. Calls that still run are then cancelled and waited for as long.
pub(crate) async fn execute<H: Host>(
    host: &mut H,
    setup: &TurnSetup,
    calls: &[ToolCall],
    cancel: &CancellationToken,
) -> Result<Batch, HostError> {
    let mut stop = Stop { run: cancel, calls: cancel.child_token(), stopped: Vec::new() };
    host.tools_begin(stop.calls.clone());
    let batch = run_calls(host, setup, calls, &mut stop).await?;
    host.tools_end(stop.stopped).await?;
    Ok(batch)
}

async fn run_calls<H: Host>(
    host: &mut H,
    setup: &TurnSetup,
    calls: &[ToolCall],
    stop: &mut Stop<'_>,
) -> Result<Batch, HostError> {
    let one_by_one = setup.sequential_tools
        || calls.iter().any(|call| {
            setup
                .tools
                .get(&call.name)
                .is_some_and(|found| found.tool.execution() == ExecutionMode::Sequential)
        });
    if one_by_one {
        let mut batch = Batch { results: Vec::new(), terminate: true };
        for call in calls {
            let done = run_all(host, setup, std::slice::from_ref(call), stop).await?;
            batch.results.extend(done.results);
            batch.terminate &= done.terminate;
        }
        return Ok(batch);
    }
    run_all(host, setup, calls, stop).await
}

/// Answers every call with `text` without running any: for answers that were cut off inside of the calls.
///
/// # Errors
/// As [`Host::emit`].
pub(crate) async fn refuse_all<H: Host>(
    host: &mut H,
    calls: &[ToolCall],
    text: impl Fn(&ToolCall) -> String,
) -> Result<Batch, HostError> {
    let mut outcomes = Vec::with_capacity(calls.len());
    for call in calls {
        host.emit(start_event(call)?).await?;
        let outcome = Outcome::failure(text(call));
        host.emit(end_event(call, &outcome)).await?;
        outcomes.push(outcome);
    }
    emit_results(host, calls, outcomes).await
}

/// What became of one call.
struct Outcome {
    result: ToolResult,
    failed: bool,
    duration_ms: Option<u64>,
}

impl Outcome {
    fn failure(message: impl Into<String>) -> Self {
        Self { result: ToolResult::failure(message), failed: true, duration_ms: None }
    }
}

/// A call that passed its checks.
struct Prepared {
    tool: Arc<dyn Tool>,
    arguments: Value,
}

async fn run_all<H: Host>(
    host: &mut H,
    setup: &TurnSetup,
    calls: &[ToolCall],
    stop: &mut Stop<'_>,
) -> Result<Batch, HostError> {
    let mut outcomes: Vec<Option<Outcome>> = Vec::with_capacity(calls.len());
    let mut ready = Vec::new();
    for call in calls {
        host.emit(start_event(call)?).await?;
        let checked = if stop.calls.is_cancelled() {
            Err(Box::new(Outcome::failure(ABORTED)))
        } else {
            // A hook may take its time.
            let begun = || Ok(in_flight::tools(running(&calls[..=outcomes.len()], &outcomes, &[])));
            serve_in_flight_queries(host, prepare(setup, call, &stop.calls), begun).await?.and_then(
                |prepared| {
                    if stop.calls.is_cancelled() {
                        Err(Box::new(Outcome::failure(ABORTED)))
                    } else {
                        Ok(prepared)
                    }
                },
            )
        };
        match checked {
            Ok(prepared) => {
                ready.push((outcomes.len(), prepared));
                outcomes.push(None);
            }
            Err(outcome) => {
                tell_ended(host, calls, call, &outcome).await?;
                outcomes.push(Some(*outcome));
            }
        }
    }
    if !ready.is_empty() {
        let begin: Vec<&ToolCall> = ready.iter().map(|(index, _)| &calls[*index]).collect();
        host.calls_begin(&begin).await?;
    }
    let running = Running::start(setup, calls, ready, &stop.calls, &host.images());
    running.finish(host, calls, &mut outcomes, stop).await?;
    let outcomes = outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(|| Outcome::failure(ABORTED)));
    emit_results(host, calls, outcomes.collect()).await
}

/// The calls that have no outcome yet, with what each showed last.
fn running<'a>(
    calls: &'a [ToolCall],
    outcomes: &'a [Option<Outcome>],
    shown: &'a [Option<ToolResult>],
) -> impl Iterator<Item = (&'a ToolCall, Option<&'a ToolResult>)> {
    let is_running = |index: &usize| !matches!(outcomes.get(*index), Some(Some(_)));
    (0..calls.len())
        .filter(is_running)
        .map(|index| (&calls[index], shown.get(index).and_then(Option::as_ref)))
}

/// Finds the tool, mends and checks the arguments, asks the hook.
async fn prepare(
    setup: &TurnSetup,
    call: &ToolCall,
    stop: &CancellationToken,
) -> Result<Prepared, Box<Outcome>> {
    let Some(found) = setup.tools.get(&call.name) else {
        return Err(refused(format!("Tool {} not found", call.name)));
    };
    if let Some(error) = &call.arguments_error {
        return Err(refused(format!("Invalid arguments for tool \"{}\": {error}", call.name)));
    }
    let arguments = found.tool.prepare(call.arguments.clone());
    let checked = stop.run_until_cancelled(found.arguments.check_beside(&call.name, arguments)).await;
    let arguments = checked.unwrap_or_else(|| Err(ABORTED.to_owned())).map_err(refused)?;
    match setup.gate.before(&action(call, &arguments, &setup.cwd), stop).await {
        GateDecision::Free => Ok(Prepared { tool: Arc::clone(&found.tool), arguments }),
        GateDecision::Blocked { reason, terminate } => {
            let mut outcome = refused(reason);
            outcome.result.terminate = terminate.then_some(true);
            Err(outcome)
        }
        GateDecision::Stopped => Err(refused(ABORTED.to_owned())),
    }
}

/// A call, for hooks.
fn action<'a>(call: &'a ToolCall, arguments: &'a Value, cwd: &'a Path) -> Action<'a> {
    Action { by: Requester::Model { call_id: &call.id }, tool: &call.name, arguments, cwd }
}

fn refused(message: String) -> Box<Outcome> {
    Box::new(Outcome::failure(message))
}

/// The calls of a batch that run, side by side.
struct Running {
    tasks: JoinSet<(usize, Outcome)>,
    /// For each task, which call it is, and what fires when it is over.
    over: Vec<(usize, CancellationToken)>,
    cancel: CancellationToken,
    news: Arc<News>,
}

impl Running {
    fn start(
        setup: &TurnSetup,
        calls: &[ToolCall],
        ready: Vec<(usize, Prepared)>,
        cancel: &CancellationToken,
        images: &Images,
    ) -> Self {
        let news = Arc::new(News::default());
        let cancel = cancel.child_token();
        let (mut tasks, mut over) = (JoinSet::new(), Vec::with_capacity(ready.len()));
        // A tool may take its place in a queue when it is called: calls are made in their order, whatever thread each
        // runs on. Each call waits for the one before it to be made (or to be gone).
        let mut before: Option<oneshot::Receiver<()>> = None;
        for (index, prepared) in ready {
            let shown = Arc::clone(&news);
            let invocation = Invocation {
                call_id: calls[index].id.clone(),
                arguments: prepared.arguments,
                cwd: setup.cwd.clone(),
                sees_images: setup.request.model.sees_images(),
                images: images.clone(),
                session_env: setup.session_env.clone(),
                environment: setup.environment.clone(),
                cancel: cancel.child_token(),
                progress: ToolProgress::new(move |partial| shown.add(index, partial)),
            };
            let (call, gate, news) = (calls[index].clone(), setup.gate.clone(), Arc::clone(&news));
            let (made, after) = oneshot::channel();
            let previous = before.replace(after);
            let ended = CancellationToken::new();
            over.push((index, ended.clone()));
            tasks.spawn(async move {
                let _ended = ended.drop_guard();
                if let Some(previous) = previous {
                    let _ = previous.await;
                }
                let outcome = invoke(&*prepared.tool, &gate, &call, invocation, made).await;
                if news.is_given_up() {
                    tracing::warn!(
                        tool = call.name,
                        call = call.id,
                        "a tool call has ended that was given up when it was aborted"
                    );
                }
                (index, outcome)
            });
        }
        Self { tasks, over, cancel, news }
    }

    /// Publishes news and ends as they come, until every call has ended or was given up.
    async fn finish<H: Host>(
        mut self,
        host: &mut H,
        calls: &[ToolCall],
        outcomes: &mut [Option<Outcome>],
        stop: &mut Stop<'_>,
    ) -> Result<(), HostError> {
        let published = self.publish(host, calls, outcomes, stop).await;
        if published.is_err() {
            // Nobody can be told any more, but nothing that was started may stay behind.
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
        outcomes: &mut [Option<Outcome>],
        stop: &mut Stop<'_>,
    ) -> Result<(), HostError> {
        // The last news of each call, for those who join meanwhile.
        let mut shown: Vec<Option<ToolResult>> = vec![None; calls.len()];
        let arguments: Vec<Json<Map<String, Value>>> =
            calls.iter().map(|call| to_json(call.arguments.clone())).collect::<Result<_, _>>()?;
        let stopped = stop.calls.clone();
        let mut overdue = pin!(async move {
            stopped.cancelled().await;
            sleep(GRACE).await;
        });
        let mut is_overdue = false;
        while !self.tasks.is_empty() {
            let ended = tokio::select! {
                // What has ended by now is taken first.
                biased;
                ended = self.tasks.join_next() => ended,
                () = &mut overdue, if !is_overdue => {
                    is_overdue = true;
                    None
                }
                () = self.news.arrived.notified() => None,
                () = host.in_flight_query() => {
                    host.answer_in_flight_query(in_flight::tools(running(calls, outcomes, &shown))).await?;
                    continue;
                }
            };
            if is_overdue && ended.is_none() {
                return self.leave_behind(host, calls, outcomes, stop).await;
            }
            // What a call said before it ended goes out before its end.
            for (index, partial_result) in self.news.take() {
                let call = &calls[index];
                shown[index] = Some(partial_result.clone());
                host.emit(Event::from(ToolExecutionUpdate {
                    tool_call_id: call.id.clone(),
                    tool_name: call.name.clone(),
                    args: arguments[index].clone(),
                    partial_result,
                }))
                .await?;
            }
            if let Some(Ok((index, outcome))) = ended {
                let outcome = stop.ended(&calls[index], outcome);
                tell_ended(host, calls, &calls[index], &outcome).await?;
                outcomes[index] = Some(outcome);
                shown[index] = None;
            }
        }
        Ok(())
    }

    /// Gives the calls their results that were stopped and do not end.
    async fn leave_behind<H: Host>(
        &mut self,
        host: &mut H,
        calls: &[ToolCall],
        outcomes: &mut [Option<Outcome>],
        stop: &mut Stop<'_>,
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
            tell_ended(host, calls, call, &outcome).await?;
            outcomes[index] = Some(outcome);
        }
        Ok(())
    }

    /// Lets all tasks go on by themselves; what they still say is not heard.
    fn give_up(&mut self) -> Vec<(usize, CancellationToken)> {
        self.news.give_up();
        self.tasks.detach_all();
        std::mem::take(&mut self.over)
    }
}

/// Runs one call to its end; a panic becomes a failure like any other.
async fn invoke(
    tool: &dyn Tool,
    gate: &HookGate,
    call: &ToolCall,
    invocation: Invocation,
    made: oneshot::Sender<()>,
) -> Outcome {
    let started = Instant::now();
    let (images, stop) = (invocation.images.clone(), invocation.cancel.clone());
    let asked = (!gate.is_open()).then(|| (invocation.arguments.clone(), invocation.cwd.clone()));
    let execution = async {
        let work = tool.execute(invocation);
        // Nobody waits behind the last call.
        let _ = made.send(());
        work.await
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
    let result = if tool.prepares_images() { result } else { images::of_result(result, &images).await };
    let Some((arguments, cwd)) = asked else { return Outcome { result, failed, duration_ms } };
    match gate.after(&action(call, &arguments, &cwd), result, failed, &stop).await {
        Some(Ok((result, failed))) => Outcome { result, failed, duration_ms },
        Some(Err(message)) => Outcome { duration_ms, ..Outcome::failure(message) },
        None => Outcome { duration_ms, ..Outcome::failure(ABORTED) },
    }
}

fn rounded_ms(duration: Duration) -> u64 {
    u64::try_from((duration.as_micros() + 500) / 1000).unwrap_or(u64::MAX)
}

fn to_json<T: serde::Serialize>(value: T) -> Result<Json<T>, HostError> {
    Json::new(value).map_err(|error| HostError::NotStored(error.to_string()))
}

fn start_event(call: &ToolCall) -> Result<Event, HostError> {
    Ok(Event::from(ToolExecutionStart {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        args: to_json(call.arguments.clone())?,
    }))
}

fn end_event(call: &ToolCall, outcome: &Outcome) -> Event {
    Event::from(ToolExecutionEnd {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        result: outcome.result.clone(),
        is_error: outcome.failed,
        duration_ms: outcome.duration_ms,
    })
}

/// Publishes the end of one of `calls`. Where its result waits for those of others, the host may want to keep it.
async fn tell_ended<H: Host>(
    host: &mut H,
    calls: &[ToolCall],
    call: &ToolCall,
    outcome: &Outcome,
) -> Result<(), HostError> {
    if calls.len() > 1 {
        let Outcome { result, failed, duration_ms } = outcome;
        let result = Outcome { result: result.clone(), failed: *failed, duration_ms: *duration_ms };
        host.call_ended(result_message(call, result, host.now_ms())).await;
    }
    host.emit(end_event(call, outcome)).await
}

fn result_message(call: &ToolCall, outcome: Outcome, timestamp: i64) -> ToolResultMessage {
    ToolResultMessage {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        content: outcome.result.content,
        details: outcome.result.details,
        usage: outcome.result.usage,
        is_error: outcome.failed,
        duration_ms: outcome.duration_ms,
        timestamp,
    }
}

/// Emits the result messages in the order of the calls.
async fn emit_results<H: Host>(
    host: &mut H,
    calls: &[ToolCall],
    outcomes: Vec<Outcome>,
) -> Result<Batch, HostError> {
    let terminate = outcomes.iter().all(|outcome| outcome.result.terminate == Some(true));
    let mut results = Vec::with_capacity(calls.len());
    for (call, outcome) in calls.iter().zip(outcomes) {
        let message = to_json(Message::ToolResult(result_message(call, outcome, host.now_ms())))?;
        host.emit(MessageStart { message: message.clone() }.into()).await?;
        host.emit(MessageEnd { message: message.clone() }.into()).await?;
        results.push(message);
    }
    Ok(Batch { results, terminate })
}
