//! Messages that quote what they are about.

/// The message, or the beginning and the end of one that has more than `most` bytes, with `…` between: what is quoted may be megabytes,
/// and what was expected in its place is often said behind it.
#[must_use]
pub fn bounded(message: String, most: usize) -> String {
    if message.len() <= most {
        return message;
    }
    let is_between = |at: &usize| message.is_char_boundary(*at);
    let end = (0..=most / 3 * 2).rev().find(is_between).unwrap_or_default();
    let begin = (message.len() - most / 3..).find(is_between).unwrap_or(message.len());
    format!("{}…{}", &message[..end], &message[begin..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_was_expected_stays() {
        let said = format!("unknown mode `{}`, expected `a` or `b`", "x".repeat(100));
        assert_eq!(bounded(said.clone(), 136), said);
        assert_eq!(bounded(said, 66), "unknown mode `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…`, expected `a` or `b`");
        assert_eq!(bounded("x".into(), 0), "…");
        assert_eq!(bounded(String::new(), 0), "");
    }

    proptest! {
        #[test]
        fn a_message_is_a_beginning_and_an_end(text in "[aé😀]{0,40}", most in 0usize..60) {
            let shown = bounded(text.clone(), most);
            prop_assert!(shown.len() <= most + '…'.len_utf8());
            match shown.split_once('…') {
                None => prop_assert_eq!(shown, text),
                Some((begin, end)) => prop_assert!(text.starts_with(begin) && text.ends_with(end) && text.len() > most),
            }
        }
    }
}
