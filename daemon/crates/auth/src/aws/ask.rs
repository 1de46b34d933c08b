//! Questions to the services that hand out keys.

use std::{
    io,
    path::Path,
    time::{Duration, SystemTime},
};

use agentd_http::{HttpClients, deepest_cause};
use reqwest::{
    Method, Url,
    header::{DATE, HeaderMap, USER_AGENT},
};
use serde_json::Value;
use tokio::time::timeout;

/// The timeout for the whole answer of a service.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// The timeout for the machine's metadata service, which answers at once where there is one.
pub(super) const METADATA_TIME_LIMIT: Duration = Duration::from_secs(3);

/// The most that an answer may have, in bytes.
const MAX_BYTES: usize = 256 * 1024;

/// The user agent of agentd.
const IDENTITY: &str = concat!("agentd/", env!("CARGO_PKG_VERSION"));

/// A question.
pub(super) struct ServiceRequest<'a> {
    /// The service as messages name it: `STS`, `the container's credentials endpoint`.
    pub(super) service: &'a str,
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
    pub(super) time_limit: Duration,
}

impl<'a> ServiceRequest<'a> {
    pub(super) fn get(service: &'a str, url: Url) -> Self {
        let (headers, body) = (HeaderMap::new(), String::new());
        Self { service, method: Method::GET, url, headers, body, time_limit: TIME_LIMIT }
    }

    pub(super) fn post(service: &'a str, url: Url, body: String) -> Self {
        Self { method: Method::POST, body, ..Self::get(service, url) }
    }
}

/// An answer of any status.
pub(super) struct ServiceReply {
    pub(super) status: u16,
    pub(super) date: Option<String>,
    pub(super) received: SystemTime,
    pub(super) text: String,
}

/// Asks.
///
/// # Errors
/// Names the service where it cannot be reached, is silent or says too much. Cancel safety: dropping the future closes the connection.
pub(super) async fn ask(
    question: ServiceRequest<'_>,
    http: &HttpClients,
) -> Result<ServiceReply, AwsProblem> {
    let ServiceRequest { service, method, url, mut headers, body, time_limit } = question;
    let place = format!("{service} ({}{})", url.host_str().unwrap_or_default(), port(&url));
    let fails = |what: String| AwsProblem::new(format!("{place} {what}"));
    let client = http.get(&url).map_err(|error| fails(format!("cannot be asked. {error}")))?;
    if let Ok(identity) = IDENTITY.parse() {
        headers.insert(USER_AGENT, identity);
    }
    let exchange = async {
        let mut response = client.request(method, url).headers(headers).body(body).send().await?;
        let received = SystemTime::now();
        let date = response.headers().get(DATE).and_then(|date| date.to_str().ok()).map(str::to_owned);
        let status = response.status().as_u16();
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > MAX_BYTES {
                return Ok(None);
            }
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Ok::<_, reqwest::Error>(Some(ServiceReply { status, date, received, text }))
    };
    match timeout(time_limit, exchange).await {
        Err(_) => Err(fails(format!("did not answer within {} s.", time_limit.as_secs()))),
        Ok(Err(error)) => Err(fails(format!("cannot be reached: {}.", deepest_cause(&error)))),
        Ok(Ok(None)) => Err(fails("answered with more than keys can be.".to_owned())),
        Ok(Ok(Some(reply))) => Ok(reply),
    }
}

fn port(url: &Url) -> String {
    url.port().map(|port| format!(":{port}")).unwrap_or_default()
}

impl ServiceReply {
    /// The answer as JSON.
    ///
    /// # Errors
    /// What a refusal says; answers that are no JSON. Neither quotes an answer with keys in it.
    pub(super) fn json(&self, service: &str) -> Result<Value, AwsProblem> {
        if self.status != 200 {
            return Err(self.refusal(service));
        }
        serde_json::from_str(&self.text)
            .map_err(|_| AwsProblem::new(format!("{service} answered with something that is no JSON.")))
    }

    /// The error for a refusal.
    pub(super) fn refusal(&self, service: &str) -> AwsProblem {
        let value: Value = serde_json::from_str(&self.text).unwrap_or_default();
        let member =
            |names: &[&str]| names.iter().find_map(|name| value.get(*name)?.as_str()).map(str::to_owned);
        let code = member(&["code", "Code", "error", "__type"]).or_else(|| element(&self.text, "Code"));
        let message = member(&["message", "Message", "error_description"])
            .or_else(|| element(&self.text, "Message"))
            .unwrap_or_else(|| self.text.trim().chars().take(200).collect());
        let words: Vec<String> = code.into_iter().chain([message]).filter(|word| !word.is_empty()).collect();
        AwsProblem::new(format!("{service} refused with status {}: {}", self.status, words.join(": ")))
    }
}

/// The text of the first XML element of a name, which has no elements in it: all that answers of STS need.
pub(super) fn element(xml: &str, name: &str) -> Option<String> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once(&format!("</{name}>"))?;
    let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    let plain = entities
        .into_iter()
        .fold(text.trim().to_owned(), |text, (entity, plain)| text.replace(entity, plain));
    Some(plain).filter(|text| !text.is_empty())
}

/// Why there are no keys of AWS, for the user: what was tried, what went wrong, what to do. No secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AwsProblem(String);

impl AwsProblem {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub(super) fn file(path: &Path, error: &io::Error) -> Self {
        Self(format!("{} cannot be read: {error}.", path.display()))
    }
}

/// The end of a region's host names behind `amazonaws.com`.
pub(super) fn domain_end(region: &str) -> &'static str {
    if region.starts_with("cn-") { ".cn" } else { "" }
}

/// An address that was put together.
///
/// # Errors
/// Names `from`, which it comes from.
pub(super) fn address(text: &str, from: &str) -> Result<Url, AwsProblem> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    url.ok_or_else(|| AwsProblem::new(format!("{from} makes no http or https address.")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_xml() {
        let xml = "<A><B> x&amp;lt;y </B><C></C><B>2</B><D>open";
        assert_eq!(element(xml, "B").as_deref(), Some("x&lt;y"));
        for name in ["C", "D", "E"] {
            assert_eq!(element(xml, name), None, "{name}");
        }
    }
}
