//! URLs as models write them. Pure.

use reqwest::Url;

use super::error::WebError;

/// The longest URL that is asked for.
const MAX_URL: usize = 8192;

/// The URL that a text means: `https://` where it names no scheme, without the part behind `#`.
///
/// # Errors
/// A sentence for the model why it is none.
pub(crate) fn normalise(text: &str) -> Result<Url, WebError> {
    let text = text.trim();
    let wrong = |why: &str| WebError::Url { url: shortened(text), why: why.to_owned() };
    if text.len() > MAX_URL {
        return Err(wrong("it is too long"));
    }
    let has_scheme = text.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty()
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
    });
    let url = if has_scheme {
        Url::parse(text)
    } else {
        Url::parse(&format!("https://{}", text.trim_start_matches('/')))
    };
    let mut url = url.map_err(|error| wrong(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("only http:// and https:// can be read"));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(wrong("it names no host"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        // The URL itself holds the secret.
        let _ = (url.set_username(""), url.set_password(None));
        return Err(WebError::Url {
            url: url.into(),
            why: "it had a user name or a password in it, which are never sent: leave them out".to_owned(),
        });
    }
    url.set_fragment(None);
    Ok(url)
}

fn shortened(text: &str) -> String {
    text[..text.floor_char_boundary(200)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_made_whole_and_others_refused() {
        let of = |text: &str| normalise(text).map(String::from).map_err(|error| error.to_string());
        assert_eq!(of(" Example.ORG/a#b ").as_deref(), Ok("https://example.org/a"));
        assert_eq!(of("http://example.org:80").as_deref(), Ok("http://example.org/"));
        assert_eq!(of("localhost:8080/x").as_deref(), Ok("https://localhost:8080/x"));
        for (text, why) in [
            ("ftp://example.org/", "only http:// and https://"),
            ("file:///etc/passwd", "only http:// and https://"),
            ("https://me:hush@example.org/", "never sent"),
            ("https://", "empty host"),
            ("", "empty host"),
        ] {
            let error = of(text).unwrap_err();
            assert!(error.contains(why) && !error.contains("hush"), "{text}: {error}");
        }
    }
}
