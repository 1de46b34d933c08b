//! The request that every provider gets, whatever its API.

use std::{fmt, pin::Pin, sync::Arc, time::Duration};

use agentd_http::Network;
pub use agentd_http::{Account, AwsKeys, Credentials};

use agentd_protocol::{
    Json,
    message::Message,
    model::{Model, ThinkingLevel},
};

use crate::{Deadlines, ExchangeHook};

/// One request to a model.
#[derive(Debug, Clone)]
pub struct Request {
    /// The model.
    pub model: Arc<Model>,
    /// The transcript, oldest first: system messages, prompts, answers, results and the derived kinds. The adapter makes it legal for its
    /// API.
    pub messages: Vec<Json<Message>>,
    /// The thinking level, which is one of the model's.
    pub thinking_level: ThinkingLevel,
    /// The session's id, as cache key and affinity hint.
    pub session_id: String,
    /// The key and headers of the provider.
    pub credentials: Credentials,
    /// The longest silence of the provider; `None` for no limit.
    pub idle_timeout: Option<Duration>,
    /// The other deadlines.
    pub deadlines: Deadlines,
    /// Proxies, certificates and timeouts of connections; `None` for those of the process's environment.
    pub network: Option<Arc<Network>>,
    /// Whether images are kept from the model.
    pub block_images: bool,
    /// The time for which the provider should cache the prompt.
    pub cache_retention: CacheRetention,
    /// Token budgets for thinking, for providers that take a budget instead of an effort.
    pub thinking_budgets: ThinkingBudgets,
    /// Retries of the HTTP request while nothing of an answer has come.
    pub retries: HttpRetries,
    /// Renews the credentials once if the provider refuses them before it answers.
    pub renew: Option<CredentialRenewer>,
    /// Sees the exchange with the provider.
    pub hooks: Option<ExchangeHook>,
    /// The tool that the model has to call, by its name; `None` leaves the choice to the model. Where the API, or the model as it thinks, has no
    /// such choice, nothing is asked for.
    pub forced_tool: Option<String>,
}

/// A shared [`RenewCredentials`]; cheap to clone.
#[derive(Clone)]
pub struct CredentialRenewer(pub Arc<dyn RenewCredentials>);

impl fmt::Debug for CredentialRenewer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CredentialRenewer")
    }
}

/// The token budget of each thinking level (setting `thinkingBudgets`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThinkingBudgets {
    /// For `minimal`; default 1024.
    pub minimal: u64,
    /// For `low`; default 2048.
    pub low: u64,
    /// For `medium`; default 8192.
    pub medium: u64,
    /// For `high` and above; default 16384.
    pub high: u64,
}

impl Default for ThinkingBudgets {
    fn default() -> Self {
        Self { minimal: 1024, low: 2048, medium: 8192, high: 16_384 }
    }
}

impl ThinkingBudgets {
    /// The budget of a level; 0 for `off`.
    #[must_use]
    pub fn of(&self, level: ThinkingLevel) -> u64 {
        match level {
            ThinkingLevel::Off => 0,
            ThinkingLevel::Minimal => self.minimal,
            ThinkingLevel::Low => self.low,
            ThinkingLevel::Medium => self.medium,
            ThinkingLevel::High | ThinkingLevel::Xhigh | ThinkingLevel::Max => self.high,
        }
    }
}

/// Retries of an HTTP request (settings `retry.provider`). Only requests that failed before any byte of an answer with a status of success
/// are sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpRetries {
    /// The most retries; default 0.
    pub max: u32,
    /// The longest pause that a server may ask for; default 60 s. Zero for no limit.
    pub max_delay: Duration,
    /// The timeout for the start of the answer; `None` for the idle timeout only.
    pub first_byte_timeout: Option<Duration>,
}

impl Default for HttpRetries {
    fn default() -> Self {
        Self { max: 0, max_delay: Duration::from_secs(60), first_byte_timeout: None }
    }
}

impl Request {
    /// A request with defaults for all else: no thinking, no session, no credentials, no limits.
    #[must_use]
    pub fn new(model: Arc<Model>, messages: Vec<Json<Message>>) -> Self {
        Self {
            model,
            messages,
            thinking_level: ThinkingLevel::Off,
            session_id: String::new(),
            credentials: Credentials::default(),
            idle_timeout: None,
            deadlines: Deadlines::default(),
            network: None,
            block_images: false,
            cache_retention: CacheRetention::default(),
            thinking_budgets: ThinkingBudgets::default(),
            retries: HttpRetries::default(),
            renew: None,
            hooks: None,
            forced_tool: None,
        }
    }
}

/// The time for which providers are asked to cache the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CacheRetention {
    /// Not at all.
    None,
    /// The provider's default: minutes.
    #[default]
    Short,
    /// The provider's longest time, if it is known to work: an hour to a day.
    Long,
}

/// Renews credentials that a provider refused.
pub trait RenewCredentials: Send + Sync {
    /// Credentials to try in the place of `refused`; `None` where there are no others, which leaves the refusal as the
    /// answer. An error is for the user, without secrets.
    ///
    /// Cancel safety: dropping the future gives the attempt up; credentials that were renewed already stay renewed.
    fn renew<'a>(&'a self, refused: &'a Credentials) -> RenewalFuture<'a>;
}

/// The result of [`RenewCredentials::renew`].
pub type RenewalFuture<'a> =
    Pin<Box<dyn Future<Output = Option<Result<RenewedCredentials, String>>> + Send + 'a>>;

/// Credentials that were renewed.
#[derive(Debug, Clone)]
pub struct RenewedCredentials {
    /// The new credentials.
    pub credentials: Credentials,
    /// The new address in place of the model's, if it changed.
    pub base_url: Option<String>,
    /// Advice to the user for the case that these are refused, too. Sentences.
    pub advice: String,
}
