//! `WWW-Authenticate` of an answer that refuses a request (RFC 9110, RFC 6750, RFC 9728). Pure.

use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

/// The longest header that is read, in bytes.
const MAX_HEADER: usize = 8 << 10;

/// What a server asks for in the scheme `Bearer`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Challenge {
    /// The address of the protected resource metadata.
    pub(crate) resource_metadata: Option<String>,
    /// The scopes that the request needs.
    pub(crate) scope: Option<String>,
    /// The error's name, such as `insufficient_scope`.
    pub(crate) error: Option<String>,
}

impl Challenge {
    /// The first challenge of the scheme `Bearer`; one without parameters where there is none.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let values = headers.get_all(WWW_AUTHENTICATE).iter();
        let texts = values.filter_map(|value| value.to_str().ok());
        texts.filter_map(Self::read).next().unwrap_or_default()
    }

    /// The first challenge of the scheme `Bearer` in one header.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let challenges = challenges(text);
        let bearer = challenges.into_iter().find(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))?;
        let parameter = |name: &str| {
            let found = bearer.1.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.clone()).filter(|value| !value.is_empty())
        };
        Some(Self {
            resource_metadata: parameter("resource_metadata"),
            scope: parameter("scope"),
            error: parameter("error"),
        })
    }

    /// Whether the token is good, and lacks scopes.
    pub(crate) fn wants_more_scopes(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }
}

/// A scheme and its parameters.
type SchemeParameters = (String, Vec<(String, String)>);

/// All challenges of a header. What cannot be read ends the list.
fn challenges(text: &str) -> Vec<SchemeParameters> {
    let mut found: Vec<SchemeParameters> = Vec::new();
    let mut rest = Rest(text.get(..MAX_HEADER).unwrap_or(text));
    loop {
        rest.skip(|letter| letter == ',' || letter.is_ascii_whitespace());
        let name = rest.take(is_token);
        if name.is_empty() {
            return found;
        }
        let before_value = rest;
        rest.skip(|letter| letter == ' ' || letter == '\t');
        if !rest.0.starts_with('=') {
            rest = before_value;
            found.push((name.to_owned(), Vec::new()));
            continue;
        }
        rest.0 = &rest.0[1..];
        rest.skip(|letter| letter == ' ' || letter == '\t');
        let value = match rest.0.strip_prefix('"') {
            Some(quoted) => {
                rest.0 = quoted;
                rest.quoted()
            }
            None => Some(rest.take(|letter| is_token(letter) || letter == '=').to_owned()),
        };
        // A parameter before any scheme, or a text without its end.
        let (Some(value), Some((_, parameters))) = (value, found.last_mut()) else { return found };
        parameters.push((name.to_owned(), value));
    }
}

/// The part of a header that is not read yet.
#[derive(Clone, Copy)]
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn skip(&mut self, is_skipped: impl Fn(char) -> bool) {
        self.0 = self.0.trim_start_matches(is_skipped);
    }

    fn take(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let end = self.0.find(|letter| !is_part(letter)).unwrap_or(self.0.len());
        let (taken, rest) = self.0.split_at(end);
        self.0 = rest;
        taken
    }

    /// The text up to the closing quote; `None` without one.
    fn quoted(&mut self) -> Option<String> {
        let mut value = String::new();
        let mut letters = self.0.char_indices();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '"' => {
                    self.0 = &self.0[at + 1..];
                    return Some(value);
                }
                '\\' => value.push(letters.next()?.1),
                letter => value.push(letter),
            }
        }
        None
    }
}

/// A letter of a token, or of the form of credentials that some schemes have (token68).
fn is_token(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~/".contains(letter)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use reqwest::header::HeaderValue;

    use super::*;

    fn check(text: &str, expected: Option<(Option<&str>, Option<&str>, Option<&str>)>) {
        let found = Challenge::read(text);
        let parts = found.as_ref().map(|found| {
            (found.resource_metadata.as_deref(), found.scope.as_deref(), found.error.as_deref())
        });
        assert_eq!(parts, expected, "{text}");
    }

    #[test]
    fn challenges_are_read() {
        check("Bearer", Some((None, None, None)));
        check(
            r#"Bearer resource_metadata="https://s/m?a=b", scope="a b", error=invalid_token"#,
            Some((Some("https://s/m?a=b"), Some("a b"), Some("invalid_token"))),
        );
        check(
            r#"Negotiate YWJj==, Basic realm="a, \"b\"" , bearer SCOPE = "x""#,
            Some((None, Some("x"), None)),
        );
        check(r#"Bearer scope="", scope=a, error="e"#, Some((None, None, None)));
        check(r#"scope="x", Bearer"#, None);
        check("DPoP algs=\"ES256\"", None);
        check("", None);
        check(r#"Bearer scope="ends \"#, Some((None, None, None)));
    }

    #[test]
    fn the_first_bearer_of_several_headers_counts() {
        let mut headers = HeaderMap::new();
        assert_eq!(Challenge::of(&headers), Challenge::default());
        for text in ["Basic realm=x", "Bearer scope=one", "Bearer scope=two"] {
            headers.append(WWW_AUTHENTICATE, HeaderValue::from_static(text));
        }
        assert_eq!(Challenge::of(&headers).scope.as_deref(), Some("one"));
        assert!(!Challenge::of(&headers).wants_more_scopes());
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_end_or_panic(text in ".{0,200}") {
            let read: usize = challenges(&text).iter().map(|(name, more)| {
                name.len() + more.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>()
            }).sum();
            prop_assert!(read <= text.len());
        }

        #[test]
        fn what_was_quoted_comes_back(scope in "[ -~]{1,40}", metadata in "[!-~]{1,40}") {
            let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
            let text = format!("Basic x, Bearer scope=\"{}\", resource_metadata=\"{}\"", quoted(&scope), quoted(&metadata));
            let found = Challenge::read(&text).unwrap();
            prop_assert_eq!(found.scope, Some(scope));
            prop_assert_eq!(found.resource_metadata, Some(metadata));
        }
    }
}
