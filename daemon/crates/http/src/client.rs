//! The HTTP clients, made on first use.

use std::{
    error::Error as _,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use reqwest::{Client, Url, redirect::Policy};

use crate::{
    Clocks,
    network::{NamedProxy, Network, NetworkError},
};

/// How long an unused connection is kept.
const POOL_IDLE: Duration = Duration::from_secs(60);

/// Unused connections kept for one host.
const POOL_PER_HOST: usize = 2;

/// How many clients are kept. Sessions with the same network share theirs; the one that was made first goes first.
const MAX_CLIENTS: usize = 16;

/// A client for each network and kind of destination; a daemon that only talks to a local server never loads root
/// certificates.
#[derive(Debug)]
pub struct HttpClients {
    /// The network where a request brings none of its own.
    network: Arc<Network>,
    clients: Mutex<Vec<(Kind, Client)>>,
    clocks: Clocks,
}

/// What one client is for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Kind {
    network: Arc<Network>,
    /// HTTPS.
    secure: bool,
    /// Loopback and link-local hosts: never through a proxy.
    local: bool,
}

impl Default for HttpClients {
    /// With the network that the environment of this process describes.
    fn default() -> Self {
        Self::new(Network::of_process())
    }
}

/// The HTTP client could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// A proxy or certificate that is set up cannot be used.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The system's part is missing.
    #[error(
        "The HTTP client cannot start: {}. For https, this machine needs root certificates (the package ca-certificates, \
         or a file named in the setting caFile or in SSL_CERT_FILE).",
        deepest_cause(.0)
    )]
    Client(#[from] reqwest::Error),
}

/// The innermost cause of a network error: the outer layers only say that something failed, and may hold addresses.
#[must_use]
pub fn deepest_cause(error: &reqwest::Error) -> String {
    let mut deepest = error.source();
    while let Some(cause) = deepest.and_then(std::error::Error::source) {
        deepest = Some(cause);
    }
    deepest.map_or_else(|| "the request failed".to_owned(), ToString::to_string)
}

impl HttpClients {
    /// Clients for requests that bring no network of their own.
    #[must_use]
    pub fn new(network: Network) -> Self {
        Self { network: Arc::new(network), clients: Mutex::default(), clocks: Clocks::default() }
    }

    /// What is known of the clocks of servers.
    #[must_use]
    pub fn clocks(&self) -> &Clocks {
        &self.clocks
    }

    /// The client for `url`; cheap to clone, and shares its connections with its clones.
    ///
    /// # Errors
    /// Fails where the system's root certificates, or the proxy or certificates that the environment names, cannot be used.
    pub fn get(&self, url: &Url) -> Result<Client, ClientError> {
        self.get_by(url, &self.network)
    }

    /// The client for `url` by this network.
    ///
    /// # Errors
    /// As [`HttpClients::get`].
    pub fn get_by(&self, url: &Url, network: &Arc<Network>) -> Result<Client, ClientError> {
        let kind =
            Kind { network: Arc::clone(network), secure: url.scheme() == "https", local: is_local(url) };
        if let Some(client) = find(&self.lock(), &kind) {
            return Ok(client);
        }
        // Two first requests at once may both build one; the first to finish is kept.
        let client = build(&kind)?;
        let mut clients = self.lock();
        if let Some(other) = find(&clients, &kind) {
            return Ok(other);
        }
        if clients.len() >= MAX_CLIENTS {
            clients.remove(0);
        }
        clients.push((kind, client.clone()));
        Ok(client)
    }

    /// The proxy that requests to `url` go through, unless `NO_PROXY` takes the host out; of this network or of our own.
    #[must_use]
    pub fn proxy<'a>(&'a self, url: &Url, network: Option<&'a Network>) -> Option<&'a NamedProxy> {
        if is_local(url) {
            return None;
        }
        network.unwrap_or(&self.network).proxy(url.scheme() == "https")
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(Kind, Client)>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn find(clients: &[(Kind, Client)], kind: &Kind) -> Option<Client> {
    clients.iter().find(|(known, _)| known == kind).map(|(_, client)| client.clone())
}

fn build(Kind { network, secure, local }: &Kind) -> Result<Client, ClientError> {
    // Another part of the process may have chosen a provider already; any will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // `no_proxy` comes first: it also keeps the library from reading the environment itself.
    let mut builder = Client::builder()
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .pool_idle_timeout(POOL_IDLE)
        .pool_max_idle_per_host(POOL_PER_HOST)
        .tcp_nodelay(true)
        .no_proxy();
    if let Some(limit) = network.connect_timeout {
        builder = builder.connect_timeout(limit);
    }
    if !local && let Some(proxy) = network.reqwest_proxy(*secure)? {
        builder = builder.proxy(proxy);
    }
    // Root certificates take time and memory to load; plain HTTP needs them only where the proxy itself wants TLS.
    if *secure || (!local && network.plain_wants_tls()) {
        builder = builder.tls_certs_merge(network.read_certificates()?);
    } else {
        builder = builder.tls_certs_only([]);
    }
    Ok(builder.build()?)
}

/// Whether no proxy is ever asked for `url`.
fn is_local(url: &Url) -> bool {
    is_loopback(url) || is_link_local(url)
}

/// Whether `url` names this machine.
#[must_use]
pub fn is_loopback(url: &Url) -> bool {
    match url.host_str() {
        Some(host) => {
            let address = host.trim_start_matches('[').trim_end_matches(']');
            host == "localhost"
                || host.ends_with(".localhost")
                || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        None => false,
    }
}

/// Whether `url` names something that is on this machine's own link, such as the metadata service of a cloud: no proxy can reach it
/// in its place.
fn is_link_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => address.is_link_local(),
        Ok(IpAddr::V6(address)) => address.is_unicast_link_local() || host.starts_with("fd00:ec2:"),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, expected: bool) {
        assert_eq!(is_loopback(&Url::parse(url).unwrap()), expected, "{url}");
    }

    #[test]
    fn loopback_hosts_are_known() {
        check("http://127.0.0.1:8080/v1", true);
        check("http://127.1.2.3/", true);
        check("https://[::1]:1/", true);
        check("http://localhost/", true);
        check("http://model.localhost/", true);
        check("http://localhost.example.com/", false);
        check("http://10.0.0.1/", false);
        check("https://api.example.com/", false);
    }

    #[test]
    fn clients_are_made_once_for_each_network_and_kind_of_destination() {
        let clients = HttpClients::new(Network::default());
        let urls = [
            "http://127.0.0.1/",
            "https://api.example.com/",
            "http://api.example.com/",
            "https://localhost/",
        ];
        let own = Arc::new(Network { connect_timeout: None, ..Network::default() });
        for _ in 0..2 {
            for url in urls {
                let url = Url::parse(url).unwrap();
                clients.get(&url).unwrap();
                clients.get_by(&url, &Arc::clone(&own)).unwrap();
            }
            assert_eq!(clients.lock().len(), 2 * urls.len());
        }
        for seconds in 0..100 {
            let limit = Some(Duration::from_secs(seconds));
            let network = Arc::new(Network { connect_timeout: limit, ..Network::default() });
            clients.get_by(&Url::parse(urls[0]).unwrap(), &network).unwrap();
        }
        assert_eq!(clients.lock().len(), MAX_CLIENTS);
    }
}
