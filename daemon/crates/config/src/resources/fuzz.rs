//! The laws of skills and prompt templates; see `fuzz.rs` of the crate.

use super::{
    front_matter::{attributes, split},
    substitute::{is_space, split_arguments, substitute},
};

/// The longest result of a template here, in bytes.
const LIMIT: usize = 4096;

/// The front matter of any file is read, or refused with a line that the file has; nothing of the file is lost. Values in quotes are
/// what was written.
pub(crate) fn front_matter(input: &[u8]) {
    let text = String::from_utf8_lossy(input).replace("\r\n", "\n");
    let parts = split(&text);
    assert!(text.contains(parts.body));
    let Some(yaml) = parts.yaml else { return assert_eq!(parts.body, text) };
    assert!(text.starts_with(&format!("---{yaml}\n---")));
    // YAML has more ends of lines than other texts.
    let lines = text.split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']).count();
    let problems = match attributes(yaml) {
        Ok(attributes) => attributes.problems,
        Err(problem) => vec![problem],
    };
    for problem in problems {
        assert!(problem.line.is_none_or(|line| line as usize <= lines), "{problem:?} of {lines} lines");
        assert!(!problem.message.is_empty() && problem.message.len() < 1024, "{problem:?}");
    }
    let plain: String = parts
        .body
        .chars()
        .filter(|letter| matches!(letter, ' '..='~' | '\u{e0}'..='\u{ff}'))
        .take(200)
        .collect();
    let quoted = serde_json::Value::from(plain.as_str());
    match attributes(&format!("\nname: {quoted}\ndescription: 'it''s'\ndisable-model-invocation: true")) {
        Ok(read) => {
            assert_eq!(read.name.as_deref(), Some(plain.trim()), "{quoted}");
            assert_eq!(read.description.as_deref(), Some("it's"));
            assert!(read.disable_model_invocation && read.problems.is_empty(), "{:?}", read.problems);
        }
        Err(problem) => panic!("{problem:?}: {quoted}"),
    }
}

/// A template with any arguments becomes a text within the limit; one without placeholders stays as it is; and what was put in is not
/// looked at again.
pub(crate) fn templates(input: &[u8]) {
    let at = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (typed, template) = input.split_at(at);
    let (typed, template) = (String::from_utf8_lossy(typed), String::from_utf8_lossy(template));
    let split = split_arguments(&typed);
    let words = typed.split(is_space).filter(|word| !word.is_empty()).count();
    assert!(split.len() <= words, "{split:?} of {typed:?}");
    if !typed.contains(['"', '\'']) {
        assert_eq!(split.len(), words);
    }
    let Some(result) = substitute(&template, &split, LIMIT) else {
        return assert!(template.len() > LIMIT || template.contains('$'));
    };
    assert!(result.len() <= LIMIT);
    if !template.contains('$') {
        assert_eq!(result, template);
    }
    let dollars = vec!["$1 ${@:1}".to_owned(); split.len()];
    if let Some(result) = substitute("$1$2", &dollars, LIMIT) {
        assert_eq!(result, dollars.iter().take(2).cloned().collect::<String>());
    }
}
