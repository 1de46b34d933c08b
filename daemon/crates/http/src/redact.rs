//! Takes secrets out of texts that servers send back.

use std::{borrow::Cow, fmt};

use reqwest::Url;

use crate::{Credentials, Secret};

mod registered;

use registered::REDACTED;
pub use registered::{register_secret, scrub, scrub_diagnostic, scrub_failure};

/// Keys shorter than this are put in because some key is required; taking them out would only garble messages.
const MIN_KEY_BYTES: usize = 4;

/// The shortest header value that counts as a secret; many headers are none.
const MIN_HEADER_BYTES: usize = 8;

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
    /// A redactor for requests with these credentials to an address, which can hold secrets as well: a password, and its query.
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

    /// The text with `[redacted]` in the place of each secret, of those that the whole process knows, too.
    #[must_use]
    pub fn redact(&self, text: String) -> String {
        let text = self.secrets.iter().fold(text, |text, secret| {
            if text.contains(secret.as_str()) { text.replace(secret.as_str(), REDACTED) } else { text }
        });
        match scrub(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(clean) => clean,
        }
    }
}

/// Parts of the names of headers whose values are never shown, whatever they hold.
const SECRET_NAMES: [&str; 11] = [
    "passw",
    "account",
    "auth",
    "key",
    "token",
    "secret",
    "cookie",
    "credential",
    "signature",
    "organization",
    "session-id",
];

impl Redactor {
    /// Returns whether the value of this header, or of this part of a query, is never shown.
    #[must_use]
    pub fn hides(name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        SECRET_NAMES.iter().any(|part| name.contains(part)) && !name.contains("tokens")
    }

    /// Also takes these out.
    #[must_use]
    pub fn and(mut self, secrets: impl IntoIterator<Item = Secret>) -> Self {
        let secrets = secrets.into_iter().map(|secret| secret.expose().to_owned());
        self.secrets.extend(secrets.filter(|secret| secret.len() >= MIN_KEY_BYTES));
        self.secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        self
    }

    /// Also removes the forms that these secrets take in JSON inside of JSON strings, down to this depth.
    #[must_use]
    pub fn and_nested(mut self, secrets: impl IntoIterator<Item = Secret>, depth: usize) -> Self {
        for secret in secrets {
            let mut spelled = secret.expose().to_owned();
            for _ in 0..=depth {
                let quoted = serde_json::Value::from(spelled.as_str()).to_string();
                let quoted = quoted[1..quoted.len() - 1].to_owned();
                let is_last = quoted == spelled;
                self = self.and([Secret::new(spelled)]);
                if is_last {
                    break;
                }
                spelled = quoted;
            }
        }
        self
    }

    /// Takes the same secrets out of bytes that come in pieces.
    #[must_use]
    pub fn stream(&self) -> StreamRedactor {
        StreamRedactor { redactor: self.clone(), held: Vec::new() }
    }
}

/// Takes secrets out of a stream of bytes, also where one is cut in two by the pieces.
#[derive(Debug)]
pub struct StreamRedactor {
    redactor: Redactor,
    /// The end of what came, where a secret may begin.
    held: Vec<u8>,
}

impl StreamRedactor {
    /// Takes the next bytes, and gives those that hold no beginning of a secret.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut all = std::mem::take(&mut self.held);
        all.extend_from_slice(bytes);
        self.pass(&all, false)
    }

    /// The bytes that were held back when the stream ended.
    #[must_use]
    pub fn finish(&mut self) -> Vec<u8> {
        let held = std::mem::take(&mut self.held);
        self.pass(&held, true)
    }

    /// Gives what is no secret, and holds back what may be one yet.
    fn pass(&mut self, all: &[u8], is_end: bool) -> Vec<u8> {
        let secrets = || self.redactor.secrets.iter().map(String::as_bytes);
        let mut done = Vec::with_capacity(all.len());
        let mut at = 0;
        while at < all.len() {
            let rest = &all[at..];
            // One that is whole may be the beginning of a longer one.
            if !is_end && secrets().any(|secret| secret.len() > rest.len() && secret.starts_with(rest)) {
                self.held = rest.to_vec();
                return done;
            }
            if let Some(secret) = secrets().find(|secret| rest.starts_with(secret)) {
                done.extend_from_slice(REDACTED.as_bytes());
                at += secret.len();
            } else {
                done.push(all[at]);
                at += 1;
            }
        }
        done
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

    #[test]
    fn secrets_in_json_in_json_are_taken_out() {
        let redactor = Redactor::default().and_nested([Secret::new("a\"\\hush")], 2);
        let inner = serde_json::json!({"x": "a\"\\hush"}).to_string();
        let outer = serde_json::json!({"line": inner}).to_string();
        assert_eq!(redactor.redact(outer), r#"{"line":"{\"x\":\"[redacted]\"}"}"#);
        assert_eq!(redactor.redact("a\"\\hush".into()), "[redacted]");
    }

    #[test]
    fn a_secret_in_pieces_is_taken_out_wherever_it_is_cut() {
        let redactor = Redactor::default().and([Secret::new("sk-hush-hush"), Secret::new("sk-hush")]);
        let text = "sk-sk-hush-hush, sk-hush, sk-hus";
        for size in 1..text.len() {
            let mut stream = redactor.stream();
            let mut done = Vec::new();
            text.as_bytes().chunks(size).for_each(|piece| done.extend(stream.feed(piece)));
            done.extend(stream.finish());
            assert_eq!(String::from_utf8(done).unwrap(), "sk-[redacted], [redacted], sk-hus", "{size}");
        }
    }

    #[test]
    fn names_of_secrets() {
        for name in
            ["Authorization", "x-api-key", "api-key", "Set-Cookie", "X-Amz-Security-Token", "x-goog-api-key"]
        {
            assert!(Redactor::hides(name), "{name}");
        }
        for name in ["content-type", "x-ratelimit-remaining-tokens", "retry-after", "request-id"] {
            assert!(!Redactor::hides(name), "{name}");
        }
    }
}
