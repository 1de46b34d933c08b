//! AWS signatures, version 4: a request is signed with a key that is never sent.
//!
//! Checked against the vendor's published test vectors. For services that encode paths twice in what they sign: all but S3.

use std::{
    fmt::Write as _,
    time::{SystemTime, UNIX_EPOCH},
};

use jiff::Timestamp;
use reqwest::{
    Url,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, InvalidHeaderValue},
};
use ring::{digest, hmac};

use crate::AwsKeys;

/// The algorithm's name.
const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// The scope of a signature beside the request itself.
#[derive(Debug, Clone, Copy)]
pub struct SigningScope<'a> {
    /// The region, such as `eu-central-1`.
    pub region: &'a str,
    /// The service's name in signatures, such as `bedrock` or `sts`.
    pub service: &'a str,
}

/// Why a request cannot be signed.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    /// The access key id, the session token or the region has characters that no header may have.
    #[error("the AWS keys (or the region) have characters that no header may have, such as a line break")]
    Header(#[from] InvalidHeaderValue),
    /// The clock is not within the years that have a date.
    #[error("the clock of this machine cannot be right")]
    Clock,
}

/// Adds what signs a request to its headers: `x-amz-date`, `x-amz-security-token` for keys that have one, and `authorization`. The
/// host, the content type and all `x-amz-` headers are signed, and the body is. `now` is the service's time.
///
/// # Errors
/// [`SignError`]; then the headers may have part of it.
pub fn sign(
    method: &str,
    url: &Url,
    headers: &mut HeaderMap,
    body: &[u8],
    keys: &AwsKeys,
    scope: SigningScope<'_>,
    now: SystemTime,
) -> Result<(), SignError> {
    let time = time_of(now)?;
    headers.insert(HeaderName::from_static("x-amz-date"), HeaderValue::try_from(&time)?);
    if let Some(token) = &keys.session_token {
        let mut token = HeaderValue::try_from(token.expose())?;
        token.set_sensitive(true);
        headers.insert(HeaderName::from_static("x-amz-security-token"), token);
    }
    let signed = SignedHeaders::of(url, headers);
    let request = canonical_request(method, url, &signed, body);
    let date = &time[..8];
    let scope_name = format!("{date}/{}/{}/aws4_request", scope.region, scope.service);
    let text = format!("{ALGORITHM}\n{time}\n{scope_name}\n{}", hex(sha256(request.as_bytes()).as_ref()));
    let signature = hex(hmac(signing_key(keys, date, scope).as_ref(), text.as_bytes()).as_ref());
    let value = format!(
        "{ALGORITHM} Credential={}/{scope_name}, SignedHeaders={}, Signature={signature}",
        keys.access_key_id, signed.names
    );
    let mut value = HeaderValue::try_from(value)?;
    value.set_sensitive(true);
    headers.insert(AUTHORIZATION, value);
    Ok(())
}

/// The time as signatures have it: `20150830T123600Z`.
fn time_of(now: SystemTime) -> Result<String, SignError> {
    let seconds = now.duration_since(UNIX_EPOCH).map_err(|_| SignError::Clock)?.as_secs();
    let seconds = i64::try_from(seconds).map_err(|_| SignError::Clock)?;
    let time = Timestamp::from_second(seconds).map_err(|_| SignError::Clock)?;
    Ok(time.strftime("%Y%m%dT%H%M%SZ").to_string())
}

/// The key for one day, region and service.
fn signing_key(keys: &AwsKeys, date: &str, scope: SigningScope<'_>) -> hmac::Tag {
    let secret = format!("AWS4{}", keys.secret_access_key.expose());
    let steps = [scope.region, scope.service, "aws4_request"];
    let day = hmac(secret.as_bytes(), date.as_bytes());
    steps.into_iter().fold(day, |key, step| hmac(key.as_ref(), step.as_bytes()))
}

fn canonical_request(method: &str, url: &Url, signed: &SignedHeaders, body: &[u8]) -> String {
    format!(
        "{method}\n{}\n{}\n{}\n{}\n{}",
        canonical_path(url.path()),
        canonical_query(url),
        signed.lines,
        signed.names,
        hex(sha256(body).as_ref())
    )
}

/// The headers that are signed: `name:value` lines, and their names.
struct SignedHeaders {
    lines: String,
    names: String,
}

impl SignedHeaders {
    fn of(url: &Url, headers: &HeaderMap) -> Self {
        let mut signed = vec![("host", host(url))];
        let names =
            headers.keys().filter(|name| *name == CONTENT_TYPE || name.as_str().starts_with("x-amz-"));
        for name in names {
            let values = headers.get_all(name).iter().map(|value| collapsed(value.as_bytes()));
            signed.push((name.as_str(), values.collect::<Vec<_>>().join(",")));
        }
        signed.sort_unstable();
        let mut lines = String::new();
        for (name, value) in &signed {
            // Writing to a string never fails.
            let _ = writeln!(lines, "{name}:{value}");
        }
        let names: Vec<&str> = signed.iter().map(|(name, _)| *name).collect();
        Self { lines, names: names.join(";") }
    }
}

/// The value of the header `Host`, which the HTTP client writes.
fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// A header's value without white space around it, and with single spaces inside.
fn collapsed(value: &[u8]) -> String {
    let value = String::from_utf8_lossy(value);
    value.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

/// The path, with each of its parts encoded once more than it is.
fn canonical_path(path: &str) -> String {
    if path.is_empty() {
        return "/".to_owned();
    }
    path.split('/').map(|part| encode(part.as_bytes())).collect::<Vec<_>>().join("/")
}

/// The query, sorted by name and then by value.
fn canonical_query(url: &Url) -> String {
    let encoded = |text: &str| encode(text.as_bytes());
    let mut pairs: Vec<(String, String)> =
        url.query_pairs().map(|(name, value)| (encoded(&name), encoded(&value))).collect();
    pairs.sort_unstable();
    let pairs: Vec<String> = pairs.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join("&")
}

/// Percent-encodes everything but the unreserved characters of RFC 3986: what a part of a path, a query and a form of AWS's APIs
/// looks like.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    let mut encoded = String::with_capacity(bytes.len());
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) {
            encoded.push(char::from(*byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

fn sha256(bytes: &[u8]) -> digest::Digest {
    digest::digest(&digest::SHA256, bytes)
}

fn hmac(key: &[u8], text: &[u8]) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Secret;

    /// The time of all vectors: 2015-08-30 12:36:00 UTC.
    fn time() -> SystemTime {
        UNIX_EPOCH + std::time::Duration::from_secs(1_440_938_160)
    }

    /// The keys of all vectors.
    fn keys(token: Option<&str>) -> AwsKeys {
        AwsKeys {
            access_key_id: "AKIDEXAMPLE".into(),
            secret_access_key: Secret::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
            session_token: token.map(Secret::new),
        }
    }

    /// Signs as the vectors want it; the signed names and the signature.
    fn signature(
        method: &str,
        url: &str,
        given: &[(&'static str, &str)],
        body: &str,
        token: Option<&str>,
    ) -> (String, String) {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            headers.append(*name, value.parse().unwrap());
        }
        let url = Url::parse(url).unwrap();
        let scope = SigningScope { region: "us-east-1", service: "service" };
        sign(method, &url, &mut headers, body.as_bytes(), &keys(token), scope, time()).unwrap();
        assert_eq!(headers["x-amz-date"], "20150830T123600Z");
        assert!(headers[AUTHORIZATION].is_sensitive());
        let value = headers[AUTHORIZATION].to_str().unwrap();
        let rest = value
            .strip_prefix(
                "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=",
            )
            .unwrap();
        let (names, signature) = rest.split_once(", Signature=").unwrap();
        (names.to_owned(), signature.to_owned())
    }

    /// From the vendor's test suite for version 4 (`aws-sig-v4-test-suite`): name, method, URL, signature. The host of all is
    /// `example.amazonaws.com`, and no headers are signed but the host and the date.
    #[test]
    fn the_vendors_vectors() {
        for (name, method, path, expected) in [
            ("get-vanilla", "GET", "/", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
            ("post-vanilla", "POST", "/", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
            (
                "get-vanilla-query-order-key-case",
                "GET",
                "/?Param2=value2&Param1=value1",
                "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
            ),
            (
                "get-unreserved",
                "GET",
                "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
                "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f",
            ),
        ] {
            let url = format!("https://example.amazonaws.com{path}");
            let (names, found) = signature(method, &url, &[], "", None);
            assert_eq!((names.as_str(), found.as_str()), ("host;x-amz-date", expected), "{name}");
        }
        let form = [("content-type", "application/x-www-form-urlencoded")];
        let (names, found) =
            signature("POST", "https://example.amazonaws.com/", &form, "Param1=value1", None);
        assert_eq!(names, "content-type;host;x-amz-date", "post-x-www-form-urlencoded");
        assert_eq!(
            found, "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
            "post-x-www-form-urlencoded"
        );
    }

    #[test]
    fn what_is_signed() {
        let of = |path: &str, query: &str| {
            let url = Url::parse(&format!("http://127.0.0.1:99{path}{query}")).unwrap();
            (canonical_path(url.path()), canonical_query(&url), host(&url))
        };
        // A path that is encoded already is encoded again.
        assert_eq!(of("/model/a.b-v1%3A0/x", "").0, "/model/a.b-v1%253A0/x");
        assert_eq!(of("", "?b=2&a=%2F&a=1&c").1, "a=%2F&a=1&b=2&c=");
        assert_eq!(of("/", "").2, "127.0.0.1:99");
        assert_eq!(host(&Url::parse("https://h:443/").unwrap()), "h");
        let headers = [("x-amz-b", " 1   2 "), ("x-amz-b", "3"), ("x-other", "4")];
        let (names, _) = signature("GET", "https://h/", &headers, "", Some("token"));
        assert_eq!(names, "host;x-amz-b;x-amz-date;x-amz-security-token");
        assert_eq!(collapsed(b" 1   2 "), "1 2");
    }

    #[test]
    fn the_token_is_signed_and_everything_else_counts() {
        let base = signature("POST", "https://h/p", &[], "{}", None).1;
        for other in [
            signature("GET", "https://h/p", &[], "{}", None),
            signature("POST", "https://h:1/p", &[], "{}", None),
            signature("POST", "https://h/q", &[], "{}", None),
            signature("POST", "https://h/p?q", &[], "{}", None),
            signature("POST", "https://h/p", &[], "[]", None),
            signature("POST", "https://h/p", &[], "{}", Some("t")),
        ] {
            assert_ne!(other.1, base);
        }
    }

    #[test]
    fn keys_that_no_header_can_hold_are_refused() {
        let mut headers = HeaderMap::new();
        let url = Url::parse("https://h/").unwrap();
        let scope = SigningScope { region: "r", service: "s" };
        let error = sign("POST", &url, &mut headers, b"", &keys(Some("a\nb")), scope, time()).unwrap_err();
        assert!(
            error.to_string().contains("line break") && !format!("{error:?}").contains("a\nb"),
            "{error:?}"
        );
    }
}
