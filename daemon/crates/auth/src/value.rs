//! The syntax of values in `auth.json` and `models.json`: a literal with variables in it, or a command.

use agentd_config::Environment;
use agentd_protocol::models_file::ConfigValue;

use crate::{CommandCache, CommandError, Secret};

/// Why a value came to nothing. It quotes neither the value nor the command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// A variable is not set, or set to nothing.
    #[error("the environment variable {0} is not set")]
    MissingVariable(String),
    /// The value is empty.
    #[error("the value is empty")]
    Empty,
    /// The command did not give a value.
    #[error(transparent)]
    Command(#[from] CommandError),
}

enum Template {
    Command(String),
    Parts(Vec<Part>),
}

#[derive(Debug, PartialEq, Eq)]
enum Part {
    Literal(String),
    Variable(String),
}

/// Resolves a value: `!command` is the command's output, `$NAME` and `${NAME}` are variables, `$$` and `$!` stand for the
/// characters themselves, the rest is literal.
///
/// # Errors
/// [`ValueError`]. Cancel safety: a command that runs for this call alone is killed when it is dropped.
pub(crate) async fn resolve(
    value: &ConfigValue,
    environment: &Environment,
    commands: &CommandCache,
) -> Result<Secret, ValueError> {
    match parse(value.expose()) {
        Template::Command(command) => Ok(commands.run(&command, environment).await?),
        Template::Parts(parts) => fill_in(&parts, environment).map(Secret::new),
    }
}

/// Returns whether a value is the output of a command.
pub(crate) fn is_command(value: &ConfigValue) -> bool {
    matches!(parse(value.expose()), Template::Command(_))
}

/// The variables that a value is made of. The variables that a command reads are unknown.
pub(crate) fn variables(value: &ConfigValue) -> Vec<String> {
    let Template::Parts(parts) = parse(value.expose()) else { return Vec::new() };
    let names = parts.into_iter().filter_map(|part| match part {
        Part::Variable(name) => Some(name),
        Part::Literal(_) => None,
    });
    names.collect()
}

/// The literal parts of a value; a command as a whole.
pub(crate) fn literals(value: &ConfigValue) -> Vec<String> {
    match parse(value.expose()) {
        Template::Command(command) => vec![command],
        Template::Parts(parts) => {
            let texts = parts.into_iter().filter_map(|part| match part {
                Part::Literal(text) => Some(text),
                Part::Variable(_) => None,
            });
            texts.collect()
        }
    }
}

/// Returns whether [`resolve`] could succeed, without running anything: a command counts as a value.
pub(crate) fn is_resolvable(value: &ConfigValue, environment: &Environment) -> bool {
    match parse(value.expose()) {
        Template::Command(command) => !command.trim().is_empty(),
        Template::Parts(parts) => fill_in(&parts, environment).is_ok(),
    }
}

fn fill_in(parts: &[Part], environment: &Environment) -> Result<String, ValueError> {
    let mut text = String::new();
    for part in parts {
        match part {
            Part::Literal(literal) => text.push_str(literal),
            Part::Variable(name) => match environment.non_empty(name) {
                Some(value) => text.push_str(value),
                None => return Err(ValueError::MissingVariable(name.clone())),
            },
        }
    }
    if text.is_empty() { Err(ValueError::Empty) } else { Ok(text) }
}

fn parse(text: &str) -> Template {
    match text.strip_prefix('!') {
        Some(command) => Template::Command(command.to_owned()),
        None => Template::Parts(parts(text)),
    }
}

fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        literal.push_str(before);
        if let Some(escaped) = after.chars().next().filter(|next| matches!(next, '$' | '!')) {
            literal.push(escaped);
            rest = &after[1..];
        } else if let Some((name, after)) = variable(after) {
            if !literal.is_empty() {
                parts.push(Part::Literal(std::mem::take(&mut literal)));
            }
            parts.push(Part::Variable(name.to_owned()));
            rest = after;
        } else {
            literal.push('$');
            rest = after;
        }
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        parts.push(Part::Literal(literal));
    }
    parts
}

/// The variable name after a `$`, with or without braces, and what follows it.
fn variable(text: &str) -> Option<(&str, &str)> {
    if let Some(inner) = text.strip_prefix('{') {
        return inner.split_once('}').filter(|(name, _)| name_length(name) == name.len() && !name.is_empty());
    }
    let length = name_length(text);
    (length > 0).then(|| text.split_at(length))
}

/// The number of bytes at the beginning that can be the name of a variable.
fn name_length(text: &str) -> usize {
    if text.starts_with(|first: char| first.is_ascii_digit()) {
        return 0;
    }
    text.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    async fn check(text: &str, expected: Result<&str, ValueError>) {
        let environment: Environment = [("A", "aa"), ("B_1", "bb"), ("EMPTY", "")].into_iter().collect();
        let value = ConfigValue::new(text);
        let got = resolve(&value, &environment, &CommandCache::default()).await;
        assert_eq!(got.as_ref().map(Secret::expose), expected.as_ref().map(|text| *text), "{text}");
        assert_eq!(is_resolvable(&value, &environment), got.is_ok(), "{text}");
    }

    #[tokio::test]
    async fn literals_and_variables() {
        check("sk-123", Ok("sk-123")).await;
        check("$A", Ok("aa")).await;
        check("x${A}y$B_1-z", Ok("xaaybb-z")).await;
        check("$$A$!", Ok("$A!")).await;
        check("$!not a command", Ok("!not a command")).await;
        check("a!b $ $1 ${} ${A", Ok("a!b $ $1 ${} ${A")).await;
        check("${A-x}", Ok("${A-x}")).await;
        check("é$A猫", Ok("éaa猫")).await;
        check("$NONE", Err(ValueError::MissingVariable("NONE".into()))).await;
        check("$A${EMPTY}", Err(ValueError::MissingVariable("EMPTY".into()))).await;
        check("", Err(ValueError::Empty)).await;
        check("!printf ' key\\n\\n'", Ok("key")).await;
    }

    proptest! {
        #[test]
        fn any_text_without_a_dollar_or_leading_mark_is_itself(text in "[^$!][^$]{0,20}") {
            prop_assert_eq!(fill_in(&parts(&text), &Environment::default()), Ok(text));
        }

        #[test]
        fn escaping_gives_back_any_text(text in "\\PC{1,20}") {
            let escaped = text.replace('$', "$$");
            prop_assert_eq!(fill_in(&parts(&escaped), &Environment::default()), Ok(text));
        }
    }
}
