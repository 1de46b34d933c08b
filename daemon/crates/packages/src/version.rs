//! Versions and ranges as npm writes them. A range that is none, such as a tag, allows every version.

use std::cmp::Ordering;

/// A version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Version {
    /// Major, minor and patch.
    numbers: [u64; 3],
    /// The parts behind the hyphen; none for a release.
    pre: Vec<PrePart>,
}

/// A part of what stands behind the hyphen: numbers come before words.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum PrePart {
    Number(u64),
    Word(String),
}

impl Version {
    /// Reads `1.2.3` and `1.2.3-beta.1+build`, with a `v` before it or not.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let Partial { numbers, pre } = Partial::parse(text.trim().trim_start_matches(['v', '=']))?;
        match numbers {
            [Some(major), Some(minor), Some(patch)] => Some(Self { numbers: [major, minor, patch], pre }),
            _ => None,
        }
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        // A release comes behind what led to it.
        let of_pre = match (self.pre.is_empty(), other.pre.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => self.pre.cmp(&other.pre),
        };
        self.numbers.cmp(&other.numbers).then(of_pre)
    }
}

/// A version of which the last numbers may be missing or `x`.
struct Partial {
    numbers: [Option<u64>; 3],
    pre: Vec<PrePart>,
}

impl Partial {
    fn parse(text: &str) -> Option<Self> {
        let text = text.split('+').next()?;
        let (numbers, pre) = text.split_once('-').map_or((text, None), |(numbers, pre)| (numbers, Some(pre)));
        let mut read = [None; 3];
        let mut parts = numbers.split('.');
        for place in &mut read {
            match parts.next() {
                None | Some("x" | "X" | "*") => break,
                Some(part) => *place = Some(number(part)?),
            }
        }
        if numbers.split('.').count() > 3 {
            return None;
        }
        let part = |part: &str| {
            let is_word = !part.is_empty() && part.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-');
            number(part).map(PrePart::Number).or_else(|| is_word.then(|| PrePart::Word(part.to_owned())))
        };
        let pre = match pre {
            Some(pre) => pre.split('.').map(part).collect::<Option<Vec<_>>>()?,
            None => Vec::new(),
        };
        Some(Self { numbers: read, pre })
    }

    /// The lowest version that it means.
    fn low(self) -> Version {
        Version { numbers: self.numbers.map(Option::unwrap_or_default), pre: self.pre }
    }

    /// The first version behind those that share the numbers before place `at`; `None` for all versions.
    fn behind(&self, at: usize) -> Option<Version> {
        let mut numbers = self.numbers.map(Option::unwrap_or_default);
        let last = at.checked_sub(1)?;
        numbers[last] = numbers[last].saturating_add(1);
        numbers[at..].fill(0);
        Some(Version { numbers, pre: vec![PrePart::Number(0)] })
    }

    /// The count of its numbers.
    fn count(&self) -> usize {
        self.numbers.iter().take_while(|number| number.is_some()).count()
    }
}

fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

/// From the first, without the second.
#[derive(Debug, Default)]
struct Bounds {
    low: Option<(Version, bool)>,
    high: Option<(Version, bool)>,
}

impl Bounds {
    fn between(low: Version, high: Option<Version>) -> Self {
        Self { low: Some((low, true)), high: high.map(|version| (version, false)) }
    }

    fn allow(&self, version: &Version) -> bool {
        let above = self.low.as_ref().is_none_or(|(low, with)| version > low || (*with && version == low));
        let below =
            self.high.as_ref().is_none_or(|(high, with)| version < high || (*with && version == high));
        above && below
    }

    /// Whether a bound is such an unfinished version of the same numbers, which lets others of its kind in.
    fn names_pre(&self, version: &Version) -> bool {
        [&self.low, &self.high].into_iter().flatten().any(|(bound, _)| {
            bound.numbers == version.numbers
                && bound.pre.first().is_some_and(|part| *part != PrePart::Number(0))
        })
    }
}

/// Whether a text is one version, so that there is nothing to update to.
pub(crate) fn is_exact(text: &str) -> bool {
    Version::parse(text).is_some()
}

/// Whether a range allows a version. A text that is no range allows all, as do tags.
pub(crate) fn allows(range: &str, version: &Version) -> bool {
    let alternatives: Option<Vec<Vec<Bounds>>> = range.split("||").map(all_of).collect();
    let Some(alternatives) = alternatives else { return true };
    alternatives.iter().any(|all| {
        let is_named = version.pre.is_empty() || all.iter().any(|bounds| bounds.names_pre(version));
        is_named && all.iter().all(|bounds| bounds.allow(version))
    })
}

/// The comparisons that hold together; `None` for what is no range.
fn all_of(text: &str) -> Option<Vec<Bounds>> {
    if let Some((low, high)) = text.split_once(" - ") {
        let (low, high) = (Partial::parse(low.trim())?, Partial::parse(high.trim())?);
        let count = high.count();
        let upper = if count < 3 {
            high.behind(count).map(|version| (version, false))
        } else {
            Some((high.low(), true))
        };
        return Some(vec![Bounds { low: Some((low.low(), true)), high: upper }]);
    }
    // An operator may stand apart from its version.
    let mut joined = String::new();
    for word in text.split_whitespace() {
        joined.push_str(word);
        if !word.ends_with(['<', '>', '=', '~', '^']) {
            joined.push(' ');
        }
    }
    joined.split_whitespace().map(comparison).collect()
}

fn comparison(text: &str) -> Option<Bounds> {
    let version = text.trim_start_matches(['<', '>', '=', '~', '^']);
    let operator = &text[..text.len() - version.len()];
    let partial = Partial::parse(version.trim_start_matches('v'))?;
    let count = partial.count();
    Some(match operator {
        "" | "=" if count == 3 => {
            let version = partial.low();
            Bounds { low: Some((version.clone(), true)), high: Some((version, true)) }
        }
        "" | "=" => {
            let high = partial.behind(count);
            Bounds::between(partial.low(), high)
        }
        "~" | "~>" => {
            let high = partial.behind(count.min(2));
            Bounds::between(partial.low(), high)
        }
        "^" => {
            let first = partial.numbers.iter().take(count).position(|number| *number != Some(0));
            let high = partial.behind(first.map_or(count, |place| place + 1));
            Bounds::between(partial.low(), high)
        }
        ">=" => Bounds { low: Some((partial.low(), true)), high: None },
        ">" if count == 3 => Bounds { low: Some((partial.low(), false)), high: None },
        ">" => Bounds { low: partial.behind(count).map(|version| (version, true)), high: None },
        "<=" if count < 3 => {
            Bounds { low: None, high: partial.behind(count).map(|version| (version, false)) }
        }
        "<=" => Bounds { low: None, high: Some((partial.low(), true)) },
        "<" => Bounds { low: None, high: Some((partial.low(), false)) },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_an_order() {
        let order =
            ["0.0.1", "0.2.0", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-beta", "1.0.0", "v1.0.1+b", "1.10.0"];
        let read: Vec<_> = order.iter().map(|text| Version::parse(text).unwrap()).collect();
        assert!(read.is_sorted() && read.windows(2).all(|pair| pair[0] != pair[1]), "{read:?}");
        for wrong in ["", "1", "1.2", "1.2.x", "next", "1.2.3.4", "1.2.-3", "1.2.3-"] {
            assert!(!is_exact(wrong), "{wrong}");
        }
    }

    #[test]
    fn ranges_are_those_of_npm() {
        let check = |range: &str, in_it: &[&str], out_of_it: &[&str]| {
            for (versions, expected) in [(in_it, true), (out_of_it, false)] {
                for version in versions {
                    assert_eq!(
                        allows(range, &Version::parse(version).unwrap()),
                        expected,
                        "{version} {range}"
                    );
                }
            }
        };
        check("1.2.3", &["1.2.3"], &["1.2.4", "1.2.3-a"]);
        check("^1.2.3", &["1.2.3", "1.9.0"], &["1.2.2", "2.0.0", "2.0.0-a", "1.3.0-a"]);
        check("^0.2.3", &["0.2.3", "0.2.9"], &["0.3.0"]);
        check("^0.0.3", &["0.0.3"], &["0.0.4"]);
        check("^1", &["1.0.0", "1.9.9"], &["2.0.0", "0.9.9"]);
        check("~1.2.3", &["1.2.9"], &["1.3.0"]);
        check("~1", &["1.9.0"], &["2.0.0"]);
        check("1.x", &["1.0.0", "1.5.0"], &["2.0.0"]);
        check("*", &["0.0.1", "99.0.0"], &["1.0.0-a"]);
        check("", &["1.0.0"], &[]);
        check(">=1.2 <2 || 3", &["1.2.0", "3.4.5"], &["1.1.9", "2.0.0"]);
        check(">1.2", &["1.3.0"], &["1.2.9"]);
        check("<=1.2", &["1.2.9", "0.1.0"], &["1.3.0"]);
        check("> 1.0.0", &["1.0.1"], &["1.0.0"]);
        check("1.2.3 - 2.3", &["1.2.3", "2.3.9"], &["2.4.0"]);
        check("1.2.3 - 2.3.4", &["2.3.4"], &["2.3.5"]);
        check("^1.2.3-beta.2", &["1.2.3-beta.4", "1.2.3"], &["1.2.3-beta.1", "1.2.4-beta.3"]);
        check("latest", &["1.0.0", "0.0.1"], &[]);
    }
}
