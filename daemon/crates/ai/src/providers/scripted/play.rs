//! Plays a step of a script as deltas.

use std::path::Path;

use agentd_protocol::message::{StopReason, Usage};
use async_stream::stream;
use futures::Stream;
use tokio_util::sync::CancellationToken;

use super::{
    cache::with_output,
    pace::{Cutter, Pace},
    script::{Call, Chunks, Fail, ScriptAction, ScriptStep, ScriptedFailureKind, Stop, Tokens},
};
use crate::{
    BlockKind, BlockSeal, Delta,
    failure::{Failure, FailureKind, Refusal, classify_message},
};

/// The context of an answer.
pub(super) struct Setting {
    /// The folder of the script, which paths in it are relative to.
    pub(super) folder: std::path::PathBuf,
    /// The provider's name.
    pub(super) provider: String,
    /// The number of tool calls in the transcript, from which generated ids continue.
    pub(super) calls: usize,
    /// Cuts texts that are given whole.
    pub(super) cutter: Option<Cutter>,
    /// The speed of deltas; `None` for no delay.
    pub(super) tokens_per_second: Option<f64>,
    /// The counted input; `None` if the step gives the token counts.
    pub(super) usage: Option<Usage>,
}

/// The deltas of a step, from `Started` to the end.
pub(super) fn deltas(
    step: &ScriptStep,
    mut setting: Setting,
    cancel: CancellationToken,
) -> impl Stream<Item = Delta> + use<> {
    // Copies the step into owned parts first, since the stream outlives the script.
    let parts: Vec<Part> = parts(step, &mut setting);
    let is_told = step.emit.iter().any(|action| matches!(action, ScriptAction::Usage(_)));
    let counted = setting.usage.filter(|_| !is_told);
    stream! {
        yield Delta::Started;
        if let Some(usage) = counted.clone() {
            yield Delta::Usage(usage);
        }
        let mut pace = setting.tokens_per_second.map(Pace::new);
        let mut chars = 0;
        for part in parts {
            let waited = match &part {
                _ if cancel.is_cancelled() => Err(Failure::aborted()),
                Part::WaitForFile(path) => {
                    let waited = wait_for_file(path, &cancel).await;
                    if let Some(pace) = &mut pace {
                        pace.reset();
                    }
                    waited
                }
                Part::Hang => {
                    cancel.cancelled().await;
                    Err(Failure::aborted())
                }
                Part::Delta(Delta::Extend { delta, .. }) => {
                    let waited = match &mut pace {
                        Some(pace) => pace.wait(delta, &cancel).await,
                        None => Ok(()),
                    };
                    chars += if waited.is_ok() { delta.chars().count() } else { 0 };
                    waited
                }
                Part::Delta(_) => Ok(()),
            };
            let is_last = waited.is_err()
                || matches!(&part, Part::Delta(Delta::Done { .. } | Delta::Failed { .. }));
            if let Some(usage) = counted.as_ref().filter(|_| is_last) {
                yield Delta::Usage(with_output(usage, chars));
            }
            if let Err(failure) = waited {
                yield Delta::Failed { failure, raw_stop_reason: None };
                return;
            }
            if let Part::Delta(delta) = part {
                yield delta;
                if is_last {
                    return;
                }
            }
        }
    }
}

/// One event of an answer. The last one is a `Done` or a `Failed`.
enum Part {
    Delta(Delta),
    WaitForFile(std::path::PathBuf),
    Hang,
}

fn parts(step: &ScriptStep, setting: &mut Setting) -> Vec<Part> {
    let mut cutter = setting.cutter.take();
    let mut parts = Vec::new();
    let mut blocks = 0;
    let mut calls = 0;
    let mut refusal = String::new();
    let mut block = |kind: BlockKind, chunks: &Chunks| {
        let index = blocks;
        blocks += 1;
        let open = Delta::Open { index, kind };
        let pieces = match (chunks, &mut cutter) {
            (Chunks::Whole(text), Some(cutter)) => cutter.cut(text),
            _ => chunks.pieces().to_vec(),
        };
        let extend = pieces.into_iter().map(|delta| Delta::Extend { index, delta });
        let seal = Delta::Seal { index, seal: BlockSeal::default() };
        std::iter::once(open).chain(extend).chain([seal]).map(Part::Delta).collect::<Vec<_>>()
    };
    for action in &step.emit {
        match action {
            ScriptAction::Text(chunks) => parts.extend(block(BlockKind::Text, chunks)),
            ScriptAction::Refusal(chunks) => {
                chunks.pieces().iter().for_each(|piece| refusal.push_str(piece));
                parts.extend(block(BlockKind::Text, chunks));
            }
            ScriptAction::Thinking(chunks) => parts.extend(block(BlockKind::Thinking, chunks)),
            ScriptAction::ToolCall(call) => {
                calls += 1;
                let made_up = || format!("call_{}", setting.calls + calls);
                let kind = BlockKind::ToolCall {
                    id: call.id.clone().unwrap_or_else(made_up),
                    name: call.name.clone(),
                };
                parts.extend(block(kind, &arguments(call)));
            }
            ScriptAction::Usage(tokens) => parts.push(Part::Delta(Delta::Usage(usage(*tokens)))),
            ScriptAction::ResponseId(id) => parts.push(Part::Delta(Delta::ResponseId(id.clone()))),
            ScriptAction::WaitForFile(path) => parts.push(Part::WaitForFile(setting.folder.join(path))),
            ScriptAction::Hang(true) => parts.push(Part::Hang),
            ScriptAction::Hang(false) => {}
            ScriptAction::Stop(stop) => parts.push(Part::Delta(end(*stop, &refusal))),
            ScriptAction::Fail(fail) => parts.push(Part::Delta(failed(fail, &setting.provider))),
        }
    }
    let stop = if calls > 0 { Stop::ToolUse } else { Stop::Done };
    parts.push(Part::Delta(end(stop, &refusal)));
    parts
}

fn arguments(call: &Call) -> Chunks {
    match &call.arguments_text {
        Some(text) => text.clone(),
        None => Chunks::Whole(serde_json::Value::Object(call.arguments.clone()).to_string()),
    }
}

fn usage(tokens: Tokens) -> Usage {
    let Tokens { input, output, cache_read, cache_write, reasoning } = tokens;
    Usage {
        input,
        output,
        cache_read,
        cache_write,
        reasoning: Some(reasoning),
        total_tokens: input + output + cache_read + cache_write,
        ..Usage::default()
    }
}

/// The end of an answer that may be a refusal, in these words.
fn end(stop: Stop, refusal: &str) -> Delta {
    let (stop_reason, raw) = match stop {
        Stop::Done => (StopReason::Stop, "stop"),
        Stop::Length => (StopReason::Length, "length"),
        Stop::ToolUse => (StopReason::ToolUse, "tool_calls"),
    };
    let raw_stop_reason = Some(raw.to_owned());
    match Refusal::failure_saying(refusal) {
        Some(failure) => Delta::Failed { failure, raw_stop_reason },
        None => Delta::Done { stop_reason, raw_stop_reason },
    }
}

fn failed(fail: &Fail, provider: &str) -> Delta {
    let kind = match fail.kind {
        Some(ScriptedFailureKind::Retryable) => FailureKind::Retryable,
        Some(ScriptedFailureKind::Overflow) => FailureKind::ContextOverflow,
        Some(ScriptedFailureKind::Auth) => FailureKind::Auth,
        Some(ScriptedFailureKind::InvalidRequest) => FailureKind::InvalidRequest,
        Some(ScriptedFailureKind::ModelRefusal) => FailureKind::ModelRefusal,
        Some(ScriptedFailureKind::Fatal) => FailureKind::Fatal,
        None => classify_message(provider, &fail.message),
    };
    Delta::Failed { failure: Failure::new(kind, fail.message.clone()), raw_stop_reason: None }
}

/// Waits until a process has opened the named pipe at `path` for writing, and written to it or closed it.
///
/// A pipe needs no polling, works between processes, and the wait can be aborted at any time.
#[cfg(unix)]
async fn wait_for_file(path: &Path, cancel: &CancellationToken) -> Result<(), Failure> {
    use tokio::net::unix::pipe;

    let cannot = |error: std::io::Error| {
        let message = format!(
            "The script waits for {}, which cannot be opened as a named pipe ({error}). Make it with mkfifo before \
             the request.",
            path.display()
        );
        Failure::new(FailureKind::Fatal, message)
    };
    let opened = {
        let path = path.to_owned();
        tokio::task::spawn_blocking(move || pipe::OpenOptions::new().open_receiver(path)).await
    };
    let opened = opened.map_err(|error| cannot(std::io::Error::other(error)))?;
    let receiver = opened.map_err(cannot)?;
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(Failure::aborted()),
        ready = receiver.readable() => ready.map_err(cannot),
    }
}

#[cfg(not(unix))]
async fn wait_for_file(path: &Path, _cancel: &CancellationToken) -> Result<(), Failure> {
    let message =
        format!("The script waits for {}: this platform has no named pipes in folders.", path.display());
    Err(Failure::new(FailureKind::Fatal, message))
}
