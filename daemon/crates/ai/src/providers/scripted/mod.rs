//! The offline model, the provider for `scripted`: plays a script, or the built-in demo without one.
//!
//! The format of scripts is described in `docs/scripted-model.md`.

mod cache;
mod checks;
mod demo;
mod facts;
mod pace;
mod play;
mod script;

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use futures::StreamExt;
use tokio_util::sync::CancellationToken;

use self::{cache::PromptCache, facts::Facts, script::Script};
use crate::{
    Delta, DeltaStream, Provider, Request,
    failure::{Failure, FailureKind},
};

/// Speaks `scripted`.
#[derive(Default)]
pub(crate) struct Scripted {
    /// The position of each script in its steps.
    positions: Arc<Mutex<HashMap<PathBuf, usize>>>,
    cache: Arc<Mutex<PromptCache>>,
}

impl Provider for Scripted {
    fn stream(&self, request: Request, cancel: CancellationToken) -> DeltaStream {
        let (positions, cache) = (Arc::clone(&self.positions), Arc::clone(&self.cache));
        Box::pin(async_stream::stream! {
            if cancel.is_cancelled() {
                yield Delta::Failed { failure: Failure::aborted(), raw_stop_reason: None };
                return;
            }
            if request.model.base_url.trim().is_empty() {
                for delta in demo::answer(&request) {
                    yield delta;
                }
                return;
            }
            match begin(&request, &positions, &cache, cancel).await {
                Ok(mut deltas) => {
                    drop(request);
                    while let Some(delta) = deltas.next().await {
                        yield delta;
                    }
                }
                Err(message) => {
                    let failure = Failure::new(FailureKind::Fatal, message);
                    yield Delta::Failed { failure, raw_stop_reason: None };
                }
            }
        })
    }
}

/// Reads the script, checks the request and chooses the step.
async fn begin(
    request: &Request,
    positions: &Mutex<HashMap<PathBuf, usize>>,
    cache: &Mutex<PromptCache>,
    cancel: CancellationToken,
) -> Result<DeltaStream, String> {
    let path = PathBuf::from(request.model.base_url.trim());
    let shown = path.display();
    let text = tokio::fs::read_to_string(&path)
        .await
        .map_err(|error| format!("The script {shown} cannot be read: {error}."))?;
    let script = Script::parse(&text).map_err(|error| format!("The script {shown} is wrong: {error}."))?;
    let facts = Facts::of(request);
    checks::transcript(&facts.messages, script.allow_open_calls)
        .map_err(|error| format!("The request is not legal: {error}."))?;
    let step = {
        let mut positions = positions.lock().unwrap_or_else(PoisonError::into_inner);
        let position = positions.entry(path.clone()).or_default();
        let (step, in_order) = checks::choose_step(&script, *position, request, &facts)
            .map_err(|error| format!("The script {shown} has no step for this request: {error}."))?;
        *position += usize::from(in_order);
        step
    };
    checks::conditions(&step.expect, request, &facts)
        .map_err(|error| format!("The request is not what the script {shown} expects: {error}."))?;
    let usage = script
        .prompt_cache
        .then(|| cache.lock().unwrap_or_else(PoisonError::into_inner).count(request, &facts.messages));
    let setting = play::Setting {
        folder: path.parent().map(Path::to_owned).unwrap_or_default(),
        provider: request.model.provider.clone(),
        calls: facts.calls().count(),
        cutter: script.chunks.map(|sizes| pace::Cutter::new(sizes, facts.messages.len())),
        tokens_per_second: script.tokens_per_second,
        usage,
    };
    Ok(Box::pin(play::deltas(step, setting, cancel)))
}

#[cfg(test)]
mod tests;
