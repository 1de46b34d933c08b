//! The secrets that this process knows of, so that what it says of itself holds none: log lines, errors, diagnostics, the text of
//! a panic.
//!
//! A [`Redactor`](super::Redactor) cleans what comes back from one request, with what that request was made of. This cleans what has
//! no request: whoever reads or gets a secret says so once with [`know`], and [`scrub`] takes it out of a text.

use std::{
    borrow::Cow,
    collections::VecDeque,
    sync::{Arc, PoisonError, RwLock},
};

use agentd_protocol::{error::Failure, resources::Diagnostic};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};
use memchr::memmem::Finder;

use super::REDACTED;

/// What is shorter is hardly a secret, and is part of too many texts.
const MIN_BYTES: usize = 8;

/// What is shorter and has no digit is taken for a word that stands in a key's place, as local servers are given.
const MIN_BYTES_OF_WORD: usize = 20;

/// How many secrets are known at a time. The oldest is forgotten: tokens end, and others take their place.
const MAX_SECRETS: usize = 512;

/// How much of Base64 is searched for. A secret's beginning is enough to find it, and what follows is taken out with it.
const MIN_ENCODED: usize = 10;

static KNOWN: RwLock<Known> = RwLock::new(Known { secrets: VecDeque::new() });

/// Remembers a secret for as long as the process lives; one that is known already costs a look. Texts that are too short to be
/// secrets are left alone.
pub fn know(secret: &str) {
    let secret = secret.trim();
    if !is_plausible(secret) {
        return;
    }
    if KNOWN.read().unwrap_or_else(PoisonError::into_inner).has(secret) {
        return;
    }
    let entry = Arc::new(Entry::of(secret));
    KNOWN.write().unwrap_or_else(PoisonError::into_inner).add(entry);
}

/// The text with `[redacted]` in the place of every known secret: as it is, as JSON, percent-encoded and in Base64. What holds none
/// is not copied.
#[must_use]
pub fn scrub(text: &str) -> Cow<'_, str> {
    KNOWN.read().unwrap_or_else(PoisonError::into_inner).scrub(text)
}

/// A failure whose texts hold no known secret.
#[must_use]
pub fn scrub_failure(mut failure: Failure) -> Failure {
    clean(&mut failure.error);
    failure.hint.as_mut().into_iter().for_each(clean);
    failure
}

/// A diagnostic whose texts hold no known secret.
#[must_use]
pub fn scrub_diagnostic(mut diagnostic: Diagnostic) -> Diagnostic {
    clean(&mut diagnostic.message);
    diagnostic.hint.as_mut().into_iter().for_each(clean);
    diagnostic
}

fn clean(text: &mut String) {
    if let Cow::Owned(scrubbed) = scrub(text) {
        *text = scrubbed;
    }
}

fn is_plausible(secret: &str) -> bool {
    let has_digit = secret.bytes().any(|byte| byte.is_ascii_digit());
    secret.len() >= if has_digit { MIN_BYTES } else { MIN_BYTES_OF_WORD }
}

/// The longest first: one secret may be part of another.
#[derive(Default)]
struct Known {
    /// In the order in which they came.
    secrets: VecDeque<Arc<Entry>>,
}

/// A secret in all its spellings.
struct Entry {
    secret: String,
    /// The longest first.
    spellings: Vec<Finder<'static>>,
}

impl Known {
    fn has(&self, secret: &str) -> bool {
        self.secrets.iter().any(|entry| entry.secret == secret)
    }

    fn add(&mut self, entry: Arc<Entry>) {
        if self.has(&entry.secret) {
            return;
        }
        if self.secrets.len() >= MAX_SECRETS {
            self.secrets.pop_front();
        }
        self.secrets.push_back(entry);
    }

    fn scrub<'a>(&self, text: &'a str) -> Cow<'a, str> {
        // All places at first, and then one pass: a secret that is part of another must not break that up.
        let mut places: Vec<(usize, usize)> = Vec::new();
        for spelling in self.secrets.iter().flat_map(|entry| &entry.spellings) {
            let length = spelling.needle().len();
            places.extend(spelling.find_iter(text.as_bytes()).map(|at| (at, at + length)));
        }
        if places.is_empty() {
            return Cow::Borrowed(text);
        }
        places.sort_unstable();
        let mut clean = String::with_capacity(text.len());
        let mut end = 0;
        for (from, to) in places {
            // Where two overlap, both go, under one mark.
            if from >= end {
                clean.push_str(text.get(end..from).unwrap_or_default());
                clean.push_str(REDACTED);
            }
            end = end.max(to);
        }
        clean.push_str(text.get(end..).unwrap_or_default());
        Cow::Owned(clean)
    }
}

impl Entry {
    fn of(secret: &str) -> Self {
        let mut spellings = vec![secret.to_owned()];
        let json = in_json(secret);
        spellings.push(in_json(&json));
        spellings.push(json);
        spellings.extend([true, false].map(|upper_case| percent_encoded(secret, upper_case)));
        for offset in 0..3 {
            let shifted = [&[0; 3][..offset], secret.as_bytes()].concat();
            // What the bytes beside it make of the ends is not known.
            let begin = [0, 2, 3][offset];
            let end = shifted.len() / 3 * 4;
            for encoded in [STANDARD_NO_PAD.encode(&shifted), URL_SAFE_NO_PAD.encode(&shifted)] {
                let inner = &encoded[begin..end];
                if inner.len() >= MIN_ENCODED {
                    spellings.push(inner.to_owned());
                }
            }
        }
        spellings.sort_unstable();
        spellings.dedup();
        spellings.sort_by_key(|spelling| std::cmp::Reverse(spelling.len()));
        let finder = |spelling: String| Finder::new(spelling.as_bytes()).into_owned();
        Self { secret: secret.to_owned(), spellings: spellings.into_iter().map(finder).collect() }
    }
}

fn in_json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// As parts of addresses and forms are written.
fn percent_encoded(text: &str, upper_case: bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            for digit in [byte >> 4, byte & 15] {
                let digit = char::from_digit(digit.into(), 16).unwrap_or('0');
                encoded.push(if upper_case { digit.to_ascii_uppercase() } else { digit });
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;

    use super::*;

    fn known(secrets: &[&str]) -> Known {
        let mut known = Known::default();
        secrets.iter().for_each(|secret| known.add(Arc::new(Entry::of(secret))));
        known
    }

    #[test]
    fn every_spelling_is_taken_out() {
        let known = known(&["sk-12\"3/45+hush"]);
        for text in [
            "sk-12\"3/45+hush",
            r#"sk-12\"3/45+hush"#,
            r#"sk-12\\\"3/45+hush"#,
            "sk-12%223%2F45%2Bhush",
            "sk-12%223%2f45%2bhush",
        ] {
            assert_eq!(known.scrub(&format!("a {text} b")), "a [redacted] b", "{text}");
        }
        assert!(matches!(known.scrub("nothing of it"), Cow::Borrowed(_)));
    }

    #[test]
    fn one_secret_in_another_leaves_nothing() {
        let known = known(&["hush-1234", "sk-hush-1234-long", "1234-long-tail"]);
        assert_eq!(known.scrub("sk-hush-1234-long, hush-1234"), "[redacted], [redacted]");
        assert_eq!(known.scrub("sk-hush-1234-long-tail!"), "[redacted]!");
    }

    #[test]
    fn words_are_no_secrets_and_the_oldest_is_forgotten() {
        assert!(!is_plausible("ollama-server") && !is_plausible("none") && !is_plausible("key-1"));
        assert!(is_plausible("hush-1234") && is_plausible("correct-horse-battery-staple"));
        let mut known = Known::default();
        for number in 0..=MAX_SECRETS {
            known.add(Arc::new(Entry::of(&format!("secret-{number}-"))));
            known.add(Arc::new(Entry::of(&format!("secret-{number}-"))));
        }
        assert_eq!(known.secrets.len(), MAX_SECRETS);
        assert!(!known.has("secret-0-") && known.has("secret-1-"));
    }

    #[test]
    fn what_is_known_once_is_never_said() {
        know("process-wide-0123456789");
        know("short");
        assert_eq!(scrub("is process-wide-0123456789 short?"), "is [redacted] short?");
    }

    proptest! {
        /// However a secret is put into Base64, and whatever stands beside it: neither it nor most of it is left.
        #[test]
        fn base64_at_any_offset(
            before in proptest::collection::vec(any::<u8>(), 0..9),
            after in proptest::collection::vec(any::<u8>(), 0..9),
            secret in "[a-z0-9/+\"-]{16,40}[0-9]",
        ) {
            let known = known(&[&secret]);
            let all = [before, secret.clone().into_bytes(), after].concat();
            for encoded in [STANDARD.encode(&all), URL_SAFE_NO_PAD.encode(&all)] {
                let clean = known.scrub(&encoded).into_owned();
                prop_assert!(clean.contains(REDACTED), "{} {}", secret, encoded);
            }
        }

        #[test]
        fn any_text_comes_back_without_the_secret(text in "\\PC{0,40}", at in 0..40_usize, secret in "\\PC{19,30}1") {
            prop_assume!(secret.trim() == secret);
            let known = known(&[&secret]);
            let at = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap();
            let whole = format!("{}{secret}{}", &text[..at], &text[at..]);
            prop_assert!(!known.scrub(&whole).contains(&secret));
        }
    }
}
