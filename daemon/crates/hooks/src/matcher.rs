//! Matchers: what an event must be about for a hook to run.

use regex::{Regex, RegexBuilder};

/// The memory that a compiled pattern may take.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// What an event must be about: the names of tools, how a session began, and the like.
#[derive(Debug, Clone)]
pub(crate) enum Matcher {
    /// Anything.
    Every,
    /// One of these names, as they are.
    Names(Box<[String]>),
    /// A name in which the pattern is found.
    Pattern(Box<Regex>),
}

impl Matcher {
    /// Of the text in a configuration: nothing or `*` is anything, names with `|` between them are these names, and anything else is a
    /// regular expression, which may be found anywhere in the name.
    ///
    /// # Errors
    /// The pattern cannot be used: why.
    pub(crate) fn of(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if matches!(text, "" | "*") {
            return Ok(Self::Every);
        }
        let is_plain =
            |part: &str| !part.is_empty() && part.chars().all(|it| it.is_alphanumeric() || "_-".contains(it));
        if text.split('|').all(is_plain) {
            return Ok(Self::Names(text.split('|').map(str::to_owned).collect()));
        }
        let compiled = RegexBuilder::new(text).size_limit(MAX_PATTERN_BYTES).build();
        compiled.map(|pattern| Self::Pattern(Box::new(pattern))).map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => "the pattern takes too much memory".to_owned(),
            // The last line says what is wrong; those before show the pattern.
            error => {
                error.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
            }
        })
    }

    /// Whether it is about one of these names, which are several for one thing.
    pub(crate) fn is_about(&self, names: &[&str]) -> bool {
        names.iter().any(|name| match self {
            Self::Every => true,
            Self::Names(wanted) => wanted.iter().any(|wanted| wanted == name),
            Self::Pattern(pattern) => pattern.is_match(name),
        }) || (names.is_empty() && matches!(self, Self::Every))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(matcher: &str, name: &str, expected: bool) {
        assert_eq!(Matcher::of(matcher).unwrap().is_about(&[name]), expected, "{matcher} {name}");
    }

    #[test]
    fn names_are_whole_and_patterns_are_found_anywhere() {
        for every in ["", "*", " ", ".*"] {
            check(every, "Bash", true);
        }
        check("Bash", "Bash", true);
        check("Bash", "BashOutput", false);
        check("Bash", "bash", false);
        check("Edit|Write", "Write", true);
        check("Edit|Write", "MultiEdit", false);
        check("Notebook.*", "NotebookEdit", true);
        check("mcp__memory__.*", "mcp__memory__create", true);
        check("mcp__.*__write.*", "mcp__files__write_file", true);
        check("mcp__my-server__t", "mcp__my-server__t", true);
        check("^Edit$", "MultiEdit", false);
        check("(Edit|Write)", "MultiEdit", true);
        assert!(Matcher::of("").unwrap().is_about(&[]));
        assert!(!Matcher::of("x").unwrap().is_about(&[]));
    }

    #[test]
    fn a_wrong_pattern_is_explained_in_a_line() {
        for wrong in ["Bash(", "(?=x)", "a|*"] {
            let said = Matcher::of(wrong).unwrap_err();
            assert!(!said.is_empty() && !said.contains('\n'), "{wrong}: {said}");
        }
        assert_eq!(Matcher::of("((a{1000}){1000}){1000}").unwrap_err(), "the pattern takes too much memory");
    }

    proptest! {
        #[test]
        fn any_text_is_a_matcher_or_a_reason(text in "\\PC{0,40}", name in "[a-z_]{1,12}") {
            if let Ok(matcher) = Matcher::of(&text) {
                matcher.is_about(&[&name]);
            }
        }

        #[test]
        fn a_list_of_names_matches_exactly_these(names in prop::collection::vec("[A-Za-z_]{1,8}", 1..5), other in "[A-Za-z_]{1,8}") {
            let matcher = Matcher::of(&names.join("|")).unwrap();
            for name in &names {
                prop_assert!(matcher.is_about(&[name]));
            }
            prop_assert_eq!(matcher.is_about(&[&other]), names.contains(&other));
        }
    }
}
