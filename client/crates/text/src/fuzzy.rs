//! How well typed words fit a text: the letters of each word have to come in order, and may leave some out.

/// Of each letter that fits.
const LETTER: i32 = 16;

/// Of a letter at the beginning of a word of the text.
const WORD: i32 = 10;

/// Of a letter right behind the one before it. More than the beginning of a word: a whole piece of a word says most.
const NEXT: i32 = 14;

/// The most that a gap between two letters takes.
const GAP: i32 = 12;

/// Longer than the names whose lengths are told apart.
const SHORTER: i64 = 4_096;

/// A text, ready to be compared with many queries.
#[derive(Debug, Clone)]
pub struct FuzzyText(Vec<char>);

impl FuzzyText {
    /// The text, whose case does not count.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(lower(text))
    }
}

/// A query, ready to be compared with many texts.
#[derive(Debug, Clone, Default)]
pub struct FuzzyQuery(Vec<Vec<char>>);

impl FuzzyQuery {
    /// The query of these words, whose case does not count.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.split_whitespace().map(lower).collect())
    }

    /// The sum over its words, larger for a better fit; 0 for an empty query. `None` where a word does not fit.
    #[must_use]
    pub fn score(&self, text: &FuzzyText) -> Option<i32> {
        self.0.iter().try_fold(0_i32, |sum, word| Some(sum.saturating_add(score(word, &text.0)?)))
    }

    /// As [`FuzzyQuery::score`], for names: of those that fit equally well the shortest is the largest.
    #[must_use]
    pub fn score_of_name(&self, name: &str) -> Option<i64> {
        let text = FuzzyText::new(name);
        let length = i64::try_from(text.0.len()).unwrap_or(i64::MAX).min(SHORTER - 1);
        Some(i64::from(self.score(&text)?) * SHORTER - length)
    }
}

/// A character for each of its characters.
fn lower(text: &str) -> Vec<char> {
    text.chars().map(|c| c.to_lowercase().next().unwrap_or(c)).collect()
}

/// The best score of all ways to find the letters of a word in order: for each letter, what the best way is worth that ends at each
/// place of the text. Costs letters times places.
fn score(word: &[char], text: &[char]) -> Option<i32> {
    let mut ending: Vec<Option<i32>> = Vec::new();
    for (number, letter) in word.iter().enumerate() {
        let mut next = vec![None; text.len()];
        // The best way that ends before the place, less what the gap takes; and less the most that a gap takes.
        let (mut before, mut far): (Option<i32>, Option<i32>) = (None, None);
        for (at, c) in text.iter().enumerate() {
            if c == letter {
                let here = LETTER + if begins_word(text, at) { WORD } else { 0 };
                next[at] = if number == 0 {
                    Some(here)
                } else {
                    let adjacent = at.checked_sub(1).and_then(|at| ending[at]).map(|best| best + NEXT);
                    adjacent.max(before).map(|best| best + here)
                };
            }
            if let Some(best) = at.checked_sub(1).filter(|_| number > 0).and_then(|at| ending[at]) {
                far = far.max(Some(best - GAP));
                before = before.max(Some(best));
            }
            before = before.map(|best| best - 1).max(far);
        }
        ending = next;
    }
    ending.into_iter().flatten().max()
}

fn begins_word(text: &[char], at: usize) -> bool {
    at.checked_sub(1).is_none_or(|before| !text[before].is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(query: &str, text: &str) -> Option<i32> {
        FuzzyQuery::new(query).score(&FuzzyText::new(text))
    }

    fn best<'a>(query: &str, names: &[&'a str]) -> &'a str {
        names.iter().copied().max_by_key(|name| FuzzyQuery::new(query).score_of_name(name)).unwrap()
    }

    #[test]
    fn of_names_that_fit_equally_the_shortest_is_best() {
        assert_eq!(best("main", &["m/a/i/n/x.rs", "src/main.rs", "domain.rs"]), "src/main.rs");
        assert_eq!(best("main", &["src/main_loop.rs", "src/main.rs"]), "src/main.rs");
        assert_eq!(best("gpt5", &["openai/gpt-5.5", "google/p-t-5"]), "openai/gpt-5.5");
        assert_eq!(FuzzyQuery::new("x").score_of_name("abc"), None);
        assert!(FuzzyQuery::new("").score_of_name("abc") > FuzzyQuery::new("").score_of_name("abcd"));
    }

    #[test]
    fn letters_come_in_order() {
        assert!(of("psr", "Fix the parser").is_some());
        assert_eq!(of("rsp", "Fix the parser"), None);
        assert_eq!(of("", "x"), Some(0));
        assert!(of("PARSER fix", "Fix the parser").is_some(), "words in any order, in any case");
        assert_eq!(of("parser gone", "Fix the parser"), None);
        assert!(of("äö", "ÄÖ").is_some());
    }

    #[test]
    fn better_fits_score_more() {
        for (query, better, worse) in [
            ("parser", "Fix the parser", "Put all rows in a nice series"),
            ("pars", "the parser", "comparison"),
            ("ft", "Fix tests", "soft"),
            ("test", "tests of dates", "the new east"),
        ] {
            assert!(of(query, better) > of(query, worse), "{query}: {better} and {worse}");
        }
    }

    proptest! {
        #[test]
        fn a_piece_of_a_text_fits(text in "[a-zäß日 ]{1,40}", from in 0_usize..40, length in 1_usize..10) {
            let piece: String = text.chars().skip(from).take(length).collect();
            prop_assert!(of(&piece, &text).is_some());
        }

        #[test]
        fn what_fits_is_a_part_in_order(word in "[a-c]{1,5}", text in "[a-d]{0,20}") {
            let mut rest = text.chars();
            let is_part = word.chars().all(|letter| rest.any(|c| c == letter));
            prop_assert_eq!(of(&word, &text).is_some(), is_part);
        }
    }
}
