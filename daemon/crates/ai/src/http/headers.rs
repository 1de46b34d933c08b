//! The headers of a request, as all APIs have them. Later ones win: identity, those of the API, those of the configuration.

use agentd_protocol::{
    message::{ContentBlock, Message, MessageContent},
    model::Model,
};
use reqwest::{
    Url,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT},
};

use crate::{
    Credentials, Request,
    failure::{Failure, FailureKind},
    handoff::readable,
    vendors,
};

/// The name and version of agentd in `User-Agent`.
const IDENTITY: &str = concat!("agentd/", env!("CARGO_PKG_VERSION"));

/// The header in which Cloudflare's AI gateway takes its own key.
const GATEWAY_AUTHORIZATION: HeaderName = HeaderName::from_static("cf-aig-authorization");

/// The headers of a request while an adapter collects them. No failure quotes a header's value.
pub(crate) struct HeaderList {
    provider: String,
    headers: HeaderMap,
}

impl HeaderList {
    /// The headers of every request: JSON goes out, an event stream comes back, and who asks.
    ///
    /// # Errors
    /// Fails for a session id that is not legal in a header.
    pub(crate) fn new(request: &Request) -> Result<Self, Failure> {
        let model = &*request.model;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        let agent = format!("{IDENTITY} ({}; {})", std::env::consts::OS, std::env::consts::ARCH);
        if let Ok(agent) = HeaderValue::try_from(agent) {
            headers.insert(USER_AGENT, agent);
        }
        let mut list = Self { provider: model.provider.clone(), headers };
        list.introduce(model, &request.session_id)?;
        if model.provider == "github-copilot" {
            list.set_copilot_headers(request)?;
        }
        Ok(list)
    }

    /// Introduces agentd and its session in the headers that the model's vendor has for that.
    fn introduce(&mut self, model: &Model, session_id: &str) -> Result<(), Failure> {
        for vendor in vendors::of(model) {
            for (name, value) in vendor.identity_headers {
                self.set(name, value)?;
            }
            if let Some(name) = vendor.session_header.filter(|_| !session_id.is_empty()) {
                self.set(name, session_id)?;
            }
        }
        Ok(())
    }

    /// Sets what Copilot requires of each request: whether the user or the agent caused it, its purpose, and whether it has images.
    fn set_copilot_headers(&mut self, request: &Request) -> Result<(), Failure> {
        let messages = readable(&request.messages);
        let follows = matches!(
            messages.last(),
            Some(Message::Assistant(_) | Message::ToolResult(_) | Message::System(_))
        );
        self.set("x-initiator", if follows { "agent" } else { "user" })?;
        self.set("openai-intent", "conversation-edits")?;
        let sees = !request.block_images && request.model.input.iter().any(|kind| kind == "image");
        if sees && messages.iter().any(|message| has_image(message)) {
            self.set("copilot-vision-request", "true")?;
        }
        Ok(())
    }

    /// Sets a header.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        let (name, value) = self.header(name, value)?;
        self.headers.insert(name, value);
        Ok(())
    }

    /// Sets a header whose value is never shown.
    pub(crate) fn secret(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        let (name, mut value) = self.header(name, value)?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Ok(())
    }

    /// Sets `Authorization: Bearer <key>` if there is a key.
    pub(crate) fn bearer(&mut self, credentials: &Credentials) -> Result<(), Failure> {
        let Some(key) = credentials.key() else { return Ok(()) };
        let value = HeaderValue::try_from(format!("Bearer {key}"));
        let mut value = value.map_err(|_| self.bad_key())?;
        value.set_sensitive(true);
        let name = if self.is_for_gateway() { GATEWAY_AUTHORIZATION } else { AUTHORIZATION };
        self.headers.insert(name, value);
        Ok(())
    }

    /// Sets the header `name` to the key if there is one.
    pub(crate) fn key(&mut self, name: &'static str, credentials: &Credentials) -> Result<(), Failure> {
        if self.is_for_gateway() {
            return self.bearer(credentials);
        }
        let Some(key) = credentials.key() else { return Ok(()) };
        let mut value = HeaderValue::try_from(key).map_err(|_| self.bad_key())?;
        value.set_sensitive(true);
        self.headers.insert(HeaderName::from_static(name), value);
        Ok(())
    }

    /// Whether the key is for a gateway, which passes the usual key headers on to the provider behind it.
    fn is_for_gateway(&self) -> bool {
        self.provider == "cloudflare-ai-gateway"
    }

    /// All headers, the configured ones over the others. An empty value removes a header.
    pub(crate) fn finish(mut self, credentials: &Credentials) -> Result<HeaderMap, Failure> {
        for (name, value) in &credentials.headers {
            if value.expose().is_empty() {
                self.headers.remove(name.as_str());
            } else {
                self.secret(name, value.expose())?;
            }
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

/// Whether a message has an image for the model.
fn has_image(message: &Message) -> bool {
    let is_image = |block: &ContentBlock| matches!(block, ContentBlock::Image(_));
    let content = match message {
        Message::User(user) => &user.content,
        Message::Custom(custom) => &custom.content,
        Message::ToolResult(result) => return result.content.iter().any(is_image),
        _ => return false,
    };
    matches!(content, MessageContent::Blocks(blocks) if blocks.iter().any(is_image))
}

/// The address of an API: the model's base URL and `path`, with the queries of both. The failure for a useless base URL names `example`.
///
/// # Errors
/// Names what is wrong with the base URL.
pub(crate) fn endpoint(model: &Model, path: &str, example: &str) -> Result<Url, Failure> {
    let base = model.base_url.trim();
    let (base, query) = base.split_once('?').unwrap_or((base, ""));
    let base = base.trim_end_matches('/');
    let joint = match (query, path.contains('?')) {
        ("", _) => "",
        (_, true) => "&",
        (_, false) => "?",
    };
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
    let url = Url::parse(&format!("{base}{path}{joint}{query}")).ok();
    url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
        .ok_or_else(|| wrong("not an http or https address"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Secret;

    #[test]
    fn a_gateway_takes_its_key_in_a_header_of_its_own() {
        let headers = |provider: &str, is_bearer: bool| {
            let model = Model { provider: provider.into(), ..Model::placeholder() };
            let request = Request::new(Arc::new(model), Vec::new());
            let credentials = Credentials {
                api_key: Some(Secret::new("hush")),
                headers: vec![("x-upstream".into(), Secret::new("other"))],
                ..Credentials::default()
            };
            let mut list = HeaderList::new(&request).unwrap();
            if is_bearer {
                list.bearer(&credentials).unwrap();
            } else {
                list.key("x-api-key", &credentials).unwrap();
            }
            let headers = list.finish(&credentials).unwrap();
            let names = ["authorization", "x-api-key", "cf-aig-authorization", "x-upstream"];
            names.map(|name| {
                headers.get(name).map(|value| {
                    assert!(value.is_sensitive(), "{name}");
                    value.to_str().unwrap().to_owned()
                })
            })
        };
        let other = || Some("other".to_owned());
        for is_bearer in [true, false] {
            let key = Some("Bearer hush".to_owned());
            assert_eq!(headers("cloudflare-ai-gateway", is_bearer), [None, None, key, other()]);
        }
        assert_eq!(headers("p", true), [Some("Bearer hush".into()), None, None, other()]);
        assert_eq!(headers("p", false), [None, Some("hush".into()), None, other()]);
    }

    #[test]
    fn vendors_learn_who_asks_in_their_own_headers() {
        let check = |provider: &str, base_url: &str, expected: &[&str]| {
            let model =
                Model { provider: provider.into(), base_url: base_url.into(), ..Model::placeholder() };
            let mut request = Request::new(Arc::new(model), Vec::new());
            request.session_id = "s-1".into();
            let headers = HeaderList::new(&request).unwrap().finish(&request.credentials).unwrap();
            let usual = ["content-type", "accept", "user-agent"];
            let found = headers.iter().filter(|(name, _)| !usual.contains(&name.as_str()));
            let mut found: Vec<String> =
                found.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
            found.sort_unstable();
            assert_eq!(found, expected, "{provider} {base_url}");
        };
        let openrouter = ["x-openrouter-categories: cli-agent", "x-openrouter-title: agentd"];
        check("openrouter", "", &openrouter);
        check("mine", "https://openrouter.ai/api/v1", &openrouter);
        check("nvidia", "", &["x-billing-invoke-origin: agentd"]);
        for provider in ["opencode", "opencode-go"] {
            check(provider, "", &["x-opencode-client: agentd", "x-opencode-session: s-1"]);
        }
        check("mine", "http://127.0.0.1:8080/v1", &[]);
    }

    #[test]
    fn copilot_learns_who_asks_and_whether_there_are_images() {
        let check = |messages: serde_json::Value, blocked: bool, expected: (&str, bool)| {
            let input = vec!["text".to_owned(), "image".to_owned()];
            let model = Model { provider: "github-copilot".into(), input, ..Model::placeholder() };
            let shown = messages.to_string();
            let mut request = Request::new(Arc::new(model), serde_json::from_value(messages).unwrap());
            request.block_images = blocked;
            let headers = HeaderList::new(&request).unwrap().finish(&request.credentials).unwrap();
            let vision = headers.get("copilot-vision-request").map(|value| value == "true");
            let found = (headers["x-initiator"].to_str().unwrap(), vision == Some(true));
            assert_eq!(found, expected, "{shown}");
            assert_eq!(headers["openai-intent"], "conversation-edits");
            assert!(headers["user-agent"].to_str().unwrap().starts_with("agentd/"));
            assert!(
                !headers.contains_key("editor-version") && !headers.contains_key("copilot-integration-id")
            );
        };
        let user = serde_json::json!({"role": "user", "content": "hi"});
        let image = serde_json::json!({"type": "image", "data": "eA==", "mimeType": "image/png"});
        let seen = serde_json::json!({"role": "user", "content": [image]});
        let call = serde_json::json!({"role": "assistant", "content": [], "stopReason": "toolUse"});
        let result = serde_json::json!({"role": "toolResult", "toolCallId": "1", "content": [image]});
        let bash = serde_json::json!({"role": "bashExecution", "command": "ls", "output": ""});
        let list = |messages: &[&serde_json::Value]| serde_json::json!(messages);
        check(list(&[&user]), false, ("user", false));
        check(list(&[&user, &call, &bash]), false, ("user", false));
        check(list(&[&seen]), false, ("user", true));
        check(list(&[&seen]), true, ("user", false));
        check(list(&[&user, &call, &result]), false, ("agent", true));
        check(list(&[&seen, &call, &user]), false, ("user", true));
    }

    #[test]
    fn configured_headers_come_last() {
        let model = Model { provider: "nvidia".into(), ..Model::placeholder() };
        let mut request = Request::new(Arc::new(model), Vec::new());
        request.credentials.headers = vec![("X-Billing-Invoke-Origin".into(), Secret::new("mine"))];
        let headers = HeaderList::new(&request).unwrap().finish(&request.credentials).unwrap();
        assert_eq!(headers["x-billing-invoke-origin"], "mine");
        request.credentials.headers.push(("x-BILLING-invoke-origin".into(), Secret::new("")));
        request.credentials.headers.push(("not there".into(), Secret::new("")));
        let headers = HeaderList::new(&request).unwrap().finish(&request.credentials).unwrap();
        assert!(!headers.contains_key("x-billing-invoke-origin"), "{headers:?}");
    }

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
        check("http://h/v1/?version=2", Ok("http://h/v1/chat/completions?version=2"));
        check(" https://h ", Ok("https://h/chat/completions"));
        check("", Err("baseUrl of provider \"local\" is missing"));
        check("127.0.0.1:8080", Err("not an http or https address"));
        check("ftp://h", Err("not an http or https address"));
    }
}
