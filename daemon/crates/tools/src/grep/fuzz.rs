//! The law of regular expressions; see the crate's `fuzz.rs`.

use grep_searcher::sinks::Lossy;

use super::file::{Engine, compile};

/// A pattern is refused with a reason, or finds lines in order. A literal text is found in exactly the lines that
/// contain it.
pub(crate) fn regexes(input: &[u8]) {
    let at = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (pattern, text) = input.split_at(at);
    let pattern = String::from_utf8_lossy(pattern);
    let text = text.strip_prefix(b"\n").unwrap_or(text);
    for (ignore_case, literal) in [(false, true), (true, false)] {
        let matcher = match compile(&pattern, ignore_case, literal) {
            Ok(matcher) => matcher,
            Err(error) => {
                assert!(!error.0.is_empty());
                assert!(!literal, "{pattern:?} as it is: {}", error.0);
                continue;
            }
        };
        let mut found: Vec<u64> = Vec::new();
        let mut engine = Engine::new(0, true);
        let sink = Lossy(|number, _| {
            found.push(number);
            Ok(true)
        });
        let searched = engine.searcher.search_slice(matcher, text, sink);
        assert!(searched.is_ok(), "{searched:?}");
        assert!(found.is_sorted_by(|one, next| one < next), "{found:?}");
        if literal && !text.is_empty() {
            let lines = text.strip_suffix(b"\n").unwrap_or(text).split(|byte| *byte == b'\n').enumerate();
            let holds = |line: &[u8]| memchr::memmem::find(line, pattern.as_bytes()).is_some();
            let expected: Vec<u64> =
                lines.filter(|(_, line)| holds(line)).map(|(at, _)| at as u64 + 1).collect();
            assert_eq!(found, expected, "{pattern:?}");
        }
    }
}
