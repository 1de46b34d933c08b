//! Finding by some letters in their order.

/// How well a text has the letters of a query in their order; `None` where it has not. Letters that follow each other, and those at
/// the beginning of a word, count more; of equals, the shorter text counts more.
pub(crate) fn score(query: &str, text: &str) -> Option<i64> {
    let mut total = 0;
    let mut wanted = query.chars().flat_map(char::to_lowercase).filter(|c| !c.is_whitespace()).peekable();
    let mut before: Option<char> = None;
    let mut was_hit = false;
    let mut length = 0;
    for c in text.chars() {
        length += 1;
        let is_hit = wanted.peek().is_some_and(|letter| c.to_lowercase().eq(std::iter::once(*letter)));
        if is_hit {
            wanted.next();
            let begins = before.is_none_or(|before| !before.is_alphanumeric());
            total += 10 + if was_hit { 15 } else { 0 } + if begins { 12 } else { 0 };
        }
        was_hit = is_hit;
        before = Some(c);
    }
    if wanted.peek().is_some() {
        return None;
    }
    // The letters at one place, whole, are what was meant.
    if !query.is_empty() && text.to_lowercase().contains(&query.to_lowercase()) {
        total += 100;
    }
    Some(total * 4 - length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best<'a>(query: &str, texts: &[&'a str]) -> &'a str {
        texts.iter().copied().max_by_key(|text| score(query, text)).unwrap()
    }

    #[test]
    fn whole_words_come_first() {
        assert_eq!(best("main", &["m/a/i/n/x.rs", "src/main.rs", "domain.rs"]), "src/main.rs");
        assert_eq!(best("gpt5", &["openai/gpt-5.5", "google/p-t-5"]), "openai/gpt-5.5");
        assert_eq!(score("x", "abc"), None);
        assert!(score("", "abc").is_some() && score("A B", "ab").is_some());
    }
}
