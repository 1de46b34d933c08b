//! Sends a request and streams its answer.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use super::{compat::Compat, decode::Decoder, encode, headers::headers};
use crate::{
    Delta, DeltaStream, Provider, Request,
    failure::{Failure, FailureKind},
    http::{HttpClients, Post, Redactor},
};

/// How long the usage may come after the end of the answer. Some servers leave the connection open then.
const USAGE_PATIENCE: Duration = Duration::from_secs(15);

/// Speaks `openai-completions`.
pub(crate) struct OpenAiCompletions {
    clients: Arc<HttpClients>,
}

impl OpenAiCompletions {
    pub(crate) fn new(clients: Arc<HttpClients>) -> Self {
        Self { clients }
    }
}

impl Provider for OpenAiCompletions {
    fn stream(&self, request: Request, cancel: CancellationToken) -> DeltaStream {
        let clients = Arc::clone(&self.clients);
        Box::pin(async_stream::stream! {
            let compat = Compat::of(&request.model);
            let model = request.model.id.clone();
            let sent = match post(&request, &compat, cancel) {
                Ok(post) => {
                    // The transcript is in the body now; its memory need not wait for the answer.
                    drop(request);
                    post.send(&clients).await
                }
                Err(failure) => Err(failure),
            };
            let mut answer = match sent {
                Ok(answer) => answer,
                Err(failure) => {
                    yield Delta::Failed { failure, raw_stop_reason: None };
                    return;
                }
            };
            yield Delta::Started;
            let mut decoder = Decoder::new(answer.server().clone(), &model, &compat);
            let mut deltas = Vec::new();
            while !decoder.is_finished() {
                let patience = decoder.has_all_content().then_some(USAGE_PATIENCE);
                match answer.chunk(patience).await {
                    Ok(Some(bytes)) => decoder.feed(&bytes, &mut deltas),
                    Ok(None) => decoder.end(&mut deltas),
                    Err(failure) => decoder.fail(failure, &mut deltas),
                }
                for delta in deltas.drain(..) {
                    yield delta;
                }
            }
            answer.finish();
        })
    }
}

fn post(request: &Request, compat: &Compat, cancel: CancellationToken) -> Result<Post, Failure> {
    let provider = request.model.provider.clone();
    let url = encode::url(&request.model).map_err(|message| Failure::new(FailureKind::Fatal, message))?;
    let headers = headers(request, compat).map_err(|error| {
        let message = format!("The request to provider \"{provider}\" cannot be made: {error}.");
        Failure::new(FailureKind::Fatal, message)
    })?;
    let body = encode::body(request, compat).map_err(|error| {
        Failure::new(FailureKind::Fatal, format!("The request cannot be written as JSON: {error}"))
    })?;
    Ok(Post {
        url,
        provider,
        headers,
        body,
        idle_timeout: request.idle_timeout,
        redactor: Redactor::new(&request.credentials),
        cancel,
    })
}

#[cfg(test)]
mod tests;
