//! The headers of a request. Later ones win: identity, the adapter's own, what is configured.

use agentd_protocol::model::Model;
use reqwest::{
    Url,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT},
};

use crate::{
    Credentials,
    failure::{Failure, FailureKind},
};

/// How agentd presents itself.
const IDENTITY: &str = concat!("agentd/", env!("CARGO_PKG_VERSION"));

/// Headers as an adapter puts them together. No failure holds a header's value.
pub(crate) struct HeaderList {
    provider: String,
    headers: HeaderMap,
}

impl HeaderList {
    /// What every request has: JSON goes out, an event stream is to come back, and who asks.
    pub(crate) fn new(model: &Model) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        let agent = format!("{IDENTITY} ({}; {})", std::env::consts::OS, std::env::consts::ARCH);
        if let Ok(agent) = HeaderValue::try_from(agent) {
            headers.insert(USER_AGENT, agent);
        }
        Self { provider: model.provider.clone(), headers }
    }

    /// Sets a header.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        let (name, value) = self.header(name, value)?;
        self.headers.insert(name, value);
        Ok(())
    }

    /// Sets a header that is never shown.
    pub(crate) fn secret(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        let (name, mut value) = self.header(name, value)?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Ok(())
    }

    /// Sets `Authorization: Bearer <key>` where there is a key.
    pub(crate) fn bearer(&mut self, credentials: &Credentials) -> Result<(), Failure> {
        let Some(key) = credentials.key() else { return Ok(()) };
        let value = HeaderValue::try_from(format!("Bearer {key}"));
        let mut value = value.map_err(|_| self.bad_key())?;
        value.set_sensitive(true);
        self.headers.insert(AUTHORIZATION, value);
        Ok(())
    }

    /// Sets the header `name` to the key where there is one.
    pub(crate) fn key(&mut self, name: &'static str, credentials: &Credentials) -> Result<(), Failure> {
        let Some(key) = credentials.key() else { return Ok(()) };
        let mut value = HeaderValue::try_from(key).map_err(|_| self.bad_key())?;
        value.set_sensitive(true);
        self.headers.insert(HeaderName::from_static(name), value);
        Ok(())
    }

    /// All headers, the configured ones over the others.
    pub(crate) fn finish(mut self, credentials: &Credentials) -> Result<HeaderMap, Failure> {
        for (name, value) in &credentials.headers {
            self.secret(name, value.expose())?;
        }
        Ok(self.headers)
    }

    fn header(&self, name: &str, value: &str) -> Result<(HeaderName, HeaderValue), Failure> {
        let name: HeaderName =
            name.parse().map_err(|_| self.failure(&format!("\"{name}\" is no valid name of a header")))?;
        let value = HeaderValue::from_str(value).map_err(|_| {
            self.failure(&format!(
                "the value of the header \"{name}\" has characters that no header may have (a line break, perhaps)"
            ))
        })?;
        Ok((name, value))
    }

    fn bad_key(&self) -> Failure {
        self.failure("the API key has characters that no header may have (a line break, perhaps)")
    }

    fn failure(&self, what: &str) -> Failure {
        let message = format!("The request to provider \"{}\" cannot be made: {what}.", self.provider);
        Failure::new(FailureKind::Fatal, message)
    }
}

/// The address of an API: the model's base URL and `path`. `example` is named where the base URL is of no use.
///
/// # Errors
/// Says what is wrong with the base URL.
pub(crate) fn endpoint(model: &Model, path: &str, example: &str) -> Result<Url, Failure> {
    let base = model.base_url.trim().trim_end_matches('/');
    let wrong = |reason: &str| {
        let message = format!(
            "The baseUrl of provider \"{}\" is {reason}. Set it in models.json to the address of its API, such as \
             {example}.",
            model.provider
        );
        Failure::new(FailureKind::Fatal, message)
    };
    if base.is_empty() {
        return Err(wrong("missing"));
    }
    let url = Url::parse(&format!("{base}{path}")).ok();
    url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
        .ok_or_else(|| wrong("not an http or https address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked() {
        let check = |base: &str, expected: Result<&str, &str>| {
            let model = Model { base_url: base.into(), provider: "local".into(), ..Model::placeholder() };
            let found = endpoint(&model, "/chat/completions", "http://x/v1");
            match (found, expected) {
                (Ok(url), Ok(expected)) => assert_eq!(url.as_str(), expected),
                (Err(error), Err(expected)) => assert!(error.message.contains(expected), "{error}"),
                (found, _) => panic!("{base}: {found:?}"),
            }
        };
        check("http://h:1/v1/", Ok("http://h:1/v1/chat/completions"));
        check(" https://h ", Ok("https://h/chat/completions"));
        check("", Err("baseUrl of provider \"local\" is missing"));
        check("127.0.0.1:8080", Err("not an http or https address"));
        check("ftp://h", Err("not an http or https address"));
    }
}
