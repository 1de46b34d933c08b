//! The settings of connections: proxy, certificates and timeouts.

use std::{error::Error as _, fmt, io, path::PathBuf, time::Duration};

use agentd_safe_open::{AcceptedOwner, LinkPolicy, OpenRules};
use reqwest::{NoProxy, Proxy};

use crate::{Secret, register_secret};

/// The default timeout of connecting.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest file of certificates that is read: 64 MiB.
const MAX_CERTIFICATE_BYTES: u64 = 64 << 20;

/// The variables that name proxies, for plain HTTP, for HTTPS, and those that need none; the first one that is set counts.
const HTTP_PROXY: [&str; 4] = ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"];
const HTTPS_PROXY: [&str; 4] = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
const NO_PROXY: [&str; 2] = ["no_proxy", "NO_PROXY"];

/// The variable that names certificates.
const CERTIFICATES: &str = "SSL_CERT_FILE";

/// The settings of connections to servers. Hosts on this machine are never reached through a proxy. `Debug` shows no proxy's
/// password.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Network {
    /// The timeout of connecting; `None` for no limit. Default [`CONNECT_TIMEOUT`].
    pub connect_timeout: Option<Duration>,
    /// The proxy for plain HTTP.
    pub http_proxy: Option<NamedProxy>,
    /// The proxy for HTTPS.
    pub https_proxy: Option<NamedProxy>,
    /// Hosts that are reached without a proxy, in the form of the variable `NO_PROXY`.
    pub no_proxy: String,
    /// Files with certificates (PEM) that are trusted beside the system's.
    pub certificates: Vec<CertificateFile>,
}

impl Default for Network {
    fn default() -> Self {
        Self {
            connect_timeout: Some(CONNECT_TIMEOUT),
            http_proxy: None,
            https_proxy: None,
            no_proxy: String::new(),
            certificates: Vec::new(),
        }
    }
}

/// A proxy, and who named it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct NamedProxy {
    url: String,
    /// The setting or variable.
    pub source: String,
}

impl NamedProxy {
    /// A proxy at `url`, which `source` names.
    #[must_use]
    pub fn new(url: impl Into<String>, source: impl Into<String>) -> Self {
        let proxy = Self { url: url.into(), source: source.into() };
        proxy.secrets().iter().for_each(|secret| register_secret(secret.expose()));
        proxy
    }

    /// The address without user and password.
    #[must_use]
    pub fn shown(&self) -> String {
        let (scheme, rest) = self.url.split_once("://").unwrap_or(("http", &self.url));
        let (authority, _) = rest.split_once(['/', '?', '#']).unwrap_or((rest, ""));
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        format!("{scheme}://{host}")
    }

    /// The host of its address, in lower case; empty where it has none.
    #[must_use]
    pub fn host(&self) -> String {
        let shown = self.shown();
        let host =
            reqwest::Url::parse(&shown).ok().and_then(|url| url.host_str().map(str::to_ascii_lowercase));
        host.unwrap_or_default().trim_matches(['[', ']']).to_owned()
    }

    /// The secrets of the proxy's address.
    fn secrets(&self) -> Vec<Secret> {
        let rest = self.url.split_once("://").map_or(&*self.url, |(_, rest)| rest);
        let user_info = rest.split(['/', '?', '#']).next().and_then(|authority| authority.rsplit_once('@'));
        let Some((user_info, _)) = user_info else { return Vec::new() };
        let password = user_info.split_once(':').map_or("", |(_, password)| password);
        [user_info, password].into_iter().filter(|it| !it.is_empty()).map(Secret::new).collect()
    }

    fn wants_tls(&self) -> bool {
        self.url.as_bytes().get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"https:"))
    }
}

impl fmt::Debug for NamedProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.shown(), self.source)
    }
}

/// A file with certificates, and who named it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CertificateFile {
    /// The path of the file.
    pub path: PathBuf,
    /// The setting or variable.
    pub source: String,
}

/// The network cannot be used as it is set up.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// A proxy's address is none.
    #[error(
        "The proxy that {source_name} names is not the address of a proxy: expected a form like http://proxy.example:3128."
    )]
    Proxy {
        /// The setting or variable.
        source_name: String,
    },
    /// A file cannot be read.
    #[error("The certificates that {source_name} names cannot be read: {path}: {reason}.")]
    Certificates {
        /// The setting or variable.
        source_name: String,
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
}

impl Network {
    /// The settings of an environment: `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY` (lower case first) and
    /// `SSL_CERT_FILE`.
    #[must_use]
    pub fn of_environment<'a>(variable: impl Fn(&str) -> Option<&'a str>) -> Self {
        let first = |names: &[&'static str]| {
            let set = |name: &&'static str| {
                let value = variable(name)?.trim();
                (!value.is_empty()).then(|| (value.to_owned(), *name))
            };
            names.iter().find_map(set)
        };
        let proxy = |names: &[&'static str]| first(names).map(|(url, name)| NamedProxy::new(url, name));
        let certificates = first(&[CERTIFICATES]);
        Self {
            http_proxy: proxy(&HTTP_PROXY),
            https_proxy: proxy(&HTTPS_PROXY),
            no_proxy: first(&NO_PROXY).map(|(hosts, _)| hosts).unwrap_or_default(),
            certificates: certificates
                .map(|(path, source)| CertificateFile { path: path.into(), source: source.to_owned() })
                .into_iter()
                .collect(),
            ..Self::default()
        }
    }

    /// The settings of this process's environment.
    #[must_use]
    pub fn of_process() -> Self {
        let names = HTTP_PROXY.into_iter().chain(HTTPS_PROXY).chain(NO_PROXY).chain([CERTIFICATES]);
        let set: Vec<(&str, String)> =
            names.filter_map(|name| Some((name, std::env::var(name).ok()?))).collect();
        Self::of_environment(|name| {
            set.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
        })
    }

    /// Puts a proxy where the environment names none.
    #[must_use]
    pub fn or_proxy(mut self, proxy: Option<NamedProxy>) -> Self {
        self.http_proxy = self.http_proxy.or_else(|| proxy.clone());
        self.https_proxy = self.https_proxy.or(proxy);
        self
    }

    /// The proxy for a host that is not on this machine, unless `NO_PROXY` takes it out.
    #[must_use]
    pub fn proxy(&self, secure: bool) -> Option<&NamedProxy> {
        if secure { self.https_proxy.as_ref() } else { self.http_proxy.as_ref() }
    }

    /// The secrets: users and passwords of proxies.
    #[must_use]
    pub fn secrets(&self) -> Vec<Secret> {
        self.http_proxy.iter().chain(&self.https_proxy).flat_map(NamedProxy::secrets).collect()
    }

    /// Returns whether even plain HTTP goes over TLS, to the proxy.
    pub(crate) fn plain_wants_tls(&self) -> bool {
        self.http_proxy.as_ref().is_some_and(NamedProxy::wants_tls)
    }

    pub(crate) fn reqwest_proxy(&self, secure: bool) -> Result<Option<Proxy>, NetworkError> {
        let Some(proxy) = self.proxy(secure) else { return Ok(None) };
        let wrong = |_| NetworkError::Proxy { source_name: proxy.source.clone() };
        let made = if secure { Proxy::https(&proxy.url) } else { Proxy::http(&proxy.url) };
        Ok(Some(made.map_err(wrong)?.no_proxy(NoProxy::from_string(&self.no_proxy))))
    }

    /// Reads the certificates. Blocks for as long as small files take.
    pub(crate) fn read_certificates(&self) -> Result<Vec<reqwest::Certificate>, NetworkError> {
        let mut all = Vec::new();
        for CertificateFile { path, source } in &self.certificates {
            let wrong = |reason: String| NetworkError::Certificates {
                source_name: source.clone(),
                path: path.clone(),
                reason,
            };
            // Certificates are often the system's, or another program's.
            let rules = OpenRules::new(LinkPolicy::Followed)
                .owner(AcceptedOwner::Anybody)
                .max_bytes(MAX_CERTIFICATE_BYTES);
            let pem = rules
                .read_present(path)
                .map_err(|error| wrong(io::Error::from(error.into_problem()).to_string()))?;
            let read =
                reqwest::Certificate::from_pem_bundle(&pem).map_err(|error| wrong(deepest_cause(&error)))?;
            if read.is_empty() {
                return Err(wrong("no certificate in PEM form is in it".to_owned()));
            }
            all.extend(read);
        }
        Ok(all)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn network(variables: &[(&str, &'static str)]) -> Network {
        Network::of_environment(|name| variables.iter().find(|(it, _)| *it == name).map(|(_, value)| *value))
    }

    #[test]
    fn small_letters_come_first_and_empty_variables_do_not_count() {
        let found = network(&[
            ("HTTP_PROXY", "http://big"),
            ("http_proxy", " "),
            ("https_proxy", "http://small:1"),
            ("HTTPS_PROXY", "http://big"),
            ("NO_PROXY", "a,b"),
            ("SSL_CERT_FILE", "/ca.pem"),
        ]);
        assert_eq!(found.http_proxy, Some(NamedProxy::new("http://big", "HTTP_PROXY")));
        assert_eq!(found.https_proxy, Some(NamedProxy::new("http://small:1", "https_proxy")));
        assert_eq!((found.no_proxy.as_str(), found.certificates.len()), ("a,b", 1));
        assert_eq!(network(&[]), Network::default());
        let all = network(&[("ALL_PROXY", "http://all")]);
        assert_eq!(all.http_proxy, all.https_proxy);
    }

    #[test]
    fn a_setting_counts_where_the_environment_says_nothing() {
        let setting = Some(NamedProxy::new("http://set", "the setting httpProxy"));
        let found = network(&[("HTTPS_PROXY", "http://env")]).or_proxy(setting.clone());
        assert_eq!(found.https_proxy, Some(NamedProxy::new("http://env", "HTTPS_PROXY")));
        assert_eq!(found.http_proxy, setting);
    }

    #[test]
    fn proxies_are_shown_without_their_passwords() {
        let check = |url: &str, shown: &str, secrets: &[&str]| {
            let proxy = NamedProxy::new(url, "X");
            assert_eq!(proxy.shown(), shown);
            assert_eq!(format!("{proxy:?}"), format!("{shown} (X)"));
            let found = proxy.secrets();
            assert_eq!(found.iter().map(Secret::expose).collect::<Vec<_>>(), secrets, "{url}");
        };
        check("http://me:hush@proxy:3128/", "http://proxy:3128", &["me:hush", "hush"]);
        check("proxy:3128", "http://proxy:3128", &[]);
        check("https://tok@en@h", "https://h", &["tok@en"]);
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let proxy = Network::default().or_proxy(Some(NamedProxy::new("::hush::", "the setting httpProxy")));
        let error = proxy.reqwest_proxy(true).unwrap_err().to_string();
        assert!(error.contains("the setting httpProxy") && !error.contains("hush"), "{error}");
        let file = CertificateFile { path: "/nowhere/ca.pem".into(), source: "the setting caFile".into() };
        let missing = Network { certificates: vec![file], ..Network::default() };
        let error = missing.read_certificates().unwrap_err().to_string();
        assert!(error.contains("the setting caFile") && error.contains("/nowhere/ca.pem"), "{error}");
    }
}
