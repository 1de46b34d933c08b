//! The provider APIs that agentd speaks, by name: the list of all built-in ones.

use std::{collections::BTreeMap, fmt, sync::Arc};

use agentd_http::Network;
use agentd_memory::MemoryAccount;

use crate::{
    Provider,
    http::HttpProvider,
    providers::{
        anthropic_messages::AnthropicMessages,
        azure_openai::AzureOpenAi,
        bedrock_converse::BedrockConverse,
        google::{GoogleGenerativeAi, GoogleVertex},
        mistral_conversations::MistralConversations,
        openai_codex::OpenAiCodex,
        openai_completions::OpenAiCompletions,
        openai_responses::OpenAiResponses,
        pi_messages::PiMessages,
        scripted::Scripted,
    },
    record_replay::{ExchangeMode, Player, Transport},
};

/// Providers by the name of their API. Built once and passed down; cheap to clone.
#[derive(Clone, Default)]
pub struct ProviderRegistry {
    providers: BTreeMap<String, Arc<dyn Provider>>,
    transport: Arc<Transport>,
    player: Option<Arc<Player>>,
}

impl ProviderRegistry {
    /// All built-in provider APIs. Nothing is opened or started before the first request.
    #[must_use]
    pub fn builtin() -> Self {
        Self::with_exchange_mode(ExchangeMode::Live, MemoryAccount::default())
    }

    /// All built-in provider APIs, with requests in the given mode (those of the scripted model never leave the process). The memory of
    /// running answers is charged to `memory`; an answer that gets none fails.
    #[must_use]
    pub fn with_exchange_mode(mode: ExchangeMode, memory: MemoryAccount) -> Self {
        let player = if let ExchangeMode::Replayed(player) = &mode { Some(Arc::clone(player)) } else { None };
        let clients = Arc::new(Transport { exchange_mode: mode, memory, ..Transport::default() });
        Self { player, transport: Arc::clone(&clients), ..Self::default() }
            .with("anthropic-messages", Arc::new(HttpProvider::new(Arc::clone(&clients), AnthropicMessages)))
            .with(
                "bedrock-converse-stream",
                Arc::new(HttpProvider::new(Arc::clone(&clients), BedrockConverse)),
            )
            .with(
                "google-generative-ai",
                Arc::new(HttpProvider::new(Arc::clone(&clients), GoogleGenerativeAi::default())),
            )
            .with("google-vertex", Arc::new(HttpProvider::new(Arc::clone(&clients), GoogleVertex::default())))
            .with(
                "mistral-conversations",
                Arc::new(HttpProvider::new(Arc::clone(&clients), MistralConversations)),
            )
            .with("pi-messages", Arc::new(HttpProvider::new(Arc::clone(&clients), PiMessages)))
            .with("openai-completions", Arc::new(HttpProvider::new(Arc::clone(&clients), OpenAiCompletions)))
            .with("azure-openai-responses", Arc::new(HttpProvider::new(Arc::clone(&clients), AzureOpenAi)))
            .with("openai-codex-responses", Arc::new(HttpProvider::new(Arc::clone(&clients), OpenAiCodex)))
            .with("openai-responses", Arc::new(HttpProvider::new(clients, OpenAiResponses)))
            .with("scripted", Arc::new(Scripted::default()))
    }

    /// Adds a provider; one of the same name is replaced.
    #[must_use]
    pub fn with(mut self, api: impl Into<String>, provider: Arc<dyn Provider>) -> Self {
        self.providers.insert(api.into(), provider);
        self
    }

    /// The provider for `api`; `None` for an unknown name ([`ProviderRegistry::apis`] lists the known ones).
    #[must_use]
    pub fn get(&self, api: &str) -> Option<Arc<dyn Provider>> {
        self.providers.get(api).cloned()
    }

    /// Closes the connections to providers that only requests with this network have used. Later requests open new ones.
    pub fn release(&self, network: &Arc<Network>) {
        self.transport.clients.release(network);
    }

    /// The player, when answers are replayed: requests then need no credentials of the user.
    #[must_use]
    pub fn player(&self) -> Option<&Arc<Player>> {
        self.player.as_ref()
    }

    /// The names of all provider APIs, sorted.
    pub fn apis(&self) -> impl Iterator<Item = &str> {
        self.providers.keys().map(String::as_str)
    }
}

impl fmt::Debug for ProviderRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.apis()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_apis_are_found_by_name() {
        let registry = ProviderRegistry::builtin();
        assert_eq!(
            registry.apis().collect::<Vec<_>>(),
            [
                "anthropic-messages",
                "azure-openai-responses",
                "bedrock-converse-stream",
                "google-generative-ai",
                "google-vertex",
                "mistral-conversations",
                "openai-codex-responses",
                "openai-completions",
                "openai-responses",
                "pi-messages",
                "scripted"
            ]
        );
        assert!(registry.get("scripted").is_some() && registry.get("telepathy").is_none());
    }
}
