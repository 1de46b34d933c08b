//! The neutral request: what every adapter gets.

use std::{fmt, pin::Pin, sync::Arc, time::Duration};

use agentd_http::Network;
pub use agentd_http::{Account, AwsKeys, Credentials};

use agentd_protocol::{
    Json,
    message::Message,
    model::{Model, ThinkingLevel},
};

use crate::Deadlines;

/// One question to a model.
#[derive(Debug, Clone)]
pub struct Request {
    /// The model.
    pub model: Arc<Model>,
    /// The transcript, oldest first: system messages, prompts, answers, results and the derived kinds. The adapter makes
    /// it legal for its wire.
    pub messages: Vec<Json<Message>>,
    /// How hard to think; already one of the model's levels.
    pub thinking_level: ThinkingLevel,
    /// The session's id, as cache key and affinity hint.
    pub session_id: String,
    /// The key and headers of the provider.
    pub credentials: Credentials,
    /// How long the provider may be silent; `None` for no limit.
    pub idle_timeout: Option<Duration>,
    /// The other limits of time.
    pub deadlines: Deadlines,
    /// How connections come about; `None` for what the environment of the process says.
    pub network: Option<Arc<Network>>,
    /// Whether images are kept from the model.
    pub block_images: bool,
    /// How long the provider should keep the prompt in its cache.
    pub cache_retention: CacheRetention,
    /// Tokens for thinking, where a provider takes a budget instead of a word.
    pub thinking_budgets: ThinkingBudgets,
    /// How often the HTTP request itself is sent again while nothing of an answer has come.
    pub retries: HttpRetries,
    /// Asked once for other credentials when the provider refuses these before it answers.
    pub renew: Option<CredentialRenewer>,
}

/// How credentials are renewed; cheap to clone.
#[derive(Clone)]
pub struct CredentialRenewer(pub Arc<dyn RenewCredentials>);

impl fmt::Debug for CredentialRenewer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CredentialRenewer")
    }
}

/// Tokens that each thinking level may use (setting `thinkingBudgets`).
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

/// When an HTTP request is sent again (settings `retry.provider`). Only what failed before any byte of an answer with a
/// good status came is ever sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpRetries {
    /// How often at most; default 0.
    pub max: u32,
    /// The longest wait that a server may ask for; default 60 s. Zero for no limit.
    pub max_delay: Duration,
    /// How long the server may take until its answer begins; `None` leaves it to the idle limit.
    pub first_byte_timeout: Option<Duration>,
}

impl Default for HttpRetries {
    fn default() -> Self {
        Self { max: 0, max_delay: Duration::from_secs(60), first_byte_timeout: None }
    }
}

impl Request {
    /// A request with everything else at its default: no thinking, no session, no credentials, no limits.
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
        }
    }
}

/// How long providers are asked to keep the prompt in their cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CacheRetention {
    /// Not at all.
    None,
    /// As long as they do by default: minutes.
    #[default]
    Short,
    /// As long as they can: an hour to a day, where that is known to work.
    Long,
}

/// Gets other credentials in the place of some that a provider refused.
pub trait RenewCredentials: Send + Sync {
    /// Credentials to try in the place of `refused`; `None` where there are no others, which leaves the refusal as the
    /// answer. An error is for the user, without secrets.
    ///
    /// Cancel safety: dropping the future gives the attempt up; what was renewed already stays renewed.
    fn renew<'a>(&'a self, refused: &'a Credentials) -> RenewalFuture<'a>;
}

/// What comes of [`RenewCredentials::renew`].
pub type RenewalFuture<'a> =
    Pin<Box<dyn Future<Output = Option<Result<RenewedCredentials, String>>> + Send + 'a>>;

/// Credentials that were renewed.
#[derive(Debug, Clone)]
pub struct RenewedCredentials {
    /// What authorises from now on.
    pub credentials: Credentials,
    /// The address in the place of the model's, where it changed.
    pub base_url: Option<String>,
    /// What to do where these are refused too, for the user. Sentences.
    pub advice: String,
}
