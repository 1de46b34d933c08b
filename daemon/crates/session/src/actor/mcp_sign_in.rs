//! Signing in to the session's MCP servers, and out. No answer holds a token.

use std::{sync::Arc, time::Duration};

use agentd_mcp::{McpSession, OAuthError, sign_out};
use agentd_protocol::{
    error::{ErrorCode, Failure},
    mcp::{
        McpLoginCancelParams, McpLoginCancelled, McpLoginFinishParams, McpLoginStartParams, McpLoginStarted,
        McpLogout, McpLogoutParams, McpServers,
    },
};
use serde::Serialize;

use super::session_actor::Actor;
use crate::reply::Reply;

impl Actor {
    pub(super) fn mcp_login_start(&mut self, params: McpLoginStartParams, reply: Reply) {
        let McpLoginStartParams { name, timeout_seconds } = params;
        let life = timeout_seconds.map(Duration::from_secs);
        self.with_mcp(reply, async move |mcp| {
            let started = mcp.start_sign_in(&name, life).await.map_err(|error| not_started(&error))?;
            Ok(McpLoginStarted {
                login_id: started.id,
                name,
                url: started.url,
                redirect_uri: started.redirect_uri,
                expires_in_seconds: started.life.as_secs(),
            })
        });
    }

    pub(super) fn mcp_login_finish(&mut self, params: McpLoginFinishParams, reply: Reply) {
        self.with_mcp(reply, async move |mcp| {
            let finished = mcp.finish_sign_in(&params.login_id, params.code.as_ref()).await;
            finished.map_err(|error| not_finished(&error))?;
            Ok(McpServers { servers: mcp.list() })
        });
    }

    pub(super) fn mcp_login_cancel(&self, params: &McpLoginCancelParams, reply: Reply) {
        let mcp = self.context.mcp.as_ref();
        let cancelled = mcp.is_some_and(|mcp| mcp.cancel_sign_in(&params.login_id));
        reply.data(&self.feed, McpLoginCancelled { cancelled });
    }

    pub(super) fn mcp_logout(&mut self, params: McpLogoutParams, reply: Reply) {
        let (feed, mcp) = (self.feed.clone(), self.context.mcp.clone());
        let agent_dir = self.context.agent_dir.clone();
        self.tasks.spawn(async move {
            let McpLogoutParams { name } = params;
            let count = match &mcp {
                Some(mcp) => mcp.sign_out(&agent_dir, &name).await,
                // The server may be gone from mcp.json.
                None => sign_out(&agent_dir, &name).await,
            };
            let file = agent_dir.mcp_auth_file().display().to_string();
            reply.result(
                &feed,
                match count {
                    Ok(0) => {
                        let text = format!("Nothing is stored for the MCP server \"{name}\" in {file}.");
                        Err(Failure::new(ErrorCode::NotFound, text))
                    }
                    Ok(_) => Ok(McpLogout { name, file }),
                    Err(error) => Err(Failure::new(ErrorCode::Io, format!("Nothing was removed: {error}"))),
                },
            );
        });
    }

    /// Answers from a task, which may wait for the user.
    fn with_mcp<T: Serialize + Send + 'static, F>(
        &mut self,
        reply: Reply,
        work: impl FnOnce(Arc<McpSession>) -> F + Send + 'static,
    ) where
        F: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        let mcp = match self.changeable_mcp() {
            Ok(mcp) => mcp,
            Err(failure) => return reply.fail(&self.feed, failure),
        };
        let feed = self.feed.clone();
        self.tasks.spawn(async move { reply.result(&feed, work(mcp).await) });
    }
}

fn not_started(error: &OAuthError) -> Failure {
    let hint = match error {
        OAuthError::Listen { .. } => Some(
            "Another program may listen at the port: \"oauth\": {\"callbackPort\": ...} of the entry names another one.",
        ),
        OAuthError::NoRegistration(_) | OAuthError::NoClientDocuments(_) => {
            Some("docs/mcp.md has the keys of \"oauth\".")
        }
        OAuthError::IssuerMismatch { .. } => Some(
            "Where the server has moved to another authorization server: `agentctl mcp logout` forgets the old one.",
        ),
        OAuthError::NotAsked | OAuthError::Endpoint(_) => {
            Some("A server without a sign-in can be given a token in \"headers\" of its entry.")
        }
        _ => None,
    };
    failed(error, hint)
}

fn not_finished(error: &OAuthError) -> Failure {
    let hint = match error {
        OAuthError::Expired | OAuthError::NotThere(_) => Some("The sign-in can be begun again."),
        _ => None,
    };
    failed(error, hint)
}

fn failed(error: &OAuthError, hint: Option<&str>) -> Failure {
    let code = match error {
        OAuthError::NoServer(_) | OAuthError::NotThere(_) => ErrorCode::NotFound,
        OAuthError::Pasted(_) => ErrorCode::InvalidField,
        OAuthError::Listen { .. } | OAuthError::NoRandom | OAuthError::Store(_) => ErrorCode::Io,
        OAuthError::Configuration(_)
        | OAuthError::InTheClear
        | OAuthError::NotAsked
        | OAuthError::NoPkce(_)
        | OAuthError::NoRegistration(_)
        | OAuthError::NoClientDocuments(_) => ErrorCode::Unsupported,
        OAuthError::Cancelled => ErrorCode::Aborted,
        OAuthError::ResourceMismatch { .. }
        | OAuthError::IssuerMismatch { .. }
        | OAuthError::Metadata { .. }
        | OAuthError::NoMetadata { .. }
        | OAuthError::Denied(_)
        | OAuthError::WrongIssuer(_)
        | OAuthError::Expired
        | OAuthError::BadAnswer(_)
        | OAuthError::NoRefreshToken
        | OAuthError::Endpoint(_) => ErrorCode::NoCredentials,
    };
    let text = match error {
        OAuthError::NoServer(text) => text.clone(),
        OAuthError::Pasted(_) => format!("The sign-in goes on: {error}."),
        error => format!("Not signed in: {error}."),
    };
    let failure = Failure::new(code, text);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
