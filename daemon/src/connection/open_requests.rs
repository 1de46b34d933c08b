//! The options that a client gave when it opened sessions, as far as they apply to what this client does there later.

use std::{collections::HashMap, sync::Arc};

use agentd_config::Environment;
use agentd_protocol::{error::Failure, model::ThinkingLevel};
use agentd_session::{InitialMode, SessionOptions, Target, ToolSelection};

/// The options that a client gave for one session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct OpenRequest {
    /// The environment of the commands that the client runs in the session.
    environment: Option<Environment>,
    provider: Option<String>,
    model: Option<String>,
    thinking: Option<ThinkingLevel>,
    tools: ToolSelection,
}

impl OpenRequest {
    /// Takes them from `asked`; the environment only if the client sent one.
    pub(super) fn of(asked: &SessionOptions, has_environment: bool) -> Self {
        Self {
            environment: has_environment.then(|| asked.environment.clone()),
            provider: asked.provider.clone(),
            model: asked.model.clone(),
            thinking: asked.thinking,
            tools: asked.tools.clone(),
        }
    }

    /// The options for the session that replaces one with these `options`: the same, without name and target, overridden by what
    /// this client asked for.
    pub(super) fn successor(&self, options: &SessionOptions) -> SessionOptions {
        // A client that leaves a subagent's session begins one of its own.
        let mut options = SessionOptions {
            name: None,
            target: Target::New,
            initial_mode: InitialMode::Default,
            subagent: None,
            ..options.clone()
        };
        if let Some(environment) = &self.environment {
            options.environment = environment.clone();
        }
        if self.model.is_some() {
            (options.provider, options.model) = (self.provider.clone(), self.model.clone());
        }
        options.thinking = self.thinking.or(options.thinking);
        if self.tools != ToolSelection::default() {
            options.tools = self.tools.clone();
        }
        options
    }
}

/// The requests of one client, by session.
#[derive(Debug, Default)]
pub(super) struct OpenRequests(HashMap<Arc<str>, OpenRequest>);

impl OpenRequests {
    /// The options that were given for a session.
    pub(super) fn of(&self, session: &str) -> Option<&OpenRequest> {
        self.0.get(session)
    }

    /// The environment of the commands that the client runs in a session; `None` for the session's own.
    pub(super) fn environment(&self, session: &str) -> Option<Environment> {
        self.of(session)?.environment.clone()
    }

    /// Keeps a request, of at most `limit`. At the limit, requests for sessions that are not open any more are dropped.
    ///
    /// # Errors
    /// `limit_reached` when there are as many for open sessions.
    pub(super) fn keep(
        &mut self,
        session: &Arc<str>,
        request: OpenRequest,
        limit: usize,
        is_known: impl Fn(&str) -> bool,
    ) -> Result<(), Failure> {
        if request == OpenRequest::default() {
            self.0.remove(session);
            return Ok(());
        }
        if self.0.len() >= limit && !self.0.contains_key(session) {
            self.0.retain(|session, _| is_known(session));
            if self.0.len() >= limit {
                let text = format!(
                    "This client has opened {limit} sessions with flags or an environment, as many as it may."
                );
                let instead = "Close sessions that are not needed (close_session).";
                return Err(Failure::limit(text, "daemon.maxFollowedSessions", instead));
            }
        }
        self.0.insert(Arc::clone(session), request);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_the_limit_requests_for_closed_sessions_are_dropped() {
        let (one, two, three): (Arc<str>, Arc<str>, Arc<str>) = ("1".into(), "2".into(), "3".into());
        let of = |value: &str| [("A", value)].into_iter().collect::<Environment>();
        let request = |value: &str| OpenRequest { environment: Some(of(value)), ..OpenRequest::default() };
        let mut kept = OpenRequests::default();
        kept.keep(&one, request("a"), 2, |_| true).unwrap();
        kept.keep(&two, request("b"), 2, |_| true).unwrap();
        kept.keep(&two, request("c"), 2, |_| true).unwrap();
        assert!(kept.keep(&three, request("d"), 2, |_| true).is_err());
        kept.keep(&three, OpenRequest::default(), 2, |_| true).unwrap();
        assert_eq!((kept.environment("2"), kept.environment("3")), (Some(of("c")), None));
        kept.keep(&three, request("d"), 2, |session| session != "1").unwrap();
        assert_eq!((kept.environment("1"), kept.environment("3")), (None, Some(of("d"))));
        kept.keep(&two, OpenRequest::default(), 2, |_| true).unwrap();
        assert_eq!(kept.environment("2"), None);
    }
}
