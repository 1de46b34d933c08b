//! Cuts texts to a number of bytes, at the boundaries of characters. Pure.

/// The longest beginning of `text` of at most `bytes` bytes.
#[must_use]
pub fn head(text: &str, bytes: usize) -> &str {
    &text[..floor(text, bytes)]
}

/// The longest end of `text` of at most `bytes` bytes.
#[must_use]
pub fn tail(text: &str, bytes: usize) -> &str {
    &text[ceil(text, text.len().saturating_sub(bytes))..]
}

/// The last boundary of a character at or before `at`; the length of the text for all behind it.
#[must_use]
pub fn floor(text: &str, at: usize) -> usize {
    if at >= text.len() {
        return text.len();
    }
    // A character has at most four bytes.
    (at.saturating_sub(3)..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The first boundary of a character at or after `at`; the length of the text for all behind it.
#[must_use]
pub fn ceil(text: &str, at: usize) -> usize {
    (at..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

/// The message, or the beginning and the end of one that has more than `most` bytes, with `…` between: a quotation may have megabytes,
/// and the expected value often follows it.
#[must_use]
pub fn without_middle(message: String, most: usize) -> String {
    if message.len() <= most {
        return message;
    }
    format!("{}…{}", head(&message, most / 3 * 2), tail(&message, most / 3))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_expected_value_at_the_end_of_a_message_stays() {
        let said = format!("unknown mode `{}`, expected `a` or `b`", "x".repeat(100));
        assert_eq!(without_middle(said.clone(), 136), said);
        assert_eq!(
            without_middle(said, 66),
            "unknown mode `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…`, expected `a` or `b`"
        );
        assert_eq!(without_middle("x".into(), 0), "…");
        assert_eq!(without_middle(String::new(), 0), "");
    }

    #[test]
    fn no_character_is_split() {
        assert_eq!((head("aé", 2), tail("éa", 2), head("aé", 9), tail("aé", 9)), ("a", "a", "aé", "aé"));
        assert_eq!((floor("é", 1), ceil("é", 1), floor("é", 7), ceil("é", 7)), (0, 2, 2, 2));
    }

    proptest! {
        #[test]
        fn both_ends_fit_and_as_much_as_possible_is_kept(text in "\\PC{0,40}", bytes in 0..60_usize) {
            let (head, tail) = (head(&text, bytes), tail(&text, bytes));
            prop_assert!(text.starts_with(head) && text.ends_with(tail));
            for kept in [head, tail] {
                prop_assert!(kept.len() <= bytes && (kept.len() == text.len() || kept.len() + 4 > bytes));
            }
        }

        #[test]
        fn a_shortened_message_is_short(text in "\\PC{0,200}", most in 3..100_usize) {
            prop_assert!(without_middle(text, most).len() <= most + '…'.len_utf8());
        }
    }
}
