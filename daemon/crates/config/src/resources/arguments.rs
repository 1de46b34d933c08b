//! The arguments of a prompt template: split as a shell would, except for what people type as text.

/// Splits a text at white space. A quote (`"` or `'`) that begins an argument holds it together up to the next one of its
/// kind, where `\` before such a quote keeps it as text; without a next one it is text, as is a quote anywhere else.
#[must_use]
pub(super) fn split(text: &str) -> Vec<String> {
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
pub(super) fn is_space(letter: char) -> bool {
    (letter.is_whitespace() && letter != '\u{85}') || letter == '\u{FEFF}'
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(split(text), expected, "{text:?}");
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
            let arguments = split(&text);
            prop_assert_eq!(bare(&arguments.concat()), bare(&text));
            prop_assert!(arguments.concat().len() <= text.len());
        }

        #[test]
        fn words_without_quotes_are_the_arguments(words in proptest::collection::vec("[a-z\\\\$]{1,8}", 0..8)) {
            prop_assert_eq!(split(&words.join(" ")), words);
        }
    }
}
