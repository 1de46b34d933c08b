//! Laws for every text that secrets are taken out of: for fuzz targets (`fuzz/` in the repository) and for the tests that read
//! known inputs again. Present only with the feature `fuzzing`; no part of the interface.
//!
//! Each function takes any bytes and panics when they break the law.

use crate::{Redactor, Secret};

/// The laws, by the names of their fuzz targets.
pub const LAWS: &[(&str, fn(&[u8]))] = &[("redaction", redaction)];

/// A secret in a text is taken out however the bytes come, and nothing else is. The first two lines are the secrets, the rest is the
/// text, in which an FF stands for the first secret.
pub fn redaction(input: &[u8]) {
    let mut lines = input.splitn(3, |byte| *byte == b'\n');
    let mut secret = || String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
    let secrets = [secret(), secret()];
    let rest = lines.next().unwrap_or_default();
    let first = secrets[0].as_bytes();
    let text: Vec<u8> = rest.split(|byte| *byte == 0xff).collect::<Vec<_>>().join(first);
    let redactor = Redactor::default().and(secrets.clone().map(Secret::new));
    let read = |size: usize| {
        let mut stream = redactor.stream();
        let mut out = Vec::new();
        text.chunks(size.max(1)).for_each(|piece| out.extend(stream.feed(piece)));
        out.extend(stream.finish());
        out
    };
    let whole = read(text.len());
    for size in [1, text.len() % 17 + 2] {
        assert_eq!(read(size), whole, "in pieces of {size} bytes");
    }
    let said = String::from_utf8_lossy(&text).into_owned();
    let redacted = redactor.redact(said.clone());
    for secret in secrets.iter().filter(|secret| secret.len() >= 4) {
        // The mark in its place may make the text hold it.
        if !"[redacted]".contains(secret.as_str()) && !secret.contains(['[', ']']) && !may_meet(secret) {
            assert!(!redacted.contains(secret.as_str()), "{secret:?} in {redacted:?} of {said:?}");
            assert!(
                !whole.windows(secret.len()).any(|at| at == secret.as_bytes()),
                "{secret:?} in the stream"
            );
        }
    }
    if !secrets.iter().any(|secret| secret.len() >= 4 && said.contains(secret.as_str())) {
        assert_eq!(redacted, said, "nothing else is taken out");
    }
}

/// Returns whether the mark that stands for a secret can be a part of this one.
fn may_meet(secret: &str) -> bool {
    (1..10).any(|length| {
        let (start, end) = (&"[redacted]"[..length], &"[redacted]"[10 - length..]);
        secret.ends_with(start) || secret.starts_with(end)
    })
}

#[cfg(test)]
#[path = "../../../../tests/fuzz/src/found.rs"]
mod found;

#[test]
fn inputs_that_were_found() {
    found::check(LAWS);
}
