//! Takes secrets out of texts that servers send back.

use std::fmt;

use reqwest::Url;

use crate::{Credentials, Secret};

/// Keys shorter than this are put in because some key is required; taking them out would only garble messages.
const MIN_KEY_BYTES: usize = 4;

/// The same for headers, many of which are no secrets.
const MIN_HEADER_BYTES: usize = 8;

/// What stands in place of a secret.
const REDACTED: &str = "[redacted]";

/// Takes the key and the secret parts of headers out of texts.
#[derive(Clone, Default)]
pub struct Redactor {
    secrets: Vec<String>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

impl Redactor {
    /// For requests with these credentials to an address, which can hold secrets as well: a password, and what stands in
    /// its query.
    #[must_use]
    pub fn new(credentials: &Credentials, url: &Url) -> Self {
        let mut secrets = Vec::new();
        let mut add = |secret: &str, min_bytes: usize| {
            let secret = secret.trim();
            if secret.len() >= min_bytes {
                secrets.push(secret.to_owned());
                // A server that answers in JSON repeats it in JSON's spelling.
                let quoted = serde_json::Value::from(secret).to_string();
                let quoted = quoted.trim_matches('"');
                if quoted != secret {
                    secrets.push(quoted.to_owned());
                }
            }
        };
        if let Some(key) = &credentials.api_key {
            add(key.expose(), MIN_KEY_BYTES);
        }
        if let Some(aws) = &credentials.aws {
            add(aws.secret_access_key.expose(), MIN_KEY_BYTES);
            add(aws.session_token.as_ref().map_or("", Secret::expose), MIN_KEY_BYTES);
            add(&aws.access_key_id, MIN_KEY_BYTES);
        }
        for (_, value) in &credentials.headers {
            let value = value.expose();
            add(value, MIN_HEADER_BYTES);
            for scheme in ["Bearer ", "bearer ", "Basic ", "basic "] {
                if let Some(token) = value.strip_prefix(scheme) {
                    add(token, MIN_HEADER_BYTES);
                }
            }
        }
        add(url.password().unwrap_or_default(), MIN_KEY_BYTES);
        url.query_pairs().for_each(|(_, value)| add(&value, MIN_HEADER_BYTES));
        // The longest first: one secret may be part of another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self { secrets }
    }

    /// The text with `[redacted]` in the place of each secret.
    #[must_use]
    pub fn redact(&self, text: String) -> String {
        self.secrets.iter().fold(text, |text, secret| {
            if text.contains(secret.as_str()) { text.replace(secret.as_str(), REDACTED) } else { text }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_header_values_are_taken_out() {
        let credentials = Credentials {
            api_key: Some(Secret::new("sk-12\"345")),
            headers: vec![
                ("authorization".into(), Secret::new("Bearer tok-9876")),
                ("x-short".into(), Secret::new("on")),
            ],
            ..Credentials::default()
        };
        let url = Url::parse("https://me:hush@h/v1?token=sesame-sesame&n=1").unwrap();
        let redactor = Redactor::new(&credentials, &url);
        assert_eq!(redactor.redact("me:hush, sesame-sesame, 1".into()), "me:[redacted], [redacted], 1");
        let text = r#"key sk-12"345 (sk-12\"345), Bearer tok-9876, tok-9876 is on"#.to_owned();
        assert_eq!(redactor.redact(text), "key [redacted] ([redacted]), [redacted], [redacted] is on");
    }
}
