//! The neutral request: what every adapter gets.

use std::{fmt, sync::Arc, time::Duration};

use agentd_protocol::{
    Json,
    message::Message,
    model::{Model, ThinkingLevel},
    secret::Secret,
};

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
    /// Whether images are kept from the model.
    pub block_images: bool,
    /// How long the provider should keep the prompt in its cache.
    pub cache_retention: CacheRetention,
    /// Tokens for thinking, where a provider takes a budget instead of a word.
    pub thinking_budgets: ThinkingBudgets,
    /// How often the HTTP request itself is sent again while nothing of an answer has come.
    pub retries: HttpRetries,
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
            block_images: false,
            cache_retention: CacheRetention::default(),
            thinking_budgets: ThinkingBudgets::default(),
            retries: HttpRetries::default(),
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

/// What authorises a request. `Debug` shows none of it.
#[derive(Clone, Default)]
pub struct Credentials {
    /// The API key.
    pub api_key: Option<Secret>,
    /// Headers configured for the provider or the model; they win over the adapter's own. One without a value takes
    /// that of the adapter away.
    pub headers: Vec<(String, Secret)>,
}

impl Credentials {
    /// The key without surrounding white space; `None` for one that is empty.
    pub(crate) fn key(&self) -> Option<&str> {
        self.api_key.as_ref().map(|key| key.expose().trim()).filter(|key| !key.is_empty())
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Credentials").field("api_key", &self.api_key).field("headers", &names).finish()
    }
}
