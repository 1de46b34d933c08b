//! The HTTP clients, made on first use.

use std::{error::Error as _, net::IpAddr, sync::OnceLock, time::Duration};

use reqwest::{Client, Url, redirect::Policy};

/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// How long an unused connection is kept.
const POOL_IDLE: Duration = Duration::from_secs(60);

/// Unused connections kept for one host.
const POOL_PER_HOST: usize = 2;

/// One client for each kind of destination; a daemon that only talks to a local server never loads root certificates.
#[derive(Debug, Default)]
pub struct HttpClients {
    /// Loopback hosts: never through a proxy.
    local: [OnceLock<Client>; 2],
    /// All others: through the proxy of the environment, if it names one.
    remote: [OnceLock<Client>; 2],
}

/// The HTTP client could not be made.
#[derive(Debug, thiserror::Error)]
#[error(
    "The HTTP client cannot start: {}. For https, this machine needs root certificates (the package ca-certificates, or a \
     file named in SSL_CERT_FILE).",
    deepest_cause(.0)
)]
pub struct ClientError(#[from] reqwest::Error);

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
    /// The client for `url`.
    ///
    /// # Errors
    /// Fails where the system's root certificates cannot be used.
    pub fn get(&self, url: &Url) -> Result<&Client, ClientError> {
        let secure = url.scheme() == "https";
        let local = is_loopback(url);
        let cell = &(if local { &self.local } else { &self.remote })[usize::from(secure)];
        if let Some(client) = cell.get() {
            return Ok(client);
        }
        // Two first requests at once may both build one; the first to finish is kept.
        let client = build(secure, local)?;
        Ok(cell.get_or_init(|| client))
    }
}

fn build(secure: bool, local: bool) -> Result<Client, reqwest::Error> {
    // Another part of the process may have chosen a provider already; any will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(POOL_IDLE)
        .pool_max_idle_per_host(POOL_PER_HOST)
        .tcp_nodelay(true);
    if local {
        builder = builder.no_proxy();
    }
    // Root certificates take time and memory to load; plain HTTP needs them only where the proxy itself wants TLS.
    if !secure && (local || !proxy_wants_tls()) {
        builder = builder.tls_certs_only([]);
    }
    builder.build()
}

/// Whether the environment names a proxy for plain HTTP that is reached by TLS.
fn proxy_wants_tls() -> bool {
    ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"].into_iter().filter_map(std::env::var_os).any(
        |proxy| {
            proxy.as_encoded_bytes().get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"https:"))
        },
    )
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
    fn clients_are_made_once_for_each_kind_of_destination() {
        let clients = HttpClients::default();
        for url in
            ["http://127.0.0.1/", "https://api.example.com/", "http://api.example.com/", "https://localhost/"]
        {
            let url = Url::parse(url).unwrap();
            let first = std::ptr::from_ref(clients.get(&url).unwrap());
            assert_eq!(first, std::ptr::from_ref(clients.get(&url).unwrap()));
        }
    }
}
