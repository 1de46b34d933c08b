//! `$1`, `$@`, `${2:-default}` and the like in the text of a prompt template.

use std::borrow::Cow;

/// Puts arguments into a template, from left to right in one pass: what was put in is not looked at again. `None` when
/// the result would be longer than `limit` bytes.
///
/// | written | becomes |
/// | --- | --- |
/// | `$N` | the argument N, from 1 |
/// | `$@`, `$ARGUMENTS` | all arguments, with a space between them |
/// | `${N:-text}`, `${@:-text}`, `${ARGUMENTS:-text}` | the same; the text where that is missing or empty |
/// | `${@:N}`, `${@:N:L}` | the arguments from N on, at most L of them |
///
/// A missing argument is nothing. Everything else stays as it is.
#[must_use]
pub(super) fn substitute(template: &str, arguments: &[String], limit: usize) -> Option<String> {
    let arguments = Arguments { each: arguments, all: arguments.join(" ") };
    // Looked for once: a template may open many braces and close none.
    let last_brace = template.rfind('}').unwrap_or(0);
    let mut result = String::new();
    let mut add = |text: &str| {
        result.push_str(text);
        result.len() <= limit
    };
    let mut rest = template;
    while let Some(at) = rest.find('$') {
        let (before, after) = (&rest[..at], &rest[at + 1..]);
        let closes = template.len() - after.len() <= last_brace;
        let found = match after.strip_prefix('{') {
            Some(inside) if closes => arguments.braced(inside),
            Some(_) => None,
            None => arguments.bare(after),
        };
        let (text, after) = found.unwrap_or((Cow::Borrowed("$"), after));
        if !(add(before) && add(&text)) {
            return None;
        }
        rest = after;
    }
    add(rest).then_some(result)
}

/// Returns whether a template has a place for arguments.
#[must_use]
pub(super) fn has_place(template: &str) -> bool {
    let probe = ["x".to_owned()];
    substitute(template, &probe, usize::MAX).is_some_and(|text| text != template)
        || substitute(template, &[], usize::MAX).is_some_and(|text| text != template)
}

/// The template with `$@[N]` and `$@[N:L]`, as commands of other tools have them, written as `${@:N}` and `${@:N:L}`.
#[must_use]
pub(super) fn with_braces(template: &str) -> Cow<'_, str> {
    if !template.contains("$@[") {
        return Cow::Borrowed(template);
    }
    let mut result = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("$@[") {
        result.push_str(before);
        let end = after.find(|letter: char| !letter.is_ascii_digit() && letter != ':').unwrap_or(after.len());
        let inside = &after[..end];
        match after[end..]
            .strip_prefix(']')
            .filter(|_| inside.starts_with(|first: char| first.is_ascii_digit()))
        {
            Some(behind) => {
                result.push_str(&format!("${{@:{inside}}}"));
                rest = behind;
            }
            None => {
                result.push_str("$@[");
                rest = after;
            }
        }
    }
    result.push_str(rest);
    Cow::Owned(result)
}

/// The text after the name of the template.
struct Arguments<'a> {
    each: &'a [String],
    all: String,
}

/// The replacement of a placeholder, and the text after it.
type Replacement<'a> = (Cow<'a, str>, &'a str);

impl Arguments<'_> {
    /// Reads what comes after `$`.
    fn bare<'a>(&'a self, text: &'a str) -> Option<Replacement<'a>> {
        let (value, after) = self.value(text)?;
        Some((value.into(), after))
    }

    /// Reads what comes after `${`.
    fn braced<'a>(&'a self, text: &'a str) -> Option<Replacement<'a>> {
        let (value, after) = self.value(text)?;
        if let Some(after) = after.strip_prefix(":-") {
            let (default, after) = after.split_once('}')?;
            return Some((if value.is_empty() { default } else { value }.into(), after));
        }
        // Only all of them can be cut.
        let (from, after) = number(text.strip_prefix("@:")?)?;
        let (length, after) = match after.strip_prefix(':') {
            Some(after) => number(after)?,
            None => (usize::MAX, after),
        };
        let after = after.strip_prefix('}')?;
        let from = from.saturating_sub(1).min(self.each.len());
        let to = from.saturating_add(length).min(self.each.len());
        Some((self.each[from..to].join(" ").into(), after))
    }

    /// Reads `@`, `ARGUMENTS` or a number.
    fn value<'a>(&'a self, text: &'a str) -> Option<(&'a str, &'a str)> {
        if let Some(after) = text.strip_prefix('@').or_else(|| text.strip_prefix("ARGUMENTS")) {
            return Some((&self.all, after));
        }
        let (number, after) = number(text)?;
        let argument = number.checked_sub(1).and_then(|index| self.each.get(index));
        Some((argument.map_or("", String::as_str), after))
    }
}

/// The decimal number that a text begins with. One that is too large for any list is as large as can be.
fn number(text: &str) -> Option<(usize, &str)> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (digits, after) = text.split_at(end);
    if digits.is_empty() {
        return None;
    }
    Some((digits.parse().unwrap_or(usize::MAX), after))
}

/// Splits a text at white space. A quote (`"` or `'`) that begins an argument holds it together up to the next one of its
/// kind, where `\` before such a quote keeps it as text; without a next one it is text, as is a quote anywhere else.
#[must_use]
pub fn split_arguments(text: &str) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while let Some(first) = rest.chars().next() {
        let mut argument = String::new();
        if matches!(first, '"' | '\'')
            && let Some((quoted, after)) = quoted(&rest[1..], first)
        {
            argument = quoted;
            rest = after;
        }
        let end = rest.find(is_space).unwrap_or(rest.len());
        argument.push_str(&rest[..end]);
        arguments.push(argument);
        rest = rest[end..].trim_start_matches(is_space);
    }
    arguments
}

/// The text before the closing quote, and the text after it; `None` without one.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut inside = String::new();
    let mut rest = text;
    loop {
        let at = rest.find([quote, '\\'])?;
        inside.push_str(&rest[..at]);
        let found = &rest[at..];
        if let Some(after) = found.strip_prefix(quote) {
            return Some((inside, after));
        }
        let after = &found[1..];
        rest = match after.strip_prefix(quote) {
            Some(after) => {
                inside.push(quote);
                after
            }
            None => {
                inside.push('\\');
                after
            }
        };
    }
}

/// White space as JavaScript has it, which is what templates are written for.
pub fn is_space(letter: char) -> bool {
    (letter.is_whitespace() && letter != '\u{85}') || letter == '\u{FEFF}'
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    const LIMIT: usize = 1 << 20;

    fn with(template: &str, typed: &str) -> String {
        substitute(template, &split_arguments(typed), LIMIT).unwrap()
    }

    #[test]
    fn places_of_other_tools_are_ours() {
        for (written, expected) in [
            ("$@[2] $@[1:3]", "${@:2} ${@:1:3}"),
            ("$@[x] $@[ $@[1", "$@[x] $@[ $@[1"),
            ("$@[]", "$@[]"),
            ("$1", "$1"),
        ] {
            assert_eq!(with_braces(written), expected);
        }
        for (template, has) in
            [("$ARGUMENTS", true), ("a $2 b", true), ("costs 5$ or $x", false), ("", false)]
        {
            assert_eq!(has_place(template), has, "{template}");
        }
    }

    #[test]
    fn the_result_is_bounded() {
        let typed = ["a".repeat(10)];
        assert_eq!(substitute("$1$1", &typed, 20).map(|text| text.len()), Some(20));
        assert_eq!(substitute("$1$1", &typed, 19), None);
        assert_eq!(substitute("$1bc", &typed, 11), None);
        assert_eq!(substitute(&"$@".repeat(1 << 20), &vec!["a".repeat(1000); 1000], LIMIT), None);
    }

    /// Checks a template without arguments, with `a`, and with `a "b c" d`.
    fn check(template: &str, none: &str, one: &str, three: &str) {
        for (typed, expected) in [("", none), ("a", one), (r#"a "b c" d"#, three)] {
            assert_eq!(with(template, typed), expected, "{template:?} with {typed:?}");
        }
    }

    #[test]
    fn arguments_by_number() {
        check("$1", "", "a", "a");
        check("[$2]", "[]", "[]", "[b c]");
        check("$1x$3", "x", "ax", "axd");
        check("$01", "", "a", "a");
        check("$0", "", "", "");
        check("$10", "", "", "");
        check("$99999999999999999999999", "", "", "");
    }

    #[test]
    fn all_arguments() {
        check("$@", "", "a", "a b c d");
        check("$ARGUMENTS.", ".", "a.", "a b c d.");
        check("$ARGUMENTSX", "X", "aX", "a b c dX");
        check("$@x", "x", "ax", "a b c dx");
    }

    #[test]
    fn defaults() {
        check("${1:-no}", "no", "a", "a");
        check("${2:-two words}", "two words", "two words", "b c");
        check("${@:-all}", "all", "a", "a b c d");
        check("${ARGUMENTS:-all}", "all", "a", "a b c d");
        check("${1:-}", "", "a", "a");
        check("${1:-a:-b\nc}", "a:-b\nc", "a", "a");
        check("${1:-{x}}", "{x}", "a}", "a}");
        assert_eq!(with("${1:-x}${@:-y}", "\"\""), "xy");
    }

    #[test]
    fn parts_of_the_arguments() {
        check("${@:2}", "", "", "b c d");
        check("${@:2:1}", "", "", "b c");
        check("${@:0}${@:0:1}", "", "aa", "a b c da");
        check("${@:1:0}", "", "", "");
        check("${@:01:02}", "", "a", "a b c");
        check("${@:1:99999999999999999999999}", "", "a", "a b c d");
        check("${@:99999999999999999999999}", "", "", "");
    }

    #[test]
    fn everything_else_is_text() {
        for text in [
            "",
            "$",
            "$$",
            "a$",
            "$-1",
            "$x",
            "$ARGUMENT",
            "$arguments",
            "${1}",
            "${@}",
            "${ARGUMENTS}",
            "${:-q}",
            "${x:-q}",
            "${1:=x}",
            "${1:2}",
            "${ARGUMENTS:2}",
            "${@:2:}",
            "${@: 2}",
            "${@:x}",
            "${1:-open",
            "${@:1",
            "$é",
        ] {
            check(text, text, text, text);
        }
        check("$$1", "$", "$a", "$a");
        check("\\$1", "\\", "\\a", "\\a");
    }

    #[test]
    fn what_is_put_in_is_not_looked_at_again() {
        assert_eq!(with("$1|${3:-$1}", "$2 ${@} $ARGUMENTS"), "$2|$ARGUMENTS");
        assert_eq!(with("${2:-$1}", "$2"), "$1");
    }

    proptest! {
        #[test]
        fn never_panics_and_keeps_what_holds_no_dollar(
            template in "(\\$|\\{|\\}|@|:|:-|[0-9]{1,3}|ARGUMENTS|x|\u{e9}|\n){0,40}",
            typed in "[ab$@\"' ]{0,20}",
        ) {
            let result = with(&template, &typed);
            let before = template.split('$').next().unwrap_or_default();
            prop_assert!(result.starts_with(before));
        }

        /// Each argument is marked with a letter that no template has: what comes out are whole arguments and text of the
        /// template, never a placeholder of an argument.
        #[test]
        fn arguments_come_out_whole(template in "(\\$1|\\$@|\\$\\{2:-d\\}| |x){0,20}", argument in "(\\$[12@]|\\$\\{1:-y\\})") {
            let arguments = vec![argument.clone()];
            let marked = vec!["\u{1}".to_owned()];
            prop_assert_eq!(
                substitute(&template, &arguments, LIMIT).unwrap(),
                substitute(&template, &marked, LIMIT).unwrap().replace('\u{1}', &argument)
            );
        }
    }

    /// Texts that would take a day if anything were looked at again and again.
    #[test]
    fn hostile_templates_take_one_pass() {
        let (finished, waiting) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for unit in ["${1:-", "$", "${@:1:", "${@:", "$1", "${1:-}", "\"", "\"a ", "'\\' "] {
                let text = unit.repeat(200_000);
                let _ = substitute(&text, &split_arguments(&text[..2_000.min(text.len())]), LIMIT);
                let _ = split_arguments(&text);
            }
            finished.send(()).unwrap();
        });
        waiting.recv_timeout(Duration::from_secs(60)).expect("one pass");
    }
}

#[cfg(test)]
mod arguments_tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(split_arguments(text), expected, "{text:?}");
    }

    #[test]
    fn arguments() {
        check("", &[]);
        check("  \n ", &[]);
        check(" a  b\tc\nd ", &["a", "b", "c", "d"]);
        check("a\u{A0}b\u{3000}c\u{85}d", &["a", "b", "c\u{85}d"]);
        check(r#"a "b c" d"#, &["a", "b c", "d"]);
        check("'q r'x \"m\"n", &["q rx", "mn"]);
        check(r#""" b ''"#, &["", "b", ""]);
        check("\"\"x y", &["x", "y"]);
    }

    #[test]
    fn quotes_are_text_inside_of_an_argument_and_without_a_partner() {
        check("it's a\"b c\"d", &["it's", "a\"b", "c\"d"]);
        check("\"a", &["\"a"]);
        check("\"a b 'c", &["\"a", "b", "'c"]);
        check(r#""a""b""#, &[r#"a"b""#]);
        check(r#""""" b"#, &[r#""""#, "b"]);
    }

    #[test]
    fn backslashes_only_keep_the_quote_around_them() {
        check(r#""x \" y" z"#, &[r#"x " y"#, "z"]);
        check(r#""a\b" "c\'d" 'e\'f'"#, &["a\\b", r"c\'d", "e'f"]);
        check(r#""a\" b"#, &[r#""a\""#, "b"]);
        check(r#""a\\" b" c"#, &[r#"a\" b"#, "c"]);
        check(r#"\"a b\""#, &[r#"\"a"#, r#"b\""#]);
    }

    proptest! {
        /// Nothing is lost and nothing comes in but the quotes and backslashes that mean something.
        #[test]
        fn only_quotes_and_backslashes_disappear(text in "[ab\"'\\\\ \n\u{e9}]{0,60}") {
            let bare = |text: &str| {
                text.chars().filter(|letter| !is_space(*letter) && !matches!(letter, '"' | '\'' | '\\')).collect::<String>()
            };
            let arguments = split_arguments(&text);
            prop_assert_eq!(bare(&arguments.concat()), bare(&text));
            prop_assert!(arguments.concat().len() <= text.len());
        }

        #[test]
        fn words_without_quotes_are_the_arguments(words in proptest::collection::vec("[a-z\\\\$]{1,8}", 0..8)) {
            prop_assert_eq!(split_arguments(&words.join(" ")), words);
        }
    }
}
