//! Runs the tool calls of one answer: side by side, or one after the other.

mod outcome;
mod running;

use std::sync::Arc;

use agentd_protocol::message::ToolCall;
use tokio_util::sync::CancellationToken;

pub(crate) use self::outcome::CallBatch;
use self::{
    outcome::{ABORTED, CallOutcome, CallStop, emit_results, end_event, publish_end, start_event},
    running::{PreparedCall, RunningCalls, action, unfinished},
};
use crate::{
    ExecutionMode, Host, HostError, TurnSetup, hooks::GateDecision, in_flight, serve_in_flight_queries,
};

/// Runs `calls` and emits everything about them. Every call gets a result, also when `cancel` fires or the host stops the calls alone: a call
/// that then does not end within [`running::GRACE`] gets the result [`ABORTED`] and is given up.
///
/// # Errors
/// As [`Host::emit`]. Calls that still run are then cancelled and waited for, up to the same time.
pub(crate) async fn execute<H: Host>(
    host: &mut H,
    setup: &TurnSetup,
    calls: &[ToolCall],
    cancel: &CancellationToken,
) -> Result<CallBatch, HostError> {
    let mut stop = CallStop { run: cancel, calls: cancel.child_token(), stopped: Vec::new() };
    host.tools_begin(stop.calls.clone());
    let batch = run_calls(host, setup, calls, &mut stop).await?;
    host.tools_end(stop.stopped).await?;
    Ok(batch)
}

async fn run_calls<H: Host>(
    host: &mut H,
    setup: &TurnSetup,
    calls: &[ToolCall],
    stop: &mut CallStop<'_>,
) -> Result<CallBatch, HostError> {
    let one_by_one = setup.sequential_tools
        || calls.iter().any(|call| {
            setup
                .tools
                .get(&call.name)
                .is_some_and(|found| found.tool.execution() == ExecutionMode::Sequential)
        });
    if one_by_one {
        let mut batch = CallBatch { results: Vec::new(), terminate: true };
        for (index, call) in calls.iter().enumerate() {
            let done = run_all(host, setup, std::slice::from_ref(call), stop).await?;
            batch.results.extend(done.results);
            batch.terminate &= done.terminate;
            if done.terminate && setup.tools.get(&call.name).is_some_and(|found| found.tool.ends_run()) {
                let rest = refuse_all(host, &calls[index + 1..], |_| {
                    format!("Not run: {} ended the work.", call.name)
                });
                batch.results.extend(rest.await?.results);
                batch.terminate = true;
                break;
            }
        }
        return Ok(batch);
    }
    run_all(host, setup, calls, stop).await
}

/// Gives every call the failure `text` without running any: for answers that were cut off inside of their calls.
///
/// # Errors
/// As [`Host::emit`].
pub(crate) async fn refuse_all<H: Host>(
    host: &mut H,
    calls: &[ToolCall],
    text: impl Fn(&ToolCall) -> String,
) -> Result<CallBatch, HostError> {
    let mut outcomes = Vec::with_capacity(calls.len());
    for call in calls {
        host.emit(start_event(call)?).await?;
        let outcome = CallOutcome::failure(text(call));
        host.emit(end_event(call, &outcome)).await?;
        outcomes.push(outcome);
    }
    emit_results(host, calls, outcomes).await
}

async fn run_all<H: Host>(
    host: &mut H,
    setup: &TurnSetup,
    calls: &[ToolCall],
    stop: &mut CallStop<'_>,
) -> Result<CallBatch, HostError> {
    let mut outcomes: Vec<Option<CallOutcome>> = Vec::with_capacity(calls.len());
    let mut ready = Vec::new();
    for call in calls {
        host.emit(start_event(call)?).await?;
        let checked = if stop.calls.is_cancelled() {
            Err(Box::new(CallOutcome::failure(ABORTED)))
        } else {
            // A hook may take long.
            let begun = || Ok(in_flight::tools(unfinished(&calls[..=outcomes.len()], &outcomes, &[])));
            serve_in_flight_queries(host, prepare(setup, call, &stop.calls), begun).await?.and_then(
                |prepared| {
                    if stop.calls.is_cancelled() {
                        Err(Box::new(CallOutcome::failure(ABORTED)))
                    } else {
                        Ok(prepared)
                    }
                },
            )
        };
        match checked {
            Ok(prepared) => {
                if let Err(refusal) = host.admit_call(call).await {
                    let outcome = CallOutcome::failure(refusal);
                    publish_end(host, calls, call, &outcome).await?;
                    outcomes.push(Some(outcome));
                    continue;
                }
                ready.push((outcomes.len(), prepared));
                outcomes.push(None);
            }
            Err(outcome) => {
                publish_end(host, calls, call, &outcome).await?;
                outcomes.push(Some(*outcome));
            }
        }
    }
    if !ready.is_empty() {
        let begin: Vec<&ToolCall> = ready.iter().map(|(index, _)| &calls[*index]).collect();
        host.calls_begin(&begin).await?;
    }
    let running = RunningCalls::start(setup, calls, ready, &stop.calls, &host.images());
    running.finish(host, calls, &mut outcomes, stop).await?;
    let outcomes =
        outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(|| CallOutcome::failure(ABORTED)));
    emit_results(host, calls, outcomes.collect()).await
}

/// Finds the tool, coerces and checks the arguments, asks the hook.
async fn prepare(
    setup: &TurnSetup,
    call: &ToolCall,
    stop: &CancellationToken,
) -> Result<PreparedCall, Box<CallOutcome>> {
    let Some(found) = setup.tools.get(&call.name) else {
        return Err(refused(format!("Tool {} not found", call.name)));
    };
    if let Some(error) = &call.arguments_error {
        return Err(refused(format!("Invalid arguments for tool \"{}\": {error}", call.name)));
    }
    let arguments = match found.tool.prepare_remotely(&call.arguments) {
        Some(prepared) => {
            let prepared = stop.run_until_cancelled(prepared).await;
            prepared.unwrap_or_else(|| Err(ABORTED.to_owned())).map_err(refused)?
        }
        None => found.tool.prepare(call.arguments.clone()),
    };
    let checked = stop.run_until_cancelled(found.arguments.check_beside(&call.name, arguments)).await;
    let arguments = checked.unwrap_or_else(|| Err(ABORTED.to_owned())).map_err(refused)?;
    let asked = action(&*found.tool, call, &arguments, &setup.cwd, Some(&found.arguments));
    match setup.gate.before(&asked, stop).await {
        GateDecision::Free { arguments: changed } => {
            let arguments = changed.unwrap_or(arguments);
            Ok(PreparedCall { tool: Arc::clone(&found.tool), arguments })
        }
        GateDecision::Blocked { reason, terminate } => {
            let mut outcome = refused(reason);
            outcome.result.terminate = terminate.then_some(true);
            Err(outcome)
        }
        GateDecision::Stopped => Err(refused(ABORTED.to_owned())),
    }
}

fn refused(message: String) -> Box<CallOutcome> {
    Box::new(CallOutcome::failure(message))
}
