//! Model requests that an extension answers.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use agentd_ai::{
    CacheRetention, Delta, DeltaStream, ExchangeHook, ExchangeStage, Provider, Request,
    failure::{Failure, FailureKind, classify_message},
    register_secret,
};
use agentd_protocol::{
    Json,
    message::{AssistantMessage, Message, StopReason},
    model::{Model, ThinkingLevel},
    secret::Secret,
};
use async_stream::stream;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    connection::{CallServer, RequestError, RequestTerms, ServedCall},
    provider_deltas::StreamedBlocks,
    runtime::Runtime,
};

/// Time for a stream to stop after an abort.
const ABORT_GRACE: Duration = Duration::from_secs(10);

/// Time for a provider to resolve its credentials.
pub(crate) const AUTH_WAIT: Duration = Duration::from_secs(60);

/// Events that wait to be read, at most: more come only from a provider that floods.
const MAX_WAITING: usize = 100_000;

/// A provider of an extension.
pub(crate) struct HostProvider {
    /// Weak: a request may outlive the session.
    pub(crate) extensions: Weak<Runtime>,
    pub(crate) extension: usize,
    /// The function that streams.
    pub(crate) cb: u64,
    /// The function that resolves its credentials.
    pub(crate) resolve: Option<u64>,
}

impl Provider for HostProvider {
    fn stream(&self, request: Request, cancel: CancellationToken) -> DeltaStream {
        let (extensions, extension, cb, resolve) =
            (self.extensions.clone(), self.extension, self.cb, self.resolve);
        Box::pin(stream! {
            let failed = |failure: Failure| Delta::Failed { failure, raw_stop_reason: None };
            let Some(extensions) = extensions.upgrade() else {
                let text = "The extension of the provider is closed.";
                yield failed(Failure::new(FailureKind::Fatal, text));
                return;
            };
            let (events, mut waiting) = mpsc::unbounded_channel();
            let count = Arc::<AtomicUsize>::default();
            let mut asking = Box::pin(ask(&extensions, (extension, cb, resolve), request, (events, Arc::clone(&count)), &cancel));
            let mut blocks = StreamedBlocks::default();
            let answer = loop {
                tokio::select! {
                    biased;
                    Some(event) = waiting.recv() => {
                        count.fetch_sub(1, Ordering::Relaxed);
                        for delta in blocks.take(event) {
                            yield delta;
                        }
                    }
                    answer = &mut asking => break answer,
                }
            };
            // Its sink is gone: nothing more comes.
            while let Ok(event) = waiting.try_recv() {
                for delta in blocks.take(event) {
                    yield delta;
                }
            }
            match answer {
                Ok(answer) => {
                    for delta in whole(answer) {
                        yield delta;
                    }
                }
                Err(failure) => yield failed(failure),
            }
        })
    }
}

/// The deltas of the end of an answer.
fn whole(answer: AssistantMessage) -> Vec<Delta> {
    let raw_stop_reason = answer.raw_stop_reason.clone();
    let (stop_reason, provider) = (answer.stop_reason, answer.provider.clone());
    let text = answer.error_message.clone();
    let usage = Delta::Usage(answer.usage.clone());
    let last = match stop_reason {
        StopReason::Aborted => Delta::Failed { failure: Failure::aborted(), raw_stop_reason },
        StopReason::Error | StopReason::Pending => {
            let text = text.unwrap_or_else(|| "The provider gave no reason".to_owned());
            let failure = Failure::new(classify_message(&provider, &text), text);
            Delta::Failed { failure, raw_stop_reason }
        }
        stop_reason => Delta::Done { stop_reason, raw_stop_reason },
    };
    vec![usage, Delta::Whole(Box::new(answer)), last]
}

async fn ask(
    extensions: &Runtime,
    (extension, cb, resolve): (usize, u64, Option<u64>),
    mut request: Request,
    (events, count): (mpsc::UnboundedSender<Value>, Arc<AtomicUsize>),
    cancel: &CancellationToken,
) -> Result<AssistantMessage, Failure> {
    let host = extensions.host_of(extension);
    let provider = request.model.provider.clone();
    let failure = |error: RequestError| match error {
        RequestError::Late => Failure::aborted(),
        error @ (RequestError::Gone(_) | RequestError::Restarting) => {
            Failure::new(FailureKind::Retryable, extensions.explain(&error, "provider.stream"))
        }
        RequestError::Failed(error) => {
            Failure::new(classify_message(&provider, &error.message), error.message)
        }
    };
    let mut options = Map::new();
    if let Some(resolve) = resolve {
        let fields = json!({"epoch": host.epoch(), "cb": resolve, "args": [{}]});
        let terms = RequestTerms { limit: Some(AUTH_WAIT), cancel: Some(cancel), ..RequestTerms::default() };
        let found = host.request("provider.auth", &fields, terms).await.map_err(&failure)?;
        let found: Value = serde_json::from_str(found.get()).unwrap_or_default();
        take_auth(&mut request, &found["auth"]);
        if let Some(env) = found.get("env").filter(|env| !env.is_null()) {
            options.insert("env".to_owned(), env.clone());
        }
    }
    let hook = request.hooks.take();
    let mut headers = std::mem::take(&mut request.credentials.headers);
    if let Some(ExchangeHook(hooks)) = hook.as_ref().filter(|hook| hook.0.wants(ExchangeStage::Headers)) {
        headers = hooks.headers(headers).await;
    }
    set_options(&mut options, &request, &headers);
    let wanted = hook.as_ref().map(|hook| {
        let stages = [
            (ExchangeStage::Payload, "payload"),
            (ExchangeStage::Response, "response"),
            (ExchangeStage::StreamEvent, "streamEvent"),
        ];
        let wanted = stages.into_iter().filter(|(stage, _)| hook.0.wants(*stage));
        wanted.map(|(_, name)| name).collect::<Vec<_>>()
    });
    let mut model = json!(&*request.model);
    model["baseUrl"] = request.model.base_url.as_str().into();
    let messages: Vec<&Json<Message>> = request.messages.iter().collect();
    let fields = json!({
        "epoch": host.epoch(), "cb": cb, "model": model, "context": {"messages": messages},
        "options": options, "hooks": wanted.unwrap_or_default(),
    });
    let sink = move |event: Value| {
        // What is over is dropped: the whole answer follows.
        if count.fetch_add(1, Ordering::Relaxed) >= MAX_WAITING || events.send(event).is_err() {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    };
    let served = hook.map(|hook| server(hook, &request, extensions));
    let terms = RequestTerms {
        limit: None,
        cancel: Some(cancel),
        grace: ABORT_GRACE,
        partials: Some(Box::new(sink)),
        served,
        ..RequestTerms::default()
    };
    let answer = host.request("provider.stream", &fields, terms).await.map_err(&failure)?;
    let unusable = |error: serde_json::Error| {
        Failure::new(FailureKind::Fatal, format!("The answer cannot be used: {error}"))
    };
    let answer: Value = serde_json::from_str(answer.get()).map_err(unusable)?;
    match serde_json::from_value(answer["message"].clone()).map_err(unusable)? {
        Message::Assistant(answer) => Ok(answer),
        _ => {
            Err(Failure::new(FailureKind::Fatal, "The answer of the provider is no message of an assistant."))
        }
    }
}

/// Puts what a provider resolved into a request; what is configured counts more.
fn take_auth(request: &mut Request, auth: &Value) {
    let credentials = &mut request.credentials;
    if let (None, Some(key)) = (&credentials.api_key, auth["apiKey"].as_str()) {
        // It must not stand in logs and errors either.
        register_secret(key);
        credentials.api_key = Some(Secret::new(key));
    }
    for (name, value) in auth["headers"].as_object().into_iter().flatten() {
        let is_configured = credentials.headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        let value = if value.is_null() { Some("") } else { value.as_str() };
        if let (false, Some(value)) = (is_configured, value) {
            credentials.headers.push((name.clone(), Secret::new(value)));
        }
    }
    if let Some(base_url) = auth["baseUrl"].as_str() {
        request.model = Arc::new(Model { base_url: base_url.to_owned(), ..(*request.model).clone() });
    }
}

/// The options of a request, by their names in pi.
fn set_options(options: &mut Map<String, Value>, request: &Request, headers: &[(String, Secret)]) {
    let mut set = |name: &str, value: Value| options.insert(name.to_owned(), value);
    if let Some(key) = request.credentials.key() {
        set("apiKey", key.into());
    }
    if !headers.is_empty() {
        let all = headers.iter().map(|(name, value)| {
            let value = if value.expose().is_empty() { Value::Null } else { value.expose().into() };
            (name.clone(), value)
        });
        set("headers", Value::Object(all.collect()));
    }
    if request.thinking_level != ThinkingLevel::Off {
        set("reasoning", request.thinking_level.as_str().into());
    }
    if !request.session_id.is_empty() {
        set("sessionId", request.session_id.as_str().into());
    }
    if request.model.max_tokens > 0 {
        set("maxTokens", request.model.max_tokens.into());
    }
    let retention = match request.cache_retention {
        CacheRetention::None => "none",
        CacheRetention::Short => "short",
        CacheRetention::Long => "long",
    };
    set("cacheRetention", retention.into());
    if let Some(timeout) = request.idle_timeout {
        set("timeoutMs", u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX).into());
    }
    set("maxRetries", request.retries.max.into());
}

/// Lets the hooks of a request see what the provider tells of its exchange.
fn server(hook: ExchangeHook, request: &Request, extensions: &Runtime) -> CallServer {
    let model = Arc::clone(&request.model);
    let tasks = extensions.setup.tasks.clone();
    Arc::new(move |call: ServedCall| {
        let (hook, model) = (hook.clone(), Arc::clone(&model));
        tasks.spawn(async move {
            let ExchangeHook(hooks) = hook;
            let value = match call.method.as_str() {
                "provider.payload" => match hooks.payload(call.params["payload"].clone()).await {
                    Some(payload) => json!({"payload": payload}),
                    None => Value::Null,
                },
                "provider.response" => {
                    let status = call.params["status"].as_u64().and_then(|status| u16::try_from(status).ok());
                    let headers = call.params["headers"].as_object().cloned().unwrap_or_default();
                    hooks.response(status.unwrap_or_default(), headers).await;
                    Value::Null
                }
                "provider.streamEvent" => {
                    hooks.stream_event(&model, call.params["data"].clone()).await;
                    Value::Null
                }
                _ => Value::Null,
            };
            call.answer(&Ok(value));
        });
    })
}
