//! Addresses as clients see them, without the secrets that people put into them.

use std::borrow::Cow;

use serde::Serializer;

/// The text that replaces a secret.
const REDACTED: &str = "[redacted]";

/// Names of a query that are given to secrets.
const SECRET_NAMES: [&str; 8] =
    ["key", "api_key", "api-key", "apikey", "token", "access_token", "secret", "password"];

/// For `serialize_with`.
pub(crate) fn serialize<S: Serializer>(url: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&shown(url))
}

/// The address without its password, and without the values of its query that look like secrets. A text that is no address
/// stays as it is.
#[must_use]
pub fn shown(url: &str) -> Cow<'_, str> {
    let mut shown = Cow::Borrowed(url);
    if let Some((start, end)) = password(&shown) {
        shown.to_mut().replace_range(start..end, REDACTED);
    }
    let Some(query) = shown.find('?') else { return shown };
    let mut from = query + 1;
    while from < shown.len() {
        let end = shown[from..].find(['&', '#']).map_or(shown.len(), |end| from + end);
        let mut next = end;
        if let Some((name, value)) = shown[from..end].split_once('=')
            && !value.is_empty()
            && SECRET_NAMES.iter().any(|secret| name.eq_ignore_ascii_case(secret))
        {
            let start = end - value.len();
            shown.to_mut().replace_range(start..end, REDACTED);
            next = start + REDACTED.len();
        }
        if shown[next..].starts_with('#') {
            break;
        }
        from = next + 1;
    }
    shown
}

/// The byte range of the password in an address.
fn password(url: &str) -> Option<(usize, usize)> {
    let start = url.find("://")? + 3;
    let authority = url[start..].find(['/', '?', '#']).map_or(&url[start..], |end| &url[start..start + end]);
    let at = authority.rfind('@')?;
    let colon = authority[..at].find(':')?;
    Some((start + colon + 1, start + at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_taken_out() {
        for (url, expected) in [
            ("http://h/v1", "http://h/v1"),
            ("", ""),
            ("http://u@h/v1?version=1#x?key=2", "http://u@h/v1?version=1#x?key=2"),
            ("http://u:hush@h:1/v1", "http://u:[redacted]@h:1/v1"),
            (
                "http://u:hu@sh@h/v1?key=hush&v=2&Token=hush#f",
                "http://u:[redacted]@h/v1?key=[redacted]&v=2&Token=[redacted]#f",
            ),
            ("https://h/v1?key=&token=hush", "https://h/v1?key=&token=[redacted]"),
            ("http://h/@a:b", "http://h/@a:b"),
        ] {
            assert_eq!(shown(url), expected);
        }
    }
}
