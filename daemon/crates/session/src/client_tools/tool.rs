//! A tool of a client, as the loop calls it.

use std::{
    future::pending,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use agentd_agent::{ExecutionMode, Invocation, Tool, ToolError, ToolFuture};
use agentd_protocol::{
    client_tools::{CallForm, ClientTool, ToolCancel, ToolCancelReason, ToolRequest},
    event::Event,
    host_tools::{HostToolCall, HostToolCancel},
    settings::Settings,
    tool::{ToolResult, ToolSpec},
    tool_list::ToolExecution,
};
use bytes::Bytes;
use tokio::time::sleep;
use uuid::Uuid;

use super::{
    calls::{Answer, ClientCalls},
    request_ends::{CallOf, Leaving, Over},
};
use crate::{
    event_log::{Feed, SubscriberId},
    message_sender::MessageSender,
    reply::encode,
    tool_registry::{RegisteredTool, ToolOwner},
};

/// The default time for a call.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The longest result, where nothing else says so, in bytes.
const MAX_RESULT_BYTES: usize = 8 << 20;

/// The result of a call that was stopped.
pub(super) const ABORTED: &str = "Operation aborted";

/// The limits of calls in the session's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallLimits {
    /// The time for a call where the tool names none; `None`: no limit.
    pub(super) timeout: Option<Duration>,
    pub(super) max_result_bytes: usize,
}

impl CallLimits {
    pub(crate) fn of(settings: &Settings) -> Self {
        let of = settings.client_tools.clone().unwrap_or_default();
        let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        Self {
            timeout: of.timeout_ms.map_or(Some(TIMEOUT), limit),
            max_result_bytes: of.max_result_bytes.map_or(MAX_RESULT_BYTES, bytes),
        }
    }
}

/// 0 stands for none.
fn limit(millis: u64) -> Option<Duration> {
    (millis > 0).then(|| Duration::from_millis(millis))
}

/// The client behind a provider, shared by its tools.
pub(crate) struct ProvidingClient {
    pub(super) id: u64,
    /// The client's name, for people.
    pub(super) client: String,
    pub(super) session_id: String,
    pub(super) calls: ClientCalls,
    pub(super) feed: Feed,
    /// The way to the session, for requests.
    pub(super) requests: RequestRoute,
    /// The connection, as a subscriber of the session.
    pub(super) subscriber: Mutex<SubscriberId>,
}

/// The way of requests to the session, which sends each behind the events before it. It leads to the session while that is in memory, and
/// outlives it. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct RequestRoute(Arc<Mutex<Option<MessageSender<ClientToolRequest>>>>);

impl RequestRoute {
    /// Requests go to the session that was just loaded.
    pub(crate) fn lead_to(&self, session: MessageSender<ClientToolRequest>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(session);
    }

    /// The session leaves memory.
    pub(crate) fn lead_nowhere(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Sends a request. Without a session it is dropped.
    pub(super) async fn send(&self, request: ClientToolRequest) {
        let session = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(session) = session {
            session.send(request).await;
        }
    }
}

impl ProvidingClient {
    /// Its number.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Sends the client a line of its own, after everything that the session has said so far.
    pub(super) fn address(&self, line: Bytes) {
        let subscriber = *self.subscriber.lock().unwrap_or_else(PoisonError::into_inner);
        self.feed.address(subscriber, line);
    }

    /// The same, for an event.
    pub(super) fn tell(&self, event: &Event) {
        match encode(event) {
            Ok(line) => self.address(line),
            Err(error) => tracing::error!(%error, event = event.name(), "cannot write an event"),
        }
    }
}

/// A tool that a client provides.
pub(crate) struct ProvidedTool {
    provider: Arc<ProvidingClient>,
    spec: Arc<ToolSpec>,
    label: Option<String>,
    snippet: Option<String>,
    guidelines: Vec<String>,
    execution: ToolExecution,
    timeout: Option<Duration>,
    max_result_bytes: usize,
    form: CallForm,
}

impl ProvidedTool {
    /// The tool as the registry holds it: active.
    pub(crate) fn registered(
        provider: &Arc<ProvidingClient>,
        tool: ClientTool,
        limits: CallLimits,
    ) -> RegisteredTool {
        let tool = Self::new(provider, tool, limits);
        let owner = ToolOwner::Client {
            provider: provider.id,
            client: provider.client.clone(),
            timeout: tool.timeout,
        };
        RegisteredTool { tool: Arc::new(tool), owner, active: true }
    }

    fn new(provider: &Arc<ProvidingClient>, tool: ClientTool, limits: CallLimits) -> Self {
        let ClientTool {
            name,
            description,
            parameters,
            label,
            snippet,
            guidelines,
            execution,
            timeout_ms,
            calls: form,
        } = tool;
        Self {
            provider: Arc::clone(provider),
            spec: Arc::new(ToolSpec { name, description, parameters, constrained_sampling: None }),
            label,
            snippet,
            guidelines,
            execution,
            timeout: timeout_ms.map_or(limits.timeout, limit),
            max_result_bytes: limits.max_result_bytes,
            form,
        }
    }

    fn name(&self) -> &str {
        &self.spec.name
    }
}

/// A request on its way to the client, behind what the run has said before.
pub(crate) struct ClientToolRequest {
    provider: Arc<ProvidingClient>,
    id: String,
    line: Bytes,
}

impl ClientToolRequest {
    /// A request of that id, to a provider.
    pub(super) fn new(provider: &Arc<ProvidingClient>, id: &str, line: Bytes) -> Self {
        Self { provider: Arc::clone(provider), id: id.to_owned(), line }
    }

    /// Sends it, unless the call is over already.
    pub(crate) fn send(self) {
        let Self { provider, id, line } = self;
        provider.calls.send(&id, || provider.address(line));
    }
}

impl ProvidedTool {
    async fn call(&self, invocation: Invocation) -> Result<ToolResult, ToolError> {
        let (tool, provider) = (self, &self.provider);
        let Invocation { call_id, arguments, cancel, progress, .. } = invocation;
        let of = CallOf::Tool(tool.name().to_owned());
        let (id, answer) = provider.calls.open(provider.id, of.clone(), tool.max_result_bytes, progress);
        let (request_id, session_id) = (id.clone(), provider.session_id.clone());
        let (tool_call_id, tool_name) = (call_id, tool.name().to_owned());
        let request = match tool.form {
            CallForm::ToolRequest => {
                ToolRequest { request_id, session_id, tool_call_id, tool_name, args: arguments }.into()
            }
            CallForm::HostToolCall => {
                HostToolCall { id: request_id, tool_call_id, tool_name, arguments, session_id }.into()
            }
        };
        let line = encode(&request).map_err(|error| ToolError(error.to_string()))?;
        let request = ClientToolRequest::new(provider, &id, line);
        let asked = async {
            // A session that is gone drops the request, and with the run ends the call.
            provider.requests.send(request).await;
            answer.await
        };
        let too_late = async {
            match tool.timeout {
                Some(limit) => sleep(limit).await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            answer = asked => match answer {
                Ok(Answer::Result(result)) => Ok(*result),
                Ok(Answer::Failed(why)) => Err(ToolError(why)),
                // Only `host_uri_result` and `eval_result` bring the others, which this request refuses.
                Ok(Answer::Url(_) | Answer::Cell(_)) | Err(_) => Err(ToolError(Leaving::Disconnected.text(&of))),
            },
            () = cancel.cancelled() => {
                self.take_back(id, Over::Aborted, ToolCancelReason::Aborted);
                Err(ToolError(ABORTED.into()))
            }
            () = too_late => {
                self.take_back(id, Over::TimedOut, ToolCancelReason::Timeout);
                let seconds = tool.timeout.unwrap_or_default().as_secs_f64();
                Err(ToolError(format!(
                    "The client that provides the tool {} did not answer within {seconds} seconds.",
                    tool.name()
                )))
            }
        }
    }

    /// Nobody waits for the answer any more; a client that knows of the call is told so.
    fn take_back(&self, request_id: String, over: Over, reason: ToolCancelReason) {
        let provider = &self.provider;
        if provider.calls.give_up(&request_id, over) {
            let session_id = provider.session_id.clone();
            provider.tell(&match self.form {
                CallForm::ToolRequest => ToolCancel { request_id, session_id, reason }.into(),
                CallForm::HostToolCall => {
                    let id = Uuid::new_v4().to_string();
                    HostToolCancel { id, target_id: request_id, session_id }.into()
                }
            });
        }
    }
}

impl Tool for ProvidedTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    fn snippet(&self) -> Option<&str> {
        self.snippet.as_deref()
    }

    fn guidelines(&self) -> Vec<&str> {
        self.guidelines.iter().map(String::as_str).collect()
    }

    fn execution(&self) -> ExecutionMode {
        match self.execution {
            ToolExecution::Parallel => ExecutionMode::Parallel,
            ToolExecution::Sequential => ExecutionMode::Sequential,
        }
    }

    fn execute(&self, invocation: Invocation) -> ToolFuture<'_> {
        Box::pin(self.call(invocation))
    }
}
