//! Who is asked, in which order, and what comes of it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use agentd_http::{HttpClients, Network, Secret};
use agentd_protocol::settings::WebSearchProvider;
use futures::future::BoxFuture;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::{
    arguments::SearchArguments,
    ask::Ask,
    query::Query,
    response::SearchResponse,
    services,
    vendor::{self, Vendor},
};

/// What a session has for searching.
pub trait SearchAccess: Send + Sync {
    /// Whether there is a key of a service. Reads no files.
    fn has_key(&self, service: WebSearchProvider) -> bool;

    /// Whether the session's model can search by itself, with what the session has. Reads no files.
    fn has_vendor(&self) -> bool;

    /// The key of a service.
    ///
    /// # Errors
    /// Why there is none though one is configured, for the model and the user.
    fn key(&self, service: WebSearchProvider) -> BoxFuture<'_, Result<Option<Secret>, String>>;

    /// The session's model as a service that searches.
    ///
    /// # Errors
    /// As of [`Self::key`].
    fn vendor(&self) -> BoxFuture<'_, Result<Option<Vendor>, String>>;
}

/// How a session searches: the setting `webSearch`.
#[derive(Clone)]
pub struct SearchOptions {
    /// Who is asked, in this order.
    pub providers: Vec<WebSearchProvider>,
    /// Other addresses of services.
    pub base_urls: BTreeMap<WebSearchProvider, String>,
    /// The time for each.
    pub timeout: Duration,
    /// The clients of the daemon.
    pub http: Arc<HttpClients>,
    /// Proxies, certificates and timeouts.
    pub network: Arc<Network>,
    /// Keys, and the session's model.
    pub access: Arc<dyn SearchAccess>,
    /// Why nothing can be asked at all, in a clause.
    pub refused: Option<String>,
}

/// What a search came to.
pub(super) struct Found {
    pub(super) response: SearchResponse,
    pub(super) notes: Vec<String>,
}

impl SearchOptions {
    /// Those that can be asked.
    pub(super) fn chain(&self) -> Vec<WebSearchProvider> {
        let can_be_asked = |service: &WebSearchProvider| match service {
            WebSearchProvider::Vendor => self.access.has_vendor(),
            // An own server may need no key.
            WebSearchProvider::Searxng => self.base_urls.contains_key(service),
            service => self.access.has_key(*service),
        };
        self.providers.iter().copied().filter(can_be_asked).collect()
    }

    /// Asks one after the other until one has an answer.
    ///
    /// # Errors
    /// What each said, for the model. Cancel safe.
    pub(super) async fn search(
        &self,
        arguments: &SearchArguments,
        cancel: &CancellationToken,
    ) -> Result<Found, String> {
        let query = Query::parse(&arguments.query);
        let (mut failures, mut notes) = (Vec::new(), Vec::new());
        let mut chain = self.chain();
        if let Some(first) = arguments.provider {
            let is_there = chain.contains(&first);
            chain.retain(|service| *service != first);
            if is_there {
                chain.insert(0, first);
            } else {
                let why = format!(
                    "{} cannot be asked: it has no key, or the settings leave it out",
                    first.as_str()
                );
                if arguments.no_fallback {
                    return Err(why);
                }
                notes.push(why);
            }
        }
        if arguments.no_fallback {
            chain.truncate(1);
        }
        for service in chain {
            match self.ask(service, &query, arguments, cancel).await {
                Ok(mut response) => {
                    response.date(Timestamp::now());
                    let (sources, relaxed) = query.filter(std::mem::take(&mut response.sources));
                    response.sources = sources;
                    response.sources.truncate(usize::try_from(arguments.count()).unwrap_or(usize::MAX));
                    notes.extend(relaxed);
                    return Ok(Found { response, notes });
                }
                Err(_) if cancel.is_cancelled() => return Err("Operation aborted".to_owned()),
                Err(why) => {
                    notes.push(format!("{} failed: {why}", service.as_str()));
                    failures.push(format!("{}: {why}", service.as_str()));
                }
            }
        }
        Err(match failures.as_slice() {
            [failure] if arguments.no_fallback => format!("The web search failed: {failure}"),
            [] => "No web search provider can be asked: the user can set a key (BRAVE_API_KEY, TAVILY_API_KEY, EXA_API_KEY) or a \
                   server of SearXNG (setting webSearch.baseUrls)"
                .to_owned(),
            failures => format!("All web search providers failed: {}", failures.join("; ")),
        })
    }

    async fn ask(
        &self,
        service: WebSearchProvider,
        query: &Query,
        arguments: &SearchArguments,
        cancel: &CancellationToken,
    ) -> Result<SearchResponse, String> {
        let (request, vendor) = match service {
            WebSearchProvider::Vendor => {
                let vendor =
                    self.access.vendor().await?.ok_or("the session's model cannot search by itself")?;
                (vendor::request(&vendor, arguments)?, Some(vendor))
            }
            service => {
                let base =
                    self.base_urls.get(&service).map(String::as_str).or_else(|| services::base_url(service));
                let base = base.ok_or("it has no address")?;
                let key = self.access.key(service).await?;
                (services::request(service, base, key.as_ref(), query, arguments)?, None)
            }
        };
        let ask = Ask {
            name: services::name(service),
            url: request.url,
            headers: request.headers,
            body: request.body,
            http: &self.http,
            network: &self.network,
            timeout: self.timeout,
        };
        let answer = ask.send(cancel).await?;
        let response = match &vendor {
            Some(vendor) => vendor::response(vendor, &answer),
            None => services::response(service, &answer),
        };
        // Another one may find something.
        if response.is_empty() { Err("it found nothing".to_owned()) } else { Ok(response) }
    }
}
