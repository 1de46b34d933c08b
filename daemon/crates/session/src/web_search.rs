//! What a session has for searching the web: keys of services, and its own model where that can search.

use std::{sync::Arc, time::Duration};

use agentd_auth::{Auth, Secret};
use agentd_protocol::{
    model::Model,
    settings::{WebSearchProvider, WebSearchSettings},
};
use agentd_web::{SearchAccess, SearchOptions, Vendor, VendorKind};
use futures::future::BoxFuture;

use crate::{budget::SessionBudget, context::ContextLink, current_model::CurrentModel, web::WebSources};

/// The time for each service.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The longest time for each.
const MAX_TIMEOUT: Duration = Duration::from_secs(300);

/// Keys of Anthropic that are tokens of a login, which its tool for searching is not for.
const LOGIN_TOKEN: &str = "sk-ant-oat";

/// Keys and the model of a session.
pub(crate) struct SessionSearch {
    pub(crate) auth: Auth,
    pub(crate) link: ContextLink,
    pub(crate) model: CurrentModel,
    pub(crate) budget: Arc<SessionBudget>,
    /// Whether models are played back from a recording.
    pub(crate) is_replayed: bool,
}

impl SessionSearch {
    /// The options for searching.
    pub(crate) fn options(self, settings: Option<&WebSearchSettings>, web: &WebSources<'_>) -> SearchOptions {
        let WebSearchSettings { providers, timeout_ms, base_urls } = settings.cloned().unwrap_or_default();
        SearchOptions {
            providers: providers.unwrap_or_else(|| WebSearchProvider::ALL.to_vec()),
            base_urls,
            timeout: timeout_ms.map_or(TIMEOUT, Duration::from_millis).min(MAX_TIMEOUT),
            http: Arc::clone(&self.auth.services().http),
            network: Arc::clone(web.network),
            access: Arc::new(self),
            refused: web.refusal(),
        }
    }

    /// The vendor of the session's model, where it can search with what the session has.
    fn kind(&self) -> Option<(VendorKind, Arc<Model>)> {
        let model = self.model.get()?;
        let kind = VendorKind::of(&model.provider, &model.api)?;
        // A budget would not see what the search costs; a login is for the vendor's own programs.
        let can_be_used = !self.is_replayed
            && !self.budget.is_limited()
            && self.auth.is_configured(&model.provider)
            && self.auth.login(&model.provider).is_none();
        can_be_used.then_some((kind, model))
    }
}

/// The variable that holds the key of a service.
fn variable(service: WebSearchProvider) -> &'static str {
    match service {
        WebSearchProvider::Brave => "BRAVE_API_KEY",
        WebSearchProvider::Tavily => "TAVILY_API_KEY",
        WebSearchProvider::Exa => "EXA_API_KEY",
        WebSearchProvider::Searxng => "SEARXNG_TOKEN",
        WebSearchProvider::Vendor => "",
    }
}

impl SearchAccess for SessionSearch {
    fn has_key(&self, service: WebSearchProvider) -> bool {
        self.auth.has_service_key(service.as_str(), variable(service))
    }

    fn has_vendor(&self) -> bool {
        self.kind().is_some()
    }

    fn key(&self, service: WebSearchProvider) -> BoxFuture<'_, Result<Option<Secret>, String>> {
        Box::pin(async move {
            let key = self.auth.service_key(service.as_str(), variable(service)).await;
            key.map_err(|error| error.to_string())
        })
    }

    fn vendor(&self) -> BoxFuture<'_, Result<Option<Vendor>, String>> {
        Box::pin(async move {
            let Some((kind, model)) = self.kind() else { return Ok(None) };
            let Some(context) = self.link.get() else { return Ok(None) };
            let (credentials, model) = context.credentials(&model).await.map_err(|failure| failure.error)?;
            if credentials.key().is_some_and(|key| key.starts_with(LOGIN_TOKEN)) {
                return Ok(None);
            }
            Ok(Some(Vendor { kind, model: model.id.clone(), base_url: model.base_url.clone(), credentials }))
        })
    }
}
