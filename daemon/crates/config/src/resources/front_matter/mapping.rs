//! All fields of a front matter, for files whose keys are other tools'.

use serde_json::{Map, Value};
use serde_saphyr::from_str_with_options;

use super::{
    field::FrontMatterProblem,
    yaml::{MAX_BYTES, is_too_much, not_yaml, quote_values, yaml_options},
};

/// The fields of a front matter, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FrontMatterFields {
    /// By their names in camel case: `argument-hint` is `argumentHint`.
    pub fields: Map<String, Value>,
    /// The fault, if it is not YAML as it stands.
    pub problem: Option<FrontMatterProblem>,
    /// True if the fault is no more than values that lack quotes, such as `globs: *.ts`, which some tools write.
    pub is_repaired: bool,
}

/// Reads the YAML of [`split`](super::split). Of what is not YAML, the lines `key: value` count, each by itself.
#[must_use]
pub fn fields(yaml: &str) -> FrontMatterFields {
    if yaml.len() > MAX_BYTES {
        let message =
            format!("the front matter is {} bytes long, more than the {MAX_BYTES} that are read", yaml.len());
        let problem = Some(FrontMatterProblem { line: None, message });
        return FrontMatterFields { problem, ..FrontMatterFields::default() };
    }
    if yaml.trim().is_empty() {
        return FrontMatterFields::default();
    }
    let error = match from_str_with_options::<Value>(yaml, yaml_options()) {
        Ok(Value::Object(fields)) => {
            return FrontMatterFields { fields: with_camel_case(fields), ..FrontMatterFields::default() };
        }
        Ok(Value::Null) => return FrontMatterFields::default(),
        Ok(_) => {
            let message = "the front matter is not made of \"key: value\" and is not used".to_owned();
            let problem = Some(FrontMatterProblem { line: Some(1), message });
            return FrontMatterFields { problem, ..FrontMatterFields::default() };
        }
        Err(error) => error,
    };
    let problem = Some(not_yaml(&error));
    if is_too_much(&error) {
        return FrontMatterFields { problem, ..FrontMatterFields::default() };
    }
    match from_str_with_options::<Value>(&quote_values(yaml), yaml_options()) {
        Ok(Value::Object(fields)) => {
            FrontMatterFields { fields: with_camel_case(fields), problem, is_repaired: true }
        }
        _ => FrontMatterFields { fields: with_camel_case(line_by_line(yaml)), problem, is_repaired: false },
    }
}

/// The lines `key: value` at the left margin. A value that is not YAML by itself is a text.
fn line_by_line(yaml: &str) -> Map<String, Value> {
    let pairs = yaml.lines().filter_map(|line| {
        let (key, value) = line.split_once(':')?;
        let is_key = key.starts_with(|first: char| first.is_ascii_alphabetic())
            && key.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_'));
        let value = value.trim();
        let parsed = || match from_str_with_options::<Value>(value, yaml_options()) {
            Ok(Value::Object(_)) | Err(_) => Value::from(value),
            Ok(parsed) => parsed,
        };
        is_key.then(|| (key.to_owned(), parsed()))
    });
    pairs.collect()
}

/// Of two spellings of one key, the one that is in camel case counts.
fn with_camel_case(fields: Map<String, Value>) -> Map<String, Value> {
    if !fields.keys().any(|key| key.contains('-')) {
        return fields;
    }
    let (plain, kebab): (Vec<_>, Vec<_>) = fields.into_iter().partition(|(key, _)| !key.contains('-'));
    let mut result: Map<String, Value> = plain.into_iter().collect();
    for (key, value) in kebab {
        result.entry(camel_case(&key)).or_insert(value);
    }
    result
}

fn camel_case(key: &str) -> String {
    let mut result = String::with_capacity(key.len());
    let mut parts = key.split('-').filter(|part| !part.is_empty());
    result.push_str(parts.next().unwrap_or(key));
    for part in parts {
        let mut letters = part.chars();
        result.extend(letters.next().into_iter().flat_map(char::to_uppercase));
        result.push_str(letters.as_str());
    }
    result
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn check(yaml: &str, expected: &Value, problem: Option<&str>, is_repaired: bool) {
        let found = fields(yaml);
        assert_eq!(Value::Object(found.fields), *expected, "{yaml:?}");
        assert_eq!(found.is_repaired, is_repaired, "{yaml:?}");
        match (found.problem, problem) {
            (None, None) => {}
            (Some(found), Some(says)) => assert!(found.message.contains(says), "{yaml:?}: {found:?}"),
            (found, _) => panic!("{yaml:?}: {found:?}"),
        }
    }

    #[test]
    fn fields_of_all_kinds_are_kept() {
        check("", &json!({}), None, false);
        check("\n# nothing\n", &json!({}), None, false);
        check(
            "\nname: a\ntools: [Read, Bash]\nnested:\n  deep: [1, {x: 2}]\nargument-hint: \"<x>\"\nflag: true\nword: yes\nnone:",
            &json!({
                "name": "a", "tools": ["Read", "Bash"], "nested": {"deep": [1, {"x": 2}]}, "flag": true, "word": "yes",
                "none": null, "argumentHint": "<x>",
            }),
            None,
            false,
        );
        check("\nallowed-tools: a\nallowedTools: b", &json!({"allowedTools": "b"}), None, false);
        check("\n- a\n- b", &json!({}), Some("not made of"), false);
    }

    #[test]
    fn almost_yaml_is_read_as_it_was_meant() {
        // What Cursor writes.
        check(
            "\ndescription: Use when: asked\nglobs: *.ts,**/*.tsx\nalwaysApply: false",
            &json!({"description": "Use when: asked", "globs": "*.ts,**/*.tsx", "alwaysApply": "false"}),
            Some("not valid YAML"),
            true,
        );
        check(
            "\nname: a\nlist:\n\t- tab\nflag: true\nglobs: *.rs",
            &json!({"name": "a", "list": null, "flag": true, "globs": "*.rs"}),
            Some("not valid YAML"),
            false,
        );
    }

    #[test]
    fn what_is_too_much_is_not_read() {
        check(&format!("\na: {}", "x".repeat(40 * 1024)), &json!({}), Some("bytes long"), false);
        let bomb = format!(
            "\na0: &a0 [1,1]\n{}",
            (1..20).map(|n| format!("a{n}: &a{n} [*a{0},*a{0},*a{0},*a{0}]\n", n - 1)).collect::<String>()
        );
        check(&bomb, &json!({}), Some("too often"), false);
    }

    proptest! {
        #[test]
        fn any_text_is_read(yaml in "(?s)([a-z-]{0,6}:? ?|[\\[\\]{}*&!|>'\"#,-]|\\n|\\t|.){0,60}") {
            let found = fields(&yaml);
            prop_assert!(found.problem.is_some() || !found.is_repaired);
        }
    }
}
