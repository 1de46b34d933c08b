//! Mistral's chat completions: like OpenAI's, but with thinking as parts of contents and ids of nine characters. The adapter for
//! `mistral-conversations`.

mod api_types;
mod decode;
mod messages;
mod request;

use agentd_protocol::model::Model;
use reqwest::{Url, header::HeaderMap};

use self::decode::ConversationsDecoder;
use crate::{
    Request,
    failure::Failure,
    http::{Adapter, HeaderList, OutgoingRequest, Server, endpoint, unwritable},
};

/// Speaks `mistral-conversations`.
pub(crate) struct MistralConversations;

impl Adapter for MistralConversations {
    type Decoder = ConversationsDecoder;

    fn outgoing(&self, request: &Request) -> Result<OutgoingRequest, Failure> {
        let body = request::body(request).map_err(|error| unwritable(&error))?;
        Ok(OutgoingRequest { url: address(&request.model)?, headers: headers(request)?, body, sign: None })
    }

    fn decoder(&self, request: &Request, server: Server) -> ConversationsDecoder {
        ConversationsDecoder::new(server, &request.model.id)
    }
}

/// The address of requests. The vendor's own base URL has no version, those of others often do.
fn address(model: &Model) -> Result<Url, Failure> {
    let base = model.base_url.split('?').next().unwrap_or_default();
    let versioned = base.trim().trim_end_matches('/').ends_with("/v1");
    let path = if versioned { "/chat/completions" } else { "/v1/chat/completions" };
    endpoint(model, path, "https://api.mistral.ai")
}

fn headers(request: &Request) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderList::new(request)?;
    headers.bearer(&request.credentials)?;
    if let Some(key) = request::cache_key(request) {
        // Routes the requests of a session to where its prompt is cached.
        headers.set("x-affinity", key)?;
    }
    headers.finish(&request.credentials)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{CacheRetention, Secret};

    #[test]
    fn addresses_may_name_the_version() {
        let check = |base: &str, expected: &str| {
            let model = Model { base_url: base.into(), ..Model::placeholder() };
            assert_eq!(address(&model).unwrap().as_str(), expected);
        };
        check("https://api.mistral.ai", "https://api.mistral.ai/v1/chat/completions");
        check("http://h:1/v1/", "http://h:1/v1/chat/completions");
        assert!(address(&Model::placeholder()).unwrap_err().message.contains("https://api.mistral.ai"));
    }

    #[test]
    fn the_session_is_named_where_prompts_are_cached() {
        let model = Model { base_url: "https://api.mistral.ai".into(), ..Model::placeholder() };
        let mut request = Request::new(Arc::new(model), Vec::new());
        request.session_id = "s-1".into();
        request.credentials.api_key = Some(Secret::new("k-1"));
        let sent = headers(&request).unwrap();
        assert_eq!(sent["x-affinity"], "s-1");
        assert_eq!(sent["authorization"], "Bearer k-1");
        request.credentials.headers = vec![("X-Affinity".into(), Secret::new("mine"))];
        assert_eq!(headers(&request).unwrap()["x-affinity"], "mine");
        request.credentials.headers.clear();
        request.cache_retention = CacheRetention::None;
        assert!(!headers(&request).unwrap().contains_key("x-affinity"));
    }
}
