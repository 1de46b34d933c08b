//! One GET, with its redirects.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::{Bytes, BytesMut};
use reqwest::{
    Client, Response, StatusCode, Url,
    header::{ACCEPT, ACCEPT_LANGUAGE, CONTENT_TYPE, HeaderMap, LOCATION, USER_AGENT},
};
use tokio::{
    sync::{OnceCell, OwnedSemaphorePermit},
    time::{Instant, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::{
    WebError,
    address::literal,
    cache::{Cached, StoredAnswer},
    resolver::{GuardedResolver, Lookup, PrivateAddress},
    robots::{AGENT, MAX_BYTES, Robots},
};
use crate::{WebOptions, WebStore};

/// For how long the `robots.txt` of a site counts.
const ROBOTS_LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// For how long one that could not be read counts.
const ROBOTS_RETRY: Duration = Duration::from_secs(300);

/// What we are called, in each request.
const USER_AGENT_TEXT: &str =
    concat!("agentd/", env!("CARGO_PKG_VERSION"), " (coding agent; reads pages for its user)");

/// Gets what is at URLs, for one call of a tool.
pub(crate) struct Fetcher<'a> {
    pub(crate) store: &'a WebStore,
    pub(crate) options: &'a WebOptions,
    pub(crate) lookup: &'a Arc<dyn Lookup>,
    /// When the call has to be over.
    pub(crate) deadline: Instant,
    /// The time that the call has, for messages.
    pub(crate) limit: Duration,
    pub(crate) cancel: &'a CancellationToken,
    /// The host that was asked for: the permissions have judged it already.
    pub(crate) asked: &'a str,
    /// One of the calls that may have bodies in memory, from the first body to the end of the call.
    pub(crate) place: OnceCell<OwnedSemaphorePermit>,
}

/// What is to be got.
pub(crate) struct Get<'a> {
    pub(crate) url: &'a Url,
    pub(crate) accept: &'a str,
    /// Bytes of the body; `None` for those of the setting.
    pub(crate) most: Option<usize>,
    /// Whether it is an interface for programs, which `robots.txt` is not about.
    pub(crate) is_api: bool,
}

/// What was got.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// Where it was, after redirects.
    pub(crate) url: Url,
    pub(crate) status: StatusCode,
    /// The header; empty where there is none.
    pub(crate) content_type: String,
    pub(crate) body: Bytes,
    /// What the reader should know.
    pub(crate) notes: Vec<String>,
}

impl Answer {
    /// The media type, in lower case, without parameters.
    pub(crate) fn media_type(&self) -> String {
        self.content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }
}

impl Fetcher<'_> {
    /// Gets what is at a URL, whatever the status.
    ///
    /// # Errors
    /// [`WebError`]. Cancel safe.
    pub(crate) async fn get(&self, get: Get<'_>) -> Result<Answer, WebError> {
        if let Some(why) = &self.options.refused {
            return Err(WebError::Refused { url: get.url.to_string(), why: why.clone() });
        }
        let most = get.most.unwrap_or(self.options.max_body).min(self.options.max_body);
        let (mut url, mut notes) = (get.url.clone(), Vec::new());
        for hop in 0.. {
            self.check_host(&url)?;
            if self.options.respect_robots && !get.is_api && !self.permits_robots(&url).await? {
                let why = "its robots.txt asks programs to leave it alone (the user can set web.respectRobots to false)".to_owned();
                return Err(WebError::Refused { url: url.into(), why });
            }
            let stored = self.one(&url, get.accept, most).await?;
            let Some(next) = redirect(&stored) else {
                if url != *get.url {
                    notes.insert(0, format!("redirected from {}", get.url));
                }
                let content_type =
                    stored.headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default();
                return Ok(Answer {
                    content_type: content_type.to_owned(),
                    status: stored.status,
                    body: stored.body.clone(),
                    notes,
                    url,
                });
            };
            if hop >= self.options.max_redirects {
                let why = format!(
                    "it redirects more than {} times (setting web.maxRedirects)",
                    self.options.max_redirects
                );
                return Err(WebError::Failed { url: get.url.to_string(), why });
            }
            let refused = |why: &str| WebError::Refused { url: url.to_string(), why: why.to_owned() };
            let mut next = url.join(&next).map_err(|_| refused("it redirects to what is no URL"))?;
            if !matches!(next.scheme(), "http" | "https") {
                return Err(refused("it redirects to what is no http:// or https:// URL"));
            }
            if !next.username().is_empty() || next.password().is_some() {
                // Nobody asked for them to be sent.
                let _ = (next.set_username(""), next.set_password(None));
                notes.push("the redirect had credentials, which were left out".to_owned());
            }
            next.set_fragment(None);
            url = next;
        }
        Err(WebError::Aborted)
    }

    /// Whether a host may be asked at all, before anything is sent.
    fn check_host(&self, url: &Url) -> Result<(), WebError> {
        let refused = |why: String| WebError::Refused { url: url.to_string(), why };
        let host = url.host_str().unwrap_or_default();
        if host != self.asked {
            self.options.hosts.check(host).map_err(|why| {
                refused(format!("{why}. To ask for this host itself, call the tool with this URL"))
            })?;
        }
        let allowed = &self.options.allowed;
        if allowed.names(url) {
            return Ok(());
        }
        let private = |why: &str| {
            refused(format!(
                "{host} {why}. If it is meant, the user can allow the host by the setting web.allowedHosts"
            ))
        };
        match literal(url) {
            Some(address) if !allowed.permits(address) => Err(private("is not a public address")),
            Some(_) => Ok(()),
            None => {
                let secure = url.scheme() == "https";
                let is_proxy = self.options.network.proxy(secure).is_some_and(|proxy| proxy.host() == host);
                // Names of this machine never leave it, whatever answers for them.
                let is_local = host == "localhost" || host.ends_with(".localhost") || is_proxy;
                if is_local { Err(private("names this machine or its network")) } else { Ok(()) }
            }
        }
    }

    /// One answer: from the cache, or of the server.
    async fn one(&self, url: &Url, accept: &str, most: usize) -> Result<Arc<StoredAnswer>, WebError> {
        // What one session may read in its own network is no answer for another one.
        let variant = format!("{accept} {:?}", self.options.allowed);
        let cached = match self.options.cache_bytes {
            0 => Cached::Nothing,
            _ => self.store.cache.find(url.as_str(), &variant, SystemTime::now()),
        };
        let stale = match cached {
            Cached::Fresh(answer) => return Ok(answer),
            Cached::Stale(answer) => Some(answer),
            Cached::Nothing => None,
        };
        self.check_proxied(url).await?;
        let (options, failed) = (self.options, |why: String| WebError::Failed { url: url.to_string(), why });
        let (clients, network, lookup) =
            (self.store.clients.clone(), Arc::clone(&options.network), Arc::clone(self.lookup));
        let (allowed, wanted) = (options.allowed.clone(), url.clone());
        // The first for https reads certificates.
        let client =
            tokio::task::spawn_blocking(move || clients.get(&wanted, &network, &allowed, &lookup)).await;
        let client: Client =
            client.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.to_string()))?;
        let mut request = client
            .get(url.clone())
            .header(USER_AGENT, USER_AGENT_TEXT)
            .header(ACCEPT, accept)
            .header(ACCEPT_LANGUAGE, "en, *;q=0.5");
        for (name, value) in stale.iter().flat_map(|answer| answer.validators()) {
            request = request.header(name, value);
        }
        let response = self.within(url, request.send()).await?.map_err(|error| self.explain(url, &error))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let now = SystemTime::now();
        if status == StatusCode::NOT_MODIFIED
            && let Some(stale) = stale
        {
            let confirmed = Arc::new(stale.confirmed(&headers, now));
            self.store.cache.store(url.as_str(), &variant, &confirmed, options.cache_bytes);
            return Ok(confirmed);
        }
        let body =
            if is_redirect(status) { Bytes::new() } else { self.body(url, response, &headers, most).await? };
        let answer = Arc::new(StoredAnswer::new(status, headers, body, now));
        if options.cache_bytes > 0 {
            self.store.cache.store(url.as_str(), &variant, &answer, options.cache_bytes);
        }
        Ok(answer)
    }

    /// Reads a body, unpacked, up to its limit.
    async fn body(
        &self,
        url: &Url,
        response: Response,
        headers: &HeaderMap,
        most: usize,
    ) -> Result<Bytes, WebError> {
        let too_long = || WebError::Failed {
            url: url.to_string(),
            why: format!("it is longer than {most} bytes (setting web.maxBodyBytes)"),
        };
        let announced = headers
            .get(reqwest::header::CONTENT_LENGTH)
            .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if announced.is_some_and(|length| length > most as u64) {
            return Err(too_long());
        }
        // Bodies of all sessions are in memory together.
        let place = self.place.get_or_try_init(|| Arc::clone(&self.store.bodies).acquire_owned());
        self.within(url, place).await?.map_err(|_| WebError::Aborted)?;
        let (mut response, mut body) = (response, BytesMut::new());
        while let Some(chunk) =
            self.within(url, response.chunk()).await?.map_err(|error| self.explain(url, &error))?
        {
            if body.len() + chunk.len() > most {
                return Err(too_long());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body.freeze())
    }

    /// Waits for something within the time of the call.
    async fn within<T>(&self, url: &Url, work: impl Future<Output = T>) -> Result<T, WebError> {
        let timed = timeout_at(self.deadline, work);
        match self.cancel.run_until_cancelled(timed).await {
            None => Err(WebError::Aborted),
            Some(Err(_)) => Err(WebError::TimedOut { url: url.to_string(), limit: self.limit }),
            Some(Ok(done)) => Ok(done),
        }
    }

    /// Behind a proxy, it is the proxy that looks the name up. A name that leads to a private address here is not given to it.
    async fn check_proxied(&self, url: &Url) -> Result<(), WebError> {
        let secure = url.scheme() == "https";
        let allowed = &self.options.allowed;
        if self.options.network.proxy(secure).is_none() || allowed.names(url) || literal(url).is_some() {
            return Ok(());
        }
        let host = url.host_str().unwrap_or_default();
        let found = self.within(url, GuardedResolver::look_up(&**self.lookup, allowed, host)).await?;
        match found {
            Err(error) if error.is::<PrivateAddress>() => {
                Err(WebError::Refused { url: url.to_string(), why: error.to_string() })
            }
            // Only the proxy may know the name.
            Ok(_) | Err(_) => Ok(()),
        }
    }

    fn explain(&self, url: &Url, error: &reqwest::Error) -> WebError {
        let url = url.to_string();
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
        while let Some(inner) = cause {
            if let Some(private) = inner.downcast_ref::<PrivateAddress>() {
                return WebError::Refused { url, why: private.to_string() };
            }
            cause = inner.source();
        }
        let what = if error.is_connect() { "no connection: " } else { "" };
        WebError::Failed { url, why: format!("{what}{}", agentd_http::deepest_cause(error)) }
    }

    /// Whether the site lets programs read a URL.
    async fn permits_robots(&self, url: &Url) -> Result<bool, WebError> {
        let Ok(file) = url.join("/robots.txt") else { return Ok(true) };
        if url.path() == "/robots.txt" {
            return Ok(true);
        }
        let site = url.origin().ascii_serialization();
        let known = self.store.robots.find(&site);
        let robots = match known {
            Some(robots) => robots,
            None => {
                let (robots, lifetime) = self.read_robots(&file).await?;
                let robots = Arc::new(robots);
                self.store.robots.store(site, lifetime, &robots);
                robots
            }
        };
        let path =
            url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
        Ok(robots.permits(&path))
    }

    /// Reads the `robots.txt` of a site, with a few redirects. One that is not there forbids nothing; nor does one that cannot be read:
    /// a person asks for single pages.
    async fn read_robots(&self, file: &Url) -> Result<(Robots, Duration), WebError> {
        let mut url = file.clone();
        for _ in 0..=5 {
            if self.check_host(&url).is_err() {
                break;
            }
            let answer = match self.one(&url, "text/plain", MAX_BYTES).await {
                Ok(answer) => answer,
                Err(error @ (WebError::Aborted | WebError::TimedOut { .. } | WebError::Refused { .. })) => {
                    return Err(error);
                }
                Err(_) => return Ok((Robots::default(), ROBOTS_RETRY)),
            };
            match redirect(&answer).and_then(|next| url.join(&next).ok()) {
                Some(next) if matches!(next.scheme(), "http" | "https") => url = next,
                _ if answer.status.is_success() => {
                    let robots = Robots::parse(&String::from_utf8_lossy(&answer.body), AGENT);
                    return Ok((robots, ROBOTS_LIFETIME));
                }
                _ if answer.status.is_client_error() => return Ok((Robots::default(), ROBOTS_LIFETIME)),
                _ => break,
            }
        }
        Ok((Robots::default(), ROBOTS_RETRY))
    }
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// Where an answer leads to.
fn redirect(answer: &StoredAnswer) -> Option<String> {
    let location = answer.headers.get(LOCATION).filter(|_| is_redirect(answer.status))?;
    Some(String::from_utf8_lossy(location.as_bytes()).into_owned())
}
