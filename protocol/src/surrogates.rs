//! JSON of JavaScript programs, which may hold halves of characters.

use std::borrow::Cow;

use memchr::memchr;
use serde::de::DeserializeOwned;

/// Parses JSON text, reading an escaped lone surrogate (`\ud83d` without its other half) as U+FFFD.
///
/// JavaScript cuts strings between the halves of a character and writes what is left; Rust's strings cannot hold it.
///
/// # Errors
/// What serde_json says of the text.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| match replace_lone_surrogates(text) {
        Cow::Borrowed(_) => Err(error),
        Cow::Owned(text) => serde_json::from_str(&text),
    })
}

/// Replaces each escape of a lone surrogate by the escape of U+FFFD.
pub(crate) fn replace_lone_surrogates(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut out = String::new();
    // Everything before `copied` is in `out`.
    let (mut copied, mut at) = (0, 0);
    while let Some(found) = memchr(b'\\', bytes.get(at..).unwrap_or_default()) {
        at += found;
        match unit(bytes, at) {
            Some(0xD800..=0xDBFF) if matches!(unit(bytes, at + 6), Some(0xDC00..=0xDFFF)) => at += 12,
            Some(0xD800..=0xDFFF) => {
                out.push_str(&text[copied..at]);
                out.push_str("\\ufffd");
                at += 6;
                copied = at;
            }
            // The escaped byte may be a backslash itself.
            _ => at += 2,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// The UTF-16 unit that the escape at `at` stands for.
fn unit(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(parse::<String>(text).unwrap(), expected, "{text}");
    }

    #[test]
    fn only_lone_halves_are_replaced() {
        check(r#""\ud83d\ude00 é \u00e9""#, "😀 é é");
        check(r#""a\ud83d""#, "a\u{fffd}");
        check(r#""\ude00\ud83d\ude00\uD83D\ud83d\ude00""#, "\u{fffd}😀\u{fffd}😀");
        check(r#""\\ud83d \\\ud83d""#, "\\ud83d \\\u{fffd}");
        check(r#""\ude00\"""#, "\u{fffd}\"");
    }

    #[test]
    fn other_faults_stay_faults() {
        assert!(parse::<String>(r#""\ud83"#).is_err());
        assert!(parse::<String>(r#""\u+123""#).is_err());
        assert!(parse::<u32>(r#""\ud83d""#).is_err());
    }

    proptest! {
        #[test]
        fn whole_strings_are_left_alone(value in any::<String>()) {
            let text = serde_json::to_string(&value).unwrap();
            prop_assert!(matches!(replace_lone_surrogates(&text), Cow::Borrowed(_)));
        }

        #[test]
        fn any_units_can_be_read(units in proptest::collection::vec(any::<u16>(), 0..20)) {
            let text: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            prop_assert_eq!(parse::<String>(&format!("\"{text}\"")).unwrap(), String::from_utf16_lossy(&units));
        }
    }
}
