//! Texts that their authors did not know to be YAML: `description: Use when: asked`.

/// The same lines, with every plain value of a key at the left margin in quotes.
#[must_use]
pub(super) fn quote_values(yaml: &str) -> String {
    yaml.split('\n').map(quote_value).collect::<Vec<_>>().join("\n")
}

fn quote_value(line: &str) -> String {
    let untouched = || line.to_owned();
    let Some((key, value)) = line.split_once(':') else { return untouched() };
    let is_key = key.starts_with(|first: char| first.is_ascii_alphabetic())
        && key.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_'));
    let value = value.trim();
    // What is in quotes, or goes on in the lines below, is YAML that its author knew; so is a list that lacks its end, but
    // not a text that begins with a word in brackets.
    let is_list = match value.chars().next() {
        Some('[') => !value.trim_end_matches(']').contains(']'),
        Some('{') => !value.trim_end_matches('}').contains('}'),
        _ => false,
    };
    if !is_key || is_list || value.is_empty() || value.starts_with(['"', '\'', '|', '>']) {
        return untouched();
    }
    let quoted = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\t', "\\t");
    format!("{key}: \"{quoted}\"")
}
