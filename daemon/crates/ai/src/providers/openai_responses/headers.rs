//! The headers of a request.

use reqwest::header::HeaderMap;

use super::compat::Compat;
use crate::{CacheRetention, Request, failure::Failure, http::HeaderList};

/// All headers for `request`.
///
/// # Errors
/// Names the header that cannot be sent.
pub(super) fn headers(request: &Request, compat: &Compat) -> Result<HeaderMap, Failure> {
    let mut headers = start(request, compat)?;
    headers.bearer(&request.credentials)?;
    headers.finish(&request.credentials)
}

/// The headers of all APIs of the family: identity and session. The authorisation is still missing.
///
/// # Errors
/// Names the header that cannot be sent.
pub(in crate::providers) fn start(request: &Request, compat: &Compat) -> Result<HeaderList, Failure> {
    let mut headers = HeaderList::new(request)?;
    let is_cached = request.cache_retention != CacheRetention::None && !request.session_id.is_empty();
    if compat.send_session_affinity_headers && is_cached {
        let names: &[&str] = match compat.session_affinity_format.as_str() {
            "openrouter" => &["x-session-id"],
            "openai-nosession" => &["x-client-request-id"],
            _ => &["session-id", "x-client-request-id"],
        };
        for name in names {
            headers.set(name, &request.session_id)?;
        }
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use agentd_protocol::model::Model;
    use serde_json::{Value, json};

    use super::{super::Dialect, *};
    use crate::{Credentials, Secret};

    fn check(compat: Value, session: &str, expected: &[(&str, &str)]) {
        let model = Model { compat: compat.as_object().cloned(), ..Model::placeholder() };
        let mut request = Request::new(Arc::new(model), Vec::new());
        request.session_id = session.into();
        request.credentials = Credentials {
            api_key: Some(Secret::new("key")),
            headers: vec![("x-mine".into(), Secret::new("yes"))],
            ..Credentials::default()
        };
        let found = headers(&request, &Compat::of(&request.model, Dialect::OpenAi)).unwrap();
        let identity = ["content-type", "accept", "user-agent"];
        let mut found: Vec<(&str, &str)> = found
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .filter(|(name, _)| !identity.contains(name))
            .collect();
        found.sort_unstable();
        assert_eq!(found, expected, "{compat}");
    }

    #[test]
    fn a_session_keeps_to_its_server() {
        let (key, mine) = (("authorization", "Bearer key"), ("x-mine", "yes"));
        check(Value::Null, "s", &[key, ("session-id", "s"), ("x-client-request-id", "s"), mine]);
        check(json!({"sessionAffinityFormat": "openrouter"}), "s", &[key, mine, ("x-session-id", "s")]);
        let no_session = json!({"sessionAffinityFormat": "openai-nosession"});
        check(no_session, "s", &[key, ("x-client-request-id", "s"), mine]);
        check(json!({"sendSessionAffinityHeaders": false}), "s", &[key, mine]);
        check(Value::Null, "", &[key, mine]);
    }
}
