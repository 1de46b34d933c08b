//! URLs that a host serves to the tools of sessions, in the words of omp's clients.

use std::sync::Arc;

use agentd_protocol::{
    error::Failure,
    frame::{Head, Response},
    host_uris::{HostUriResult, HostUriScheme, HostUriSchemes, SetHostUriSchemesParams, host_schemes},
};
use serde_json::Value;

use super::{client_tools::not_followed, dispatcher::Dispatcher};
use crate::hub::SessionSlot;

const SET: &str = "set_host_uri_schemes";

impl Dispatcher {
    /// Replaces the schemes of this host, in every session that it follows. When the current session refuses them, nothing has changed.
    pub(super) async fn set_host_uri_schemes(&mut self, params: SetHostUriSchemesParams, id: Option<Value>) {
        let set = match host_schemes(params.schemes) {
            Ok(schemes) => self.replace_schemes(schemes).await,
            Err(failure) => Err(failure),
        };
        match set {
            Ok(schemes) => self.answer(&Response::done(id, SET, Some(HostUriSchemes { schemes }))).await,
            Err(failure) => self.fail(id, Some(SET), failure).await,
        }
    }

    async fn replace_schemes(&mut self, schemes: Vec<HostUriScheme>) -> Result<Vec<String>, Failure> {
        let current = self.sessions.current.clone();
        if let Some(current) = &current {
            if self.sessions.get(current).is_none() && !schemes.is_empty() {
                return Err(
                    not_followed(current).hint("Requests come among its events: attach_session first.")
                );
            }
            self.serve_urls(current, &schemes)?;
        }
        let names = schemes.iter().map(|scheme| scheme.scheme.clone()).collect();
        self.provided_tools.schemes = schemes;
        let mut others = self.sessions.all();
        others.retain(|session| current.as_ref().is_none_or(|current| current.id() != session.id()));
        for session in others {
            self.serve_kept_urls(&session).await;
        }
        Ok(names)
    }

    /// Serves exactly these schemes in a session that is followed; one that is not has none of this connection.
    fn serve_urls(&mut self, session: &Arc<SessionSlot>, schemes: &[HostUriScheme]) -> Result<(), Failure> {
        let (client, calls) = (self.client.name(), &self.provided_tools.calls);
        let Some(followed) = self.sessions.get_mut(session) else { return Ok(()) };
        if schemes.is_empty() && followed.tools.is_none() {
            return Ok(());
        }
        let subscriber = followed.subscriber;
        let provider = followed.tools.get_or_insert_with(|| {
            session.session_clients().provide_tools(session.id(), subscriber, client, calls)
        });
        provider.serve_urls(schemes.to_vec())
    }

    /// Serves the schemes of this host in a session that it follows.
    pub(super) async fn serve_kept_urls(&mut self, session: &Arc<SessionSlot>) {
        let schemes = self.provided_tools.schemes.clone();
        if !schemes.is_empty() && !self.may_provide_for(session) {
            return;
        }
        if let Err(failure) = self.serve_urls(session, &schemes) {
            let error = format!("The session \"{}\" does not get your URLs: {}", session.id(), failure.error);
            self.fail(None, Some(SET), Failure { error, ..failure }).await;
        }
    }

    /// Takes the answer to a request. As in omp, there is no response, unless it cannot be used.
    pub(super) async fn answer_host_uri(&mut self, head: Head, line: &str) {
        let calls = &self.provided_tools.calls;
        let taken = match HostUriResult::parse(line) {
            Ok(result) => calls.respond_url(result, line.len()),
            Err(error) => {
                if let Some(Value::String(id)) = &head.id {
                    calls.unreadable(id, &error.to_string());
                }
                Err(error.into())
            }
        };
        if let Err(failure) = taken {
            self.fail(head.id, Some(HostUriResult::TYPE), failure).await;
        }
    }
}
