//! Says what a step says.

use std::path::Path;

use agentd_protocol::message::{StopReason, Usage};
use async_stream::stream;
use futures::Stream;
use tokio_util::sync::CancellationToken;

use super::script::{Action, Call, Chunks, Fail, Kind, Step, Stop, Tokens};
use crate::{
    BlockKind, BlockSeal, Delta,
    failure::{Failure, FailureKind, classify_message},
};

/// Where an answer stands.
pub(super) struct Setting {
    /// The folder of the script, which paths in it are relative to.
    pub(super) folder: std::path::PathBuf,
    /// The provider's name.
    pub(super) provider: String,
    /// How many tool calls the transcript holds: ids are made up from here on.
    pub(super) calls: usize,
}

/// The deltas of a step, from `Started` to the end.
pub(super) fn deltas(
    step: &Step,
    setting: Setting,
    cancel: CancellationToken,
) -> impl Stream<Item = Delta> + use<> {
    // The step is turned into owned parts first: the stream outlives the script.
    let parts: Vec<Part> = parts(step, &setting);
    stream! {
        yield Delta::Started;
        for part in parts {
            let waited = match &part {
                _ if cancel.is_cancelled() => Err(Failure::aborted()),
                Part::WaitForFile(path) => wait_for_file(path, &cancel).await,
                Part::Hang => {
                    cancel.cancelled().await;
                    Err(Failure::aborted())
                }
                Part::Delta(_) => Ok(()),
            };
            if let Err(failure) = waited {
                yield Delta::Failed { failure, raw_stop_reason: None };
                return;
            }
            if let Part::Delta(delta) = part {
                let last = matches!(delta, Delta::Done { .. } | Delta::Failed { .. });
                yield delta;
                if last {
                    return;
                }
            }
        }
    }
}

/// What happens, one thing after the other. The last one is a `Done` or a `Failed`.
enum Part {
    Delta(Delta),
    WaitForFile(std::path::PathBuf),
    Hang,
}

fn parts(step: &Step, setting: &Setting) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut blocks = 0;
    let mut calls = 0;
    let mut block = |kind: BlockKind, chunks: &Chunks| {
        let index = blocks;
        blocks += 1;
        let open = Delta::Open { index, kind };
        let extend = chunks.pieces().iter().map(|piece| Delta::Extend { index, delta: piece.clone() });
        let seal = Delta::Seal { index, seal: BlockSeal::default() };
        std::iter::once(open).chain(extend).chain([seal]).map(Part::Delta).collect::<Vec<_>>()
    };
    for action in &step.emit {
        match action {
            Action::Text(chunks) => parts.extend(block(BlockKind::Text, chunks)),
            Action::Thinking(chunks) => parts.extend(block(BlockKind::Thinking, chunks)),
            Action::ToolCall(call) => {
                calls += 1;
                let made_up = || format!("call_{}", setting.calls + calls);
                let kind = BlockKind::ToolCall {
                    id: call.id.clone().unwrap_or_else(made_up),
                    name: call.name.clone(),
                };
                parts.extend(block(kind, &arguments(call)));
            }
            Action::Usage(tokens) => parts.push(Part::Delta(Delta::Usage(usage(*tokens)))),
            Action::ResponseId(id) => parts.push(Part::Delta(Delta::ResponseId(id.clone()))),
            Action::WaitForFile(path) => parts.push(Part::WaitForFile(setting.folder.join(path))),
            Action::Hang(true) => parts.push(Part::Hang),
            Action::Hang(false) => {}
            Action::Stop(stop) => parts.push(Part::Delta(done(*stop))),
            Action::Fail(fail) => parts.push(Part::Delta(failed(fail, &setting.provider))),
        }
    }
    parts.push(Part::Delta(done(if calls > 0 { Stop::ToolUse } else { Stop::Done })));
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

fn done(stop: Stop) -> Delta {
    let (stop_reason, raw) = match stop {
        Stop::Done => (StopReason::Stop, "stop"),
        Stop::Length => (StopReason::Length, "length"),
        Stop::ToolUse => (StopReason::ToolUse, "tool_calls"),
    };
    Delta::Done { stop_reason, raw_stop_reason: Some(raw.into()) }
}

fn failed(fail: &Fail, provider: &str) -> Delta {
    let kind = match fail.kind {
        Some(Kind::Retryable) => FailureKind::Retryable,
        Some(Kind::Overflow) => FailureKind::ContextOverflow,
        Some(Kind::Auth) => FailureKind::Auth,
        Some(Kind::Refused) => FailureKind::Refused,
        Some(Kind::Fatal) => FailureKind::Fatal,
        None => classify_message(provider, &fail.message),
    };
    Delta::Failed { failure: Failure::new(kind, fail.message.clone()), raw_stop_reason: None }
}

/// Waits until someone has opened the named pipe at `path` for writing, and written to it or closed it.
///
/// A pipe needs no polling, works between processes, and the wait can be given up at any time.
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
