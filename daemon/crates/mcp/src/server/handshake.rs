//! Making a connection: the transport, which revision the server speaks, the first list of tools.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::lists::{ToolList, list_tools};
use crate::{
    config::{Endpoint, RevisionChoice, ServerConfig},
    http,
    launch::ServerContext,
    oauth::Authorization,
    peer::{Peer, PeerHandler, RequestError, RequestTerms},
    revision::{self, REVISIONS, STATELESS, Verdict, verdict},
    stdio,
    transport::Transport,
};

/// Time for a program to say whether it knows the stateless revision. One that does not may never answer.
const DISCOVER_WAIT: Duration = Duration::from_secs(10);

/// The least time for which a list of tools counts as new, whatever the server says.
const LEAST_LIFE: Duration = Duration::from_secs(60);

/// What a server says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerFacts {
    pub(crate) name: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) revision: String,
    /// Its advice for the model.
    pub(crate) instructions: Option<String>,
    /// Whether it has resources.
    pub(crate) has_resources: bool,
    /// Whether it has tools.
    pub(crate) has_tools: bool,
    /// Whether it says when the list of its tools changes.
    pub(crate) tells_tools: bool,
    /// Whether it has prompts.
    pub(crate) has_prompts: bool,
    /// Whether it says when the list of its prompts changes.
    pub(crate) tells_prompts: bool,
}

/// A connection that is there.
pub(crate) struct Connection {
    pub(crate) peer: Peer,
    pub(crate) facts: ServerFacts,
    pub(crate) pid: Option<i32>,
    pub(crate) over: CancellationToken,
    gone: CancellationToken,
}

impl Connection {
    /// When a list of tools is to be read again: after the time that the server names, at least a minute from now, unless the server says
    /// itself when it has changed.
    pub(super) fn stale(&self, list: &ToolList) -> Option<Instant> {
        let life = list.life.filter(|_| !self.facts.tells_tools)?;
        Some(Instant::now() + life.max(LEAST_LIFE))
    }

    /// Ends it: returns when nothing of the server is left.
    pub(crate) async fn close(&self) {
        self.over.cancel();
        self.gone.cancelled().await;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.over.cancel();
    }
}

/// Connects a server and lists its tools.
///
/// # Errors
/// Why it is not there.
pub(crate) async fn connect(
    config: &ServerConfig,
    context: &ServerContext,
    authorization: Option<Arc<Authorization>>,
    handler: Arc<dyn PeerHandler>,
) -> Result<(Connection, ToolList), String> {
    let mut started = start(config, context, authorization.clone(), Arc::clone(&handler)).await?;
    let facts = match config.revision {
        RevisionChoice::WithInitialize => initialize(&started.transport.peer, config).await?,
        choice => match discover(&started.transport.peer, config).await {
            Ok(facts) => facts,
            Err(Undiscovered::Failed(error)) => return Err(error),
            Err(Undiscovered::Unknown { why, is_spent }) => {
                if choice == RevisionChoice::Stateless {
                    return Err(format!("it does not speak the revision {STATELESS} of MCP: {why}"));
                }
                if is_spent {
                    started.end().await;
                    started = start(config, context, authorization, handler).await?;
                }
                initialize(&started.transport.peer, config).await?
            }
        },
    };
    let peer = &started.transport.peer;
    let with_headers = peer.is_stateless() && matches!(config.endpoint, Endpoint::Http { .. });
    let tools = if facts.has_tools {
        list_tools(peer, config.set_up_timeout(), with_headers).await?
    } else {
        ToolList::default()
    };
    let Transport { peer, pid, over, gone } = started.keep();
    Ok((Connection { peer, facts, pid, over, gone }, tools))
}

/// A transport that ends when this is dropped.
struct Started {
    transport: Transport,
    ended: tokio_util::sync::DropGuard,
}

impl Started {
    async fn end(self) {
        let gone = self.transport.gone.clone();
        drop(self);
        gone.cancelled().await;
    }

    fn keep(self) -> Transport {
        let _ = self.ended.disarm();
        self.transport
    }
}

async fn start(
    config: &ServerConfig,
    context: &ServerContext,
    authorization: Option<Arc<Authorization>>,
    handler: Arc<dyn PeerHandler>,
) -> Result<Started, String> {
    let transport = match &config.endpoint {
        Endpoint::Stdio { .. } => {
            let command = context.command(config).await?;
            stdio::start(command, (&context.launcher, &context.memory), &context.tasks, handler).await?
        }
        Endpoint::Http { .. } => {
            http::start(context.endpoint(config, authorization).await?, &context.tasks, handler)
        }
    };
    let ended = transport.over.clone().drop_guard();
    Ok(Started { transport, ended })
}

/// Why a server did not say that it speaks the stateless revision.
enum Undiscovered {
    /// It does not seem to know it. `is_spent`: nothing more can be asked on this connection.
    Unknown { why: String, is_spent: bool },
    /// Nothing is known of it.
    Failed(String),
}

/// Asks a server whether it speaks the stateless revision. Its peer sends requests of that revision afterwards, if it does.
async fn discover(peer: &Peer, config: &ServerConfig) -> Result<ServerFacts, Undiscovered> {
    let is_program = matches!(config.endpoint, Endpoint::Stdio { .. });
    let wait = if is_program { DISCOVER_WAIT } else { config.set_up_timeout() };
    peer.set_stateless(true);
    let mut is_asked_again = false;
    let unknown = loop {
        let outcome = peer.request("server/discover", json!({}), RequestTerms::within(wait)).await;
        let (judged, why) = match &outcome {
            Ok(result) => (verdict(Ok(result)), "it lists other revisions".to_owned()),
            Err(RequestError::Server(error)) => (verdict(Err(error)), error.message.clone()),
            Err(RequestError::Status { status: 401 | 403, text }) => {
                return Err(Undiscovered::Failed(text.clone()));
            }
            Err(RequestError::Status { status: 400..=499, text }) => (Verdict::WithInitialize, text.clone()),
            // What is no answer at all says nothing of the revision, except from programs, which may end or wait on what they do not know.
            Err(error @ (RequestError::TimedOut(_) | RequestError::Closed(_))) if is_program => {
                break Undiscovered::Unknown { why: error.to_string(), is_spent: true };
            }
            Err(error @ RequestError::Invalid(_)) => (Verdict::WithInitialize, error.to_string()),
            Err(error) => return Err(Undiscovered::Failed(format!("server/discover: {error}"))),
        };
        match (judged, outcome) {
            (Verdict::Stateless, Ok(result)) => return Ok(discovered(&result)),
            (Verdict::AskAgain, _) if !std::mem::replace(&mut is_asked_again, true) => {}
            (Verdict::AskAgain, _) => {
                let text = format!("server/discover: it lists the revision {STATELESS}, and refuses it");
                return Err(Undiscovered::Failed(text));
            }
            _ => break Undiscovered::Unknown { why, is_spent: false },
        }
    };
    peer.set_stateless(false);
    Err(unknown)
}

fn discovered(result: &Value) -> ServerFacts {
    facts(result, revision::server_info(result), STATELESS.to_owned())
}

async fn initialize(peer: &Peer, config: &ServerConfig) -> Result<ServerFacts, String> {
    let params = json!({
        "protocolVersion": REVISIONS[0],
        // Whether a user is there is not known for the life of the connection: a question to nobody is answered at once.
        "capabilities": revision::capabilities(config.roots, true),
        "clientInfo": revision::client_info(),
    });
    let terms = RequestTerms::within(config.set_up_timeout());
    let answer = peer.request("initialize", params, terms).await.map_err(|error| match error {
        RequestError::Closed(reason) => reason.to_string(),
        error => format!("initialize: {error}"),
    })?;
    let revision = answer.get("protocolVersion").and_then(Value::as_str).unwrap_or_default().to_owned();
    if !REVISIONS.contains(&revision.as_str()) {
        let known = REVISIONS.join(", ");
        return Err(format!(
            "it speaks the revision \"{revision}\" of MCP; agentd speaks {STATELESS}, {known}"
        ));
    }
    // Before anything else.
    peer.notify("notifications/initialized", None);
    Ok(facts(&answer, answer.get("serverInfo"), revision))
}

/// What a server says of itself, in the answer to its first request.
fn facts(answer: &Value, info: Option<&Value>, revision: String) -> ServerFacts {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let of = |kind: &str| answer.get("capabilities")?.get(kind).filter(|it| !it.is_null());
    let tells = |kind: &str| of(kind).and_then(|it| it.get("listChanged")) == Some(&Value::Bool(true));
    ServerFacts {
        name: text(info.and_then(|info| info.get("name"))),
        version: text(info.and_then(|info| info.get("version"))),
        revision,
        instructions: text(answer.get("instructions")),
        has_resources: of("resources").is_some(),
        has_tools: of("tools").is_some(),
        tells_tools: tells("tools"),
        has_prompts: of("prompts").is_some(),
        tells_prompts: tells("prompts"),
    }
}
