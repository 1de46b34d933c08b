//! The secrets that this process knows, so that its own texts hold none: log lines, errors, diagnostics, the text of a panic.
//!
//! A [`Redactor`](super::Redactor) cleans the answer of one request of that request's secrets. This module cleans texts without
//! a request: code that reads or gets a secret registers it once with [`register_secret`], and [`scrub`] removes it from a
//! text.

use std::{
    borrow::Cow,
    collections::VecDeque,
    sync::{OnceLock, PoisonError, RwLock},
};

use agentd_protocol::{error::Failure, resources::Diagnostic};
use aho_corasick::{AhoCorasick, MatchKind};
use base64::{
    Engine,
    engine::general_purpose::{GeneralPurpose, STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};

/// The text in place of a secret.
pub(super) const REDACTED: &str = "[redacted]";

/// The shortest secret: shorter ones are part of too many texts.
const MIN_BYTES: usize = 8;

/// The shortest secret without a digit: shorter ones count as words in place of a key, as local servers get.
const MIN_BYTES_OF_WORD: usize = 20;

/// The number of secrets that are registered at a time. The oldest is dropped: tokens end, and others take their place.
const MAX_SECRETS: usize = 512;

/// The least length of Base64 that is searched.
const MIN_ENCODED: usize = 10;

/// The beginning of a secret that is removed though the rest does not follow: half of it, within these limits in characters.
/// The common prefix of a provider's keys (`sk-ant-api03-`) is shorter, and so is the part of a key that servers show to its
/// owner.
const HEAD: (usize, usize) = (12, 24);

static KNOWN: RwLock<Known> = RwLock::new(Known { secrets: VecDeque::new(), search: OnceLock::new() });

/// Remembers a secret for as long as the process lives; one that is known already costs a look. Texts that are too short to be
/// secrets are left alone.
pub fn register_secret(secret: &str) {
    let secret = secret.trim();
    if !is_plausible(secret) {
        return;
    }
    if KNOWN.read().unwrap_or_else(PoisonError::into_inner).has(secret) {
        return;
    }
    let entry = Entry::of(secret);
    KNOWN.write().unwrap_or_else(PoisonError::into_inner).add(entry);
}

/// The text with `[redacted]` in place of every registered secret: plain, as JSON, percent-encoded, in hexadecimal digits and
/// in Base64, whole or its long beginning. A text without secrets is not copied.
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

/// The secrets, and what finds them.
#[derive(Default)]
struct Known {
    /// In the order in which they came.
    secrets: VecDeque<Entry>,
    /// Made when there is something to search in.
    search: OnceLock<Search>,
}

/// A secret in all its spellings.
struct Entry {
    secret: String,
    spellings: Vec<Spelling>,
}

/// One way to write a secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Spelling {
    text: String,
    /// The number of bytes that identify it. All of them when its beginning says nothing.
    head: usize,
}

/// Finds the beginnings of all spellings in one pass, however many there are.
struct Search {
    /// `None`: they are too much for it, which takes gigabytes. Then everything is taken for a secret.
    heads: Option<AhoCorasick>,
    /// The whole spelling of each.
    spellings: Vec<String>,
}

impl Known {
    fn has(&self, secret: &str) -> bool {
        self.secrets.iter().any(|entry| entry.secret == secret)
    }

    fn add(&mut self, entry: Entry) {
        if self.has(&entry.secret) {
            return;
        }
        if self.secrets.len() >= MAX_SECRETS {
            self.secrets.pop_front();
        }
        self.secrets.push_back(entry);
        self.search = OnceLock::new();
    }

    fn scrub<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.secrets.is_empty() {
            return Cow::Borrowed(text);
        }
        let spellings = || self.secrets.iter().flat_map(|entry| &entry.spellings);
        let search = self.search.get_or_init(|| Search::of(spellings()));
        // All places at first, and then one pass: a secret that is part of another must not break that up.
        let mut places = search.places(text.as_bytes());
        if places.is_empty() {
            return Cow::Borrowed(text);
        }
        places.sort_unstable();
        let mut clean = String::with_capacity(text.len());
        let mut end = 0;
        for (from, to) in places {
            // Two overlapping secrets are removed together, under one mark.
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

impl Search {
    fn of<'a>(spellings: impl Iterator<Item = &'a Spelling>) -> Self {
        let (heads, spellings): (Vec<&[u8]>, Vec<String>) =
            spellings.map(|it| (&it.text.as_bytes()[..it.head], it.text.clone())).unzip();
        Self { heads: AhoCorasick::builder().match_kind(MatchKind::Standard).build(heads).ok(), spellings }
    }

    /// The positions of secrets, nested ones included.
    fn places(&self, text: &[u8]) -> Vec<(usize, usize)> {
        let Some(heads) = &self.heads else { return vec![(0, text.len())] };
        let mut places: Vec<(usize, usize)> = Vec::new();
        for found in heads.find_overlapping_iter(text) {
            let rest = &self.spellings[found.pattern().as_usize()].as_bytes()[found.len()..];
            let more = rest.iter().zip(&text[found.end()..]).take_while(|(one, other)| one == other).count();
            places.push((found.start(), found.end() + more));
        }
        places
    }
}

impl Entry {
    fn of(secret: &str) -> Self {
        let head = head_of(secret);
        let mut spellings = Vec::new();
        let mut add = |text: String, head: String| {
            let head = if text.starts_with(&head) { head.len() } else { text.len() };
            spellings.push(Spelling { text, head });
        };
        let json = |text: &str| in_json(text);
        let nested = |text: &str| in_json(&in_json(text));
        let spelled: [&dyn Fn(&str) -> String; 9] = [
            &|text| text.to_owned(),
            &json,
            &nested,
            &|text| percent_encoded(text, Case::Upper, is_unreserved),
            &|text| percent_encoded(text, Case::Lower, is_unreserved),
            &|text| percent_encoded(text, Case::Upper, |_| false),
            &|text| percent_encoded(text, Case::Lower, |_| false),
            &|text| hexadecimal(text, Case::Upper),
            &|text| hexadecimal(text, Case::Lower),
        ];
        for spell in spelled {
            add(spell(secret), spell(head));
        }
        for offset in 0..3 {
            for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
                let (inner, whole) = in_base64(secret, offset, engine);
                let (beginning, _) = in_base64(head, offset, engine);
                if inner.len() >= MIN_ENCODED {
                    add(whole, if beginning.len() >= MIN_ENCODED { beginning } else { inner });
                }
            }
        }
        spellings.sort_unstable();
        spellings.dedup();
        Self { secret: secret.to_owned(), spellings }
    }
}

/// The beginning of a secret that is enough to know it by. The beginning of a text of several words, as certificates and headers
/// are, says nothing, and neither does the one of an address.
fn head_of(secret: &str) -> &str {
    let length = (secret.len().div_ceil(2)).clamp(HEAD.0, HEAD.1);
    let is_token = secret.bytes().all(|byte| byte.is_ascii_graphic()) && !secret.contains("://");
    if is_token && length < secret.len() { &secret[..length] } else { secret }
}

/// The Base64 of bytes that begin so far behind a group of three: what of it does not depend on the bytes beside them, and that up to
/// the end, where no bytes follow.
fn in_base64(text: &str, offset: usize, engine: &GeneralPurpose) -> (String, String) {
    let shifted = [&[0; 3][..offset], text.as_bytes()].concat();
    let begin = [0, 2, 3][offset];
    let end = shifted.len() / 3 * 4;
    let encoded = engine.encode(&shifted);
    let part = |part: Option<&str>| part.unwrap_or_default().to_owned();
    (part(encoded.get(begin..end)), part(encoded.get(begin..)))
}

fn in_json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// The case of hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    Upper,
    Lower,
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte)
}

/// The text percent-encoded as in addresses and forms: every byte but the `plain` ones.
fn percent_encoded(text: &str, case: Case, plain: impl Fn(u8) -> bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if plain(byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            push_digits(byte, case, &mut encoded);
        }
    }
    encoded
}

fn hexadecimal(text: &str, case: Case) -> String {
    let mut digits = String::with_capacity(text.len() * 2);
    text.bytes().for_each(|byte| push_digits(byte, case, &mut digits));
    digits
}

fn push_digits(byte: u8, case: Case, to: &mut String) {
    for digit in [byte >> 4, byte & 15] {
        let digit = char::from_digit(digit.into(), 16).unwrap_or('0');
        to.push(if case == Case::Upper { digit.to_ascii_uppercase() } else { digit });
    }
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;

    use super::*;

    fn known(secrets: &[&str]) -> Known {
        let mut known = Known::default();
        secrets.iter().for_each(|secret| known.add(Entry::of(secret)));
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
    fn every_encoding_of_every_byte_is_taken_out() {
        let secret = "sk-abcd-J/ke.y_12\u{e9}";
        let known = known(&[secret]);
        let bytes = |format: fn(u8) -> String| secret.bytes().map(format).collect::<String>();
        for text in [
            bytes(|byte| format!("{byte:02x}")),
            bytes(|byte| format!("{byte:02X}")),
            bytes(|byte| format!("%{byte:02x}")),
            bytes(|byte| format!("%{byte:02X}")),
        ] {
            assert_eq!(known.scrub(&format!("a {text} b")), "a [redacted] b", "{text}");
        }
    }

    #[test]
    fn long_beginnings_are_taken_out_and_common_ones_stay() {
        let key = "sk-ant-api03-Abc1Def2Ghi3Jkl4Mno5Pqr6Stu7Vwx8Yz90";
        let known = known(&[key, "-----BEGIN PRIVATE KEY-----\nMIIE123"]);
        assert_eq!(known.scrub(&format!("{}... is wrong", &key[..30])), "[redacted]... is wrong");
        assert_eq!(known.scrub(&format!("{}****", &key[..24])), "[redacted]****");
        let hex: String = key[..26].bytes().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(known.scrub(&format!("<{hex}>")), "<[redacted]>");
        for text in [
            "keys begin with sk-ant-api03-",
            "sk-ant-api03-Abc1...Yz90",
            "-----BEGIN PRIVATE KEY-----\nMIIE9",
        ] {
            assert!(matches!(known.scrub(text), Cow::Borrowed(_)), "{text}");
        }
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
            known.add(Entry::of(&format!("secret-{number}-")));
            known.add(Entry::of(&format!("secret-{number}-")));
        }
        assert_eq!(known.secrets.len(), MAX_SECRETS);
        assert!(!known.has("secret-0-") && known.has("secret-1-"));
    }

    #[test]
    fn what_is_known_once_is_never_said() {
        register_secret("process-wide-0123456789");
        register_secret("short");
        assert_eq!(scrub("is process-wide-0123456789 short?"), "is [redacted] short?");
    }

    proptest! {
        /// However a secret is encoded as Base64, and whatever surrounds it, neither it nor most of it is left.
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
