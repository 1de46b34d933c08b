//! Targets of links: where they end in a text, and which may become hyperlinks.

use std::sync::Arc;

/// The longest target that becomes a hyperlink, in bytes: terminals ignore longer ones.
const MAX_TARGET: usize = 2048;

/// The deepest nesting of brackets in a target.
const MAX_NESTING: usize = 32;

/// The target as a terminal may have it: a known scheme, printable ASCII.
pub(crate) fn hyperlink(target: &str) -> Option<Arc<str>> {
    let (scheme, _) = target.split_once(':')?;
    let is_known = ["http", "https", "mailto", "file"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    if !is_known {
        return None;
    }
    let mut encoded = String::with_capacity(target.len());
    for byte in target.bytes() {
        if byte.is_ascii_graphic() {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    (encoded.len() <= MAX_TARGET).then(|| encoded.into())
}

/// The target in `(target "title")`, which the text begins with, and the length of all of it.
pub(crate) fn inline_target(text: &str) -> Option<(String, usize)> {
    let inner = text.strip_prefix('(')?;
    let begin = skip_blanks(inner, 0);
    let (target, end) = target(&inner[begin..])?;
    let mut at = skip_blanks(inner, begin + end);
    if at > begin + end && !inner[at..].starts_with(')') {
        at = skip_blanks(inner, at + title(&inner[at..])?);
    }
    inner[at..].starts_with(')').then_some((target, at + 2))
}

fn skip_blanks(text: &str, at: usize) -> usize {
    at + (text[at..].len() - text[at..].trim_start_matches([' ', '\n']).len())
}

/// The target, with escapes resolved, and its length in the text.
fn target(text: &str) -> Option<(String, usize)> {
    if let Some(inner) = text.strip_prefix('<') {
        let end = inner.find(['>', '\n', '<'])?;
        return inner[end..].starts_with('>').then(|| (unescaped(&inner[..end]), end + 2));
    }
    let (mut depth, mut is_escaped) = (0usize, false);
    let mut end = text.len();
    for (at, c) in text.char_indices() {
        match c {
            ' ' | '\n' => {
                end = at;
                break;
            }
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '(' if depth == MAX_NESTING => return None,
            '(' => depth += 1,
            ')' if depth == 0 => {
                end = at;
                break;
            }
            ')' => depth -= 1,
            _ => {}
        }
    }
    (depth == 0).then(|| (unescaped(&text[..end]), end))
}

/// The length of a title in quotes or brackets.
fn title(text: &str) -> Option<usize> {
    let close = match text.as_bytes().first()? {
        b'"' => '"',
        b'\'' => '\'',
        b'(' => ')',
        _ => return None,
    };
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == close => return Some(at + 1),
            _ => {}
        }
    }
    None
}

fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match chars.peek() {
            Some(next) if c == '\\' && next.is_ascii_punctuation() => out.extend(chars.next()),
            _ => out.push(c),
        }
    }
    out
}

/// The length of the address that the text begins with, where it is one without brackets around it: `https://a.b`, `www.a.b`.
pub(crate) fn bare_address(text: &str) -> Option<usize> {
    let prefix = ["https://", "http://", "www."].into_iter().find(|prefix| text.starts_with(prefix))?;
    let ends = |c: char| {
        c.is_whitespace()
            || matches!(c, '<' | '`' | '[' | ']' | '\u{3000}'..='\u{303f}' | '\u{ff00}'..='\u{ff65}')
    };
    let mut end = text.find(ends).unwrap_or(text.len());
    let count = |bracket| text[..end].matches(bracket).count();
    let mut unopened = count(')').saturating_sub(count('('));
    loop {
        let address = &text[..end];
        let last = address.chars().next_back()?;
        let is_extra = match last {
            '?' | '!' | '.' | ',' | ':' | ';' | '*' | '_' | '~' | '\'' | '"' | '|' | '}' => true,
            ')' if unopened > 0 => {
                unopened -= 1;
                true
            }
            _ => false,
        };
        if !is_extra {
            break;
        }
        end -= last.len_utf8();
    }
    let host = text.get(prefix.len()..end)?;
    host.starts_with(char::is_alphanumeric).then_some(end)
}

/// The target of an address between angle brackets: `https://a.b`, `a@b.c`. `None` where it is none.
pub(crate) fn bracketed_address(text: &str) -> Option<String> {
    if text.contains([' ', '\n', '<']) {
        return None;
    }
    if let Some((scheme, _)) = text.split_once(':') {
        let is_scheme = (2..=32).contains(&scheme.len())
            && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c));
        return is_scheme.then(|| text.to_owned());
    }
    let (user, host) = text.split_once('@')?;
    let is_user = !user.is_empty()
        && user.chars().all(|c| c.is_ascii_alphanumeric() || ".!#$%&'*+/=?^_`{|}~-".contains(c));
    let is_host = host.contains(|c: char| c.is_ascii_alphanumeric())
        && host.chars().all(|c| c.is_ascii_alphanumeric() || ".-".contains(c));
    (is_user && is_host).then(|| format!("mailto:{text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_end_at_their_bracket() {
        for (text, expected) in [
            ("(a)b", Some(("a", 3))),
            ("( <a b> \"t\" )", Some(("a b", 13))),
            ("(a(b)c 't')", Some(("a(b)c", 11))),
            ("(a\\)b)", Some(("a)b", 6))),
            ("(a b)", None),
            ("(a", None),
            ("()", Some(("", 2))),
        ] {
            assert_eq!(inline_target(text), expected.map(|(target, end)| (target.to_owned(), end)), "{text}");
        }
    }

    #[test]
    fn only_known_schemes_are_hyperlinks() {
        assert_eq!(hyperlink("https://a.b/é x").as_deref(), Some("https://a.b/%C3%A9%20x"));
        assert_eq!([hyperlink("javascript:x"), hyperlink("src/a.rs"), hyperlink("")], [None, None, None]);
    }

    #[test]
    fn addresses_are_found() {
        for (text, expected) in [
            ("https://a.b/c. D", Some("https://a.b/c")),
            ("https://a.b/(c)) d", Some("https://a.b/(c)")),
            ("www.a.b", Some("www.a.b")),
            ("https://", None),
            ("http://。", None),
            ("https://a.b。", Some("https://a.b")),
        ] {
            assert_eq!(bare_address(text).map(|end| &text[..end]), expected, "{text}");
        }
        assert_eq!(bracketed_address("a@b.c").as_deref(), Some("mailto:a@b.c"));
        assert_eq!((bracketed_address("a b:c"), bracketed_address("div")), (None, None));
    }
}
