//! The models that are asked, one after the other, when the chosen one fails for good.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agentd_ai::failure::{self, FailureKind, is_account_limit};
use agentd_protocol::{
    error::{ErrorCode, Failure},
    event::{FallbackReason, ModelFallback},
    model::ModelName,
};
use tokio::time::Instant;

use super::choice::Choice;

/// Time that a model is not asked after its account came to a limit.
const SUSPENSION: Duration = Duration::from_secs(5 * 60);

/// The most models of a chain: each may cost a request before a prompt is answered.
const MOST: usize = 32;

/// The names of the models, and which models are left alone for a while.
#[derive(Debug, Default)]
pub(crate) struct FallbackChain {
    /// The names of flags and settings.
    configured: Arc<[String]>,
    /// The names of a command, which override them.
    chosen: Mutex<Option<Arc<[String]>>>,
    /// Until when models are not asked, and their errors.
    suspended: Mutex<HashMap<ModelName, (Instant, String)>>,
}

impl FallbackChain {
    pub(crate) fn new(configured: &[String]) -> Self {
        Self { configured: configured.into(), ..Self::default() }
    }

    /// The names as they were given.
    pub(crate) fn names(&self) -> Arc<[String]> {
        self.chosen().unwrap_or_else(|| Arc::clone(&self.configured))
    }

    /// The names that a command chose, if one did.
    pub(crate) fn chosen(&self) -> Option<Arc<[String]>> {
        lock(&self.chosen).clone()
    }

    /// Takes what a command chose in the place of flags and settings.
    pub(crate) fn choose(&self, names: Option<Arc<[String]>>) {
        *lock(&self.chosen) = names;
    }

    /// Asks a model no more for a while; `why` is its error.
    pub(crate) fn suspend(&self, model: ModelName, why: &str) {
        lock(&self.suspended).insert(model, (Instant::now() + SUSPENSION, why.to_owned()));
    }

    /// Why a model is not asked; `None` for one that can be asked.
    pub(crate) fn suspended(&self, model: &ModelName) -> Option<String> {
        let mut suspended = lock(&self.suspended);
        let now = Instant::now();
        suspended.retain(|_, (until, _)| *until > now);
        suspended.get(model).map(|(_, why)| why.clone())
    }

    /// A model that somebody chooses is asked again.
    pub(crate) fn end_suspension(&self, model: &ModelName) {
        lock(&self.suspended).remove(model);
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
        FailureKind::Aborted | FailureKind::BudgetReached => None,
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

/// The model that takes over after a failed answer, and the event that says so.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Substitute {
    pub(crate) choice: Choice,
    pub(crate) event: ModelFallback,
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
        chain.suspend(name("a"), "no credit");
        assert_eq!(chain.suspended(&name("a")).as_deref(), Some("no credit"));
        assert_eq!(chain.suspended(&name("b")), None);
        tokio::time::advance(SUSPENSION).await;
        assert_eq!(chain.suspended(&name("a")), None);
        chain.suspend(name("a"), "no credit");
        chain.end_suspension(&name("a"));
        assert_eq!(chain.suspended(&name("a")), None);
    }
}
