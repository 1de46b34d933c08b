//! What a client asked for when it opened sessions, as far as that goes on to count for what this client does.

use std::{collections::HashMap, sync::Arc};

use agentd_config::Environment;
use agentd_protocol::{error::Failure, model::ThinkingLevel};
use agentd_session::{SessionOptions, Target, ToolSelection};

/// What was asked for in one session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Wish {
    /// The environment of what the client starts.
    environment: Option<Environment>,
    provider: Option<String>,
    model: Option<String>,
    thinking: Option<ThinkingLevel>,
    tools: ToolSelection,
}

impl Wish {
    /// What `asked` says; the environment only where the client gave one.
    pub(super) fn of(asked: &SessionOptions, has_environment: bool) -> Self {
        Self {
            environment: has_environment.then(|| asked.environment.clone()),
            provider: asked.provider.clone(),
            model: asked.model.clone(),
            thinking: asked.thinking,
            tools: asked.tools.clone(),
        }
    }

    /// What the session that follows on one with these `options` is opened with: the same flags, but for what was meant for that
    /// one session, and what this client asked for over them.
    pub(super) fn successor(&self, options: &SessionOptions) -> SessionOptions {
        let mut options = SessionOptions { name: None, target: Target::New, ..options.clone() };
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

/// One for each session that the client opened and asked something for.
#[derive(Debug, Default)]
pub(super) struct Wishes(HashMap<Arc<str>, Wish>);

impl Wishes {
    /// What was asked for in a session.
    pub(super) fn of(&self, session: &str) -> Option<&Wish> {
        self.0.get(session)
    }

    /// The environment of what the client starts in a session; `None` for the session's own.
    pub(super) fn environment(&self, session: &str) -> Option<Environment> {
        self.of(session)?.environment.clone()
    }

    /// Keeps one, of at most `limit`; those of sessions that are not known any more make place.
    ///
    /// # Errors
    /// `limit_reached` when there are so many.
    pub(super) fn keep(
        &mut self,
        session: &Arc<str>,
        wish: Wish,
        limit: usize,
        is_known: impl Fn(&str) -> bool,
    ) -> Result<(), Failure> {
        if wish == Wish::default() {
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
        self.0.insert(Arc::clone(session), wish);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_may_be_of_sessions_that_are_there() {
        let (one, two, three): (Arc<str>, Arc<str>, Arc<str>) = ("1".into(), "2".into(), "3".into());
        let of = |value: &str| [("A", value)].into_iter().collect::<Environment>();
        let wish = |value: &str| Wish { environment: Some(of(value)), ..Wish::default() };
        let mut kept = Wishes::default();
        kept.keep(&one, wish("a"), 2, |_| true).unwrap();
        kept.keep(&two, wish("b"), 2, |_| true).unwrap();
        kept.keep(&two, wish("c"), 2, |_| true).unwrap();
        assert!(kept.keep(&three, wish("d"), 2, |_| true).is_err());
        kept.keep(&three, Wish::default(), 2, |_| true).unwrap();
        assert_eq!((kept.environment("2"), kept.environment("3")), (Some(of("c")), None));
        kept.keep(&three, wish("d"), 2, |session| session != "1").unwrap();
        assert_eq!((kept.environment("1"), kept.environment("3")), (None, Some(of("d"))));
        kept.keep(&two, Wish::default(), 2, |_| true).unwrap();
        assert_eq!(kept.environment("2"), None);
    }
}
