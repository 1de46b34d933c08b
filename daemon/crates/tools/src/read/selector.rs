//! Lines that a URL asks for behind its name: `:50`, `:50-100`, `:50+20`, `:5-16,900-920`, `:raw`. Pure.

/// The most ranges of one URL.
const MAX_RANGES: usize = 32;

/// Lines from `first` on, counted from 1: all, or that many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineRange {
    pub(super) first: u64,
    pub(super) count: Option<u64>,
}

/// A URL without its selectors, and what they ask for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Selected<'a> {
    pub(super) url: &'a str,
    /// The lines: none for `:raw` alone, which means all.
    pub(super) ranges: Vec<LineRange>,
    /// Whether the content is wanted as it is.
    pub(super) raw: bool,
}

/// A URL taken apart; `None` where it has no selectors.
pub(super) fn split(url: &str) -> Option<Selected<'_>> {
    let (mut rest, mut ranges, mut has_some, mut raw) = (url, Vec::new(), false, false);
    while let Some((before, selector)) = rest.rsplit_once(':') {
        if selector == "raw" {
            // Files are shown as they are in any case.
            raw = true;
        } else if let Some(found) = parse(selector).filter(|_| ranges.is_empty()) {
            ranges = found;
        } else {
            break;
        }
        (rest, has_some) = (before, true);
    }
    // The scheme itself ends with a colon.
    (has_some && !rest.is_empty()).then_some(Selected { url: rest, ranges, raw })
}

fn parse(selector: &str) -> Option<Vec<LineRange>> {
    let ranges: Option<Vec<LineRange>> = selector.split(',').take(MAX_RANGES + 1).map(range).collect();
    let mut ranges = ranges.filter(|ranges| ranges.len() <= MAX_RANGES)?;
    if ranges.len() > 1 {
        // Among others, a number is a line.
        ranges.iter_mut().for_each(|range| range.count = range.count.or(Some(1)));
    }
    Some(ranges)
}

fn range(text: &str) -> Option<LineRange> {
    let number = |text: &str| {
        let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u64>().ok().filter(|number| is_plain && *number > 0)
    };
    if let Some((first, last)) = text.split_once('-') {
        let (first, last) = (number(first)?, number(last)?);
        return Some(LineRange { first, count: Some(last.checked_sub(first)? + 1) });
    }
    if let Some((first, count)) = text.split_once('+') {
        return Some(LineRange { first: number(first)?, count: Some(number(count)?) });
    }
    Some(LineRange { first: number(text)?, count: None })
}

/// The scheme of a path that looks like a URL, but for `file`, which names a path.
pub(crate) fn scheme(path: &str) -> Option<&str> {
    let (scheme, _) = path.split_once("://")?;
    let begins = scheme.starts_with(|letter: char| letter.is_ascii_alphabetic());
    let is_plain =
        scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'.' | b'-'));
    (begins && is_plain && scheme != "file").then_some(scheme)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected_raw(url: &str) -> bool {
        url.contains(":raw")
    }

    #[test]
    fn selectors_stand_behind_the_name() {
        let of = |first, count| LineRange { first, count };
        for (url, expected) in [
            ("n", None),
            ("n:x", None),
            ("n:0", None),
            ("n:5-3", None),
            ("n:1-", None),
            ("n:-1", None),
            (":5", None),
            ("n:50", Some(("n", vec![of(50, None)]))),
            ("a/b.md:50-100", Some(("a/b.md", vec![of(50, Some(51))]))),
            ("n:50+20", Some(("n", vec![of(50, Some(20))]))),
            ("n:5-16,900-920", Some(("n", vec![of(5, Some(12)), of(900, Some(21))]))),
            ("n:2,7-8", Some(("n", vec![of(2, Some(1)), of(7, Some(2))]))),
            ("n:raw", Some(("n", vec![]))),
            ("n:raw:3", Some(("n", vec![of(3, None)]))),
            ("n:3:raw", Some(("n", vec![of(3, None)]))),
            ("n:3:4", Some(("n:3", vec![of(4, None)]))),
            ("n:18446744073709551616", None),
        ] {
            let found = split(url).map(|found| (found.url, found.ranges));
            assert_eq!(found, expected, "{url}");
            assert_eq!(split(url).is_some_and(|found| found.raw), expected_raw(url), "{url}");
        }
    }

    #[test]
    fn schemes() {
        for (path, expected) in [
            ("skill://x", Some("skill")),
            ("git+ssh://x", Some("git+ssh")),
            ("file:///x", None),
            ("a b://x", None),
            ("://x", None),
            ("./a://x", None),
            ("src/a.rs", None),
        ] {
            assert_eq!(scheme(path), expected, "{path}");
        }
    }
}
