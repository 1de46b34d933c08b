//! The address that the browser comes back to.

use std::io;

use reqwest::Url;
use tokio::net::TcpListener;

use super::error::OAuthError;
use crate::config::OAuthConfig;

/// The host and path where the entry names none.
const HOST: &str = "127.0.0.1";
const PATH: &str = "/callback";

/// A port that is open for one sign-in.
pub(crate) struct RedirectListener {
    pub(crate) listener: TcpListener,
    /// The address for the authorization server.
    pub(crate) uri: String,
    pub(crate) path: String,
}

/// Opens the port. `before` is the address of an earlier sign-in, which is taken again where the entry names none and its port is free: many
/// servers know a client by its address alone. `listen_host` is where to listen in place of the address's own host.
///
/// # Errors
/// [`OAuthError::Listen`].
pub(crate) async fn open(
    config: &OAuthConfig,
    listen_host: Option<&str>,
    before: Option<&str>,
) -> Result<RedirectListener, OAuthError> {
    let parse = |text: &str| Url::parse(text).ok();
    if let Some(url) = config.callback_url.as_deref().and_then(parse) {
        return listen(
            url.host_str().unwrap_or(HOST),
            listen_host,
            url.path(),
            (config.callback_port, url.port()),
        )
        .await;
    }
    if let Some(port) = config.callback_port {
        return listen(HOST, listen_host, PATH, (Some(port), None)).await;
    }
    let port = before.and_then(parse).and_then(|url| url.port());
    match port {
        Some(_) => match listen(HOST, listen_host, PATH, (port, None)).await {
            Ok(open) => Ok(open),
            Err(_) => listen(HOST, listen_host, PATH, (None, None)).await,
        },
        None => listen(HOST, listen_host, PATH, (None, None)).await,
    }
}

/// Listens at the first port; the browser comes to the second one, where they differ.
async fn listen(
    host: &str,
    listen_host: Option<&str>,
    path: &str,
    (listen_port, browser_port): (Option<u16>, Option<u16>),
) -> Result<RedirectListener, OAuthError> {
    let port = listen_port.or(browser_port).unwrap_or(0);
    let own = if host == "localhost" { HOST } else { host.trim_matches(['[', ']']) };
    let listen_host = listen_host.unwrap_or(own);
    let problem = |error: io::Error| OAuthError::Listen {
        address: format!("{listen_host}:{port}"),
        problem: error.to_string(),
    };
    let listener = TcpListener::bind((listen_host, port)).await.map_err(problem)?;
    let bound = listener.local_addr().map_err(problem)?.port();
    let uri = format!("http://{host}:{}{path}", browser_port.unwrap_or(bound));
    Ok(RedirectListener { listener, uri, path: path.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn uri(config: OAuthConfig, before: Option<&str>) -> (String, u16) {
        let open = open(&config, None, before).await.unwrap();
        (open.uri, open.listener.local_addr().unwrap().port())
    }

    #[tokio::test]
    async fn addresses_name_the_port_that_is_open() {
        let (free, port) = uri(OAuthConfig::default(), None).await;
        assert_eq!(free, format!("http://127.0.0.1:{port}/callback"));
        let again = uri(OAuthConfig::default(), Some(&free)).await;
        assert_eq!(again, (free.clone(), port));
        let fixed = OAuthConfig { callback_port: Some(port), ..OAuthConfig::default() };
        assert_eq!(uri(fixed.clone(), None).await, (free.clone(), port));
        let named = OAuthConfig { callback_url: Some("http://localhost/back".into()), ..fixed };
        assert_eq!(uri(named.clone(), None).await, (format!("http://localhost:{port}/back"), port));
        let mapped = OAuthConfig { callback_url: Some("http://127.0.0.1:81/back".into()), ..named };
        assert_eq!(uri(mapped, None).await, ("http://127.0.0.1:81/back".into(), port));
    }

    #[tokio::test]
    async fn a_port_that_is_taken_is_said_or_given_up() {
        let taken = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = taken.local_addr().unwrap().port();
        let fixed = OAuthConfig { callback_port: Some(port), ..OAuthConfig::default() };
        assert!(matches!(open(&fixed, None, None).await, Err(OAuthError::Listen { .. })));
        let before = format!("http://127.0.0.1:{port}/callback");
        assert_ne!(uri(OAuthConfig::default(), Some(&before)).await.0, before);
    }
}
