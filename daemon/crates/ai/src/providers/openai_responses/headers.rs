//! The headers of a request.

use reqwest::header::HeaderMap;

use super::compat::Compat;
use crate::{Request, failure::Failure, http::HeaderList};

/// All headers for `request`.
///
/// # Errors
/// Names the header that cannot be sent.
pub(super) fn headers(request: &Request, compat: &Compat) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderList::new(request)?;
    if compat.send_session_affinity_headers && !request.session_id.is_empty() {
        let names: &[&str] = match compat.session_affinity_format.as_str() {
            "openrouter" => &["x-session-id"],
            "openai-nosession" => &["x-client-request-id"],
            _ => &["session-id", "x-client-request-id"],
        };
        for name in names {
            headers.set(name, &request.session_id)?;
        }
    }
    headers.bearer(&request.credentials)?;
    headers.finish(&request.credentials)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use agentd_protocol::model::Model;
    use serde_json::{Value, json};

    use super::*;
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
        let found = headers(&request, &Compat::of(&request.model)).unwrap();
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
