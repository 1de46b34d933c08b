//! Finding tools by words: BM25 over names, descriptions and arguments. Pure.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

/// How fast more of the same word counts less.
const SATURATION: f64 = 1.2;

/// How much a long description counts against its words.
const LENGTH_WEIGHT: f64 = 0.75;

/// How deep the arguments' schemas are read.
const MAX_DEPTH: usize = 6;

/// A tool as it is searched.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    /// The name by which the model calls it.
    pub(crate) name: String,
    /// The server's own name for it.
    pub(crate) own_name: String,
    /// Its description.
    pub(crate) description: String,
    /// All words of it and of its server.
    words: Vec<String>,
}

impl Document {
    /// `about_server` is what is known of the tool's server.
    pub(crate) fn new(
        name: &str,
        own_name: &str,
        description: &str,
        schema: &Value,
        about_server: &[&str],
    ) -> Self {
        let mut words = Vec::new();
        [own_name, description].iter().chain(about_server).for_each(|text| split(text, &mut words));
        words_of_schema(schema, MAX_DEPTH, &mut words);
        let (name, own_name, description) = (name.to_owned(), own_name.to_owned(), description.to_owned());
        Self { name, own_name, description, words }
    }
}

/// The documents that fit a query, the best first. One whose name is the query comes before all others.
pub(crate) fn search<'a>(documents: &'a [Document], query: &str, limit: usize) -> Vec<&'a Document> {
    let mut asked = Vec::new();
    split(query, &mut asked);
    let asked: HashSet<String> = asked.into_iter().collect();
    let query = query.trim();
    let count = documents.len() as f64;
    let average = documents.iter().map(|it| it.words.len()).sum::<usize>() as f64 / count.max(1.0);
    let frequencies: Vec<HashMap<&str, f64>> = documents
        .iter()
        .map(|document| {
            let mut found = HashMap::new();
            for word in document.words.iter().filter(|word| asked.contains(*word)) {
                *found.entry(word.as_str()).or_insert(0.0) += 1.0;
            }
            found
        })
        .collect();
    let weight = |word: &str| {
        let having = frequencies.iter().filter(|found| found.contains_key(word)).count() as f64;
        (1.0 + (count - having + 0.5) / (having + 0.5)).ln()
    };
    let weights: HashMap<&str, f64> = asked.iter().map(|word| (word.as_str(), weight(word))).collect();
    let mut scored: Vec<(bool, f64, &Document)> = documents
        .iter()
        .zip(&frequencies)
        .map(|(document, found)| {
            let length = document.words.len() as f64 / average.max(1.0);
            let score = found.iter().map(|(word, times)| {
                let damped = times + SATURATION * (1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * length);
                weights[word] * times * (SATURATION + 1.0) / damped
            });
            let is_exact = document.name == query || document.own_name == query;
            (is_exact, score.sum::<f64>(), document)
        })
        .filter(|(is_exact, score, _)| *is_exact || *score > 0.0)
        .collect();
    scored.sort_by(|(one_exact, one, first), (other_exact, other, second)| {
        other_exact.cmp(one_exact).then(other.total_cmp(one)).then(first.name.cmp(&second.name))
    });
    scored.into_iter().take(limit).map(|(_, _, document)| document).collect()
}

/// The words of a text in lower case; `readFile` and `read_file` have two.
fn split(text: &str, words: &mut Vec<String>) {
    let mut word = String::new();
    let mut was_lower = false;
    for letter in text.chars() {
        let begins = letter.is_uppercase() && was_lower;
        if (begins || !letter.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if letter.is_alphanumeric() {
            word.extend(letter.to_lowercase());
        }
        was_lower = letter.is_lowercase();
    }
    if !word.is_empty() {
        words.push(word);
    }
}

/// Names and descriptions of arguments.
fn words_of_schema(schema: &Value, depth: usize, words: &mut Vec<String>) {
    if depth == 0 {
        return;
    }
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        split(name, words);
        if let Some(text) = property.get("description").and_then(Value::as_str) {
            split(text, words);
        }
        words_of_schema(property, depth - 1, words);
    }
    if let Some(items) = schema.get("items") {
        words_of_schema(items, depth - 1, words);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn documents() -> Vec<Document> {
        let schema = json!({"properties": {"repo": {"type": "string", "description": "The repository"}}});
        [
            ("list_issues", "Lists the issues of a repository, with labels and authors"),
            ("createIssue", "Opens an issue"),
            ("search_code", "Searches code"),
            ("issues", "Something else"),
        ]
        .map(|(name, text)| {
            Document::new(&format!("mcp__hub__{name}"), name, text, &schema, &["hub", "A code host"])
        })
        .to_vec()
    }

    fn found(query: &str) -> Vec<String> {
        search(&documents(), query, 3).iter().map(|it| it.own_name.clone()).collect()
    }

    #[test]
    fn the_best_come_first() {
        assert_eq!(found("create issue")[0], "createIssue");
        assert_eq!(found("issues")[0], "issues", "an exact name");
        assert_eq!(found("mcp__hub__search_code")[0], "search_code");
        assert_eq!(found("labels"), ["list_issues"]);
        assert_eq!(found("repository").len(), 3, "of the arguments");
        assert!(found("weather").is_empty() && found("").is_empty());
    }

    proptest! {
        #[test]
        fn whatever_is_asked(query in ".{0,40}", limit in 0usize..6) {
            let documents = documents();
            let found = search(&documents, &query, limit);
            prop_assert!(found.len() <= limit);
        }
    }
}
