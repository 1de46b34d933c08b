//! The HTTP clients, made on first use.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use reqwest::{Client, ClientBuilder, Url, dns::Resolve, redirect::Policy};

use crate::{
    Clocks,
    network::{NamedProxy, Network, NetworkError},
};

/// The time for which an unused connection is kept.
const POOL_IDLE: Duration = Duration::from_secs(60);

/// Unused connections kept for one host.
const POOL_PER_HOST: usize = 2;

/// The number of clients that are kept. Sessions with the same network share theirs; the one that was made first goes first.
const MAX_CLIENTS: usize = 16;

/// A client for each network and kind of destination; a daemon that only talks to a local server never loads root
/// certificates.
///
/// A client keeps its unused connections for as long as it is kept itself. One that was asked for with a network of the caller's own
/// is for one server, and for the callers that asked for it; it goes with the last of them ([`HttpClients::release`]).
#[derive(Debug)]
pub struct HttpClients {
    /// The network where a request brings none of its own.
    network: Arc<Network>,
    clients: Mutex<Vec<Entry>>,
    clocks: Clocks,
}

/// A client that is kept.
#[derive(Debug)]
struct Entry {
    kind: Kind,
    client: Client,
    /// The networks of the callers, each known by its place in memory; empty where everybody may use the client.
    users: Vec<Weak<Network>>,
}

impl Entry {
    /// Returns whether all callers that the client was made for are gone.
    fn is_abandoned(&self) -> bool {
        self.kind.server.is_some() && self.users.iter().all(|user| user.strong_count() == 0)
    }
}

/// The key of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Kind {
    /// The settings, in a copy of their own: a caller is gone when its own network is no longer held.
    network: Network,
    /// The only server, as scheme, host and port; `None` for a client to many.
    server: Option<String>,
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
    /// The clock of this machine was never set.
    #[error(
        "The clock of this machine shows a time before 1970, so that no certificate can be checked, and https:// cannot be used. \
         Set the clock."
    )]
    Clock,
    /// The system's part is missing.
    #[error(
        "The HTTP client cannot start: {}. For https, this machine needs root certificates (the package ca-certificates, \
         or a file named in the setting caFile or in SSL_CERT_FILE).",
        crate::deepest_cause(.0)
    )]
    Client(#[from] reqwest::Error),
}

impl HttpClients {
    /// Clients for requests that bring no network of their own.
    #[must_use]
    pub fn new(network: Network) -> Self {
        Self { network: Arc::new(network), clients: Mutex::default(), clocks: Clocks::default() }
    }

    /// The known clocks of servers.
    #[must_use]
    pub fn clocks(&self) -> &Clocks {
        &self.clocks
    }

    /// The client for `url`; cheap to clone, and shares its connections with its clones.
    ///
    /// # Errors
    /// Fails where the system's root certificates, or the proxy or certificates that the environment names, cannot be used.
    pub fn get(&self, url: &Url) -> Result<Client, ClientError> {
        self.find_or_build(url, &self.network, None)
    }

    /// The client for the server of `url` by this network. Callers with the same or an equal network share the client; it is
    /// kept until [`HttpClients::release`] was called for each, or their networks are gone.
    ///
    /// # Errors
    /// Those of [`HttpClients::get`].
    pub fn get_by(&self, url: &Url, network: &Arc<Network>) -> Result<Client, ClientError> {
        self.find_or_build(url, network, Some(network))
    }

    /// Lets go of the clients that only the caller with this network has asked for. Their unused connections are closed; a request
    /// that is under way goes on to its end.
    pub fn release(&self, network: &Arc<Network>) {
        let network = Arc::downgrade(network);
        let mut clients = self.lock();
        for entry in clients.iter_mut() {
            entry.users.retain(|user| !user.ptr_eq(&network));
        }
        let abandoned: Vec<Entry> = clients.extract_if(.., |entry| entry.is_abandoned()).collect();
        // Connections are closed without the lock.
        drop(clients);
        drop(abandoned);
    }

    fn find_or_build(
        &self,
        url: &Url,
        network: &Arc<Network>,
        user: Option<&Arc<Network>>,
    ) -> Result<Client, ClientError> {
        if url.scheme() == "https" {
            check_clock(SystemTime::now())?;
        }
        let kind = Kind {
            network: Network::clone(network),
            server: user.map(|_| url.origin().ascii_serialization()),
            secure: url.scheme() == "https",
            local: is_local(url),
        };
        if let Some(client) = find(&mut self.lock(), &kind, user) {
            return Ok(client);
        }
        // Two first requests at once may both build one; the first to finish is kept.
        let client = build(&kind)?;
        let mut clients = self.lock();
        if let Some(other) = find(&mut clients, &kind, user) {
            return Ok(other);
        }
        // Clients of callers that are gone without releasing them.
        clients.retain(|entry| !entry.is_abandoned());
        if clients.len() >= MAX_CLIENTS {
            clients.remove(0);
        }
        let users = user.map(Arc::downgrade).into_iter().collect();
        clients.push(Entry { kind, client: client.clone(), users });
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

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Entry>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The library that checks certificates takes it that there is no time before 1970, and breaks down.
fn check_clock(now: SystemTime) -> Result<(), ClientError> {
    if now < UNIX_EPOCH { Err(ClientError::Clock) } else { Ok(()) }
}

/// The client of a kind, which has one more user then.
fn find(clients: &mut [Entry], kind: &Kind, user: Option<&Arc<Network>>) -> Option<Client> {
    let entry = clients.iter_mut().find(|entry| entry.kind == *kind)?;
    if let Some(user) = user.map(Arc::downgrade)
        && !entry.users.iter().any(|known| known.ptr_eq(&user))
    {
        entry.users.retain(|known| known.strong_count() > 0);
        entry.users.push(user);
    }
    Some(entry.client.clone())
}

/// A client of the caller's own for requests like one to `url`, which looks names up by `resolver`: those of servers, and that of a proxy.
/// Follows no redirects.
///
/// # Errors
/// Those of [`HttpClients::get`].
pub fn client_with_resolver(
    url: &Url,
    network: &Network,
    resolver: Arc<dyn Resolve>,
) -> Result<Client, ClientError> {
    let secure = url.scheme() == "https";
    if secure {
        check_clock(SystemTime::now())?;
    }
    Ok(builder(network, secure, is_local(url))?.dns_resolver(resolver).build()?)
}

fn build(Kind { network, secure, local, .. }: &Kind) -> Result<Client, ClientError> {
    Ok(builder(network, *secure, *local)?.build()?)
}

fn builder(network: &Network, secure: bool, local: bool) -> Result<ClientBuilder, ClientError> {
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
    if !local && let Some(proxy) = network.reqwest_proxy(secure)? {
        builder = builder.proxy(proxy);
    }
    // Root certificates take time and memory to load; plain HTTP needs them only where the proxy itself wants TLS.
    if secure || (!local && network.plain_wants_tls()) {
        builder = builder.tls_certs_merge(network.read_certificates()?);
    } else {
        builder = builder.tls_certs_only([]);
    }
    Ok(builder)
}

/// Returns whether no proxy is ever asked for `url`: it is on this machine, or on its own link.
#[must_use]
pub fn is_local(url: &Url) -> bool {
    is_loopback(url) || is_link_local(url)
}

/// Returns whether `url` names this machine.
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

/// Returns whether `url` names something that is on this machine's own link, such as the metadata service of a cloud: no proxy can reach it
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
    fn https_needs_a_clock_that_was_set() {
        assert!(check_clock(SystemTime::now()).is_ok() && check_clock(UNIX_EPOCH).is_ok());
        let error = check_clock(UNIX_EPOCH - Duration::from_secs(1)).unwrap_err();
        assert!(error.to_string().contains("before 1970"), "{error}");
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
        let mut networks = Vec::new();
        for seconds in 0..100 {
            let limit = Some(Duration::from_secs(seconds));
            let network = Arc::new(Network { connect_timeout: limit, ..Network::default() });
            clients.get_by(&Url::parse(urls[0]).unwrap(), &network).unwrap();
            networks.push(network);
        }
        assert_eq!(clients.lock().len(), MAX_CLIENTS);
    }

    #[test]
    fn a_client_goes_with_the_last_of_its_users() {
        let clients = HttpClients::new(Network::default());
        let url = |text: &str| Url::parse(text).unwrap();
        let users: [Arc<Network>; 3] = std::array::from_fn(|_| Arc::new(Network::default()));
        let count = || clients.lock().len();
        clients.get(&url("http://127.0.0.1/")).unwrap();
        for user in &users {
            clients.get_by(&url("http://127.0.0.1/a"), user).unwrap();
        }
        clients.get_by(&url("http://127.0.0.1:81/"), &users[0]).unwrap();
        assert_eq!(count(), 3, "one for everybody, and one for each server");
        clients.release(&users[0]);
        assert_eq!(count(), 2, "nobody else has used the second server");
        clients.release(&users[0]);
        clients.release(&users[1]);
        assert_eq!(count(), 2, "the third user is left");
        clients.release(&users[2]);
        assert_eq!(count(), 1);
        // A caller that is gone without a release is noticed with the next client.
        clients.get_by(&url("http://127.0.0.1:82/"), &Arc::new(Network::default())).unwrap();
        clients.get_by(&url("http://127.0.0.1:83/"), &users[0]).unwrap();
        assert_eq!(count(), 2);
    }
}
