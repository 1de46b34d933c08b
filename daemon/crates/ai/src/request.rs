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
    /// Headers configured for the provider or the model; they win over the adapter's own.
    pub headers: Vec<(String, Secret)>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Credentials").field("api_key", &self.api_key).field("headers", &names).finish()
    }
}
