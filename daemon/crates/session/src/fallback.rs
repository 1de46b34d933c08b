//! The models that are asked, one after the other, when the chosen one fails for good.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agentd_ai::failure::{self, FailureKind, is_account_limit};
use agentd_config::models::{ModelScope, ScopedModel, resolve_fallbacks};
use agentd_protocol::{
    error::{ErrorCode, Failure},
    event::{FallbackReason, ModelFallback},
    model::{Model, ModelName, ThinkingLevel},
};
use tokio::time::Instant;

use crate::{choice::Choice, context::SessionContext};

/// How long a model is left alone whose account has come to a limit.
const REST: Duration = Duration::from_secs(5 * 60);

/// How many models a chain may name: each may cost a request before a prompt is answered.
const MOST: usize = 32;

/// The names of the models, and which models are left alone for a while.
#[derive(Debug, Default)]
pub(crate) struct FallbackChain {
    /// What flags and settings say.
    configured: Arc<[String]>,
    /// What a command says in the place of that.
    chosen: Mutex<Option<Arc<[String]>>>,
    /// Until when models are left alone, and what they said.
    resting: Mutex<HashMap<ModelName, (Instant, String)>>,
}

impl FallbackChain {
    pub(crate) fn new(configured: &[String]) -> Self {
        Self { configured: configured.into(), ..Self::default() }
    }

    /// The names as they were given.
    pub(crate) fn names(&self) -> Arc<[String]> {
        self.chosen().unwrap_or_else(|| Arc::clone(&self.configured))
    }

    /// What a command chose, if one did.
    pub(crate) fn chosen(&self) -> Option<Arc<[String]>> {
        lock(&self.chosen).clone()
    }

    /// Takes what a command chose in the place of flags and settings.
    pub(crate) fn choose(&self, names: Option<Arc<[String]>>) {
        *lock(&self.chosen) = names;
    }

    /// Leaves a model alone for a while; `why` is what it said.
    fn rest(&self, model: ModelName, why: &str) {
        lock(&self.resting).insert(model, (Instant::now() + REST, why.to_owned()));
    }

    /// Why a model is left alone; `None` for one that can be asked.
    pub(crate) fn resting(&self, model: &ModelName) -> Option<String> {
        let mut resting = lock(&self.resting);
        let now = Instant::now();
        resting.retain(|_, (until, _)| *until > now);
        resting.get(model).map(|(_, why)| why.clone())
    }

    /// A model that somebody chooses is asked again.
    pub(crate) fn wake(&self, model: &ModelName) {
        lock(&self.resting).remove(model);
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why another model may do what this one did not; `None` where that is not for another model. `said` is what the provider
/// said where it was asked, `stored` what the stored answer tells.
pub(crate) fn reason(
    said: Option<&failure::Failure>,
    stored: Option<FailureKind>,
    message: &str,
) -> Option<FallbackReason> {
    if stored == Some(FailureKind::ContextOverflow) {
        return Some(FallbackReason::ContextOverflow);
    }
    match said.map(|failure| failure.kind).or(stored)? {
        FailureKind::Aborted => None,
        FailureKind::ContextOverflow => Some(FallbackReason::ContextOverflow),
        // Before the words are looked at: they may be the model's own.
        FailureKind::ModelRefusal => Some(FallbackReason::ModelRefused),
        _ if is_account_limit(message) => Some(FallbackReason::AccountLimit),
        FailureKind::Retryable => Some(FallbackReason::Unavailable),
        FailureKind::Auth => Some(FallbackReason::Auth),
        FailureKind::InvalidRequest => Some(FallbackReason::Refused),
        FailureKind::Fatal => Some(FallbackReason::Failed),
    }
}

/// What is to be done instead of a failed answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Substitute {
    pub(crate) choice: Choice,
    pub(crate) event: ModelFallback,
}

impl SessionContext {
    /// Keeps in mind that a model's account has come to a limit.
    pub(crate) fn note_failure(&self, model: &Model, reason: FallbackReason, message: &str) {
        if reason == FallbackReason::AccountLimit {
            self.fallbacks.rest(model.name(), message);
        }
    }

    /// The first model of the chain that has a key, is none of `tried`, is not left alone, and has a context window larger
    /// than `window` where that is given. It thinks as hard as its name says, as the settings say of it, or as `level`.
    pub(crate) async fn next_model(
        self: &Arc<Self>,
        tried: &[ModelName],
        window: Option<u64>,
        level: ThinkingLevel,
    ) -> Option<Choice> {
        let names = self.fallbacks.names();
        if names.is_empty() {
            return None;
        }
        let ModelScope { models, .. } =
            self.with_usable_models(move |usable_models| resolve_fallbacks(usable_models, &names)).await;
        let fits = |scoped: &ScopedModel| {
            let name = scoped.model.name();
            !tried.contains(&name)
                && window.is_none_or(|window| window > 0 && scoped.model.context_window > window)
                && self.fallbacks.resting(&name).is_none()
        };
        let ScopedModel { model, level: pinned } = models.into_iter().find(fits)?;
        let of_settings = self.settings.model_thinking_levels.as_ref();
        let of_settings =
            of_settings.and_then(|levels| levels.get(&format!("{}/{}", model.provider, model.id)).copied());
        let level = model.clamp_thinking(Some(pinned.or(of_settings).unwrap_or(level)));
        Some(Choice { model, level })
    }
}

pub(crate) fn check_names(names: &[String]) -> Option<Failure> {
    let refuse = |text: String| Some(Failure::new(ErrorCode::InvalidField, text));
    if names.iter().any(String::is_empty) {
        return refuse("models: a name is empty".to_owned());
    }
    if names.len() > MOST {
        return refuse(format!("models: {} names are more than the {MOST} that are taken", names.len()));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(id: &str) -> ModelName {
        ModelName { provider: "p".into(), id: id.into() }
    }

    #[test]
    fn what_another_model_may_do_better() {
        let check = |message: &str, expected: Option<FallbackReason>| {
            let stored = failure::classify_message("p", message);
            assert_eq!(reason(None, Some(stored), message), expected, "{message}");
        };
        check("401: bad key", Some(FallbackReason::Auth));
        check("429: insufficient_quota", Some(FallbackReason::AccountLimit));
        check("404: the model `x` does not exist", Some(FallbackReason::Refused));
        check("503: overloaded", Some(FallbackReason::Unavailable));
        check("400: prompt is too long", Some(FallbackReason::ContextOverflow));
        check("odd", Some(FallbackReason::Failed));
        assert_eq!(reason(None, Some(FailureKind::Aborted), "Request was aborted"), None);
        assert_eq!(reason(None, None, ""), None);
        // What the provider said itself is more exact than the text.
        let said = failure::Failure::new(FailureKind::Auth, "odd");
        assert_eq!(reason(Some(&said), Some(FailureKind::Fatal), "odd"), Some(FallbackReason::Auth));
    }

    #[test]
    fn what_a_command_chooses_counts_in_the_place_of_settings() {
        let chain = FallbackChain::new(&["a".into()]);
        assert_eq!((&*chain.names(), chain.chosen()), (&["a".to_owned()][..], None));
        chain.choose(Some(["b".to_owned()].into()));
        assert_eq!(&*chain.names(), ["b"]);
        chain.choose(Some([].into()));
        assert!(chain.names().is_empty());
        assert!(check_names(&[String::new()]).is_some() && check_names(&vec!["m".into(); 33]).is_some());
        assert!(check_names(&["m".into()]).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_model_without_credit_is_left_alone_for_some_minutes() {
        let chain = FallbackChain::default();
        chain.rest(name("a"), "no credit");
        assert_eq!(chain.resting(&name("a")).as_deref(), Some("no credit"));
        assert_eq!(chain.resting(&name("b")), None);
        tokio::time::advance(REST).await;
        assert_eq!(chain.resting(&name("a")), None);
        chain.rest(name("a"), "no credit");
        chain.wake(&name("a"));
        assert_eq!(chain.resting(&name("a")), None);
    }
}
